"""Concatenation of tables, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyplane.inputs.cells import DATES, Cells, Form
from polyplane.inputs.conversion import as_levels
from polyplane.inputs.encoding import positions_of
from polyplane.inputs.frames import Table

#: The missing value of each form.
GAPS = {"number": np.nan, "boolean": np.nan, "date": np.datetime64("NaT"), "text": -1}
_DTYPES = {"number": np.float64, "boolean": np.float64, "date": DATES, "text": np.intp}


def loaded(table: Table) -> Table:
    """Return the table with all columns read, so that it no longer depends on its source."""
    cells = [table.read(j) for j in range(len(table.names))]
    return replace(table, read=cells.__getitem__)


def concatenated(tables: Sequence[Table], owner: str) -> Table:
    """Concatenate the rows of tables with the columns of the first one, in any order; `owner` is for messages."""
    first = tables[0]
    if len(tables) == 1:
        return first
    places = [positions_of(first.names, first.names, first.is_named, table, owner) for table in tables]

    def read(j: int) -> Cells:
        return concatenated_cells([table.read(place[j]) for table, place in zip(tables, places, strict=True)])

    return Table(first.names, first.is_named, sum(table.n_rows for table in tables), read)


def concatenated_cells(parts: Sequence[Cells]) -> Cells:
    """Concatenate the values of a column; parts of different forms become strings, unless all values are missing."""
    first = parts[0]
    empty = [bool(part.is_gap.all()) for part in parts]
    known = [part for part, is_empty in zip(parts, empty, strict=True) if not is_empty] or [first]
    forms = {part.form for part in known}
    form: Form = known[0].form if len(forms) == 1 else "text"
    if form == "text":
        known = [_as_text(part) for part in known]
    place: dict[str, int] = {}
    for part in known:
        for level in part.levels:
            place.setdefault(level, len(place))
    filled = iter(known)
    values = [
        np.full(len(part.values), GAPS[form], dtype=_DTYPES[form]) if is_empty else _values(next(filled), place)
        for part, is_empty in zip(parts, empty, strict=True)
    ]
    return Cells(
        first.name,
        form,
        np.concatenate(values),
        tuple(place),
        is_whole=all(part.is_whole for part in known),
        is_declared=any(part.is_declared for part in parts),
    )


def _as_text(cells: Cells) -> Cells:
    if cells.form == "text":
        return cells
    codes, levels = as_levels(cells)
    return Cells(cells.name, "text", codes, levels, is_declared=cells.is_declared)


def _values(cells: Cells, place: dict[str, int]) -> np.ndarray:
    """Return the values; strings as their indices in the common list of levels."""
    if cells.form != "text":
        return cells.values
    return np.array([*(place[level] for level in cells.levels), -1], dtype=np.intp)[cells.values]
