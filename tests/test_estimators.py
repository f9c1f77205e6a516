"""scikit-learn's own checks over every public estimator."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import (
    check_methods_sample_order_invariance,
    check_methods_subset_invariance,
    parametrize_with_checks,
)
from threadpoolctl import threadpool_limits

import polyplane
from tests.models import QUICK

SGD_WEIGHTS = "the visits are random, so a weighted row and a repeated row lead to different (equally good) planes"

EXPECTED_FAILURES = {
    name: {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
    for name, reason in [
        ("AdaptiveMultiHyperplaneClassifier", SGD_WEIGHTS),
        ("ConvexPolytopeClassifier", SGD_WEIGHTS),
        ("MultiHyperplaneClassifier", SGD_WEIGHTS),
        ("PegasosSVC", SGD_WEIGHTS),
        ("RobustPlaneClassifier", SGD_WEIGHTS),
        ("TableClassifier", SGD_WEIGHTS),
        ("WorstCasePolytopeClassifier", SGD_WEIGHTS),
    ]
}

#: What takes long by its defaults is checked in a smaller form.
SMALL = {
    "ConvexPolytopeClassifier": {"n_planes": 4, "alpha": 1e-2, "max_iter": 50},
    # With a smaller alpha, the last steps decide about one row of 50 in the check of class weights, also if no row is
    # skipped: nearly all rows are weightless there.
    "PegasosSVC": {"alpha": 1.0},
    "PlaneSearchCV": {"estimator": polyplane.CuttingPlaneSVC(tol=0.5), "param_distributions": {"C": [1.0, 0.1]}},
    "RobustPlaneClassifier": {"eps": 0.01, "n_planes": 1},
    "TableClassifier": {"n_estimators": 3, "preparation": "standard", "n_planes": 2, "max_iter": 10},
}

ESTIMATORS = [
    value
    for value in (getattr(polyplane, name) for name in polyplane.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


@parametrize_with_checks(
    [estimator(**SMALL.get(estimator.__name__, {})) for estimator in ESTIMATORS],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_methods_subset_invariance, check_methods_sample_order_invariance])
@pytest.mark.parametrize("name", ["TableClassifier", "MultiHyperplaneClassifier", "ConvexPolytopeClassifier"])
@pytest.mark.filterwarnings("default")
def test_scores_of_a_row_do_not_depend_on_its_batch(name, check):
    """Also if BLAS, which divides the products of large batches otherwise than those of small ones, has two threads."""
    with threadpool_limits(2, user_api="blas"):
        check(name, getattr(polyplane, name)(**SMALL.get(name, {})))


def test_a_weighted_row_is_a_repeated_row_in_the_long_run():
    """Where there is one optimum, both ways lead to it: on average 0.013 apart, in scores that spread by 1.1."""
    X, y = make_classification(300, 6, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    times = np.random.default_rng(0).integers(0, 4, 300)
    svm = polyplane.PegasosSVC(alpha=1e-2, max_iter=500, tol=None, random_state=0)
    weighted = svm.fit(X, y, times).decision_function(X)
    repeated = svm.fit(X.repeat(times, axis=0), y.repeat(times)).decision_function(X)
    assert np.std(weighted - repeated) < 0.05 * np.std(repeated)


LABELS = [*["a", "b"] * 9, "a", None]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(lambda: LABELS, id="a list"),
        pytest.param(lambda: [None, *LABELS[:-1]], id="first"),
        pytest.param(lambda: np.array([*LABELS[:-1], np.nan], dtype=object), id="NaN"),
        pytest.param(lambda: [*LABELS[:-1], np.nan], id="NaN in a list"),
        pytest.param(lambda: pytest.importorskip("pandas").array(LABELS, dtype="string"), id="pandas' NA"),
        pytest.param(lambda: pytest.importorskip("pandas").Series(LABELS, dtype="category"), id="pandas' category"),
        pytest.param(lambda: np.array(["2024-05-31", "2024-06-01"] * 9 + ["NaT"] * 2, dtype="M8[D]"), id="dates"),
        pytest.param(lambda: pytest.importorskip("polars").Series(LABELS), id="Polars"),
        pytest.param(lambda: pytest.importorskip("pyarrow").array(LABELS), id="Arrow"),
        pytest.param(lambda: pytest.importorskip("pyarrow").chunked_array([LABELS]), id="Arrow, in chunks"),
    ],
)
@pytest.mark.parametrize("name", ["PegasosSVC", "MultiHyperplaneClassifier", "TableClassifier", "fit_stream"])
def test_missing_labels_are_refused_in_the_words_of_scikit_learn(name, labels):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), labels()
    fit = polyplane.PegasosSVC().fit_stream if name == "fit_stream" else getattr(polyplane, name)().fit
    with pytest.raises(ValueError, match=r"Input y contains NaN\.$"):
        fit([(X, y)]) if name == "fit_stream" else fit(X, y)


@pytest.mark.parametrize("kind", [list, tuple, lambda labels: np.array(labels, dtype=object)])
def test_zero_characters_at_the_end_of_labels_are_kept(kind):
    """NumPy's strings lose them, and two classes would be one."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), kind(["a", "a\0", "b"] * 10)
    for model in (polyplane.PegasosSVC(max_iter=2), polyplane.TableClassifier(**QUICK)):
        assert model.fit(X, y).classes_.tolist() == ["a", "a\0", "b"]
    assert polyplane.PegasosSVC().partial_fit(X, y, classes=["a", "a\0", "b"]).classes_.tolist() == ["a", "a\0", "b"]


def test_no_expected_failure_is_out_of_date():
    names = {estimator.__name__ for estimator in ESTIMATORS}
    assert set(EXPECTED_FAILURES) <= names
