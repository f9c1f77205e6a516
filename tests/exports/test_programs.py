"""Models as C, JavaScript and SQL: the labels, scores and probabilities of Python, whatever the names."""

import json
import re
import sqlite3
import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import polyplane
from polyplane import Model, PegasosSVC, PlaneSet, TableClassifier
from polyplane.exports import to_c, to_javascript, to_json, to_sql
from polyplane.features import Features
from tests.models import KINDS, fitted
from tests.programs import (
    FLAGS,
    needed,
    run_c,
    run_chromium,
    run_duckdb,
    run_node,
    run_postgresql,
    run_sqlite,
)

RUNS = {
    "c float64": lambda model, X, folder: run_c(model, X, folder, "float64"),
    "c float32": lambda model, X, folder: run_c(model, X, folder, "float32"),
    "node": run_node,
    "sqlite": lambda model, X, folder: run_sqlite(model, X),
    "duckdb": lambda model, X, folder: run_duckdb(model, X),
    "postgresql": lambda model, X, folder: run_postgresql(model, X),
}
HOSTILE = [
    'a"b',
    "it's",
    "back\\slash\\",
    "two\nlines\r",
    "*/ int x; /*",
    "// -- #",
    "</script><script>alert(1)</script>",
    "<!--",
    "??/ ??=",
    "${x} `y`",
    "%s %n {0}",
    "select",
    "double",
    "struct",
    "__proto__",
    "constructor",
    "REAL PREFIX_ NAME_",
    "ünïcödé ✓ 漢字 \U0001f600",
    "\u2028\u2029\u202e",
    "\x01\x7f\x1b[2J",
    "c0",
    "model_cells",
    "r",
    "0123",
    "; DROP TABLE rows; --",
]


def assert_same(outcome, model, X, tolerance=1e-6, sure=1.0):
    """The same scores and labels; a share of at least `sure` of the rows has no tie for the best score."""
    fitted_model = Model.of(model)
    scores = np.asarray(fitted_model.class_scores(fitted_model.encode(X)), dtype=float)
    size = np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1.0)
    assert np.abs((outcome.scores - scores) / size).max() < tolerance
    runner_up, best = np.sort(scores / size, axis=1)[:, -2:].T
    is_sure = best - runner_up > 2 * tolerance
    assert is_sure.mean() >= sure
    assert np.array(outcome.labels, dtype=object)[is_sure].tolist() == model.predict(X)[is_sure].tolist()
    if fitted_model.has_probabilities:
        np.testing.assert_allclose(outcome.probabilities, fitted_model.predict_proba(X), atol=tolerance)
    else:
        assert outcome.probabilities is None


def everything(n_rows, seed=0):
    """A table with columns of all kinds, and gaps in all of them."""
    rng = np.random.default_rng(seed)
    days = rng.integers(-9000, 20000, n_rows)
    minutes = rng.integers(0, 24 * 60, n_rows)
    dates = np.datetime64("1970-01-01T00:00") + days.astype("timedelta64[D]") + minutes.astype("timedelta64[m]")
    frame = pd.DataFrame(
        {
            "price": np.exp(rng.normal(size=n_rows)) * 100,
            "count": rng.integers(0, 6, n_rows),
            "two": rng.choice([3.0, 7.0], n_rows),
            "colour": rng.choice(["red", "it's", 'a "b"', "ünï\n", "back\\slash", "4"], n_rows),
            "plain": rng.choice(["x", "y", "z"], n_rows),
            "new": rng.random(n_rows) < 0.4,
            "sold": [str(date).replace("T", " ") for date in dates],
            "day": [str(date)[:10] for date in dates],
        }
    )
    y = np.array(["no", "may'be", 'y"es'])[
        (frame["price"] > 100).astype(int) + (frame["colour"] == "red") * (days % 7 < 3).astype(int)
    ]
    frame = frame.astype({"new": object, "count": float})
    for name in frame:
        if name != "plain":
            frame.loc[rng.random(n_rows) < 0.05, name] = None
    return frame, y


