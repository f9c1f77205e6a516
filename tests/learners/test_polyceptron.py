from dataclasses import replace

import numpy as np
import pytest
from benchmarks.data.synthetic import make_polyceptron_1, make_polyceptron_2
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import PolyceptronClassifier
from polyplane.datasets import make_polyhedron
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.run import Run
from polyplane.learners.polyceptron import Polyceptron
from polyplane.learners.polyhedron import AffineRows, StartRows, split_start
from tests.reference import polyceptron as reference


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        150, 5, n_informative=4, n_redundant=0, n_clusters_per_class=2, flip_y=0.05, random_state=0
    )
    X = np.round(X * 16) / 16  # sums of such numbers are exact: ties are ties in any order of summation
    X[np.abs(X) < 0.25] = 0.0
    return X, y, np.random.default_rng(1).integers(2, 16, len(y)) / 8


CONTAINERS = [np.asarray, sparse.csr_matrix, "csr64"]


def contained(X, container):
    if container != "csr64":
        return container(X)
    matrix = sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def start_of(X, y, weight, n_planes):
    rows = AffineRows(X, AffineScaling.identity(X.shape[1]))
    return split_start(StartRows(rows, y == 1, weight), n_planes)


def rows_of(X):
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_batch_form_is_the_box_of_the_paper(problem, container, weighted):
    X, y, weight = problem
    weight = weight if weighted else np.ones(len(y))
    learner = PolyceptronClassifier(3, eta0=0.125, max_iter=40, tol=5.0, inside=1, average=False)
    learner.fit(contained(X, container), y, sample_weight=weight if weighted else None)
    path = reference.batch(rows_of(X), 2 * y - 1, start_of(X, y, weight, 3), 0.125, 5.0, 40, weight)
    errors = [reference.errors(rows_of(X), 2 * y - 1, W, weight) for W in path]
    np.testing.assert_allclose(learner.history_["error"][: len(errors) - 1], errors[1:], atol=1e-12)
    np.testing.assert_allclose(learner._state.planes, path[-1], atol=1e-9)
    without = PolyceptronClassifier(3, eta0=0.125, max_iter=40, tol=5.0, inside=1, average=False, pocket=False)
    without.fit(contained(X, container), y, sample_weight=weight if weighted else None)
    np.testing.assert_allclose(-np.column_stack(without.planes_.of(0)), path[-1], atol=1e-9)
    assert "pocket_error" not in without.history_
    last_best = len(errors) - 1 - int(np.argmin(errors[::-1]))
    np.testing.assert_allclose(-learner.planes_.of(0)[0], path[last_best][:, :-1], atol=1e-9)
    np.testing.assert_allclose(-learner.planes_.of(0)[1], path[last_best][:, -1], atol=1e-9)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_online_form_is_the_box_of_the_paper(problem, container, weighted):
    X, y, weight = problem
    weight = weight if weighted else np.ones(len(y))
    learner = PolyceptronClassifier(3, mode="online", eta0=1.0, max_iter=20, tol=None, inside=1, random_state=5)
    learner.set_params(pocket=False, average=False)
    learner.fit(contained(X, container), y, sample_weight=weight if weighted else None)
    seed = np.random.RandomState(5).randint(2**31)
    orders = [np.random.default_rng([seed, step]).permutation(len(y)) for step in range(20)]
    path = reference.online(rows_of(X), 2 * y - 1, start_of(X, y, weight, 3), 1.0, orders, weight)
    errors = [reference.errors(rows_of(X), 2 * y - 1, W, weight) for W in path[1:]]
    np.testing.assert_allclose(learner.history_["error"], errors, atol=1e-12)
    np.testing.assert_allclose(-np.column_stack(learner.planes_.of(0)), path[-1], atol=1e-9)
    kept = learner.set_params(pocket=True).fit(contained(X, container), y, sample_weight=weight if weighted else None)
    best = [W for W, error in zip(path[1:], errors, strict=True) if error == min(errors)][-1]
    np.testing.assert_allclose(-np.column_stack(kept.planes_.of(0)), best, atol=1e-9)


@pytest.mark.parametrize(("maker", "n_planes"), [(make_polyceptron_1, 3), (make_polyceptron_2, 4)])
def test_on_separable_rows_the_online_form_ends_without_errors(maker, n_planes):
    """Figure 3 of the paper."""
    X, y = maker(random_state=0)
    settings = {"mode": "online", "average": False, "inside": 1, "n_init": 5}
    learner = PolyceptronClassifier(n_planes, **settings, max_iter=3000, random_state=0).fit(X, y)
    assert learner.n_iter_ < 3000
    assert learner.history_["gradient_norm"][-1] == learner.history_["error"][-1] == 0
    assert learner.score(X, y) == 1


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("mode", ["batch", "online"])
def test_the_pocket_never_gets_worse(problem, mode, average):
    X, y, weight = problem
    learner = PolyceptronClassifier(2, mode=mode, average=average, max_iter=200, random_state=0, warm_start=True)
    pocket = []
    for _ in range(2):
        learner.fit(X, y, sample_weight=weight)
        pocket += learner.history_["pocket_error"]
    assert (np.diff(pocket) <= 0).all()
    assert min(pocket) > 0  # the rows overlap: there is something to keep
    assert 1 - learner.score(X, y, sample_weight=weight) == pytest.approx(pocket[-1])
    if not average:
        assert pocket[-1] == min(pocket) <= min(learner.history_["error"])


