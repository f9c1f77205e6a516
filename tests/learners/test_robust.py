"""Robust training: gradients are those of the loss, certified errors fall, and the fitted model is an ordinary one."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import polyplane
from polyplane import MultiHyperplaneClassifier, RobustPlaneClassifier
from polyplane.engine.data import Data
from polyplane.explain import certified_radius, robust_error
from polyplane.kernels.robust import Perturbation, RowBuffers, ScoredRows, add_worst_cases
from polyplane.learners.robust import RobustMultiHyperplane


def worst_loss(W, shares, n_planes, x, half, y, weight, radius, order, n_bins):
    """The mean loss of the worst cases, as it is written, for given weights of the planes."""
    total = 0.0
    for i, row in enumerate(x):
        own = np.arange(len(W)) // n_planes == y[i]
        apart = W[~own] - shares[i, own] @ W[own] / shares[i, own].sum()
        rises = (2 * apart * half[i])[:, :-1].reshape(len(apart), -1, n_bins)
        in_turn = [np.pad(sums, [(0, 0), (1, 0)]).max(axis=1) for sums in rises.cumsum(axis=2).transpose(1, 0, 2)]
        dual = {
            0: np.sum(in_turn, axis=0) - apart @ half[i],
            1: np.abs(apart[:, :-1]).max(axis=1),
            2: np.linalg.norm(apart[:, :-1], axis=1),
        }
        leads = apart @ row + (dual[order] if order == 0 else radius * dual[order])
        total += weight[i] * np.log1p(np.exp(leads).sum())
    return total


@pytest.mark.parametrize(("order", "n_bins"), [(0, 1), (0, 2), (0, 4), (1, 1), (2, 1)])
def test_the_gradient_is_that_of_the_loss(order, n_bins):
    rng = np.random.default_rng(order)
    W, n_planes, x = rng.normal(size=(6, 5)), 2, rng.normal(size=(7, 5))
    x[:, -1] = 1.0
    half, y, weight = rng.uniform(size=(7, 5)) * [1, 1, 1, 1, 0], rng.integers(0, 3, 7), rng.uniform(0.1, 1.0, 7)
    gradient, out, of_row = np.zeros_like(W), np.empty(7), np.zeros((2, 5))
    buffers = RowBuffers(np.zeros(4, dtype=np.int64), np.zeros(4), np.zeros(2), *of_row)
    ball = Perturbation(0.3, order, n_bins)
    add_worst_cases(W, n_planes, ScoredRows(x, half, y, weight, x @ W.T), ball, buffers, gradient, out)
    arguments = (np.exp(x @ W.T), n_planes, x, half, y, weight, 0.3, order, n_bins)
    for k, j in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[k, j] = 1e-6
        slope = (worst_loss(W + step, *arguments) - worst_loss(W - step, *arguments)) / 2e-6
        assert gradient[k, j] == pytest.approx(slope, abs=1e-3)  # planes with a negligible share are left out
    assert -np.log(out) @ weight == pytest.approx(worst_loss(W, *arguments))


def pass_over(X, y, **params):
    """The first pass over rows, with the largest radius, and its method."""
    settings = {"n_planes": 2, "eps": 0.15, "max_iter": 1, "backoff": 0, "noise": 0.0}
    method = RobustMultiHyperplane(**settings | params)
    data = Data(X, y, np.ones(len(y)), np.arange(len(y)), 3)
    the_pass = method._prepared_pass(method._prepared(method.start(data, 0), data), data, len(y))
    the_pass.weight[...] = 1.0
    return the_pass, method


def gradient_of(the_pass):
    """Probabilities in the worst case and the gradient of 30 rows."""
    return the_pass._gradient(np.arange(30)[None], the_pass.weight / 30)


@pytest.mark.parametrize("n_bins", [1, 3])
def test_the_worst_case_is_that_of_all_changes_of_the_columns(n_bins):
    """For weights of the planes at the middle of the features that a row can have."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 2)), np.arange(30) % 3
    the_pass, method = pass_over(X, y, n_bins=n_bins)
    W, scaling = the_pass.W.reshape(-1, the_pass.W.shape[2]), the_pass.scaling

    def scores(features):
        return (features - scaling.centre) * scaling.factor @ W[:, :-1].T + W[:, -1]

    starts, width = method.bins
    for i, (row, found) in enumerate(zip(X, gradient_of(the_pass)[0], strict=True)):
        ends = np.concatenate([starts, starts + width, row - 0.15, row + 0.15])  # scores are linear between these
        values = [np.unique(np.clip(ends, value - 0.15, value + 0.15)) for value in row]
        changed = np.stack(np.meshgrid(*values), axis=-1).reshape(-1, 2)
        own = np.arange(6) // 2 == y[i]
        middle = 0.5 * sum(method.features(changed[[at]]) for at in (0, -1))
        shares = np.exp(scores(middle)[0, own])
        at_changed = scores(method.features(changed))
        leads = at_changed[:, ~own] - (at_changed[:, own] @ shares / shares.sum())[:, None]
        assert found == pytest.approx(1 / (1 + np.exp(leads.max(axis=0)).sum()), rel=1e-3)
    rows = np.array([[0.15, 0.85]])  # the ends of the range that no change leaves
    np.testing.assert_allclose(method.features(rows), [[0.0] * n_bins + [1.0] * n_bins], atol=1e-12)


