"""ONNX of `TableClassifier`: the columns of a table in, the same labels and probabilities out of onnxruntime."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import polyplane
from polyplane import TableClassifier
from polyplane.exports.onnx import NEWEST_OPSET, OLDEST_OPSET, table_inputs, to_onnx
from polyplane.tables.preparation import RECIPES
from tests.models import QUICK
from tests.models import fitted as fitted_kind

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pd = pytest.importorskip("pandas", reason="pandas is a development dependency")


def run(graph, inputs):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(None, inputs), strict=True))


def assert_equal_outputs(outputs, model, frame, names=("label", "scores", "probabilities"), tolerance=1e-6):
    label, scores, probabilities = (outputs[name] for name in names)
    np.testing.assert_array_equal(label, model.predict(frame))
    expected = model.decision_function(frame)
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, atol=10 * tolerance)
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), atol=tolerance)


def everything(n_rows=400, seed=0, classes=("a", "b", "ç")):
    """Columns of all kinds, most of them with gaps, under names that no programming language would take."""
    rng = np.random.default_rng(seed)
    moments = np.datetime64("1897-02-28T22:00") + rng.integers(0, 200 * 365 * 24, n_rows).astype("timedelta64[h]")
    frame = pd.DataFrame(
        {
            "size (cm)": np.exp(rng.normal(size=n_rows)),
            "count": rng.integers(0, 9, n_rows).astype(float),
            "colour/größe": rng.choice(
                ["red", "", "green", "dark blue", "rare?"], n_rows, p=[0.4, 0.1, 0.3, 0.19, 0.01]
            ),
            "wet": rng.choice(["true", "false"], n_rows).astype(object),
            "made at": moments.astype("datetime64[us]"),
            "sold": np.datetime64("2023-12-30") + rng.integers(0, 400, n_rows).astype("timedelta64[D]"),
            "label": rng.choice(["x", "y", "z"], n_rows),
            "__z": rng.normal(size=n_rows),
            "constant": 1,
        }
    )
    for name in ("count", "wet", "made at", "label"):
        frame.loc[rng.random(n_rows) < 0.1, name] = None
    score = frame["size (cm)"] + frame["count"].fillna(0) * (frame["label"] == "x") + (frame["sold"].dt.month > 6)
    return frame, np.asarray(classes)[np.digitize(score, np.quantile(score, np.linspace(0, 1, len(classes) + 1)[1:-1]))]


#: The outputs, as a column is called "label".
NAMES = ("label_", "scores", "probabilities")


@pytest.fixture(scope="module")
def fitted():
    frame, y = everything()
    return TableClassifier(**QUICK | {"preparation": None, "min_rows": 8, "random_state": 4}).fit(frame, y)


@pytest.mark.parametrize("preparation", RECIPES)
@pytest.mark.parametrize("classes", [("a", "b", "ç"), (False, True), (-3, 0, 7, 9)])
def test_every_preparation(preparation, classes):
    frame, y = everything(classes=classes)
    model = TableClassifier(**QUICK | {"preparation": preparation}).fit(frame, y)
    fresh, _ = everything(200, 1)
    assert_equal_outputs(run(to_onnx(model), table_inputs(model, fresh)), model, fresh, NAMES)


def test_weighted_features_and_several_preparations(fitted):
    assert len(set(fitted.preparation_)) > 1
    assert any(name.endswith("weighted") for name in fitted.preparation_)
    assert fitted.temperature_ != 1
    fresh, _ = everything(200, 1)
    assert_equal_outputs(run(to_onnx(fitted), table_inputs(fitted, fresh)), fitted, fresh, NAMES)


@pytest.mark.parametrize("kind", ["table, special codes", "table, wide category, three classes"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_codes_and_wide_categories(kind, dtype):
    model, X = fitted_kind(kind)
    numbers = X.select_dtypes("number").columns
    X = X[:300].astype(dict.fromkeys(numbers, "float32"))
    for opset in (OLDEST_OPSET, NEWEST_OPSET):
        outputs = run(to_onnx(model, dtype, opset=opset), table_inputs(model, X, dtype))
        names = outputs if len(outputs) == 3 else NAMES
        assert_equal_outputs(outputs, model, X, names, 1e-5)


def test_inputs_by_hand(fitted):
    """What somebody without Polyplane would give, as the documentation says it; in any order."""
    fresh, _ = everything(200, 1)
    fresh["colour/größe"] = fresh["colour/größe"].where(np.arange(200) % 5 > 0, "never seen")
    fresh.loc[:5, "sold"] = pd.NaT  # no gap was seen in fitting
    fresh.loc[3:9, "size (cm)"] = np.nan

    def days(column):
        return ((column - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy()

    inputs = {
        "__z": fresh["__z"].to_numpy(),
        "label": fresh["label"].fillna("").to_numpy(object),
        "sold": days(fresh["sold"]),
        "made at": days(fresh["made at"]),
        "wet": fresh["wet"].replace({"true": "TRUE", "false": "No"}).fillna("?").to_numpy(object),
        "colour/größe": fresh["colour/größe"].to_numpy(object),
        "count": fresh["count"].to_numpy(),
        "size (cm)": fresh["size (cm)"].to_numpy(),
    }
    outputs = run(to_onnx(fitted), {name: values[:, None] for name, values in inputs.items()})
    assert_equal_outputs(outputs, fitted, fresh, NAMES)


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 17, 18, NEWEST_OPSET])
def test_opsets(fitted, opset):
    fresh, _ = everything(50, 1)
    graph = to_onnx(fitted, opset=opset)
    assert {entry.domain: entry.version for entry in graph.opset_import} == {"": opset, "ai.onnx.ml": 2}
    assert_equal_outputs(run(graph, table_inputs(fitted, fresh)), fitted, fresh, NAMES)


def test_numbers_in_single_precision(fitted):
    fresh, _ = everything(200, 1)
    fresh[["size (cm)", "__z"]] = fresh[["size (cm)", "__z"]].astype(np.float32)
    graph = to_onnx(fitted, "float32")
    types = {entry.name: entry.type.tensor_type.elem_type for entry in graph.graph.input}
    assert types["__z"] == onnx.TensorProto.FLOAT
    assert types["sold"] == onnx.TensorProto.DOUBLE
    assert types["wet"] == onnx.TensorProto.STRING
    assert_equal_outputs(run(graph, table_inputs(fitted, fresh, "float32")), fitted, fresh, NAMES)


def test_any_number_of_rows_and_what_the_file_says_of_itself(fitted):
    graph = to_onnx(fitted)
    inputs = table_inputs(fitted, everything(5)[0])
    for n_rows in (0, 1, 5):
        outputs = run(graph, {name: values[:n_rows] for name, values in inputs.items()})
        assert outputs["label_"].shape == (n_rows,)
        assert outputs["probabilities"].shape == (n_rows, 3)
    about = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
    assert about["classes"] == ["a", "b", "ç"]
    assert about["columns"][0] == {"input": "size (cm)", "column": "size (cm)", "kind": "number"}
    assert [column["kind"] for column in about["columns"]] == list(fitted.encoder_.kinds_.values())
    assert "constant" not in inputs


def test_names_that_onnx_cannot_have():
    X = np.random.default_rng(0).normal(size=(100, 5))
    frame = pd.DataFrame(X, columns=["", "column 0", "a\0b", "scores", "scores_"])
    model = TableClassifier(**QUICK).fit(frame, X[:, 0] > 0)
    inputs = table_inputs(model, frame)
    assert list(inputs) == ["column 0_", "column 0", "column 2", "scores", "scores_"]
    assert_equal_outputs(run(to_onnx(model), inputs), model, frame, ("label", "scores__", "probabilities"))


def test_arrays_without_names():
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = TableClassifier(**QUICK).fit(X, X[:, 0] > 0)
    inputs = {f"x{j}": X[:, [j]] for j in range(3)}
    assert_equal_outputs(run(to_onnx(model), inputs), model, X)


def test_columns_of_text_only_and_a_norm_of_nothing():
    frame = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["x", "y", "y", None] * 25})
    y = (frame["a"] == frame["b"]).to_numpy()
    for preparation in ("robust+norm", "squares", "bins"):
        model = TableClassifier(**QUICK | {"preparation": preparation}).fit(frame, y)
        assert_equal_outputs(run(to_onnx(model), table_inputs(model, frame)), model, frame)


def test_gaps_of_ones_own():
    """With gaps=("no", "-") a "no" is a gap, also in a column of booleans, and "?" is a level."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["yes", "no", "off", "true"], 200),
            "b": rng.choice(["?", "-", "x"], 200),
            "c": rng.normal(size=200),
        }
    )
    model = TableClassifier(**QUICK, kinds={"a": "boolean"}, gaps=("no", "-")).fit(frame, frame["c"] > 0)
    inputs = {"c": frame[["c"]].to_numpy(), **{name: frame[[name]].to_numpy(object) for name in "ab"}}
    assert_equal_outputs(run(to_onnx(model), inputs), model, frame)


