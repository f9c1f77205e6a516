"""The tangent start, and what methods that start from it share: decreasing steps, skipped rows, random orders.

By Theorem 1 of Djuric, Wang and Vucetic (2020), the tangent planes of a convex function at given points divide the
space into one cell around each point. With the paraboloid :math:`s |x|^2` and the k-means centres :math:`m` of each
class, the planes are :math:`w = 2 s m`, :math:`b = -s |m|^2`, and the start is the nearest-centre classifier.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from itertools import repeat
from typing import Annotated, Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse

from polyplane._array_api import (
    astype,
    at_least,
    at_most,
    blas_threads,
    host_dtype,
    is_foreign,
    kind_of,
    like,
    namespace,
    put,
    take_rows,
    to_numpy,
    widest_float,
    within_device_memory,
)
from polyplane.engine.data import AffineScaling, Data, ScaledRows
from polyplane.engine.method import Method, Traits
from polyplane.engine.run import Choice, Race, Run, excess
from polyplane.engine.state import Array, RowMemory, State
from polyplane.planes import PlaneSet

#: Number of consecutive rows that share a window of the noise; unless they have many features, each has its own row.
WINDOW = 256
#: Size of a window in numbers, and minimum size in rows: rows with many features share rows of noise. New noise for
#: each row would cost more than the matrix products, and even more for sparse rows, which must stay sparse.
WINDOW_NUMBERS, LEAST_NOISE_ROWS = 1 << 15, 32
#: Windows of noise per epoch.
WINDOWS = 8
#: Maximum size of the random numbers that are kept for other runs, in bytes.
MOST_DRAWN = 1 << 24

_CLOCK = Array("uint8", "rows")


class Schedule(NamedTuple):
    """Step sizes that decrease linearly to 0 over `passes`, and then start again; in a stream, to a third, and stay."""

    passes: int
    done: int  # number of passes made
    stream: bool

    @classmethod
    def of(cls, passes: int, state: Any, data: Data) -> Schedule:
        """The schedule of a state after `epoch` passes, `turn` of them by the current schedule."""
        return cls(passes, state.epoch if data.stream else state.turn % passes, data.stream)

    def rate(self, fraction: float) -> float:
        """Step size relative to the first, after a `fraction` of the next pass."""
        return max(1.0 - (self.done + fraction) / self.passes, 1 / 3 if self.stream else 0.0)

    def averages(self, fraction: float, last: float) -> bool:
        """Whether planes are averaged after a `fraction` of the next pass: in the `last` fraction of the passes."""
        return last > 0 and self.done + fraction >= (1.0 - last) * self.passes

    @property
    def window(self) -> int:
        """Maximum number of states in an average: unlimited, or in a stream about the last thirty."""
        return 30 if self.stream else 1 << 62

    @property
    def next_turn(self) -> int:
        """Number of passes made after the next one; 0 at the end of the schedule, and in a stream."""
        return 0 if self.stream else (self.done + 1) % self.passes


def update_mean(mean: Any, new: Any, n: Any) -> None:
    """Update a mean in place with the `n`-th array, `new`."""
    mean += (new - mean) / n


#: Skipping may miss updates of this part of the weight of all updates.
MOST_MISSED = 0.005
#: Probability of checking a skipped row, higher if there are few rows: then so many rows are checked in a pass.
LEAST_CHECKED, CHECKED_ROWS = 1 / 64, 256
#: Each check that finds an update shortens the skipping of rows by this factor; lower limit of the caution.
LESS_PER_HIT, LEAST_CAUTION = 2.0, 0.5
#: The reported part is that of about ten passes: of this part of the previous sum, and the last pass.
KEPT_PER_PASS = 0.9


@dataclass(frozen=True, eq=False)
class SkippedRows(RowMemory):
    """Which rows are skipped, and what that misses.

    In each pass, a random sample of the rows to skip is visited. It shows how many updates are missed, and the assumed
    movement of the planes is adjusted until these are `MOST_MISSED` of all updates, by weight: without updates in the
    sample it decreases slowly, and with more than that it increases, so that rows are skipped for fewer passes, also
    those that are skipped already.
    """

    skip: Annotated[np.ndarray, Array("uint8", "polytopes", "rows")]  # passes for which to skip it
    _: KW_ONLY
    caution: float = 1.0  # factor of the movement of the planes
    missed: float = 0.0  # weight of the updates that were missed in the last passes, estimated
    made: float = 0.0  # weight of the updates that were made

    @property
    def share(self) -> float:
        """The part of the updates of the last passes that was missed, by weight."""
        return self.missed / (self.missed + self.made) if self.missed else 0.0

    @staticmethod
    def rate(data: Data) -> float:
        """The probability of a check of a row, relative to its weight."""
        weight = float(data.weight[data.train].mean(dtype=np.float64))
        return max(LEAST_CHECKED, CHECKED_ROWS / max(1, len(data.train))) / weight

    def checked(self, found: np.ndarray, data: Data, power: float) -> Self:
        """Adjust the caution to the missed and the made updates that a pass has `found`.

        The number of passes for which rows are skipped is inversely proportional to this `power` of the caution.
        """
        missed, made = found.tolist()
        excess = (missed - MOST_MISSED * (missed + made)) * self.rate(data)  # in hits of rows of mean weight
        caution = max(LEAST_CAUTION, self.caution * min(LESS_PER_HIT ** (excess / power), 1e3))
        if caution > self.caution:
            self.skip[...] = self.skip * (self.caution / caution) ** power
        missed, made = missed + KEPT_PER_PASS * self.missed, made + KEPT_PER_PASS * self.made
        return self.replace(caution=caution, missed=missed, made=made)


#: A row whose class has this probability is ample: it may be skipped.
AMPLE = 0.99
#: All rows are visited again if the skipped ones are short of probability 1 by more than this, on average.
SHORTFALL = 0.04


@dataclass(frozen=True, eq=False)
class BackoffState(RowMemory):
    """Which rows are skipped: those whose class has a high probability, as long as that remains so.

    A row is visited in an epoch with the probability 1 / (skip + 1), and counts skip + 1 times as much: the expected
    gradient is that of all rows, whatever the skipped rows have become. The rows that are visited show what that is: if
    they have lost their probability, all rows are visited in the next 1, 2, 4, ... epochs.
    """

    skip: Annotated[Any, _CLOCK]  # number of epochs for which each row is skipped on average between two visits
    strikes: int = 0  # number of times that skipped rows had lost their probability
    pause: int = 0  # number of epochs for which no row is skipped
    #: Probability that the label of each row is not a random one, at its last visit. None: all labels are trusted.
    trust: Annotated[Any, Array("f", "rows")] | None = None

    def visited(self, order: Any, chance: Any) -> tuple[Any, Any]:
        """Return the rows of `order` to visit in this epoch, and the factor of each row's weight.

        `chance` are uniform random numbers.
        """
        factor = astype(self.skip, chance.dtype) + 1.0
        chosen = order[take_rows(factor, order) * chance < 1.0]
        return chosen, factor if self.trust is None else factor * self.trust

    def noted(self, rows: Any, weight: Any, probability: Any, longest: int) -> Self:
        """Skip ample rows for 1, 3, 7, ... epochs, or no row.

        `weight` and `probability` are those of the visited rows in this epoch.
        """
        skip = take_rows(self.skip, rows)
        xp, counted = namespace(rows), weight * astype(skip > 0, weight.dtype)
        state, is_free = self.judged(float(xp.sum(counted * (1.0 - probability))) / max(float(xp.sum(counted)), 1e-30))
        if is_free:
            put(self.skip, rows, skip_longer(skip, probability, longest))
        return state

    def judged(self, shortfall: float) -> tuple[Self, bool]:
        """The state after a pass whose skipped rows were short of probability, and whether it may skip more rows."""
        if shortfall > SHORTFALL:
            self.skip[...] = 0
            return replace(self, strikes=self.strikes + 1, pause=2**self.strikes), False
        if self.pause > 1:
            return replace(self, pause=self.pause - 1), False
        return self, True


def skip_longer(skip: Any, probability: Any, longest: int) -> Any:
    """For how many epochs to skip rows, twice as many as before or none, given the probabilities of their classes."""
    half = at_most(skip, longest // 2)  # so that no uint8 overflows
    return namespace(skip).where(probability > AMPLE, at_most(2 * half + 1, longest), 0 * half)


class EpochRandomness(NamedTuple):
    """The random numbers of an epoch, drawn on the host, so that they do not depend on the device."""

    order: np.ndarray
    chance: np.ndarray  # uniform numbers, which decide whether a row is skipped
    noise: np.ndarray | None = None  # noise of variance 1
    noise_rows: np.ndarray | None = None  # the row of the noise for each visited row, in the order of the visits


class DrawnEpochs(dict[Any, EpochRandomness]):
    """The random numbers of the first epochs, for all runs with the same rows and seed, as many as fit."""

    def __init__(self) -> None:
        super().__init__()
        self._room = MOST_DRAWN

    def __setitem__(self, key: Any, drawn: EpochRandomness) -> None:
        self._room -= sum(numbers.nbytes for numbers in drawn if numbers is not None)
        if self._room > 0:
            super().__setitem__(key, drawn)


class EpochSampler:
    """Labels and weights on the device of the rows, and the order and the noise of each epoch."""

    def __init__(self, data: Data, shuffle: bool, noise: bool) -> None:
        kind = kind_of(data.X)
        self.y, self.weight = like(data.y, kind), like(data.weight, kind)
        self.total_weight = float(data.weight[data.train].sum())
        self._train, self._shuffle, self._shared = data.train, shuffle, data.shared
        n_rows, n_features = len(data.train), data.X.shape[1]
        self._n_features = n_features
        self._window = min(n_rows, max(LEAST_NOISE_ROWS, min(WINDOW, WINDOW_NUMBERS // n_features)))
        self._noise_shape = (self._window * min(-(-n_rows // WINDOW), WINDOWS), n_features) if noise else None
        self._dtype = host_dtype(kind)
        self.last_pass: Any = None  # what the passes of a run share
        # While an epoch runs on a device, the host draws the random numbers of the next one.
        self._helper = None if namespace(kind) is np else ThreadPoolExecutor(1)
        self._ahead: tuple[tuple[int, int], Future[EpochRandomness]] | None = None

    def draw(self, seed: int, epoch: int, more: bool) -> EpochRandomness:
        """Return the random numbers of an epoch; if `more` epochs follow, draw those of the next one in advance."""
        ahead = self._ahead
        drawn = ahead[1].result() if ahead is not None and ahead[0] == (seed, epoch) else self._draw(seed, epoch)
        if self._helper is not None and more:
            self._ahead = (seed, epoch + 1), self._helper.submit(self._draw, seed, epoch + 1)
        return drawn

    def _draw(self, seed: int, epoch: int) -> EpochRandomness:
        def draw() -> EpochRandomness:
            rng = np.random.default_rng([seed, epoch])
            order = rng.permutation(self._train) if self._shuffle else self._train
            chance = np.random.default_rng([seed, epoch, 1]).random(len(order), dtype=np.float32)
            return EpochRandomness(order, chance, *(self._draw_noise(rng, order) if self._noise_shape else ()))

        drawn: EpochRandomness = self._shared((seed, epoch, self._shuffle, self._noise_shape, type(self)), draw)
        return drawn

    def _draw_noise(self, rng: np.random.Generator, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        noise = rng.standard_normal(self._noise_shape, dtype=self._dtype)
        first = np.repeat(rng.integers(0, len(noise), -(-len(order) // WINDOW)), WINDOW)[: len(order)]
        return noise, (first + np.arange(len(order)) % self._window) % len(noise)


#: Maximum number of rows per centre for k-means.
ROWS_PER_CENTRE = 256
#: Passes of k-means.
KMEANS_PASSES = 10
#: Maximum number of distances, padding included, that k-means on a device computes at once; if there are more, it takes
#: one class after the other.
MOST_DISTANCES = 1 << 27
#: Number of rows from which gap, spread and margin are estimated.
SAMPLE = 800
#: Number of multiplications from which sums of groups of rows take less time as a sparse product.
LARGE = 100_000
#: A smaller sum of gap and spread is due to rounding.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Tangents(State):
    """Centres of the classes and the tangent planes at them, over scaled rows.

    Classes may have different numbers of centres; the arrays are padded to the largest.
    """

    centres: Annotated[Any, Array("f", "classes", "planes", "features", in_place=False)]  # on the device of the rows
    mask: Annotated[np.ndarray, Array("b", "classes", "planes", in_place=False)]  # False: padding
    scale: float
    spread: float  # mean squared distance of a row to the nearest centre of its class
    margin: float  # median distance of a row to the boundary between its nearest own and rival centres

    def check(self, sizes: dict[str, int]) -> bool:
        """Each class has a centre."""
        return bool(self.mask.any(axis=1).all())

    def planes(self) -> Any:
        """The planes, shape (n_classes, n_planes, n_features + 1); padding never has the highest score."""
        xp, centres = namespace(self.centres), self.centres
        square = xp.sum(centres**2, axis=2, keepdims=True)
        W = self.scale * xp.concat([2 * centres, -square], axis=2)
        W[:, :, -1] = xp.where(like(self.mask, W), W[:, :, -1], xp.full_like(W[:, :, -1], -1e30))
        return W

    @property
    def step(self) -> float:
        """The unit of step sizes: the change of a plane from a row to its centre, or by a quarter of the margin."""
        return 2 * self.scale * max(self.spread**0.5, self.margin / 4, 1e-6)


def tangent_start(
    data: Data, n_planes: np.ndarray, scaling: AffineScaling, scale: float, seed: int, passes: int = KMEANS_PASSES
) -> Tangents:
    """Find the centres of the classes, by `passes` of k-means, and the scale of the paraboloid.

    `scale`, relative to the sum of the gap and the spread, determines the difference of the scores of the two best
    classes at the start: large enough to be useful, small enough that training can change it.
    """
    X, y, rows = data.X, data.y, data.train
    xp, rng = namespace(X), np.random.default_rng(seed)
    shape = (len(n_planes), int(n_planes.max()))
    centres = like(np.zeros((*shape, X.shape[1]), dtype=host_dtype(X)), X)
    mask = np.zeros(shape, dtype=bool)
    size = len(rows) * X.shape[1] * shape[1] // shape[0]  # of a product of k-means
    most_rows = int(np.minimum(data.class_counts, ROWS_PER_CENTRE * n_planes).max())
    if is_foreign(X) and shape[0] * shape[1] * most_rows <= MOST_DISTANCES:
        centres, mask = _centres_together(
            X, [rows[y[rows] == c] for c in range(shape[0])], scaling, n_planes, rng, passes
        )
    else:
        with blas_threads(size) if xp is np else nullcontext():
            for c, k in enumerate(n_planes):
                own = sampled(rows[y[rows] == c], int(k), rng)
                # A class without rows starts with one plane at the centre of all rows.
                found = (
                    _centres_of(X, own, scaling, int(k), rng, passes) if len(own) else xp.zeros_like(centres[c, :1, :])
                )
                centres[c, : found.shape[0], :] = found
                mask[c, : found.shape[0]] = True
    sample = np.sort(rng.choice(rows, min(len(rows), SAMPLE), replace=False))
    gap, spread, margin = _measure(centres, mask, ScaledRows(X, sample, scaling), y[sample])
    if gap + spread < ROUNDING:  # the classes have the same few rows: the scale is that of the rows
        return Tangents(centres, mask, scale, 0.0, 1.0)
    return Tangents(centres, mask, scale / (gap + spread), spread, margin)


def most_planes(data: Data) -> int:
    """Maximum number of planes per class: no more weights than the rows have nonzero values."""
    X = data.X
    numbers = X.count_nonzero() if sparse.issparse(X) else int(namespace(X).count_nonzero(X))
    return max(1, numbers * len(data.train) // (X.shape[0] * X.shape[1] * data.n_classes))


def _centres_of(
    X: Any, rows: np.ndarray, scaling: AffineScaling, n_centres: int, rng: np.random.Generator, passes: int
) -> Any:
    """The k-means centres of the scaled rows; sparse rows stay sparse, and their centres are scaled instead."""
    if not sparse.issparse(X):
        return kmeans(scaling.take(X, rows), n_centres, rng, passes)
    return (kmeans(X[rows], n_centres, rng, passes) - scaling.centre) * X.dtype.type(scaling.factor)


def _centres_together(
    X: Any,
    rows: Sequence[np.ndarray],
    scaling: AffineScaling,
    n_planes: np.ndarray,
    rng: np.random.Generator,
    passes: int,
) -> tuple[Any, np.ndarray]:
    """The k-means centres of all classes on a device, with common matrix products; and which of them are not padding.

    `rows` are those of each class. The result is that of `kmeans` for each class, up to rounding.
    """
    xp, n_classes, most_planes = namespace(X), len(rows), int(n_planes.max())
    most_rows = max(min(len(own), ROWS_PER_CENTRE * k) for own, k in zip(rows, n_planes.tolist(), strict=True))
    index, is_row = np.zeros((n_classes, most_rows), dtype=np.int64), np.zeros((n_classes, most_rows), dtype=bool)
    first, mask = np.zeros((n_classes, most_planes), dtype=np.int64), np.zeros((n_classes, most_planes), dtype=bool)
    moves = np.zeros((n_classes, most_planes), dtype=bool)
    for c, k in enumerate(n_planes.tolist()):
        own = sampled(rows[c], k, rng)
        begin = rng.choice(len(own), k, replace=False) if len(own) > k else np.arange(len(own))
        index[c, : len(own)], is_row[c, : len(own)] = own, True
        first[c, : len(begin)], mask[c, : len(begin)] = begin + c * most_rows, True
        moves[c, : len(begin)] = len(own) > k  # rows that are all centres stay where they are
    flat = scaling.take(X, index.ravel())
    x = xp.reshape(flat, (n_classes, most_rows, -1))
    centres = xp.reshape(take_rows(flat, first.ravel()), (n_classes, most_planes, -1)) * _beside(mask[:, :, None], X)
    far = _beside(np.where(mask, 0.0, np.inf)[:, None, :], X)
    counted, least = _beside(is_row[:, None, :], X), _beside(np.full(is_row.shape, -np.inf), X)
    moved, labels = like(moves[:, :, None], X), like(np.arange(most_planes)[None, :, None], X)
    for _ in range(passes if most_planes > 1 else 1):
        cost = x @ xp.matrix_transpose(-2.0 * centres)
        cost += xp.sum(centres * centres, axis=2)[:, None, :] + far
        member = astype(xp.argmin(cost, axis=2)[:, None, :] == labels, X.dtype) * counted
        count = xp.sum(member, axis=2)
        found = (member @ x) / at_least(count, 1.0)[:, :, None]
        idle = moves & (to_numpy(count) == 0)
        if idle.any():
            distance = xp.min(cost, axis=2) + xp.sum(x * x, axis=2)
            order = xp.argsort(xp.where(counted[:, 0, :] > 0, distance, least), axis=1)
            last = most_rows - idle.sum(axis=1, keepdims=True) + idle.cumsum(axis=1) - 1
            offset = most_rows * np.nonzero(idle)[0]
            farthest = take_rows(xp.reshape(order, (-1,)), last[idle] + offset) + like(offset, X)
            flat_found = xp.reshape(found, (n_classes * most_planes, -1))
            put(flat_found, like(np.flatnonzero(idle), X), take_rows(flat, farthest))
            found = xp.reshape(flat_found, found.shape)
        centres = xp.where(moved, found, centres)
    mask[:, 0] = True  # a class without rows starts with one plane at the centre of all rows
    return centres, mask


def _beside(values: np.ndarray, X: Any) -> Any:
    """Numbers in the library, on the device and of the dtype of X."""
    return like(values.astype(host_dtype(X)), X)


@dataclass(frozen=True, eq=False)
class KMeansState(State):
    """The centres of k-means."""

    centres: Annotated[Any, Array("f", "planes", "features", in_place=False)]
    stay: bool = False  # whether the last pass did not move them; nor would the next


@dataclass(frozen=True)
class KMeans(Method[KMeansState]):
    """Lloyd's algorithm; a step is one pass. An empty centre moves to the row farthest from its centre.

    k-means need not converge here: scikit-learn's takes five times as long and leads to the same error. It also knows
    no arrays on devices.

    Parameters
    ----------
    n_centres : int
        Number of centres.
    in_float64 : bool, default=False
        Whether to compute the centres in float64, on the host; an empty one then does not move.
    """

    n_centres: int
    in_float64: bool = False

    traits = Traits(KMeansState, takes_device_arrays=True)

    def start(self, data: Data, seed: Any) -> KMeansState:
        """Centres at rows that the random generator `seed` draws."""
        rows = seed.choice(data.X.shape[0], self.n_centres, replace=False)
        if self.in_float64:
            return KMeansState(_dense(data.X[np.sort(rows)]).astype(np.float64))
        return KMeansState(_dense(take_rows(data.X, rows)))

    def step(self, state: KMeansState, data: Data) -> KMeansState:
        """Move each centre to the mean of the rows nearest to it."""
        X, before = data.X, state.centres
        xp, n_rows = namespace(X), X.shape[0]
        cost = X @ (-2.0 * before.T)
        cost += xp.sum(before * before, axis=1)
        sums, count = _sums_of_groups(X, xp.argmin(cost, axis=1), self.n_centres, self.in_float64)
        centres = sums / at_least(count, 1.0)[:, None]
        idle = np.flatnonzero(to_numpy(count) == 0)
        if len(idle) and self.in_float64:
            centres[idle] = before[idle]
        elif len(idle):
            norms = X.multiply(X).sum(axis=1) if sparse.issparse(X) else xp.sum(X * X, axis=1)
            distance = xp.min(cost, axis=1) + xp.reshape(xp.asarray(norms), (-1,))
            put(centres, like(idle, centres), _dense(take_rows(X, xp.argsort(distance)[n_rows - len(idle) :])))
        return KMeansState(centres, bool(xp.all(centres == before)))

    def done(self, state: KMeansState) -> bool:
        """Whether the centres stay."""
        return state.stay

    def planes(self, state: KMeansState) -> PlaneSet:
        """The tangents of a paraboloid at the centres, whose largest score is that of the nearest centre."""
        square = namespace(state.centres).sum(state.centres**2, axis=1)
        return PlaneSet(2 * state.centres, -square, np.arange(self.n_centres + 1))


def kmeans(
    X: Any, n_centres: int, rng: np.random.Generator, passes: int = KMEANS_PASSES, in_float64: bool = False
) -> Any:
    """Centres of dense or sparse rows by a few passes of k-means."""
    n_rows = X.shape[0]
    if n_rows <= n_centres and not in_float64:
        return namespace(X).asarray(_dense(X), copy=True)
    data = Data(X, np.zeros(0), np.zeros(0), np.zeros(0), 1)
    run = Run(KMeans(n_centres, in_float64), seed=rng, tracked=False)
    return run.go(repeat(data, passes if n_centres > 1 else 1)).state.centres


def sampled(rows: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    """The rows of a class, or a sample of them that is large enough for its centres."""
    if len(rows) <= ROWS_PER_CENTRE * n_centres:
        return rows
    return np.sort(rng.choice(rows, ROWS_PER_CENTRE * n_centres, replace=False))


def _sums_of_groups(X: Any, group: Any, n_groups: int, in_float64: bool) -> tuple[Any, Any]:
    """Sum of the rows of each group, and their number, by a matrix product, on the host a sparse one if it is large."""
    xp = namespace(X)
    if in_float64 or sparse.issparse(X) or (xp is np and X.size * n_groups > LARGE):
        ones, count = np.ones(len(group), np.float64 if in_float64 else X.dtype), np.bincount(group, minlength=n_groups)
        member = sparse.csc_array((ones, group, np.arange(len(group) + 1)), shape=(n_groups, len(group)))
        return _dense((member.tocsr() if sparse.issparse(X) else member) @ X), count.astype(ones.dtype)
    member = astype(group[None, :] == like(np.arange(n_groups), group)[:, None], X.dtype)
    return member @ X, xp.sum(member, axis=1)


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


def _measure(centres: Any, mask: np.ndarray, sample: ScaledRows, y: np.ndarray) -> tuple[float, float, float]:
    """Estimate the gap, the spread and the margin from a sample of rows.

    The gap is the median absolute difference of the squared distances to the nearest own and the nearest rival centre.
    """
    rows, flat = np.arange(len(y)), namespace(centres).reshape(centres, (-1, centres.shape[2]))
    flat_host = to_numpy(flat)
    squares = np.square(flat_host).sum(axis=1)
    closeness = 2 * to_numpy(sample.times(flat))
    closeness -= np.where(mask.ravel(), squares, np.inf).astype(closeness.dtype)
    closeness = closeness.reshape(len(y), *mask.shape)
    own = closeness[rows, y]
    best, own_centre = own.max(axis=1), y * mask.shape[1] + own.argmax(axis=1)
    closeness[rows, y] = -np.inf
    rivals = closeness.reshape(len(y), -1)
    rival = rivals.argmax(axis=1)
    pairs, pair = np.unique(own_centre * len(squares) + rival, return_inverse=True)  # few, if rows have many features
    first, second = np.divmod(pairs, len(squares))
    apart = np.linalg.norm(flat_host[first] - flat_host[second], axis=1)[pair]
    gaps = np.abs(best - rivals[rows, rival])
    spread = max(float((to_numpy(sample.square_norms()) - best).mean()), 0.0)
    return float(np.median(gaps)), spread, float(np.median(gaps / (2 * apart + 1e-12)))


S = TypeVar("S", bound=Any)


#: Fields of these methods that may change when training continues.
ADJUSTABLE = frozenset({"eta0", "backoff", "max_iter", "average_fraction", "shuffle"})


@dataclass(frozen=True)
class TangentMethod(Method[S]):
    """Training from the tangent planes at the k-means centres of each class, with step sizes that decrease to 0."""

    n_planes: int | tuple[int, ...] | None = None  # of each class, the same for all or class by class; None: chosen
    scale: float = 2.5
    eta0: float | None = None  # None: chosen with the number of planes, or the usual one
    backoff: int = 31
    max_iter: int = 60
    average_fraction: float = 0.2  # the last part of the passes, whose planes are averaged
    shuffle: bool = True

    @property
    def step_size(self) -> float:
        """The initial step size."""
        return USUAL_STEP if self.eta0 is None else self.eta0

    @property
    @abstractmethod
    def trial(self) -> Any:
        """The method for comparing numbers of planes."""

    def products(self, state: S) -> AbstractContextManager[Any]:
        """Set the number of threads of the matrix products of training."""
        return nullcontext()

    @abstractmethod
    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> S:
        """The state before the first step, from given planes."""

    def start(self, data: Data, seed: int) -> S:
        """The state before the first step."""
        with within_device_memory("Train on fewer rows at a time with partial_fit."):
            n_planes = self._planes_per_class(data)
            scaling = AffineScaling.common(data.X, data.training_weight)
            tangents = tangent_start(data, n_planes, scaling, self.scale, seed)
            return self.begin(tangents, scaling, seed)

    def _planes_per_class(self, data: Data) -> np.ndarray:
        assert self.n_planes is not None, "the number of planes is chosen before training"
        if isinstance(self.n_planes, tuple):
            return np.array(self.n_planes)
        n_rows = data.class_counts
        if (n_rows < self.n_planes).any() and not data.stream:
            few = int(n_rows.argmin())
            warnings.warn(
                f"n_planes={self.n_planes} is more than the {n_rows[few]} rows of class {few} (counted from 0 in the "
                "order of the labels); such a class gets one plane per row.",
                UserWarning,
                stacklevel=8,
            )
        return np.clip(n_rows, 1, self.n_planes)

    def metrics(self, state: S) -> Mapping[str, float]:
        """The mean loss over the visits of the last epoch, the number of planes, and the fraction of updates missed."""
        return {"loss": state.loss, "planes": state.n_planes, "missed": state.missed}

    def done(self, state: S) -> float:
        """The loss."""
        return state.loss


# The number of planes, the size of the steps, and the trust in labels.

#: Minimum number of rows of a class per plane of a tangent start.
ROWS_PER_PLANE = 4
#: Numbers of planes per class to try; the last candidate is the maximum that the rows allow, up to 64, or 192 in total.
N_PLANES_TRIED = (1, 2, 4, 16)
#: The usual step size, and that of the comparison of numbers of planes. Small steps fit noise in the labels less. (4 by
#: 4 board, 2,000 rows of which 40 % have random labels: 17 % error, with smaller steps 11 %.)
USUAL_STEP, SMALL_STEP = 0.3, 0.1
#: A part of random labels, which is tried with the best number of planes. (The same board: 9 % error instead of 11.)
NOISE_TRIED = 0.3
#: The step size and the number of passes of a trial. Fewer passes have the effect of smaller steps: 20 passes with
#: steps of 0.3 give the same error as 60 passes with steps of 0.1, with clean and with noisy labels.
TRIALS = {USUAL_STEP: (0.3, 60), SMALL_STEP: (0.3, 20), 0.03: (0.1, 20), 0.01: (0.1, 7)}
#: Maximum number of passes of a trial if there are more features than rows.
LEAST_PASSES = 7
#: Labels are clean, and usual steps are right, if the loss of the best number of planes is lower than this.
CLEAN = 0.2
#: On a sample, numbers of planes are alike if their losses differ by at most this many standard errors.
ALIKE = 0.5
#: Passes of k-means for the start of a trial.
TRIAL_PASSES = 3
#: Up to so many rows, three of four quarters are held out in turn. With more rows, candidates are compared on growing
#: samples that share the held-out rows: the first of so many rows, each next one four times as large, the last of so
#: many rows or a quarter of all. Steps are compared on the first sample of at least so many rows.
QUARTERS, FEW = 3, 2000
FIRST_SAMPLE, STEPS_SAMPLE, LAST_SAMPLE, GROWTH, MOST_HELD_OUT = 1500, 10_000, 12_000, 4, 4000
#: If the labels are clean, a sample of this part of the rows is enough.
ENOUGH = 1 / 16
#: A candidate worse than the best by this many standard errors is not tried on the next quarter or sample.
OUT_OF_THE_RACE = 2.0
#: More than one plane is chosen only if a single one is worse by this many standard errors.
WORSE = 1.5
#: Labels are doubted only if trust is worse by this many standard errors.
WORSE_TRUSTING = 0.5
#: On a sample, four times as many planes are tried if the most planes are best, up to this number and this number of
#: rows per plane, as long as the loss falls.
MOST_PLANES, ROWS_PER_TRIED = 512, 8


class PlanesAndSteps(NamedTuple):
    """What is chosen: the number of planes per class, the initial step size, and the part of random labels."""

    n_planes: int
    eta0: float
    label_noise: float = 0.0


class TrialRows:
    """Rows to train candidates on, and rows to evaluate them on."""

    def __init__(self, method: Any, data: Data, training: np.ndarray, held_out: np.ndarray, seed: int) -> None:
        n_rows, n_features = len(training), data.X.shape[1]
        self.trial, self._most_passes = method.trial, TRIALS[USUAL_STEP][1] if n_features <= n_rows else LEAST_PASSES
        self.rows = replace(data, train=training, stream=False, memory=DrawnEpochs())
        self.held_out, self.seed = held_out, seed
        self.scaling = AffineScaling.common(data.X, data.training_weight)
        self._starts: dict[int, Tangents] = {}  # by number of planes

    def _method(self, own: PlanesAndSteps) -> Any:
        """The method of a trial."""
        eta0, passes = TRIALS[own.eta0]
        method = replace(self.trial, eta0=eta0, max_iter=min(passes, self._most_passes))
        return replace(method, label_noise=own.label_noise) if hasattr(method, "label_noise") else method

    def losses(self, candidates: Sequence[PlanesAndSteps]) -> list[np.ndarray]:
        """Train candidates and return the losses of the held-out rows."""
        if is_foreign(self.rows.X) and hasattr(self.trial, "noise"):
            found = self._stacked(candidates)
        else:
            found = [self._planes(own) for own in candidates]
        return [_calibrated_losses(planes, self.rows, self.held_out) for planes in found]

    def _planes(self, own: PlanesAndSteps) -> PlaneSet:
        method, n_planes, rows = self._method(own), own.n_planes, self.rows
        if n_planes not in self._starts:
            limit = _limit(rows, n_planes)
            self._starts[n_planes] = tangent_start(rows, limit, self.scaling, method.scale, self.seed, TRIAL_PASSES)
        state = method.begin(self._starts[n_planes], self.scaling, self.seed)
        with method.products(state):
            run = Run(method, state, tracked=False).go(repeat(rows, method.max_iter))
        return method.planes(run.state)  # type: ignore[no-any-return]

    def _stacked(self, candidates: Sequence[PlanesAndSteps]) -> list[PlaneSet]:
        """The planes of each candidate, trained as a stack on a device."""
        from polyplane.learners.many import Job, train_stacked

        own, rows, sample = np.arange(len(self.rows.train)), self.rows.train, self.rows
        data = replace(sample, X=take_rows(sample.X, rows), y=sample.y[rows], weight=sample.weight[rows], train=own)
        limits = [tuple(_limit(data, each.n_planes).tolist()) for each in candidates]
        methods = [replace(self._method(each), n_planes=n) for each, n in zip(candidates, limits, strict=True)]
        found = train_stacked(data, [Job(method, self.seed, own) for method in methods])
        return [planes.to(data.X) for planes in found]


def choose_n_planes(method: Any, data: Data, seed: Any) -> Choice:
    """Choose the number of planes of each class of a `TangentMethod` or a committee of it, if it is not given.

    With it, the step size and the part of the labels that is taken for random are chosen, if the step size is not
    given. Overlapping classes need one plane each, and more planes overfit; a checkerboard needs dozens, and a few are
    no better than one. Therefore all levels are tried, in short trials, and a single plane is preferred if it is nearly
    as good. Other steps are then compared with the best number, unless nearly all held-out rows are right.
    """
    if hasattr(method, "member"):
        choice = choose_n_planes(method.member, data, seed[0])
        return choice._replace(method=replace(method, member=choice.method))
    if method.n_planes is not None:
        return Choice(method)
    with within_device_memory("Train on fewer rows at a time with partial_fit."):
        rungs, is_sample = _rungs(method, data, seed)
        most = min(max(64, 192 // data.n_classes), most_planes(data))
        first = int(_limit(data, most).max())
        levels = [*(level for level in N_PLANES_TRIED if level < first), first]
        left = [PlanesAndSteps(level, SMALL_STEP) for level in levels]
        best = fitted = PlanesAndSteps(levels[-1], USUAL_STEP)
        race = Race[PlanesAndSteps](lambda candidates, rung: rung.losses(candidates))
        deciding = next((rung for rung in rungs if len(rung.rows.train) >= STEPS_SAMPLE), rungs[-1])
        for number, rung in enumerate(rungs if len(left) > 1 else []):
            compared = [rung] if is_sample else rungs[: number + 1]
            race.run(left, [rung])
            if is_sample:
                left += _more_planes(race, left, [rung], min(most_planes(data), MOST_PLANES))
            best = race.best(left, compared)
            if best.n_planes > 1:
                if is_sample:  # all rows need at least as many as their sample
                    best = max(race.near_best(left, ALIKE, compared))
                if method.eta0 is None and (not is_sample or rung is deciding):
                    fitted = _best_steps(race, best, compared, first)
                else:
                    fitted = fitted._replace(n_planes=best.n_planes)
            rivals = [each for each in (*left, fitted) if (rung, each) in race.trials]
            near = race.near_best(rivals, WORSE, compared)
            best = next((each for each in near if each.n_planes == 1), fitted)
            left = race.near_best(left, OUT_OF_THE_RACE, compared)
            if is_sample:
                is_clean = np.mean(race.losses(race.best(rivals, compared), compared)) < CLEAN
                if is_clean and len(rung.rows.train) >= max(FIRST_SAMPLE + 1, ENOUGH * len(data.train)):
                    break
            elif len(left) == 1:
                break
    n_planes = _limit(data, best.n_planes)
    settings: dict[str, float] = {"n_planes": float(n_planes.max())}
    chosen = replace(method, n_planes=tuple(n_planes.tolist()))
    if method.eta0 is None:
        best = best if best.n_planes > 1 else PlanesAndSteps(1, USUAL_STEP)
        own = {"eta0": best.eta0, "label_noise": best.label_noise}
        settings, chosen = settings | own, replace(chosen, **own)
    return Choice(chosen, settings, race.table(lambda own: {name: getattr(own, name) for name in settings}))


def _rungs(method: Any, data: Data, seed: int) -> tuple[list[TrialRows], bool]:
    """Return the rungs of the race, quarters of few rows or growing samples of many, and whether they are samples."""
    rows = np.random.default_rng(seed).permutation(data.train)
    if len(rows) > FEW:
        n_held_out = min(len(rows) // 4, MOST_HELD_OUT)
        held_out, rest = np.sort(rows[:n_held_out]), rows[n_held_out:]
        sizes, last = [FIRST_SAMPLE], min(len(rest), max(LAST_SAMPLE, len(rows) // 4))
        while sizes[-1] < last:
            sizes.append(min(GROWTH * sizes[-1], last))
        sizes = [size for size in sizes if 2 * size <= last] + [last]
        return [TrialRows(method, data, np.sort(rest[:size]), held_out, seed) for size in sizes], True
    rows = rows[np.argsort(data.y[rows], kind="stable")]  # so that quarters are stratified by class
    quarters = [rows[q::4] for q in range(QUARTERS)]
    return [TrialRows(method, data, np.setdiff1d(rows, own), own, seed) for own in quarters], False


def _more_planes(
    race: Race[PlanesAndSteps], tried: list[PlanesAndSteps], rungs: list[TrialRows], most: int
) -> list[PlanesAndSteps]:
    """Compare four times as many planes where the most planes are best, as long as that is better."""
    new: list[PlanesAndSteps] = []
    rows = rungs[0].rows
    best, most = race.best(tried, rungs), min(most, len(rows.train) // (ROWS_PER_TRIED * rows.n_classes))
    while best.n_planes >= max(own.n_planes for own in tried) and 4 * best.n_planes <= most:
        new += race.run([best._replace(n_planes=4 * best.n_planes)], rungs)
        if race.best([best, new[-1]], rungs) is best:
            break
        best = new[-1]
    return new


def _best_steps(race: Race[PlanesAndSteps], best: PlanesAndSteps, rungs: list[TrialRows], most: int) -> PlanesAndSteps:
    """Compare other steps, less trust in the labels, and more planes with those, unless the labels are clean."""
    usual = best._replace(eta0=USUAL_STEP)
    if np.mean(race.losses(best, rungs)) < CLEAN:
        return usual
    found = race.run([usual, best], rungs)
    while race.best(found, rungs) is found[-1] and found[-1].eta0 > min(TRIALS):
        found += race.run([best._replace(eta0=max(eta0 for eta0 in TRIALS if eta0 < found[-1].eta0))], rungs)
    trusting = race.best(found, rungs)
    doubting = trusting._replace(label_noise=NOISE_TRIED)
    race.run([doubting], rungs)
    chosen = trusting
    if excess(race.losses(trusting, rungs), race.losses(doubting, rungs)) > WORSE_TRUSTING:
        chosen = race.best(race.run(dict.fromkeys([doubting, doubting._replace(eta0=USUAL_STEP)]), rungs), rungs)
    return race.best([chosen, *(_more_planes(race, [chosen], rungs, most) if chosen.eta0 < USUAL_STEP else [])], rungs)


def _limit(data: Data, n_planes: int) -> np.ndarray:
    """Planes of each class, at most `n_planes`: classes of few rows get fewer."""
    return np.clip(data.class_counts // ROWS_PER_PLANE, 1, n_planes)


def _calibrated_losses(planes: Any, data: Data, rows: np.ndarray) -> np.ndarray:
    """The loss of each row: its error, 0 or 1, plus its Brier score.

    The error is the quantity of interest, and Brier scores are more precise on few rows; log-losses are dominated by a
    few rows. After short training, scores are too large or too small, which longer training corrects. Scores are
    therefore multiplied by the factor with the lowest log-loss, which is convex in this factor.
    """
    scores = planes.class_scores(take_rows(data.X, rows))
    xp, scores = namespace(scores), astype(scores, widest_float(scores))
    scores -= xp.max(scores, axis=1, keepdims=True)
    scores /= max(-float(xp.mean(scores)), 1e-300)
    y, weight = data.y[rows], data.weight[rows] / data.weight[rows].mean()
    index, counted = like(np.arange(len(rows)) * data.n_classes + y, scores), like(weight, scores, scores.dtype)
    own = take_rows(xp.reshape(scores, (-1,)), index)
    power, step = 0.0, 4.0
    for _ in range(9):
        probability = xp.exp(2.0**power * scores)
        probability /= xp.sum(probability, axis=1, keepdims=True)
        slope = counted @ (xp.sum(probability * scores, axis=1) - own)
        power, step = power - xp.sign(slope) * step, step / 2
    brier = xp.sum(probability**2, axis=1) - 2 * take_rows(xp.reshape(probability, (-1,)), index) + 1
    wrong = to_numpy(xp.argmax(scores, axis=1)) != y
    return np.asarray(weight * (wrong + to_numpy(brier)))
