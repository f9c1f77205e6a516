import math

import numpy as np
import pytest
from numba import njit
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.model_selection import train_test_split

from polyplane import ConvexPolytopeClassifier, PegasosSVC
from polyplane.datasets import make_polyhedron
from polyplane.engine.data import Data
from polyplane.kernels.skipping import Checks, is_checked, note_update, passes_within, relative_slack
from polyplane.learners.tangents import SkippedRows
from tests.reference.convex_polytope import sgd_train


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        400, 12, n_informative=6, n_clusters_per_class=3, flip_y=0.02, class_sep=0.7, random_state=0
    )
    X = np.round(X * 16) / 16  # sums of such numbers are exact: ties between planes are ties in any order of summation
    X[np.abs(X) < 0.5] = 0.0
    return X, y, np.random.default_rng(1).integers(2, 16, len(y)) / 8


def reference_planes(X, positive, n_epochs, seed, **settings):
    """The planes of Algorithm 1 over the orders that the estimator uses, and the losses of each epoch."""
    orders = [np.random.default_rng([seed, epoch]).permutation(len(X)) for epoch in range(n_epochs)]
    W, losses = sgd_train(np.column_stack([X, np.ones(len(X))]), positive, orders, **settings)
    return W[:, :-1], W[:, -1], np.reshape(losses, (n_epochs, -1))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, "csr64"])