def unseen(n_rows):
    """Rows with unknown levels, blanks at the ends of texts, gaps where there were none, and extreme numbers."""
    frame, _ = everything(n_rows, seed=1)
    rng = np.random.default_rng(2)
    surprises = {
        "price": [1e69, -1e69, 0.0],
        "two": [5.0, -1e30, 1e13],
        "colour": ["unknown", "  red\t", "\u00a0it's\u3000", " ", "?", "NA"],
        "plain": ["", None, "Y", "x ", "\u2003z\u0085"],
        "sold": ["2024-02-29T23:59:59.999999Z", "0001-01-01", "2023-12-31 23:59:59,5 +01:00", "1969-12-31 12:00+0530"],
        "day": ["?", "9999-12-31", "2000-02-29Z"],
    }
    for name, values in surprises.items():
        rows = rng.random(n_rows) < 0.2
        kind = float if name in ("price", "two") else object
        frame.loc[rows, name] = rng.choice(np.array(values, dtype=kind), rows.sum())
    return frame


@pytest.fixture(scope="module")
def mixed():
    """A committee on several preparations: of the first seed that selects such a one."""
    frame, y = everything(400)
    frame["plain"] = frame["plain"].astype("category")
    models = (TableClassifier(5, n_planes=2, max_iter=3, random_state=seed).fit(frame, y) for seed in range(20))
    return next(model for model in models if len({name.partition(",")[0] for name in model.preparation_}) > 1)


@pytest.mark.parametrize("run", RUNS)
class TestAgreement:
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_of_model(self, kind, run, tmp_path):
        model, X = fitted(kind)
        if not hasattr(X, "columns"):
            X = X[:300].astype(np.float32).astype(np.float64)
        is_single = run == "c float32" or kind.startswith("table")
        assert_same(RUNS[run](model, X[:300], tmp_path), model, X[:300], 3e-6 if is_single else 1e-11, sure=0.99)

    def test_gaps_unknown_levels_and_extremes(self, mixed, run, tmp_path):
        frame = unseen(600)
        assert_same(
            RUNS[run](mixed, frame, tmp_path), mixed, frame, 3e-6, sure=0.8
        )  # where 1e69 meets 0.5, the rest is lost

    def test_adult(self, local_adult, run, tmp_path):
        model, frame = local_adult
        assert_same(RUNS[run](model, frame, tmp_path), model, frame, 2e-6, sure=0.99)


@pytest.fixture(scope="module")
def local_adult():
    import os
    from pathlib import Path

    folder = Path(os.environ.get("POLYPLANE_DATA", "/nonexistent"))
    if not (folder / "adult.test.csv.xz").exists():
        pytest.skip("adult.test.csv.xz is not in the folder that POLYPLANE_DATA names")
    rows = pd.read_csv(folder / "adult.train.csv.xz", nrows=2000)
    model = TableClassifier(3, preparation="bins", n_planes=2, max_iter=5, random_state=0)
    model.fit(rows.iloc[:, :-1], rows.iloc[:, -1])
    return model, pd.read_csv(folder / "adult.test.csv.xz", nrows=10_000).iloc[:, :-1]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("pooling", ["max", "logsumexp"])
def test_any_features_of_a_matrix_and_members_with_weights(pooling, run, tmp_path):
    """What no estimator makes, but a `Model` may be: several features of one number, and members that count more."""
    rng = np.random.default_rng(0)
    members = [PlaneSet(rng.normal(size=(6, 5)), rng.normal(size=6), [0, 1, 3, 6], pooling=pooling) for _ in range(3)]
    own = fitted("three classes")[0].model_
    features = Features.of(
        [2, 0, 0, 2, 3],
        ["value", "smooth", "square", "smooth square", "value"],
        centre=[0.5, 0.1, -1.0, 0.0, 0.25],
        factor=[2.0, 1.0, 0.5, 3.0, 1.0],
        low=[-0.5, -np.inf, -np.inf, -np.inf, -np.inf],
        high=[1.0, np.inf, 2.0, np.inf, np.inf],
        n_inputs=4,
    )
    model = Model(own.inputs, features, PlaneSet.of_members(members, [5, 1, 2]), own.classes, temperature=1.5)
    X = rng.normal(size=(100, 4)).astype(np.float32).astype(np.float64)
    assert_same(RUNS[run](model, X, tmp_path), model, X, 1e-6 if run == "c float32" else 1e-12)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["imputer alone", "imputer before a scaler", "imputer after a scaler"])
def test_infinite_numbers_are_not_missing(kind, run, tmp_path):
    model, X = fitted(kind)
    X = np.array([X[0], X[1], X[2]], dtype=np.float32).astype(float)
    X[1, 1], X[2, 2] = np.inf, -np.inf
    if run == "node":  # rows reach it as JSON, which has no infinity
        X = X.astype(object)
        X[1, 1] = X[2, 2] = "1e999"
        assert ["error" in row for row in run_node(model, X, tmp_path)] == [False, True, True]
    else:
        assert RUNS[run](model, X, tmp_path).labels == [model.predict(X[:1])[0], None, None]


