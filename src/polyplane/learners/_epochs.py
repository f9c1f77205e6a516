"""What passes over the rows have in common: steps that fall, rows that are skipped, randomness, averages."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane._array_api import at_most, host_dtype, kind_of, like, namespace, put, take_rows
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array
from polyplane.engine.state import RowMemory

#: Rows visited one after the other that share a window of the noise, a row of noise each where they are not wide.
WINDOW = 256
#: Of wide rows, several share a row of noise: a window has as many numbers as this, but no fewer rows than that. Fresh
#: noise for each would cost more than the matrix products, and its effect on sparse rows, which it must not make dense,
#: more than all else.
WINDOW_NUMBERS, LEAST_NOISE_ROWS = 1 << 15, 32
#: Windows of noise to choose from in an epoch.
WINDOWS = 8

_CLOCK = Array("uint8", "rows")


class Schedule(NamedTuple):
    """Steps that fall linearly to 0 over a number of passes, and again; in a stream to a third, where they stay."""

    passes: int
    done: int  # of these
    stream: bool

    @classmethod
    def of(cls, passes: int, state: Any, data: Data) -> Schedule:
        """The schedule of a state after `epoch` passes, `turn` of them by the current schedule."""
        return cls(passes, state.epoch if data.stream else state.turn % passes, data.stream)

    def rate(self, fraction: float) -> float:
        """Length of a step relative to the first, when a `fraction` of the next pass is done."""
        return max(1.0 - (self.done + fraction) / self.passes, 1 / 3 if self.stream else 0.0)

    def averages(self, fraction: float, last: float) -> bool:
        """Whether the planes then belong to the part `last` of the passes, which is averaged."""
        return last > 0 and self.done + fraction >= (1.0 - last) * self.passes

    @property
    def window(self) -> int:
        """The most states that an average looks back on: all of them, or in a stream about the last thirty."""
        return 30 if self.stream else 1 << 62

    @property
    def next_turn(self) -> int:
        """Passes made by the schedule after the next one; 0 when it is over. A stream follows none."""
        return 0 if self.stream else (self.done + 1) % self.passes


def update_mean(mean: Any, new: Any, n: Any) -> None:
    """Let `new` be the `n`-th array in a mean, in place."""
    mean += (new - mean) / n


@dataclass(frozen=True, eq=False)
class BackoffState(RowMemory):
    """How many visits of each row are still to be passed over, and how many next time."""

    skip: Annotated[Any, _CLOCK]
    patience: Annotated[Any, _CLOCK]

    @classmethod
    def fresh(cls, data: Data) -> BackoffState:
        """No row is skipped; noted where the rows are."""
        kind = kind_of(data.X)
        return cls(*(like(np.zeros(len(data.y), dtype=np.uint8), kind) for _ in range(2)))

    def visited(self, order: Any) -> Any:
        """The rows of `order` to visit in this epoch; the others have waited for one more."""
        skip = take_rows(self.skip, order)
        skipped = skip > 0
        put(self.skip, order[skipped], skip[skipped] - 1)
        return order[~skipped]

    def note(self, rows: Any, is_ample: Any, longest: int) -> None:
        """Skip visited rows whose margin is ample for 1, 3, 7, ... epochs: `kernels.backoff`, for many rows at once."""
        half = at_most(take_rows(self.patience, rows), longest // 2)  # so that no uint8 overflows
        patience = namespace(rows).where(is_ample, at_most(2 * half + 1, longest), 0 * half)
        put(self.patience, rows, patience)
        put(self.skip, rows, patience)


class EpochRandomness(NamedTuple):
    """The random numbers of an epoch, drawn on the host: the same for all devices."""

    order: np.ndarray
    noise: np.ndarray | None = None  # rows of variance 1
    noise_rows: np.ndarray | None = None  # which of them the visited rows get, in their order


class EpochSampler:
    """Labels and weights where the rows are, and the order and the noise of each epoch."""

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
        """The randomness of an epoch, perhaps drawn ahead; where there is to be one more, that is drawn ahead."""
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