def test_averaging_helps_where_classes_overlap():
    def mean_score(average):
        sets = [make_polyhedron(3000, 5, 2, flip_y=0.4, random_state=seed) for seed in range(8)]
        learner = PolyceptronClassifier(2, average=average, inside=1, max_iter=300)
        return np.mean([learner.fit(X[:300], y[:300]).score(X[300:], y[300:]) for X, y in sets])

    assert mean_score(True) > mean_score(False) + 0.005


def test_the_threshold_stops_the_batch_form(problem):
    X, y, _ = problem
    learner = PolyceptronClassifier(2, tol=30.0, inside=1).fit(X, y)
    assert learner.n_iter_ < learner.max_iter
    norm = learner.history_["gradient_norm"]
    assert norm[-1] <= 30.0 < min(norm[:-1])


def test_pieces_may_come_one_by_one():
    """A pass in pieces is the same as a pass over all of them, from the same planes."""
    X, y = make_polyceptron_2(3000, random_state=0)
    method = Polyceptron(4, mode="online", shuffle=False, tol=None)

    def rows(start, stop):
        return Data(X[start:stop], y[start:stop], np.ones(stop - start), np.arange(stop - start), 2)

    whole = Run(method).go([rows(0, 500), rows(0, 3000)])
    parts = [rows(0, 500), *(rows(start, start + 300) for start in range(0, 3000, 300))]
    pieces = Run(method).go(replace(part, stream=True) for part in parts)
    np.testing.assert_allclose(pieces.state.planes, whole.state.planes, atol=1e-9)
    assert pieces.n_steps == 11


def test_rows_one_at_a_time():
    X, y = make_polyceptron_1(2000, random_state=0)
    learner = PolyceptronClassifier(3, mode="online", random_state=0)
    for i in range(1500):
        learner.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1] if i == 0 else None)
    assert learner.score(X[1500:], y[1500:]) > 0.75


@pytest.mark.filterwarnings("ignore:No value of X is larger than:UserWarning")
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", ["batch", "online"])
def test_small_and_large_features_give_finite_planes(problem, mode, dtype, scale):
    X, y, _ = problem
    learner = PolyceptronClassifier(mode=mode, max_iter=50, random_state=0).fit((scale * X).astype(dtype), y)
    assert learner.coef_.dtype == dtype
    assert np.isfinite(learner.coef_).all()
    assert learner.score((scale * X).astype(dtype), y) > 0.6


def test_float32_agrees_with_float64(problem):
    X, y, _ = problem  # numbers that float32 holds exactly
    for mode in ("batch", "online"):
        learner = PolyceptronClassifier(2, mode=mode, eta0=0.125, max_iter=5, tol=None, random_state=0)
        double, single = learner.fit(X, y).planes_, learner.fit(X.astype(np.float32), y).planes_
        np.testing.assert_allclose(single.coef, double.coef, rtol=1e-5, atol=1e-4)


def test_parameters_may_change_where_training_goes_on(problem):
    X, y, _ = problem
    learner = PolyceptronClassifier(2, max_iter=5, tol=None, inside=1, warm_start=True, random_state=0).fit(X, y)
    learner.set_params(mode="online", eta0=0.5, average=True).fit(X, y)
    assert learner._state.steps == 10
    before = learner.planes_
    for changed in ({"n_planes": 3}, {"inside": 0}):
        with pytest.raises(ValueError, match=f"cannot continue with {next(iter(changed))}="):
            learner.set_params(**changed).fit(X, y)
        assert learner.planes_ is before
        learner.set_params(n_planes=2, inside=1)


@pytest.mark.parametrize(
    "params", [{"mode": "slow"}, {"eta0": 0.0}, {"n_init": 0}, {"average": "yes"}, {"n_planes": 0}, {"max_iter": 0}]
)
def test_bad_parameters_are_named(problem, params):
    X, y, _ = problem
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
        PolyceptronClassifier(**params).fit(X, y)


def test_ionosphere(local_data):
    """Table 2 of the paper: 89.68 % with two planes."""
    ionosphere = local_data("ionosphere")
    machine = make_pipeline(StandardScaler(), PolyceptronClassifier(2, inside="good", n_init=5, random_state=0))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    assert cross_val_score(machine, ionosphere.data, ionosphere.target, cv=folds).mean() > 0.88
