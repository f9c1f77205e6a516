"""Model files: the same model, to the last bit."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import polyplane
from polyplane import serving
from polyplane.engine.data import FeatureMoments
from polyplane.engine.run import Limits
from polyplane.explain.geometry import simplify
from polyplane.learners import LEARNERS, find_learner
from polyplane.loading import read_model
from tests.models import (
    KINDS,
    LABELS,
    METADATA,
    assert_same,
    assert_same_model,
    fitted,
    make,
    model_with_everything,
    some_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Each way to train has a state of its own.
WAYS = [
    ("PegasosSVC", {}),
    ("PegasosSVC", {"average": False, "early_stopping": True}),
    ("ConvexPolytopeClassifier", {"n_planes": 3}),
    ("ConvexPolytopeClassifier", {"n_planes": 2, "early_stopping": True, "average": False}),
    ("CuttingPlaneSVC", {"tol": None}),
    ("CuttingPlaneSVC", {"multi_class": "ovr", "warm_start": True, "tol": None, "max_iter": 30}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "alpha": 1e-3}),
    ("MultiHyperplaneClassifier", {"early_stopping": True, "n_planes": 2}),
    ("MultiHyperplaneClassifier", {"loss": "hinge", "n_planes": 2}),
    ("AdaptiveMultiHyperplaneClassifier", {"alpha": np.float64(1e-2), "prune_every": 20}),
    ("AdaptiveMultiHyperplaneClassifier", {"growth": 0.0, "assignment": "epoch", "n_planes": 2}),
    ("AdaptiveMultiHyperplaneClassifier", {"assignment": 2, "prune_every": 20, "warm_start": True}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "n_estimators": 3}),
    ("MultiHyperplaneClassifier", {"n_planes": 1, "n_estimators": 3}),
    ("PolyceptronClassifier", {}),
    ("PolyceptronClassifier", {"mode": "online", "average": True, "tol": None}),
    ("PolyhedralMixtureClassifier", {"gamma": np.float32(0.7)}),
    ("PolyhedralMixtureClassifier", {"gating": "hard", "standardize": False}),
    ("SuccessiveLPClassifier", {}),
    ("WorstCasePolytopeClassifier", {"n_planes": 3}),
    ("WorstCasePolytopeClassifier", {"n_planes": 2, "average": False, "warm_start": True}),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.safetensors"


@pytest.fixture(scope="module")
def small():
    return model_with_everything()


@pytest.fixture(scope="module")
def saved(small, path):
    polyplane.save(small, path, metadata=METADATA)
    return path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model(kind, tmp_path):
    """The same estimator to the bit, the same file when it is saved again, and a Model that predicts the same."""
    model, X = fitted(kind)
    model = getattr(model, "best_estimator_", model)
    polyplane.save(model, tmp_path / "model")
    loaded = polyplane.load(tmp_path / "model")
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    polyplane.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    served = serving.load(tmp_path / "model")
    assert served.predict(X).tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(served.decision_function(X), model.decision_function(X), rtol=1e-9, atol=1e-9)
    assert served.has_probabilities == hasattr(model, "predict_proba")


class TestRoundTrip:
    def test_all_learners_are_tried(self):
        assert {name for name, _ in WAYS} == set(LEARNERS)

    @pytest.mark.parametrize(("name", "params"), WAYS)
    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        seed=st.integers(0, 1000),
        dtype=st.sampled_from([np.float32, np.float64]),
        labels=st.sampled_from(list(LABELS)),
        as_sparse=st.booleans(),
        generator=st.booleans(),
    )
    def test_fitted_loaded_and_trained_on(self, path, name, params, seed, dtype, labels, as_sparse, generator):
        machine = make(name, params | {"warm_start": True})
        if generator and hasattr(machine, "random_state"):
            machine.set_params(random_state=np.random.RandomState(seed))
        X, y = some_rows(machine, seed, dtype, labels, as_sparse)
        machine.fit(X, y)
        polyplane.save(machine, path)
        loaded = polyplane.load(path)
        assert_same_model(loaded, machine)
        np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
        assert loaded.decision_function(X).tobytes() == machine.decision_function(X).tobytes()
        assert loaded.fit(X, y).planes_ == machine.fit(X, y).planes_
        if hasattr(machine, "partial_fit"):
            assert loaded.partial_fit(X[:20], y[:20]).planes_ == machine.partial_fit(X[:20], y[:20]).planes_

    @pytest.mark.parametrize("name", [name for name in LEARNERS if find_learner(name)._declaration.streams])
    def test_a_stream_goes_on_in_another_process_as_in_this_one(self, path, name):
        machine = make(name, {})
        X, y = some_rows(machine, 1)
        machine.partial_fit(X[:25], y[:25], classes=np.unique(y))
        for batch in (slice(25, 40), slice(40, 60)):
            polyplane.save(machine, path)
            loaded = polyplane.load(path)
            machine.partial_fit(X[batch], y[batch])
            loaded.partial_fit(X[batch], y[batch])
            assert loaded.planes_ == machine.planes_
            assert loaded.n_iter_ == machine.n_iter_

    def test_cuts_are_kept_for_another_c(self, path):
        """Saved with its cuts, the SVM certifies a new C as quickly as if it had never left memory."""
        X, y = some_rows(polyplane.CuttingPlaneSVC(), 0)
        machine = polyplane.CuttingPlaneSVC(C=0.1, tol=1e-4, warm_start=True).fit(X, y)
        polyplane.save(machine, path)
        loaded = polyplane.load(path)
        machine.set_params(C=0.2).fit(X, y)
        loaded.set_params(C=0.2).fit(X, y)
        assert loaded.planes_ == machine.planes_
        assert loaded.n_iter_ == machine.n_iter_ < polyplane.CuttingPlaneSVC(C=0.2, tol=1e-4).fit(X, y).n_iter_

    @pytest.mark.parametrize(
        "name", ["CuttingPlaneSVC", "MultiHyperplaneClassifier", "PolyceptronClassifier", "PolyhedralMixtureClassifier"]
    )
    def test_arrays_of_other_libraries_come_home(self, path, name, monkeypatch):
        xp = pytest.importorskip("array_api_strict")
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
        machine = make(name, {"n_planes": 2, "tol": None})
        X, y = some_rows(machine, 0)
        with config_context(array_api_dispatch=True):
            machine.fit(xp.asarray(X), y)
        polyplane.save(machine, path)
        loaded = polyplane.load(path)
        assert not isinstance(machine.planes_.coef, np.ndarray)
        assert loaded.planes_ == machine.planes_.to_numpy()
        if hasattr(loaded, "partial_fit"):
            assert loaded.partial_fit(X[:20], y[:20]).planes_ == machine.to_numpy().partial_fit(X[:20], y[:20]).planes_

    def test_names_weights_generators_and_metadata(self, small, saved, path):
        found = read_model(path)
        assert_same_model(found.model, small)
        assert found.model.feature_names_in_.tolist() == ["width", "höhe", 'a "b"']
        assert list(found.metadata) == ["note", "n", "rate", "centre"]
        assert_same(found.metadata["centre"], np.arange(3.0))
        assert (found.format, found.version, found.size) == (3, polyplane.__version__, len(saved))
        assert found.model.random_state.randint(2**31) == pickle.loads(pickle.dumps(small)).random_state.randint(2**31)

    @pytest.mark.parametrize("as_sparse", [False, True])
    def test_a_training_on_scaled_rows_goes_on_on_scaled_rows(self, path, as_sparse):
        machine = make("ConvexPolytopeClassifier", {"n_planes": 2})
        X, y = some_rows(machine, 0, as_sparse=as_sparse)
        moments = FeatureMoments()
        moments.add(X)
        machine._fit(X, y, None, Limits(), moments.standard())
        polyplane.save(machine, path)
        loaded = polyplane.load(path)
        assert_same_model(loaded, machine)
        assert loaded.partial_fit(X[:20], y[:20]).planes_ == machine.partial_fit(X[:20], y[:20]).planes_

    @pytest.mark.parametrize("change", [{"n_planes": 3}, {"alpha": 1.0}, {"enclosed": "no"}])
    def test_parameters_that_were_changed_after_training_are_known_as_such(self, small, path, change):
        machine = pickle.loads(pickle.dumps(small)).set_params(warm_start=True, **change)
        polyplane.save(machine, path)
        loaded = polyplane.load(path)
        assert_same_model(loaded, machine)
        X = pd.DataFrame(np.eye(3)[:2], columns=small.feature_names_in_)
        for model in (machine, loaded):
            with pytest.raises(ValueError, match=r"Training started with .* and cannot continue with"):
                model.fit(X, ["no", "yes"])

    def test_the_same_model_gives_the_same_bytes(self, small, saved, tmp_path):
        polyplane.save(small, tmp_path / "m", metadata=METADATA)
        assert (tmp_path / "m").read_bytes() == saved

    def test_other_programs_can_read_it(self, small, saved, path):
        from safetensors import safe_open

        with safe_open(path, framework="np") as file:
            assert json.loads(file.metadata()["polyplane"])["estimator"]["class"] == "ConvexPolytopeClassifier"
            np.testing.assert_array_equal(file.get_tensor("planes.coef"), small.planes_.coef)
            assert file.get_tensor("fitted.assignments_").dtype == np.int8

    def test_a_machine_without_a_state_predicts(self, small, tmp_path):
        machine = pickle.loads(pickle.dumps(small))
        del machine._state, machine._trained_by, machine.history_, machine.n_iter_
        polyplane.save(machine, tmp_path / "m")
        assert_same_model(polyplane.load(tmp_path / "m"), machine)

    def test_planes_may_be_replaced_by_fewer(self, small, tmp_path):
        machine = pickle.loads(pickle.dumps(small))
        machine.planes_ = machine.planes_.prune(np.array([True, False, True, True]))
        polyplane.save(machine, tmp_path / "m")
        loaded = polyplane.load(tmp_path / "m")
        assert loaded.planes_ == machine.planes_
        assert not hasattr(loaded, "plane_counts_")  # it would speak of other planes
        assert not hasattr(loaded, "assignments_")


class TestRefusal:
    def test_of_what_is_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            polyplane.save(polyplane.PegasosSVC(), tmp_path / "m")
        assert list(tmp_path.iterdir()) == []

    def test_of_what_is_not_ours(self, small, tmp_path):
        class Mine(polyplane.PegasosSVC):
            pass

        for other in (small.planes_, Mine(), StandardScaler(), None):
            with pytest.raises(TypeError, match=f"not a {type(other).__name__}"):
                polyplane.save(other, tmp_path / "m")

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"alpha": -1.0}, "The 'alpha' parameter"),
            ({"random_state": np.random.RandomState(np.random.PCG64(0))}, "RandomState over PCG64"),
            ({"class_weight": {"no": 2.0, "yes": [None]}}, "parameters.class_weight.1 is a list"),
            ({"enclosed": {1}}, "parameters.enclosed is a set"),
            ({"enclosed": "perhaps"}, "enclosed='perhaps' is not one of the labels"),
        ],
    )
    def test_of_parameters_that_no_file_can_hold(self, small, tmp_path, params, message):
        machine = pickle.loads(pickle.dumps(small)).set_params(**params)
        with pytest.raises(ValueError, match=message):
            polyplane.save(machine, tmp_path / "m")
        assert list(tmp_path.iterdir()) == []

    def test_of_labels_and_metadata_that_no_file_can_hold(self, small, tmp_path):
        machine = make("PegasosSVC", {}).fit([[0.0], [1.0]], np.array(["2020", "2021"], dtype="datetime64[Y]"))
        with pytest.raises(ValueError, match="labels are datetime64"):
            polyplane.save(machine, tmp_path / "m")
        with pytest.raises(ValueError, match=r"metadata\.x is a set"):
            polyplane.save(small, tmp_path / "m", metadata={"x": {1}})
        with pytest.raises(TypeError, match="keys of metadata"):
            polyplane.save(small, tmp_path / "m", metadata={1: "x"})


def test_members_may_be_replaced(tmp_path):
    """By fewer planes, or by one of the members."""
    (committee, X), path = fitted("committee"), tmp_path / "model"
    fewer = [simplify(member.replace(pooling="max"), X) for member in committee.planes_.members]
    for planes in (polyplane.PlaneSet.of_members(fewer), fewer[0]):
        polyplane.save(committee, path)
        changed = polyplane.load(path)
        changed.planes_ = planes
        polyplane.save(changed, path)
        assert polyplane.load(path).planes_ == planes
