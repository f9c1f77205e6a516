"""PLUME and SPLA1: a polyhedron as a mixture of logistic experts (Shah, Sastry and Manwani, 2019)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane._array_api import astype, at_most, expit, kind_of, namespace, take_rows, to_numpy, widest_float
from polyplane._prediction import check_fitted_matrix
from polyplane.base import Declaration
from polyplane.engine.data import AffineScaling, Data, OwnScaling, row_blocks
from polyplane.engine.method import Traits
from polyplane.engine.state import FeatureScaling, workspace
from polyplane.learners.log_loss import LBFGS_MEMORY, times_inverse
from polyplane.learners.polyhedron import (
    ADJUSTABLE,
    AffineRows,
    PolyhedronClassifier,
    PolyhedronMethod,
    PolyhedronState,
    members,
)

#: Armijo's constant, and the maximum number of halvings of a step.
SUFFICIENT, HALVINGS = 1e-4, 40


class Gates(NamedTuple):
    """The result of the E-step."""

    log_likelihood: Any  # of each row
    gate: Any  # g: prior probability of each plane, shape (n_planes, n_rows)
    share: Any  # pi: posterior probability of each plane, given the label, shape (n_planes, n_rows)


def soft_gates(scores: Any, sign: Any, gamma: float) -> Gates:
    r"""The E-step of PLUME, in logarithms: :math:`\gamma w x` overflows easily."""
    xp = namespace(scores)
    with np.errstate(over="ignore"):
        log_gate = -gamma * (scores - xp.min(scores, axis=0))
    gate = xp.exp(log_gate)
    total = xp.sum(gate, axis=0)
    joint = log_gate + log_expit(sign * scores)
    top = xp.max(joint, axis=0)
    share = xp.exp(joint - top)
    joint_total = xp.sum(share, axis=0)
    # By rounding, a probability may exceed 1.
    log_likelihood = at_most(top + xp.log(joint_total) - xp.log(total), 0.0)
    return Gates(log_likelihood, gate / total, share / joint_total)


def hard_gates(scores: Any, sign: Any) -> Gates:
    """The E-step of SPLA1: each row belongs to its lowest plane."""
    xp = namespace(scores)
    gate = astype(members(xp.argmin(scores, axis=0), scores.shape[0]), scores.dtype)
    return Gates(log_expit(sign * xp.min(scores, axis=0)), gate, gate)


def log_expit(x: Any) -> Any:
    """The logarithm of the logistic function; several times faster than SciPy's."""
    xp = namespace(x)
    return at_most(x, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))


class Point(NamedTuple):
    """Planes, their likelihood, and the result of the E-step."""

    planes: np.ndarray  # (n_planes, n_features + 1), offset last
    value: float  # mean log-likelihood minus the ridge penalty
    scores: Any  # (n_planes, n_rows), on the device of the rows
    gates: Gates


