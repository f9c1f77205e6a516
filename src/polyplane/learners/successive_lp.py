"""Polyhedral separation by successive linear programs (Astorino and Gaudioso, 2002)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from polyplane._array_api import kind_of
from polyplane.base import Declaration
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.method import Traits
from polyplane.engine.state import FeatureScaling, workspace
from polyplane.learners.polyhedron import (
    ADJUSTABLE,
    AffineRows,
    PolyhedronClassifier,
    PolyhedronMethod,
    PolyhedronState,
)

#: The ridge on the sum of the slacks, where the user names none: the least mean error of 3-fold cross-validation over
#: the training rows of public tables.
RIDGE = 3.0

#: How far the first step may go, in standardised units, where the user names no radius.
RADIUS = 0.05

#: The most programs solved at one point for rows outside that several planes keep out equally well.
CHOICES = 8

#: HiGHS refuses coefficients beyond the first, and takes bounds beyond the second for none.
LARGEST_COEFFICIENT, UNBOUNDED = 1e15, 1e20


class LinearPrograms:
    """The rows as the linear programs see them, and the weights of their slacks."""

    def __init__(self, data: Data, scaling: AffineScaling, inside: int, alpha: float | None) -> None:
        weight, is_inside = data.training_weight, data.y == inside
        self.rows = AffineRows(data.X, scaling)
        self.inside = np.flatnonzero(is_inside & (weight > 0))
        self.outside = np.flatnonzero(~is_inside & (weight > 0))
        self.cost = weight[np.concatenate([self.inside, self.outside])] / weight.sum()
        self.alpha = RIDGE / float(weight.sum()) if alpha is None else alpha
        self.points = [_with_constant(data.X[at], scaling) for at in (self.inside, self.outside)]
        reach = max(float(abs(points).max()) for points in self.points)
        if not reach < LARGEST_COEFFICIENT:
            raise ValueError(
                f"X reaches {reach:.3g} times the spread of the rows that training began with, too far for a linear "
                "program: give rows in the same units, or fit anew with warm_start=False."
            )

    def objective(self, planes: np.ndarray) -> float:
        """Mean slack at margin 1, each row outside at its lowest plane, and the ridge."""
        lowest = self.rows.scores(planes).min(axis=0)
        margin = np.concatenate([lowest[self.inside], -lowest[self.outside]])
        ridge = self.alpha * float(np.abs(planes[:, :-1]).sum())
        return float(self.cost @ np.maximum(0.0, 1.0 - margin)) + ridge

    def owners(self, planes: np.ndarray) -> Iterator[np.ndarray]:
        """Which plane keeps out each row outside: the lowest; then the other possibilities where several are."""
        scores = self.rows.scores(planes)[:, self.outside]
        lowest = scores.min(axis=0)
        is_lowest = scores <= lowest + 1e-9 * (1.0 + np.abs(lowest))
        at_stake = np.flatnonzero((is_lowest.sum(axis=0) > 1) & (lowest > -1.0 - 1e-9))
        first = scores.argmin(axis=0)
        others = product(*(np.flatnonzero(is_lowest[:, row]) for row in at_stake))
        yield first
        for choice in islice(others, CHOICES):
            owner = first.copy()
            owner[at_stake] = choice
            if not np.array_equal(owner, first):
                yield owner

    def solve(self, planes: np.ndarray, owner: np.ndarray, radius: float) -> np.ndarray:
        """The best planes no further than `radius` when `owner` is to keep out each row outside: one linear program."""
        from scipy.optimize import linprog

        (inside, outside), n_planes, free = self.points, len(planes), planes.ravel()
        above = sparse.hstack([sparse.kron(sparse.eye_array(n_planes), -inside), _slacks(len(self.inside), n_planes)])
        below = _at_plane(outside, owner, n_planes)
        nothing = sparse.csr_array((len(owner), len(self.inside)))
        rows = sparse.block_array([[above, None], [sparse.hstack([below, nothing]), _slacks(len(owner), 1)]])
        limits, cost = -np.ones(rows.shape[0]), np.concatenate([np.zeros(len(free)), self.cost])
        if self.alpha > 0:  # each weight has its absolute value beside it
            weights = np.flatnonzero(np.arange(len(free)) % inside.shape[1] < inside.shape[1] - 1)
            chosen = sparse.eye_array(rows.shape[1], format="csr")[weights]
            size = sparse.eye_array(len(weights))
            rows = sparse.block_array([[rows, None], [chosen, -size], [-chosen, -size]])
            limits = np.concatenate([limits, np.zeros(2 * len(weights))])
            cost = np.concatenate([cost, np.full(len(weights), self.alpha)])
        positive = np.tile([0.0, np.inf], (len(cost) - len(free), 1))
        bounds = np.vstack([np.column_stack([free - radius, free + radius]), positive])
        found = linprog(cost, A_ub=rows.tocsc(), b_ub=limits, bounds=bounds, method="highs")
        if found.x is None:
            raise ValueError(
                f"A linear program could not be solved with alpha {self.alpha:.3g}: scale the sample weights to a mean "
                f"near 1, or set alpha. {found.message}"
            )
        best: np.ndarray = found.x[: len(free)].reshape(planes.shape)
        return best


def _with_constant(X: Any, scaling: AffineScaling) -> sparse.csr_array:
    """Scaled rows, not centred, with a constant 1, as a sparse matrix."""
    scaled = sparse.csr_array(X) @ sparse.diags_array(scaling.factor)
    return sparse.csr_array(sparse.hstack([scaled, np.ones((X.shape[0], 1))]))


def _at_plane(points: sparse.csr_array, owner: np.ndarray, n_planes: int) -> sparse.csr_array:
    """Each row moved to the columns of its plane."""
    points = points.tocoo()
    row, column = points.coords
    size = points.shape[1]
    return sparse.csr_array((points.data, (row, column + owner[row] * size)), shape=(len(owner), n_planes * size))


def _slacks(n_rows: int, n_planes: int) -> sparse.csr_array:
    """Minus one slack per row, shared by all of its planes."""
    return -sparse.vstack([sparse.eye_array(n_rows)] * n_planes)


@dataclass(frozen=True, eq=False)
class SuccessiveLPState(PolyhedronState):
    """The state of training; its planes are over scaled rows."""

    scaling: FeatureScaling
    radius: float  # how far the next step may go
    objective: float = math.inf
    is_stationary: bool = False  # the last step has not led down by more than the tolerance
    programs: LinearPrograms | None = workspace()

    def check(self, sizes: dict[str, int]) -> bool:
        """A program can go on from the planes."""
        return super().check(sizes) and bool(np.all(np.abs(self.planes) < UNBOUNDED)) and self.radius > 0.0


@dataclass(frozen=True)
class SuccessiveLP(PolyhedronMethod[SuccessiveLPState]):
    """Descent by linear programs: the objective, with the lowest plane of each row outside settled, is convex.

    So settled it is nowhere lower than the objective, and equal to it at the current planes: a program that lowers it
    lowers the objective, and where none does for any of the planes that keep a row out equally well, no direction
    leads down.
    """

    trial_steps: int = 10
    radius: float | None = RADIUS
    alpha: float | None = None
    tol: float | None = 1e-6

    traits = Traits(SuccessiveLPState, ADJUSTABLE | {"radius", "alpha", "tol"}, own_scaling="standard")

    def start(self, data: Data, seed: int) -> SuccessiveLPState:
        """Planes between the classes."""
        # Not centred: sparse rows would become dense, and a linear program does not care.
        scaling = AffineScaling.standard(data.X, data.training_weight)._replace(centre=np.zeros(data.X.shape[1]))
        radius = math.inf if self.radius is None else self.radius

        def begin(planes: np.ndarray, inside: int) -> SuccessiveLPState:
            return SuccessiveLPState(planes, inside, kind_of(data.X), scaling, radius)

        return self.best_start(data, seed, scaling, begin, lambda state: state.objective)

    def _prepared(self, state: SuccessiveLPState, data: Data) -> SuccessiveLPState:
        """The state with the programs of these rows, and what planes found on other rows cost on them."""
        self.check(data)
        programs = LinearPrograms(data, state.scaling, state.inside, self.alpha)
        objective = programs.objective(state.planes)
        return replace(state, objective=objective, is_stationary=False, programs=programs)

    def step(self, state: SuccessiveLPState, data: Data) -> SuccessiveLPState:
        """One program, and others where planes keep rows out equally well and the first does not lead down."""
        if state.programs is None:
            state = self._prepared(state, data)
        assert state.programs is not None
        best, enough = state, (1.0 - (self.tol or 0.0)) * state.objective
        for owner in state.programs.owners(state.planes):
            planes = state.programs.solve(state.planes, owner, state.radius)
            objective = state.programs.objective(planes)
            if objective < best.objective:
                best = replace(state, planes=planes, objective=objective)
            if objective < enough:
                break
        went = float(np.abs(best.planes - state.planes).max())
        radius = 2.0 * state.radius if went > 0.99 * state.radius else state.radius
        return replace(best, radius=radius, is_stationary=best.objective >= enough)

    def metrics(self, state: SuccessiveLPState) -> Mapping[str, float]:
        """The objective."""
        return {"objective": state.objective}

    def done(self, state: SuccessiveLPState) -> bool:
        """Whether the last step has not led down."""
        return self.tol is not None and state.is_stationary


@dataclass(eq=False, repr=False, kw_only=True)
class SuccessiveLPClassifier(PolyhedronClassifier):
    r"""One class inside a polyhedron, by successive linear programs (PC-SLP).

    A row is inside when :math:`h(x) = \min_k f_k(x) > 0` with :math:`f_k(x) = w_k x + b_k`. With :math:`c_i` the
    weights of the rows over their sum, :math:`A` the rows inside and :math:`B` those outside, training lowers

    .. math::

        \sum_{i \in A} c_i \left[1 - \min_k f_k(x_i)\right]_+
        + \sum_{j \in B} c_j \left[1 + \min_k f_k(x_j)\right]_+
        + \alpha \sum_k |w_k|_1

    which is piecewise linear, neither convex nor concave. The first sum is convex; the second becomes so once it is
    settled which plane keeps out each row. A step settles that by the lowest plane of each row, and a linear program
    (HiGHS) finds the best planes for it within `radius` of the current ones, which doubles when a step reaches it. The
    program lies above the objective and touches it at the current planes, so that no step raises the objective and none
    has to be taken back. Where planes keep rows out equally well and the first choice does not lead down, the others
    are tried, eight programs at the most. Training ends when the objective no longer falls.

    The error function of the article is ``class_weight="balanced"`` (each class weighs the same, however many rows it
    has) and ``alpha=0``. With ``radius=None`` steps have no bound: a short form, which alternates an assignment of the
    rows outside with one program for all planes. It needs fewer programs and ends at higher objectives.

    Features are scaled to unit variance on the way, and the planes given back for the features as they are. The
    programs hold ``n_planes`` copies of the rows inside: a method for hundreds or thousands of rows. For more
    than two classes: ``sklearn.multiclass.OneVsRestClassifier(SuccessiveLPClassifier())``.

    Parameters
    ----------
    n_planes : int, default=2
        Number of planes, the sides of the polyhedron (K).
    inside : label, default=None
        The class in the convex region. None: each class is tried for ten programs, and the one with the lower
        objective is kept.
    radius : float or None, default=0.05
        Trust region: how far each weight may move in the first step, in units of scaled features. None: unbounded.
    alpha : float or None, default=None
        Strength of the L1 penalty on the weights. None: 3 over the number of rows (over the sum of their weights).
    n_init : int, default=1
        Number of starts. The first splits the class outside along its long axes, the others at random; each solves ten
        programs, and the best is kept.
    tol : float or None, default=1e-6
        Stop when a step lowers the objective by no more than this fraction.
    max_iter : int, default=50
        Maximum number of steps.
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
        Steps made.
    history_ : dict
        After each step: "time" and "objective", which never rises.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    A. Astorino and M. Gaudioso. Polyhedral Separability through Successive LP. Journal of Optimization Theory and
    Applications, 112(2), 2002. Its error function and its descent by linear programs are built here after its abstract
    and after what the Polyceptron and PLUME papers say of it; the rule for the length of a step is our own.

    Examples
    --------
    >>> from polyplane import SuccessiveLPClassifier
    >>> from polyplane.datasets import make_polyhedron
    >>> X, y = make_polyhedron(400, n_features=2, n_planes=3, random_state=0)
    >>> polyhedron = SuccessiveLPClassifier(n_planes=3).fit(X[:200], y[:200])
    >>> print(f"{polyhedron.score(X[200:], y[200:]):.1f}")
    1.0
    """

    radius: float | None = RADIUS
    alpha: float | None = None
    tol: float | None = 1e-6
    max_iter: int = 50

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, LARGEST_COEFFICIENT, closed="both"), None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"n_planes": [2, 3, 5, 8]},
        multi_class=False,
        streams=False,  # a linear program needs all rows at once, and would forget those of earlier calls
        label_parameters=("inside",),
    )

    def _method(self, classes: np.ndarray) -> SuccessiveLP:
        return self._polyhedron_method(SuccessiveLP, classes)
