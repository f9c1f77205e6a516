"""CSV and TSV with a header, block by block."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np

from polyplane.io._columns import Columns, choose_columns
from polyplane.io._rows import Layout, Rows
from polyplane.io._sources import Source, line_blocks
from polyplane.io._text import labels_of, not_a_number, shown

DELIMITERS = ",;\t|"


def csv_pieces(source: Source, layout: Layout) -> Iterator[Rows]:
    """The rows of each block of text."""
    with source.open() as file:
        blocks = line_blocks(file, source.name)
        columns, delimiter, line = None, ",", 1
        for text, size in blocks:
            start = 0
            if columns is None:
                header, start, line = _header(text, size)
                if not header:
                    continue
                delimiter, names = _names(header, source.name)
                columns = choose_columns(names, layout, source.name)
            out, line = _parse(text[start:size], line, delimiter, columns, source.name)
            yield _piece(source.name, text[start:size], out, columns, layout)


def _header(text: np.ndarray, size: int) -> tuple[bytes, int, int]:
    """The first line that is not empty, where the next one begins, and that one's number."""
    start, line = 0, 1
    while start < size:
        stop = start + int((text[start:size] == ord("\n")).argmax())
        row = bytes(text[start:stop]).strip()
        start, line = stop + 1, line + 1
        if row:
            return row, start, line
    return b"", start, line


def _names(header: bytes, name: str) -> tuple[str, list[str]]:
    """The delimiter, the one that is met most, and the names of the columns."""
    row = header.decode(errors="replace")
    delimiter = max(DELIMITERS, key=row.count)
    names = [cell.strip() for cell in next(csv.reader([row], delimiter=delimiter, skipinitialspace=True))]
    if all(_is_number(cell) for cell in names):
        raise ValueError(f"{name} has no header: its first line must hold the names of the columns, not numbers.")
    return delimiter, names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse(text: np.ndarray, line: int, delimiter: str, columns: Columns, name: str) -> tuple[Any, int]:
    from polyplane.kernels import delimited as parser

    n_hard = 1024
    while True:
        out = _room_for(len(text), n_hard, columns)
        status = parser.parse_delimited(text, len(text), line, ord(delimiter), columns.uses, out)
        if status != parser.MANY_HARD:
            break
        n_hard *= 8
    if status != parser.DONE:
        raise ValueError(_complaint(name, text, status, out.tally, columns, delimiter))
    return out, int(out.tally[parser.LINE])


def _room_for(size: int, n_hard: int, columns: Columns) -> Any:
    from polyplane.kernels.delimited import Cells

    most_rows = size // (len(columns.uses) + len(columns.names)) + 2
    return Cells(
        np.empty((most_rows, len(columns.names))),
        np.zeros(most_rows),
        np.zeros((most_rows, 2), dtype=np.int64),
        np.empty(most_rows, dtype=np.int64),
        np.empty((n_hard, 4), dtype=np.int64),
        np.empty(6, dtype=np.int64),
    )


def _piece(name: str, text: np.ndarray, out: Any, columns: Columns, layout: Layout) -> Rows:
    from polyplane.kernels.delimited import N_HARD, N_ROWS

    n_rows = int(out.tally[N_ROWS])
    lines = out.lines[:n_rows].copy()
    for row, feature, start, stop in out.hard[: out.tally[N_HARD]].tolist():
        value = float(bytes(text[start:stop]))
        if not np.isfinite(value):
            raise ValueError(f"{name}, line {lines[row]}: {shown(text, start)} is too large a number.")
        if feature < 0:
            out.labels[row] = value
        else:
            out.values[row, feature] = value
    y = labels_of(name, text, out, n_rows, layout) if columns.label is not None else None
    X = out.values[:n_rows].astype(layout.dtype)
    return Rows(X, y, columns.names, lines, {"format": "csv", "label": columns.label})


def _complaint(name: str, text: np.ndarray, status: int, tally: np.ndarray, columns: Columns, delimiter: str) -> str:
    from polyplane.kernels import delimited as parser

    where = f"{name}, line {int(tally[parser.LINE])}"
    position, column = int(tally[parser.POSITION]), columns.header[int(tally[parser.COLUMN])]
    if status in (parser.FEW_COLUMNS, parser.MANY_COLUMNS):
        amount = "fewer" if status == parser.FEW_COLUMNS else "more"
        return f"{where}: {amount} columns than the {len(columns.header)} of the header."
    if status == parser.EMPTY:
        return f"{where}: column {column!r} is empty; fill missing values or drop such rows first."
    cell = bytes(text[position : position + 60]).split(b"\n")[0].decode(errors="replace")
    found = repr(cell.split(delimiter)[0].strip().strip('"')[:30])
    if status == parser.BAD_QUOTE:
        return f"{where}: column {column!r} is not a closed quotation within the line."
    reason = not_a_number(found)
    hint = "; encode text columns as numbers first (one column of 0 and 1 for each value)"
    return f"{where}, column {column!r}: {reason}{hint if reason.startswith('expected') else ''}."
