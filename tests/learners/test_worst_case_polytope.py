"""The worst-case-margin form of the Convex Polytope Machine."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from polyplane import WorstCasePolytopeClassifier
from tests.reference.worst_case_polytope import sgd_train

ALPHA, N_EPOCHS = 1 / 97.3, 30


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        400, 12, n_informative=6, n_clusters_per_class=3, flip_y=0.02, class_sep=0.7, random_state=0
    )
    X[np.abs(X) < 0.5] = 0.0
    return X, y, np.random.default_rng(1).integers(2, 16, len(y)) / 8


def reference(X, positive, weight=None, alpha=ALPHA, longest_alone=True):
    """The planes after each epoch, over the orders that an estimator of random_state=3 uses; offsets last."""
    seed = np.random.RandomState(3).randint(2**31)
    orders = [np.random.default_rng([seed, epoch]).permutation(len(X)) for epoch in range(N_EPOCHS)]
    with_bias = np.column_stack([X, np.ones(len(X))])
    return sgd_train(with_bias, positive, orders, 5, alpha, weight, longest_alone)


def machine_of(n_planes=5, **params):
    params = {"alpha": ALPHA, "max_iter": N_EPOCHS, "average": False, "random_state": 3} | params
    return WorstCasePolytopeClassifier(n_planes, **params)


def planes_of(machine, c):
    return np.column_stack(machine.planes_.of(c))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("alpha", "weighted"), [(ALPHA, False), (ALPHA, True), (1e-4, False)])
def test_the_kernel_is_the_sub_gradient_method(problem, container, alpha, weighted):
    """12,000 visits on each side."""
    X, y, weight = problem
    weight = weight if weighted else None
    machine = machine_of(alpha=alpha).fit(container(X), y, sample_weight=weight)
    for c in (0, 1):
        expected = reference(X, y == c, weight, alpha)[-1]
        np.testing.assert_allclose(planes_of(machine, c), expected, rtol=0, atol=1e-9)


def test_the_total_margin_with_the_same_steps(problem):
    """The form that the comparison of the two regularisers needs: all planes are shrunk."""
    X, y, _ = problem

    class Total(WorstCasePolytopeClassifier):
        def _method(self, classes):
            return replace(super()._method(classes), longest_alone=False)

    machine = Total(**machine_of().get_params()).fit(X, y)
    for c in (0, 1):
        expected = reference(X, y == c, longest_alone=False)[-1]
        np.testing.assert_allclose(planes_of(machine, c), expected, rtol=0, atol=1e-9)


def test_the_average_weighs_late_epochs_most(problem):
    X, y, _ = problem
    mean = 0.0
    for epoch, planes in enumerate(reference(X, y == 1)):
        mean = mean + 4.0 / (epoch + 4.0) * (planes - mean)
    np.testing.assert_allclose(planes_of(machine_of(average=True).fit(X, y), 1), mean, rtol=0, atol=1e-9)


def test_only_the_longest_plane_is_held_back(problem):
    """Planes of the worst-case form crowd at the largest norm; the total margin shortens every one of them."""
    X, y, _ = problem
    worst, total = (np.linalg.norm(reference(X, y == 1, longest_alone=alone)[-1], axis=1) for alone in (True, False))
    assert np.sum(worst > 0.95 * worst.max()) >= 3
    assert worst.sum() > total.sum()


def test_weights_and_alpha_have_a_common_unit(problem):
    X, y, weight = problem
    once = machine_of().fit(X, y, sample_weight=weight)
    thrice = machine_of(alpha=3 * ALPHA).fit(X, y, sample_weight=3 * weight)
    np.testing.assert_allclose(thrice.coef_, once.coef_, atol=1e-9)


def test_units_of_the_features_do_not_matter(problem):
    """Without an offset, rows twice as long and four times alpha give planes half as long."""
    X, y, _ = problem
    once = machine_of(fit_intercept=False).fit(X, y)
    twice = machine_of(fit_intercept=False, alpha=4 * ALPHA).fit(2 * X, y)
    np.testing.assert_allclose(2 * twice.coef_, once.coef_, atol=1e-9)


def test_one_plane_is_the_linear_svm(problem):
    """With one side there is one margin: the optimum is that of the SVM, within 1 %."""
    X, y, _ = problem
    sign = 2.0 * y - 1

    def objective(w, b):
        return ALPHA / 2 * (w @ w + b * b) + np.maximum(0, 1 - sign * (X @ w + b)).mean()

    peer = LinearSVC(C=1 / (ALPHA * len(y)), loss="hinge", tol=1e-8, max_iter=1_000_000).fit(X, y)
    machine = machine_of(1, enclosed=0, average=True, max_iter=300).fit(X, y)
    optimum = objective(peer.coef_[0], peer.intercept_[0])
    assert optimum <= objective(machine.coef_[0], machine.intercept_[0]) + 1e-9 < optimum * 1.01


def test_a_polytope_encloses_the_label_that_enclosed_names():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 2))
    y = np.where((np.abs(X) < 1).all(axis=1), "in", "out")
    machine = WorstCasePolytopeClassifier(8, enclosed="in", alpha=1e-3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(machine.planes_.of(0)[0], np.zeros((1, 2)))
    assert len(machine.planes_.of(1)[0]) == 8
    assert machine.score(X, y) > 0.95


def test_more_classes_are_for_a_wrapper():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        WorstCasePolytopeClassifier().fit(X, y)
    wrapped = OneVsOneClassifier(WorstCasePolytopeClassifier(4, random_state=0)).fit(X, y)
    assert wrapped.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"enclosed": "elsewhere"}, "is not one of the labels"),
        ({"alpha": 0.0}, "'alpha' parameter"),
        ({"n_planes": 0}, "'n_planes' parameter"),
        ({"average": 2}, "'average' parameter"),
    ],
)
def test_bad_parameters_are_named(problem, params, message):
    X, y, _ = problem
    with pytest.raises(ValueError, match=message):
        WorstCasePolytopeClassifier(**params).fit(X, y)
