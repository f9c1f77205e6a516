"""The joint convex polytope machine: the planes of all classes are trained together, from a tangent start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from polyplane.engine.data import Data, moments
from polyplane.engine.method import Traits
from polyplane.engine.state import Array, MixedNumber, MixedWhole, RowMemory, Seed, State, workspace
from polyplane.learners.sgd import (
    ADJUSTABLE,
    FOREVER,
    LARGEST_GROWTH,
    InverseTimeSGD,
    MeasuredRows,
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

#: Minimum number of rows of a class per centre.
ROWS_PER_CENTRE = 3
#: Maximum number of rows per centre for k-means, and its passes.
ROWS_TO_CLUSTER, PASSES = 256, 10


class Centres(NamedTuple):
    """The centres of the rows of each class, relative to the mean of all rows."""

    of_class: list[np.ndarray]  # each of shape (n_centres, n_features); empty for a class without rows
    mean: np.ndarray
    square: float  # the mean squared distance of the rows from their mean

    @classmethod
    def of(cls, data: Data, n_planes: int, seed: int) -> Centres:
        """Compute up to `n_planes` centres of each class."""
        X, y, rows, rng = data.X, data.y, data.train, np.random.default_rng(seed)
        mean = moments(X, np.isin(np.arange(X.shape[0]), rows).astype(X.dtype))[0]
        found = []
        for c in range(data.n_classes):
            own = rows[y[rows] == c]
            n_centres = int(np.clip(len(own) // ROWS_PER_CENTRE, 1, n_planes))
            found.append(kmeans(X, own, n_centres, rng) - mean if len(own) else np.zeros((0, X.shape[1])))
        return cls(found, mean, float(mean_square(X, rows, 0.0) - mean @ mean))

    def tangent_sums(self, n_planes: int, weight: float, bias_input: float, dtype: Any) -> tuple[Any, Any]:
        """Initial sums, in columns, class by class: `weight` times the tangents of |x - mean|^2 at the centres.

        These planes predict the class of the nearest centre, and each counts as an update by `weight` rows. A class
        with few rows has several planes at the same centre, all but the first lower; a class without rows has them at
        the mean.
        """
        coef = np.empty((len(self.mean), len(self.of_class) * n_planes), dtype=dtype)
        intercept = np.empty(coef.shape[1], dtype=dtype)
        for c, centres in enumerate(self.of_class):
            lower = np.zeros(n_planes)
            lower[len(centres) :] = self.square
            if not len(centres):
                centres = np.zeros((1, len(self.mean)))
            columns = slice(c * n_planes, (c + 1) * n_planes)
            at = np.arange(n_planes) % len(centres)
            coef[:, columns] = 2.0 * weight * centres[at].T
            offsets = -(centres * centres).sum(axis=1) - 2.0 * centres @ self.mean
            intercept[columns] = weight * (offsets[at] - lower)
        return coef, intercept * dtype.type(bias_input)


def mean_square(X: Any, rows: np.ndarray, bias_input: float) -> float:
    """The mean squared norm of the rows with these indices, including the constant feature."""
    return float(row_norms(X, squared=True)[rows].mean(dtype=np.float64)) + bias_input**2


def kmeans(X: Any, rows: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    """Centres of dense or sparse rows by a few passes of Lloyd's algorithm; an empty centre does not move."""
    if len(rows) > ROWS_TO_CLUSTER * n_centres:
        rows = np.sort(rng.choice(rows, ROWS_TO_CLUSTER * n_centres, replace=False))
    X = X[rows]
    centres = _dense(X[np.sort(rng.choice(len(rows), n_centres, replace=False))]).astype(np.float64)
    if n_centres == 1:
        return np.asarray(X.mean(axis=0), dtype=np.float64).reshape(1, -1)
    for _ in range(PASSES):
        cost = X @ (-2.0 * centres.T) + (centres * centres).sum(axis=1)
        nearest = cost.argmin(axis=1)
        count = np.bincount(nearest, minlength=n_centres)
        member = sparse.csr_array(
            (np.ones(len(rows)), np.argsort(nearest, kind="stable"), np.append(0, count.cumsum())),
            shape=(n_centres, len(rows)),
        )
        won = count > 0
        centres[won] = _dense(member @ X)[won] / count[won, None]
    return centres


def _dense(X: Any) -> np.ndarray:
    rows: np.ndarray = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return rows


_MEAN = Array("f", "features", "columns", in_place=False, mixed=True)
_MEAN_OFFSETS = Array("f", "columns", in_place=False, mixed=True)


