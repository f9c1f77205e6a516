"""`polyplane.serving`: prediction from model files with NumPy alone, equal to the estimators'."""

import contextlib
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import polyplane
from polyplane import serving
from polyplane.inputs.encoding import MatrixInputs
from polyplane.learners import LEARNERS
from tests.models import LABELS, QUICK, assembled, make, parts, places, replaced, shop, some_rows

#: What prediction from a file must not bring.
HEAVY = {"numba", "scipy", "sklearn", "joblib", "pandas", "threadpoolctl"}


@pytest.fixture
def served(tmp_path):
    def through_a_file(model):
        polyplane.save(model, tmp_path / "model.safetensors")
        return serving.load(tmp_path / "model.safetensors")

    return through_a_file


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_an_integer_that_no_float_holds_is_a_value_error(served, value):
    table, (X, y) = make("TableClassifier", QUICK), shop(60)
    row = X.iloc[0].to_dict() | {"price": value}
    table.fit(X, y)
    for predict, rows in ((table.predict, pd.DataFrame([row])), (served(table).predict, [row])):
        with pytest.raises(ValueError, match=r"Column 'price' contains -?inf in row 0: numbers must be finite"):
            predict(rows)
    matrix = polyplane.PegasosSVC(max_iter=2).fit(np.eye(3), [0, 1, 1])
    for predict in (matrix.predict, served(matrix).predict):
        with pytest.raises(ValueError, match="Input X contains infinity or a value too large for"):
            predict([[value, 0, 0]])


def assert_equal_predictions(predictor, model, X):
    labels = model.predict(X)
    found = predictor.predict(X)
    assert type(predictor) is polyplane.Model
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()
    assert predictor.classes.tolist() == model.classes_.tolist()
    np.testing.assert_allclose(predictor.decision_function(X), model.decision_function(X), rtol=1e-6, atol=1e-6)
    assert predictor.has_probabilities == hasattr(model, "predict_proba")
    if predictor.has_probabilities:
        np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-6)
    else:
        with pytest.raises(AttributeError, match="use decision_function"):
            predictor.predict_proba(X)


class TestLearners:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("name", LEARNERS)
    def test_predictions_are_the_estimators(self, name, dtype, served):
        machine = make(name, {"tol": None})
        X, y = some_rows(machine, 0, dtype)
        machine.fit(X, y)
        predictor = served(machine)
        assert_equal_predictions(predictor, machine, X)
        assert_equal_predictions(predictor, machine, sparse.csr_array(X))
        assert predictor.predict(X.tolist()).tolist() == machine.predict(X).tolist()
        assert repr(predictor).startswith(f"Model('{name}', n_columns=3, ")

    @pytest.mark.parametrize("labels", LABELS)
    def test_labels_of_all_kinds(self, labels, served):
        machine = make("MultiHyperplaneClassifier", {"loss": "hinge"})
        X, y = some_rows(machine, 1, labels=labels)
        assert_equal_predictions(served(machine.fit(X, y)), machine, X)

    def test_named_features_are_found_by_name(self, served):
        machine = make("PegasosSVC", {})
        X, y = some_rows(machine, 2)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        labels = machine.fit(frame, y).predict(frame).tolist()
        predictor = served(machine)
        assert_equal_predictions(predictor, machine, frame)
        assert list(predictor.inputs.names) == ["a", "b", "c"]
        shuffled = frame[["c", "a", "b"]].assign(more=1)
        for rows in (shuffled, shuffled.to_dict("list"), shuffled.to_dict("records"), X):
            assert predictor.predict(rows).tolist() == labels
        with pytest.raises(ValueError, match="no column 'b'"):
            predictor.predict(frame[["a", "c"]])

    def test_numbers_that_are_too_large_for_a_table(self, served):
        """Whatever form the rows have, as in the estimator."""
        machine = make("PegasosSVC", {})
        X, y = some_rows(machine, 2)
        predictor = served(machine.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y))
        frame = pd.DataFrame(X * 1e200, columns=["a", "b", "c"])
        assert_equal_predictions(predictor, machine, frame)
        assert predictor.predict(frame.to_dict("records")).tolist() == machine.predict(frame).tolist()

    def test_rows_that_an_estimator_refuses_are_refused(self, served):
        machine = make("PegasosSVC", {})
        predictor = served(machine.fit(*some_rows(machine, 3)))
        for rows, words in [
            (np.zeros((2, 4)), "X has 4 features, but PegasosSVC is expecting 3"),
            (np.zeros(3), "Expected 2D array"),
            (np.zeros((0, 3)), "0 sample"),
            (np.full((1, 3), np.nan), "contains NaN"),
            (np.full((1, 3), np.inf), "infinity"),
            (np.zeros((1, 3), np.float16), "float16"),
            (np.zeros((1, 3), complex), "Complex data"),
        ]:
            for each in (predictor, machine):
                with pytest.raises(ValueError, match=words):
                    each.predict(rows)


