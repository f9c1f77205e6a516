import tracemalloc
import warnings

import numpy as np
import pytest
from benchmarks.data.synthetic import make_polyceptron_1
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from polyplane import PolyhedralMixtureClassifier
from polyplane.datasets import make_polyhedron
from polyplane.engine.data import AffineScaling
from polyplane.learners.polyhedral_mixture import Ascent, Likelihood
from polyplane.learners.polyhedron import AffineRows, StartRows, split_start
from tests.reference import polyhedral_mixture as reference

SOLVERS = ["gradient", "newton", "bfgs", "lbfgs"]


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        60, 4, n_informative=4, n_redundant=0, n_clusters_per_class=2, flip_y=0.05, random_state=3
    )
    return X * [1, 10, 0.1, 3] + [0, 5, 0, -1], y


def standardised(X):
    return np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])


def likelihood_of(X, y, gamma, alpha=0.01, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return Likelihood(AffineRows(X, AffineScaling.standard(X, weight)), 2.0 * y - 1, weight, alpha, gamma)


def random_planes(seed, n_planes, n_features, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(n_planes, n_features + 1))


@pytest.mark.parametrize("gamma", [0.1, 1.0, 7.0, None])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_the_likelihood_and_its_gradient_are_those_of_the_paper(problem, gamma, container):
    X, y = problem
    W = random_planes(0, 3, X.shape[1])
    Z, sign = standardised(X), 2 * y - 1
    likelihood = likelihood_of(container(X), y, gamma)
    point = likelihood.at(W)
    pi = reference.responsibilities(Z, sign, W, gamma)
    assert point.value == pytest.approx(reference.log_likelihood(Z, sign, W, gamma, 0.01), abs=1e-12)
    np.testing.assert_allclose(point.gates.share.T, pi, atol=1e-12)
    np.testing.assert_allclose(
        likelihood.gradient(point), reference.q_gradient(Z, sign, W, gamma, pi, 0.01), atol=1e-12
    )
    np.testing.assert_allclose(
        likelihood.curvature(point), -reference.q_hessian(Z, sign, W, gamma, pi, 0.01), atol=1e-10
    )


@pytest.mark.parametrize("gamma", [0.1, 1.0, 7.0, None])
def test_the_gradient_matches_finite_differences(problem, gamma):
    X, y = problem
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    likelihood = likelihood_of(X, y, gamma, weight=weight)
    W, step = random_planes(0, 3, X.shape[1]), 1e-6
    gradient = likelihood.gradient(likelihood.at(W))
    for at in np.ndindex(*W.shape):
        nudge = np.zeros_like(W)
        nudge[at] = step
        slope = (likelihood.at(W + nudge).value - likelihood.at(W - nudge).value) / (2 * step)
        assert gradient[at] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("gamma", [0.3, 2.0, None])
def test_the_curvature_matches_finite_differences_of_q(problem, gamma):
    X, y = problem
    Z, sign, W, step = standardised(X), 2 * y - 1, random_planes(0, 2, X.shape[1]), 1e-5
    pi = reference.responsibilities(Z, sign, W, gamma)
    likelihood = likelihood_of(X, y, gamma)
    curvature = likelihood.curvature(likelihood.at(W))
    for column, at in enumerate(np.ndindex(*W.shape)):
        nudge = np.zeros_like(W)
        nudge[at] = step
        change = [reference.q_gradient(Z, sign, W + s * nudge, gamma, pi, 0.01).ravel() for s in (1, -1)]
        np.testing.assert_allclose(curvature[:, column], -(change[0] - change[1]) / (2 * step), atol=1e-7)
    assert np.linalg.eigvalsh(curvature).min() > 0  # Q is concave


def test_the_likelihood_rises_at_least_as_much_as_q(problem):
    """Why the step may be searched along the likelihood."""
    X, y = problem
    Z, sign = standardised(X), 2 * y - 1
    W, V = random_planes(0, 2, X.shape[1]), random_planes(1, 2, X.shape[1])
    pi = reference.responsibilities(Z, sign, W, 2.0)
    rise = reference.log_likelihood(Z, sign, V, 2.0) - reference.log_likelihood(Z, sign, W, 2.0)
    assert rise >= reference.q(Z, sign, V, 2.0, pi) - reference.q(Z, sign, W, 2.0, pi)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("gating", ["soft", "hard"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_learner_follows_the_box_of_the_paper(problem, solver, gating, standardize, container):
    X, y = problem
    n_steps, alpha, soft = 6, 0.02, 1.5 if gating == "soft" else None
    settings = {"alpha": alpha, "tol": None, "standardize": standardize, "inside": 1, "max_iter": n_steps}
    mixture = PolyhedralMixtureClassifier(2, gating=gating, gamma=soft, solver=solver, **settings).fit(container(X), y)
    scaling = AffineScaling.standard(X, np.ones(len(y))) if standardize else AffineScaling.identity(X.shape[1])
    rows = standardised(X) if standardize else np.column_stack([X, np.ones(len(X))])
    start = split_start(StartRows(AffineRows(X, scaling), y == 1, np.ones(len(y))), 2)
    path = reference.train(rows, 2 * y - 1, start, soft, solver, n_steps, alpha)
    values = [reference.log_likelihood(rows, 2 * y - 1, W, soft, alpha) for W in path[1:]]
    np.testing.assert_allclose(mixture.history_["log_likelihood"], values, atol=1e-9)
    coef, intercept = scaling.to_input_space(path[-1][:, :-1], path[-1][:, -1])
    np.testing.assert_allclose(mixture.planes_.of(0)[0], -coef, atol=1e-7)
    np.testing.assert_allclose(mixture.planes_.of(0)[1], -intercept, atol=1e-7)


@pytest.mark.parametrize("solver", ["bfgs", "lbfgs"])
def test_bfgs_keeps_all_steps_and_lbfgs_the_last_ten(problem, solver):
    """Iterate by iterate, long after the tenth."""
    X, y = problem
    Z, sign = standardised(X), 2 * y - 1
    start = random_planes(0, 2, X.shape[1])
    climb = [Ascent.begin(likelihood_of(X, y, 2.0), solver, start)]
    for _ in range(18):
        climb.append(climb[-1].advance())
    paths = {other: reference.train(Z, sign, start, 2.0, other, 18, 0.01) for other in ("bfgs", "lbfgs")}
    for here, W in zip(climb, paths[solver], strict=True):
        np.testing.assert_allclose(here.current.planes, W, atol=1e-9)
    assert np.abs(paths["bfgs"][-1] - paths["lbfgs"][-1]).max() > 1e-6


def test_without_standardisation_units_matter(problem):
    X, y = problem
    settings = {"alpha": 0.01, "inside": 1, "tol": 1e-10, "max_iter": 1000}
    raw, scaled = (
        PolyhedralMixtureClassifier(standardize=False, **settings).fit(scale * X, y).decision_function(scale * X)
        for scale in (1.0, 10.0)
    )
    assert np.abs(raw - scaled).max() > 0.1  # the ridge is in the units of the rows
    peer = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    line = PolyhedralMixtureClassifier(1, gating="hard", standardize=False, **settings).fit(X, y)
    np.testing.assert_allclose(line.decision_function(X), peer.decision_function(X), atol=1e-3)


@given(
    seed=st.integers(0, 10_000),
    gamma=st.floats(-3, 6).map(lambda power: 10.0**power),
    scale=st.floats(-6, 6).map(lambda power: 10.0**power),
    solver=st.sampled_from(SOLVERS),
    gating=st.sampled_from(["soft", "hard"]),
    n_planes=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 1e-3, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=80, deadline=None)
def test_em_never_lowers_the_likelihood(seed, gamma, scale, solver, gating, n_planes, alpha, dtype):
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(40, 3)) + scale * rng.normal(size=3)).astype(dtype)
    y = np.r_[0, 0, 1, 1, rng.integers(0, 2, 36)]
    mixture = PolyhedralMixtureClassifier(
        n_planes, gating=gating, solver=solver, alpha=alpha, max_iter=30, tol=0, random_state=0
    )
    mixture.set_params(gamma=gamma if gating == "soft" else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few rows may be separable
        mixture.fit(X, y)
    values = np.array(mixture.history_["log_likelihood"])
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(mixture.predict_proba(X)).all()
    assert np.isfinite(mixture.mixture_proba(X)).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_hard_plane_is_logistic_regression(problem, solver):
    X, y = problem
    alpha = 0.01
    mixture = PolyhedralMixtureClassifier(
        1, gating="hard", solver=solver, alpha=alpha, tol=0, max_iter=5000, inside=1
    ).fit(X, y)
    Z = standardised(X)[:, :-1]
    peer = LogisticRegression(C=1 / (alpha * len(y)), tol=1e-10, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(mixture.decision_function(X), peer.decision_function(Z), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_units_do_not_matter(problem, scale, dtype):
    X, y = problem
    plain = PolyhedralMixtureClassifier().fit(X, y)
    scaled = PolyhedralMixtureClassifier().fit((scale * X).astype(dtype), y)
    assert scaled.coef_.dtype == dtype
    np.testing.assert_allclose(
        scaled.decision_function((scale * X).astype(dtype)),
        plain.decision_function(X),
        atol=1e-8 if dtype == np.float64 else 2e-2,
    )


def test_sparse_and_dense_rows_give_the_same_planes(problem):
    X, y = problem
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = PolyhedralMixtureClassifier(3, n_init=3, random_state=0).fit(X, y)
    for matrix in (sparse.csr_matrix(X), sparse.csr_array(X)):
        other = PolyhedralMixtureClassifier(3, n_init=3, random_state=0).fit(matrix, y)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)


def test_sparse_rows_stay_sparse():
    X = sparse.random_array((1000, 30_000), density=1e-3, format="csr", random_state=np.random.default_rng(0))
    y = (X[:, :200].sum(axis=1) > 0.05).astype(int)
    mixture = PolyhedralMixtureClassifier(max_iter=10, inside=1)
    mixture.fit(X, y)
    tracemalloc.start()
    mixture.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * X.shape[0] * X.shape[1]


@pytest.mark.parametrize("gating", ["soft", "hard"])
@pytest.mark.parametrize("inside", ["in", "out"])
def test_probabilities_agree_with_predictions(gating, inside):
    X, y = make_polyhedron(400, 2, 3, flip_y=0.1, random_state=0)
    y = np.where(y == 1, "in", "out")
    mixture = PolyhedralMixtureClassifier(3, gating=gating, inside=inside).fit(X, y)
    probability = mixture.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(mixture.classes_[probability.argmax(axis=1)], mixture.predict(X))
    np.testing.assert_allclose(np.log(probability[:, 1] / probability[:, 0]), mixture.decision_function(X), atol=1e-8)


def test_probabilities_agree_with_predictions_next_to_a_plane():
    X = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
    mixture = PolyhedralMixtureClassifier(1).fit(X, X[:, 0] > 0.3)
    edge = np.float32(-mixture.intercept_[0] / mixture.coef_[0, 0])
    near = edge + np.arange(-50, 51, dtype=np.float32)[:, None] * np.spacing(edge)
    assert len(set(mixture.predict(near))) == 2
    np.testing.assert_array_equal(mixture.predict_proba(near).argmax(axis=1), mixture.predict(near))


def test_the_posterior_of_the_mixture_is_that_of_the_paper(problem):
    X, y = problem
    for inside in (0, 1):
        mixture = PolyhedralMixtureClassifier(2, gamma=0.7, inside=inside).fit(X, y)
        coef, intercept = mixture.planes_.of(1 - inside)
        W = -np.column_stack([coef, intercept])
        rows = np.column_stack([X, np.ones(len(X))])
        expected = [reference.gate(x, W, 0.7) @ reference.expert(x, 1, W) for x in rows]
        np.testing.assert_allclose(mixture.mixture_proba(X)[:, inside], expected, atol=1e-10)
        np.testing.assert_allclose(mixture.mixture_proba(X).sum(axis=1), 1)
        sharp = mixture.set_params(gamma=1e5).mixture_proba(X)
        np.testing.assert_allclose(sharp, mixture.predict_proba(X), atol=1e-2)


def test_the_ridge_falls_with_the_rows(problem):
    """Where none is named, it is that of a fixed ridge on the sum of the log-likelihoods: 3 over the rows."""
    X, y = problem
    settings = {"inside": 1, "tol": None, "max_iter": 20}
    found = PolyhedralMixtureClassifier(**settings).fit(X, y)
    assert found.planes_ == PolyhedralMixtureClassifier(alpha=3 / len(y), **settings).fit(X, y).planes_
    twice = PolyhedralMixtureClassifier(**settings).fit(X, y, sample_weight=np.full(len(y), 2.0))
    weaker = PolyhedralMixtureClassifier(alpha=1.5 / len(y), **settings).fit(X, y)
    np.testing.assert_allclose(twice.coef_, weaker.coef_, atol=1e-9)


def test_the_ridge_of_a_stream_falls_with_the_rows_so_far(problem):
    X, y = problem
    stream, named = (PolyhedralMixtureClassifier(inside=1, alpha=alpha) for alpha in (None, 0.0))
    for n_seen in (30, 60):
        for learner in (stream, named.set_params(alpha=3 / n_seen)):
            learner.partial_fit(X[n_seen - 30 : n_seen], y[n_seen - 30 : n_seen], classes=[0, 1])
    assert stream.planes_ == named.planes_


def test_few_rows_in_many_categories_cost_little_over_a_line():
    """Two planes where the truth is one: a ridge that does not know the number of rows costs 2.8 points, not 1.6."""
    rng = np.random.default_rng(0)
    X = np.eye(6)[rng.integers(0, 6, size=(3000, 8))].reshape(3000, 48)
    y = (X @ rng.normal(size=48) + 2 * rng.normal(size=3000) > 0).astype(int)
    parts = [(X[i::15], y[i::15]) for i in range(15)]
    mixture, line = (
        np.mean([make().fit(*part).score(X, y) for part in parts])
        for make in (PolyhedralMixtureClassifier, LogisticRegression)
    )
    assert mixture > line - 0.02


def test_inside_may_be_found():
    X, y = make_polyhedron(500, 2, 4, random_state=1)
    for labels in (np.where(y == 1, "a", "b"), np.where(y == 1, "b", "a")):
        found = PolyhedralMixtureClassifier(4, alpha=1e-3).fit(X, labels)
        assert found.inside_ == labels[y == 1][0]
        other = PolyhedralMixtureClassifier(4, alpha=1e-3, inside=labels[y == 0][0]).fit(X, labels)
        assert found.score(X, labels) > 0.97 > other.score(X, labels) + 0.05
    np.testing.assert_array_equal(found.planes_.of(1)[0], np.zeros((1, 2)))
    assert len(found.planes_.of(0)[0]) == 4


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gating": "hard", "gamma": 2.0}, "gamma=2.0 is for gating='soft'"),
    ],
)
def test_parameters_without_meaning_are_refused(problem, params, message):
    with pytest.raises(ValueError, match=message):
        PolyhedralMixtureClassifier(**params).fit(*problem)


def test_parameters_may_change_where_training_goes_on(problem):
    X, y = problem
    mixture = PolyhedralMixtureClassifier(max_iter=5, tol=None, warm_start=True).fit(X, y)
    mixture.set_params(gating="hard", solver="newton", alpha=0.1).fit(X, y)
    before = mixture.planes_
    for changed in ({"n_planes": 3}, {"inside": 0}, {"standardize": False}):
        with pytest.raises(ValueError, match=r"Training started with .* and cannot continue with"):
            mixture.set_params(**changed).fit(X, y)
        assert mixture.planes_ is before
        mixture.set_params(n_planes=2, inside=None, standardize=True)


def test_more_starts_find_what_one_misses():
    X, y = make_polyceptron_1(random_state=0)
    one, ten = (
        PolyhedralMixtureClassifier(3, gamma=3.0, inside=1, n_init=n, max_iter=20, random_state=0).fit(X, y)
        for n in (1, 10)
    )
    assert ten.history_["log_likelihood"][0] >= one.history_["log_likelihood"][-1]


def test_separable_rows_have_no_likeliest_planes():
    X = np.r_[np.zeros((5, 2)), np.full((5, 2), 9.0)] + np.arange(10)[:, None] % 5
    y = np.repeat([0, 1], 5)
    for solver in SOLVERS:
        with pytest.warns(ConvergenceWarning, match="perfectly separated.*Set alpha > 0"):
            steep = PolyhedralMixtureClassifier(alpha=0.0, solver=solver, tol=0, max_iter=3000).fit(X, y)
        assert np.isfinite(steep.coef_).all()
        assert steep.score(X, y) == 1
        PolyhedralMixtureClassifier(alpha=1e-6, solver=solver, tol=0).fit(X, y)  # no warning, which would be an error


def test_weights_are_repetitions(problem):
    X, y = problem
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"n_planes": 3, "alpha": 0.01, "tol": 0, "max_iter": 500}
    weighted = PolyhedralMixtureClassifier(**settings).fit(X, y, sample_weight=weight)
    repeated = PolyhedralMixtureClassifier(**settings).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


