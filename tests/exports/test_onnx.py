"""ONNX: the same labels and scores in onnxruntime."""

import json
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane
from polyplane.exports.onnx import NEWEST_OPSET, OLDEST_OPSET, register, to_onnx
from polyplane.planes import PlaneSet
from tests.models import LABELS, make, some_rows

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WAYS = [
    ("PegasosSVC", {}),
    ("ConvexPolytopeClassifier", {"n_planes": 3}),
    ("CuttingPlaneSVC", {"tol": None}),
    ("MultiHyperplaneClassifier", {"n_planes": 2}),
    ("AdaptiveMultiHyperplaneClassifier", {}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "n_estimators": 3}),
    ("MultiHyperplaneClassifier", {"n_planes": 1, "n_estimators": 3}),
    ("PolyceptronClassifier", {"n_planes": 3}),
    ("PolyhedralMixtureClassifier", {}),
    ("PolyhedralMixtureClassifier", {"inside": -3, "gating": "hard"}),
    ("SuccessiveLPClassifier", {}),
]
#: Scores agree to the last digits: sums of products are made in another order.
CLOSE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-11}


def run(graph, X):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def with_planes(planes, classes):
    machine = polyplane.PegasosSVC()
    machine.planes_, machine.classes_ = planes, np.asarray(classes)
    machine.n_features_in_ = planes.n_features
    return machine


def assert_equal_outputs(outputs, model, X):
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    expected = model.decision_function(X)
    assert outputs["scores"].dtype == expected.dtype
    assert outputs["scores"].shape == expected.shape
    scale = np.abs(model.planes_.scores(X)).max()
    np.testing.assert_allclose(outputs["scores"], expected, atol=CLOSE[expected.dtype] * scale)
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        assert outputs["probabilities"].dtype == outputs["scores"].dtype
        np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=10 * CLOSE[expected.dtype] * scale)
    else:
        assert len(outputs) == 2


@pytest.mark.parametrize(("name", "params"), WAYS)
@pytest.mark.parametrize("planes", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [np.float32, np.float64])
def test_every_learner_in_every_precision(name, params, planes, rows):
    model = make(name, params)
    X, y = some_rows(model, 0, planes)
    model.fit(X, y)
    fresh = some_rows(model, 1, rows)[0]
    assert_equal_outputs(run(to_onnx(model, rows), fresh), model, fresh)


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_all_kinds(labels):
    model = make("PegasosSVC", {})
    X, y = some_rows(model, 0, labels=labels)
    model.fit(X, y)
    if labels == "object":
        with pytest.raises(ValueError, match="is not valid Unicode"):
            to_onnx(model)
        model.classes_ = np.array(["a", "naïve", "z"], dtype=object)
    found = run(to_onnx(model), X)["label"]
    assert found.tolist() == model.predict(X).tolist()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    counts=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_classes_with_different_numbers_of_planes_and_exact_ties(counts, seed, dtype):
    """Small whole numbers: all sums are exact, ties are many, and the first class wins each of them in both."""
    rng = np.random.default_rng(seed)
    n_planes = sum(counts)
    planes = PlaneSet(
        rng.integers(-2, 3, size=(n_planes, 2)).astype(dtype),
        rng.integers(-2, 3, size=n_planes).astype(dtype),
        np.concatenate([[0], np.cumsum(counts)]),
    )
    model = with_planes(planes, [f"class {c}" for c in range(len(counts))])
    X = np.stack(np.meshgrid(np.arange(-4, 5), np.arange(-4, 5)), axis=-1).reshape(-1, 2).astype(dtype)
    outputs = run(to_onnx(model), X)
    best = np.sort(planes.class_scores(X), axis=1)
    assume((best[:, -1] == best[:, -2]).any())
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    np.testing.assert_array_equal(outputs["scores"], model.decision_function(X))


@pytest.mark.parametrize("opset", range(OLDEST_OPSET, NEWEST_OPSET + 1))
@pytest.mark.parametrize("name", ["MultiHyperplaneClassifier", "PolyhedralMixtureClassifier"])
def test_all_opsets(name, opset):
    model = make(name, {"n_planes": 2})
    X, y = some_rows(model, 0)
    graph = to_onnx(model.fit(X, y), opset=opset)
    assert [entry.version for entry in graph.opset_import] == [opset]
    assert_equal_outputs(run(graph, X), model, X)


def test_any_number_of_rows_and_what_the_file_says_of_itself():
    import pandas as pd

    model = make("ConvexPolytopeClassifier", {"n_planes": 2})
    X, y = some_rows(model, 0, labels="text")
    graph = to_onnx(model.fit(pd.DataFrame(X, columns=["a", "b", "ç"]), y))
    for n_rows in (0, 1, 60):
        outputs = run(graph, X[:n_rows])
        assert outputs["label"].shape == (n_rows,)
        assert outputs["scores"].shape == (n_rows, 3)
    about = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
    assert about == {"classes": model.classes_.tolist(), "feature_names": ["a", "b", "ç"]}
    assert (graph.producer_name, graph.producer_version) == ("polyplane", polyplane.__version__)