class TestPipelines:
    @pytest.mark.parametrize(
        "scalers",
        [
            [StandardScaler()],
            [StandardScaler(with_mean=False), MaxAbsScaler()],
            [StandardScaler(with_std=False)],
            [SimpleImputer(strategy="median"), MinMaxScaler((-1, 2), clip=True)],
            [SimpleImputer(strategy="constant", fill_value=0.5), RobustScaler()],
            [SimpleImputer(keep_empty_features=True), RobustScaler(with_centering=False)],
            ["passthrough"],
        ],
        ids=str,
    )
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_predictions_are_the_pipelines(self, scalers, dtype, served):
        machine = make("MultiHyperplaneClassifier", {})
        X, y = some_rows(machine, 4, dtype)
        if isinstance(scalers[0], SimpleImputer):
            X[::7, 1] = np.nan
            X = np.column_stack([X, np.full(len(X), np.nan, dtype)]) if scalers[0].keep_empty_features else X
        pipeline = make_pipeline(*scalers, machine).fit(X, y)
        predictor = served(pipeline)
        assert predictor.n_columns == X.shape[1]
        assert_equal_predictions(predictor, pipeline, X)
        assert_equal_predictions(predictor, pipeline, X * 3)

    def test_an_empty_feature_is_left_out(self, served):
        machine = make("PegasosSVC", {})
        X, y = some_rows(machine, 5)
        X = np.column_stack([X[:, :1], np.full(len(X), np.nan), X[:, 1:]])
        pipeline = make_pipeline(SimpleImputer(), machine)
        with pytest.warns(UserWarning, match="Skipping features"):
            pipeline.fit(X, y)
        with pytest.warns(UserWarning, match="Skipping features"):
            labels = pipeline.predict(X).tolist()
        assert served(pipeline).predict(X).tolist() == labels

    def test_names_are_those_of_the_first_scaler(self, served):
        machine = make("PegasosSVC", {})
        X, y = some_rows(machine, 6)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        pipeline = make_pipeline(StandardScaler(), machine).fit(frame, y)
        assert served(pipeline).predict(frame[["b", "c", "a"]]).tolist() == pipeline.predict(frame).tolist()

    @pytest.mark.parametrize(
        "value", [3, -0.0, True, "3.5", None, np.nan, 2**53 + 1, np.float32(0.1), 1e300, "x", np.inf]
    )
    def test_a_few_rows_are_read_as_many(self, value):
        """One row of numbers is read faster than cells, where it is one of floats and integers."""
        inputs = MatrixInputs(2, ("a", "b"), np.array([7.0, 8.0]))

        def encoded(rows):
            try:
                return inputs.read(rows, "X")
            except ValueError as error:
                return str(error)

        row = {"b": value, "other": "x", "a": 1.5}
        many = encoded({name: [each] * 20 for name, each in row.items()})
        for few in ([row], {name: [each] for name, each in row.items()}, pd.DataFrame([row])):
            found = encoded(few)
            if isinstance(many, str):
                assert found == many
            else:
                assert found.dtype == many.dtype
                np.testing.assert_array_equal(found, many[:1])

    def test_a_table_behind_an_imputer(self, served):
        frame, y = shop(200)
        numbers = frame[["price", "noise"]]
        pipeline = make_pipeline(SimpleImputer(), polyplane.TableClassifier(**QUICK)).fit(numbers, y)
        assert_equal_predictions(served(pipeline), pipeline, numbers)


@pytest.fixture(scope="module")
def model():
    return polyplane.TableClassifier(**QUICK | {"preparation": "bins"}).fit(*shop())


@pytest.fixture(scope="module")
def rows():
    """Rows with gaps, levels that training did not see, and dates as texts."""
    frame, _ = shop(60, seed=1)
    frame["colour"] = frame["colour"].astype(object)
    frame.loc[:5, "colour"] = "mauve"
    frame.loc[6:9, "colour"] = "?"
    frame.loc[10:14, "sold"] = pd.NaT
    frame["price"] = frame["price"].astype(object)
    frame.loc[15:20, "price"] = None
    return frame