@pytest.mark.parametrize("min_entropy", [0.0, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_backoff_the_kernel_is_the_paper(problem, container, min_entropy, weighted):
    X, y, weight = problem
    matrix = X
    if container == "csr64":
        matrix = sparse.csr_array(X)
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    elif container is not np.asarray:
        matrix = container(X)
    n_planes, alpha, n_epochs = 5, 1 / 97.3, 60  # 24,000 visits
    machine = ConvexPolytopeClassifier(
        n_planes,
        enclosed="each",
        alpha=alpha,
        max_iter=n_epochs,
        tol=None,
        min_entropy=min_entropy,
        backoff=0,
        average=False,
        random_state=3,
    ).fit(matrix, y, sample_weight=weight if weighted else None)
    seed, losses = np.random.RandomState(3).randint(2**31), 0.0
    for c in (0, 1):
        coef, intercept, of_side = reference_planes(
            X,
            y == c,
            n_epochs,
            seed,
            n_planes=n_planes,
            alpha=alpha,
            min_entropy=min_entropy * math.log(n_planes),
            weight=weight if weighted else None,
        )
        np.testing.assert_allclose(machine.planes_.of(c)[0], coef, rtol=0, atol=1e-9)
        np.testing.assert_allclose(machine.planes_.of(c)[1], intercept, rtol=0, atol=1e-9)
        losses = losses + of_side.mean(axis=1)
    np.testing.assert_allclose(machine.history_["loss"], losses, rtol=1e-9)


def test_the_reference_uses_several_planes(problem):
    """The comparison above would be void if all rows went to one plane."""
    X, y, _ = problem
    free, even = (
        ConvexPolytopeClassifier(5, enclosed="each", alpha=1e-2, max_iter=60, min_entropy=h, random_state=3).fit(X, y)
        for h in (0.0, 0.9)
    )
    assert (free.plane_counts_ > 0).sum() > 2

    def entropy(machine):
        shares = machine.plane_counts_[:5] / machine.plane_counts_[:5].sum()
        return -(shares[shares > 0] * np.log(shares[shares > 0])).sum() / math.log(5)

    assert entropy(even) > max(entropy(free), 0.8)


@pytest.mark.parametrize("n_features", [1, 3, 4, 7])
@pytest.mark.parametrize("n_planes", [1, 2, 5])
def test_dense_and_sparse_rows_give_the_same_planes(n_features, n_planes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, n_features)) * (rng.random((100, n_features)) < 0.6)
    y = X.sum(axis=1) > 0.2
    machine = ConvexPolytopeClassifier(n_planes, enclosed="each", max_iter=10, random_state=0)
    dense = machine.fit(X, y).planes_
    for matrix in (sparse.csr_matrix(X), sparse.csr_array(X), sparse.csc_matrix(X)):
        planes = machine.fit(matrix, y).planes_
        np.testing.assert_allclose(planes.coef, dense.coef, atol=1e-9)


def test_float32_agrees_with_float64(problem):
    X, y, _ = problem
    machine = ConvexPolytopeClassifier(4, enclosed="each", alpha=1e-2, max_iter=3, tol=None, random_state=0)
    double, single = machine.fit(X, y).planes_, machine.fit(X.astype(np.float32), y).planes_
    assert single.coef.dtype == np.float32
    np.testing.assert_allclose(single.coef, double.coef, atol=2e-3)


def made(seed):
    """Rows on which rows put to sleep by their margins alone, while planes still jump, cost 1.4 points of error."""
    X, y = make_classification(8000, 20, n_informative=10, class_sep=2, random_state=seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return train_test_split(X, y, random_state=0)


def digits(seed):
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, random_state=seed)


@pytest.mark.parametrize(
    ("machine", "rows", "worse"),
    [
        (ConvexPolytopeClassifier(16, enclosed="each", max_iter=20, average=False), made, 0.5),
        (ConvexPolytopeClassifier(16, max_iter=20, average=False), made, 0.5),
        (ConvexPolytopeClassifier(4, alpha=1e-4, max_iter=5), digits, 1.0),
        (ConvexPolytopeClassifier(4, enclosed="each", max_iter=5), digits, 1.0),
        (PegasosSVC(max_iter=5), made, 0.5),
        (PegasosSVC(max_iter=20, average=False), made, 2.0),
    ],
)
def test_backoff_costs_no_accuracy(machine, rows, worse):
    """In points of test error, over three seeds; the limits are above the noise between seeds."""
    errors = []
    for seed in range(3):
        X_train, X_test, y_train, y_test = rows(seed)
        machines = (clone(machine).set_params(backoff=b, random_state=seed).fit(X_train, y_train) for b in (31, 0))
        errors.append([100 * (1 - fitted.score(X_test, y_test)) for fitted in machines])
    with_it, without = np.mean(errors, axis=0)
    assert with_it < without + worse


def test_backoff_skips_visits_that_change_nothing():
    """Most visits are skipped once planes have settled, and few of the updates with them."""
    X, y = make_blobs(3000, 10, centers=2, cluster_std=3.0, random_state=0)
    machine = PegasosSVC(1e-2, max_iter=40, warm_start=True, random_state=0).fit(X, y)
    plain = clone(machine).set_params(backoff=0).fit(X, y)
    assert (machine._state.rows.skip > 0).mean() > 0.7
    assert sum(machine.history_["updates"]) == pytest.approx(sum(plain.history_["updates"]), rel=0.05)


@njit(error_model="numpy")
def passes_to_skip(slack, movement, longest):
    return passes_within(relative_slack(slack, movement), longest)


@pytest.mark.parametrize(
    ("slack", "movement", "passes"),
    [(-1.0, 0.1, 0), (0.5, np.inf, 0), (0.6, 1.0, 0), (1.0, 1.0, 4), (9.0, 1.0, 31), (0.1, 0.0, 31), (-1.0, 0.0, 0)],
)
def test_a_row_is_skipped_as_long_as_its_slack_outlasts_the_movement(slack, movement, passes):
    assert passes_to_skip(slack, movement, 31) == passes


def test_a_polytope_encloses_the_label_that_enclosed_names():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 2))
    y = np.where((np.abs(X) < 1).all(axis=1), "in", "out")
    inside = ConvexPolytopeClassifier(8, enclosed="in", alpha=1e-3, min_entropy=0.8, random_state=0).fit(X, y)
    np.testing.assert_array_equal(inside.planes_.of(0)[0], np.zeros((1, 2)))
    assert len(inside.planes_.of(1)[0]) == 8
    assert inside.score(X, y) > 0.95
    # The wrong way round, the complement of a square cannot be enclosed.
    outside = ConvexPolytopeClassifier(8, enclosed="out", alpha=1e-3, min_entropy=0.8, random_state=0).fit(X, y)
    assert outside.score(X, y) < 0.85


def test_assignments_count_the_rows_of_each_plane(problem):
    X, y, weight = problem
    weight = np.where(np.arange(len(y)) < 7, 0.0, weight)
    machine = ConvexPolytopeClassifier(4, enclosed="each", max_iter=20, random_state=0).fit(X, y, sample_weight=weight)
    assert (machine.assignments_[:7] == -1).all()
    np.testing.assert_array_equal(machine.planes_.owners[machine.assignments_[7:]], y[7:])
    assert machine.plane_counts_.sum() == len(y) - 7
    for c in (0, 1):
        rows = np.arange(7, len(y))[y[7:] == c]
        coef, intercept = machine.planes_.of(c)
        winners = machine.planes_.indptr[c] + (X[rows] @ coef.T + intercept).argmax(axis=1)
        np.testing.assert_array_equal(machine.assignments_[rows], winners)
    one_sided = ConvexPolytopeClassifier(4, enclosed=1, max_iter=20, random_state=0).fit(X, y)
    assert one_sided.plane_counts_[-1] == (y == 1).sum()


