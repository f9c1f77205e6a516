"""The values that the columns of one row may change to, and what each change costs and does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from polyplane.geometry._table_effects import Cells, ColumnEffect
from polyplane.tables._columns import CategoryColumn, Column, DateColumn

#: A range of numbers that is this share of the spread wide is a single value; numbers are given to about this share.
FINEST, READABLE = 1e-4, 1e-3
#: A range of at most so many times as many whole numbers as it would get parts is split into single values.
FEW = 4
#: Between levels that cost the same, the more frequent is preferred: by so much it is cheaper.
PREFERENCE = 1e-6


class Limits(NamedTuple):
    """What a column may change to, and in which directions."""

    low: float
    high: float
    may_fall: bool = True
    may_rise: bool = True


class Changes(NamedTuple):
    """Changes of single columns: each is a range of values, and has the value of the range that costs least.

    Parameters
    ----------
    column : ndarray of shape (n_changes,)
        The column; -1 for no change.
    low, high : ndarray of shape (n_changes,)
        The ends of the range.
    cost : ndarray of shape (n_changes,)
        What the cheapest value costs, or less.
    value : ndarray of shape (n_changes,)
        The cheapest value; NaN where that would be no change.
    near : ndarray of shape (n_changes, n_planes)
        What the cheapest value adds to the scores of the row.
    least, most : ndarray of shape (n_changes, n_planes)
        Bounds of what any value adds.
    """

    column: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cost: np.ndarray
    value: np.ndarray
    near: np.ndarray
    least: np.ndarray
    most: np.ndarray

    def take(self, chosen: np.ndarray) -> Changes:
        """Some of them."""
        return Changes(*(array[chosen] for array in self))

    @classmethod
    def join(cls, several: Sequence[Changes]) -> Self:
        """All of several."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*several, strict=True)))

    @classmethod
    def none(cls, n_planes: int) -> Self:
        """The change of no column."""
        zero, nothing = np.zeros(1), np.zeros((1, n_planes))
        return cls(np.array([-1]), zero, zero, zero, zero, nothing, nothing, nothing)

    @property
    def is_point(self) -> np.ndarray:
        """Which are single values."""
        return self.low == self.high


def value_of(column: Column, features: np.ndarray) -> float:
    """The value of a column from its features, as a number; a level as its place; NaN for a missing one."""
    if column.has_gaps and features[-1] > 0:
        return np.nan
    if isinstance(column, CategoryColumn):
        return float(features.argmax()) if features.any() else np.nan
    return float(features[0])


class RowColumn(ABC):
    """One column of a row: where it is, and where it may go.

    Parameters
    ----------
    position : int
        Which of the columns it is.
    effect : ColumnEffect
        What its values do.
    features : ndarray
        Its features in the row.
    """

    def __init__(self, position: int, effect: ColumnEffect, features: np.ndarray) -> None:
        self.position, self.effect = position, effect
        self.value = value_of(effect.column, features)
        self.spread = 1.0
        self._features = features

    @abstractmethod
    def changes(self) -> Changes:
        """All changes, in ranges."""

    @abstractmethod
    def cost_of(self, value: float) -> float:
        """What the change to a value costs."""

    @abstractmethod
    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """The same changes of this column in smaller ranges, and which of the changes each is a part of."""

    def rounded(self, value: float) -> float:
        """A value that costs hardly more, and has few digits."""
        return value

    def added(self, value: float) -> np.ndarray:
        """What the change to a value adds to the scores."""
        return self.effect.scores_of(self.effect.encode(np.array([value]))[0]) - self._own

    def _made(self, cells: Cells, cost: np.ndarray, value: np.ndarray, near: np.ndarray) -> Changes:
        own, position = self._own, np.full(len(cost), self.position)
        return Changes(position, cells.low, cells.high, cost, value, near - own, cells.least - own, cells.most - own)

    @cached_property
    def _own(self) -> np.ndarray:
        """What the value of the row adds to the scores."""
        return self.effect.scores_of(self._features)