def test_warm_start_goes_on(problem):
    X, y = problem
    mixture = PolyhedralMixtureClassifier(max_iter=5, tol=None, warm_start=True).fit(X, y)
    first = mixture.history_["log_likelihood"][-1]
    mixture.fit(X, y)
    assert mixture.history_["log_likelihood"][0] >= first
    assert mixture.n_iter_ == 5


def test_pieces_may_come_one_by_one():
    X, y = make_polyceptron_1(2000, random_state=0)
    order = np.argsort(y[:100], kind="stable")
    mixture = PolyhedralMixtureClassifier(3, gamma=3.0, random_state=0)
    mixture.partial_fit(X[order[:5]], y[order[:5]], classes=[0, 1])  # one class only
    for start in range(100, 1600, 300):
        for _ in range(10):
            mixture.partial_fit(X[start : start + 300], y[start : start + 300])
    assert mixture.n_iter_ == 51
    assert mixture.score(X[1600:], y[1600:]) > 0.9


def test_more_classes_through_one_against_rest():
    X, y = make_classification(300, 6, n_informative=5, n_redundant=0, n_classes=3, class_sep=1.5, random_state=0)
    assert OneVsRestClassifier(PolyhedralMixtureClassifier()).fit(X, y).score(X, y) > 0.85


