"""Stochastic gradient descent with the steps 1 / (alpha t): back-off, averaged planes, and what its methods share.

`ConvexPolytope` trains polytopes alone, as in the paper; `polyplane.learners.convex_polytope` all planes together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from polyplane._array_api import ThreadPool, in_threads
from polyplane.engine.data import Data, as_rows
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Array, MixedNumber, MixedWhole, Seed, State, Whole, workspace
from polyplane.learners.tangents import SkippedRows
from polyplane.planes import PlaneSet

#: Movements are measured on one row in sixteen; minimum and maximum number of these rows.
ROWS_TO_MEASURE = (32, 256)


class MeasuredRows:
    """The norms of all rows, and the rows on which movements are measured.

    Attributes
    ----------
    length : ndarray of shape (n_rows,)
        Norm of each row, including the constant feature.
    update_length : float
        Root mean square, over the rows, of the norm of an update of a plane, relative to the step size.
    rows : ndarray of int
        Indices of the measured rows.
    X, y : matrix and ndarray of int
        These rows, and their classes.
    """

    def __init__(self, data: Data, bias_input: float) -> None:
        dtype, n_rows = data.X.dtype, len(data.train)
        squares = row_norms(data.X, squared=True) + max(bias_input, np.finfo(dtype).tiny)
        self.length: np.ndarray = np.sqrt(squares).astype(dtype)
        updates = (data.weight * self.length)[data.train]
        self.update_length = float(np.linalg.norm(updates)) / max(1, n_rows) ** 0.5
        self.rows = data.train[:: max(1, n_rows // int(np.clip(n_rows // 16, *ROWS_TO_MEASURE)))]
        self.X, self.y = data.X[self.rows], data.y[self.rows]

    def movement(self, now: np.ndarray, before: np.ndarray, step: float) -> Any:
        """The movement of scores per pass, relative to the norm of the row; first axis of `now` and `before`: rows.

        It is the largest movement in the last pass plus that of a single update: if steps are large, the planes after a
        pass may be close to those before it.
        """
        moved = np.abs(now - before).T / self.length[self.rows]
        return moved.max(axis=-1, initial=0.0).astype(np.float64) + self.update_length * step


S = TypeVar("S", bound="SgdState")

#: Fields of these methods that may change when training continues.
ADJUSTABLE = frozenset({"min_entropy", "backoff", "average", "shuffle", "n_jobs"})

#: Window of steps 1 / (alpha t) that always decrease.
FOREVER = 1 << 60
#: With a half-life, stored sums grow by at most this factor before they are scaled down, far below the float32 maximum.
LARGEST_GROWTH = float(1 << 20)
#: Approximate number of rows used to choose between the average of the planes and the last planes.
ROWS_TO_JUDGE = 5000


def window_of(half_life: float | None) -> int:
    """Number of visits after which steps are constant, so that the influence of a row is halved in `half_life` rows.

    From then on the planes lose 1 / window of themselves at each visit: (1 - 1 / window) ** half_life is 1/2.
    """
    return FOREVER if half_life is None else max(2, round(half_life / math.log(2)))


def pieces(order: np.ndarray, window: int) -> Iterator[np.ndarray]:
    """Split an order into parts in which the margin grows by at most LARGEST_GROWTH."""
    length = max(1, int(math.log(LARGEST_GROWTH) * (window - 1)))
    for first in range(0, len(order), length):
        yield order[first : first + length]


def share_of_last(blends: int, blend_rows: int, window: int) -> float:
    """The weight of the current planes in their average.

    Polynomial-decay averaging (Shamir and Zhang, 2013): later planes have larger weights. With a half-life, the average
    covers about a quarter of the window.
    """
    return max(4.0 / (blends + 4.0), -math.expm1(-4.0 * blend_rows / window))


class SummedPlanes(State):
    """Planes in training, stored as sums of rows: `margin` times the planes, so that shrinking them costs nothing.

    Subclasses declare the fields; `mean` is the running average of the planes, or None.
    """

    coef: Any  # (n_features, n_planes)
    intercept: Any
    margin: float
    mean: Any

    def rescaled(self, margin: float) -> Self:
        """The same planes with another margin."""
        factor = margin / self.margin
        return self.replace(coef=self.coef * factor, intercept=self.intercept * factor, margin=margin)

    def without_mean(self) -> Self:
        """The same planes without their average."""
        return self.replace(mean=None)

    def last_planes(self) -> tuple[np.ndarray, np.ndarray]:
        """The current planes, not averaged."""
        scale = 1.0 / self.margin
        return self.coef * scale, self.intercept * scale

    def average(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """The average of the planes, in which the current planes have the weight `share`."""
        mean: tuple[np.ndarray, np.ndarray] | None = self.mean
        if mean is None:
            return self.last_planes()
        if share == 0.0:
            return mean
        now = self.last_planes()
        return now[0] * share + mean[0] * (1.0 - share), now[1] * share + mean[1] * (1.0 - share)

    def blended(self, share: float) -> Self:
        """The same planes, added to their average with the weight `share`."""
        coef, intercept = self.last_planes()
        if self.mean is not None:
            for new, mean in zip((coef, intercept), self.mean, strict=True):
                new *= share
                new += mean * (1.0 - share)
        return self.replace(mean=(coef, intercept))

    def scores(self, X: Any, share: float) -> Any:
        """The scores of rows, computed from the stored sums, because planes may have millions of features to copy."""
        parts = [(self.coef, self.intercept, 1.0 / self.margin)]
        if self.mean is not None:
            parts = [(self.coef, self.intercept, share / self.margin), (*self.mean, 1.0 - share)]
        total: Any = 0.0
        for coef, intercept, factor in parts:
            if factor:
                total = total + (np.asarray(X @ coef[: X.shape[1]]) + intercept) * factor
        return total

    def widened(self, n_features: int) -> Self:
        """The same planes with capacity for more features, and some in reserve: they are often added again."""
        capacity = len(self.coef)
        if n_features <= capacity:
            return self
        capacity = max(n_features, capacity + capacity // 4)
        mean = self.mean and (_padded(self.mean[0], capacity), self.mean[1])
        return self.replace(coef=_padded(self.coef, capacity), mean=mean)


def _padded(array: np.ndarray, n_rows: int) -> np.ndarray:
    """The array, padded with rows of zeros."""
    padded = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded


@dataclass(frozen=True, eq=False, kw_only=True)
class SgdState(State):
    """The fields common to the states of these methods."""

    seed: Seed
    epoch: int = 0
    t: MixedWhole = 0  # visits made so far
    loss: MixedNumber = math.inf  # mean over the rows of the last epoch
    updates: MixedNumber = 1.0  # fraction of them that updated a plane
    window: int = FOREVER  # number of visits after which steps are constant
    blends: int = 0  # number of updates of the average
    blend_rows: int = 0  # rows, and the numbers in them, visited since the last time
    blend_entries: int = 0
    prefers_last: bool = False  # the last planes make clearly fewer errors than their average

    @property
    def share(self) -> float:
        """The weight of the current planes in their average, if they are not yet included in it."""
        return share_of_last(self.blends, self.blend_rows, self.window) if self.blend_rows else 0.0

    def paced(self, window: int, alpha: float) -> Self:
        """The state for another window. If the steps decrease again, the margin is alpha t again."""
        state = self.rescaled(alpha * self.t) if self.t >= self.window and window > self.t else self
        return state if window == state.window else state.replace(window=window)

    def rescaled(self, margin: float) -> Self:
        """The same planes with another margin."""
        raise NotImplementedError

    def blended(self, share: float) -> Self:
        """The same planes, added to their averages with the weight `share`."""
        raise NotImplementedError

    def without_mean(self) -> Self:
        """The same planes without their averages."""
        raise NotImplementedError


def better_planes(method: Any, state: S, data: Data) -> S:
    """The state, with the last planes instead of their average if they make clearly fewer errors on the training rows.

    If the data have no structure to fit, planes keep exchanging their roles, and their average fits no rows.
    """
    if not method.average:
        return state.replace(prefers_last=False)
    rows = data.train[:: max(1, len(data.train) // ROWS_TO_JUDGE)]
    X, y = data.X[rows], data.y[rows]
    mean_error, last_error = (
        float(np.mean(method.planes(state.replace(prefers_last=last)).predict(X) != y)) for last in (False, True)
    )
    deviation = math.sqrt(mean_error * (1.0 - mean_error) / len(rows))
    return state.replace(prefers_last=last_error + 3.0 * deviation < mean_error)


@dataclass(frozen=True, kw_only=True)
class InverseTimeSGD(Method[S]):
    """Stochastic gradient descent with the steps 1 / (alpha t), back-off and averaged planes."""

    min_entropy: float = 0.0
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    shuffle: bool = True
    n_jobs: int | None = None

    @property
    def _bias_input(self) -> float:
        return 1.0 if self.fit_intercept else 0.0

    def _permutation(self, seed: int, epoch: int, data: Data) -> np.ndarray:
        """The order of the rows in an epoch."""
        if not self.shuffle:
            return data.train
        order: np.ndarray = data.shared(
            (seed, epoch), lambda: np.random.default_rng([seed, epoch]).permutation(data.train)
        )
        return order

    def _measured_rows(self, data: Data) -> MeasuredRows | None:
        """The rows on which movements are measured, to skip rows; None in a stream, where rows are visited once."""
        if self.backoff == 0 or data.stream:
            return None
        measured: MeasuredRows = data.shared(self._bias_input, lambda: MeasuredRows(data, self._bias_input))
        return measured

    def _backoff(self, rows: SkippedRows, side: int, movement: Any, measured: MeasuredRows | None, data: Data) -> Any:
        """The argument of the kernels that says which rows are skipped, and for how long."""
        from polyplane.kernels.convex_polytope import Backoff
        from polyplane.kernels.skipping import Checks

        longest, length = (0, np.zeros(0, data.X.dtype)) if measured is None else (int(self.backoff), measured.length)
        checks = Checks(rows.rate(data), np.zeros(2))
        return Backoff(rows.skip[side], length, movement * rows.caution, longest, checks)

    def _averaged(self, state: S, data: Data) -> S:
        """Update the average of the planes after each epoch, or less often if batches are small."""
        if not self.average:
            return state.without_mean()
        rows = state.blend_rows + len(data.train)
        entries = state.blend_entries + (data.X.nnz if sparse.issparse(data.X) else data.X.size)
        if data.stream and state.blends and entries < data.X.shape[1]:
            return state.replace(blend_rows=rows, blend_entries=entries)
        state = state.blended(share_of_last(state.blends, rows, state.window))
        return state.replace(blends=state.blends + 1, blend_rows=0, blend_entries=0)

    def metrics(self, state: S) -> Mapping[str, float]:
        """Mean loss, fraction of the visits that updated a plane, last step size, and fraction of updates missed."""
        rows: SkippedRows | None = state.rows  # type: ignore[attr-defined]
        missed = rows.share if rows is not None else 0.0
        return {"loss": state.loss, "updates": state.updates, "step": state.step, "missed": missed}  # type: ignore[attr-defined]


# One polytope, or several, each trained alone.

#: The average of planes, by columns.
MeanPlanes = tuple[
    Annotated[np.ndarray, Array("f", "features", "n_planes", in_place=False, mixed=True)],
    Annotated[np.ndarray, Array("f", "n_planes", in_place=False, mixed=True)],
]
_SCORES = Array("f", "polytopes", "measured", "n_planes", in_place=False)


@dataclass(frozen=True, eq=False)
class Polytope(SummedPlanes):
    """One polytope in training; its class is outside. Arrays hold `margin` times the planes."""

    outer: Annotated[int, Whole("classes")]
    coef: Annotated[np.ndarray, Array("f", "features", "n_planes", by_feature=True, mixed=True, scaled_by="margin")]
    intercept: Annotated[np.ndarray, Array("f", "n_planes", mixed=True, scaled_by="margin")]
    counts: Annotated[np.ndarray, Array("i", "n_planes", mixed=True)]  # rows assigned to each plane, for the entropy
    margin: MixedNumber = 0.0
    mean: MeanPlanes | None = None

    def check(self, sizes: dict[str, int]) -> bool:
        """Counts are not negative."""
        return bool((self.counts >= 0).all())


@dataclass(frozen=True, eq=False)
class PolytopeMemory(SkippedRows):
    """The memory of each row: by polytope (first axis), or for the polytope of its class."""

    recorded: Annotated[np.ndarray, Array("int32", "rows", below="n_planes")]
    scores: Annotated[np.ndarray, _SCORES] | None = None  # of some rows, before the last pass


class SgdWorkspace:
    """The threads of a run, the order of the next epoch, and the rows on which movements are measured."""

    def __init__(self, n_jobs: int | None, measured: MeasuredRows | None) -> None:
        self.threads = ThreadPool(n_jobs)
        self.next_order: tuple[int, np.ndarray] | None = None
        self.measured = measured


@dataclass(frozen=True, eq=False)
class PolytopeState(SgdState):
    """The state of training."""

    polytopes: list[Polytope]
    n_classes: int
    step: MixedNumber = math.inf  # last step size
    rows: PolytopeMemory | None = None
    workspace: SgdWorkspace | None = workspace()

    def rescaled(self, margin: float) -> Self:
        """The same planes with another margin."""
        return self.replace(polytopes=[polytope.rescaled(margin) for polytope in self.polytopes])

    def blended(self, share: float) -> Self:
        """The same planes, added to the average of each polytope with the weight `share`."""
        assert self.workspace is not None
        threads = self.workspace.threads
        return self.replace(polytopes=threads.map(lambda polytope: polytope.blended(share), self.polytopes))

    def without_mean(self) -> Self:
        """The same planes without their averages."""
        return self.replace(polytopes=[polytope.without_mean() for polytope in self.polytopes])

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
    from polyplane.kernels.rows import PlaneSums

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

    state.workspace.threads.map(write, range(len(now)))
    state = replace(state, rows=replace(state.rows, scores=now))
    if before is None or before.shape != now.shape:
        return state, np.full(shape, math.inf)
    return state, np.array([measured.movement(*pair, state.step) for pair in zip(now, before, strict=True)])


def planes_around(owned: Mapping[int, tuple[np.ndarray, np.ndarray]], n_classes: int) -> PlaneSet:
    """The planes of the classes in `owned`, one per column as in training; other classes own the zero plane."""
    found = {c: (np.ascontiguousarray(coef.T), intercept) for c, (coef, intercept) in owned.items()}
    coef, intercept = next(iter(found.values()))
    zero = np.zeros_like(coef[:1]), np.zeros_like(intercept[:1])
    return PlaneSet.of_classes(found.get(c, zero) for c in range(n_classes))


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
            Polytope(outer, np.zeros(shape, dtype), np.zeros(shape[1], dtype), np.zeros(shape[1], dtype=np.int64))
            for outer in self.outer
        ]
        return PolytopeState(polytopes, data.n_classes, seed=seed)

    def _prepared(self, state: PolytopeState, data: Data) -> PolytopeState:
        """The state with a memory of these rows, and threads."""
        shape = len(state.polytopes), len(data.y)
        rows = state.rows or PolytopeMemory(np.zeros(shape, dtype=np.uint8), np.full(shape[1], -1, dtype=np.int32))
        return replace(state, rows=rows, workspace=SgdWorkspace(self.n_jobs, self._measured_rows(data)))

    def step(self, state: PolytopeState, data: Data) -> PolytopeState:
        """One epoch: all rows, in a random order, on each polytope."""
        if state.workspace is None:
            state = self._prepared(state, data)
        assert state.workspace is not None
        workspace, order = state.workspace, self._order(state, data)
        state = state.paced(window_of(data.half_life), self.alpha)
        state, movement = measure_movement(state, data, self._bias_input)

        def work(side: int) -> Any:
            if side == len(state.polytopes):  # by the first thread that is free
                return self._permutation(state.seed, state.epoch + 1, data)
            return self._epoch(state, side, order, movement[side], data)

        ahead = workspace.threads.size > 1 and not data.stream
        done = workspace.threads.map(work, range(len(state.polytopes) + ahead))
        if ahead:
            workspace.next_order = state.epoch + 1, done.pop()
        polytopes, losses, updates, found = zip(*done, strict=True)
        visits = len(order)
        assert state.rows is not None
        state = replace(
            state,
            polytopes=list(polytopes),
            rows=state.rows if workspace.measured is None else state.rows.checked(sum(found), data, power=4.0),
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
    ) -> tuple[Polytope, float, int, np.ndarray]:
        """One epoch of one polytope; return it, the sum of the losses, the number of updates, and what checks found."""
        from polyplane.kernels.convex_polytope import Memory, Problem, SgdProgress, polytope_epoch
        from polyplane.kernels.rows import PlaneSums

        assert state.rows is not None
        assert state.workspace is not None
        polytope, memory, t, window = state.polytopes[side], state.rows, state.t, state.window
        coef, intercept, margin = polytope.coef, polytope.intercept, polytope.margin
        min_entropy = self.min_entropy * math.log(self.n_planes)
        problem = Problem(data.y, data.weight, polytope.outer, float(self.alpha), min_entropy)
        remembered = Memory(memory.recorded, polytope.counts, np.empty(2)) if min_entropy > 0.0 else None
        backoff = self._backoff(memory, side, movement, state.workspace.measured, data)
        score = np.empty(self.n_planes, dtype=coef.dtype)
        rows, loss, updates = as_rows(data.X), 0.0, 0
        for piece in pieces(order, window):
            planes = PlaneSums(coef[: data.X.shape[1]], intercept, self._bias_input)
            part = polytope_epoch(
                rows, piece, SgdProgress(t, margin, window), planes, problem, remembered, backoff, score
            )
            loss, updates, t, margin = loss + part[0], updates + part[1], t + len(piece), part[2]
            if margin > LARGEST_GROWTH * self.alpha * window:
                factor, margin = self.alpha * window / margin, self.alpha * window
                coef, intercept = coef * factor, intercept * factor
        if t > window:
            polytope.counts[:] = polytope.counts * math.exp(-len(order) / window)
        polytope = replace(polytope, coef=coef, intercept=intercept, margin=margin)
        return polytope, loss, updates, backoff.checks.found

    def planes(self, state: PolytopeState) -> PlaneSet:
        """Each outer class owns the planes of its polytope, any other the zero plane."""
        owned = {
            polytope.outer: polytope.last_planes() if state.prefers_last else polytope.average(state.share)
            for polytope in state.polytopes
        }
        return planes_around(owned, state.n_classes)

    def predict(self, state: PolytopeState, X: Any) -> np.ndarray:
        """The classes of the rows, without a copy of the planes: they may have millions of features."""

        def best(polytope: Polytope) -> np.ndarray:
            highest: np.ndarray = polytope.scores(X, state.share).max(axis=1)
            return highest

        scores = np.zeros((X.shape[0], state.n_classes))
        for polytope, column in zip(state.polytopes, in_threads(best, state.polytopes, self.n_jobs), strict=True):
            scores[:, polytope.outer] = column
        codes: np.ndarray = scores.argmax(axis=1)
        return codes

    def widen(self, state: PolytopeState, n_features: int) -> PolytopeState:
        """Add room for more features."""
        for i, polytope in enumerate(state.polytopes):  # one after the other: they are large
            state.polytopes[i] = polytope.widened(n_features)
        return state

    def done(self, state: PolytopeState) -> float:
        """The loss, once the steps 1 / (alpha t) have fallen to 1: before that, the planes move too much."""
        return state.loss if state.step <= 1.0 else math.inf
