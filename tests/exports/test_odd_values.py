"""Odd values of categories, booleans and dates: each program reads a cell as Python does."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from polyplane import Model, TableClassifier
from polyplane.exports.onnx import table_inputs, to_onnx
from polyplane.inputs.frames import text_of
from tests.programs import run_c, run_duckdb, run_node, run_sqlite

#: Levels, as text; some differ in digits, spaces or case only.
LEVELS = [
    "1", "01", "1.0", "+1", "-0", "0", "0.1", "0.10", "1e-07", "1e-7", "1E-07", "1.5e-10", "1e+16", "1e16",
    "2.5", "-2.5", "9007199254740992.0", "inf", "nan", "9007199254740993", "9007199254740992",
    "10000000000000000", "123456789012345678901234567890", "\uff11", "\xb2", "\xdf", "SS", "\u0130", "true",
    "false", "t", "T", "yes", "truE ish", "a b", "a\xa0b", "2024-05-31", "2024-05-31 17:30:00",
    "2024-05-31 17:30:00.250000", "2024-05-31T17:30:00", "17:30:00",
]  # fmt: skip
TEXTS = [
    *LEVELS, "True", "FALSE ", " tRUE", "\u20031\t", "2024-05-31 00:00:00", "truE", "fal\u017fe", "unknown",
]  # fmt: skip
FLOATS = [1.0, -0.0, 0.1, 1e-7, 1.5e-10, 2.5, -2.5, 1e16, 9007199254740992.0, 1e15, 0.1 + 0.2, 1e300, 5e-324, 3.0]
INTEGERS = [0, 1, 2**53, 2**53 + 1, 10**16, -1]
DATES = ["2024-05-31", "2024-05-31 17:30:00", "2024-05-31 17:30:00.250000", "1969-12-31 23:59:59.999999"]
#: Dates as text, good ones and others.
DATE_TEXTS = [
    "2024-05-31", "2024-05-31 17:30", "2024-05-31T17:30:15", "2024-02-29 23:59:59.999999", "0001-01-01",
    "0000-03-01", "2024-05-31 17:30:15,123456789", "2024-05-31Z", "2024-05-31 +01:00", "2024-05-31 17:30 Z",
    "9999-12-31 23:59:59", "2024-05-31 17:30:15.5-0330", "1900-02-28", " 2024-05-31\xa0", "1582-10-10",
    "2000-02-29 00:00:00.000001+14:00",
]  # fmt: skip
NO_DATES = [
    "2024-02-30", "1900-02-29", "now", "epoch", "infinity", "-2024-05-31", "2024-5-1",
    "2024-05-31 17:30:15.1234567890", "today", "2024-05-31 24:00", "2024-05-31 17:60", "2024-05-31 17:30:60",
    "2024-05-31 17", "2024-05-31T", "2024-05-31 17:30:", "2024-05-31 17:30:15.", "20240531", "24-05-31",
    "2024-13-01", "2024-00-10", "2024-05-31  Z", "2024-05-31 z", "yesterday", "2024-05-31 17:30+1",
    "2024-05-31 BC", "2024-151", "2460000.5", "12:30", "\uff12024-05-31", "2024-05-31 5:30 PM",
    "2024-05-31 -17:30:00", "2024/05/31", "10000-01-01", "2024-05-31\t+01:00", "2024-05-31 17:30:15 UTC",
]  # fmt: skip
RUNS = {
    "c": run_c,
    "node": run_node,
    "sqlite": lambda model, X, folder: run_sqlite(model, X),
    "duckdb": lambda model, X, folder: run_duckdb(model, X),
}


def run_onnx(model, X, folder):
    """The scores of the graph."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["scores"], table_inputs(model, X))[0]


@pytest.fixture(scope="module")
def by_level():
    """A model of one category, the scores of whose levels all differ."""
    rng = np.random.default_rng(0)
    levels = [text for text in LEVELS if text == text_of(text)]
    X = pd.DataFrame({"c": np.repeat([*levels, "rare"], 25), "x": rng.normal(size=25 * len(levels) + 25)})
    model = TableClassifier(1, preparation="standard", n_planes=1, max_iter=5, random_state=0, kinds={"c": "category"})
    model.fit(X, rng.integers(0, 2, len(X)))
    assert len(Model.of(model).inputs.columns[0].levels) >= len(levels)
    return model


def scores(model, X):
    fitted = Model.of(model)
    return np.asarray(fitted.class_scores(fitted.encode(X)), dtype=float)


