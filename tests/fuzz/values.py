"""Odd values of tables: a cell means the same in a frame, in CSV and in Parquet, and in the exported programs."""

import csv
import math
import re
from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pandas as pd

from polyplane import Model, TableClassifier, TableEncoder
from polyplane.inputs.formats import Ambiguous, date_reader, find_number_format
from polyplane.inputs.frames import text_of
from polyplane.readers import read_table
from tests.programs import run_c, run_duckdb, run_node, run_sqlite

read_iso = date_reader("")
#: Texts of which others are made, by changing a character.
TEXTS = [
    *("1", "01", "1.0", "-0", "1e-07", "1e16", "0.1", "9007199254740993", "true", "FALSE", "t", "a b", "inf", "ß"),
    *("日本", "a,b", 'q"r', "x\ny", " x ", "\u00a0y", "2024-05-31", "2024-05-31 17:30:00", "\uff11", "it's", "\\"),
]  # fmt: skip
DATES = ["2024-05-31", "2024-02-29 17:30", "1999-12-31T23:59:59.999999Z", "0001-01-01 00:00:00,5 +01:00"]
CHANGES = [*"0123456789-:.,TZ+ aeEtT_", "\t", "\u00a0", "\uff11", "'", '"', "é", "\u2003"]


def _changed(rng, text, n_most=2):
    """A text with some other characters."""
    letters = list(text)
    for _ in range(rng.integers(n_most + 1)):
        at = int(rng.integers(len(letters) + 1))
        letters[at : at + int(rng.integers(2))] = [CHANGES[rng.integers(len(CHANGES))]][: int(rng.integers(2))]
    return "".join(letters)


def _text(rng):
    return _changed(rng, TEXTS[rng.integers(len(TEXTS))])


def _number(rng):
    match rng.integers(4):
        case 0:
            return int(rng.integers(-5, 5))
        case 1:
            return int(rng.integers(-(2**62), 2**62))
        case 2:
            return float(rng.integers(-50, 50)) / 10
        case _:
            return float(rng.normal() * 10.0 ** rng.integers(-20, 20))


def _date(rng):
    unit = [timedelta(days=1), timedelta(seconds=1), timedelta(microseconds=1)][rng.integers(3)]
    return datetime(2000, 1, 1) + unit * int(rng.integers(-(2**18), 2**18))


def _boolean(rng):
    return bool(rng.random() < 0.5)


#: How the values of a kind of column are made; a category may have values of any type.
MAKERS = {
    "number": [lambda rng: float(_number(rng)), lambda rng: int(rng.integers(-9, 9))],
    "boolean": [_boolean],
    "date": [_date],
    "category": [_text, _number, _date, _boolean],
}


def _column(rng, kind):
    """The values of a column, some of which are missing or repeated."""
    makers = MAKERS[kind]
    own = [makers[i] for i in rng.permutation(len(makers))[: rng.integers(1, len(makers) + 1)]]
    pool = [own[rng.integers(len(own))](rng) for _ in range(rng.integers(2, 9))]
    return [None if rng.random() < 0.1 else pool[rng.integers(len(pool))] for _ in range(60)]


def _are_numbers_written_otherwise(texts):
    try:
        return any(text and text_of(float(text)) != text and not text.lstrip("-").isdigit() for text in texts)
    except ValueError:
        return False


