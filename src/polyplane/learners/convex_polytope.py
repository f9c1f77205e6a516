"""The Convex Polytope Machine (Kantchelian et al., 2014)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from polyplane._threads import Team, in_threads
from polyplane.base import Declaration, PlaneClassifier, class_index
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array, MixedNumber, MixedWhole, Seed, Whole
from polyplane.engine.method import Method
from polyplane.engine.state import RowMemory, State, workspace
from polyplane.learners._backoff import MeasuredRows
from polyplane.learners._falling_steps import (
    FOREVER,
    LARGEST_GROWTH,
    blended,
    last_is_better,
    last_planes,
    pieces,
    planes_of,
    rescaled,
    share_of_last,
    taller,
    window_of,
)
from polyplane.learners._joint_polytope import JointPolytope, JointState
from polyplane.planes import PlaneSet

#: Rows that are assigned to the fitted planes at once.
ROWS_AT_ONCE = 1 << 14
#: Sides of a polytope that is trained alone, and its regularisation, where they are not given.
SIDES, ALPHA = 16, 1e-4

_MEAN = Array("f", "features", "n_planes", in_place=False, mixed=True)
_MEAN_OFFSETS = Array("f", "n_planes", in_place=False, mixed=True)
_SCORES = Array("f", "polytopes", "measured", "n_planes", in_place=False)


@dataclass(frozen=True, eq=False)
class Polytope(State):
    """One polytope in training: its class lives outside. What is stored is `margin` times the planes."""

    outer: Annotated[int, Whole("classes")]
    coef: Annotated[np.ndarray, Array("f", "features", "n_planes", by_feature=True, mixed=True, scaled_by="margin")]
    intercept: Annotated[np.ndarray, Array("f", "n_planes", mixed=True, scaled_by="margin")]
    counts: Annotated[np.ndarray, Array("i", "n_planes", mixed=True)]  # rows recorded at each plane, for the entropy
    margin: MixedNumber = 0.0
    mean: tuple[Annotated[np.ndarray, _MEAN], Annotated[np.ndarray, _MEAN_OFFSETS]] | None = None

    def check(self, sizes: dict[str, int]) -> bool:
        """Counts are not negative."""
        return bool((self.counts >= 0).all())


@dataclass(frozen=True, eq=False)
class PolytopeMemory(RowMemory):
    """What is remembered of each row: by polytope (first axis), or by the one polytope that has it outside."""

    skip: Annotated[np.ndarray, Array("uint8", "polytopes", "rows")]  # passes to skip it
    recorded: Annotated[np.ndarray, Array("int32", "rows", below="n_planes")]
    scores: Annotated[np.ndarray, _SCORES] | None = None  # of some rows, before the last pass

    @classmethod
    def fresh(cls, n_polytopes: int, n_rows: int) -> PolytopeMemory:
        """Nothing seen yet."""
        return cls(np.zeros((n_polytopes, n_rows), dtype=np.uint8), np.full(n_rows, -1, dtype=np.int32))


class Workspace:
    """The threads of a run, the order of the next epoch, and where rows may be skipped how movements are measured."""

    def __init__(self, n_jobs: int | None, measured: MeasuredRows | None) -> None:
        self.team = Team(n_jobs)
        self.next_order: tuple[int, np.ndarray] | None = None
        self.measured = measured


@dataclass(frozen=True, eq=False)
class PolytopeState(State):
    """Everything that training needs to go on."""

    polytopes: list[Polytope]
    n_classes: int
    seed: Seed
    epoch: int = 0
    t: MixedWhole = 0  # visits made so far
    step: MixedNumber = math.inf  # length of the last step
    loss: MixedNumber = math.inf  # mean over the rows of the last epoch
    updates: MixedNumber = 1.0  # share of them that moved a plane
    window: int = FOREVER  # after so many visits steps fall no more
    blends: int = 0  # how often the planes went into their average
    blend_rows: int = 0  # rows, and the numbers in them, visited since the last time
    blend_entries: int = 0
    prefers_last: bool = False  # the last planes err clearly less than their average
    rows: PolytopeMemory | None = None
    workspace: Workspace | None = workspace()

    def check(self, sizes: dict[str, int]) -> bool:
        """Each class is outside one polytope, or one of two classes is."""
        outer, n_classes = [polytope.outer for polytope in self.polytopes], sizes["classes"]
        known = self.rows is None or len(self.rows.skip) == len(outer)
        each_once = outer == list(range(n_classes)) or (n_classes == 2 and outer in ([0], [1]))
        return self.n_classes == n_classes and known and each_once


@dataclass(frozen=True)
class ConvexPolytope(Method[PolytopeState]):
    """Algorithm 1 of the paper: stochastic gradient descent, for several polytopes at a time.

    Each class of `outer` lives outside a polytope of its own.
    """

    outer: tuple[int, ...]
    n_planes: int = 16
    alpha: float = 1e-4
    min_entropy: float = 0.0
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    shuffle: bool = True
    n_jobs: int | None = None

    state = PolytopeState
    fades = True
    adjustable = frozenset({"min_entropy", "backoff", "average", "shuffle", "n_jobs"})
    mixable = True
    steps_before_mixing = 2

    def start(self, data: Data, seed: int) -> PolytopeState:
        """No planes but zero planes."""
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

    def prepare(self, state: PolytopeState, data: Data) -> PolytopeState:
        """With a memory of the rows, and threads."""
        rows = state.rows or PolytopeMemory.fresh(len(state.polytopes), len(data.y))
        skips = self.backoff > 0 and not data.stream  # in a stream no row comes back
        measured = MeasuredRows(data, self._bias_input) if skips else None
        return replace(state, rows=rows, workspace=Workspace(self.n_jobs, measured))

    @property
    def _bias_input(self) -> float:
        return 1.0 if self.fit_intercept else 0.0

    def step(self, state: PolytopeState, data: Data) -> PolytopeState:
        """One epoch: all rows, in a random order, on each polytope."""
        assert state.workspace is not None
        at_hand, order = state.workspace, self._order(state, data)
        state = _paced(state, window_of(data.half_life), self.alpha)
        state, movement = self._measured(state, data)

        def work(side: int) -> Any:
            if side == len(state.polytopes):  # by whoever is done first
                return self._permutation(state.seed, state.epoch + 1, data)
            return self._epoch(state, side, order, movement[side], data)

        ahead = at_hand.team.size > 1 and not data.stream
        done = at_hand.team.map(work, range(len(state.polytopes) + ahead))
        if ahead:
            at_hand.next_order = state.epoch + 1, done.pop()
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
        """The order of an epoch, which may have been made during the one before."""
        assert state.workspace is not None
        ahead = state.workspace.next_order
        if ahead is not None and ahead[0] == state.epoch:
            return ahead[1]
        return self._permutation(state.seed, state.epoch, data)

    def _permutation(self, seed: int, epoch: int, data: Data) -> np.ndarray:
        return np.random.default_rng([seed, epoch]).permutation(data.train) if self.shuffle else data.train

    def _measured(self, state: PolytopeState, data: Data) -> tuple[PolytopeState, np.ndarray]:
        """Note the scores of some rows; return how far those of each plane move in a pass, per length of the row."""
        from polyplane.kernels.convex_polytope import polytope_scores
        from polyplane.kernels.rows import PlaneSums, as_rows

        assert state.rows is not None
        assert state.workspace is not None
        measured, before = state.workspace.measured, state.rows.scores
        unknown = np.full((len(state.polytopes), self.n_planes), math.inf)
        if measured is None or state.t == 0:
            return state, unknown
        now = np.empty((len(state.polytopes), len(measured.rows), self.n_planes), dtype=data.X.dtype)
        rows, known = as_rows(data.X), measured.rows

        def write(side: int) -> None:
            polytope = state.polytopes[side]
            planes = PlaneSums(polytope.coef[: data.X.shape[1]], polytope.intercept, self._bias_input)
            polytope_scores(rows, known, planes, now[side])
            now[side] /= polytope.margin

        state.workspace.team.map(write, range(len(now)))
        state = replace(state, rows=replace(state.rows, scores=now))
        if before is None or before.shape != now.shape:
            return state, unknown
        return state, np.array([measured.movement(*pair, state.step) for pair in zip(now, before, strict=True)])

    def _epoch(
        self, state: PolytopeState, side: int, order: np.ndarray, movement: np.ndarray, data: Data
    ) -> tuple[Polytope, float, int]:
        """One epoch of one polytope: itself after it, the sum of the losses, and how many rows moved a plane."""
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

    def _averaged(self, state: PolytopeState, data: Data) -> PolytopeState:
        """Take the planes into their average: after each epoch, or where a batch is much less than a plane, rarely."""
        if not self.average:
            if all(polytope.mean is None for polytope in state.polytopes):
                return state
            return replace(state, polytopes=[replace(polytope, mean=None) for polytope in state.polytopes])
        rows = state.blend_rows + len(data.train)
        entries = state.blend_entries + (data.X.nnz if sparse.issparse(data.X) else data.X.size)
        if data.stream and state.blends and entries < data.X.shape[1]:
            return replace(state, blend_rows=rows, blend_entries=entries)
        assert state.workspace is not None
        share = share_of_last(state.blends, rows, state.window)
        polytopes = state.workspace.team.map(lambda polytope: blended(polytope, share), state.polytopes)
        return replace(state, polytopes=polytopes, blends=state.blends + 1, blend_rows=0, blend_entries=0)

    def planes(self, state: PolytopeState) -> PlaneSet:
        """Each outer class owns the planes of its polytope, any other the zero plane."""
        share = share_of_last(state.blends, state.blend_rows, state.window) if state.blend_rows else 0.0
        owned = {}
        for polytope in state.polytopes:
            coef, intercept = last_planes(polytope) if state.prefers_last else planes_of(polytope, share)
            owned[polytope.outer] = (np.ascontiguousarray(coef.T), intercept)
        coef, intercept = owned[state.polytopes[0].outer]
        nothing = (np.zeros_like(coef[:1]), np.zeros_like(intercept[:1]))
        return PlaneSet.of_classes(owned.get(c, nothing) for c in range(state.n_classes))

    def conclude(self, state: PolytopeState, data: Data) -> PolytopeState:
        """Prefer the last planes to their average where these err clearly less on the rows of the training."""
        return replace(state, prefers_last=self.average and last_is_better(self, state, data))

    def predict(self, state: PolytopeState, X: Any) -> np.ndarray:
        """The classes of the rows, without a copy of the planes: they may have millions of features."""
        share = share_of_last(state.blends, state.blend_rows, state.window) if state.blend_rows else 0.0

        def best(polytope: Polytope) -> np.ndarray:
            total: Any = 0.0
            parts = [(polytope.coef, polytope.intercept, 1.0 / polytope.margin)]
            if polytope.mean is not None:
                parts = [(polytope.coef, polytope.intercept, share / polytope.margin), (*polytope.mean, 1.0 - share)]
            for coef, intercept, factor in parts:
                if factor:
                    total = total + (np.asarray(X @ coef[: X.shape[1]]) + intercept) * factor
            highest: np.ndarray = total.max(axis=1)
            return highest

        scores = np.zeros((X.shape[0], state.n_classes))
        for polytope, column in zip(state.polytopes, in_threads(best, state.polytopes, self.n_jobs), strict=True):
            scores[:, polytope.outer] = column
        codes: np.ndarray = scores.argmax(axis=1)
        return codes

    def widen(self, state: PolytopeState, n_features: int) -> PolytopeState:
        """Room for more features, with some to spare: a stream that grows does so all the time."""
        room = len(state.polytopes[0].coef)
        if n_features <= room:
            return state
        room = max(n_features, room + room // 4)
        for i, polytope in enumerate(state.polytopes):  # one after the other: they are large
            mean = polytope.mean and (taller(polytope.mean[0], room), polytope.mean[1])
            state.polytopes[i] = replace(polytope, coef=taller(polytope.coef, room), mean=mean)
        return state

    def figures(self, state: PolytopeState) -> Mapping[str, float]:
        """Mean loss, share of the visits that moved a plane, and length of the last step."""
        return {"loss": state.loss, "updates": state.updates, "step": state.step}

    def monitored(self, state: PolytopeState) -> float | None:
        """The loss, once the steps 1 / (alpha t) have fallen to 1: before that the planes still jump about."""
        return state.loss if state.step <= 1.0 else None


def _paced(state: PolytopeState, window: int, alpha: float) -> PolytopeState:
    """The state for another window. Where steps that had ceased to fall fall again, the margin is alpha t again."""
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

    For two classes this is the paper's double-sided machine; the paper's machine for more classes is
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
        square length of a row over the number of rows, chosen on held-out rows by short trainings; in a stream 1e-6
        times the mean square length; 1e-4 where polytopes are trained alone.
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
    >>> machine = ConvexPolytopeClassifier(random_state=0).fit(X_train, y_train)
    >>> machine.planes_
    PlaneSet(n_classes=10, n_planes=480, n_features=64, dtype=float64)
    >>> print(f"{machine.score(X_test, y_test):.2f}")
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

    def _fitted_attributes(self, state: PolytopeState | JointState, data: Data) -> Mapping[str, Any]:
        assignments = np.full(len(data.y), -1)
        for c in range(self.planes_.n_classes):
            rows = data.train[data.y[data.train] == c]
            coef, intercept = self.planes_.of(c)
            if self._scaling is not None:  # the planes are over the rows as they come, the rows are scaled
                coef, intercept = coef / self._scaling.factor, intercept + coef @ self._scaling.centre
            for some in np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE)):  # never a copy of all
                best = (np.asarray(data.X[some] @ coef.T) + intercept).argmax(axis=1)
                assignments[some] = self.planes_.indptr[c] + best
        counts = np.bincount(assignments[assignments >= 0], minlength=self.planes_.n_planes)
        return {"assignments_": assignments, "plane_counts_": counts}