@dataclass(frozen=True, eq=False)
class JointMemory(RowMemory):
    """The memory of each row."""

    skip: Annotated[np.ndarray, Array("uint8", "rows")]  # passes for which to skip it
    recorded: Annotated[np.ndarray, Array("int32", "rows", below="columns")]  # plane of its class, for the entropy
    margins: Annotated[np.ndarray, Array("f", "measured", in_place=False)] | None = None  # of measured rows

    @classmethod
    def fresh(cls, n_rows: int) -> JointMemory:
        """The memory before the first pass."""
        return cls(np.zeros(n_rows, dtype=np.uint8), np.full(n_rows, -1, dtype=np.int32))


@dataclass(frozen=True, eq=False)
class JointState(State):
    """The state of training. Columns are planes, class by class; arrays hold `margin` times the planes.

    The start counts as one visit per row, because the initial planes already separate the classes.
    """

    coef: Annotated[np.ndarray, Array("f", "features", "columns", by_feature=True, mixed=True, scaled_by="margin")]
    intercept: Annotated[np.ndarray, Array("f", "columns", mixed=True, scaled_by="margin")]
    counts: Annotated[np.ndarray, Array("i", "columns", mixed=True)]  # rows recorded at each plane, for the entropy
    n_classes: int
    alpha: float  # given or chosen on held-out rows
    seed: Seed
    margin: MixedNumber
    t: MixedWhole  # visits made so far
    mean: tuple[Annotated[np.ndarray, _MEAN], Annotated[np.ndarray, _MEAN_OFFSETS]] | None = None
    epoch: int = 0
    loss: MixedNumber = math.inf  # mean over the rows of the last epoch
    updates: MixedNumber = 1.0  # fraction of them that updated a plane
    window: int = FOREVER  # number of visits after which steps are constant
    blends: int = 0  # number of updates of the average
    blend_rows: int = 0  # rows, and the numbers in them, visited since the last time
    blend_entries: int = 0
    prefers_last: bool = False  # the last planes make clearly fewer errors than their average
    rows: JointMemory | None = None
    workspace: MeasuredRows | None = workspace()

    def check(self, sizes: dict[str, int]) -> bool:
        """Classes own equal numbers of planes; counts are not negative; alpha and the margin are positive."""
        if self.n_classes != sizes["classes"]:
            return False
        even = len(self.intercept) == sizes.get("n_planes", self.n_planes) * self.n_classes
        return even and self.alpha > 0 and self.margin > 0 and bool((self.counts >= 0).all())

    @property
    def n_planes(self) -> int:
        """Number of planes per class."""
        return len(self.intercept) // self.n_classes

    @property
    def step(self) -> float:
        """Last step size."""
        return 1.0 / (self.alpha * min(self.t, self.window))

    @property
    def share(self) -> float:
        """The weight of the current planes in their average, if they are not yet included in `mean`."""
        return share_of_last(self.blends, self.blend_rows, self.window) if self.blend_rows else 0.0


