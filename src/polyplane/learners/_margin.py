"""Training by the margin loss: plain descent from a tangent start, and the adaptive machines from nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polyplane._validation import Data
from polyplane.learners._schedule import Schedule
from polyplane.learners._tangent import Tangents
from polyplane.learners._units import Units
from polyplane.learners._visits import Rest
from polyplane.planes import PlaneSet

#: Planes are looked at, to average or to prune them, this many times in an epoch.
LOOKS = 8


class MarginState(NamedTuple):
    """Everything that training by the margin loss needs to go on; arrays are updated in place."""

    coef: np.ndarray  # (n_features, n_columns); see `polyplane.kernels.rows` for the three
    intercept: np.ndarray
    shift: np.ndarray
    owner: np.ndarray  # class of each column, -1: still free
    counts: np.ndarray  # planes of each class
    units: Units
    unit_step: float  # descent from a start: the step for eta0 = 1
    seed: int
    epoch: int = 0
    loss: float = np.inf
    mean: tuple[np.ndarray, np.ndarray] | None = None  # average of the last planes, by column
    n_averaged: int = 0
    t: int = 0  # adaptive machines: visits made
    chance: float = 0.0  # adaptive machines: probability that a plane is duplicated

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.counts.sum())

    def planes(self, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Normals and offsets of the planes in the units of X, `scale` times what is stored."""
        coef = self.coef[:, : self.n_planes].T - np.multiply.outer(self.shift[: self.n_planes], self.units.centre)
        return coef * scale, self.intercept[: self.n_planes] * scale

    def averaged(self, scale: float, window: int) -> MarginState:
        """The state with the planes at hand taken into the average."""
        now = self.planes(scale)
        if self.mean is None:
            return self._replace(mean=now, n_averaged=1)
        n_averaged = min(self.n_averaged + 1, window)
        for mean, new in zip(self.mean, now, strict=True):
            mean += (new - mean) / n_averaged
        return self._replace(n_averaged=n_averaged)

    def plane_set(self, scale: float) -> PlaneSet:
        """The model; a class without planes owns the zero plane."""
        coef, intercept = self.mean or self.planes(scale)
        owner = self.owner[: self.n_planes]
        zero = (np.zeros_like(coef, shape=(1, coef.shape[1])), np.zeros_like(intercept, shape=1))
        own = ((coef[owner == c], intercept[owner == c]) for c in range(len(self.counts)))
        return PlaneSet.of_classes(planes if len(planes[0]) else zero for planes in own)


class KernelRows(NamedTuple):
    """What the kernels need to know of the rows, made once."""

    X: Any
    rows: Any
    rest: Rest


def kernel_rows(data: Data, units: Units, backoff: int) -> KernelRows:
    """The rows as `units` sees them."""
    from polyplane.kernels.multi_hyperplane import Rows
    from polyplane.kernels.rows import CentredRows, as_rows

    def fresh() -> KernelRows:
        along = np.asarray(data.X @ units.centre).ravel()
        X = CentredRows(as_rows(data.X), along, float(units.centre @ units.centre), units.factor)
        rest = Rest.fresh(len(data.y))
        return KernelRows(X, Rows(data.y, data.weight, rest.skip, rest.patience, backoff), rest)

    return data.recall(fresh)


def _pieces(order: np.ndarray, length: int) -> Iterator[np.ndarray]:
    for first in range(0, len(order), length):
        yield order[first : first + length]


