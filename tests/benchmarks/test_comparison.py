"""The page of comparisons says what was measured."""

import re

import pandas as pd
import pytest
from benchmarks.data import package_tables
from benchmarks.data.tables import Columns
from benchmarks.harness import comparison

if not comparison.PAGE.exists():
    pytest.skip("the documentation is not beside the tests (an installed copy of them)", allow_module_level=True)


def test_the_page_is_made_of_the_results():
    page = comparison.PAGE.read_text(encoding="utf-8")
    assert page == comparison.markdown(), "run `python -m benchmarks.harness.comparison`"


def test_the_readme_has_the_tables_of_the_page():
    readme = comparison.README.read_text(encoding="utf-8")
    assert comparison.in_readme(readme) == readme, "run `python -m benchmarks.harness.comparison`"
    page = comparison.PAGE.read_text(encoding="utf-8")
    for mark in ("tables", "numeric"):
        _, _, rest = readme.partition(f"<!-- {mark}: begin -->")
        table = rest.partition(f"<!-- {mark}: end -->")[0].strip()
        assert table.count("\n") >= 5
        assert table in page


def test_the_picture_has_the_ranks_of_the_page():
    found = comparison.PICTURE.read_text(encoding="utf-8")
    tables = comparison.headline()
    for model, rank in comparison.ranks(tables, comparison.complete(tables)).items():
        assert re.search(rf"{re.escape(model)} +{rank:.2f}", found), model


def test_the_learning_curves_are_those_that_were_measured():
    """Each measured error is in the table, and on the line of its classifier in the picture."""
    found = comparison.curves()
    page = comparison.PAGE.read_text(encoding="utf-8").partition("## Error by the number of training rows")[2]
    assert len(found) >= 4
    for name, points in found.items():
        assert list(points) == sorted(points)
        for n_rows, row in points.items():
            line = next(line for line in page.splitlines() if line.startswith(f"| {name} | {n_rows:,} |"))
            assert all(f"{figures['error']:.2f}" in line for figures in row.values()), line
            assert f"**{min(figures['error'] for figures in row.values()):.2f}**" in line
    assert comparison.CURVES.read_bytes() == comparison.picture(comparison.curve_figure(found))


def test_a_rise_with_more_rows_is_told():
    found = {"set": {100: {"TableClassifier": {"error": 3.0}}, 1000: {"TableClassifier": {"error": 3.5}}}}
    assert "`TableClassifier()`: set (100 rows 3.00 %, 1,000 rows 3.50 %)." in comparison.rises(found)
    found["set"][1000]["TableClassifier"]["error"] = 2.5
    assert comparison.rises(found).endswith(": nowhere.")


def test_nothing_is_left_out_of_the_headline():
    tables = comparison.headline()
    assert len(tables) >= 30
    assert {"TableClassifier", "LightGBM", "HistGB", "RandomForest", "SVC", "MLP"} <= set(comparison.complete(tables))


def test_the_critical_difference_is_that_of_the_table_of_demsar():
    """Five classifiers, 30 data sets: q = 2.728 (Demsar, 2006, Table 5a)."""
    assert comparison.critical_difference(5, 30) == pytest.approx(2.728 * (5 * 6 / (6 * 30)) ** 0.5, abs=1e-3)


def test_folds_that_were_not_measured_for_ours_do_not_count():
    figures = {"a: TableClassifier": {"error": [1.0, 3.0]}, "a: SVC": {"error": [2.0, 2.0, 9.0]}}
    found = comparison.means(figures, ["a"])["a"]
    assert (found["TableClassifier"]["error"], found["SVC"]["error"]) == (2.0, 2.0)


def test_tables_are_cut_as_listed(monkeypatch):
    """Rows without a label, rare classes and columns that follow from the label are left out."""
    frame = pd.DataFrame(
        {"rownames": range(30), "late": 1, "x": range(30), "y": [*"ab" * 12, "c", "c", None, None, *"ab"]}
    )
    listed = {"max_rows": 20, "tables": {"p/t": {"label": "y", "drop": ["late"], "dates": ["x"]}}}
    monkeypatch.setattr(package_tables, "LISTED", listed)
    monkeypatch.setattr(package_tables, "package_frame", lambda name: frame)
    X, y = package_tables.package_rows("p/t")
    assert list(X) == ["x"]
    assert len(y) == len(X) == 20
    assert set(y) == {"a", "b"}
    assert package_tables.with_dates("p/t", X)["x"].dtype.kind == "M"


def test_columns_are_prepared_as_users_of_boosting_do():
    X = pd.DataFrame(
        {"n": [1.0, None, 3.0], "t": ["a", "b", "a"], "d": pd.to_datetime(["2024-01-01"] * 3), "b": [True, False, True]}
    )
    found = Columns(categories=True, max_categories=1).fit(X).transform(X)
    assert list(found["t"].cat.categories) == ["a"]
    assert found["t"].isna().tolist() == [False, True, False]
    assert found[["d", "d month", "d weekday"]].iloc[0].tolist() == [19723, 1, 0]
    assert found["n"].isna().tolist() == [False, True, False]
    assert found["b"].tolist() == [1.0, 0.0, 1.0]


def test_ranks_share_equal_errors():
    tables = {"a": {"x": {"error": 1.0}, "y": {"error": 1.0}, "z": {"error": 2.0}}}
    assert comparison.ranks(tables, ["x", "y", "z"]) == {"x": 1.5, "y": 1.5, "z": 3.0}