@dataclass(frozen=True)
class JointPolytope(InverseTimeSGD[JointState]):
    """Stochastic gradient descent with the steps 1 / (alpha t) on the margin to the best rival class.

    `n_planes` and `alpha` are chosen before training, if None; see `polyplane.learners.choose_planes`.
    """

    n_planes: int | None = None
    alpha: float | None = None
    start_weight: float = 10.0  # each initial plane counts as an update by this many rows

    traits = Traits(JointState, ADJUSTABLE, fades=True, mixable=True)

    def start(self, data: Data, seed: int) -> JointState:
        """Start from the tangent planes above the centres of each class."""
        assert self.n_planes is not None, "the number of planes is chosen before training"
        return self.begin(data, Centres.of(data, self.n_planes, seed), seed)

    def begin(self, data: Data, centres: Centres, seed: int) -> JointState:
        """The state before the first step, from given centres."""
        assert self.n_planes is not None
        assert self.alpha is not None
        sums = centres.tangent_sums(self.n_planes, self.start_weight, self._bias_input, data.X.dtype)
        counts, t = np.zeros(len(sums[1]), dtype=np.int64), len(data.train)
        return JointState(*sums, counts, data.n_classes, self.alpha, seed, self.alpha * t, t)

    def step(self, state: JointState, data: Data) -> JointState:
        """One epoch: all rows, in a random order."""
        if state.rows is None or state.workspace is None:
            rows = state.rows or JointMemory.fresh(len(data.y))
            state = state.replace(rows=rows, workspace=self._measured_rows(data))
        order = self._permutation(state.seed, state.epoch, data)
        state = _paced(state, window_of(data.half_life))
        state, movement = self._measured(state, data)
        return self._averaged(self._epoch(state, order, movement, data), data)

    def _measured(self, state: JointState, data: Data) -> tuple[JointState, float]:
        """Record the margins of the measured rows; return the movement of margins per pass and norm of the row.

        An update changes two planes, and the best rival class changes, so margins move less evenly than scores. Twice
        the movement is assumed, which gives the same errors as training without skipping rows.
        """
        rows, measured = state.rows, state.workspace
        assert rows is not None
        if measured is None:
            return state, math.inf
        X, index = measured.X, np.arange(len(measured.y))
        scores = np.asarray(X @ state.coef[: X.shape[1]]) + state.intercept
        best = scores.reshape(len(scores), state.n_classes, -1).max(axis=2)
        own = best[index, measured.y]
        best[index, measured.y] = -np.inf
        margins = (own - best.max(axis=1)) / own.dtype.type(state.margin)
        before, state = rows.margins, state.replace(rows=rows.replace(margins=margins))
        if before is None or before.shape != margins.shape:
            return state, math.inf
        return state, 2.0 * float(measured.movement(margins, before, state.step))

    def _epoch(self, state: JointState, order: np.ndarray, movement: float, data: Data) -> JointState:
        """The state after visiting the rows of `order`; its average is not updated."""
        from polyplane.kernels.convex_polytope import Pace
        from polyplane.kernels.joint_polytope import JointProblem, Shares, Skipping, joint_epoch
        from polyplane.kernels.rows import PlaneSums, as_rows

        memory, measured, dtype = state.rows, state.workspace, state.coef.dtype
        assert memory is not None
        min_entropy = self.min_entropy * math.log(state.n_planes)
        problem = JointProblem(data.y, data.weight, state.n_planes, state.alpha, min_entropy)
        shares = Shares(memory.recorded, state.counts, np.empty((state.n_classes, 2))) if min_entropy > 0.0 else None
        length = np.zeros(0, dtype=dtype) if measured is None else measured.length
        skipping = Skipping(memory.skip, length, movement, 0 if measured is None else int(self.backoff))
        rows, score, loss, updates = as_rows(data.X), np.empty_like(state.intercept), 0.0, 0
        for piece in pieces(order, state.window):
            planes = PlaneSums(state.coef[: data.X.shape[1]], state.intercept, self._bias_input)
            pace = Pace(state.t, state.margin, state.window)
            part = joint_epoch(rows, piece, pace, planes, problem, shares, skipping, score)
            loss, updates = loss + part[0], updates + part[1]
            state = state.replace(t=min(state.t + len(piece), state.window), margin=part[2])
            if state.margin > LARGEST_GROWTH * state.alpha * state.window:
                state = rescaled(state, state.alpha * state.window)
        if state.t == state.window:
            state.counts[:] = state.counts * math.exp(-len(order) / state.window)
        share = 1.0 / len(order)
        return state.replace(epoch=state.epoch + 1, loss=loss * share, updates=updates * share, prefers_last=False)

    def _blended(self, state: JointState, share: float) -> JointState:
        return blended(state, share)

    def _without_mean(self, state: JointState) -> JointState:
        return state.replace(mean=None)

    def planes(self, state: JointState) -> PlaneSet:
        """All classes own the same number of planes."""
        coef, intercept = last_planes(state) if state.prefers_last else planes_of(state, state.share)
        indptr = np.arange(state.n_classes + 1) * state.n_planes
        return PlaneSet(np.ascontiguousarray(coef.T), intercept.copy(), indptr)

    def predict(self, state: JointState, X: Any) -> np.ndarray:
        """The classes of the rows, without a copy of the planes: they may have millions of features."""
        codes: np.ndarray = scores_of(state, X, state.share).argmax(axis=1) // state.n_planes
        return codes

    def widen(self, state: JointState, n_features: int) -> JointState:
        """Add capacity for more features."""
        return widened(state, n_features)

    def done(self, state: JointState) -> float:
        """The loss."""
        return state.loss


def _paced(state: JointState, window: int) -> JointState:
    """The state for another window. If the steps decrease again, the margin is alpha t again."""
    if state.t >= state.window and window > state.t:
        state = rescaled(state, state.alpha * state.t)
    return state if window == state.window else state.replace(window=window)
