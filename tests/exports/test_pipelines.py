"""Pipelines of scalers as C, JavaScript, SQL, ONNX and JSON: what the pipeline itself predicts."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from polyplane import MultiHyperplaneClassifier, PegasosSVC
from polyplane.exports import to_c, to_javascript, to_json, to_sql
from tests.programs import run_c, run_duckdb, run_node, run_sqlite

pytestmark = pytest.mark.filterwarnings("ignore:Skipping features", "ignore:Feature")

RUNS = {
    "c float64": lambda model, X, folder: run_c(model, X, folder, "float64"),
    "c float32": lambda model, X, folder: run_c(model, X, folder, "float32"),
    "node": run_node,
    "sqlite": lambda model, X, folder: run_sqlite(model, X),
    "duckdb": lambda model, X, folder: run_duckdb(model, X),
}
SCALERS = {
    "standard": [StandardScaler()],
    "not centred": [StandardScaler(with_mean=False)],
    "not scaled": [StandardScaler(with_std=False)],
    "range": [MinMaxScaler((-2, 3))],
    "limits": [MinMaxScaler(clip=True), RobustScaler(), MinMaxScaler((0, 4), clip=True)],
    "largest": [MaxAbsScaler()],
    "quartiles": [RobustScaler(), "passthrough", StandardScaler()],
    "imputed": [SimpleImputer(strategy="median"), StandardScaler()],
    "imputed later": [StandardScaler(), MinMaxScaler(clip=True), SimpleImputer(), MaxAbsScaler()],
    "empty columns": [SimpleImputer(), RobustScaler()],
    "empty columns kept": [SimpleImputer(keep_empty_features=True), StandardScaler()],
}


def rows(seed=0, gaps=False, empty=False):
    """Numbers of very different means and sizes, those of float32."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 5)) * [1.0, 1e-3, 5.0, 1e4, 0.5] + [0.0, 0.0, 2000.0, -1e5, 300.0]
    y = np.array(["a", "b", "c"])[(X[:, 2] > 2000).astype(int) + (X[:, 3] > -1e5) * (X[:, 0] > 0)]
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    if empty:
        X[:, 1] = np.nan
    return X.astype(np.float32).astype(np.float64), y


def fitted(name, learner=None):
    has_gaps, empty = name.startswith(("imputed", "empty")), name.startswith("empty")
    X, y = rows(0, has_gaps, empty)
    learner = MultiHyperplaneClassifier(2, max_iter=3, random_state=0) if learner is None else learner
    steps = [(f"step{i}", step) for i, step in enumerate(SCALERS[name])]
    seen = rows(1, has_gaps)[0]
    if empty:
        seen[:, 1] = np.nan
    if "kept" in name:
        seen[::2, 1] = 3.0
    return Pipeline([*steps, ("learner", learner)]).fit(X, y), seen


def expected(pipeline, X):
    return pipeline[-1].planes_.class_scores(np.asarray(pipeline[:-1].transform(X)))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", SCALERS)
def test_scalers(name, run, tmp_path):
    pipeline, X = fitted(name)
    outcome, scores = RUNS[run](pipeline, X, tmp_path), expected(pipeline, X)
    assert outcome.labels == pipeline.predict(X).tolist()
    # Columns of mean 2,000 and -100,000 are centred before weights of 24 bits meet them, where they are centred at all.
    single = 1e-4 if name in ("not centred", "largest") else 1e-6
    tolerance = single if run == "c float32" else 1e-11
    np.testing.assert_allclose(outcome.scores, scores, rtol=tolerance, atol=tolerance * np.abs(scores).max())
    np.testing.assert_allclose(outcome.probabilities, pipeline.predict_proba(X), atol=tolerance)


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx(name, dtype):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from polyplane.exports.onnx import to_onnx

    pipeline, X = fitted(name)
    session = onnxruntime.InferenceSession(to_onnx(pipeline, dtype).SerializeToString())
    labels, scores, _ = session.run(None, {"X": X.astype(dtype)})
    assert labels.tolist() == pipeline.predict(X).tolist()
    own = expected(pipeline, X)
    np.testing.assert_allclose(scores, own, atol=(1e-5 if dtype == "float32" else 1e-11) * np.abs(own).max())


@pytest.mark.parametrize("name", SCALERS)
def test_json(name):
    pipeline, X = fitted(name)
    model = json.loads(to_json(pipeline))
    scaling = {key: np.array(values, dtype=float) for key, values in model["scaling"].items()}
    Z = X[:, [int(name.removeprefix("x")) for name in model["features"]]]
    u = (Z - scaling["centre"]) * scaling["factor"]
    if "low" in scaling:
        u = np.where(u < scaling["low"], scaling["low"], np.where(u > scaling["high"], scaling["high"], u))
    u = np.where(np.isnan(Z), scaling["neutral"], u) if "neutral" in scaling else u
    frame = dict(zip(model["features"], u.T, strict=True))
    assert model["pooling"] == "logsumexp"
    scores = [
        logsumexp(
            [p["intercept"] + sum(w * frame[f] for f, w in p["weights"].items()) + 0 * u[:, 0] for p in each["planes"]],
            axis=0,
        )
        for each in model["classes"]
    ]
    np.testing.assert_allclose(np.transpose(scores), expected(pipeline, X), atol=1e-9)
    assert [each["label"] for each in model["classes"]] == pipeline.classes_.tolist()


def test_committees_and_one_byte(tmp_path):
    pipeline, X = fitted("standard", MultiHyperplaneClassifier(2, n_estimators=2, max_iter=3, random_state=0))
    assert run_c(pipeline, X, tmp_path).labels == pipeline.predict(X).tolist()
    # Without centring, a year of 2,000 would be all that one byte sees.
    assert np.mean(np.array(run_c(pipeline, X, tmp_path, "int8").labels) == pipeline.predict(X)) > 0.98


def test_names_are_those_of_the_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), PegasosSVC(random_state=0)).fit(X, y)
    assert json.loads(to_json(pipeline))["features"] == list(X.columns)
    assert '{name: "sepal length (cm)"' in to_javascript(pipeline)
    assert 'r."petal width (cm)"' in to_sql(pipeline)


@pytest.mark.parametrize("scaled", [False, True])
def test_missing_numbers_of_a_learner_have_no_label(scaled, tmp_path):
    X, y = [[0.0, 1.0], [1.0, 0.0], [0.3, 0.6]], ["no", "yes", "no"]
    model = make_pipeline(*[StandardScaler()] * scaled, PegasosSVC(max_iter=2, random_state=0)).fit(X, y)
    frame = pd.DataFrame({"x0": [np.nan, 1.0, np.inf], "x1": [1.0, 0.0, 1.0]})
    for outcome in (run_duckdb(model, frame), run_sqlite(model, frame), run_c(model, frame.to_numpy(), tmp_path)):
        assert outcome.labels == [None, "yes", None]
    assert ["error" in row for row in run_node(model, frame[:2], tmp_path)] == [True, False]


class TestRefused:
    @pytest.mark.parametrize("write", [to_c, to_javascript, to_sql, to_json])
    def test_other_steps(self, write):
        X, y = load_iris(return_X_y=True)
        pipeline = make_pipeline(PCA(2), PegasosSVC(max_iter=1)).fit(X, y)
        with pytest.raises(TypeError, match=r"The step 'pca' of the pipeline, a PCA, is not supported; StandardScaler"):
            write(pipeline)
        indicated = make_pipeline(SimpleImputer(add_indicator=True), PegasosSVC(max_iter=1)).fit(X, y)
        with pytest.raises(TypeError, match="'simpleimputer' of the pipeline"):
            write(indicated)
