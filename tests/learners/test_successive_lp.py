from dataclasses import replace

import numpy as np
import pytest
from benchmarks.data.synthetic import make_polyceptron_1
from scipy import sparse
from sklearn.datasets import make_classification

from polyplane import SuccessiveLPClassifier
from polyplane.datasets import make_polyhedron
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.run import Run
from polyplane.learners.polyhedron import AffineRows, StartRows, split_start
from polyplane.learners.successive_lp import LinearPrograms, SuccessiveLP, SuccessiveLPState
from tests.reference import successive_lp as reference


@pytest.fixture(scope="module")
def problem():
    return make_classification(120, 4, n_informative=4, n_redundant=0, n_clusters_per_class=2, random_state=2)


def scaled_halves(X, y):
    """The rows inside and outside in the units of training, the constant feature beside them, and the scaling."""
    scaling = AffineScaling.standard(X, np.ones(len(y)))._replace(centre=np.zeros(X.shape[1]))
    rows = np.column_stack([X * scaling.factor, np.ones(len(X))])
    return rows[y == 1], rows[y == 0], scaling


def start_of(X, y, n_planes, scaling):
    return split_start(StartRows(AffineRows(X, scaling), y == 1, np.ones(len(y))), n_planes)


def costs(inside, outside, class_weight):
    """Those of the rows; balanced ones are half of the article's, which sum to 1 in each class."""
    a, b = reference.balanced(inside, outside)
    n = len(inside) + len(outside)
    return (a / 2, b / 2) if class_weight else (np.full(len(a), 1 / n), np.full(len(b), 1 / n))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("radius", [0.05, 0.5, None])
def test_each_step_solves_the_program_of_the_article(problem, radius, alpha, class_weight, container):
    """From its planes before, the planes of a step cost what the program of the oracle promises."""
    X, y = problem
    inside, outside, scaling = scaled_halves(X, y)
    a, b = costs(inside, outside, class_weight)
    settings = {"radius": radius, "alpha": alpha, "class_weight": class_weight, "inside": 1}
    W, bound = start_of(X, y, 3, scaling), np.inf if radius is None else radius
    for n_steps in range(1, 5):
        learner = SuccessiveLPClassifier(3, max_iter=n_steps, tol=None, **settings).fit(container(X), y)
        owner = (outside @ W.T).argmin(axis=1)
        _, promised = reference.direction(inside, outside, W, owner, a, b, bound, alpha)
        if reference.error(inside, outside, W, a, b, alpha) - promised < 1e-7:
            break
        V = learner._state.planes
        assert np.abs(V - W).max() <= bound + 1e-9
        assert reference.replaced_error(inside, outside, V, owner, a, b, alpha) == pytest.approx(promised, abs=1e-9)
        found = reference.error(inside, outside, V, a, b, alpha)
        assert learner.history_["objective"][-1] == pytest.approx(found, abs=1e-9)
        assert found <= promised + 1e-9  # the program lies above the error
        W, bound = V, learner._state.radius
    assert n_steps > 1


@pytest.mark.parametrize("radius", [0.02, 0.2, None])
@pytest.mark.parametrize("alpha", [0.0, 0.02])
def test_the_descent_is_that_of_the_oracle(radius, alpha):
    """Weights at random leave each program one solution, so that planes are the same step by step."""
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(90, 3)), rng.uniform(0.5, 1.5, 90)
    y = ((X**2).sum(axis=1) + 0.5 * rng.normal(size=90) < 2.5).astype(int)
    settings = {"radius": radius, "alpha": alpha, "inside": 1}
    learner = SuccessiveLPClassifier(2, **settings).fit(X, y, sample_weight=weight)
    scaling = learner._state.scaling
    rows, cost = np.column_stack([X * scaling.factor, np.ones(90)]), weight / weight.sum()
    parts = rows[y == 1], rows[y == 0], cost[y == 1], cost[y == 0]
    start = split_start(StartRows(AffineRows(X, scaling), y == 1, weight), 2)
    inside, outside, a, b = parts
    path = reference.descend(inside, outside, start, a, b, np.inf if radius is None else radius, alpha)
    errors = [reference.error(inside, outside, W, a, b, alpha) for W in path[1:]]
    assert len(errors) > (2 if radius else 0)
    np.testing.assert_allclose(learner.history_["objective"][: len(errors)], errors, atol=1e-9)
    np.testing.assert_allclose(learner._state.planes, path[-1], atol=1e-9)


def test_equally_low_planes_are_tried_in_turn():
    """Two planes begin as one, so each row outside has two that keep it out; the first choice leads nowhere."""
    X = np.array([[-2.0], [-0.1], [0.0], [0.1], [2.0]])
    y = np.array([0, 1, 1, 1, 0])
    data, weight = Data(X, y, np.ones(5), np.arange(5), 2), np.array([2.0, 1, 1, 1, 2])
    data = replace(data, weight=weight)
    start = SuccessiveLPState(np.array([[0.0, -1.0], [0.0, -1.0]]), 1, np.empty(0), AffineScaling.identity(1), np.inf)
    programs = LinearPrograms(data, start.scaling, 1, 0.0)
    first, *others = programs.owners(start.planes)
    assert [owner.tolist() for owner in others] == [[0, 1], [1, 0], [1, 1]]
    assert programs.objective(programs.solve(start.planes, first, np.inf)) == pytest.approx(6 / 7)
    assert programs.objective(start.planes) == pytest.approx(6 / 7)
    run = Run(SuccessiveLP(2, inside=1, alpha=0.0, radius=None), start).go([data])
    assert run.state.objective == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("radius", [0.05, None])
