"""Parsing of delimited text, such as CSV."""

from typing import Any

import numpy as np
from numba import njit

from polyplane.kernels._jit import kernel
from polyplane.readers._columns import LABEL, SKIPPED
from polyplane.readers._decimals import BAD, GOOD, HARD, NEWLINE, QUOTE, RETURN, SPACE, number, set_aside
from polyplane.readers._text import COLUMN, LINE, N_ROWS, POSITION, Parsed

#: The reason why parsing of a block stopped.
DONE, EMPTY, BAD_VALUE, FEW_COLUMNS, MANY_COLUMNS, BAD_QUOTE = range(6)

_ONE = np.uint64(1)


@njit
def _ends_line(text: np.ndarray, at: Any) -> Any:
    return text[at] == NEWLINE or (text[at] == RETURN and text[at + _ONE] == NEWLINE)


@njit
def _past_cell(text: np.ndarray, at: Any, delimiter: int) -> Any:
    """Return the span of the cell at `at` without its quotes, its end, and whether its quotes are closed."""
    if text[at] != QUOTE:
        start = at
        while text[at] != delimiter and not _ends_line(text, at):
            at += _ONE
        stop = at
        while stop > start and text[stop - _ONE] == SPACE:
            stop -= _ONE
        return start, stop, at, True
    at += _ONE
    start = at
    while text[at] != QUOTE or text[at + _ONE] == QUOTE:
        if text[at] == NEWLINE:
            return start, at, at, False
        at += _ONE + np.uint64(text[at] == QUOTE)
    return start, at, at + _ONE, True


@njit
def _cell(text: np.ndarray, start: Any, stop: Any, use: int, out: Parsed) -> Any:
    """Parse one cell according to the use of its column; return the status."""
    row = out.tally[N_ROWS]
    if use == SKIPPED:
        return DONE
    if start == stop and use != LABEL:
        return EMPTY
    value, end, outcome = number(text, start)
    if end != stop:
        outcome = BAD
    if use == LABEL:
        out.labels[row] = value if outcome == GOOD else np.nan
        out.spans[row, 0], out.spans[row, 1] = start, stop
    elif outcome == BAD:
        return BAD_VALUE
    else:
        out.values[row, use] = value
    if outcome == HARD:
        set_aside(out, use, start, stop)
    return DONE


@njit
def _any_cell(text: np.ndarray, at: Any, delimiter: int, use: int, out: Parsed) -> Any:
    """Parse the cell at `at`, of any content; return its end, and the status."""
    while text[at] == SPACE:
        at += _ONE
    start, stop, end, closed = _past_cell(text, at, delimiter)
    if not closed:
        return start, BAD_QUOTE
    status = _cell(text, start, stop, use, out)
    if status != DONE:
        return start, status
    while text[end] == SPACE:
        end += _ONE
    if text[end] != delimiter and not _ends_line(text, end):
        return start, BAD_QUOTE
    return end, DONE


@njit
def _row(text: np.ndarray, at: Any, delimiter: int, uses: np.ndarray, out: Parsed) -> Any:
    """Parse the row at `at`; return its end, and the status."""
    row, last = out.tally[N_ROWS], len(uses) - 1
    for column in range(len(uses)):
        use, plain = uses[column], False
        if use >= 0:  # the common case: a number without quotes or spaces
            value, end, outcome = number(text, at)
            plain = outcome == GOOD and (text[end] == delimiter or _ends_line(text, end))
        if plain:
            out.values[row, use] = value
            at = end
        else:
            out.tally[COLUMN] = column
            at, status = _any_cell(text, at, delimiter, use, out)
            if status != DONE:
                return at, status
        if column < last:
            if text[at] != delimiter:
                return at, FEW_COLUMNS
            at += _ONE
    return at, DONE if _ends_line(text, at) else MANY_COLUMNS


@kernel
def parse_delimited(text: np.ndarray, size: int, first_line: int, delimiter: int, uses: np.ndarray, out: Parsed) -> int:
    """Parse complete lines, the last one ended by a newline, into `out`.

    Parameters
    ----------
    text : ndarray of uint8
        The lines.
    size : int
        The number of characters.
    first_line : int
        The number of the first line.
    delimiter : int
        The delimiter.
    uses : ndarray of int64
        The use of each column: the index of a feature, `LABEL` or `SKIPPED`.
    out : Parsed
        The output arrays, large enough: a cell needs one character, a feature two.

    Returns
    -------
    status : int
        `DONE`, or the reason why parsing stopped at the position in the tally.
    """
    at, stop, line, status = np.uint64(0), np.uint64(size), first_line, DONE
    out.tally[:] = 0
    while at < stop:
        if not _ends_line(text, at):
            out.lines[out.tally[N_ROWS]] = line
            at, status = _row(text, at, delimiter, uses, out)
            if status != DONE:
                break
            out.tally[N_ROWS] += 1
        while text[at] != NEWLINE:
            at += _ONE
        at += _ONE
        line += 1
    out.tally[LINE], out.tally[POSITION] = line, at
    return status
