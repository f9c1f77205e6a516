"""The joint convex polytope machine, which `ConvexPolytopeClassifier` trains by default."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification, make_gaussian_quantiles, make_moons
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split

from polyplane import ConvexPolytopeClassifier
from polyplane.datasets import make_checkerboard
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners.convex_polytope import JointPolytope
from tests.reference.joint_polytope import joint_train


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        400, 12, n_informative=6, n_classes=4, n_clusters_per_class=2, class_sep=0.7, random_state=0
    )
    X = np.round(X * 16) / 16  # sums of such numbers are exact: ties between planes are ties in any order of summation
    X[np.abs(X) < 0.5] = 0.0
    return X, y, np.random.default_rng(1).integers(2, 16, len(y)) / 8


def columns(planes):
    """Planes (n_classes, n_planes, n_features + 1) as the state has them: coefficients by feature, and offsets."""
    flat = planes.reshape(-1, planes.shape[2])
    return np.ascontiguousarray(flat[:, :-1].T), flat[:, -1].copy()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, "csr64"])
@pytest.mark.parametrize("min_entropy", [0.0, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_backoff_the_kernel_is_the_box(problem, container, min_entropy, weighted):
    X, y, weight = problem
    weight = weight if weighted else np.ones(len(y))
    matrix = X
    if container == "csr64":
        matrix = sparse.csr_array(X)
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    elif container is not np.asarray:
        matrix = container(X)
    n_planes, alpha, n_epochs = 5, 1 / 97.3, 30
    data = Data(matrix, y, weight, np.arange(len(y)), 4)
    method = JointPolytope(n_planes, alpha, min_entropy=min_entropy, backoff=0, average=False)
    state = method.start(data, seed=3)
    start = np.column_stack([state.coef.T, state.intercept]).reshape(4, n_planes, -1) / state.margin
    after = Run(method, state).go([data] * n_epochs).state
    orders = [np.random.default_rng([3, epoch]).permutation(len(y)) for epoch in range(n_epochs)]
    X, nats = np.column_stack([X, np.ones(len(y))]), min_entropy * math.log(n_planes)
    W, losses = joint_train(X, y, orders, start, alpha, state.t, nats, weight)
    coef, intercept = columns(W)
    np.testing.assert_allclose(after.coef / after.margin, coef, rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.intercept / after.margin, intercept, rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.loss, np.mean(losses[-len(y) :]), rtol=1e-9)


def test_the_comparison_uses_all_planes(problem):
    """It would be void if all rows went to one plane of their class."""
    X, y, _ = problem
    for min_entropy in (0.0, 0.9):
        machine = ConvexPolytopeClassifier(5, alpha=1e-2, max_iter=60, min_entropy=min_entropy, random_state=3).fit(
            X, y
        )
        shares = machine.plane_counts_.reshape(4, 5) / np.bincount(y)[:, None]
        entropies = -(shares * np.log(shares)).sum(axis=1)
        assert entropies.min() > 0.85 * math.log(5)


@pytest.mark.parametrize("n_features", [1, 3, 7])
def test_dense_and_sparse_rows_give_the_same_planes(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, n_features)) * (rng.random((150, n_features)) < 0.6)
    y = np.digitize(X.sum(axis=1), [-0.3, 0.3])
    machine = ConvexPolytopeClassifier(3, alpha=1e-2, max_iter=10, random_state=0)
    dense = machine.fit(X, y).planes_
    for matrix in (sparse.csr_matrix(X), sparse.csr_array(X), sparse.csc_matrix(X)):
        np.testing.assert_allclose(machine.fit(matrix, y).planes_.coef, dense.coef, atol=1e-9)


def test_float32_agrees_with_float64(problem):
    X, y, _ = problem
    machine = ConvexPolytopeClassifier(4, alpha=1e-1, max_iter=3, random_state=0)
    double, single = machine.fit(X, y).planes_, machine.fit(X.astype(np.float32), y).planes_
    assert single.coef.dtype == np.float32
    np.testing.assert_allclose(single.coef, double.coef, atol=2e-3)


def test_iris_as_it_comes():
    """Polytopes trained alone, each against the rest, had 68 % right; the bar is 95 %."""
    X, y = load_iris(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(ConvexPolytopeClassifier(random_state=0), X, y, cv=folds).mean() >= 0.95


@pytest.mark.parametrize(
    ("rows", "least"),
    [
        (make_moons(1500, noise=0.25, random_state=0), 0.92),
        (make_gaussian_quantiles(n_samples=1500, n_features=4, n_classes=3, random_state=0), 0.7),
    ],
)
def test_shapes_that_no_polytope_has(rows, least):
    """A single plane gets 84 and 40 % right, the paper's two polytopes 87 % of the moons."""
    X, y = rows
    machine = ConvexPolytopeClassifier(random_state=0).fit(X[:1000], y[:1000])
    assert machine.score(X[1000:], y[1000:]) > least


