"""Which planes of a training by steps 1 / (alpha t) are averaged."""

from __future__ import annotations

from typing import NamedTuple

from scipy import sparse

from polyplane.engine.data import Data
from polyplane.learners._epochs import Schedule
from polyplane.learners._margin_loss import CHECKS_PER_EPOCH

#: In a stream, the number of full rows for which it is worth while to average once more in a batch.
ROWS_PER_CHECK = 64


class AveragedPart(NamedTuple):
    """The visits of a pass in which planes are averaged: the last part of all visits of a fit, or in a stream all.

    The average of a stream gives the state after visit t about the weight ``(t / T) ** (1 / fraction - 1)``: the larger
    part of it is the last `fraction` of the visits so far (polynomial-decay averaging, Shamir and Zhang, 2013).
    """

    first: int  # visits before the part begins
    interval: int  # visits between two states that are averaged
    fraction: float
    schedule: Schedule

    @classmethod
    def of(cls, fraction: float, schedule: Schedule, data: Data, n_rows: int) -> AveragedPart:
        """The part of the next pass; it has at least the last visit of a fit, whatever the fraction above 0."""
        if fraction == 0:
            return cls(n_rows, n_rows, fraction, schedule)
        if schedule.stream:
            # Averaging is not to take longer than training: batches may be small, and sparse rows have few features.
            stored = data.X.nnz if sparse.issparse(data.X) else data.X.size
            checks = min(CHECKS_PER_EPOCH, max(1, stored // data.X.shape[1] // ROWS_PER_CHECK))
            return cls(0, -(-n_rows // checks), fraction, schedule)
        total = schedule.passes * n_rows
        begin = min(int((1.0 - fraction) * schedule.passes * n_rows), total - 1)
        first = min(max(begin - schedule.done * n_rows, 0), n_rows)
        return cls(first, -(-min(n_rows, total - begin) // CHECKS_PER_EPOCH), fraction, schedule)

    @property
    def settled(self) -> bool:
        """Whether the whole pass belongs to the last part of a fit."""
        return self.first == 0 and not self.schedule.stream

    def pause(self, done: int) -> int:
        """Visits until the part begins, or until the next state that is averaged."""
        return self.first - done if done < self.first else self.interval

    def window(self, t: int) -> int:
        """The most states that the average looks back on after `t` visits."""
        if not self.schedule.stream:
            return self.schedule.window
        return max(1, min(self.schedule.window, int(self.fraction * t / self.interval)))
