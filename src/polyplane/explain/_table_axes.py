"""Values of columns at which effects are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyplane.explain._table_values import OTHER, Value, decoded
from polyplane.inputs.columns import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn, Range
from polyplane.tables._model import TableModel

#: Number of values on an axis, besides the ends of bins.
GRID = 33
#: Quantiles of the rows between which a curve is drawn; without rows, it covers this many spreads around the median.
DRAWN, SPREADS = (0.005, 0.995), 3.0


@dataclass(frozen=True, eq=False)
class Axis:
    """Values of a column, or of a part of a date, and their features."""

    part: str | None
    values: tuple[Value, ...]
    reference: Value
    encoded: np.ndarray
    counts: tuple[int, ...] | None = None
    drawn: tuple[float, float] = (0.0, 0.0)
    is_whole: bool = False
    deciles: tuple[float, ...] | None = None


def column_axes(column: Column, model: TableModel, place: slice, seen: np.ndarray | None) -> list[Axis]:
    """Return the values of a column: one axis, or one for each part of a date.

    Parameters
    ----------
    column : Column
        The column.
    model : TableModel
        The model, for the ends of its bins.
    place : slice
        Positions of the features of the column.
    seen : ndarray of shape (n_rows, n_features of the column) or None
        Features of rows, which determine the range of the axis.
    """
    reference = decoded(column, column.reference)
    width = len(column.features)
    match column:
        case CategoryColumn():
            names = (*column.levels, OTHER) if column.has_other else column.levels
            return [Axis(None, names, reference, np.eye(len(names), width), column.counts)]
        case BooleanColumn():
            return [Axis(None, ("false", "true"), reference, np.eye(2, width, -1))]
        case NumberColumn():
            return [_number_axis(None, column.range, column.reference, 0, column.is_whole, seen, _knots(model, place))]
        case DateColumn():
            is_long = column.range.high - column.range.low > GRID  # resolution of one day
            first = _number_axis("days", column.range, column.reference, 0, is_long, seen, _knots(model, place))
            return [first, *(_part_axis(column, k, part) for k, part in enumerate(column.parts, start=1))]
    raise TypeError(f"Columns of type {type(column).__name__} are not supported.")


def _number_axis(
    part: str | None,
    seen_in_fit: Range,
    reference: np.ndarray,
    k: int,
    is_whole: bool,
    seen: np.ndarray | None,
    knots: list[np.ndarray],
) -> Axis:
    low, high, spread = seen_in_fit
    middle = float(reference[k])
    drawn = max(low, middle - SPREADS * spread), min(high, middle + SPREADS * spread)
    deciles = None
    if seen is not None and len(seen):
        deciles = tuple(np.quantile(seen[:, k], np.arange(1, 10) / 10).tolist())
        first, last = np.clip(np.quantile(seen[:, k], DRAWN), low, high)
        drawn = (float(first), float(last)) if first < last else drawn
    grid = np.concatenate([np.linspace(low, high, GRID), np.linspace(*drawn, GRID), [middle], *knots])
    grid = np.unique(np.clip(np.round(grid) if is_whole else grid, low, high))
    encoded = np.repeat(reference[None], len(grid), axis=0)
    encoded[:, k] = grid
    return Axis(part, tuple(grid.tolist()), middle, encoded, None, drawn, is_whole, deciles)


#: Values of the parts of a date.
_CALENDAR = {"month": (1, 12), "day of week": (1, 7), "hour": (0, 23)}


def _part_axis(column: DateColumn, k: int, part: str) -> Axis:
    ends = [column.of_day(day)[k] for day in (column.range.low, column.range.high)]
    low, high = _CALENDAR.get(part, (int(min(ends)), int(max(ends))))
    grid = np.arange(low, high + 1, dtype=float)
    encoded = np.repeat(column.reference[None], len(grid), axis=0)
    encoded[:, k] = grid
    return Axis(part, tuple(grid.tolist()), float(column.reference[k]), encoded, None, (low, high), True)


def _knots(model: TableModel, place: slice) -> list[np.ndarray]:
    """Return the ends of the bins of the first feature of a column, for all members."""
    found = []
    for member in model.members:
        numbers = np.flatnonzero(member.preparation.is_number).tolist()
        if member.preparation.knots and place.start in numbers:
            found.append(member.preparation.knots[numbers.index(place.start)])
    return found
