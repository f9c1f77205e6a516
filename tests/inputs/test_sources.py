"""A table with columns of all kinds and forms: the same model from CSV, Parquet, pandas and Polars."""

import csv
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas._libs.parsers import STR_NA_VALUES

from polyplane import TableClassifier, TableEncoder
from polyplane.readers import read_table
from polyplane.tables.encoder import ColumnsWarning

N_ROWS = 160
GAPS = ["", "NA", "n/a", "#N/A", "null", "None", ".", "-"]


def _marked(values, rng):
    """Replace some values by marks of missing values."""
    return [str(rng.choice(GAPS)) if i % 9 == 4 else value for i, value in enumerate(values)]


def columns():
    """The strings of each column, and how it is read: the kind, and a part of the note."""
    rng = np.random.default_rng(0)
    money, whole = rng.gamma(2.0, 2000.0, N_ROWS).round(2), rng.integers(1, 9000, N_ROWS)
    signed = np.where(np.arange(N_ROWS) % 2, money, -money)
    days = pd.Series(pd.date_range("2019-01-01 08:30", periods=900)).sample(N_ROWS, random_state=0)
    words = ["engine", "bird", "landed", "without", "damage", "pilot", "saw", "flock"]
    german = str.maketrans(",.", ".,")

    def dates(format):
        return days.dt.strftime(format).tolist()

    return {
        "dollars": ([f"${v:,.2f}" for v in money], "number", "(unit $)"),
        "euros": ([f"{v:,.2f} €".translate(german) for v in money], "number", "(unit €)"),
        "accounting": ([f"({-v:,.2f})" if v < 0 else f"{v:,.2f}" for v in signed], "number", "is read as"),
        "swiss": ([f"{v:,.2f}".replace(",", "'") for v in money], "number", "is read as"),
        "french": ([f"{v:,.1f}".replace(",", " ").replace(".", ",") for v in money], "number", "is read as"),
        "thousands": ([f"{v:,}" for v in [*whole[1:] * 1000, 12]], "number", "is read as"),
        "comma": ([f"{v:.2f}".replace(".", ",") for v in money], "number", "is read as"),
        "percent": ([f"{v % 100:.1f}%" for v in money], "number", "(unit %)"),
        "weight": ([f"{v} kg" for v in whole], "number", "(unit kg)"),
        "followers": ([f"{v / 1000:.1f}M" if v > 3000 else f"{v}k" for v in whole], "number", "is read as"),
        "minus": ([f"{v:.1f}".replace("-", "\u2212") for v in signed], "number", "is read as"),
        "plain": ([f"{v:.2f}" for v in signed], "number", ""),
        "integer": ([str(v) for v in whole], "number", ""),
        "gaps": (_marked([f"{v:.1f}" for v in money], rng), "number", ""),
        "dollar gaps": (_marked([f"${v:,.2f}" for v in money], rng), "number", "(unit $)"),
        "year": ([str(2000 + v % 20) for v in whole], "number", ""),
        "ambiguous number": ([f"{1 + v % 9},{100 + v % 3}" for v in whole], "category", "set decimal"),
        "mixed units": ([f"{v % 7} {'kg' if v % 2 else 'g'}" for v in whole], "category", ""),
        "almost a number": ([str(v % 40) for v in whole[1:]] + ["about 3"], "category", "'about 3'"),
        "iso": (dates("%Y-%m-%d"), "date", ""),
        "zone": (dates("%Y-%m-%dT%H:%M:%S+02:00"), "date", ""),
        "american": (dates("%m/%d/%Y"), "date", "is read as"),
        "european": (dates("%d/%m/%Y %H:%M"), "date", "is read as"),
        "dotted": (dates("%d.%m.%Y"), "date", "is read as"),
        "long": (dates("%B %d, %Y"), "date", "is read as"),
        "afternoon": (dates("%m/%d/%y %I:%M %p"), "date", "is read as"),
        "tweeted": (dates("%a %b %d %H:%M:%S +0000 %Y"), "date", "is read as"),
        "week": (dates("%G-W%V"), "date", "is read as"),
        "quarter": ([f"{day.year}-Q{day.quarter}" for day in days], "date", "is read as"),
        "month": (dates("%Y-%m"), "date", "is read as"),
        "date gaps": (_marked(dates("%d.%m.%Y"), rng), "date", "is read as"),
        "ambiguous date": ([f"0{1 + v % 9}/0{1 + v % 8}/2020" for v in whole], "category", "set date_format"),
        "boolean": (["true" if v % 2 else "false" for v in whole], "boolean", ""),
        "answer": (["yes" if v % 2 else "no" for v in whole], "category", ""),
        "colour": (_marked([["red", "blue", "grün"][v % 3] for v in whole], rng), "category", ""),
        "post code": ([f"0{1000 + v % 5}" for v in whole], "category", ""),
        "town": ([["Bonn", "Rome"][v % 2] if v % 3 else f"town {v}" for v in whole], "category", "levels are used"),
        "remarks": ([" ".join(rng.choice(words, 4)) + f" {i}" for i in range(N_ROWS)], "text", "words are used"),
        "row": ([str(i) for i in range(N_ROWS)], "dropped", "it is an id"),
        "mail": ([f"m{i}@example.org" for i in range(N_ROWS)], "dropped", "it is an id"),
        "id_str": ([str(10**17 + 7 * i) for i in range(N_ROWS)], "dropped", "it is an id"),
        "hash": ([str(10**25 + i) for i in range(N_ROWS)], "dropped", "it is an id"),
        "constant": (["one"] * N_ROWS, "dropped", "it is constant"),
        "empty": ([""] * N_ROWS, "dropped", "it has no values"),
    }