@pytest.mark.parametrize("solver", ["newton", "bfgs"])
def test_a_matrix_that_does_not_fit_is_refused(solver):
    X = sparse.random_array((30, 20_000), density=0.01, format="csr", random_state=np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"solver='{solver}' would keep a matrix of 40002 x 40002.*solver='lbfgs'"):
        PolyhedralMixtureClassifier(solver=solver).fit(X, np.arange(30) % 2)


@pytest.mark.parametrize(
    "params",
    [
        {"gamma": 0.0},
        {"gating": "medium"},
        {"standardize": "yes"},
        {"solver": "adam"},
        {"alpha": -1.0},
        {"n_init": 0},
        {"tol": -1.0},
    ],
)
def test_bad_parameters_are_named(problem, params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
        PolyhedralMixtureClassifier(**params).fit(*problem)


@pytest.mark.parametrize("gating", ["soft", "hard"])
def test_ionosphere(local_data, gating):
    """Table 1 of the paper: 88.10 (PLUME, BFGS, two planes) and 88.97 (SPLA1); a logistic regression has 87.5."""
    ionosphere = local_data("ionosphere")
    mixture = PolyhedralMixtureClassifier(2, gating=gating, inside="good")
    assert cross_val_score(mixture, ionosphere.data, ionosphere.target, cv=10).mean() > 0.89