def test_pegasos_is_the_machine_with_one_side(problem):
    X, y, _ = problem
    svm = PegasosSVC(alpha=1e-2, max_iter=20, tol=None, random_state=0).fit(X, y)
    machine = ConvexPolytopeClassifier(1, enclosed=0, alpha=1e-2, max_iter=20, tol=None, random_state=0).fit(X, y)
    assert svm.planes_ == machine.planes_


def test_pegasos_reaches_the_optimum_of_the_svm(problem):
    from sklearn.svm import LinearSVC

    X, y, _ = problem
    alpha = 1e-2
    sign = 2.0 * y - 1

    def objective(w, b):
        return alpha / 2 * (w @ w + b * b) + np.maximum(0, 1 - sign * (X @ w + b)).mean()

    peer = LinearSVC(C=1 / (alpha * len(y)), loss="hinge", tol=1e-8, max_iter=1_000_000).fit(X, y)
    svm = PegasosSVC(alpha=alpha, max_iter=1000, tol=None, random_state=0).fit(X, y)
    optimum = objective(peer.coef_[0], peer.intercept_[0])
    assert optimum <= objective(svm.coef_[0], svm.intercept_[0]) + 1e-9 < optimum * 1.005


def test_averaging_settles_the_planes(problem):
    X, y, _ = problem

    def spread(average):
        runs = [
            PegasosSVC(alpha=1e-2, max_iter=30, tol=None, average=average, random_state=seed).fit(X, y).coef_[0]
            for seed in range(5)
        ]
        return np.std(runs, axis=0).mean()

    assert spread(True) < 0.5 * spread(False)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"enclosed": "elsewhere"}, "is not one of the labels"),
        ({"enclosed": 7}, "is not one of the labels"),
        ({"alpha": 0.0}, "'alpha' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"n_planes": 0}, "'n_planes' parameter"),
        ({"min_entropy": 1.5}, "'min_entropy' parameter"),
        ({"backoff": -1}, "'backoff' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
    ],
)
def test_bad_parameters_are_named(problem, params, message):
    X, y, _ = problem
    with pytest.raises(ValueError, match=message):
        ConvexPolytopeClassifier(**params).fit(X, y)


def test_enclosed_is_one_of_two_classes_only():
    X, y = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(ValueError, match="y has 3; use enclosed=None"):
        ConvexPolytopeClassifier(enclosed=1).fit(X, y)


def test_mnist_twos(local_data):
    """A tenth of the budget of the paper's experiment (Table 1: 0.38 %) already beats the linear SVM (1.8 %) by far."""
    mnist = local_data("mnist")
    X, X_test = (
        sparse.csr_matrix(images.reshape(len(images), -1) / np.float32(255)) for images in (mnist.data, mnist.data_test)
    )
    visits = 1_200_000
    machine = ConvexPolytopeClassifier(
        16,
        enclosed="each",
        alpha=1000 / visits,
        max_iter=visits // 60_000,
        tol=None,
        min_entropy=0.8,
        random_state=0,
        n_jobs=2,
    ).fit(X, mnist.target == 2)
    assert 100 * (1 - machine.score(X_test, mnist.target_test == 2)) < 0.8


def test_an_average_that_means_nothing_is_not_used():
    """One class lies inside of the other: the polytope around the outer one has no shape to find, and keeps turning."""
    X, y = make_polyhedron(6000, n_features=10, n_planes=12, random_state=0)
    train, test = slice(0, 4000), slice(4000, None)
    machine = ConvexPolytopeClassifier(16, enclosed="each", alpha=1e-5, min_entropy=0.8, max_iter=40, random_state=0)
    last = clone(machine).set_params(average=False).fit(X[train], y[train]).score(X[test], y[test])
    assert last > 0.8
    assert machine.fit(X[train], y[train]).score(X[test], y[test]) >= last - 0.01


def test_two_warm_fits_are_one_long_fit():
    """On the same rows what was remembered of them, back-off and assignments, is kept."""
    X, y = load_digits(return_X_y=True)
    machine = ConvexPolytopeClassifier(4, enclosed="each", min_entropy=0.8, max_iter=5, warm_start=True, random_state=0)
    whole = clone(machine).set_params(max_iter=10, warm_start=False).fit(X / 16, y)
    assert machine.fit(X / 16, y).fit(X / 16, y).planes_ == whole.planes_
    np.testing.assert_array_equal(machine.assignments_, whole.assignments_)
    elsewhere = clone(machine).fit(X / 16, y).fit(X[::-1] / 16, y[::-1])
    assert elsewhere.planes_ != whole.planes_


