import numpy as np
import pytest
from benchmarks.papers.synthetic import make_polyceptron_1
from scipy import sparse
from sklearn.datasets import make_classification

from polyplane import SuccessiveLPClassifier
from polyplane.datasets import make_polyhedron
from polyplane.learners._polyhedron_rows import ScaledRows, StartRows, split_start
from polyplane.scaling import AffineScaling
from tests.reference import successive_lp as reference


@pytest.fixture(scope="module")
def problem():
    return make_classification(120, 4, n_informative=4, n_redundant=0, n_clusters_per_class=2, random_state=2)


def halves(X, y):
    rows = np.column_stack([X, np.ones(len(X))])
    return rows[y == 1], rows[y == 0]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_the_first_program_is_the_reference(problem, container):
    X, y = problem
    learner = SuccessiveLPClassifier(3, max_iter=1).fit(container(X), y)
    scaling = AffineScaling.standard(X, np.ones(len(y)))._replace(centre=np.zeros(X.shape[1]))
    start = split_start(StartRows(ScaledRows(X, scaling), y == 1, np.ones(len(y))), 3)
    coef, intercept = scaling.to_input_space(start[:, :-1], start[:, -1])
    inside, outside = halves(X, y)
    owner = (outside[:, :-1] @ coef.T + intercept).argmin(axis=1)
    least, planes = reference.solve(inside, outside, owner, 3)
    W = -np.column_stack(learner.planes_.of(0))
    # Several planes may share the least slack of the program; what they then cost with each row at its lowest plane
    # is at most that.
    assert learner.history_["objective"][0] == pytest.approx(reference.objective(inside, outside, W))
    assert learner.history_["objective"][0] <= least + 1e-7
    at_owner = np.maximum(0, 1 + (outside * W[owner]).sum(axis=1)).mean()
    assert np.maximum(0, 1 - (inside @ W.T).min(axis=1)).mean() + at_owner == pytest.approx(least, abs=1e-6)
    assert reference.objective(inside, outside, planes) <= least + 1e-9


def test_the_objective_never_rises(problem):
    X, y = problem
    learner = SuccessiveLPClassifier(3, tol=0.0).fit(X, y)
    objective = np.array(learner.history_["objective"])
    assert len(objective) > 2
    assert (np.diff(objective) <= 0).all()
    assert objective[-1] < objective[0]


def test_separable_rows_end_without_slack():
    X, y = make_polyceptron_1(400, random_state=0)
    learner = SuccessiveLPClassifier(3).fit(X, y)
    assert learner.history_["objective"][-1] == pytest.approx(0, abs=1e-7)
    assert learner.score(X, y) == 1


def test_more_starts_do_no_harm_after_the_first_program():
    X, y = make_polyhedron(200, 3, 5, flip_y=0.1, random_state=0)
    one, many = (SuccessiveLPClassifier(4, n_init=n, max_iter=1, random_state=0).fit(X, y) for n in (1, 6))
    assert many.history_["objective"][-1] < one.history_["objective"][-1]


def test_weights_count_within_a_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.arange(80) % 2
    weight = rng.integers(0, 4, 80)
    weighted = SuccessiveLPClassifier(2).fit(X, y, sample_weight=weight)
    repeated = SuccessiveLPClassifier(2).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.history_["objective"], repeated.history_["objective"], rtol=1e-6)
    twice = SuccessiveLPClassifier(2).fit(X, y, sample_weight=weight * np.where(y == 1, 5, 1))
    np.testing.assert_allclose(weighted.history_["objective"], twice.history_["objective"], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_units_do_not_matter(problem, scale, container):
    X, y = problem
    plain = SuccessiveLPClassifier(2, max_iter=1).fit(container(X), y)
    scaled = SuccessiveLPClassifier(2, max_iter=1).fit(container(scale * X), y)
    np.testing.assert_allclose(scaled.history_["objective"], plain.history_["objective"], rtol=1e-6)
    assert np.isfinite(scaled.coef_).all()


def test_float32_stays_float32(problem):
    X, y = problem
    learner = SuccessiveLPClassifier().fit(X.astype(np.float32), y)
    assert learner.coef_.dtype == np.float32
    assert learner.score(X.astype(np.float32), y) > 0.8


def test_a_warm_start_on_harder_rows_goes_on():
    """The objective on the rows before says nothing about these."""
    X, y = make_polyhedron(200, 3, 3, random_state=0)
    learner = SuccessiveLPClassifier(3, warm_start=True).fit(X[:100], y[:100])
    easy = learner.history_["objective"][-1]
    flipped = np.where(np.arange(100) % 7 == 0, 1 - y[100:], y[100:])
    learner.fit(X[100:], flipped)
    inside, outside = halves(X[100:], flipped)
    W = -np.column_stack(learner.planes_.of(0))
    objective = learner.history_["objective"][-1]
    assert objective == pytest.approx(reference.objective(inside, outside, W))
    assert objective > easy


def test_pieces_are_refused():
    """A linear program needs all rows at once."""
    assert not hasattr(SuccessiveLPClassifier(), "partial_fit")


def test_a_program_without_solution_says_so(problem, monkeypatch):
    import scipy.optimize

    monkeypatch.setattr(
        scipy.optimize, "linprog", lambda *_, **__: scipy.optimize.OptimizeResult(x=None, message="out of time")
    )
    with pytest.raises(RuntimeError, match="could not be solved: out of time"):
        SuccessiveLPClassifier().fit(*problem)