LABELS = [[-3, 0, 7], [0.0, 1.0, -2.0], [False, True], [-(2**63), 2**62, 5], ["", "b", "ccc"]]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_labels_of_all_kinds(labels, tmp_path):
    X, codes = load_iris(return_X_y=True)
    y = np.array(labels)[codes % len(labels)]
    model = PegasosSVC(random_state=0, max_iter=2).fit(X, y)
    for outcome in (run_c(model, X, tmp_path), run_sqlite(model, X), run_duckdb(model, X)):
        assert outcome.labels == model.predict(X).tolist()
    if 2**62 not in labels:
        assert run_node(model, X, tmp_path).labels == model.predict(X).tolist()
    else:
        with pytest.raises(ValueError, match=r"beyond 2\^53"):
            to_javascript(model)


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_labels_of_all_kinds_in_postgresql(labels):
    X, codes = load_iris(return_X_y=True)
    model = PegasosSVC(random_state=0, max_iter=2).fit(X, np.array(labels)[codes % len(labels)])
    assert run_postgresql(model, X).labels == model.predict(X).tolist()


names = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12),
)


def hostile_model(columns, levels, classes):
    """A model whose columns, levels and classes have these names, and rows for it."""
    rng = np.random.default_rng(0)
    n_rows = 60
    frame = pd.DataFrame({name: rng.normal(size=n_rows) for name in columns[:-1]})
    texts = np.array(levels, dtype=object)[np.arange(n_rows) % len(levels)]
    frame[columns[-1]] = pd.Series(texts, dtype=object)
    y = np.array(classes, dtype=object)[np.arange(n_rows) % len(classes)]
    model = TableClassifier(
        1, preparation="standard", kinds={columns[-1]: "category"}, min_rows=1, gaps=[], n_planes=1, max_iter=1
    )
    return model.fit(frame, y), frame


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(names, min_size=2, max_size=5, unique_by=str.casefold),
    st.lists(names, min_size=2, max_size=4, unique_by=str.strip),
    st.lists(names, min_size=2, max_size=4, unique=True),
)
def test_any_name_is_quoted(tmp_path_factory, columns, levels, classes):
    folder = tmp_path_factory.mktemp("names")
    model, frame = hostile_model(columns, levels, classes)
    for name in ("c float32", "node", "sqlite", "duckdb", "postgresql"):
        try:
            outcome = RUNS[name](model, frame, folder)
        except pytest.skip.Exception:
            continue
        assert_same(outcome, model, frame)


@pytest.mark.parametrize("run", [run_sqlite, run_duckdb])
@pytest.mark.parametrize("quoted", ["it's", 'a"b'])
def test_quotes_in_comments_begin_no_string(quoted, run):
    model, frame = hostile_model([quoted, "no-break\u00a0space"], ["0\u00a00", "0 0"], [quoted, "c"])
    assert_same(run(model, frame), model, frame)


def test_each_hostile_name_is_quoted(tmp_path):
    model, frame = hostile_model(HOSTILE, HOSTILE, HOSTILE)
    for run in RUNS.values():
        assert_same(run(model, frame, tmp_path), model, frame)


@pytest.mark.parametrize(("text", "languages"), [("a\0b", "C SQL"), ("a\ud800b", "C SQL JavaScript")])
def test_what_cannot_be_written_is_refused(text, languages):
    model, _ = hostile_model(["x", "y"], ["a", text], ["c", "d"])
    classes = PegasosSVC(max_iter=1).fit([[0.0], [1.0]], np.array(["c", text], dtype=object))
    for language, write in (("C", to_c), ("SQL", to_sql), ("JavaScript", to_javascript)):
        for each in (model, classes):
            if language in languages.split():
                with pytest.raises(ValueError, match=f"{language}.*: rename it"):
                    write(each)
            else:
                write(each)


