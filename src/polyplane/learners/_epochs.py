"""Passes over the rows: decreasing steps, skipped rows, random orders, noise and averages."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane._array_api import at_most, host_dtype, kind_of, like, namespace, put, take_rows
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array
from polyplane.engine.state import RowMemory

#: Number of consecutive rows that share a window of the noise; unless they have many features, each has its own row.
WINDOW = 256
#: Size of a window in numbers, and minimum size in rows: rows with many features share rows of noise. New noise for
#: each row would cost more than the matrix products, and even more for sparse rows, which must stay sparse.
WINDOW_NUMBERS, LEAST_NOISE_ROWS = 1 << 15, 32
#: Windows of noise per epoch.
WINDOWS = 8

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


@dataclass(frozen=True, eq=False)
class BackoffState(RowMemory):
    """For each row, the number of visits still to skip, and the number to skip next time."""

    skip: Annotated[Any, _CLOCK]
    patience: Annotated[Any, _CLOCK]

    @classmethod
    def fresh(cls, data: Data) -> BackoffState:
        """The state in which no row is skipped, on the device of the rows."""
        kind = kind_of(data.X)
        return cls(*(like(np.zeros(len(data.y), dtype=np.uint8), kind) for _ in range(2)))

    def visited(self, order: Any) -> Any:
        """Return the rows of `order` to visit in this epoch, and count one skipped visit for the others."""
        skip = take_rows(self.skip, order)
        skipped = skip > 0
        put(self.skip, order[skipped], skip[skipped] - 1)
        return order[~skipped]

    def note(self, rows: Any, is_ample: Any, longest: int) -> None:
        """Skip visited rows with a sufficient margin for 1, 3, 7, ... epochs: `kernels.backoff` for arrays of rows."""
        half = at_most(take_rows(self.patience, rows), longest // 2)  # so that no uint8 overflows
        patience = namespace(rows).where(is_ample, at_most(2 * half + 1, longest), 0 * half)
        put(self.patience, rows, patience)
        put(self.skip, rows, patience)


class EpochRandomness(NamedTuple):
    """The random numbers of an epoch, drawn on the host, so that they do not depend on the device."""

    order: np.ndarray
    noise: np.ndarray | None = None  # noise of variance 1
    noise_rows: np.ndarray | None = None  # the row of the noise for each visited row, in the order of the visits


class EpochSampler:
    """Labels and weights on the device of the rows, and the order and the noise of each epoch."""

    def __init__(self, data: Data, shuffle: bool, noise: bool) -> None:
        kind = kind_of(data.X)
        self.y, self.weight = like(data.y, kind), like(data.weight, kind)
        self.total_weight = float(data.weight[data.train].sum())
        self._train, self._shuffle = data.train, shuffle
        n_rows, n_features = len(data.train), data.X.shape[1]
        self._n_features = n_features
        self._window = min(n_rows, max(LEAST_NOISE_ROWS, min(WINDOW, WINDOW_NUMBERS // n_features)))
        self._noise_shape = (self._window * min(-(-n_rows // WINDOW), WINDOWS), n_features) if noise else None
        self._dtype = host_dtype(kind)
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
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(self._train) if self._shuffle else self._train
        return EpochRandomness(order) if self._noise_shape is None else self._draw_noise(rng, order)

    def _draw_noise(self, rng: np.random.Generator, order: np.ndarray) -> EpochRandomness:
        noise = rng.standard_normal(self._noise_shape, dtype=self._dtype)
        first = np.repeat(rng.integers(0, len(noise), -(-len(order) // WINDOW)), WINDOW)[: len(order)]
        return EpochRandomness(order, noise, (first + np.arange(len(order)) % self._window) % len(noise))
