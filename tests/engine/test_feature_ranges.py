"""Features of very different scales, far from 0, or out of range: undone where a learner can, warned of where not."""

import inspect
import os
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

import polyplane
from polyplane import (
    AdaptiveMultiHyperplaneClassifier,
    ConvexPolytopeClassifier,
    MultiHyperplaneClassifier,
    PlaneSearchCV,
    SuccessiveLPClassifier,
    load,
    save,
)
from polyplane.engine.data import FeatureRanges

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PUBLIC = [getattr(polyplane, name) for name in polyplane.__all__]
LEARNERS = [getattr(polyplane, name) for name in polyplane.learners.LEARNERS]


def make(learner, **params):
    params = {"n_planes": 3, "max_iter": 20, "random_state": 0} | params
    return learner(**{name: value for name, value in params.items() if name in inspect.signature(learner).parameters})


def own_scaling(learner):
    return make(learner)._method(np.array([0, 1])).traits.own_scaling


MINDING = [learner for learner in LEARNERS if own_scaling(learner) != "standard"]
UNDOING = [learner for learner in LEARNERS if own_scaling(learner) != "none"]
AS_IS = {True: {"standardize": False}, False: {}}
STANDARDISING = [MultiHyperplaneClassifier, ConvexPolytopeClassifier]
UNSCALED = [learner for learner in LEARNERS if own_scaling(learner) == "none"]


def two_classes(load):
    X, y = load(return_X_y=True)
    return X[y < 2], y[y < 2]


def with_a_column_of_1e12():
    X, y = two_classes(load_iris)
    X[:, 2] *= 1e12
    return X, y


def heart():
    folder = os.environ.get("POLYPLANE_DATA")
    if not folder or not os.path.exists(f"{folder}/heart.npz"):
        pytest.skip("heart is not in the folder that POLYPLANE_DATA names")
    data = np.load(f"{folder}/heart.npz")
    return data["X_train"].astype(float), data["y_train"]


def words():
    rng = np.random.default_rng(0)
    counts = sparse.csr_matrix(rng.poisson(0.03, (400, 300)) * rng.geometric(0.3, (400, 300)))
    return TfidfTransformer().fit_transform(counts), rng.integers(0, 2, 400)


def one_hot():
    rng = np.random.default_rng(0)
    return OneHotEncoder().fit_transform(rng.geometric(0.05, (500, 3))), rng.integers(0, 2, 500)


WARNED = {
    "wine": (lambda: two_classes(load_wine), "12", "10"),
    "cancer": (lambda: two_classes(load_breast_cancer), "23", r"\d+"),
    "heart": (heart, "4", r"\d+"),
    "one column times 1e12": (with_a_column_of_1e12, "2", r"\d+"),
}
FINE = {
    "iris": lambda: two_classes(load_iris),
    "pixels": lambda: two_classes(load_digits),
    "one-hot": one_hot,
    "tf-idf": words,
    "standardised": lambda: (StandardScaler().fit_transform(two_classes(load_wine)[0]), two_classes(load_wine)[1]),
}