class TestC:
    def test_bad_values_give_minus_one(self, mixed, tmp_path):
        frame = unseen(8).iloc[:3].reset_index(drop=True)
        frame["price"], frame["sold"] = [np.inf, 1.0, 1.0], ["2024-01-01", "2024-02-30", "2024-02-28"]
        assert [label is None for label in run_c(mixed, frame, tmp_path).labels] == [True, True, False]
        model = PegasosSVC(max_iter=1).fit([[0.0], [1.0]], [0, 1])
        assert run_c(model, np.array([[np.nan], [0.5]]), tmp_path).labels[0] is None

    @pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
    def test_memory_is_that_of_the_compiled_tables(self, mixed, dtype, tmp_path):
        gcc, nm = needed("gcc"), needed("nm")
        text = to_c(mixed, dtype)
        (tmp_path / "model.c").write_text(text, encoding="utf-8")
        subprocess.run([gcc, *FLAGS, "-O0", "-c", "model.c"], cwd=tmp_path, check=True)
        symbols = subprocess.run([nm, "-S", "model.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        tables = [line.split() for line in symbols.splitlines() if re.search(r" [rR] model_", line)]
        numbers = sum(int(size, 16) for _, size, _, name in tables if not re.search("levels|gaps|labels", name))
        stated = re.search(r"Memory: (\d+) bytes of constant tables \((\w+)\)", text)
        assert stated.groups() == (str(numbers), dtype)
        assert not re.search("malloc|static (?!const|int|void|size_t)", text)

    @pytest.mark.parametrize("offset", [0.0, 2000.0])
    def test_float32_loses_no_more_than_its_weights_do(self, offset, tmp_path):
        rng = np.random.default_rng(0)
        X = (rng.normal(size=(400, 120)) + offset).astype(np.float32).astype(np.float64)
        model = PegasosSVC(max_iter=1).fit(X - offset, rng.integers(0, 3, 400))
        coef, intercept = rng.normal(size=(3, 120)), rng.normal(size=3)
        model.planes_ = polyplane.PlaneSet(coef, intercept, np.arange(4))
        scores = X @ coef.T + intercept
        # A weight, and then the score, are rounded once, to 24 bits.
        limit = (np.abs(X) @ np.abs(coef).T + np.abs(scores)) * 2.0**-24
        found = run_c(model, X, tmp_path, "float32")
        assert (np.abs(found.scores - scores) <= limit).all()
        single = run_c(model, X, tmp_path, "float32", flags=("-O1", "-DMODEL_SUM=float"))
        assert np.abs(single.scores - scores).max() > 2 * np.abs(found.scores - scores).max()
        assert (np.abs(single.scores - scores) <= 120 * limit).all()

    def test_one_byte_costs_little(self, tmp_path):
        X, y = load_digits(return_X_y=True)
        model = polyplane.MultiHyperplaneClassifier(4, max_iter=10, random_state=0).fit(X[:1000], y[:1000])
        outcome = run_c(model, X[1000:], tmp_path, "int8")
        agree = np.mean(np.array(outcome.labels) == model.predict(X[1000:]))
        lost = model.score(X[1000:], y[1000:]) - np.mean(np.array(outcome.labels) == y[1000:])
        assert agree > 0.99
        assert lost < 0.005

    def test_one_byte_bears_features_of_any_size(self, tmp_path):
        X, y = load_digits(return_X_y=True)
        X = X * np.logspace(-6, 6, X.shape[1])
        model = polyplane.CuttingPlaneSVC().fit(X / np.logspace(-6, 6, X.shape[1]), y)
        planes = model.planes_
        model.planes_ = polyplane.PlaneSet(
            planes.coef / np.logspace(-6, 6, X.shape[1]), planes.intercept, planes.indptr
        )
        outcome = run_c(model, X, tmp_path, "int8")
        assert np.mean(np.array(outcome.labels) == model.predict(X)) > 0.99

    def test_other_files_include_it_as_a_header(self, mixed, tmp_path):
        gcc = needed("gcc")
        (tmp_path / "model.c").write_text(to_c(mixed), encoding="utf-8")
        (tmp_path / "main.c").write_text(
            '#define MODEL_DECLARATIONS\n#include "model.c"\n#include "model.c"\n#include <stdio.h>\n'
            "int main(void)\n{\n    struct model_row row = {0};\n"
            "    return puts(model_labels[model_predict(&row, NULL, NULL)]) < 0;\n}\n"
        )
        subprocess.run([gcc, *FLAGS, "main.c", "model.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
        said = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert said.strip() in mixed.classes_

    def test_words_of_cpp_are_no_fields(self, tmp_path):
        """Other files include the declarations in C++, too."""
        words = "namespace typename constexpr final friend try catch explicit mutable nullptr decltype wchar_t export"
        words += " const_cast static_assert thread_local alignas char16_t and_eq virtual throw using protected"
        model, _ = hostile_model(words.split(), ["x", "y"], ["c", "d"])
        (tmp_path / "model.c").write_text(to_c(model), encoding="utf-8")
        (tmp_path / "main.cpp").write_text('#define MODEL_DECLARATIONS\n#include "model.c"\n')
        subprocess.run([needed("g++"), "-std=c++20", "-fsyntax-only", "main.cpp"], cwd=tmp_path, check=True)

    def test_no_two_fields_have_one_name(self):
        model, _ = hostile_model(["a b", "a-b", "A B", "int", "3"], ["x", "y"], ["c", "d"])
        fields = re.findall(r"^    (?:double |const char \*)(\w+); +/\*", to_c(model), flags=re.MULTILINE)
        assert fields == ["a_b", "a_b_2", "a_b_3", "column_int", "column_3"]


class TestJavaScript:
    def test_errors_name_the_column(self, mixed, tmp_path):
        frame = unseen(8)[["price", "new", "sold"]].iloc[:3].reset_index(drop=True)
        assert run_node(mixed, frame, tmp_path)[0] == {"error": 'The row has no column "count".'}
        for name, value in (("price", "dear"), ("new", "perhaps"), ("sold", "2024-02-30"), ("price", 1e71)):
            whole = unseen(8).iloc[:1].astype(object)
            whole[name] = value
            assert run_node(mixed, whole, tmp_path)[0]["error"].startswith(f'Column "{name}" holds {value}, which is')

    def test_numbers_and_booleans_may_be_texts(self, mixed, tmp_path):
        frame = everything(50, seed=3)[0].astype(object)
        texts = frame.copy()
        texts["price"] = [None if v is None or v != v else f" {v!r} " for v in frame["price"]]
        texts["new"] = [None if v is None or v != v else "Yes" if v else "off" for v in frame["new"]]
        assert run_node(mixed, texts, tmp_path).labels == mixed.predict(frame).tolist()

    def test_as_a_script_of_a_page(self, browser, tmp_path):
        model, frame = hostile_model(HOSTILE, HOSTILE, HOSTILE)
        text = to_javascript(model, name="fruit")
        assert "</script" not in text
        assert not re.search(r"^export", text, flags=re.MULTILINE)
        page = tmp_path / "page.html"
        page.write_text(f"<!doctype html><meta charset=utf-8><script>{text}</script>", encoding="utf-8")
        opened = browser.new_page()
        opened.goto(page.as_uri())
        found = opened.evaluate("(rows) => rows.map((row) => fruit.predict(row).label)", frame.to_numpy().tolist())
        opened.close()
        assert found == model.predict(frame).tolist()

    def test_learners_in_a_browser(self, browser):
        model, X = fitted("three classes")
        assert_same(run_chromium(browser, model, X), model, X, 1e-11)

    def test_a_table_in_a_browser(self, browser, mixed):
        frame = unseen(200)
        assert_same(run_chromium(browser, mixed, frame), mixed, frame, 3e-6, sure=0.8)


class TestSql:
    def test_the_columns_of_the_result(self):
        model = polyplane.MultiHyperplaneClassifier(1, max_iter=1).fit([[0.0], [1.0]], ["no", "yes"])
        with sqlite3.connect(":memory:") as database:
            database.execute('CREATE TABLE "my table" AS SELECT 7 AS id, 1.5 AS x0, 8 AS "or""der"')
            found = database.execute(to_sql(model, dialect="sqlite", table="my table", key=["id", 'or"der']))
            assert [column[0] for column in found.description] == [
                *("id", 'or"der', "label", "score_no", "score_yes", "probability_no", "probability_yes")
            ]
            assert found.fetchone()[:2] == (7, 8)

    def test_labels_that_differ_in_case_have_numbers(self):
        model = PegasosSVC(max_iter=1).fit([[0.0], [1.0]], ["a", "A"])
        assert '"score_0"' in to_sql(model)

    def test_a_column_that_is_not_there_is_an_error(self):
        model = PegasosSVC(max_iter=1).fit(pd.DataFrame({"width": [0.0, 1.0]}), [0, 1])
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE TABLE rows AS SELECT 1.5 AS x0")
            with pytest.raises(sqlite3.OperationalError, match="width"):
                database.execute(to_sql(model, dialect="sqlite"))

    def test_numbers_in_texts(self):
        frame, y = everything(200)
        model = TableClassifier(1, preparation="standard", n_planes=1, max_iter=2).fit(frame, y)
        texts = frame.astype(object)
        for name in ("price", "count"):
            texts[name] = ["?" if v is None or v != v else f" {v!r}" for v in frame[name]]
        for outcome in (run_sqlite(model, texts), run_duckdb(model, texts.astype({"new": str}))):
            assert outcome.labels == model.predict(frame).tolist()

    @pytest.mark.parametrize(("n_features", "n_planes"), [(1100, 2), (3, 150)])
    def test_long_sums_and_many_planes(self, n_features, n_planes):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, n_features)), np.arange(40) % 2
        model = polyplane.AdaptiveMultiHyperplaneClassifier(max_iter=1, random_state=0).fit(X, y)
        planes = [(rng.normal(size=(n_planes, n_features)), rng.normal(size=n_planes)) for _ in range(2)]
        model.planes_ = polyplane.PlaneSet.of_classes(planes)
        assert run_sqlite(model, X).labels == model.predict(X).tolist()

    def test_names_that_a_database_cannot_tell_apart(self):
        model, _ = hostile_model(["Width", "width"], ["a", "b"], ["c", "d"])
        with pytest.raises(ValueError, match="SQLite does not distinguish the columns 'Width' and 'width'"):
            to_sql(model, dialect="sqlite")
        assert '"Width"' in to_sql(model, dialect="postgresql")
        with pytest.raises(ValueError, match="key has a column 'label'"):
            to_sql(model, dialect="postgresql", key="label")

    def test_text_is_no_missing_number(self):
        model, X = fitted("imputer alone")
        frame = pd.DataFrame(X[:3], columns=[f"x{j}" for j in range(4)]).astype(object)
        frame.loc[1, "x2"], frame.loc[2, "x2"] = "large", None
        expected = model.predict(np.array([X[0], [*X[2][:2], np.nan, X[2][3]]]))
        for outcome in (run_sqlite(model, frame), run_duckdb(model, frame.astype({"x2": "string"}))):
            assert outcome.labels == [expected[0], None, expected[1]]


class TestExport:
    def test_by_suffix(self, tmp_path):
        X, y = load_iris(return_X_y=True)
        model = PegasosSVC(random_state=0, max_iter=2).fit(X, y)
        for suffix, start in (("c", "/*"), ("js", "//"), ("mjs", "//"), ("sql", "--"), ("json", "{")):
            polyplane.export(model, tmp_path / f"model.{suffix}")
            assert (tmp_path / f"model.{suffix}").read_text(encoding="utf-8").startswith(start)
        polyplane.export(model, tmp_path / "iris-2.txt", to="c", dtype="int8")
        assert "int iris_2_predict(const float *x" in (tmp_path / "iris-2.txt").read_text()
        polyplane.export(model, tmp_path / "3.c", name="blue")
        assert "int blue_predict(const double *x" in (tmp_path / "3.c").read_text()

    def test_onnx_by_suffix(self, tmp_path):
        onnx = pytest.importorskip("onnx")
        model = PegasosSVC(max_iter=1).fit([[0.0], [1.0]], [0, 1])
        polyplane.export(model, tmp_path / "model.onnx", dtype="float32", opset=15)
        assert onnx.load(tmp_path / "model.onnx").graph.name == "PegasosSVC"

    def test_of_the_best_of_a_search(self):
        X, y = load_iris(return_X_y=True)
        search = GridSearchCV(PegasosSVC(random_state=0, max_iter=2), {"alpha": [1e-3]}, cv=2).fit(X, y)
        assert to_c(search) == to_c(search.best_estimator_)

    @pytest.mark.parametrize(
        ("path", "options", "message"),
        [
            ("model.txt", {}, "The format is unknown"),
            ("model", {"to": "rust"}, "to='rust' must be one of onnx, json, c, js, sql"),
            ("model.js", {"name": "a"}, "name is an option of c, not of js"),
            ("model.sql", {"dialect": "oracle"}, "dialect='oracle' must be one of sqlite, duckdb, postgresql"),
            ("model.sql", {"dtype": "int8"}, "dtype='int8' must be one of float32, float64"),
            ("model.c", {"name": "1a"}, "name='1a' must be a C identifier"),
        ],
    )
    def test_mistakes_leave_no_file(self, path, options, message, tmp_path):
        model = PegasosSVC(max_iter=1).fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(ValueError, match=message):
            polyplane.export(model, tmp_path / path, **options)
        assert not list(tmp_path.iterdir())

    def test_other_models(self, mixed, tmp_path):
        polyplane.export(mixed, tmp_path / "model.json")
        assert json.loads((tmp_path / "model.json").read_text()) == json.loads(to_json(mixed))
        with pytest.raises(TypeError, match="A StandardScaler is not a classifier of Polyplane"):
            to_c(StandardScaler())
