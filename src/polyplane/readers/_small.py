"""Parsing of short texts in plain Python, which is faster than importing Numba and compiling kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane.readers._columns import LABEL
from polyplane.readers._text import LARGEST, LINE, N_ROWS, SMALLEST, Parsed, allocate

#: For longer texts the kernel is faster, including its start.
SMALL = 1 << 16

_NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"  # one way to read each number: linear time
_IS_NUMBER = re.compile(_NUMBER)
_LINE = re.compile(rb"[ \t\r]*(?:([^\s:#]+)((?:[ \t\r]+\d{1,9}:" + _NUMBER + rb")*)[ \t\r]*)?(?:#.*)?", re.DOTALL)


def small_svmlight(text: np.ndarray, limit: int) -> Parsed | None:
    """Parse complete lines; None if they are many or not in the common form, which is left to the kernel."""
    if len(text) > SMALL:
        return None
    raw, start, indptr = text.tobytes(), 0, [0]
    values: list[float] = []
    indices: list[int] = []
    labels, spans, lines = [], [], []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        if match[1] is not None:
            previous = -1
            for pair in match[2].split():
                index, _, value = pair.partition(b":")
                indices.append(int(index))
                values.append(float(value))
                if not previous < indices[-1] <= limit:
                    return None
                previous = indices[-1]
            indptr.append(len(values))
            labels.append(_label(match[1]))
            spans.append((start + match.start(1), start + match.end(1)))
            lines.append(number)
        start += len(line) + 1
    out = allocate(0, len(lines), np.array(values), np.array(indices, dtype=np.int32), np.array(indptr))
    out.tally[[SMALLEST, LARGEST]] = min(indices, default=limit + 1), max(indices, default=-1)
    return _filled(out, labels, spans, lines, 1 + raw.count(b"\n"))


def small_table(text: np.ndarray, line: int, delimiter: str, uses: Sequence[int]) -> Parsed | None:
    """Parse complete lines of a table with columns `uses`; `line` is the number of the first line."""
    if len(text) > SMALL:
        return None
    raw, start = text.tobytes(), 0
    values, labels, spans, lines = [], [], [], []
    for number, row in enumerate(raw.split(b"\n"), start=line):
        cells, place = row.removesuffix(b"\r").split(delimiter.encode()), start
        start += len(row) + 1
        if cells == [b""]:
            continue
        if len(cells) != len(uses) or b"\r" in cells[-1]:
            return None
        own = [0.0] * (max(uses) + 1)
        for use, cell in zip(uses, cells, strict=True):
            bare = cell.strip(b" ")
            if b'"' in cell or b"\r" in cell or (use >= 0 and not _IS_NUMBER.fullmatch(bare)):
                return None
            if use >= 0:
                own[use] = float(bare)
            elif use == LABEL:
                labels.append(_label(bare))
                first = place + len(cell) - len(cell.lstrip(b" "))
                spans.append((first, first + len(bare)))
            place += len(cell) + 1
        values.append(own)
        lines.append(number)
    none = np.empty(0, dtype=np.int64)
    out = allocate(0, len(lines), np.array(values).reshape(-1, max(uses) + 1), none, none)
    return _filled(out, labels, spans, lines, line + raw.count(b"\n"))


def _label(word: bytes) -> float:
    return float(word) if _IS_NUMBER.fullmatch(word) else np.nan


def _filled(out: Parsed, labels: Any, spans: Any, lines: Any, next_line: int) -> Parsed | None:
    if not np.isfinite(out.values).all() or np.isinf(labels).any():
        return None
    if labels:
        out.labels[:], out.spans[:] = labels, spans
    out.lines[:] = lines
    out.tally[[N_ROWS, LINE]] = len(lines), next_line
    return out