def assert_equal(run, model, X, folder):
    np.testing.assert_allclose(RUNS[run](model, X, folder).scores, scores(model, X), atol=3e-6)


def table(values, name="c"):
    return pd.DataFrame({name: values, "x": np.zeros(len(values))})


class TestCategories:
    @pytest.mark.parametrize("run", RUNS)
    def test_texts(self, by_level, run, tmp_path):
        assert_equal(run, by_level, table(np.array(TEXTS, dtype=object)), tmp_path)

    @pytest.mark.parametrize("run", ["node", "sqlite", "duckdb"])
    def test_floats(self, by_level, run, tmp_path):
        assert_equal(run, by_level, table([*FLOATS, np.nan]), tmp_path)

    @pytest.mark.parametrize("run", ["sqlite", "duckdb"])
    def test_integers(self, by_level, run, tmp_path):
        assert_equal(run, by_level, table(INTEGERS), tmp_path)

    @pytest.mark.parametrize("run", ["node", "duckdb"])
    def test_booleans(self, by_level, run, tmp_path):
        assert_equal(run, by_level, table([True, False]), tmp_path)

    def test_dates(self, by_level, tmp_path):
        assert_equal("duckdb", by_level, table(pd.to_datetime(DATES, format="mixed")), tmp_path)

    def test_decimals(self, by_level):
        values = [Decimal(text) for text in ("1.0", "2.50", "1e-7", "9007199254740993", "Infinity", "NaN")]
        numbers, texts = table(np.array(values, dtype=object)), table(np.array([*values, "a"], dtype=object))
        np.testing.assert_array_equal(scores(by_level, numbers[:3]), scores(by_level, texts)[:3])

    def test_graph(self, by_level, tmp_path):
        """A graph takes canonical text, and true and false as they are written."""
        X = table(np.array(TEXTS, dtype=object))
        difference = scores(by_level, X) @ [-1, 1]
        np.testing.assert_allclose(run_onnx(by_level, X, tmp_path).ravel(), difference, atol=3e-6)


@pytest.fixture(scope="module")
def by_date():
    rng = np.random.default_rng(0)
    days = np.datetime64("2000-01-01T00:00") + rng.integers(0, 9 * 365 * 24 * 60, 200).astype("timedelta64[m]")
    frame = table([None, *(str(day).replace("T", " ") for day in days[1:])], name="d")
    model = TableClassifier(1, preparation="standard", n_planes=1, max_iter=3, random_state=0)
    return model.fit(frame, (days.astype("datetime64[M]").astype(int) % 12 > 5).astype(int))


class TestDates:
    @pytest.mark.parametrize("run", RUNS)
    def test_texts(self, by_date, run, tmp_path):
        assert_equal(run, by_date, table(np.array(DATE_TEXTS, dtype=object), "d"), tmp_path)

    @pytest.mark.parametrize("text", NO_DATES)
    def test_others_are_errors_in_python(self, by_date, text):
        with pytest.raises(ValueError, match="is not a date"):
            by_date.predict(table(np.array([text, "2024-05-31"], dtype=object), "d"))

    @pytest.mark.parametrize("run", RUNS)
    def test_others_are_errors_or_missing(self, by_date, run, tmp_path):
        outcome = RUNS[run](by_date, table(np.array(NO_DATES, dtype=object), "d"), tmp_path)
        if run == "node":
            assert all("error" in result for result in outcome)
        elif run == "c":
            assert outcome.labels == [None] * len(NO_DATES)
        else:
            missing = np.repeat(scores(by_date, table([None], "d")), len(NO_DATES), axis=0)
            np.testing.assert_allclose(outcome.scores, missing, atol=3e-6)

    def test_timestamps(self, by_date, tmp_path):
        assert_equal("duckdb", by_date, table(pd.to_datetime(DATES, format="mixed"), "d"), tmp_path)

    @pytest.mark.parametrize(
        "time", ["9999-12-31T23:59:59.999999", "2024-05-31T23:59:59.999999", "1582-10-10T23:59:59.999999"]
    )
    def test_the_last_microsecond_of_a_day(self, by_date, time, tmp_path):
        """A graph takes days as floats, which are 40 microseconds apart in the year 9999."""
        X = table(np.array([time], dtype="datetime64[us]"), "d")
        np.testing.assert_allclose(run_onnx(by_date, X, tmp_path).ravel(), scores(by_date, X) @ [-1, 1], rtol=1e-6)
