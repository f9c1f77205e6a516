"""The error of a model on some rows, and how far it can be trusted."""

from __future__ import annotations

from typing import NamedTuple

#: Two-sided 95 % of a normal distribution.
_Z = 1.959964


class Error(NamedTuple):
    """Wrong rows of all rows."""

    n_wrong: int
    n_rows: int

    @property
    def percent(self) -> float:
        """The share of wrong rows, in per cent."""
        return 100 * self.n_wrong / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of Wilson (1927) for it, in per cent."""
        share, spread = self.n_wrong / self.n_rows, _Z**2 / self.n_rows
        middle = (share + spread / 2) / (1 + spread)
        half = (spread * (share * (1 - share) + spread / 4)) ** 0.5 / (1 + spread)
        return max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half))

    @property
    def interval_name(self) -> str:
        """What a reader calls it."""
        return "95 % interval"

    @property
    def shown_interval(self) -> str:
        """The interval for a reader."""
        low, high = self.interval
        return f"{low:.4g} to {high:.4g}"

    def __str__(self) -> str:
        return f"{self.percent:.4g} ({self.interval_name} {self.shown_interval})"