class Likelihood:
    """The penalised log-likelihood of given rows, which is maximised.

    Parameters
    ----------
    rows : AffineRows
        The rows.
    sign : array of shape (n_rows,)
        +1 inside, -1 outside.
    weight : array of shape (n_rows,)
        Weights of the rows.
    alpha : float
        Strength of the ridge penalty.
    gamma : float or None
        Sharpness of the gating; None: hard gating, the limit.
    """

    def __init__(self, rows: AffineRows, sign: Any, weight: Any, alpha: float, gamma: float | None) -> None:
        self.rows = rows
        self.sign = rows.per_row(sign)
        self.weight = rows.per_row(weight / weight.sum())
        self.alpha = alpha
        self.gamma = gamma

    def at(self, planes: np.ndarray) -> Point:
        """E-step: the likelihood of the planes, and the probabilities of the planes for each row."""
        scores = self.rows.scores(planes)
        gates = hard_gates(scores, self.sign) if self.gamma is None else soft_gates(scores, self.sign, self.gamma)
        ridge = 0.5 * self.alpha * np.square(planes[:, :-1]).sum()
        return Point(planes, float(self.weight @ gates.log_likelihood) - float(ridge), scores, gates)

    def gradient(self, point: Point) -> np.ndarray:
        """Gradient of Q at the planes of the E-step, where it is equal to that of the likelihood."""
        _, gate, share = point.gates
        gradient_weights = share * (self.sign * expit(-self.sign * point.scores))
        if self.gamma is not None:
            gradient_weights += self.gamma * (gate - share)
        gradient = self.rows.sums(gradient_weights * self.weight)
        gradient[:, :-1] -= self.alpha * point.planes[:, :-1]
        return gradient

    def curvature(self, point: Point) -> np.ndarray:
        """Minus the Hessian of Q, positive semi-definite, of size ``n_planes * (n_features + 1)``."""
        _, gate, share = point.gates
        gamma = self.gamma or 0.0
        n_planes, size = point.planes.shape
        blocks = np.zeros((n_planes, size, n_planes, size))
        for k in range(n_planes):
            scores = point.scores[k, :]
            own = gamma**2 * gate[k, :] * (1 - gate[k, :]) + share[k, :] * expit(scores) * expit(-scores)
            blocks[k, :, k] = self._moment(own * self.weight)
            blocks[k, range(size - 1), k, range(size - 1)] += self.alpha
            for r in range(k) if gamma else ():
                both = gate[k, :] * gate[r, :] * self.weight
                blocks[k, :, r] = blocks[r, :, k] = -(gamma**2) * self._moment(both)
        return blocks.reshape(n_planes * size, n_planes * size)

    def separates(self, planes: np.ndarray) -> bool:
        """Whether all rows are on the correct side."""
        xp = namespace(self.sign)
        margin = self.sign * xp.min(self.rows.scores(planes), axis=0)
        return bool(xp.all((margin > 0) | (self.weight <= 0)))

    def _moment(self, weight: Any) -> np.ndarray:
        """Weighted sum of the outer products of each row with itself, including the constant 1."""
        X, (mean, factor) = self.rows.X, self.rows.scaling
        total, weight = float(namespace(weight).sum(weight)), astype(weight, X.dtype)
        first = np.asarray(to_numpy(X.T @ weight), dtype=np.float64)
        if sparse.issparse(X):
            second = (X.T @ sparse.diags_array(weight) @ X).toarray()
        else:
            blocks = ((X[block, :], weight[block][:, None]) for block in row_blocks(X))
            second = to_numpy(sum(part.T @ (part * share) for part, share in blocks))
        cross = np.outer(first, mean)
        moment = np.empty((len(mean) + 1, len(mean) + 1))
        moment[:-1, :-1] = (second - cross - cross.T + total * np.outer(mean, mean)) * np.outer(factor, factor)
        moment[-1, :-1] = moment[:-1, -1] = (first - total * mean) * factor
        moment[-1, -1] = total
        return moment


class Pair(NamedTuple):
    """A step, for the updates of BFGS and L-BFGS."""

    moved: np.ndarray
    change: np.ndarray  # decrease of the gradient
    curvature: float  # inner product of both