class TestTables:
    def test_frames(self, model, rows, served):
        predictor = served(model)
        assert_equal_predictions(predictor, model, rows)
        assert_equal_predictions(predictor, model, rows[rows.columns[::-1]].assign(other=1))
        assert list(predictor.inputs.names) == ["price", "colour", "new", "sold", "noise"]

    def test_dicts_are_read_as_frames_are(self, model, rows, served):
        predictor = served(model)
        expected = predictor.predict_proba(rows)
        np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=1e-6)
        texts = rows.assign(sold=rows["sold"].dt.strftime("%Y-%m-%d").astype(object))
        texts = texts.astype(object).where(texts.notna(), None)
        for X in (rows.to_dict("list"), rows.to_dict("records"), texts.to_dict("records"), texts.to_dict("list")):
            np.testing.assert_allclose(predictor.predict_proba(X), expected, rtol=0, atol=1e-12)
        arrays = {name: rows[name].to_numpy() for name in rows}
        np.testing.assert_allclose(predictor.predict_proba(arrays), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(model.predict_proba(arrays), expected, rtol=0, atol=1e-6)

    def test_arrays(self, served):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        X[::9, 2] = np.nan
        model = polyplane.TableClassifier(**QUICK).fit(X, X[:, 0] > X[:, 1])
        predictor = served(model)
        assert_equal_predictions(predictor, model, X)
        assert predictor.predict(X.tolist()).tolist() == model.predict(X).tolist()

    @pytest.mark.parametrize(
        ("X", "error", "words"),
        [
            ({"price": [1.0]}, ValueError, "no columns 'colour', 'new'"),
            ({"price": 1.0}, TypeError, "'price' is a float: pass the values of all rows"),
            ({"price": "1.0"}, TypeError, "'price' is a str"),
            (
                {"price": [1.0, 2.0], "colour": ["red"]},
                ValueError,
                "'colour' has 1 values, but the columns before it have 2",
            ),
            ([{"price": 1.0}, {"colour": "red"}], ValueError, "Row 1 has no column 'price'"),
            ([{"price": 1.0}, 5], ValueError, "Row 1 has no column 'price'"),
            ({}, ValueError, "while a minimum of 1 is required"),
            ([], ValueError, "Expected 2D array"),
        ],
    )
    def test_tables_that_are_refused(self, model, served, X, error, words):
        with pytest.raises(error, match=words):
            served(model).predict(X)


FORGED_VALUES = [
    None,
    -1,
    7,
    1e308,
    "x",
    [],
    {},
    {"array": "planes.coef"},
    {"array": "x"},
    True,
    [0.5],
    2**70,
    {"a": 1},
]


@cache
def content_of(kind):
    """A model file, as bytes."""
    machine = make(
        "MultiHyperplaneClassifier" if kind == "committee" else "ConvexPolytopeClassifier", {"n_estimators": 3}
    )
    X, y = some_rows(machine, 0)
    model = {
        "table": polyplane.TableClassifier(**QUICK),
        "pipeline": make_pipeline(
            SimpleImputer(),
            StandardScaler(),
            "passthrough",
            MinMaxScaler(clip=True),
            MaxAbsScaler(),
            RobustScaler(),
            machine,
        ),
    }.get(kind, machine)
    with tempfile.TemporaryDirectory() as folder:
        polyplane.save(model.fit(X, y), f"{folder}/model")
        return Path(f"{folder}/model").read_bytes()


@pytest.fixture(scope="module")
def forged_path(tmp_path_factory):
    return tmp_path_factory.mktemp("forged") / "model.safetensors"


class TestFiles:
    def test_damage_is_found(self, tmp_path):
        path = tmp_path / "model.safetensors"
        machine = make("ConvexPolytopeClassifier", {"random_state": np.random.RandomState(0)})
        polyplane.save(machine.fit(*some_rows(machine, 0)), path)
        content = bytearray(path.read_bytes())
        content[-1] ^= 1  # in the state of training, which is not used
        path.write_bytes(content)
        with pytest.raises(serving.ModelFileError, match="checksum does not match"):
            serving.load(path)
        path.write_text("no model")
        with pytest.raises(serving.ModelFileError, match="is not a model file of Polyplane"):
            serving.load(path)

    @pytest.mark.parametrize("kind", ["learner", "committee", "table", "pipeline"])
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(pick=st.integers(0, 10**6), value=st.sampled_from(FORGED_VALUES))
    def test_a_forged_value_is_refused_or_harmless(self, forged_path, kind, pick, value):
        header, description, data = parts(content_of(kind))
        keys = list(places(description))
        forged_path.write_bytes(assembled(header, replaced(description, keys[pick % len(keys)], value), data))
        loaded = predictor = None
        with contextlib.suppress(serving.ModelFileError):
            predictor = serving.load(forged_path)
        with contextlib.suppress(serving.ModelFileError):
            loaded = polyplane.load(forged_path)
        assert predictor is not None or loaded is None
        if predictor is not None:
            with contextlib.suppress(ValueError), np.errstate(all="ignore"):
                assert predictor.predict(np.ones((2, predictor.n_columns))).shape == (2,)

    def test_a_model_alone_is_saved_and_loaded(self, tmp_path, served):
        machine = make("PegasosSVC", {})
        X, y = some_rows(machine, 0)
        model = served(machine.fit(X, y))
        polyplane.save(model, tmp_path / "again")
        for load in (polyplane.load, serving.load):
            assert type(load(tmp_path / "again")) is polyplane.Model
            assert load(tmp_path / "again").decision_function(X).tobytes() == model.decision_function(X).tobytes()


#: Imports NumPy, the package and a model, predicts one row, and says what that took and what it brought.
FRESH = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
from polyplane import serving
for path, row in json.loads(sys.argv[1]):
    serving.load(path).predict(row)
took = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps([*took, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


#: The packages that are left out cannot be imported at all.
BARE = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(HEAVY)!r}))
"""


@pytest.fixture(scope="module")
def table_path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    polyplane.save(model, path)
    return path


def test_nothing_else_needs_to_be_installed(table_path, tmp_path):
    machine = make("PegasosSVC", {})
    X, y = some_rows(machine, 0)
    polyplane.save(make_pipeline(StandardScaler(), machine).fit(X, y), tmp_path / "pipeline")
    code = f"""{BARE}