def forms(rng, folder):
    """A table as a frame of Python objects, of typed columns, in CSV and in Parquet: the same encoded rows."""
    kinds = {f"c{j}": str(rng.choice(list(MAKERS))) for j in range(rng.integers(1, 5))}
    columns = {name: _column(rng, kind) for name, kind in kinds.items()}
    texts = {name: [text_of(value) for value in values] for name, values in columns.items()}
    objects = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    with (folder / "x.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(["" if text is None else text for text in row] for row in zip(*texts.values(), strict=True))
    wide = [name for name, values in columns.items() if any(type(v) is int and abs(v) > 2**53 for v in values)]
    typed = objects.infer_objects().astype(dict.fromkeys(wide, object))  # which pandas may round
    typed[wide] = objects[wide]
    pd.DataFrame({name: typed[name] if typed[name].dtype != object else texts[name] for name in columns}).to_parquet(
        folder / "x.parquet", index=False
    )
    # A category of which all texts are numbers is read as numbers, so 1e162 becomes 1e+162 there.
    others = any(kind == "category" and _are_numbers_written_otherwise(texts[name]) for name, kind in kinds.items())
    files = [read_table(folder / f"x.{suffix}", numbers=not others) for suffix in ("csv", "parquet")]
    tables = [objects, typed, *files]
    found = []
    for table in tables:
        encoder = TableEncoder(kinds=kinds, min_rows=2)
        try:
            found.append((encoder.fit_transform(table), encoder.get_feature_names_out().tolist()))
        except ValueError as error:
            found.append(("dropped" if "dropped" in str(error) else str(error), []))
    for (rows, names), table in zip(found[1:], ["typed", "CSV", "Parquet"], strict=True):
        assert names == found[0][1], (table, set(names) ^ set(found[0][1]))
        assert np.array_equal(rows, found[0][0]), table


def _written(value, digits, style):
    """A number as text: separators, currency or unit, and how it is negative."""
    decimal, thousands, before, after, negative = style
    text = f"{abs(value):{',' if thousands else ''}.{digits}f}".translate(str.maketrans({",": thousands, ".": decimal}))
    text = f"{before}{text}{after}"
    if value >= 0:
        return text
    return {"-": f"-{text}", "(": f"({text})", "end": f"{text}-", "\u2212": f"\u2212{text}"}[negative]


def _number_column(rng):
    """Numbers in one style, with the numbers meant."""
    decimal, thousands = [(".", ","), (",", "."), (",", " "), (".", "'"), (".", ""), (",", "")][rng.integers(6)]
    units = [("", ""), ("$", ""), ("€ ", ""), ("", " €"), ("", "%"), ("", " kg"), ("CHF ", ""), ("", " km/h")]
    before, after = units[rng.integers(len(units))]
    # Points alone are decimal points, even if they are followed by three digits.
    digits = int(rng.choice([1, 2, 4]) if thousands == "." else rng.integers(5))
    style = (decimal, thousands, before, after, str(rng.choice(["-", "(", "end", "\u2212"])))
    numbers = (rng.normal(size=60) * 10.0 ** rng.integers(0, 7)).round(digits)
    return [_written(value, digits, style) for value in numbers], numbers.tolist()


DATE_STYLES = ["%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%b %d, %Y", "%d-%b-%Y", "%m/%d/%y", "%d %B %Y"]


def _date_column(rng):
    style, n_days = DATE_STYLES[rng.integers(len(DATE_STYLES))], int(rng.integers(5, 4000))
    dates = [datetime(2005, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, n_days, 60)]
    return [date.strftime(style) for date in dates], [(date - datetime(1970, 1, 1)).days for date in dates]


def messy(rng, folder):
    """Columns as people write them, some damaged: each value is read as it was meant, or its column is not a number."""
    columns, meant = {}, {}
    for j in range(rng.integers(1, 7)):
        texts, values = (_number_column if rng.random() < 0.7 else _date_column)(rng)
        for i in rng.permutation(60)[: rng.integers(4) * (rng.random() < 0.4)].tolist():
            texts[i], values[i] = (_changed(rng, texts[i], 3), None) if rng.random() < 0.7 else ("n/a", math.nan)
        columns[f"c{j}"], meant[f"c{j}"] = texts, values
    columns["x"] = [f"{value:.3f}" for value in rng.normal(size=60)]
    with (folder / "x.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    try:
        encoder, other = TableEncoder().fit(pd.DataFrame(columns)), TableEncoder().fit(read_table(folder / "x.csv"))
    except ValueError as error:
        assert "numbers must be finite" in str(error)  # noqa: PT017
        return
    assert encoder.to_dict() == other.to_dict()
    rows = encoder.transform(pd.DataFrame(columns))
    assert np.array_equal(rows, other.transform(read_table(folder / "x.csv")))
    for column, own in zip(encoder.encoding_.columns, encoder.encoding_.places, strict=True):
        known = [
            text
            for text, value in zip(columns[column.name], meant.get(column.name, []), strict=False)
            if value == value and value is not None
        ]
        if column.kind in ("number", "date") and known and not isinstance(find_number_format(known), Ambiguous):
            for text, value, found in zip(columns[column.name], meant[column.name], rows[:, own.start], strict=True):
                if value is None:  # a damaged number still has all of its digits
                    is_neutral = column.has_gaps and found == column.neutral
                    if column.kind == "number" and not is_neutral and not re.search(r"\d[eETkMB]", text):
                        assert _digits_of(np.format_float_positional(found)) == _digits_of(text), (text, found)
                elif value == value:
                    assert found == value, (column, text, found, value)


def _digits_of(text):
    """The digits without zeros at both ends."""
    return "".join(re.findall("[0-9]", text)).strip("0")


@cache
def _model(kind):
    """A model of one category, all of whose levels count, or of one date."""
    rng = np.random.default_rng(0)
    if kind == "category":
        values = np.repeat([text for text in TEXTS if text_of(text) == text], 20)
    else:
        values = [str(_date(rng)) for _ in range(400)]
        values[0] = None
    X, y = pd.DataFrame({"c": values, "x": rng.normal(size=len(values))}), rng.integers(0, 2, len(values))
    return TableClassifier(1, preparation="standard", n_planes=1, max_iter=3, random_state=0, kinds={"c": kind}).fit(
        X, y
    )


def _scores(model, X):
    fitted = Model.of(model)
    return fitted.class_scores(fitted.encode(X))


def _table(values):
    return pd.DataFrame({"c": pd.Series(values, dtype=object), "x": np.zeros(len(values))})


def _equal(outcome, expected):
    np.testing.assert_allclose(outcome.scores, expected, rtol=1e-6, atol=3e-6)


def programs(rng, folder):
    """Odd texts, numbers and dates in C, JavaScript and SQL: the levels and dates of Python, or what is refused is."""
    model = _model("category")
    texts = _table([*(_text(rng) for _ in range(40)), None])
    numbers = pd.DataFrame({"c": [float(_number(rng)) for _ in range(40)], "x": np.zeros(40)})
    for run in (run_c, run_node, lambda *a: run_sqlite(*a[:2]), lambda *a: run_duckdb(*a[:2])):
        _equal(run(model, texts, folder), _scores(model, texts))
        if run is not run_c:
            _equal(run(model, numbers, folder), _scores(model, numbers))
    model = _model("date")
    dates = [_changed(rng, DATES[rng.integers(len(DATES))]).strip() for _ in range(60)]
    good = [
        text for text in dates if text and read_iso(text) is not None and not math.isnan(read_iso(text).astype(float))
    ]
    others = [text for text in dates if text and text not in good and text not in Model.of(model).inputs.gaps]
    is_valid = _table([*good, "2024-05-31"])
    for run in (run_c, run_node, lambda *a: run_sqlite(*a[:2]), lambda *a: run_duckdb(*a[:2])):
        _equal(run(model, is_valid, folder), _scores(model, is_valid))
    if others:
        table = _table(others)
        missing = np.repeat(_scores(model, _table([None])), len(others), axis=0)
        assert run_c(model, table, folder).labels == [None] * len(others), others
        assert all("error" in result for result in run_node(model, table, folder)), others
        for run in (run_sqlite, run_duckdb):
            np.testing.assert_allclose(run(model, table).scores, missing, atol=3e-6, err_msg=str(others))