@pytest.mark.parametrize("learner", LEARNERS)
class TestScales:
    @pytest.mark.parametrize("name", WARNED)
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    def test_scales_that_differ_wildly_get_one_sentence(self, learner, name, container):
        made, large, small = WARNED[name]
        X, y = made()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make(learner, **AS_IS[learner in MINDING]).fit(container(X), y)
        said = [str(warning.message) for warning in caught if warning.category is UserWarning]
        if learner not in MINDING:
            assert said == []
            return
        assert len(said) == 1
        assert caught[0].filename == __file__
        pattern = rf"Feature {large} (reaches|spans) \S+ and feature {small} only \S+, .* with StandardScaler\.$"
        assert re.search(pattern, said[0]), said[0]

    @pytest.mark.parametrize("name", FINE)
    def test_pixels_words_and_codes_are_fine(self, learner, name):
        X, y = FINE[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            make(learner, max_iter=2).fit(X, y)

    def test_values_that_vanish_are_refused(self, learner):
        X, y = two_classes(load_iris)
        for small in (X.astype(np.float32) * np.float32(1e-22), sparse.csr_matrix(X * 1e-200)):
            with pytest.raises(ValueError, match=r"No value of X is larger than \S+, and the squares .* underflow"):
                make(learner).fit(small, y)


def test_features_are_called_by_their_names():
    X, y = load_wine(return_X_y=True, as_frame=True)
    with pytest.warns(UserWarning, match=r"^Feature 'proline' spans 1.4e\+03 and feature 'hue' only 1.23"):
        make(MultiHyperplaneClassifier, standardize=False).fit(X, y)


@pytest.mark.parametrize("learner", STANDARDISING)
class TestStandardize:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize(
        "rows",
        [lambda: load_wine(return_X_y=True), lambda: two_classes(load_breast_cancer), with_a_column_of_1e12],
        ids=["wine", "cancer", "one column times 1e12"],
    )
    def test_differing_scales_are_those_of_a_scaler(self, learner, rows, dtype):
        X, y = rows()
        X = X.astype(dtype)
        model = make(learner).fit(X, y)
        Z = StandardScaler().fit_transform(X.astype(float)).astype(dtype)
        scaled = make(learner, standardize=False).fit(Z, y)
        assert model.planes_.coef.dtype == dtype
        assert (model.predict(X) == scaled.predict(Z)).mean() > 0.99
        if dtype == np.float64:
            np.testing.assert_allclose(model.decision_function(X), scaled.decision_function(Z), rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(model.model_.decision_function(X), model.decision_function(X))

    def test_comparable_features_are_left_alone(self, learner):
        X, y = two_classes(load_digits)
        assert make(learner).fit(X, y).planes_ == make(learner, standardize=False).fit(X, y).planes_
        assert make(learner, standardize=True).fit(X, y).planes_ != make(learner).fit(X, y).planes_

    def test_sparse_rows_are_divided_by_their_largest_values(self, learner):
        X, y = load_digits(return_X_y=True)
        wide = X * np.where(np.arange(64) == 20, 1e6, 1.0)
        model = make(learner).fit(sparse.csr_matrix(wide), y)
        Z = sparse.csr_matrix(MaxAbsScaler().fit_transform(X))
        np.testing.assert_allclose(
            model.decision_function(wide), make(learner).fit(Z, y).decision_function(Z), rtol=1e-6, atol=1e-6
        )

    def test_rows_of_zero_weight_are_ignored(self, learner):
        X, y = two_classes(load_iris)
        far, weight = np.concatenate([X, X[:1] * [1, 1, 1, 1e9]]), np.append(np.ones(len(y)), 0.0)
        model = make(learner).fit(far, np.append(y, 0), weight)
        assert model.planes_ == make(learner).fit(X, y).planes_

    def test_training_goes_on_in_the_same_units(self, learner, tmp_path):
        X, y = load_wine(return_X_y=True)
        model = make(learner, warm_start=True).fit(X, y)
        save(model, tmp_path / "model")
        again = load(tmp_path / "model").fit(X, y)
        assert again.planes_ == model.fit(X, y).planes_
        assert again.score(X, y) > 0.98

    def test_a_stream_can_be_standardised_by_its_first_batch(self, learner):
        X, y = load_wine(return_X_y=True)
        parts = [(X[i::2], y[i::2]) for i in range(2)] * 10
        model = make(learner, standardize=True).fit_stream(parts)
        assert model.score(X, y) > 0.95


def test_searches_standardise_each_candidate_as_its_parameter_says():
    X, y = load_wine(return_X_y=True)
    space = {"standardize": ["auto", False], "n_planes": [1]}
    search = PlaneSearchCV(MultiHyperplaneClassifier(max_iter=10), space, random_state=0, n_jobs=1).fit(X, y)
    assert search.best_params_["standardize"] == "auto"
    assert search.best_score_ > 0.95


@pytest.mark.parametrize("learner", [learner for learner in MINDING if learner._declaration.streams])
def test_a_stream_is_judged_by_its_first_batch(learner):
    X, y = two_classes(load_wine)
    parts = [(X[i::3], y[i::3]) for i in range(3)]
    for train in (lambda m: m.fit_stream(parts), lambda m: [m.partial_fit(*part, classes=[0, 1]) for part in parts]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(make(learner))
        assert [str(warning.message)[:10] for warning in caught] == ["Feature 12"]


@pytest.mark.parametrize("learner", UNSCALED)
def test_rows_that_training_cannot_see_are_warned_of(learner):
    X, y = two_classes(load_iris)
    with pytest.warns(UserWarning, match=r"Feature 0 lies about 1.01e\+03 and spans only 2.7, .* its distance from 0"):
        make(learner, standardize=False).fit(X + 1000, y)
    with pytest.warns(UserWarning, match=r"No value of X is larger than 7e-06, so the constant feature"):
        make(learner, standardize=False).fit(X * 1e-6, y)


HINGE = {"loss": "hinge"}
MACHINES = [*((learner, {}) for learner in UNDOING), (MultiHyperplaneClassifier, HINGE)]


@pytest.mark.parametrize(("learner", "how"), MACHINES)
class TestShiftsAndScalesAreUndone:
    """Features far from 0 for their range, or minute: before, float32 at 1e4 brought the margin loss to chance."""

    def rows(self):
        X = np.random.default_rng(0).normal(size=(400, 4))
        return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)

    @pytest.mark.parametrize(
        ("dtype", "shift", "factor"),
        [
            (np.float32, 1e4, 1.0),
            (np.float32, 1e5, 1.0),
            (np.float32, 0.0, 1e-10),
            (np.float32, 0.0, 1e14),
            (np.float64, 1e8, 1.0),
            (np.float64, -1e8, 1.0),
            (np.float64, 0.0, 1e-60),
        ],
    )
    def test_no_accuracy_is_lost(self, learner, how, dtype, shift, factor):
        X, y = self.rows()
        far = ((X + shift) * factor).astype(dtype)
        near = make(learner, **how).fit(X.astype(dtype), y)
        machine = make(learner, **how).fit(far, y)
        assert machine.coef_.dtype == dtype
        assert machine.score(far, y) >= near.score(X, y) - 0.02

    def test_streams_and_files_know_of_it(self, learner, how, tmp_path):
        if not learner._declaration.streams:
            pytest.skip("needs all rows at once")
        X, y = self.rows()
        far = (X + 1e4).astype(np.float32)
        parts = [(far[:200], y[:200]), (far[200:], y[200:])]
        machine = make(learner, **how).fit_stream(parts[:1], validation=parts[1])
        save(machine, tmp_path / "machine")
        again = load(tmp_path / "machine").partial_fit(*parts[1])
        assert again.planes_ == make(learner, **how).fit_stream(parts).planes_
        assert again.score(far, y) > 0.85


def test_rows_at_rest_are_not_copied():
    """Only rows that would lose digits are seen through a scaling."""
    X, y = two_classes(load_iris)
    for learner in (MultiHyperplaneClassifier, AdaptiveMultiHyperplaneClassifier, SuccessiveLPClassifier):
        assert make(learner).fit(X.astype(np.float32) + 100, y)._scaling is None
        assert make(learner).fit(X.astype(np.float32) + 10_000, y)._scaling is not None
        assert make(learner).fit(X + 10_000, y)._scaling is None


class TestFeatureRanges:
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
    def test_they_are_the_least_and_the_largest_values(self, container):
        X = np.random.default_rng(0).normal(size=(50, 4)) * (np.arange(4) > 0)
        X[:3] = 0.0
        found = FeatureRanges.of(container(X))
        np.testing.assert_array_equal(found, [X.min(axis=0), X.max(axis=0)])
        parts = FeatureRanges.union([FeatureRanges.of(container(X[:20])), FeatureRanges.of(container(X[20:]))])
        np.testing.assert_array_equal(parts, found)

    def test_the_extreme_value_is_named(self):
        X, y = two_classes(load_iris)
        X[7, 1] = -2e200
        with pytest.raises(ValueError, match=r"X contains -2e\+200, .* summed in float64: scale .* MaxAbsScaler\.$"):
            MultiHyperplaneClassifier().fit(X, y)
        X[7, 1] = 3e20
        with pytest.raises(ValueError, match=r"X contains 3e\+20, .* MaxAbsScaler, or convert X to float64\.$"):
            MultiHyperplaneClassifier().fit(pd.DataFrame(X.astype(np.float32)), y)

    def test_constant_features_are_no_scale(self):
        assert FeatureRanges(np.ones(3), np.ones(3)).complaint("none", str) is None
        assert FeatureRanges(np.zeros(3), np.zeros(3)).nearer(np.dtype(np.float32)) is None
