"""CSV and TSV with a header, block by block.

Arrow's reader does not replace this one. With one thread it takes 1.3 to 2.6 times as long to return a matrix
(benchmarks/peers/csv_speed.py); after an unclosed quotation mark it skips lines without an error; a carriage return
alone ends a row; line numbers are unknown after empty lines; xz is not supported; and every installation would need its
55 MB, which are now needed for raw tables only.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import numpy as np

from polyplane.readers._columns import Columns, check_number_of_columns, choose_columns
from polyplane.readers._input_file import InputFile, line_blocks
from polyplane.readers._rows import NotNumbersError, ReadOptions, Rows
from polyplane.readers._small import small_table
from polyplane.readers._text import (
    COLUMN,
    LINE,
    N_ROWS,
    NOT_UTF8,
    POSITION,
    Parsed,
    allocate,
    hard_values,
    labels_of,
    not_a_number,
)

DELIMITERS = ",;\t|"


def csv_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block of text."""
    name, columns, delimiter, line = input_file.name, None, ",", 1
    with input_file.open() as file:
        for block, size in line_blocks(file, name):
            text, out = block[:size], None
            if columns is None:
                header = re.search(rb"\S[^\n]*", text.data)
                if header is None:
                    continue
                delimiter, names = _names(header[0].strip(), name)
                columns = choose_columns(names, options, name)
                line, text = 2 + bytes(text[: header.start()]).count(b"\n"), text[header.end() + 1 :]
                out = small_table(text, line, delimiter, columns.uses.tolist())
            if out is None:
                out = _parse(text, line, delimiter, columns, name)
            line = int(out.tally[LINE])
            yield _piece(name, text, out, columns, options)


def _names(header: bytes, name: str) -> tuple[str, list[str]]:
    """Return the most frequent delimiter, and the column names."""
    try:
        row = header.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name}, the header: {NOT_UTF8}.") from None
    delimiter = max(DELIMITERS, key=row.count)
    check_number_of_columns(row.count(delimiter) + 1, name)
    if "\r" in row:
        raise ValueError(f"{name}: lines end with a carriage return alone; convert the line endings to newlines.")
    try:
        names = [cell.strip() for cell in next(csv.reader([row], delimiter=delimiter, skipinitialspace=True))]
    except csv.Error as error:
        raise ValueError(f"{name}: the header cannot be read, {error}.") from None
    if all(is_number(cell) for cell in names):
        raise ValueError(f"{name} has no header: the first line must contain the column names, not numbers.")
    return delimiter, names


def is_number(cell: str) -> bool:
    """Whether a header cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse(text: np.ndarray, line: int, delimiter: str, columns: Columns, name: str) -> Parsed:
    from polyplane.readers import _csv_kernel as parser

    size, none = len(text), np.empty(0, dtype=np.int64)
    most_rows = size // (len(columns.uses) + len(columns.names)) + 2  # a cell needs one character, a feature two
    out = allocate(size, most_rows, np.empty((most_rows, len(columns.names))), none, none)
    status = parser.parse_delimited(text, size, line, ord(delimiter), columns.uses, out)
    if status != parser.DONE:
        is_cell = status not in (parser.FEW_COLUMNS, parser.MANY_COLUMNS, parser.BAD_QUOTE)
        kind = NotNumbersError if is_cell else ValueError
        raise kind(_message(name, text, status, out.tally, columns, delimiter))
    return out


def _piece(name: str, text: np.ndarray, out: Parsed, columns: Columns, options: ReadOptions) -> Rows:
    n_rows = int(out.tally[N_ROWS])
    for row, feature, value in hard_values(name, text, out):
        out.values[row, feature] = value
    y = labels_of(name, text, out, options) if columns.label is not None else None
    X, lines = out.values[:n_rows].astype(options.dtype), out.lines[:n_rows].copy()
    return Rows(X, y, columns.names, lines, {"format": "csv", "label": columns.label})


def _message(name: str, text: np.ndarray, status: int, tally: np.ndarray, columns: Columns, delimiter: str) -> str:
    from polyplane.readers import _csv_kernel as parser

    where = f"{name}, line {int(tally[LINE])}"
    position, column = int(tally[POSITION]), columns.header[int(tally[COLUMN])]
    if status in (parser.FEW_COLUMNS, parser.MANY_COLUMNS):
        amount = "fewer" if status == parser.FEW_COLUMNS else "more"
        return f"{where}: {amount} columns than the {len(columns.header)} of the header."
    if status == parser.EMPTY:
        return f"{where}: column {column!r} is empty; impute missing values or drop such rows first."
    cell = bytes(text[position : position + 60]).split(b"\n")[0].decode(errors="replace")
    found = repr(cell.split(delimiter)[0].strip().strip('"')[:30])
    if status == parser.BAD_QUOTE:
        return f"{where}: column {column!r} has a quoted value that does not end on the same line."
    reason = not_a_number(found)
    hint = "; encode text columns as numbers first (for instance one-hot)"
    return f"{where}, column {column!r}: {reason}{hint if reason.startswith('expected') else ''}."