def test_backoff_changes_no_error():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    machine = ConvexPolytopeClassifier(4, alpha=1.0, random_state=0)
    for passes in (2, 10, 60):
        with_it, without = (
            np.mean([
                clone(machine).set_params(max_iter=passes, backoff=b, random_state=seed).fit(X_train, y_train).score(
                    X_test, y_test
                )
                for seed in range(3)
            ])
            for b in (31, 0)
        )  # fmt: skip
        assert with_it > without - 0.01


def test_the_settings_left_open_are_chosen_whatever_the_threads():
    X, y = load_digits(return_X_y=True)
    machine = ConvexPolytopeClassifier(max_iter=3, random_state=0).fit(X, y)
    assert machine.planes_.n_planes in (10, 40, 160, 480)
    assert ConvexPolytopeClassifier(max_iter=3, random_state=0, n_jobs=2).fit(X, y).planes_ == machine.planes_


def test_a_checkerboard():
    """Planes have to stay near the rows they began with: by the lighter start a quarter of the rows is wrong."""
    X, y = make_checkerboard(5000, random_state=0)
    machine = ConvexPolytopeClassifier(max_iter=30, random_state=0).fit(X[:4000], y[:4000])
    assert machine.score(X[4000:], y[4000:]) > 0.95


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**10])
def test_the_unit_of_the_rows_does_not_matter_without_an_offset(factor):
    X, y = load_digits(return_X_y=True)
    machine = ConvexPolytopeClassifier(4, fit_intercept=False, max_iter=20, random_state=0)
    predictions = machine.fit(X, y).predict(X)
    np.testing.assert_array_equal(machine.fit(X * factor, y).predict(X * factor), predictions)


def test_two_warm_fits_are_one_long_fit():
    X, y = load_digits(return_X_y=True)
    machine = ConvexPolytopeClassifier(4, alpha=1.0, min_entropy=0.8, max_iter=5, warm_start=True, random_state=0)
    whole = clone(machine).set_params(max_iter=10, warm_start=False).fit(X, y)
    assert machine.fit(X, y).fit(X, y).planes_ == whole.planes_
    np.testing.assert_array_equal(machine.assignments_, whole.assignments_)


def test_assignments_are_those_of_the_fitted_planes(problem):
    X, y, weight = problem
    weight = np.where(np.arange(len(y)) < 7, 0.0, weight)
    machine = ConvexPolytopeClassifier(4, max_iter=20, random_state=0).fit(X, y, sample_weight=weight)
    assert (machine.assignments_[:7] == -1).all()
    for c in range(4):
        rows = np.flatnonzero((y == c) & (weight > 0))
        best = machine.planes_.scores(X[rows])[:, machine.planes_.owners == c].argmax(axis=1)
        np.testing.assert_array_equal(machine.assignments_[rows], machine.planes_.indptr[c] + best)
    assert machine.plane_counts_.sum() == len(y) - 7


def test_a_stream_whose_first_batch_lacks_classes_learns_them_all():
    X, y = load_digits(return_X_y=True)
    few = y < 3
    machine = ConvexPolytopeClassifier(4, random_state=0).partial_fit(X[few], y[few], classes=range(10))
    for _ in range(10):
        machine.partial_fit(X, y)
    assert machine.score(X, y) > 0.95


def test_old_rows_fade():
    """Late in the stream the labels change places; with a half-life the machine follows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 5))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    y[6000:] = 2 - y[6000:]
    batches = [(X[i : i + 200], y[i : i + 200]) for i in range(0, 8000, 200)]
    late = slice(7500, None)
    fading, steady = (
        ConvexPolytopeClassifier(2, alpha=1e-3, random_state=0).fit_stream(batches, half_life=h).score(X[late], y[late])
        for h in (1000, None)
    )
    assert fading > 0.9
    assert steady < 0.6


@pytest.mark.parametrize("enclosed", ["each", "in"])
def test_polytopes_trained_alone_have_defaults_of_their_own(enclosed):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    y = np.where((np.abs(X) < 1).all(axis=1), "in", "out")
    machine = ConvexPolytopeClassifier(enclosed=enclosed, max_iter=5, random_state=0)
    given = ConvexPolytopeClassifier(16, enclosed=enclosed, alpha=1e-4, max_iter=5, random_state=0)
    assert machine.fit(X, y).planes_ == given.fit(X, y).planes_


def test_each_may_be_a_label():
    X, y = make_classification(100, random_state=0)
    names = np.array(["each", "other"])[y]
    assert len(ConvexPolytopeClassifier(2, enclosed="each", max_iter=3).fit(X, names).planes_.of(0)[1]) == 1
