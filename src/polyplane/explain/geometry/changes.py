"""The values that the columns of a row may take, with their costs and their effects on the scores of the planes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np

from polyplane._plain import did_you_mean
from polyplane.features import Features
from polyplane.inputs.encoding import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn, TableInputs, days
from polyplane.model import Model

#: Largest number of integers that are tabulated one by one.
MAX_POINTS = 128
#: A range with at most this many integers per part is split into single values.
MAX_INTEGERS_PER_PART = 4
#: Resolution of numbers as a fraction of the spread: a narrower range is treated as a single value.
FINEST, READABLE = 1e-4, 1e-3
#: Cyclic parts of dates: their number of values, and the number of days after which a value may repeat.
CYCLES = {"month": (12, 334), "day of week": (7, 7)}
#: Largest extra cost of a level for being less frequent, so that frequent levels are preferred.
PREFERENCE = 1e-6
#: Number of tables of all changes that are cached for a model.
MAX_TABLES = 32

Bounds = Mapping[str, tuple[Any, Any]]


class Ranges(NamedTuple):
    """Ranges of values of one column, and their contributions to the scores of the planes.

    Parameters
    ----------
    low, high : ndarray of shape (n_ranges,)
        Ends, inclusive: numbers, days since 1970, or indices of levels. If both are equal, the range is a single value.
    at_low, at_high : ndarray of shape (n_ranges, n_planes)
        Contributions of the ends.
    least, most : ndarray of shape (n_ranges, n_planes)
        Bounds of the contribution of any value in the range.
    cost : ndarray of shape (n_ranges,)
        Cost of a level; NaN if the cost is the distance from the value of the row.
    """

    low: np.ndarray
    high: np.ndarray
    at_low: np.ndarray
    at_high: np.ndarray
    least: np.ndarray
    most: np.ndarray
    cost: np.ndarray


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
        return cls(*map(np.concatenate, zip(*several, strict=True)))

    @classmethod
    def none(cls, n_planes: int, count: int = 1) -> Self:
        """Return changes of no column."""
        zero, nothing = np.zeros(count), np.zeros((count, n_planes))
        return cls(np.full(count, -1), zero, zero, zero, zero, nothing, nothing, nothing)


def part_of_column(model: Model, own: slice, j: int) -> tuple[Features, np.ndarray]:
    """Return the features of column `j` as functions of its own encoded numbers, and their weights in the planes."""
    features = np.flatnonzero(model.column_of_feature == j)
    part = model.features.take(features)
    part = part.replace(n_inputs=own.stop - own.start, source=part.source - own.start)
    return part, model.planes.coef[:, features].T.astype(np.float64)


class ColumnScores:
    """Contributions of the values of one column of a table to the scores of the planes.

    Parameters
    ----------
    model : Model
        A model of tables without a projection.
    j : int
        Index of the column.
    """

    def __init__(self, model: Model, j: int) -> None:
        self.column: Column = model.inputs.columns[j]  # type: ignore[union-attr]
        own: slice = model.inputs.places[j]  # type: ignore[union-attr]
        self.features, self.weights = part_of_column(model, own, j)
        self.is_whole = isinstance(self.column, DateColumn) or getattr(self.column, "is_whole", False)
        #: The cost of each level of a category or a boolean; None for numbers and dates.
        self.level_cost: np.ndarray | None = None
        if isinstance(self.column, CategoryColumn):
            sizes = np.array(self.column.counts[: len(self.column.levels)])
            self.level_cost = 1.0 + PREFERENCE * (1.0 - sizes / max(sizes.sum(), 1))
        elif isinstance(self.column, BooleanColumn):
            self.level_cost = np.ones(2)

    def of(self, encoded: np.ndarray) -> np.ndarray:
        """Compute the contributions of encoded values, shape (n_values, n_planes)."""
        return np.asarray(self.features.transform(encoded) @ self.weights)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Encode numbers, days, or indices of levels."""
        rows = np.zeros((len(values), len(self.column.features)))
        match self.column:
            case CategoryColumn():
                levels = self.column.encoded_levels
                rows[:, : levels.shape[1]] = levels[values.astype(int)]
            case DateColumn(parts=parts):
                rows[:, : 1 + len(parts)] = self.column.of_days(values)
            case _:
                rows[:, 0] = values
        return rows

    def ranges(self, low: np.ndarray, high: np.ndarray) -> Ranges:
        """Return the ranges between the given ends."""
        first, last = self.encode(low), self.encode(high)
        ends = at_low, at_high = self.of(first), self.of(last)
        if (low != high).any():
            if isinstance(self.column, DateColumn):
                for k, part in enumerate(self.column.parts, start=1):
                    if part in CYCLES:
                        size, n_days = CYCLES[part]
                        goes_round = (high - low >= n_days) | (last[:, k] < first[:, k])
                        first[goes_round, k], last[goes_round, k] = 1, size
            least, most = self.features.bounds(first, last)
            middle, half = 0.5 * (least + most) @ self.weights, 0.5 * (most - least) @ np.abs(self.weights)
            ends = middle - half, middle + half
        return Ranges(low, high, at_low, at_high, *ends, np.full(len(low), np.nan))

    def table(self, low: float, high: float) -> Ranges:
        """Return all levels, or the ranges that cover all values between two: single values if few, else by knots."""
        if self.level_cost is None:
            return self.ranges(*self._ends(low, high))
        index = np.arange(len(self.level_cost), dtype=np.float64)
        return self.ranges(index, index)._replace(cost=self.level_cost)

    def _ends(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        if low > high:
            return np.empty(0), np.empty(0)
        if self.is_whole and high - low < MAX_POINTS and isinstance(self.column, NumberColumn):
            points = np.arange(np.ceil(low), high + 1.0)
            return points, points
        knots = np.append([low, high], self.features.knots(0))
        knots = np.unique(knots[(knots >= low) & (knots <= high)])
        if self.is_whole:
            # Days keep the time of day of `low`.
            knots = np.unique(low + np.floor(knots - low))
            return knots, np.append(knots[1:] - 1.0, knots[-1])
        return np.append(knots[:-1], high), np.append(knots[1:], high)


class ModelScores:
    """Contributions of all columns of a model to the scores of the planes, and how these become class scores.

    Parameters
    ----------
    model : Model
        A model of tables.
    """

    _known: ClassVar[WeakKeyDictionary[Model, ModelScores]] = WeakKeyDictionary()

    def __init__(self, model: Model) -> None:
        flat = model.flat()
        self.columns = [ColumnScores(flat, j) for j in range(len(model.inputs.columns))]  # type: ignore[union-attr]
        self.planes = flat.planes
        self._tables: dict[tuple[Any, ...], tuple[np.ndarray, Ranges]] = {}

    @classmethod
    def of(cls, model: Model) -> ModelScores:
        """Return the contributions of a model, cached for the lifetime of the model."""
        if model not in cls._known:
            cls._known[model] = cls(model)
        return cls._known[model]

    def table(self, columns: Sequence[RowColumn]) -> tuple[np.ndarray, Ranges]:
        """Join the tables of columns: the index of the column of each range, and the ranges; with a cache."""
        key = tuple((column.position, column.low, column.high) for column in columns)
        if key not in self._tables:
            tables = [column.scores.table(column.low, column.high) for column in columns]
            index = np.repeat(np.arange(len(columns)), [len(ranges.low) for ranges in tables])
            if len(self._tables) >= MAX_TABLES:
                self._tables.clear()
            self._tables[key] = index, Ranges(*map(np.concatenate, zip(*tables, strict=True)))
        return self._tables[key]


def value_of(column: Column, encoded: np.ndarray) -> float:
    """Return the value of a column as a number; the index of a level; NaN if missing, special, or a text."""
    if isinstance(column, NumberColumn) and column.code_of(encoded) is not None:
        return np.nan
    if column.kind == "text" or (column.has_gaps and encoded[-1] > 0):
        return np.nan
    if isinstance(column, CategoryColumn):
        return float(column.level_of(encoded)) if encoded.any() else np.nan
    return float(encoded[0])


class RowColumn:
    """One column of a row that may change: a level to another one, a number or a date within bounds.

    Parameters
    ----------
    position : int
        Index of the column.
    scores : ColumnScores
        Contributions of its values to the scores.
    encoded : ndarray
        Its encoded numbers in the row.
    low, high : float
        Bounds of a number or a date; a date keeps its time of day.
    may_fall, may_rise : bool
        Directions in which a number or a date may change.
    """

    def __init__(
        self,
        position: int,
        scores: ColumnScores,
        encoded: np.ndarray,
        low: float = -np.inf,
        high: float = np.inf,
        may_fall: bool = True,
        may_rise: bool = True,
    ) -> None:
        self.position, self.scores, self.low, self.high = position, scores, low, high
        self.may_fall, self.may_rise = may_fall, may_rise
        self.spread = scores.column.range.spread if isinstance(scores.column, NumberColumn | DateColumn) else 1.0
        self.value, self.own = value_of(scores.column, encoded), scores.of(encoded[None])[0]

    def cost_of(self, value: float) -> float:
        """Return the cost of a change: of a level that of its table, otherwise the distance in units of the spread."""
        cost = self.scores.level_cost
        return abs(value - self.value) / self.spread if cost is None else float(cost[int(value)])

    def rounded(self, value: float) -> float:
        """Return a value with few digits slightly farther from that of the row, if within the bounds."""
        if self.scores.is_whole or self.scores.level_cost is not None:
            return value
        digits = -int(np.floor(np.log10(READABLE * self.spread)))
        steps = value * 10.0**digits
        away = round(float(np.ceil(steps) if value > self.value else np.floor(steps)) / 10.0**digits, digits)
        return away if self.low <= away <= self.high else value

    def split(self, changes: Changes, n_parts: int) -> tuple[Changes, np.ndarray]:
        """Split changes of this column into smaller ranges; also return the change that each is a part of."""
        ends = [self._parts(*pair, n_parts) for pair in zip(changes.low.tolist(), changes.high.tolist(), strict=True)]
        low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
        origin = np.repeat(np.arange(len(ends)), [len(starts) for starts, _ in ends])
        is_allowed = (self.may_fall & (low < self.value)) | (self.may_rise & (high > self.value))
        ranges = self.scores.ranges(low[is_allowed], high[is_allowed])
        return changes_to([self], np.zeros(len(ranges.low), dtype=int), ranges), origin[is_allowed]

    def _parts(self, low: float, high: float, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the parts of a range, which is cut at the value of the row if it contains it."""
        if not low < self.value < high:
            return self._even(low, high, n_parts)
        down = up = self.value
        if self.scores.is_whole:
            down, up = low + np.ceil(self.value - 1.0 - low), low + np.floor(self.value + 1.0 - low)
        starts, stops = zip(self._even(low, down, n_parts), self._even(up, high, n_parts), strict=True)
        return np.concatenate(starts), np.concatenate(stops)

    def _even(self, low: float, high: float, n_parts: int) -> tuple[np.ndarray, np.ndarray]:
        """Split a range into parts of about the same size."""
        if self.scores.is_whole:
            size = high - low + 1.0
            if size <= MAX_INTEGERS_PER_PART * n_parts:
                starts = np.arange(low, high + 0.5)
            else:
                starts = low + np.floor(np.arange(n_parts) * (size / n_parts))
            return starts, np.append(starts[1:] - 1.0, high)
        if high - low <= FINEST * self.spread:
            far = np.array([high if low >= self.value else low])
            return far, far
        knots = np.linspace(low, high, n_parts + 1)
        return knots[:-1], knots[1:]


def changes_to(columns: Sequence[RowColumn], index: np.ndarray, ranges: Ranges) -> Changes:
    """Convert ranges of values to changes of a row; `index` is that of the column of each range."""
    value, spread, own, position = (
        np.array(parts)[index] for parts in zip(*((c.value, c.spread, c.own, c.position) for c in columns), strict=True)
    )
    below = ranges.high < value
    cheapest = np.where(below, ranges.high, np.where(ranges.low > value, ranges.low, np.nan))
    distance = np.abs(np.where(np.isnan(cheapest), value, cheapest) - value) / spread
    cost = np.where(np.isnan(ranges.cost), distance, ranges.cost)
    near = np.where(below[:, None], ranges.at_high, ranges.at_low)
    effects = (part - own for part in (near, ranges.least, ranges.most))
    return Changes(position, ranges.low, ranges.high, cost, cheapest, *effects)


def root_changes(scores: ModelScores, columns: Sequence[RowColumn]) -> Changes:
    """Return all allowed changes of a row, in ranges."""
    index, ranges = scores.table(columns)
    changes = changes_to(columns, index, ranges)
    value, falls, rises = (
        np.array(parts)[index] for parts in zip(*((c.value, c.may_fall, c.may_rise) for c in columns), strict=True)
    )
    return changes.take((falls & (ranges.low < value)) | (rises & (ranges.high > value)))


def free_columns(
    model: Model,
    z: np.ndarray,
    bounds: Bounds | None,
    frozen: Collection[str],
    increasing: Collection[str],
    decreasing: Collection[str],
) -> list[RowColumn]:
    """Return the columns of a row that may change; names and bounds are validated."""
    inputs, bounds = model.inputs, bounds or {}
    assert isinstance(inputs, TableInputs)
    groups = {"bounds": bounds, "frozen": frozen, "increasing": increasing, "decreasing": decreasing}
    for parameter, names in groups.items():
        _check_names(inputs, parameter, names)
    both = sorted(set(increasing) & set(decreasing))
    if both:
        raise ValueError(f"increasing and decreasing both name {both[0]!r}: put it in frozen if it must not change.")
    free = []
    for position, (scores, own) in enumerate(zip(ModelScores.of(model).columns, inputs.places, strict=True)):
        column, encoded = scores.column, z[own]
        value = value_of(column, encoded)
        if column.name in frozen or np.isnan(value):
            continue
        if not isinstance(column, NumberColumn | DateColumn):
            free.append(RowColumn(position, scores, encoded))
            continue
        low, high = _bounds(column, bounds.get(column.name))
        if scores.is_whole:
            offset = value % 1.0 if isinstance(column, DateColumn) else 0.0
            low, high = float(np.ceil(low - offset) + offset), float(np.floor(high - offset) + offset)
        ways = column.name not in increasing, column.name not in decreasing
        free.append(RowColumn(position, scores, encoded, low, high, *ways))
    return free


def _check_names(inputs: TableInputs, parameter: str, names: Collection[str]) -> None:
    if isinstance(names, str):
        raise ValueError(f"{parameter}={names!r} must be a list of columns: use [{names!r}].")
    ordered = {column.name for column in inputs.columns if isinstance(column, NumberColumn | DateColumn)}
    for name in names:
        if name not in inputs.names:
            hint = did_you_mean(str(name), inputs.names)
            raise ValueError(f"{parameter} names {name!r}, which is not a column of the table.{hint}")
        if parameter != "frozen" and name not in ordered and name not in inputs.dropped:
            raise ValueError(f"{parameter} names {name!r}, which is not a number or a date.")


def _bounds(column: NumberColumn | DateColumn, given: Any) -> tuple[float, float]:
    """Return the bounds of a column: those of the training rows, unless others are given."""
    ends = [column.range.low, column.range.high]
    if given is not None and (isinstance(given, str) or np.size(given) != 2):
        raise ValueError(f"bounds of {column.name!r} must be a pair (low, high), not {given!r}.")
    for side, bound in enumerate(given or ()):
        if bound is None:
            continue
        try:
            is_date = isinstance(column, DateColumn) and not isinstance(bound, int | float)
            ends[side] = float(days(np.array([bound], dtype="datetime64[us]"))[0]) if is_date else float(bound)
        except (TypeError, ValueError):
            ends[side] = np.nan
        if not np.isfinite(ends[side]):
            kind = "a date such as '2024-05-31'" if isinstance(column, DateColumn) else "a number"
            raise ValueError(f"bounds of {column.name!r} must be {kind} or None, not {bound!r}.")
    if ends[0] > ends[1]:
        raise ValueError(f"The lower bound of {column.name!r}, {ends[0]:g}, is above its upper bound, {ends[1]:g}.")
    return ends[0], ends[1]