def test_a_step_on_few_features_of_many_saves_only_these():
    """What undoing a step costs does not depend on the number of features."""
    X = sparse.random_array((10, 1_000_000), density=1e-5, format="csr", rng=np.random.default_rng(0))
    machine = PegasosSVC(random_state=0).partial_fit(X, np.arange(10) % 2, classes=[0, 1])
    rows = Data(X, np.arange(10) % 2, np.ones(10), np.arange(10), 2)
    assert sum(part[2].nbytes for part in machine._state.save(rows)._saved) < 100_000


@pytest.mark.parametrize("weight", [0.25, 1.0, 3.0])
def test_skipped_rows_are_checked_at_their_rate(weight):
    checks = Checks(0.1, np.zeros(2))
    with np.errstate(over="ignore"):  # as in compiled code
        share = np.mean([is_checked.py_func(t, weight, checks) for t in range(4000)])
    assert share == pytest.approx(0.1 * weight, abs=0.002)


def test_a_check_stands_for_the_rows_that_were_not_checked():
    checks, skip = Checks(0.1, np.zeros(2)), np.full(4, 5, dtype=np.uint8)
    note_update.py_func(skip, 0, False, 2, 3.0, checks)  # two planes, weight 3
    note_update.py_func(skip, 1, True, 1, 4.0, checks)  # checked with probability 0.4: it stands for 2.5 rows
    note_update.py_func(skip, 2, True, 1, 20.0, checks)  # always checked: nothing is missed
    assert checks.found.tolist() == [6.0, 30.0]
    assert skip.tolist() == [5, 0, 0, 5]


def test_caution_follows_the_checks():
    X = np.zeros((640, 1))
    data = Data(X, np.zeros(640, dtype=int), np.full(640, 2.0), np.arange(640), 2)
    rows = SkippedRows(np.full((1, 640), 16, dtype=np.uint8))
    assert rows.rate(data) == pytest.approx(0.2)  # 256 of 640 rows in a pass, of mean weight 2
    found = np.array([10.0, 1.0])  # two checks found an update each, of 640 x 0.4 rows
    excess = 0.2 * (10.0 - 0.005 * 11.0)
    for power in (1.0, 4.0):
        rows = SkippedRows(np.full((1, 640), 16, dtype=np.uint8)).checked(found, data, power)
        assert rows.caution == pytest.approx(2 ** (excess / power))
        assert (rows.skip == int(16 / 2**excess)).all()
        assert rows.share == pytest.approx(10 / 11)
    for _ in range(200):
        rows = rows.checked(np.array([0.0, 100.0]), data, 4.0)
    assert rows.caution == 0.5
    assert rows.share < 1e-6


def heavy_rows(seed):
    """One row in a hundred has the weight 200."""
    X, y = make_classification(5500, 20, n_informative=10, flip_y=0.05, random_state=seed)
    weight = np.where(np.random.default_rng(seed).random(1500) < 0.01, 200.0, 1.0)
    return X[:1500], y[:1500], X[1500:], y[1500:], weight


def corners(seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (5500, 2))
    y = ((X > 0.5).all(axis=1) ^ (X < -0.6).all(axis=1)).astype(int)
    return X[:1500], y[:1500], X[1500:], y[1500:], None


@pytest.mark.parametrize(
    ("machine", "rows"),
    [
        (PegasosSVC(max_iter=40), heavy_rows),
        (ConvexPolytopeClassifier(8, enclosed="each", max_iter=40), corners),
        (ConvexPolytopeClassifier(8, alpha=1e-3, max_iter=40), corners),
    ],
)
def test_few_updates_are_missed_whatever_the_rows(machine, rows):
    """By weight, according to the history: rows of large weight and rare classes count for what they are."""
    missed, errors = [], []
    for seed in range(4):
        X, y, X_test, y_test, weight = rows(seed)
        machine.set_params(random_state=seed)
        fitted = machine.set_params(backoff=31).fit(X, y, sample_weight=weight)
        missed.append(np.mean(fitted.history_["missed"]))
        errors.append(
            fitted.score(X_test, y_test) - machine.set_params(backoff=0).fit(X, y, weight).score(X_test, y_test)
        )
    assert 0 < np.mean(missed) < 0.012
    assert -100 * np.mean(errors) < 1.0