class Ascent(NamedTuple):
    """The maximisation of a likelihood, one M-step at a time.

    The line search compares the likelihood itself, not Q: the likelihood increases at least as much as Q (Jensen's
    inequality) and has the same slope, so every step that is acceptable for Q is acceptable. With hard gating, where an
    increase of Q guarantees nothing, the likelihood still never decreases.
    """

    likelihood: Any  # a Likelihood, or that of the rows of a cluster
    solver: str
    current: Any  # the current Point
    gradient: np.ndarray  # at the current point
    pairs: tuple[Pair, ...] = ()  # L-BFGS: the last steps
    inverse: np.ndarray | None = None  # BFGS: approximation of the inverse of minus the Hessian, B in the paper
    step: float = 1.0  # size of the last step along a gradient

    @classmethod
    def begin(cls, likelihood: Any, solver: str, planes: np.ndarray) -> Ascent:
        """Start from `planes`."""
        point = likelihood.at(planes)
        return cls(likelihood, solver, point, likelihood.gradient(point))

    def advance(self) -> Ascent:
        """Make one step; the planes stay the same if no step increases the likelihood."""
        for direction in self._directions():
            found = self._search(direction)
            if found is not None:
                candidate, step = found
                here = self._replace(pairs=(), inverse=None, step=step) if direction is self.gradient else self
                return here._move(candidate)
        return self._replace(pairs=(), inverse=None)

    def _directions(self) -> Iterator[np.ndarray]:
        """Yield the direction of the solver, and then the gradient, in case the first one fails."""
        if self.solver == "newton":
            yield self._newton()
        elif self.inverse is not None:
            yield (self.inverse @ self.gradient.ravel()).reshape(self.gradient.shape)
        elif self.pairs:
            yield times_inverse(self.pairs, self.gradient)
        yield self.gradient

    def _search(self, direction: np.ndarray) -> tuple[Any, float] | None:
        """Backtracking: the first of the halved steps with a sufficient increase of the likelihood (Armijo)."""
        current, slope = self.current, float(np.vdot(self.gradient, direction))
        if not slope > 0:
            return None
        step = 2.0 * self.step if direction is self.gradient else 1.0
        for _ in range(HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is rejected
                candidate = self.likelihood.at(current.planes + step * direction)
            if candidate.value >= current.value + SUFFICIENT * step * slope and candidate.value > current.value:
                return candidate, step
            step *= 0.5
        return None

    def _move(self, candidate: Any) -> Ascent:
        gradient = self.likelihood.gradient(candidate)
        here = self._replace(current=candidate, gradient=gradient)
        moved, change = candidate.planes - self.current.planes, self.gradient - gradient
        pair = Pair(moved, change, float(np.vdot(moved, change)))
        if not pair.curvature > 1e-10 * float(np.vdot(change, change)) > 0:  # the likelihood is not concave everywhere
            return here
        if self.solver == "lbfgs":
            return here._replace(pairs=(*self.pairs, pair)[-LBFGS_MEMORY:])
        return here._replace(inverse=_updated(self.inverse, pair)) if self.solver == "bfgs" else here

    def _newton(self) -> np.ndarray:
        """The Newton direction of Q at the current planes."""
        matrix = self.likelihood.curvature(self.current)
        # Planes without rows and equal planes make the matrix singular: add a ridge far below its scale.
        matrix[np.diag_indices(len(matrix))] += 1e-9 * max(matrix.diagonal().max(), np.finfo(float).tiny)
        try:
            factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return self.gradient
        return linalg.cho_solve(factor, self.gradient.ravel()).reshape(self.gradient.shape)


def _updated(inverse: np.ndarray | None, pair: Pair) -> np.ndarray:
    """The paper's rank-two update; the initial matrix is a scaled identity (Nocedal and Wright, 6.20)."""
    moved, change, curvature = pair.moved.ravel(), pair.change.ravel(), pair.curvature
    if inverse is None:
        inverse = curvature / np.vdot(change, change) * np.eye(len(moved))
    product = inverse @ change
    cross = np.outer(product, moved)
    stretch = (1.0 + np.vdot(change, product) / curvature) / curvature
    updated: np.ndarray = inverse + stretch * np.outer(moved, moved) - (cross + cross.T) / curvature
    return updated


#: The matrix of Newton and BFGS has this many rows at the most; it then takes 0.2 GB.
MATRIX_SIZE = 5_000

#: The ridge on the sum of the log-likelihoods, and the sharpness of the gates, where the user names none: the least
#: mean error of 3-fold cross-validation over the training rows of 15 public tables and 5 made sets.
RIDGE, GAMMA = 3.0, 2.0


@dataclass(frozen=True, eq=False)
class MixtureState(PolyhedronState):
    """The state of training; its planes are over scaled rows."""

    scaling: FeatureScaling
    weight_seen: float = 0.0  # of the current rows, and in a stream of those before
    log_likelihood: float = -math.inf  # on the current rows
    gain: float = math.inf  # of the last step
    ascent: Ascent | None = workspace()


@dataclass(frozen=True)
class PolyhedralMixture(PolyhedronMethod[MixtureState]):
    """Algorithm 1 of the PLUME paper; with `gamma` None its hard limit, SPLA1."""

    gamma: float | None = GAMMA
    solver: str = "lbfgs"
    alpha: float | None = None
    standardize: bool = True
    tol: float | None = 1e-5

    @property
    def traits(self) -> Traits:
        """Features are standardised, where that is not turned off."""
        adjustable = ADJUSTABLE | {"gamma", "solver", "alpha", "tol"}
        own_scaling: OwnScaling = "standard" if self.standardize else "none"
        return Traits(MixtureState, adjustable, takes_device_arrays=True, own_scaling=own_scaling)

    def check(self, data: Data) -> None:
        """Refuse rows that are too few, and a matrix that is too large."""
        super().check(data)
        size = self.n_planes * (data.X.shape[1] + 1)
        if self.solver in ("newton", "bfgs") and size > MATRIX_SIZE:
            raise ValueError(
                f"solver={self.solver!r} would keep a matrix of {size} x {size} numbers; use solver='lbfgs', which "
                "keeps the last steps in its place."
            )

    def start(self, data: Data, seed: int) -> MixtureState:
        """Planes between the classes; the likeliest, where there are several starts."""
        scaling = AffineScaling.identity(data.X.shape[1])
        if self.standardize:
            scaling = AffineScaling.standard(data.X, data.training_weight)

        def begin(planes: np.ndarray, inside: int) -> MixtureState:
            return MixtureState(planes, inside, kind_of(data.X), scaling)

        return self.best_start(data, seed, scaling, begin, lambda state: -state.log_likelihood).replace(weight_seen=0.0)

    def _prepared(self, state: MixtureState, data: Data) -> MixtureState:
        """The state on other rows than before, of another likelihood; the best of several starts goes on as it was."""
        self.check(data)
        weight = self.total_weight(data) + (state.weight_seen if data.stream else 0.0)
        state = replace(state, weight_seen=weight, log_likelihood=-math.inf)
        if state.ascent is not None:
            return state
        return replace(state, ascent=Ascent.begin(self._likelihood(state, data), self.solver, state.planes))

    def total_weight(self, data: Data) -> float:
        """The weight of all training rows."""
        return float(data.training_weight.sum())

    def ridge(self, state: MixtureState) -> float:
        """The strength of the ridge beside a mean log-likelihood."""
        return RIDGE / state.weight_seen if self.alpha is None else self.alpha

    def _likelihood(self, state: MixtureState, data: Data) -> Any:
        sign = np.where(data.y == state.inside, 1.0, -1.0)
        rows = AffineRows(data.X, state.scaling)
        return Likelihood(rows, sign, data.training_weight, self.ridge(state), self.gamma)

    def step(self, state: MixtureState, data: Data) -> MixtureState:
        """The M-step, and the E-step at the new planes."""
        if state.ascent is None or state.weight_seen == 0.0:
            state = self._prepared(state, data)
        assert state.ascent is not None
        ascent = state.ascent.advance()
        planes, value = ascent.current.planes, ascent.current.value
        return replace(state, planes=planes, log_likelihood=value, gain=value - state.log_likelihood, ascent=ascent)

    def metrics(self, state: MixtureState) -> Mapping[str, float]:
        """The likelihood."""
        return {"log_likelihood": state.log_likelihood}

    def done(self, state: MixtureState) -> bool:
        """Whether the last step has gained little."""
        return self.tol is not None and state.gain <= self.tol


@dataclass(eq=False, repr=False, kw_only=True)
class PolyhedralMixtureClassifier(PolyhedronClassifier):
    r"""One class inside a polyhedron, by a mixture of logistic experts: PLUME, and its hard limit SPLA1.

    A row is inside when it is on the right side of all planes, :math:`h(x) = \min_k f_k(x) > 0` with
    :math:`f_k(x) = w_k x + b_k`. Each plane is an expert, and the planes themselves say which expert answers:

    .. math::

        p(y \mid x) = \sum_k g_k(x) \, \sigma(y f_k(x)), \qquad
        g_k(x) = \frac{e^{-\gamma f_k(x)}}{\sum_j e^{-\gamma f_j(x)}}

    for :math:`y = +1` inside and :math:`-1` outside. The mean of :math:`\log p(y_i \mid x_i)` less
    :math:`\frac{\alpha}{2} \sum_k |w_k|^2` is maximised by EM: the E-step finds the share that each plane has in each
    row, :math:`\pi_k \propto g_k \sigma`, and the M-step makes one step uphill. Hard gating is the limit
    :math:`\gamma \to \infty`: each row belongs to its lowest plane, :math:`p(y \mid x) = \sigma(y h(x))`.

    Algorithm 1 of the paper is ``alpha=0``, ``standardize=False`` and a `solver` of "gradient", "newton" or "bfgs": the
    ridge, the standardised features and L-BFGS are not in it.

    By default features are standardised on the way (and the planes given back for the features as they are), so that
    `alpha` means the same whatever the units. No standardised copy is made, and sparse rows stay sparse. `partial_fit`
    makes one EM step on the rows it is given; its first piece sets the units, and the class inside unless it is given,
    so it should not be small.

    Under ``sklearn.config_context(array_api_dispatch=True)`` it learns from arrays of PyTorch and CuPy where they are.
    For more than two classes: ``sklearn.multiclass.OneVsRestClassifier(PolyhedralMixtureClassifier())``.

    Parameters
    ----------
    n_planes : int, default=2
        Number of planes, the sides of the polyhedron (K).
    gating : "soft" or "hard", default="soft"
        "soft" is PLUME, "hard" is SPLA1.
    gamma : float or None, default=None
        Sharpness of the soft gating (:math:`\gamma`); None: 2. Hard gating takes none.
    solver : "lbfgs", "bfgs", "newton" or "gradient", default="lbfgs"
        The direction of the M-step; its length is found by backtracking (Armijo). "gradient" is equation (7) of the
        paper. "newton", equation (9), solves a system of ``n_planes * (n_features + 1)`` unknowns at each step. "bfgs",
        equation (10), keeps the square matrix of that size which rank-two updates make of all steps; the first is made
        to a multiple of the identity that fits the first step. "lbfgs" makes the same updates of the last ten steps
        alone, without a matrix.
    standardize : bool, default=True
        Train in units of zero mean and unit variance of each feature. False: in those of the rows.
    inside : label, default=None
        The class in the convex region. None: each class is tried for 20 steps, and the one with the higher likelihood
        is kept.
    n_init : int, default=1
        Number of starts. The first splits the class outside along its long axes, the others at random; each is given 20
        steps, and the one with the highest likelihood is kept.
    alpha : float or None, default=None
        Strength of the L2 penalty, in the units that `standardize` implies. None: 3 over the number of rows (over the
        sum of         their weights, and of a stream over that of all rows so far). With 0 the likelihood of separable
        rows has no maximum: the planes grow until `tol` or `max_iter` stops them, and a warning is given.
    tol : float or None, default=1e-5
        Stop when a step raises the mean log-likelihood by no more than this (the paper's :math:`\epsilon`, on the sum).
    max_iter : int, default=200
        Maximum number of EM steps.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    random_state : int, RandomState or None, default=None
        Controls the random starts after the first.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model: the class outside owns the planes :math:`-f_k`, the class inside the zero plane.
    inside_ : label
        The class inside.
    classes_ : ndarray of shape (2,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    n_iter_ : int
        EM steps made.
    history_ : dict
        After each step: "time", and "log_likelihood", the mean less the ridge, which never falls.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    K. Shah, P. S. Sastry and N. Manwani. PLUME: Polyhedral Learning Using Mixture of Experts. ICML 2019.

    N. Manwani and P. S. Sastry. Learning Polyhedral Classifiers Using Logistic Function. ACML 2010 (SPLA1).

    Examples
    --------
    >>> from polyplane import PolyhedralMixtureClassifier
    >>> from polyplane.datasets import make_polyhedron
    >>> X, y = make_polyhedron(n_features=3, n_planes=3, random_state=0)
    >>> mixture = PolyhedralMixtureClassifier(n_planes=3, alpha=1e-3).fit(X[:700], y[:700])
    >>> mixture.planes_
    PlaneSet(n_classes=2, n_planes=4, n_features=3, dtype=float64)
    >>> print(f"{mixture.score(X[700:], y[700:]):.2f}")
    0.96
    """

    gating: str = "soft"
    gamma: float | None = None
    solver: str = "lbfgs"
    standardize: bool = True
    alpha: float | None = None
    tol: float | None = 1e-5

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gating": [StrOptions({"soft", "hard"})],
        "solver": [StrOptions({"gradient", "newton", "bfgs", "lbfgs"})],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"n_planes": [2, 1, 4, 8], "alpha": [None, 1e-3, 1e-5]},
        multi_class=False,
        label_parameters=("inside",),
    )

    def _method(self, classes: np.ndarray) -> PolyhedralMixture:
        if self.gating == "hard" and self.gamma is not None:
            raise ValueError(f"gamma={self.gamma!r} is for gating='soft'; hard gating has no such parameter.")
        return self._polyhedron_method(PolyhedralMixture, classes, gamma=self._gamma)

    def _concluded(self, method: Any, state: MixtureState, data: Data) -> MixtureState:
        assert state.ascent is not None
        if self.alpha == 0 and state.ascent.likelihood.separates(state.planes):
            warnings.warn(
                "The rows are perfectly separated, so their likelihood has no maximum: the planes are as steep as tol "
                "and max_iter let them grow. Set alpha > 0 for planes that do not depend on when training stops.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return state

    @property
    def _gamma(self) -> float | None:
        """The sharpness of the gating, None for hard gates."""
        return None if self.gating == "hard" else self.gamma or GAMMA

    def predict_proba(self, X: Any) -> np.ndarray:
        r"""Probabilities of the two classes that agree with `predict`: :math:`\sigma(h(x))` of being inside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_rows, 2)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        second = astype(scores, widest_float(scores))  # in float32 small scores of both signs would become 0.5
        return namespace(second).stack([expit(-second), expit(second)], axis=1)

    def mixture_proba(self, X: Any) -> np.ndarray:
        r"""The posterior :math:`p(y \mid x)` of the mixture, which near an edge may disagree with `predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_rows, 2)
            In the order of ``classes_``. With hard gating it is `predict_proba`.
        """
        gamma = self._gamma
        if gamma is None:
            return self.predict_proba(X)
        X = check_fitted_matrix(self, X)
        around = self.planes_.owners != self._state.inside
        scores = take_rows(-self.planes_.scores(X).T, np.flatnonzero(around))
        scores, xp = astype(scores, widest_float(scores)), namespace(scores)
        inside, outside = (xp.exp(soft_gates(scores, sign, gamma).log_likelihood) for sign in (1.0, -1.0))
        return xp.stack([inside, outside] if self._state.inside == 0 else [outside, inside], axis=1)
