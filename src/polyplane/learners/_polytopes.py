"""Polytopes in training: what the Convex Polytope Machine and Pegasos share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from polyplane._threads import Team, in_threads
from polyplane._validation import Data
from polyplane.base import PlaneClassifier
from polyplane.planes import PlaneSet

#: Steps 1 / (alpha t) that always fall.
FOREVER = 1 << 60
#: Where old rows fade, the stored sums grow by this much before they are scaled down, far from the end of float32.
LARGEST_GROWTH = float(1 << 20)
#: About so many rows decide between the average of the planes and the last ones.
ROWS_TO_JUDGE = 5000


class Polytope(NamedTuple):
    """One polytope in training: its class lives outside."""

    outer: int
    coef: np.ndarray  # (n_features or more, n_planes): `margin` times the planes
    intercept: np.ndarray
    counts: np.ndarray  # rows recorded at each plane, for the entropy
    mean: tuple[np.ndarray, np.ndarray] | None  # running average of the planes, when asked for


class PolytopeState(NamedTuple):
    """Everything that training needs to go on."""

    polytopes: list[Polytope]
    seed: int
    epoch: int
    t: int
    margin: float  # the planes are what is stored over this
    step: float  # length of the last step
    loss: float  # mean over the rows of the last epoch
    updates: float  # share of them that moved a plane
    window: int = FOREVER  # after so many visits steps fall no more
    blends: int = 0  # how often the planes went into their average
    blend_rows: int = 0  # rows, and the numbers in them, visited since the last time
    blend_entries: int = 0


class RowMemory(NamedTuple):
    """What is remembered of each row: by polytope (first axis), or by the one polytope that has it outside."""

    skip: np.ndarray
    patience: np.ndarray
    natural: np.ndarray
    recorded: np.ndarray

    @classmethod
    def fresh(cls, n_polytopes: int, n_rows: int) -> RowMemory:
        """Nothing seen yet."""
        return cls(
            np.zeros((n_polytopes, n_rows), dtype=np.uint8),
            np.zeros((n_polytopes, n_rows), dtype=np.uint8),
            np.full(n_rows, -1, dtype=np.int32),
            np.full(n_rows, -1, dtype=np.int32),
        )


class Workplace:
    """What goes with the rows of one call: the memory of them, the threads, and the order of the next epoch."""

    def __init__(self, n_polytopes: int, n_rows: int, n_jobs: int | None) -> None:
        self.rows = RowMemory.fresh(n_polytopes, n_rows)
        self.team = Team(n_jobs)
        self.next_order: tuple[int, np.ndarray] | None = None


class Epoch(NamedTuple):
    """The outcome of an epoch of one polytope."""

    polytope: Polytope
    loss: float
    updates: int
    margin: float


class PolytopeTrainer(PlaneClassifier):
    """Trains polytopes by stochastic gradient descent, each class of `_outer_classes` outside one of its own."""

    _converges_on = "loss"
    _fades = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "backoff": [Interval(Integral, 0, 255, closed="both")],
        "average": ["boolean"],
    }

    def _outer_classes(self, n_classes: int) -> list[int]:
        return list(range(n_classes))

    def _start(self, data: Data, seed: int) -> PolytopeState:
        n_features = data.X.shape[1]
        polytopes = [
            Polytope(
                outer,
                np.zeros((n_features, self.n_planes), dtype=data.X.dtype),
                np.zeros(self.n_planes, dtype=data.X.dtype),
                np.zeros(self.n_planes, dtype=np.int64),
                None,
            )
            for outer in self._outer_classes(data.n_classes)
        ]
        return PolytopeState(polytopes, seed, 0, 0, 0.0, math.inf, math.inf, 1.0)

    def _step(self, state: PolytopeState, data: Data) -> PolytopeState:
        place = data.recall(lambda: Workplace(len(state.polytopes), len(data.y), self.n_jobs))
        order = self._order(state.seed, state.epoch, data, place)
        state = _paced(state, _window(data.half_life), self.alpha)

        def work(side: int) -> Any:
            if side == len(state.polytopes):  # by whoever is done first
                return self._order(state.seed, state.epoch + 1, data, None)
            return self._epoch(state, side, order, data, place.rows)

        ahead = place.team.size > 1 and not data.stream
        done = place.team.map(work, range(len(state.polytopes) + ahead))
        if ahead:
            place.next_order = state.epoch + 1, done.pop()
        polytopes, losses, updates, margins = zip(*done, strict=True)
        visits = len(order)
        state = state._replace(
            polytopes=list(polytopes),
            epoch=state.epoch + 1,
            t=min(state.t + visits, state.window),
            margin=margins[0],
            step=1.0 / (self.alpha * min(state.t + visits, state.window)),
            loss=sum(losses) / visits,
            updates=sum(updates) / visits / len(polytopes),
        )
        return self._averaged(state, data)

    def _order(self, seed: int, epoch: int, data: Data, place: Workplace | None) -> np.ndarray:
        """The order of an epoch, which may have been made during the one before."""
        if not self.shuffle:
            return data.train
        if place is not None and place.next_order is not None and place.next_order[0] == epoch:
            return place.next_order[1]
        return np.random.default_rng([seed, epoch]).permutation(data.train)

    def _epoch(self, state: PolytopeState, side: int, order: np.ndarray, data: Data, memory: RowMemory) -> Epoch:
        from polyplane.kernels.polytope import Memory, Pace, Task, polytope_epoch
        from polyplane.kernels.rows import PlaneSums, as_rows

        polytope, t, margin, window = state.polytopes[side], state.t, state.margin, state.window
        n_planes = len(polytope.intercept)
        coef = polytope.coef[: data.X.shape[1]]
        planes = PlaneSums(coef, polytope.intercept, 1.0 if self.fit_intercept else 0.0)
        min_entropy = self.min_entropy * math.log(n_planes)
        task = Task(data.y, data.weight, polytope.outer, float(self.alpha), min_entropy, int(self.backoff))
        kept = Memory(
            memory.skip[side], memory.patience[side], memory.natural, memory.recorded, polytope.counts, np.empty(2)
        )
        score = np.empty(n_planes, dtype=coef.dtype)
        rows, loss, updates = as_rows(data.X), 0.0, 0
        for piece in _pieces(order, window):
            part = polytope_epoch(rows, piece, Pace(t, margin, window), planes, task, kept, score)
            loss, updates, t = loss + part[0], updates + part[1], t + len(piece)
            margin = _scale_down(planes, part[2], self.alpha * window)
        if t > window:
            polytope.counts[:] = polytope.counts * math.exp(-len(order) / window)
        return Epoch(polytope, loss, updates, margin)

    def _averaged(self, state: PolytopeState, data: Data) -> PolytopeState:
        """Take the planes into their average: after each epoch, or where a batch is much less than a plane, rarely."""
        if not self.average:
            return state._replace(polytopes=[polytope._replace(mean=None) for polytope in state.polytopes])
        n_entries = data.X.nnz if sparse.issparse(data.X) else data.X.size
        state = state._replace(
            blend_rows=state.blend_rows + len(data.train), blend_entries=state.blend_entries + n_entries
        )
        if data.stream and state.blends and state.blend_entries < data.X.shape[1]:
            return state
        share = _share(state)

        def blend(polytope: Polytope) -> Polytope:
            return polytope._replace(mean=_blend(polytope, state.margin, share))

        place = data.recall(lambda: Workplace(len(state.polytopes), len(data.y), self.n_jobs))
        polytopes = place.team.map(blend, state.polytopes)
        return state._replace(polytopes=polytopes, blends=state.blends + 1, blend_rows=0, blend_entries=0)

    def _planes(self, state: PolytopeState) -> PlaneSet:
        share = _share(state) if state.blend_rows else 0.0
        owned = {}
        for polytope in state.polytopes:
            coef, intercept = self._normals(polytope, state.margin, share)
            owned[polytope.outer] = (np.ascontiguousarray(coef.T), intercept)
        coef, intercept = owned[state.polytopes[0].outer]
        nothing = (np.zeros_like(coef[:1]), np.zeros_like(intercept[:1]))
        return PlaneSet.of_classes(owned.get(c, nothing) for c in range(len(self.classes_)))

    def _finish(self, state: PolytopeState, data: Data) -> None:
        """Take the last planes instead of their average where these err clearly less on the rows of the training.

        Planes of a polytope that has no shape to find keep changing places: their average is a plane of nobody's.
        """
        if not self.average or data.stream or self.early_stopping:
            return
        alone = [polytope._replace(mean=None) for polytope in state.polytopes]
        last = self._planes(state._replace(polytopes=alone, blend_rows=0))
        rows = data.train[:: max(1, len(data.train) // ROWS_TO_JUDGE)]
        X, y = data.X[rows], data.y[rows]
        errors = [float(np.mean(planes.predict(X) != y)) for planes in (self.planes_, last)]
        if errors[1] + 3.0 * math.sqrt(errors[0] * (1.0 - errors[0]) / len(rows)) < errors[0]:
            self.planes_ = last

    def _normals(self, polytope: Polytope, margin: float, share: float) -> tuple[np.ndarray, np.ndarray]:
        """The planes of a polytope, with what has not gone into their average yet."""
        scale, n_features = 1.0 / margin, self.n_features_in_
        now = (polytope.coef[:n_features] * scale, polytope.intercept * scale)
        if polytope.mean is None:
            return now
        mean = (polytope.mean[0][:n_features], polytope.mean[1])
        if share == 0.0:
            return mean
        return now[0] * share + mean[0] * (1.0 - share), now[1] * share + mean[1] * (1.0 - share)

    def _stream_predict(self, state: PolytopeState, X: Any) -> np.ndarray:
        """The classes of the rows, without a copy of the planes: they may have millions of features."""
        share = _share(state) if state.blend_rows else 0.0

        def best(polytope: Polytope) -> np.ndarray:
            total: Any = 0.0
            parts = [(polytope.coef, polytope.intercept, share / state.margin)]
            if polytope.mean is None:
                parts = [(polytope.coef, polytope.intercept, 1.0 / state.margin)]
            else:
                parts.append((*polytope.mean, 1.0 - share))
            for coef, intercept, factor in parts:
                if factor:
                    total = total + (np.asarray(X @ coef[: X.shape[1]]) + intercept) * factor
            highest: np.ndarray = total.max(axis=1)
            return highest

        scores = np.zeros((X.shape[0], len(self.classes_)))
        for polytope, column in zip(state.polytopes, in_threads(best, state.polytopes, self.n_jobs), strict=True):
            scores[:, polytope.outer] = column
        codes: np.ndarray = scores.argmax(axis=1)
        return codes

    def _widen(self, state: PolytopeState, n_features: int) -> PolytopeState:
        """Room for more features, with some to spare: a stream that grows does so all the time."""
        room = len(state.polytopes[0].coef)
        if n_features <= room:
            return state
        room = max(n_features, room + room // 4)
        for i, polytope in enumerate(state.polytopes):  # one after the other: they are large
            mean = polytope.mean and (_taller(polytope.mean[0], room), polytope.mean[1])
            state.polytopes[i] = polytope._replace(coef=_taller(polytope.coef, room), mean=mean)
        return state

    def _trimmed(self, state: PolytopeState) -> PolytopeState:
        n_features = self.n_features_in_
        polytopes = [
            polytope._replace(
                coef=polytope.coef[:n_features],
                mean=polytope.mean and (polytope.mean[0][:n_features], polytope.mean[1]),
            )
            for polytope in state.polytopes
        ]
        return state._replace(polytopes=polytopes)

    def _figures(self, state: PolytopeState) -> Mapping[str, float]:
        return {"loss": state.loss, "updates": state.updates, "step": state.step}

    def _stopping_rule(self) -> Callable[[Mapping[str, float]], bool]:
        level = super()._stopping_rule()
        # Before the steps 1 / (alpha t) have fallen to 1 the planes still jump about, and so does the loss.
        return lambda figures: figures["step"] <= 1.0 and level(figures)


def _window(half_life: float | None) -> int:
    """Visits after which steps fall no more, so that what a row taught is halved in `half_life` rows.

    From then on the planes lose 1 / window of themselves at each visit: (1 - 1 / window) ** half_life is 1/2.
    """
    return FOREVER if half_life is None else max(2, round(half_life / math.log(2)))


def _paced(state: PolytopeState, window: int, alpha: float) -> PolytopeState:
    """The state for another window. Where steps that had ceased to fall fall again, the margin is alpha t again."""
    if state.t >= state.window and window > state.t:
        margin = alpha * state.t
        for polytope in state.polytopes:
            for sums in (polytope.coef, polytope.intercept):
                sums *= margin / state.margin
        state = state._replace(margin=margin)
    return state._replace(window=window)


def _pieces(order: np.ndarray, window: int) -> Iterator[np.ndarray]:
    """Parts in which the margin grows by no more than LARGEST_GROWTH."""
    length = max(1, int(math.log(LARGEST_GROWTH) * (window - 1)))
    for first in range(0, len(order), length):
        yield order[first : first + length]


def _scale_down(planes: Any, margin: float, usual: float) -> float:
    """Bring sums that have grown too much, and their margin, back to where growth began."""
    if margin <= LARGEST_GROWTH * usual:
        return margin
    for sums in (planes.coef, planes.intercept):
        sums *= usual / margin
    return usual


def _share(state: PolytopeState) -> float:
    """The part of the planes at hand in their average.

    Polynomial-decay averaging (Shamir and Zhang, 2013): late ones count most. Where old rows fade, the average looks
    back on a quarter of the window.
    """
    return max(4.0 / (state.blends + 4.0), -math.expm1(-4.0 * state.blend_rows / state.window))


def _blend(polytope: Polytope, margin: float, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The average with the planes at hand taken in."""
    now = (polytope.coef / margin, polytope.intercept / margin)
    if polytope.mean is None:
        return now
    for mean, new in zip(polytope.mean, now, strict=True):
        mean *= 1.0 - share
        new *= share
        mean += new
    return polytope.mean


def _taller(array: np.ndarray, n_rows: int) -> np.ndarray:
    taller = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    taller[: len(array)] = array
    return taller