import numpy as np
import polyplane
from polyplane import serving

planes = polyplane.PlaneSet.of_members([polyplane.PlaneSet(np.eye(2), np.zeros(2), [0, 1, 2])] * 2)
assert planes.predict(np.eye(2)).tolist() == [0, 1]
table, pipeline = serving.load({str(table_path)!r}), serving.load({str(tmp_path / "pipeline")!r})
many = np.zeros((100_000, 3))
assert len(pipeline.predict(many)) == len(many)
for predictor, X in [(table, np.zeros(3)), (table, [[1.0]]), (pipeline, np.zeros(3)), (pipeline, [["a", 1, 2]])]:
    try:
        predictor.predict(X)
    except ValueError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    refused = done.stdout.splitlines()
    assert len(refused) == 4
    assert "X has 1 features, but TableClassifier is expecting 5" in refused[1]


def test_the_service_of_the_guide(table_path):
    guide = Path(__file__).parents[1] / "docs" / "guide" / "deployment.md"
    if not guide.exists():
        pytest.skip("the documentation is not beside the tests")
    program = BARE + re.search(r"^```py\n(.*?)^```", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"PORT": str(port), "PYTHONPATH": str(Path(polyplane.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=table_path.parent, env=environment, stderr=subprocess.DEVNULL) as service:
        try:
            row = {"price": 1.5, "colour": "red", "new": True, "sold": "2024-03-01", "noise": None}
            assert ask(port, json.dumps([row])) == (200, polyplane.load(table_path).predict([row]).tolist())
            refused = {
                "[{}]": "while a minimum of 1 is required",
                '[{"price": 1}]': "no columns",
                "[": "Expecting value",
            }
            for body, words in refused.items():
                status, answer = ask(port, body)
                assert status == 400
                assert words in answer["error"]
        finally:
            service.kill()


def ask(port, body):
    """What a service answers, once it has started."""
    for _ in range(100):
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("POST", "/", body)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except ConnectionRefusedError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise TimeoutError("the service did not start")


def test_a_fresh_process_predicts_at_once_with_numpy_alone(tmp_path):
    frame, y = shop()
    polyplane.save(polyplane.TableClassifier(**QUICK).fit(frame, y), tmp_path / "table")
    machine = make("MultiHyperplaneClassifier", {"n_estimators": 3})
    X, y = some_rows(machine, 0)
    polyplane.save(make_pipeline(StandardScaler(), machine).fit(X, y), tmp_path / "pipeline")
    row = {"price": 1.5, "colour": "red", "new": True, "sold": "2024-03-01", "noise": None}
    models = [(str(tmp_path / "table"), [row]), (str(tmp_path / "pipeline"), X[:1].tolist())]
    took = math.inf
    for _ in range(3):
        command = [sys.executable, "-c", FRESH, json.dumps(models)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        _, cpu, modules = json.loads(done.stdout)
        assert not HEAVY & set(modules)
        took = min(took, cpu)
    assert took < 0.3
