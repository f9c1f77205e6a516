"""Passes over dense rows on the host, by the planes in contention for each row; see `polyplane.kernels.log_loss`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from polyplane.engine.data import Data
from polyplane.learners._epochs import EpochRandomness, EpochSampler
from polyplane.learners._log_loss import Pass

#: Number of planes in contention for a row. With 32, errors are the same; with 8, some are larger.
CONTENDERS = 16
#: Contenders are updated in the passes 0, 1, 3, 7 and then every this many passes. Without the late updates, training
#: fails for some seeds, because the planes have moved in the meantime.
RENEWED_EVERY = 8
#: Length of the noise of an epoch; each row gets a random slice of it.
NOISE = 1 << 16
#: Multiplications after which the kernel returns to Python, so that Ctrl-C is handled.
MULTIPLICATIONS = 1 << 33


@cache
def _kernels() -> Any:
    """The compiled kernels, imported when they are first used."""
    from polyplane.kernels import log_loss

    return log_loss


def renews(turn: int) -> bool:
    """Whether contenders are updated in pass `turn`."""
    return turn in (0, 1, 3) or turn % RENEWED_EVERY == RENEWED_EVERY - 1


class ContestedRows(EpochSampler):
    """The planes that contend for each row, and the order and the noise of each epoch."""

    def __init__(self, data: Data, shuffle: bool, noise: bool, n_planes: int) -> None:
        super().__init__(data, shuffle, noise)
        self.contenders = np.zeros((len(data.y), min(n_planes, CONTENDERS)), dtype=np.int32)
        self.all_contend = n_planes <= CONTENDERS
        self.is_new = not self.all_contend
        if self.all_contend:
            self.contenders[:] = np.arange(n_planes)

    def is_renewed(self, turn: int, data: Data) -> bool:
        """Whether to update the contenders."""
        return not self.all_contend and (self.is_new or data.stream or renews(turn))

    def _draw_noise(self, rng: np.random.Generator, order: np.ndarray) -> EpochRandomness:
        n_features = self._n_features
        noise = rng.standard_normal(min(len(order) * n_features, NOISE) + n_features, dtype=self._dtype)
        return EpochRandomness(order, noise, rng.integers(0, len(noise) - n_features + 1, len(order)))


@dataclass
class ContestedPass(Pass):
    """One pass over dense rows on the host."""

    contenders: np.ndarray = field(kw_only=True)
    renew: bool = field(kw_only=True)
    _parts: tuple[Any, Any, Any] | None = field(default=None, init=False, repr=False)

    def run(self, inputs: Sequence[Any], size: int, paces: Any, averaged_from: int) -> np.ndarray:
        """Make all steps, `size` rows each; return the probability of each row's class just before it was learned from.

        `inputs` are the indices of the rows to visit and, if there is noise, the start of the noise of each row. Planes
        are averaged from step `averaged_from` on.
        """
        kernels = _kernels()
        rate, shrink, n_averaged = np.array(paces, dtype=float).reshape(-1, 3).T.copy()
        n_averaged[:averaged_from] = 0
        visited, starts = inputs[0], inputs[-1]
        probability = np.empty(len(visited), dtype=self.W.dtype)
        rows, machine, room = self._rows_machine_room(size)
        at_once = max(1, MULTIPLICATIONS // (size * self.W.size))
        for first in range(0, len(paces), at_once):
            steps, part = slice(first, first + at_once), slice(first * size, (first + at_once) * size)
            kernels.train(
                rows, kernels.Visits(visited[part], starts[part], probability[part]), self.contenders, machine,
                kernels.Steps(rate[steps], shrink[steps], n_averaged[steps], size, self.decay, self.epsilon), room,
                self.renew,
            )  # fmt: skip
        return probability

    def _rows_machine_room(self, size: int) -> tuple[Any, Any, Any]:
        """The arguments of the kernel, reused by the next pass."""
        if self._parts is None:
            kernels = _kernels()
            W, nothing = self.W, self.W[:0]
            noise = np.empty(0, dtype=W.dtype) if self.noise is None else self.noise
            mean, anchor = (nothing if array is None else array for array in (self.mean, self.anchor))
            room = kernels.Room(
                gradient=np.zeros((W.shape[0] * W.shape[1], W.shape[2]), dtype=W.dtype),
                inputs=np.empty((size, W.shape[2]), dtype=W.dtype),
                all_scores=np.empty((size if self.renew else 0, W.shape[0] * W.shape[1]), dtype=W.dtype),
                largest=np.empty(W.shape[0] * W.shape[1] // kernels.BLOCK, dtype=W.dtype),
                scores=np.empty(self.contenders.shape[1], dtype=W.dtype),
            )
            rows = kernels.Rows(self.X, self.scaling.centre, self.scaling.factor, self.y, self.weight, noise)
            self._parts = rows, kernels.Machine(W, self.adam.first, self.adam.second, mean, anchor), room
        return self._parts