def test_the_calendar():
    """Year, month, day of the week and hour of random moments of two thousand years, and around leap days."""
    rng = np.random.default_rng(0)
    moments = np.concatenate(
        [
            np.datetime64("1000-01-01T00", "h") + rng.integers(0, 2000 * 365 * 24, 3000).astype("timedelta64[h]"),
            np.array(
                [f"{year}-{day}" for year in (1600, 1900, 1999, 2000, 2024) for day in ("02-28T23", "03-01T00")]
            ).astype("datetime64[h]"),
            np.array([f"{year}-{day}" for year in (1600, 1900, 1970, 2000) for day in ("01-01T00", "12-31T23")]).astype(
                "datetime64[h]"
            ),
        ]
    ).astype("datetime64[us]")
    frame = pd.DataFrame({"when": moments})
    y = rng.integers(0, 2, len(frame))
    model = TableClassifier(**QUICK | {"preparation": "standard", "n_estimators": 1}).fit(frame, y)
    assert model.encoder_.encoding_.columns[0].parts == ("year", "month", "day of week", "hour")
    graph = to_onnx(model)
    encoded = next(node.output[0] for node in graph.graph.node if node.output[0].endswith("_gather"))
    graph.graph.output.append(onnx.helper.make_tensor_value_info(encoded, onnx.TensorProto.DOUBLE, ["rows", 5]))
    np.testing.assert_array_equal(run(graph, table_inputs(model, frame))[encoded], model.encoder_.transform(frame))