def test_the_objective_never_rises(problem, radius):
    X, y = problem
    learner = SuccessiveLPClassifier(3, radius=radius, tol=0.0).fit(X, y)
    objective = np.array(learner.history_["objective"])
    assert (np.diff(objective) <= 0).all()
    one = SuccessiveLPClassifier(3, radius=radius, inside=learner.inside_, max_iter=1).fit(X, y)
    assert objective[-1] < one.history_["objective"][0]


def test_short_steps_find_lower_errors():
    """Why steps are bounded: without a bound the first assignment of the rows outside is seldom mended."""
    drawn = [make_polyhedron(150, 4, 4, flip_y=0.05, random_state=seed) for seed in range(5)]
    settings = {"n_planes": 4, "alpha": 0.0, "inside": 1}
    bounded, short_form = (
        np.mean([SuccessiveLPClassifier(radius=r, **settings).fit(*s).history_["objective"][-1] for s in drawn])
        for r in (0.05, None)
    )
    assert bounded < 0.9 * short_form


def test_separable_rows_end_without_slack():
    X, y = make_polyceptron_1(400, random_state=0)
    learner = SuccessiveLPClassifier(3, alpha=0.0).fit(X, y)
    assert learner.history_["objective"][-1] == pytest.approx(0, abs=1e-7)
    assert learner.score(X, y) == 1


def test_more_starts_do_no_harm_after_the_first_program():
    X, y = make_polyhedron(200, 3, 5, flip_y=0.1, random_state=0)
    one, many = (SuccessiveLPClassifier(4, n_init=n, max_iter=1, random_state=0).fit(X, y) for n in (1, 6))
    assert many.history_["objective"][-1] < one.history_["objective"][-1]


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 2)), rng.integers(0, 4, 80)
    y = (np.abs(X).sum(axis=1) + 0.3 * rng.normal(size=80) < 1.2).astype(int)
    weighted = SuccessiveLPClassifier(2).fit(X, y, sample_weight=weight)
    repeated = SuccessiveLPClassifier(2).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.history_["objective"], repeated.history_["objective"], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_units_do_not_matter(problem, scale, container):
    X, y = problem
    plain = SuccessiveLPClassifier(2, max_iter=1).fit(container(X), y)
    scaled = SuccessiveLPClassifier(2, max_iter=1).fit(container(scale * X), y)
    # Tiny rows are brought to a common size first, and rounding decides between equally good solutions of a program.
    rtol = 0.01 if scale < 1 else 1e-6
    np.testing.assert_allclose(scaled.history_["objective"], plain.history_["objective"], rtol=rtol)
    assert np.isfinite(scaled.coef_).all()


def test_float32_stays_float32(problem):
    X, y = problem
    learner = SuccessiveLPClassifier().fit(X.astype(np.float32), y)
    assert learner.coef_.dtype == np.float32
    assert learner.score(X.astype(np.float32), y) > 0.8


def test_a_warm_start_on_harder_rows_goes_on():
    """The objective on the rows before says nothing about these."""
    X, y = make_polyhedron(200, 3, 3, random_state=0)
    learner = SuccessiveLPClassifier(3, warm_start=True, inside=1).fit(X[:100], y[:100])
    easy = learner.history_["objective"][-1]
    flipped = np.where(np.arange(100) % 7 == 0, 1 - y[100:], y[100:])
    learner.fit(X[100:], flipped)
    rows = np.column_stack([X[100:] * learner._state.scaling.factor, np.ones(100)])
    parts = rows[flipped == 1], rows[flipped == 0]
    cost = np.full(100, 0.01)
    expected = reference.error(*parts, learner._state.planes, cost[flipped == 1], cost[flipped == 0], 0.03)
    assert learner.history_["objective"][-1] == pytest.approx(expected)
    assert learner.history_["objective"][-1] > easy


def test_pieces_are_refused():
    """A linear program needs all rows at once."""
    assert not hasattr(SuccessiveLPClassifier(), "partial_fit")


def test_a_program_without_solution_says_so(problem, monkeypatch):
    import scipy.optimize

    monkeypatch.setattr(
        scipy.optimize, "linprog", lambda *_, **__: scipy.optimize.OptimizeResult(x=None, message="out of time")
    )
    with pytest.raises(ValueError, match=r"could not be solved with alpha .*out of time"):
        SuccessiveLPClassifier().fit(*problem)


def test_weights_near_zero_are_refused(problem):
    X, y = problem
    with pytest.raises(ValueError, match="scale the sample weights"):
        SuccessiveLPClassifier().fit(X, y, sample_weight=np.full(len(y), 1e-60))


def test_rows_in_other_units_are_refused(problem):
    """HiGHS takes no number beyond 1e15; its message would say nothing of the rows."""
    X, y = problem
    machine = SuccessiveLPClassifier(warm_start=True).fit(X, y)
    before = machine.planes_
    with pytest.raises(ValueError, match=r"X reaches .*e\+2\d times the spread .* give rows in the same units"):
        machine.fit(X * 1e20, y)
    assert machine.planes_ is before
    assert SuccessiveLPClassifier().fit(X * 1e20, y).score(X * 1e20, y) > 0.9
    assert SuccessiveLPClassifier(alpha=1e15).fit(X, y).n_iter_ == 1