def test_the_loss_is_a_mean_of_those_of_the_rows_and_of_the_worst_cases():
    X, y = np.random.default_rng(0).uniform(size=(30, 2)), np.arange(30) % 3
    gradients = [gradient_of(pass_over(X, y, clean=clean)[0])[1] for clean in (0.0, 0.3, 1.0)]
    np.testing.assert_allclose(gradients[1], 0.7 * gradients[0] + 0.3 * gradients[2], rtol=1e-6, atol=1e-9)
    plain = [gradient_of(pass_over(X, y, order=2, eps=eps, clean=1.0)[0])[1] for eps in (0.1, 9.0)]
    np.testing.assert_array_equal(*plain)  # with weight 0, the worst case does not count


def test_planes_shrink_towards_zero():
    """Not towards their start, as those of multi-hyperplane classifiers."""
    X, y = np.random.default_rng(0).uniform(size=(300, 2)), np.arange(300) % 3
    largest = []
    for alpha in (0.0, 1e9):
        model = RobustPlaneClassifier(alpha=alpha, n_planes=2, max_iter=4, random_state=0).fit(X, y).model_
        largest.append(np.abs(model.planes.coef).max())
    assert largest[1] < 0.1 * largest[0]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X / 16)[:1200].astype(np.float32), y[:1200], (X / 16)[1200:].astype(np.float32), y[1200:]


@pytest.mark.parametrize(("norm", "eps", "share"), [("inf", 0.2, 0.5), (2, 0.4, 1.0), (1, 0.6, 1.0)])
def test_robust_errors_are_smaller_than_without(digits, norm, eps, share):
    X, y, X_test, y_test = digits
    robust = RobustPlaneClassifier(eps, norm=norm, n_planes=8, max_iter=30, random_state=0).fit(X, y)
    plain = MultiHyperplaneClassifier(8, max_iter=30, random_state=0).fit(X, y)
    errors = [robust_error(model, X_test, y_test, [0.0, eps], norm=norm) for model in (robust, plain)]
    assert errors[0][1] < share * errors[1][1]
    assert errors[0][0] < 0.12
    rng, rows = np.random.default_rng(0), X_test[:200]
    certain = certified_radius(robust, rows, norm=norm) > eps
    assert certain.mean() > 0.4
    for _ in range(20):
        change = rng.choice([-1.0, 1.0], size=rows.shape)
        change *= eps / np.linalg.norm(change, float(norm), axis=1, keepdims=True)
        changed = (rows + change).astype(np.float32)
        assert (robust.predict(changed) == robust.predict(rows))[certain].all()


@pytest.mark.parametrize("norm", ["inf", 2])
def test_the_fitted_model_can_be_saved(digits, tmp_path, norm):
    X, y, X_test, _ = digits
    n_bins = 3 if norm == "inf" else 1
    params = {"norm": norm, "n_planes": 4, "n_bins": n_bins, "max_iter": 3, "random_state": 0}
    model = RobustPlaneClassifier(0.1, **params).fit(X, y)
    assert model.model_.learner == "RobustPlaneClassifier"
    assert model.model_.planes.pooling == "max"
    polyplane.save(model, tmp_path / "model.safetensors")
    loaded = polyplane.load(tmp_path / "model.safetensors")
    assert loaded.get_params() == model.get_params()
    assert (loaded.predict_proba(X_test) == model.predict_proba(X_test)).all()
    assert (model.model_.predict(X_test) == model.predict(X_test)).all()
    scores = model.decision_function(X_test)
    assert (model.predict_proba(X_test).argmax(axis=1) == scores.argmax(axis=1)).all()
    again = RobustPlaneClassifier(0.1, **params).fit(X, y)
    assert (again.model_.planes.coef == model.model_.planes.coef).all()


def test_bins_divide_the_range_that_changes_do_not_leave():
    """Rows whose class depends on the distance to the middle of the range: no clipped plane separates them."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 0.5, 1.0], size=(400, 2))
    y = (X[:, 0] == 0.5).astype(int)
    errors = {
        n_bins: robust_error(
            RobustPlaneClassifier(0.1, n_planes=1, n_bins=n_bins, random_state=0).fit(X, y), X, y, 0.1, norm="inf"
        )
        for n_bins in (1, 4)
    }
    assert errors[1] > 0.2
    assert errors[4] == 0.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eps": -0.1}, "'eps' parameter"),
        ({"norm": 3}, "norm=3 must be 1, 2 or 'inf'"),
        ({"norm": 2, "n_bins": 4}, "n_bins=4 needs norm='inf'"),
        ({"eps": 0.5}, "eps=0.5 must be less than half of the range of X, 1"),
    ],
)
def test_wrong_parameters_are_refused(digits, params, message):
    with pytest.raises(ValueError, match=message):
        RobustPlaneClassifier(**params).fit(digits[0], digits[1])
