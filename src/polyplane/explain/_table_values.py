"""Rows of a table, and values of its columns, for display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain.rules import number
from polyplane.inputs.cells import Cells, object_cells
from polyplane.inputs.columns import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn
from polyplane.inputs.conversion import as_levels
from polyplane.inputs.encoding import TableInputs
from polyplane.inputs.frames import Table, read_table

#: A value of a column: a number, a string (levels, dates, true and false), or None if missing.
Value = int | float | str | None
OTHER = "other levels"


@dataclass(frozen=True, eq=False)
class TableRow:
    """One row of a table.

    Parameters
    ----------
    z : ndarray of shape (n_features,)
        The encoded row.
    values : list of int, float, str or None
        Value of each encoded column.
    unseen : frozenset of int
        Columns in which the row has a level that was unknown or rare in training.
    """

    z: np.ndarray
    values: list[Value]
    unseen: frozenset[int] = frozenset()

    @classmethod
    def read(cls, encoding: TableInputs, x: Any, owner: str) -> TableRow:
        """Read a dict, a Series of pandas, a data frame of one row, or a sequence of values in the column order."""
        table = _table_of_row(x, encoding.gaps)
        if table.n_rows != 1:
            raise ValueError(f"x must be one row, not {table.n_rows} rows.")
        z = encoding.encode(table, owner)[0]
        names = table.names if table.is_named and encoding.is_named else encoding.names
        values, unseen = [], set()
        for j, (column, place) in enumerate(zip(encoding.columns, encoding.places, strict=True)):
            cells = table.read(names.index(column.name))
            values.append(_value_of_cell(column, cells, z[place]))
            if isinstance(column, CategoryColumn) and values[-1] not in (None, *column.levels):
                unseen.add(j)
        return cls(z, values, frozenset(unseen))

    @classmethod
    def typical(cls, encoding: TableInputs) -> TableRow:
        """Return the reference row of an encoding."""
        z = encoding.reference
        return cls(z, [decoded(c, z[place]) for c, place in zip(encoding.columns, encoding.places, strict=True)])


def decoded(column: Column, z: np.ndarray) -> Value:
    """Decode the features of a value."""
    if column.has_gaps and z[-1]:
        return None
    match column:
        case CategoryColumn():
            names = (*column.levels, OTHER) if column.has_other else column.levels
            return names[int(z[: len(names)].argmax())] if z[: len(names)].any() else OTHER
        case BooleanColumn():
            return "true" if z[0] > 0.5 else "false"
        case DateColumn():
            return date_text(float(z[0]))
    value = float(z[0])
    return int(value) if isinstance(column, NumberColumn) and column.is_whole and value.is_integer() else value


def shown(column: Column, value: Any) -> str:
    """Format a value."""
    if value is None:
        return "missing"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.number) and not isinstance(column, CategoryColumn):
        return shown_number(float(value), isinstance(column, NumberColumn) and column.is_whole)
    return str(value)


def shown_number(value: float, is_whole: bool = False, digits: int = 6) -> str:
    """Format a number of a table; integers have all their digits."""
    return str(int(value)) if is_whole and value.is_integer() and abs(value) < 1e15 else number(value, digits)


def date_text(days: float) -> str:
    """Format a date, with its time unless this is midnight."""
    moment = np.datetime64(0, "us") + np.timedelta64(round(days * 86_400e6), "us")
    day, _, time = str(moment.astype("datetime64[s]")).partition("T")
    return day if time == "00:00:00" else f"{day} {time}"


def _value_of_cell(column: Column, cells: Cells, z: np.ndarray) -> Value:
    if cells.is_gap[0]:
        return None
    if isinstance(column, CategoryColumn):
        codes, levels = as_levels(cells)
        return levels[codes[0]]
    return decoded(column, z)


def _table_of_row(x: Any, gaps: tuple[str, ...]) -> Table:
    if isinstance(x, Table):
        return x
    is_series = hasattr(x, "items") and getattr(x, "ndim", 0) == 1
    if isinstance(x, Mapping) or is_series:
        pairs = list(x.items())
    elif hasattr(x, "columns") or hasattr(x, "__arrow_c_stream__"):
        return read_table(x, gaps)
    else:
        cells = np.asarray(x, dtype=object)
        return read_table(cells[None] if cells.ndim == 1 else cells, gaps)
    names = tuple(str(name) for name, _ in pairs)
    return Table(names, True, 1, lambda j: object_cells(names[j], [pairs[j][1]], gaps))
