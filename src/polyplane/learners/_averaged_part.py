"""Averaging of the planes in training with the steps 1 / (alpha t)."""

from __future__ import annotations

from typing import NamedTuple

from scipy import sparse

from polyplane.engine.data import Data
from polyplane.learners.multi_hyperplane import CHECKS_PER_EPOCH
from polyplane.learners.tangents import Schedule

#: In a stream, planes are averaged once per this many dense rows of a batch.
ROWS_PER_CHECK = 64


class AveragedPart(NamedTuple):
    """The visits of a pass after which planes are averaged: the last fraction of the visits of a fit; in a stream, all.

    In a stream, the weight of the state after visit t of T is about ``(t / T) ** (1 / fraction - 1)``, so that the last
    `fraction` of the visits dominates the average (polynomial-decay averaging, Shamir and Zhang, 2013).
    """

    first: int  # visits before averaging starts
    interval: int  # visits between two averaged states
    fraction: float
    schedule: Schedule

    @classmethod
    def of(cls, fraction: float, schedule: Schedule, data: Data, n_rows: int) -> AveragedPart:
        """The part of the next pass; unless `fraction` is 0, the last visit of a fit is always averaged."""
        if fraction == 0:
            return cls(n_rows, n_rows, fraction, schedule)
        if schedule.stream:
            # Averaging must not take longer than training: batches may be small, and sparse rows have few features.
            stored = data.X.nnz if sparse.issparse(data.X) else data.X.size
            checks = min(CHECKS_PER_EPOCH, max(1, stored // data.X.shape[1] // ROWS_PER_CHECK))
            return cls(0, -(-n_rows // checks), fraction, schedule)
        total = schedule.passes * n_rows
        begin = min(int((1.0 - fraction) * schedule.passes * n_rows), total - 1)
        first = min(max(begin - schedule.done * n_rows, 0), n_rows)
        return cls(first, -(-min(n_rows, total - begin) // CHECKS_PER_EPOCH), fraction, schedule)

    @property
    def settled(self) -> bool:
        """Whether the whole pass of a fit is averaged."""
        return self.first == 0 and not self.schedule.stream

    def pause(self, done: int) -> int:
        """Visits until averaging starts, or until the next averaged state."""
        return self.first - done if done < self.first else self.interval

    def window(self, t: int) -> int:
        """Maximum number of states in the average after `t` visits."""
        if not self.schedule.stream:
            return self.schedule.window
        return max(1, min(self.schedule.window, int(self.fraction * t / self.interval)))
