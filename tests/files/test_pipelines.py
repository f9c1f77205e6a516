"""Model files of pipelines: scalers of scikit-learn before an estimator, rebuilt from plain data."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import polyplane
from polyplane.files import ModelFileError
from polyplane.loading import read_model
from tests.models import (
    QUICK,
    assembled,
    assert_same,
    assert_same_model,
    make,
    parts,
    places,
    reload,
    replaced,
    some_rows,
)

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-1.5, 2), clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False, quantile_range=(10.0, 90.0), unit_variance=True),
    SimpleImputer(),
    SimpleImputer(strategy="median", keep_empty_features=True),
    SimpleImputer(strategy="constant", fill_value=0.5),
    "passthrough",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.safetensors"


def assert_same_pipeline(loaded, pipeline):
    assert type(loaded) is Pipeline
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    assert loaded.verbose == pipeline.verbose
    assert_same_model(loaded[-1], pipeline[-1])
    for mine, other in zip(loaded.named_steps.values(), pipeline.named_steps.values(), strict=True):
        if other in (None, "passthrough"):
            assert mine == other
        else:
            assert type(mine) is type(other)
            assert_same(mine.get_params() | {"random_state": 0}, other.get_params() | {"random_state": 0})
            assert vars(mine).keys() == vars(other).keys()


def gappy(X):
    X = X.copy()
    X[::7, 1] = np.nan
    return X


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("named", [False, True])
def test_every_scaler(path, scaler, dtype, named):
    learner = make("PegasosSVC", {})
    X, y = some_rows(learner, 0, dtype)
    X = gappy(X) if isinstance(scaler, SimpleImputer) else X
    X = pd.DataFrame(X, columns=["width", "höhe", 'a "b"']) if named else X
    pipeline = make_pipeline(scaler, learner, verbose=False).fit(X, y)
    polyplane.save(pipeline, path, metadata={"unit": "cm"})
    found = read_model(path)
    assert found.metadata == {"unit": "cm"}
    assert_same_pipeline(found.model, pipeline)
    for step, other in zip(found.model[:-1], pipeline[:-1], strict=True):
        for name in vars(other) if hasattr(other, "fit") and not isinstance(scaler, SimpleImputer) else ():
            assert_same(getattr(step, name), getattr(other, name))
    assert found.model.decision_function(X).tobytes() == pipeline.decision_function(X).tobytes()
    np.testing.assert_array_equal(found.model.predict(X), pipeline.predict(X))
    assert found.model.fit(X, y)[-1].planes_ == pipeline.fit(X, y)[-1].planes_


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("output", [None, "pandas"])
def test_several_steps(path, output):
    """An imputer that leaves out an empty feature, two scalers, and frames between them."""
    learner = make("MultiHyperplaneClassifier", {"n_planes": 2, "n_estimators": 2})
    X, y = some_rows(learner, 0, labels="text")
    X = np.c_[gappy(X), np.full(len(X), np.nan)]
    X = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(SimpleImputer(), None, StandardScaler(), MinMaxScaler(), learner)
    pipeline.set_output(transform=output).fit(X, y)
    polyplane.save(pipeline, path)
    loaded = polyplane.load(path)
    assert_same_pipeline(loaded, pipeline)
    assert loaded.n_features_in_ == 4
    assert loaded[-1].n_features_in_ == 3
    assert loaded.predict_proba(X).tobytes() == pipeline.predict_proba(X).tobytes()


def test_gaps_in_what_a_scaler_saw(path):
    """The number of rows seen is then one for each feature."""
    learner = make("PegasosSVC", {})
    X, y = some_rows(learner, 0)
    pipeline = make_pipeline(StandardScaler(), SimpleImputer(), learner).fit(gappy(X), y)
    assert pipeline[0].n_samples_seen_.shape == (3,)
    polyplane.save(pipeline, path)
    loaded = polyplane.load(path)
    assert_same(loaded[0].n_samples_seen_, pipeline[0].n_samples_seen_)
    assert loaded.decision_function(gappy(X)).tobytes() == pipeline.decision_function(gappy(X)).tobytes()


def test_a_table_classifier_may_be_the_last_step(path):
    X, y = some_rows(make("PegasosSVC", {}), 0)
    pipeline = make_pipeline(StandardScaler(), polyplane.TableClassifier(**QUICK)).fit(X, y)
    polyplane.save(pipeline, path)
    assert polyplane.load(path).predict_proba(X).tobytes() == pipeline.predict_proba(X).tobytes()


def test_unscaled_planes_are_the_same(path):
    X, y = some_rows(make("PegasosSVC", {}), 0)
    pipeline = make_pipeline(RobustScaler(), make("PegasosSVC", {})).fit(X, y)
    polyplane.save(pipeline, path)
    assert polyplane.Model.of(polyplane.load(path)).flat().planes == polyplane.Model.of(pipeline).flat().planes


class TestRefusal:
    @pytest.mark.parametrize(
        ("steps", "message"),
        [
            ([PCA(2)], r"The step 'pca' of the pipeline, a PCA, cannot be saved; StandardScaler, .* SimpleImputer can"),
            (
                [SimpleImputer(add_indicator=True)],
                "'simpleimputer' of the pipeline cannot be saved: a SimpleImputer must",
            ),
            (
                [SimpleImputer(missing_values=-1)],
                "'simpleimputer' of the pipeline cannot be saved: a SimpleImputer must",
            ),
            ([make_pipeline(StandardScaler())], "The step 'pipeline' of the pipeline, a Pipeline, cannot be saved"),
        ],
    )
    def test_of_other_steps(self, tmp_path, steps, message):
        X, y = some_rows(make("PegasosSVC", {}), 0)
        pipeline = make_pipeline(*steps, make("PegasosSVC", {})).fit(gappy(X)[1:7], y[1:7])
        with pytest.raises(TypeError, match=message):
            polyplane.save(pipeline, tmp_path / "m")
        assert list(tmp_path.iterdir()) == []

    def test_of_another_last_step(self, tmp_path):
        X, y = some_rows(make("PegasosSVC", {}), 0)
        message = "The last step of the pipeline, 'logisticregression', must be an estimator of Polyplane, not a Logis"
        with pytest.raises(TypeError, match=message):
            polyplane.save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), tmp_path / "m")
        pipeline = make_pipeline(StandardScaler(), make("PegasosSVC", {}))
        with pytest.raises(NotFittedError):
            polyplane.save(pipeline, tmp_path / "m")
        pipeline.fit(X, y).set_params(pegasossvc__alpha=-1.0)
        with pytest.raises(ValueError, match="The 'alpha' parameter"):
            polyplane.save(pipeline, tmp_path / "m")

    def test_of_parameters_that_do_not_fit_what_was_learned(self, tmp_path):
        X, y = some_rows(make("PegasosSVC", {}), 0)
        pipeline = make_pipeline(StandardScaler(with_std=False), make("PegasosSVC", {})).fit(X, y)
        pipeline.set_params(standardscaler__with_std=True)
        with pytest.raises(ValueError, match=r"cannot be saved: the file has an invalid value for steps\.0\."):
            polyplane.save(pipeline, tmp_path / "m")

    @pytest.mark.parametrize("search", ["GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "PlaneSearchCV"])
    def test_of_searches(self, tmp_path, search):
        from sklearn.experimental import enable_halving_search_cv  # noqa: F401
        from sklearn.model_selection import HalvingGridSearchCV

        machine, grid = make("PegasosSVC", {}), {"alpha": [0.01, 0.1]}
        searches = {
            "GridSearchCV": lambda: GridSearchCV(machine, grid, cv=2),
            "RandomizedSearchCV": lambda: RandomizedSearchCV(machine, grid, n_iter=2, cv=2),
            "HalvingGridSearchCV": lambda: HalvingGridSearchCV(machine, grid, cv=2),
            "PlaneSearchCV": lambda: polyplane.PlaneSearchCV(machine, grid, cv=2),
        }
        X, y = some_rows(machine, 0)
        model = searches[search]()
        for found in (model, model.fit(X, y)):
            with pytest.raises(TypeError, match=f"A {search} cannot be saved: save its best_estimator_"):
                polyplane.save(found, tmp_path / "m")
        polyplane.save(model.best_estimator_, tmp_path / "m")


@pytest.fixture(scope="module")
def saved(path):
    X, y = some_rows(make("PegasosSVC", {}), 0)
    steps = SimpleImputer(), StandardScaler(), MinMaxScaler(), RobustScaler(), make("PegasosSVC", {})
    polyplane.save(make_pipeline(*steps).fit(gappy(X), y), path)
    return path.read_bytes()


class TestForgery:
    @pytest.mark.parametrize(
        ("keys", "value", "message"),
        [
            (["last", "class"], "Pipeline", "names an unknown learner, 'Pipeline'"),
            (["last"], None, "invalid value for last"),
            (["steps"], None, "invalid value for steps"),
            (["steps", 0], 7, "invalid names of steps"),
            (["steps", 0, "name"], "standardscaler", "invalid names of steps"),
            (["steps", 0, "name"], "a__b", "invalid names of steps"),
            (["steps", 0, "name"], 3, "invalid names of steps"),
            (["steps", 1, "step"], "FunctionTransformer", "names an unknown step, 'FunctionTransformer'"),
            (["steps", 1, "step"], ["x"], "names an unknown step"),
            (["steps", 1, "step"], "RobustScaler", "invalid value for steps.1"),
            (["steps", 1, "parameters", "func"], "os.system", "the parameter 'func', which StandardScaler does not"),
            (["steps", 1, "parameters", "with_mean"], "x", "The 'with_mean' parameter"),
            (["steps", 1, "fitted", "mean_"], None, "invalid value for steps.1.mean_"),
            (["steps", 1, "fitted", "mean_"], {"array": "planes.coef"}, "invalid value for steps.1.mean_"),
            (["steps", 1, "fitted", "var_"], {"array": "steps.1.mean_"}, "its array is used twice"),
            (["steps", 1, "fitted", "n_samples_seen_"], -1, "invalid value for steps.1.n_samples_seen_"),
            (["steps", 1, "fitted", "n_samples_seen_"], "x", "invalid value for steps.1.n_samples_seen_"),
            (["steps", 1, "fitted", "n_samples_seen_"], {"tuple": [1, {"tuple": []}]}, "steps.1.n_samples_seen_"),
            (["steps", 1, "fitted", "__class__"], 1, "invalid value for steps.1"),
            (["steps", 1, "output"], "os", "invalid value for steps.1"),
            (["steps", 1, "feature_names"], ["a"], "invalid feature names"),
            (["steps", 0, "dtype"], "object", "invalid value for steps.0"),
            (["steps", 0, "parameters", "missing_values"], 0, "invalid value for steps.0"),
            (["steps", 0, "parameters", "fill_value"], {"dict": []}, "invalid value for steps.0"),
            (["steps", 2, "parameters", "feature_range"], {"tuple": []}, "invalid value for steps.2"),
            (["steps", 2, "parameters", "feature_range"], {"tuple": [1, 0]}, "contains an invalid model"),
            (["steps", 2, "parameters", "feature_range"], {"tuple": [0, 2**70]}, "invalid value for steps.2"),
            (["steps", 3, "parameters", "quantile_range"], {"tuple": ["a", "b"]}, "invalid value for steps.3"),
            (["verbose"], "x", "invalid value for steps"),
        ],
    )
    def test_of_one_value(self, path, saved, keys, value, message):
        header, description, data = parts(saved)
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, replaced(description, ["estimator", *keys], value), data))

    def test_of_the_number_of_features(self, path, saved):
        """A scaler without arrays cannot ask for more features than the planes have."""
        header, description, data = parts(saved)
        start, stop = header["steps.0.statistics_"]["data_offsets"]
        forged = data[:start] + np.array([1.0, np.nan, 1.0]).tobytes() + data[stop:]
        with pytest.raises(ModelFileError, match=r"invalid value for steps\.0"):
            reload(path, assembled(header, description, forged))

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        pick=st.integers(0, 10**6),
        value=st.sampled_from(
            [None, -1, 7, 1e308, "x", [], {}, {"array": "planes.coef"}, True, [0.5], 2**70, {"a": 1}]
        ),
    )
    def test_of_any_value_is_refused_or_harmless(self, path, saved, pick, value):
        header, description, data = parts(saved)
        keys = list(places(description))
        forged = replaced(description, keys[pick % len(keys)], value)
        assume(forged != description)
        with contextlib.suppress(ModelFileError):
            model = reload(path, assembled(header, forged, data))
            assert model.predict(np.ones((2, 3))).shape == (2,)