class MarginTraining(NamedTuple):
    """Stochastic gradient descent from a tangent start."""

    eta0: float  # first step, relative to the way from a row to its centre
    tail: float  # the last part of the passes, whose planes are averaged
    backoff: int
    shuffle: bool
    schedule: Schedule

    def start(self, tangents: Tangents, units: Units, seed: int) -> MarginState:
        """The state before the first epoch."""
        centres = tangents.centres[tangents.real]
        owner = np.nonzero(tangents.real)[0].copy()  # in one piece, as in any other state: one kernel to compile
        coef, intercept = units.fold(
            2 * tangents.scale * centres, (-tangents.scale * (centres**2).sum(axis=1)).astype(centres.dtype)
        )
        way = max(tangents.lengths.spread**0.5, tangents.lengths.margin / 4, 1e-6)
        return MarginState(
            np.ascontiguousarray(coef.T),
            intercept,
            np.zeros_like(intercept),
            owner,
            np.bincount(owner, minlength=len(tangents.real)),
            units,
            2 * tangents.scale * way,
            seed,
        )

    def epoch(self, state: MarginState, data: Data) -> MarginState:
        """The state after one more pass over the rows."""
        from polyplane.kernels.multi_hyperplane import Steps, margin_epoch
        from polyplane.kernels.rows import PlaneSums

        order = data.train
        if self.shuffle:
            order = np.random.default_rng([state.seed, state.epoch]).permutation(order)
        known = kernel_rows(data, state.units, self.backoff)
        sums = PlaneSums(state.coef, state.intercept, 1.0, state.shift)
        score = np.empty_like(state.intercept)
        loss, n_visited = 0.0, 0
        for piece in _pieces(order, -(-len(order) // LOOKS)):
            first, last = (
                self.eta0 * state.unit_step * self.schedule.rate(state.epoch, done / len(order))
                for done in (n_visited, n_visited + len(piece))
            )
            steps = Steps(first, (first - last) / len(piece))
            loss += margin_epoch(known.X, piece, sums, state.owner, known.rows, steps, score)
            n_visited += len(piece)
            if self.schedule.averages(state.epoch, n_visited / len(order), self.tail):
                state = state.averaged(1.0, self.schedule.window)
            else:
                state = state._replace(mean=None)
        return state._replace(epoch=state.epoch + 1, loss=loss / len(order))

    def planes(self, state: MarginState) -> PlaneSet:
        """The model in a state."""
        return state.plane_set(1.0)


class AdaptiveTraining(NamedTuple):
    """AMM and GAMM: classes begin without planes and bear them as they need."""

    alpha: float
    growth: float
    growth_decay: float
    most: int
    prune: float  # the norm of all planes removed at once is at most this over alpha t (c)
    prune_every: int
    by_epoch: bool  # each row keeps its plane for an epoch
    tail: float  # the last part of the passes: planes are averaged, none is born or pruned
    shuffle: bool
    schedule: Schedule

    def start(self, n_classes: int, n_features: int, units: Units, seed: int) -> MarginState:
        """The state before the first epoch: no plane at all."""
        dtype = units.centre.dtype
        columns = 4 * n_classes
        return MarginState(
            np.zeros((n_features, columns), dtype=dtype),
            np.zeros(columns, dtype=dtype),
            np.zeros(columns, dtype=dtype),
            np.full(columns, -1, dtype=np.int64),
            np.zeros(n_classes, dtype=np.int64),
            units,
            0.0,
            seed,
            chance=self.growth,
        )

    def epoch(self, state: MarginState, data: Data) -> MarginState:
        """The state after one more pass over the rows."""
        rng = np.random.default_rng([state.seed, state.epoch])
        order = rng.permutation(data.train) if self.shuffle else data.train
        draws = rng.random(len(order))
        settled = not self.schedule.stream and self.schedule.averages(state.epoch, 0.0, self.tail)
        if not settled:
            state = state._replace(mean=None)
        assigned = np.zeros(0, dtype=np.int64)
        if self.by_epoch and state.epoch > 0:
            assigned = self._assign(state, data)
        loss, done = 0.0, 0
        while done < len(order):
            # Pause to prune, to average, or where no column is free.
            pause = self.prune_every - state.t % self.prune_every
            if settled:
                pause = min(pause, -(-len(order) // LOOKS))
            piece = slice(done, done + pause)
            state, visited, losses = self._visit(state, data, order[piece], draws[piece], assigned, settled)
            loss, done = loss + losses, done + visited
            if settled:
                state = state.averaged(1.0 / (self.alpha * state.t), self.schedule.window)
            elif len(assigned) == 0 and state.t % self.prune_every == 0:
                state = self._prune(state)
        return state._replace(epoch=state.epoch + 1, loss=loss / len(order))

    def planes(self, state: MarginState) -> PlaneSet:
        """The model in a state."""
        return state.plane_set(1.0 / (self.alpha * state.t))

    def _visit(
        self, state: MarginState, data: Data, order: np.ndarray, draws: np.ndarray, assigned: np.ndarray, settled: bool
    ) -> tuple[MarginState, int, float]:
        from polyplane.kernels.multi_hyperplane import Growth, adaptive_epoch
        from polyplane.kernels.rows import PlaneSums

        if state.n_planes + 3 > len(state.owner):
            state = _with_room(state)
        known = kernel_rows(data, state.units, backoff=0)
        growth = Growth(self.alpha, self.growth_decay, 0 if settled else self.most, draws, assigned)
        numbers = np.array([state.n_planes, state.t, state.chance])
        visited, loss = adaptive_epoch(
            known.X,
            order,
            PlaneSums(state.coef, state.intercept, 1.0, state.shift),
            state.owner,
            state.counts,
            known.rows,
            growth,
            numbers,
        )
        return state._replace(t=int(numbers[1]), chance=float(numbers[2])), visited, loss

    def _assign(self, state: MarginState, data: Data) -> np.ndarray:
        """The best plane of each row's class, as a column."""
        coef, intercept = state.planes(1.0)
        columns = np.argsort(state.owner[: state.n_planes], kind="stable")
        everyone = PlaneSet(coef[columns], intercept[columns], np.concatenate([[0], np.cumsum(state.counts)]))
        assigned = np.empty(len(data.y), dtype=np.int64)
        for c in range(data.n_classes):
            own = data.y == c
            if own.any():
                planes = PlaneSet(*everyone.of(c), np.array([0, state.counts[c]]))
                assigned[own] = columns[everyone.indptr[c] + planes.winners(data.X[own])]
        return assigned

    def _prune(self, state: MarginState) -> MarginState:
        """Remove the smallest planes, as many as together do not matter; never the last one of a class."""
        coef, intercept = state.planes(1.0)
        offset = intercept + coef @ state.units.centre
        square = (coef.astype(float) ** 2).sum(axis=1) / state.units.factor**2 + offset.astype(float) ** 2
        left, keep = state.counts.copy(), np.ones(state.n_planes, dtype=bool)
        budget = (self.prune * state.t / (state.t - 1)) ** 2
        for k in np.argsort(square, kind="stable"):
            budget -= square[k]
            if budget < 0:
                break
            if left[state.owner[k]] > 1:
                left[state.owner[k]] -= 1
                keep[k] = False
            else:
                budget += square[k]
        return state if keep.all() else _with_columns(state, np.flatnonzero(keep), len(state.owner))


def _with_columns(state: MarginState, kept: np.ndarray, n_columns: int) -> MarginState:
    """The state with only the columns `kept`, in an array of `n_columns`."""

    def moved(array: np.ndarray, fill: int = 0) -> np.ndarray:
        wide = np.full((*array.shape[:-1], n_columns), fill, dtype=array.dtype)
        wide[..., : len(kept)] = array[..., kept]
        return wide

    owner = moved(state.owner, -1)
    return state._replace(
        coef=moved(state.coef),
        intercept=moved(state.intercept),
        shift=moved(state.shift),
        owner=owner,
        counts=np.bincount(owner[: len(kept)], minlength=len(state.counts)),
    )


def _with_room(state: MarginState) -> MarginState:
    """The state with half as many columns again."""
    return _with_columns(state, np.arange(state.n_planes), state.n_planes + max(8, state.n_planes // 2))
