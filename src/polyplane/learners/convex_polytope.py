"""The Convex Polytope Machine (Kantchelian et al., 2014)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from polyplane._array_api import Team, in_threads
from polyplane.base import Declaration, PlaneClassifier, class_index
from polyplane.engine.data import Data
from polyplane.engine.method import Traits
from polyplane.engine.state import Array, MixedNumber, MixedWhole, RowMemory, Seed, State, Whole, workspace
from polyplane.learners.choose_planes import choose_sides
from polyplane.learners.joint_polytope import JointPolytope, JointState
from polyplane.learners.sgd import (
    ADJUSTABLE,
    FOREVER,
    LARGEST_GROWTH,
    InverseTimeSGD,
    MeasuredRows,
    better_planes,
    blended,
    last_planes,
    pieces,
    planes_of,
    rescaled,
    scores_of,
    share_of_last,
    widened,
    window_of,
)
from polyplane.planes import PlaneSet

_MEAN = Array("f", "features", "n_planes", in_place=False, mixed=True)
_MEAN_OFFSETS = Array("f", "n_planes", in_place=False, mixed=True)
_SCORES = Array("f", "polytopes", "measured", "n_planes", in_place=False)


@dataclass(frozen=True, eq=False)
class Polytope(State):
    """One polytope in training; its class is outside. Arrays hold `margin` times the planes."""

    outer: Annotated[int, Whole("classes")]
    coef: Annotated[np.ndarray, Array("f", "features", "n_planes", by_feature=True, mixed=True, scaled_by="margin")]
    intercept: Annotated[np.ndarray, Array("f", "n_planes", mixed=True, scaled_by="margin")]
    counts: Annotated[np.ndarray, Array("i", "n_planes", mixed=True)]  # rows assigned to each plane, for the entropy
    margin: MixedNumber = 0.0
    mean: tuple[Annotated[np.ndarray, _MEAN], Annotated[np.ndarray, _MEAN_OFFSETS]] | None = None

    def check(self, sizes: dict[str, int]) -> bool:
        """Counts are not negative."""
        return bool((self.counts >= 0).all())


@dataclass(frozen=True, eq=False)
class PolytopeMemory(RowMemory):
    """The memory of each row: by polytope (first axis), or for the polytope of its class."""

    skip: Annotated[np.ndarray, Array("uint8", "polytopes", "rows")]  # passes for which to skip it
    recorded: Annotated[np.ndarray, Array("int32", "rows", below="n_planes")]
    scores: Annotated[np.ndarray, _SCORES] | None = None  # of some rows, before the last pass

    @classmethod
    def fresh(cls, n_polytopes: int, n_rows: int) -> PolytopeMemory:
        """The memory before the first pass."""
        return cls(np.zeros((n_polytopes, n_rows), dtype=np.uint8), np.full(n_rows, -1, dtype=np.int32))


class Workspace:
    """The threads of a run, the order of the next epoch, and the rows on which movements are measured."""

    def __init__(self, n_jobs: int | None, measured: MeasuredRows | None) -> None:
        self.team = Team(n_jobs)
        self.next_order: tuple[int, np.ndarray] | None = None
        self.measured = measured


@dataclass(frozen=True, eq=False)
class PolytopeState(State):
    """The state of training."""

    polytopes: list[Polytope]
    n_classes: int
    seed: Seed
    epoch: int = 0
    t: MixedWhole = 0  # visits made so far
    step: MixedNumber = math.inf  # last step size
    loss: MixedNumber = math.inf  # mean over the rows of the last epoch
    updates: MixedNumber = 1.0  # fraction of them that updated a plane
    window: int = FOREVER  # number of visits after which steps are constant
    blends: int = 0  # number of updates of the average
    blend_rows: int = 0  # rows, and the numbers in them, visited since the last time
    blend_entries: int = 0
    prefers_last: bool = False  # the last planes make clearly fewer errors than their average
    rows: PolytopeMemory | None = None
    workspace: Workspace | None = workspace()

    @property
    def share(self) -> float:
        """The weight of the current planes in their average, if they are not yet included in `mean`."""
        return share_of_last(self.blends, self.blend_rows, self.window) if self.blend_rows else 0.0

    def check(self, sizes: dict[str, int]) -> bool:
        """Each class is outside one polytope, or one of two classes is."""
        outer, n_classes = [polytope.outer for polytope in self.polytopes], sizes["classes"]
        known = self.rows is None or len(self.rows.skip) == len(outer)
        each_once = outer == list(range(n_classes)) or (n_classes == 2 and outer in ([0], [1]))
        return self.n_classes == n_classes and known and each_once


def measure_movement(state: PolytopeState, data: Data, bias_input: float) -> tuple[PolytopeState, np.ndarray]:
    """Record the scores of the measured rows; return the movement of the scores of each plane per pass and row norm.

    The movements, of shape (n_polytopes, n_planes), are infinite where they are not known yet.
    """
    from polyplane.kernels.convex_polytope import polytope_scores
    from polyplane.kernels.rows import PlaneSums, as_rows

    assert state.rows is not None
    assert state.workspace is not None
    measured, before = state.workspace.measured, state.rows.scores
    shape = len(state.polytopes), len(state.polytopes[0].intercept)
    if measured is None or state.t == 0:
        return state, np.full(shape, math.inf)
    now = np.empty((shape[0], len(measured.rows), shape[1]), dtype=data.X.dtype)
    rows = as_rows(data.X)

    def write(side: int) -> None:
        polytope = state.polytopes[side]
        planes = PlaneSums(polytope.coef[: data.X.shape[1]], polytope.intercept, bias_input)
        polytope_scores(rows, measured.rows, planes, now[side])
        now[side] /= polytope.margin

    state.workspace.team.map(write, range(len(now)))
    state = replace(state, rows=replace(state.rows, scores=now))
    if before is None or before.shape != now.shape:
        return state, np.full(shape, math.inf)
    return state, np.array([measured.movement(*pair, state.step) for pair in zip(now, before, strict=True)])


#: Rows per block when rows are assigned to the fitted planes.
ROWS_AT_ONCE = 1 << 14
#: Default number of sides of a polytope that is trained alone, and default regularisation.
SIDES, ALPHA = 16, 1e-4


@dataclass(frozen=True)
class ConvexPolytope(InverseTimeSGD[PolytopeState]):
    """Algorithm 1 of the paper: stochastic gradient descent, for several polytopes at a time.

    Each class of `outer` is outside a polytope of its own.
    """

    outer: tuple[int, ...]
    n_planes: int = 16
    alpha: float = 1e-4

    traits = Traits(PolytopeState, ADJUSTABLE, fades=True, mixable=True, steps_before_mixing=2)

    def start(self, data: Data, seed: int) -> PolytopeState:
        """Zero planes."""
        dtype, shape = data.X.dtype, (data.X.shape[1], self.n_planes)
        polytopes = [
            Polytope(
                outer,
                np.zeros(shape, dtype=dtype),
                np.zeros(self.n_planes, dtype=dtype),
                np.zeros(self.n_planes, dtype=np.int64),
            )
            for outer in self.outer
        ]
        return PolytopeState(polytopes, data.n_classes, seed)

    def _prepared(self, state: PolytopeState, data: Data) -> PolytopeState:
        """The state with a memory of these rows, and threads."""
        rows = state.rows or PolytopeMemory.fresh(len(state.polytopes), len(data.y))
        return replace(state, rows=rows, workspace=Workspace(self.n_jobs, self._measured_rows(data)))

    def step(self, state: PolytopeState, data: Data) -> PolytopeState:
        """One epoch: all rows, in a random order, on each polytope."""
        if state.workspace is None:
            state = self._prepared(state, data)
        assert state.workspace is not None
        workspace, order = state.workspace, self._order(state, data)
        state = _paced(state, window_of(data.half_life), self.alpha)
        state, movement = measure_movement(state, data, self._bias_input)

        def work(side: int) -> Any:
            if side == len(state.polytopes):  # by the first thread that is free
                return self._permutation(state.seed, state.epoch + 1, data)
            return self._epoch(state, side, order, movement[side], data)

        ahead = workspace.team.size > 1 and not data.stream
        done = workspace.team.map(work, range(len(state.polytopes) + ahead))
        if ahead:
            workspace.next_order = state.epoch + 1, done.pop()
        polytopes, losses, updates = zip(*done, strict=True)
        visits = len(order)
        state = replace(
            state,
            polytopes=list(polytopes),
            epoch=state.epoch + 1,
            t=min(state.t + visits, state.window),
            step=1.0 / (self.alpha * min(state.t + visits, state.window)),
            loss=sum(losses) / visits,
            updates=sum(updates) / visits / len(polytopes),
            prefers_last=False,
        )
        return self._averaged(state, data)

    def _order(self, state: PolytopeState, data: Data) -> np.ndarray:
        """The order of an epoch, which may have been drawn during the one before."""
        assert state.workspace is not None
        ahead = state.workspace.next_order
        if ahead is not None and ahead[0] == state.epoch:
            return ahead[1]
        return self._permutation(state.seed, state.epoch, data)

    def _epoch(
        self, state: PolytopeState, side: int, order: np.ndarray, movement: np.ndarray, data: Data
    ) -> tuple[Polytope, float, int]:
        """One epoch of one polytope; return it, the sum of the losses, and the number of rows that moved a plane."""
        from polyplane.kernels.convex_polytope import Backoff, Memory, Pace, Problem, polytope_epoch
        from polyplane.kernels.rows import PlaneSums, as_rows

        assert state.rows is not None
        assert state.workspace is not None
        polytope, memory, t, window = state.polytopes[side], state.rows, state.t, state.window
        coef, intercept, margin = polytope.coef, polytope.intercept, polytope.margin
        min_entropy = self.min_entropy * math.log(self.n_planes)
        problem = Problem(data.y, data.weight, polytope.outer, float(self.alpha), min_entropy)
        remembered = Memory(memory.recorded, polytope.counts, np.empty(2)) if min_entropy > 0.0 else None
        measured = state.workspace.measured
        length = np.zeros(0, dtype=coef.dtype) if measured is None else measured.length
        backoff = Backoff(memory.skip[side], length, movement, 0 if measured is None else int(self.backoff))
        score = np.empty(self.n_planes, dtype=coef.dtype)
        rows, loss, updates = as_rows(data.X), 0.0, 0
        for piece in pieces(order, window):
            planes = PlaneSums(coef[: data.X.shape[1]], intercept, self._bias_input)
            part = polytope_epoch(rows, piece, Pace(t, margin, window), planes, problem, remembered, backoff, score)
            loss, updates, t, margin = loss + part[0], updates + part[1], t + len(piece), part[2]
            if margin > LARGEST_GROWTH * self.alpha * window:
                factor, margin = self.alpha * window / margin, self.alpha * window
                coef, intercept = coef * factor, intercept * factor
        if t > window:
            polytope.counts[:] = polytope.counts * math.exp(-len(order) / window)
        return replace(polytope, coef=coef, intercept=intercept, margin=margin), loss, updates

    def _blended(self, state: PolytopeState, share: float) -> PolytopeState:
        assert state.workspace is not None
        polytopes = state.workspace.team.map(lambda polytope: blended(polytope, share), state.polytopes)
        return replace(state, polytopes=polytopes)

    def _without_mean(self, state: PolytopeState) -> PolytopeState:
        return replace(state, polytopes=[replace(polytope, mean=None) for polytope in state.polytopes])

    def planes(self, state: PolytopeState) -> PlaneSet:
        """Each outer class owns the planes of its polytope, any other the zero plane."""
        owned = {}
        for polytope in state.polytopes:
            coef, intercept = last_planes(polytope) if state.prefers_last else planes_of(polytope, state.share)
            owned[polytope.outer] = (np.ascontiguousarray(coef.T), intercept)
        coef, intercept = owned[state.polytopes[0].outer]
        nothing = (np.zeros_like(coef[:1]), np.zeros_like(intercept[:1]))
        return PlaneSet.of_classes(owned.get(c, nothing) for c in range(state.n_classes))

    def predict(self, state: PolytopeState, X: Any) -> np.ndarray:
        """The classes of the rows, without a copy of the planes: they may have millions of features."""

        def best(polytope: Polytope) -> np.ndarray:
            highest: np.ndarray = scores_of(polytope, X, state.share).max(axis=1)
            return highest

        scores = np.zeros((X.shape[0], state.n_classes))
        for polytope, column in zip(state.polytopes, in_threads(best, state.polytopes, self.n_jobs), strict=True):
            scores[:, polytope.outer] = column
        codes: np.ndarray = scores.argmax(axis=1)
        return codes

    def widen(self, state: PolytopeState, n_features: int) -> PolytopeState:
        """Add room for more features."""
        for i, polytope in enumerate(state.polytopes):  # one after the other: they are large
            state.polytopes[i] = widened(polytope, n_features)
        return state

    def done(self, state: PolytopeState) -> float:
        """The loss, once the steps 1 / (alpha t) have fallen to 1: before that, the planes move too much."""
        return state.loss if state.step <= 1.0 else math.inf


def _paced(state: PolytopeState, window: int, alpha: float) -> PolytopeState:
    """The state for another window. If the steps decrease again, the margin is alpha t again."""
    if state.t >= state.window and window > state.t:
        polytopes = [rescaled(polytope, alpha * state.t) for polytope in state.polytopes]
        state = replace(state, polytopes=polytopes)
    return state if window == state.window else replace(state, window=window)


@dataclass(eq=False, repr=False)
class ConvexPolytopeClassifier(PlaneClassifier):
    r"""Convex Polytope Machine: each class owns the planes of a polytope, and scores its best plane.

    The class with the largest :math:`\max_k W_{ck} x` wins. By default the planes of all classes are trained together,
    so that each row beats the best plane of any other class by 1:

    .. math::

        \frac{\alpha}{2} \sum_{c, k} |W_{ck}|^2
        + \frac{1}{n} \sum_i \Big[1 + \max_{c \ne y_i, k} W_{ck} x_i - W_{y_i z(i)} x_i\Big]_+

    where :math:`z(i)` is the best plane of the row's own class, or with `min_entropy` the one that it is assigned to.
    Training starts from the planes tangent to a paraboloid above the k-means centres of each class.

    With ``enclosed="each"`` each polytope is trained alone, as in the paper. Rows of the other classes are pushed
    inside the polytope of class :math:`c`, below *every* side; a row of class :math:`c` is lifted over *one* side:

    .. math::

        \frac{\alpha}{2} \sum_k |W_k|^2
        + \frac{1}{n} \sum_{i: y_i \ne c} \sum_k \left[1 + W_k x_i\right]_+
        + \frac{1}{n} \sum_{i: y_i = c} \left[1 - W_{z(i)} x_i\right]_+

    For two classes this is the paper's double-sided classifier; the paper's classifier for more classes is
    ``OneVsOneClassifier(ConvexPolytopeClassifier(enclosed="each"))`` with scikit-learn's `OneVsOneClassifier`.

    All are minimised by stochastic gradient descent with the step :math:`1 / (\alpha t)`.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (K). None: 1, 4, 16 or 48, chosen on held-out rows by short trainings; 16 in a stream and
        where polytopes are trained alone.
    enclosed : label, "each" or None, default=None
        None: the planes of all classes are trained together. A label, for two classes: the class that a single
        polytope encloses. "each", unless that is a label: each class is outside a polytope of its own, trained alone.
    alpha : float or None, default=None
        Strength of the regularisation on the mean loss (the paper's :math:`\lambda`). None: 0.03 to 3 times the mean
        squared norm of a row over the number of rows, chosen on held-out rows by short trainings; in a stream 1e-6
        times the mean squared norm; 1e-4 where polytopes are trained alone.
    max_iter : int, default=100
        Number of passes over the training rows (epochs). The paper fixes the number of visits T and searches ``alpha``
        in 1/T, 10/T, ..., 10000/T.
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes; with `early_stopping`: 0.
    min_entropy : float, default=0.0
        The paper's h, as a fraction of log K. While the assignment of margin violators to planes has less entropy than
        this, violators are assigned to rarer planes: 0 leaves the assignment free, 1 aims at equal shares. It guides
        training and guarantees nothing about the fitted planes, see `plane_counts_`. Try 0.8 to 0.9 when K is large.
    backoff : int, default=31
        Maximum number of passes for which a row is skipped. A row is skipped for as long as its margin cannot be
        violated at the rate at which the planes move. 0: visit all rows in each pass, as in the paper; several times
        slower.
    average : bool, default=True
        Whether to use a running average of the planes, in which late passes weigh most, instead of the last planes. The
        last planes are used where they make clearly fewer errors on the training rows.
    fit_intercept : bool, default=True
        Whether to learn the offsets of the planes, which are regularised like the weights.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    early_stopping : bool or float, default=False
        Hold out this share of the rows (True: a tenth), stop when their error no longer falls, and keep the planes that
        were best on them.
    n_iter_no_change : int, default=10
        Number of passes without improvement before training stops.
    random_state : int, RandomState or None, default=None
        Controls the order in which rows are visited.
    n_jobs : int or None, default=None
        Threads, in training (over short trainings, or over polytopes that are trained alone) and in prediction. The
        planes do not depend on it.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    assignments_ : ndarray of shape (n_rows,)
        The best plane of its class for each row of the last call, by the fitted planes; -1 for rows not trained on.
    plane_counts_ : ndarray of shape (n_planes,)
        How many rows are assigned to each plane.
    n_iter_ : int
        Number of passes made.
    choice_ : dict
        If `n_planes` or `alpha` was None: the short trainings that were compared, one entry each: "n_planes",
        "start_weight", "strength" (of the regularisation) and "loss", the error on held-out rows.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met, over all polytopes), "updates" (share of the visits
        that moved a plane) and "step" (its length), and with `early_stopping` "validation_error".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import ConvexPolytopeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    >>> model = ConvexPolytopeClassifier(random_state=0).fit(X_train, y_train)
    >>> model.planes_
    PlaneSet(n_classes=10, n_planes=480, n_features=64, dtype=float64)
    >>> print(f"{model.score(X_test, y_test):.2f}")
    0.98
    """

    n_planes: int | None = None
    _: KW_ONLY
    enclosed: Any = None
    alpha: float | None = None
    max_iter: int = 100
    tol: float | None = None
    min_entropy: float = 0.0
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    class_weight: Any = None
    warm_start: bool = False
    early_stopping: bool | float = False
    n_iter_no_change: int = 10
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "enclosed": "no_validation",
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "min_entropy": [Interval(Real, 0, 1, closed="both")],
        "backoff": [Interval(Integral, 0, 255, closed="both")],
        "average": ["boolean"],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"alpha": [None, 1e-5, 1e-4, 1e-3, 1e-2], "n_planes": [None, 4, 16, 48]},
        label_parameters=("enclosed",),
        choose=choose_sides,
        fitted={"assignments_": Array("i", "rows", below="planes"), "plane_counts_": Array("i", "planes")},
    )

    def _method(self, classes: np.ndarray) -> ConvexPolytope | JointPolytope:
        if self.enclosed is None:
            return JointPolytope.of(self)
        outer = tuple(range(len(classes)))
        if self.enclosed != "each" or "each" in classes:
            if len(classes) != 2:
                raise ValueError(
                    f"enclosed={self.enclosed!r} is for two classes, but y has {len(classes)}; use enclosed=None."
                )
            outer = (1 - class_index("enclosed", self.enclosed, classes),)
        return ConvexPolytope.of(self, outer=outer, n_planes=self.n_planes or SIDES, alpha=self.alpha or ALPHA)

    def _concluded(self, method: Any, state: Any, data: Data) -> Any:
        return better_planes(method, state, data)

    def _fitted_attributes(self, state: PolytopeState | JointState, data: Data) -> Mapping[str, Any]:
        assignments = np.full(len(data.y), -1)
        for c in range(self.planes_.n_classes):
            rows = data.train[data.y[data.train] == c]
            coef, intercept = self.planes_.of(c)
            if self._scaling is not None:  # the planes are in the units of the input, the rows are scaled
                coef, intercept = coef / self._scaling.factor, intercept + coef @ self._scaling.centre
            for some in np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE)):  # to avoid a copy of all rows
                best = (np.asarray(data.X[some] @ coef.T) + intercept).argmax(axis=1)
                assignments[some] = self.planes_.indptr[c] + best
        counts = np.bincount(assignments[assignments >= 0], minlength=self.planes_.n_planes)
        return {"assignments_": assignments, "plane_counts_": counts}