class TestSkl2onnx:
    @pytest.fixture(autouse=True)
    def registered(self):
        pytest.importorskip("skl2onnx")
        register()
        register()  # again does no harm

    @pytest.mark.parametrize(("name", "params"), WAYS)
    @pytest.mark.parametrize("rows", [np.float32, np.float64])
    def test_pipelines(self, name, params, rows):
        from skl2onnx import to_onnx

        pipeline = make_pipeline(StandardScaler(), make(name, params))
        X, y = some_rows(pipeline[-1], 0)
        pipeline.fit(X, y)
        fresh = some_rows(pipeline[-1], 1, rows)[0]
        outputs = run(to_onnx(pipeline, fresh[:1]), fresh)
        np.testing.assert_array_equal(outputs["label"], pipeline.predict(fresh))
        scale = np.abs(pipeline[-1].planes_.scores(pipeline[0].transform(fresh))).max()
        tolerance = scale * CLOSE[np.dtype(rows)]  # the scaler of float32 rows rounds in its own way
        np.testing.assert_allclose(outputs["scores"], pipeline.decision_function(fresh), atol=tolerance)
        if hasattr(pipeline, "predict_proba"):
            np.testing.assert_allclose(outputs["probabilities"], pipeline.predict_proba(fresh), atol=tolerance)

    def test_string_labels(self):
        from skl2onnx import to_onnx

        pipeline = make_pipeline(StandardScaler(), make("PegasosSVC", {}))
        X, y = some_rows(pipeline[-1], 0, labels="text")
        pipeline.fit(X, y)
        assert run(to_onnx(pipeline, X[:1]), X)["label"].tolist() == pipeline.predict(X).tolist()

    @pytest.mark.parametrize("name", ["PolyceptronClassifier", "PolyhedralMixtureClassifier"])
    def test_one_against_the_rest(self, name):
        from skl2onnx import to_onnx

        X, y = some_rows(make("PegasosSVC", {}), 0)
        model = OneVsRestClassifier(make(name, {"n_planes": 2})).fit(X, y)
        graph = to_onnx(model, X[:1], options={id(model): {"zipmap": False}})
        np.testing.assert_array_equal(run(graph, X)["label"], model.predict(X))


class TestRefusal:
    def test_in_a_sentence(self):
        model = make("PegasosSVC", {}).fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(NotFittedError):
            to_onnx(polyplane.PegasosSVC())
        with pytest.raises(TypeError, match="A StandardScaler is not a classifier"):
            to_onnx(StandardScaler())
        with pytest.raises(TypeError, match=r"'pca' .* is not supported.* see `polyplane\.exports\.onnx\.register`"):
            to_onnx(make_pipeline(PCA(), model).fit([[0.0], [1.0]], [0, 1]))
        with pytest.raises(ValueError, match="dtype='int64' must be"):
            to_onnx(model, np.int64)
        with pytest.raises(ValueError, match="opset=12 must be from 13 to 21"):
            to_onnx(model, opset=12)

    def test_of_planes_too_large(self, monkeypatch):
        monkeypatch.setattr("polyplane.exports.onnx.LARGEST_PLANES", 15)
        with pytest.raises(ValueError, match="more than 2 GB"):
            to_onnx(make("PegasosSVC", {}).fit([[0.0], [1.0]], [0, 1]))

    @pytest.mark.parametrize(("package", "call"), [("onnx", "to_onnx(model)"), ("skl2onnx", "register()")])
    def test_without_the_package(self, package, call, monkeypatch):
        model = make("PegasosSVC", {}).fit([[0.0], [1.0]], [0, 1])
        for name in list(sys.modules):
            if name.split(".")[0] == package or name == "polyplane.exports.skl2onnx_converter":
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf'{package}.*pip install "polyplane\[onnx\]"'):
            eval(call, {"to_onnx": to_onnx, "register": register, "model": model})


def test_labels_beyond_the_integers_of_onnx_are_refused():
    labels = np.array([1, 2**63 + 1], dtype=np.uint64)
    model = polyplane.PegasosSVC(max_iter=2).fit(np.eye(2), labels)
    with pytest.raises(ValueError, match="The label 9223372036854775809 does not fit into a signed 64-bit integer"):
        to_onnx(model)
    small = polyplane.PegasosSVC(max_iter=2).fit(np.eye(2), np.array([1, 2**40], dtype=np.uint64))
    assert to_onnx(small).graph.output[0].type.tensor_type.elem_type == 7  # INT64
