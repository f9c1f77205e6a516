"""How the steps of the multi-hyperplane machines fall."""

from __future__ import annotations

from typing import NamedTuple


class Schedule(NamedTuple):
    """Steps that fall linearly to 0 over a number of passes, and again; in a stream to a third, where they stay."""

    passes: int
    stream: bool

    def rate(self, epoch: int, fraction: float) -> float:
        """Length of a step relative to the first, when a `fraction` of the pass number `epoch` is done."""
        return max(1.0 - (self._turn(epoch) + fraction) / self.passes, 1 / 3 if self.stream else 0.0)

    def averages(self, epoch: int, fraction: float, tail: float) -> bool:
        """Whether the planes then belong to the last part, `tail`, which is averaged."""
        return tail > 0 and self._turn(epoch) + fraction >= (1.0 - tail) * self.passes

    @property
    def window(self) -> int:
        """The most states that an average looks back on: all of them, or in a stream about the last thirty."""
        return 30 if self.stream else 1 << 62

    def _turn(self, epoch: int) -> int:
        return epoch if self.stream else epoch % self.passes
