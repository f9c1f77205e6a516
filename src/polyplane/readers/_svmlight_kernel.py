"""Rows in the text format of SVMlight and LIBSVM: ``label index:value index:value ... # comment``."""

from typing import Any

import numpy as np
from numba import njit

from polyplane.kernels._jit import kernel
from polyplane.readers._decimals import (
    BAD,
    COLON,
    GOOD,
    HARD,
    HASH,
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    ZERO,
    number,
    set_aside,
)
from polyplane.readers._text import LARGEST, LINE, N_ROWS, POSITION, SMALLEST, Parsed

#: The reason why parsing of a block stopped.
DONE, BAD_INDEX, BAD_VALUE, LARGE_INDEX, DUPLICATE = range(5)

_ONE, _TEN = np.uint64(1), np.uint64(10)
_QID = np.frombuffer(b"qid:", dtype=np.uint8)


@njit
def _is_blank(c: Any) -> Any:
    return c in (SPACE, TAB, RETURN)


@njit
def _ends_token(c: Any) -> Any:
    return c in (SPACE, NEWLINE, TAB, RETURN, HASH)


@njit
def _is_qid(text: np.ndarray, at: Any) -> Any:
    k = np.uint64(0)
    while k < np.uint64(4) and text[at + k] == _QID[k]:  # the last newline stops this before the end of the text
        k += _ONE
    return k == np.uint64(4)


@njit
def _sort_row(out: Parsed, first: int, last: int) -> Any:
    """Sort the indices of a row (Shell sort); return whether they are distinct."""
    indices, values = out.indices, out.values
    gap = (last - first) // 2
    while gap > 0:
        for p in range(first + gap, last):
            index, value, q = indices[p], values[p], p
            while q >= first + gap and indices[q - gap] > index:
                indices[q], values[q] = indices[q - gap], values[q - gap]
                q -= gap
            indices[q], values[q] = index, value
        gap = 1 if gap == 2 else 5 * gap // 11
    n_equal = 0
    for p in range(first + 1, last):
        n_equal += indices[p] == indices[p - 1]
    return n_equal == 0


@njit
def _label(text: np.ndarray, at: Any, row: int, out: Parsed) -> Any:
    """Parse the label at `at`; return its end."""
    start = at
    while not _ends_token(text[at]) and text[at] != COLON:
        at += _ONE
    if text[at] == COLON:  # the first feature already, or a qid: the row has no label
        at = start
    value, end, outcome = number(text, start)
    out.labels[row] = value if outcome == GOOD and end == at else np.nan
    out.spans[row, 0], out.spans[row, 1] = start, at
    if outcome == HARD and end == at:
        set_aside(out, -1, start, at)
    return at


@njit
def _features(text: np.ndarray, at: Any, p: Any, limit: int, out: Parsed) -> Any:
    """Parse the features at `at` into positions from `p`; return their end, the next position, and the status."""
    first, previous, n_disordered = p, np.int64(-1), np.int64(0)
    while True:
        while _is_blank(text[at]):
            at += _ONE
        if text[at] == NEWLINE or text[at] == HASH:
            break
        start, j = at, np.uint64(0)
        c = np.uint64(text[at]) - np.uint64(ZERO)
        while c < _TEN:
            j = j * _TEN + c
            at += _ONE
            c = np.uint64(text[at]) - np.uint64(ZERO)
        if at == start or text[at] != COLON:
            if not _is_qid(text, start):
                return start, p, BAD_INDEX
            while not _ends_token(text[at]):
                at += _ONE
            continue
        index = np.int64(j)
        if index > limit or at - start > np.uint64(18):
            return start, p, LARGE_INDEX
        start = at + _ONE
        value, at, outcome = number(text, start)
        if outcome == BAD or not _ends_token(text[at]):
            return start, p, BAD_VALUE
        if outcome == HARD:
            set_aside(out, index, start, at)
        out.indices[p], out.values[p] = index, value
        n_disordered += index <= previous
        previous = index
        p += 1
    if n_disordered and not _sort_row(out, first, p):
        return at, p, DUPLICATE
    if p > first:
        out.tally[SMALLEST] = min(out.tally[SMALLEST], out.indices[first])
        out.tally[LARGEST] = max(out.tally[LARGEST], out.indices[p - 1])
    return at, p, DONE


@kernel
def parse_svmlight(text: np.ndarray, size: int, first_line: int, limit: int, out: Parsed) -> int:
    """Parse complete lines, the last one ended by a newline, into `out`.

    Parameters
    ----------
    text : ndarray of uint8
        The lines.
    size : int
        The number of characters.
    first_line : int
        The number of the first line.
    limit : int
        The largest index allowed.
    out : Parsed
        The output arrays, large enough: a value needs four characters, a row two.

    Returns
    -------
    status : int
        `DONE`, or the reason why parsing stopped at the position in the tally.
    """
    at, stop, line = np.uint64(0), np.uint64(size), first_line
    row, p, status = 0, 0, DONE
    out.indptr[0] = 0
    out.tally[:] = 0
    out.tally[SMALLEST], out.tally[LARGEST] = limit + 1, -1
    while at < stop:
        while _is_blank(text[at]):
            at += _ONE
        if text[at] != NEWLINE and text[at] != HASH:
            out.lines[row] = line
            at = _label(text, at, row, out)
            at, p, status = _features(text, at, p, limit, out)
            if status != DONE:
                break
            row += 1
            out.indptr[row], out.tally[N_ROWS] = p, row
        while text[at] != NEWLINE:
            at += _ONE
        at += _ONE
        line += 1
    out.tally[LINE], out.tally[POSITION] = line, at
    return status
