"""Possible changes of the columns of a row, with their costs and their effects on the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from polyplane.explain.geometry._table_effects import Cells, ColumnEffect, ModelEffects, remembered
from polyplane.inputs.columns import CategoryColumn, Column

#: Resolution of numbers as a fraction of the spread: a narrower range is treated as a single value.
FINEST, READABLE = 1e-4, 1e-3
#: A range with at most this many integers per part is split into single values.
FEW = 4
#: Number of joined tables that are cached for a model.
MOST_JOINED = 32


class Limits(NamedTuple):
    """Bounds of a column, and the directions in which it may change."""

    low: float
    high: float
    may_fall: bool = True
    may_rise: bool = True


class Changes(NamedTuple):
    """Changes of single columns: each is a range of values, with the value of the lowest cost.

    Parameters
    ----------
    column : ndarray of shape (n_changes,)
        Column; -1 for no change.
    low, high : ndarray of shape (n_changes,)
        Ends of the range.
    cost : ndarray of shape (n_changes,)
        Lower bound of the cost of a value in the range.
    value : ndarray of shape (n_changes,)
        Value of the lowest cost; NaN if this would be no change.
    near : ndarray of shape (n_changes, n_planes)
        Effect of this value on the scores of the row.
    least, most : ndarray of shape (n_changes, n_planes)
        Bounds of the effect of any value in the range.
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
        """Return some of the changes."""
        return Changes(*(array[chosen] for array in self))

    @classmethod
    def join(cls, several: Sequence[Changes]) -> Self:
        """Concatenate changes."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*several, strict=True)))

    @classmethod
    def none(cls, n_planes: int) -> Self:
        """Return the change of no column."""
        zero, nothing = np.zeros(1), np.zeros((1, n_planes))
        return cls(np.array([-1]), zero, zero, zero, zero, nothing, nothing, nothing)

    @property
    def is_point(self) -> np.ndarray:
        """Whether each change is a single value."""
        return self.low == self.high


def value_of(column: Column, features: np.ndarray) -> float:
    """Return the value of a column from its features, as a number; the index of a level; NaN if missing."""
    if column.has_gaps and features[-1] > 0:
        return np.nan
    if isinstance(column, CategoryColumn):
        return float(features.argmax()) if features.any() else np.nan
    return float(features[0])


class RowColumn(ABC):
    """One column of a row and its possible changes.

    Parameters
    ----------
    position : int
        Index of the column.
    effect : ColumnEffect
        Effects of its values on the scores.
    features : ndarray
        Its features in the row.
    limits : Limits
        Bounds of the column, and the directions in which it may change.
    spread : float
        Unit of changes.
    """

    def __init__(
        self, position: int, effect: ColumnEffect, features: np.ndarray, limits: Limits, spread: float = 1.0
    ) -> None:
        self.position, self.effect, self.limits, self.spread = position, effect, limits, spread
        self.value = value_of(effect.column, features)
        self.own = effect.scores_of(features)

    @abstractmethod
    def table(self) -> tuple[Cells, np.ndarray]:
        """Return all values, in ranges, with fixed costs; NaN if the cost is the distance from the row's value."""

    @abstractmethod
    def cost_of(self, value: float) -> float:
        """Return the cost of a change to a value."""

    @abstractmethod
    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """Split changes of this column into smaller ranges; also return the change that each is a part of."""

    def rounded(self, value: float) -> float:
        """Return a value with few digits at nearly the same cost."""
        return value

    def added(self, value: float) -> np.ndarray:
        """Return the effect of a change to a value on the scores."""
        return self.effect.scores_of(self.effect.encode(np.array([value]))[0]) - self.own


class SwitchingColumn(RowColumn):
    """A category or a boolean, which may change to another of its levels."""

    def table(self) -> tuple[Cells, np.ndarray]:
        """Return all levels; each costs 1, and slightly more if it is less frequent."""
        return self.effect.levels, self.effect.level_costs

    def cost_of(self, value: float) -> float:
        """Return the cost of a level."""
        return float(self.effect.level_costs[int(value)])

    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """Return the changes as they are: levels are single values."""
        return changes, np.arange(len(changes.cost))