def sources(folder, found):
    """The table in a file, as read by each library."""
    path = folder / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(found)
        writer.writerows(zip(*(values for values, _, _ in found.values()), strict=True))
    frame = pd.read_csv(path, dtype={"post code": str})  # which pandas would read as a number
    frame.astype({"hash": str}).to_parquet(folder / "x.parquet", index=False)  # Parquet has no such integers
    return {
        "CSV": read_table(path),
        "pandas": frame,
        "Polars": pl.read_csv(path, infer_schema_length=None, schema_overrides={"post code": pl.String}),
        "Parquet": read_table(folder / "x.parquet"),
        "strings": pd.DataFrame({name: values for name, (values, _, _) in found.items()}),
    }


def test_all_sources_give_the_same_model_and_each_reading_is_reported(tmp_path):
    found = columns()
    y = np.random.default_rng(1).integers(0, 2, N_ROWS)
    models = {}
    for source, table in sources(tmp_path, found).items():
        with pytest.warns(ColumnsWarning) as warned:
            models[source] = TableClassifier(1, preparation="standard", n_planes=1, max_iter=2, random_state=0).fit(
                table, y
            )
        lines = str(warned[0].message).split("\n")[1:]
        report = models[source].encoder_.report_.set_index("column")
        assert report["read as"].to_dict() == {name: kind for name, (_, kind, _) in found.items()}, source
        for name, (_, kind, note) in found.items():
            own = [line for line in lines if line.startswith(f"  {name!r}")]
            assert len(own) == (note != ""), (source, name)
            assert note in report["note"][name]
            assert (kind == "dropped") == (report["features"][name] == 0)
            assert bool(report["note"][name]) == (note != "")
    first = models["CSV"]
    for source, model in models.items():
        assert model.encoder_.to_dict() == first.encoder_.to_dict(), source
        np.testing.assert_array_equal(model.model_.planes.coef, first.model_.planes.coef)
    assert report["missing"]["gaps"] == report["missing"]["dollar gaps"] == 18


def test_parameters_decide_what_is_ambiguous():
    found = columns()
    frame = pd.DataFrame({name: found[name][0] for name in ("ambiguous number", "ambiguous date")})
    y = [0, 1] * (N_ROWS // 2)
    with warnings.catch_warnings(action="ignore"):
        model = TableClassifier(
            1, decimal=",", date_format={"ambiguous date": "%d/%m/%Y"}, preparation="standard", n_planes=1, max_iter=1
        ).fit(frame, y)
    rows = model.encoder_.transform(frame)
    assert rows[0, 0] == float(found["ambiguous number"][0][0].replace(",", "."))
    day, month, year = map(int, found["ambiguous date"][0][0].split("/"))
    assert rows[0, 1] == (np.datetime64(f"{year}-{month:02d}-{day:02d}") - np.datetime64("1970-01-01")).astype(int)
    with pytest.raises(ValueError, match=r"'ambiguous date' is ambiguous: .* may be .* or .*: set date_format"):
        TableClassifier(kinds={"ambiguous date": "date"}).fit(frame, y)


def test_frames_of_pandas_with_periods_durations_and_complex_numbers():
    frame = pd.DataFrame(
        {
            "period": pd.period_range("2020-01", periods=40, freq="M"),
            "duration": pd.to_timedelta(np.arange(40) ** 2, unit="min"),
            "x": np.arange(40) / 7,
        }
    )
    y = [0, 1] * 20
    model = TableClassifier(1, preparation="standard", n_planes=1, max_iter=1).fit(frame, y)
    assert model.encoder_.kinds_ == {"period": "date", "duration": "number", "x": "number"}
    assert model.encoder_.transform(frame)[1, 0] == 18293  # 2020-02-01
    with pytest.raises(ValueError, match=r"'x' contains complex numbers"):
        TableClassifier().fit(frame.assign(x=frame["x"] * 1j), y)


@pytest.mark.parametrize("mark", sorted(STR_NA_VALUES))
def test_what_pandas_takes_as_missing_is_missing_in_files(mark, tmp_path):
    """One string in a column of numbers that is not taken as missing would make it a category."""
    rng, path = np.random.default_rng(0), tmp_path / "rows.csv"
    cells = [[f"{value:.3f}", level] for value, level in zip(rng.normal(size=60), rng.choice([*"ab"], 60), strict=True)]
    for i in range(0, 60, 7):
        cells[i][i % 2] = mark
    path.write_text("\n".join(["size,kind", *(",".join(row) for row in cells)]) + "\n")
    by_us, by_pandas = (TableEncoder().fit(rows) for rows in (read_table(path), pd.read_csv(path)))
    assert [(column.kind, column.has_gaps) for column in by_us.encoding_.columns] == [
        ("number", True),
        ("category", True),
    ]
    for rows in (read_table(path), pd.read_csv(path)):
        np.testing.assert_array_equal(by_us.transform(rows), by_pandas.transform(rows))