def test_a_loaded_model_gives_the_same_graph(fitted, tmp_path):
    polyplane.save(fitted, tmp_path / "m")
    assert to_onnx(polyplane.load(tmp_path / "m")).SerializeToString() == to_onnx(fitted).SerializeToString()


def test_refusal():
    with pytest.raises(NotFittedError):
        to_onnx(TableClassifier())
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = TableClassifier(**QUICK).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="opset=12 must be from 13 to 21"):
        to_onnx(model, opset=12)
    with pytest.raises(ValueError, match="dtype='int64' must be"):
        to_onnx(model, np.int64)
    with pytest.raises(ValueError, match="X has 3 features"):
        table_inputs(model, np.zeros((2, 3)))


def test_adult_from_raw_rows(local_table):
    """All 16,281 test rows: the same labels, and the same probabilities to 1e-5."""
    train, test = local_table("adult.train.csv.xz"), local_table("adult.test.csv.xz")
    model = TableClassifier(2, n_planes=4, max_iter=3, random_state=0)
    model.fit(train.drop(columns="income")[:8000], train["income"][:8000])
    inputs = {
        name: test[[name]].to_numpy(np.float64) if kind == "number" else test[[name]].fillna("").to_numpy(object)
        for name, kind in model.encoder_.kinds_.items()
    }
    assert len(test) == 16_281
    assert_equal_outputs(run(to_onnx(model), inputs), model, test, tolerance=1e-5)