class MovingColumn(RowColumn):
    """A number or a date, which may change within bounds; a date keeps its time of day."""

    def table(self) -> tuple[Cells, np.ndarray]:
        """Return all values within the bounds."""
        low, high = self.limits.low, self.limits.high
        empty = np.empty(0)
        cells = self.effect.table(low, high) if low <= high else self.effect.cells(empty, empty)
        return cells, np.full(len(cells.low), np.nan)

    def cost_of(self, value: float) -> float:
        """Return the distance in units of the spread."""
        return abs(value - self.value) / self.spread

    def rounded(self, value: float) -> float:
        """Return a value with few digits slightly farther from that of the row, if within the bounds."""
        if self.effect.is_whole:
            return value
        digits = -int(np.floor(np.log10(READABLE * self.spread)))
        steps = value * 10.0**digits
        away = round(float(np.ceil(steps) if value > self.value else np.floor(steps)) / 10.0**digits, digits)
        return away if self.limits.low <= away <= self.limits.high else value

    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """Split changes of this column into smaller ranges; also return the change that each is a part of."""
        ranges = zip(changes.low.tolist(), changes.high.tolist(), strict=True)
        ends = [self._parts(low, high, n_parts) for low, high in ranges]
        low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
        origin = np.repeat(np.arange(len(ends)), [len(starts) for starts, _ in ends])
        is_allowed = (self.limits.may_fall & (low < self.value)) | (self.limits.may_rise & (high > self.value))
        cells = self.effect.cells(low[is_allowed], high[is_allowed])
        index, distance = np.zeros(len(cells.low), dtype=int), np.full(len(cells.low), np.nan)
        return changes_to([self], index, cells, distance), origin[is_allowed]

    def _parts(self, low: float, high: float, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the parts of a range, which is cut at the value of the row if it contains it."""
        if not low < self.value < high:
            return self._even(low, high, n_parts)
        down = up = self.value
        if self.effect.is_whole:
            down, up = low + np.ceil(self.value - 1.0 - low), low + np.floor(self.value + 1.0 - low)
        sides = self._even(low, down, n_parts), self._even(up, high, n_parts)
        return np.concatenate([sides[0][0], sides[1][0]]), np.concatenate([sides[0][1], sides[1][1]])

    def _even(self, low: float, high: float, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """Split a range into parts of about the same size."""
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


def changes_to(columns: Sequence[RowColumn], index: np.ndarray, cells: Cells, fixed_cost: np.ndarray) -> Changes:
    """Convert ranges of values to changes of a row.

    Parameters
    ----------
    columns : sequence of RowColumn
        The columns of the row.
    index : ndarray of shape (n_cells,)
        Index in `columns` of the column of each range.
    cells : Cells
        The ranges.
    fixed_cost : ndarray of shape (n_cells,)
        Cost of each range; NaN if the cost is the distance from the value of the row.
    """
    value, spread = (np.array(values)[index] for values in zip(*((c.value, c.spread) for c in columns), strict=True))
    own = np.array([column.own for column in columns])[index]
    below = cells.high < value
    cheapest = np.where(below, cells.high, np.where(cells.low > value, cells.low, np.nan))
    distance = np.abs(np.where(np.isnan(cheapest), value, cheapest) - value) / spread
    cost = np.where(np.isnan(fixed_cost), distance, fixed_cost)
    near = np.where(below[:, None], cells.at_high, cells.at_low)
    position = np.array([column.position for column in columns])[index]
    return Changes(position, cells.low, cells.high, cost, cheapest, near - own, cells.least - own, cells.most - own)


def root_changes(effects: ModelEffects, columns: Sequence[RowColumn]) -> Changes:
    """Return all allowed changes, in ranges; the tables of the columns are joined once for rows with equal bounds."""
    key = tuple((column.position, column.limits.low, column.limits.high) for column in columns)
    index, cells, fixed_cost = remembered(effects.joined, key, lambda: _joined(columns), MOST_JOINED)
    changes = changes_to(columns, index, cells, fixed_cost)
    value, falls, rises = (
        np.array(values)[index]
        for values in zip(*((c.value, c.limits.may_fall, c.limits.may_rise) for c in columns), strict=True)
    )
    return changes.take((falls & (cells.low < value)) | (rises & (cells.high > value)))


def _joined(columns: Sequence[RowColumn]) -> tuple[np.ndarray, Cells, np.ndarray]:
    """Join the tables of several columns: the column index of each range, the ranges, and their fixed costs."""
    tables = [column.table() for column in columns]
    index = np.repeat(np.arange(len(columns)), [len(cost) for _, cost in tables])
    cells = Cells(*(np.concatenate(arrays) for arrays in zip(*(cells for cells, _ in tables), strict=True)))
    return index, cells, np.concatenate([cost for _, cost in tables])
