"""Which rows are visited when: random orders, and rows that may rest."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import astype, at_most, host_dtype, kind_of, like, namespace, put, take_rows
from polyplane._validation import Data

#: Rows of noise to choose from: fresh noise for each row would cost more than the matrix products.
NOISE_ROWS = 2048


class Rest(NamedTuple):
    """Back-off: how many visits each row is still passed over, and how many next time."""

    skip: Any
    patience: Any

    @classmethod
    def fresh(cls, n_rows: int, kind: Any = np.empty(0)) -> Rest:  # noqa: B008, an array that nobody writes to
        """All rows awake, noted where `kind` is."""
        return cls(*(like(np.zeros(n_rows, dtype=np.uint8), kind) for _ in range(2)))

    def wake(self, order: Any) -> Any:
        """The rows of `order` to look at in this epoch."""
        skip = take_rows(self.skip, order)
        asleep = skip > 0
        put(self.skip, order[asleep], skip[asleep] - 1)
        return order[~asleep]

    def note(self, rows: Any, ample: Any, longest: int) -> None:
        """Look away from rows that are amply right for 1, 3, 7, ... visits."""
        xp = namespace(rows)
        longer = at_most(2 * astype(take_rows(self.patience, rows), xp.int64) + 1, longest)
        patience = astype(xp.where(ample, longer, xp.zeros_like(longer)), xp.uint8)
        put(self.patience, rows, patience)
        put(self.skip, rows, patience)


class Draws(NamedTuple):
    """All that chance decides in an epoch, drawn on the host: the same whatever the device."""

    order: np.ndarray
    noise: np.ndarray | None = None  # NOISE_ROWS rows, of variance 1
    noise_rows: np.ndarray | None = None  # which of them the rows get that are awake, in their order

    @classmethod
    def of(cls, train: np.ndarray, shuffle: bool, noise_shape: tuple[int, Any] | None, seed: list[int]) -> Draws:
        """Those of an epoch: `noise_shape` tells the number of features and the dtype, None that there is no noise."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(train) if shuffle else train
        if noise_shape is None:
            return cls(order)
        noise = rng.standard_normal((NOISE_ROWS, noise_shape[0]), dtype=noise_shape[1])
        return cls(order, noise, rng.integers(0, NOISE_ROWS, len(order)))


class Visits:
    """What is remembered of the rows of one `fit`: labels and weights where the rows are, and which of them rest."""

    def __init__(self, data: Data) -> None:
        kind = kind_of(data.X)
        self.y, self.weight = like(data.y, kind), like(data.weight, kind)
        self.total = float(data.weight[data.train].sum())
        self.rest = Rest.fresh(len(data.y), kind)
        self.dtype = host_dtype(kind)
        self._ahead: tuple[list[int], Future[Draws]] | None = None
        # On a device the host has nothing else to do while an epoch runs: it draws the next one.
        self._helper = None if namespace(kind) is np else ThreadPoolExecutor(1)

    def draws(self, draw: Callable[[list[int]], Draws], seed: list[int], next_seed: list[int] | None) -> Draws:
        """The draws of `seed`, perhaps made ahead; have those of `next_seed` made while these are used."""
        ahead = self._ahead
        draws = ahead[1].result() if ahead is not None and ahead[0] == seed else draw(seed)
        if self._helper is not None and next_seed is not None:
            self._ahead = next_seed, self._helper.submit(draw, next_seed)
        return draws
