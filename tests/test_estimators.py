"""scikit-learn's own checks over every public estimator."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import polyplane

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
        ("WorstCasePolytopeClassifier", SGD_WEIGHTS),
    ]
}

ESTIMATORS = [
    value
    for value in (getattr(polyplane, name) for name in polyplane.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


@parametrize_with_checks(
    [estimator() for estimator in ESTIMATORS],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def test_no_expected_failure_is_out_of_date():
    names = {estimator.__name__ for estimator in ESTIMATORS}
    assert set(EXPECTED_FAILURES) <= names