class SwitchingColumn(RowColumn):
    """A category that may become another of its levels, or a boolean."""

    def changes(self) -> Changes:
        """All other levels."""
        cells = self.effect.levels
        return self._made(cells, self._costs, cells.low, cells.at_low).take(cells.low != self.value)

    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """Levels are single values."""
        return changes, np.arange(len(changes.cost))

    def cost_of(self, value: float) -> float:
        """1, and a little more for levels that are less frequent."""
        return float(self._costs[int(value)])

    @cached_property
    def _costs(self) -> np.ndarray:
        column = self.effect.column
        if not isinstance(column, CategoryColumn):
            return np.ones(2)
        counts = np.array(column.counts[: len(column.levels)])
        return 1.0 + PREFERENCE * (1.0 - counts / max(counts.sum(), 1))


class MovingColumn(RowColumn):
    """A number or a date that may rise and fall within limits; a date keeps its time of the day."""

    def __init__(
        self, position: int, effect: ColumnEffect, features: np.ndarray, spread: float, limits: Limits
    ) -> None:
        super().__init__(position, effect, features)
        self.spread, self.limits = spread, limits
        self._offset = self.value % 1.0 if isinstance(effect.column, DateColumn) else 0.0

    def changes(self) -> Changes:
        """All other values, in ranges between the knots of the preparations."""
        low, high = self.limits.low, self.limits.high
        if self.effect.is_whole:
            low, high = self._up(low), self._down(high)
        empty = np.empty(0)
        changes = self._changes(self.effect.table(low, high) if low <= high else self.effect.cells(empty, empty))
        return changes.take(self._is_allowed(changes.low, changes.high))

    def cost_of(self, value: float) -> float:
        """The distance in units of the spread."""
        return abs(value - self.value) / self.spread

    def rounded(self, value: float) -> float:
        """A value of few digits a little farther from that of the row, within the limits; or the same."""
        if self.effect.is_whole:
            return value
        digits = -int(np.floor(np.log10(READABLE * self.spread)))
        steps = value * 10.0**digits
        away = round(float(np.ceil(steps) if value > self.value else np.floor(steps)) / 10.0**digits, digits)
        return away if self.limits.low <= away <= self.limits.high else value

    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """The same changes of this column in smaller ranges, and which of the changes each is a part of."""
        ranges = zip(changes.low.tolist(), changes.high.tolist(), strict=True)
        ends = [self._parts(low, high, n_parts) for low, high in ranges]
        low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
        allowed = self._is_allowed(low, high)
        origin = np.repeat(np.arange(len(ends)), [len(starts) for starts, _ in ends])
        return self._changes(self.effect.cells(low[allowed], high[allowed])), origin[allowed]

    def _is_allowed(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Which ranges hold values where the column may go."""
        return (self.limits.may_fall & (low < self.value)) | (self.limits.may_rise & (high > self.value))

    def _changes(self, cells: Cells) -> Changes:
        """Ranges as changes."""
        below, above = cells.high < self.value, cells.low > self.value
        cheapest = np.where(below, cells.high, np.where(above, cells.low, np.nan))
        near = np.where(below[:, None], cells.at_high, cells.at_low)
        cost = np.nan_to_num(np.abs(cheapest - self.value)) / self.spread
        return self._made(cells, cost, cheapest, near)

    def _parts(self, low: float, high: float, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the parts of a range, which is cut at the value of the row where it holds that."""
        if not low < self.value < high:
            return self._even(low, high, n_parts)
        down = up = self.value
        if self.effect.is_whole:
            down, up = self._up(self.value - 1.0), self._down(self.value + 1.0)
        sides = self._even(low, down, n_parts), self._even(up, high, n_parts)
        return np.concatenate([sides[0][0], sides[1][0]]), np.concatenate([sides[0][1], sides[1][1]])

    def _even(self, low: float, high: float, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """A range in parts of about the same size."""
        if self.effect.is_whole:
            size = high - low + 1.0
            is_few = size <= FEW * n_parts
            starts = np.arange(low, high + 0.5) if is_few else low + np.floor(np.arange(n_parts) * (size / n_parts))
            return starts, np.append(starts[1:] - 1.0, high)
        if high - low <= FINEST * self.spread:
            far = np.array([high if low >= self.value else low])
            return far, far
        knots = np.linspace(low, high, n_parts + 1)
        return knots[:-1], knots[1:]

    def _up(self, value: float) -> float:
        return float(np.ceil(value - self._offset)) + self._offset

    def _down(self, value: float) -> float:
        return float(np.floor(value - self._offset)) + self._offset
