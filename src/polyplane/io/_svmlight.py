"""SVMlight and LIBSVM text, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polyplane.io._rows import Layout, Rows, csr
from polyplane.io._small import SMALL, Short, parse_small
from polyplane.io._sources import Source, line_blocks
from polyplane.io._text import labels_of, not_a_number, shown

#: The largest index: that of a 32-bit matrix.
LARGEST_INDEX = 2**31 - 2


def svmlight_pieces(source: Source, layout: Layout) -> Iterator[Rows]:
    """The rows of each block of text."""
    pieces = _raw_pieces(source, layout)
    if layout.whole:  # only the whole file tells for certain where indices begin
        kept = list(pieces)
        layout.findings["base"] = int(all(X_raw[3] > 0 for X_raw, _, _ in kept))
        pieces = iter(kept)
    n_features = layout.n_features or 0
    for X_raw, y, lines in pieces:
        base = _base(layout, X_raw, lines, source.name)
        values, indices, indptr, _, largest = X_raw
        indices -= base
        n_features = max(n_features, largest + 1 - base)
        if layout.n_features is not None and n_features > layout.n_features:
            row = int(np.searchsorted(indptr, indices.argmax(), side="right")) - 1
            raise ValueError(_beyond(source.name, lines[row], largest, layout))
        facts = {"format": "svmlight", "zero_based": base == 0}
        yield Rows(csr(values, indices, indptr, max(1, n_features)), y, None, lines, facts)


def _raw_pieces(source: Source, layout: Layout) -> Iterator[Any]:
    limit = LARGEST_INDEX if layout.n_features is None else layout.n_features - (layout.zero_based is True)
    line = 1
    with source.open() as file:
        for text, size in line_blocks(file, source.name):
            if line == 1 and size <= SMALL and (short := parse_small(bytes(text[:size]), limit)) is not None:
                line += short.n_lines
                if len(short.lines):
                    yield _short_piece(source.name, text, short, layout)
                continue
            out = _parse(text, size, line, limit, layout, source.name)
            line, piece = _piece(source.name, text, out, layout)
            if len(piece[-1]):
                yield piece


def _short_piece(name: str, text: np.ndarray, short: Short, layout: Layout) -> Any:
    smallest, largest = (short.indices.min(), short.indices.max()) if len(short.indices) else (LARGEST_INDEX + 1, -1)
    X_raw = (short.values.astype(layout.dtype), short.indices, short.indptr, int(smallest), int(largest))
    return X_raw, labels_of(name, text, short, len(short.lines), layout), short.lines


def _parse(text: np.ndarray, size: int, line: int, limit: int, layout: Layout, name: str) -> Any:
    from polyplane.kernels import svmlight as parser

    n_hard = 1024
    while True:
        out = _room_for(size, n_hard)
        status = parser.parse_svmlight(text, size, line, limit, out)
        if status != parser.MANY_HARD:
            break
        n_hard *= 8
    if status != parser.DONE:
        raise ValueError(_complaint(name, text, status, out.tally, layout))
    return out


def _room_for(size: int, n_hard: int) -> Any:
    """Arrays that no block of `size` characters overfills; what is not used of them costs nothing."""
    from polyplane.kernels.svmlight import Parsed

    most_values, most_rows = size // 4 + 2, size // 2 + 2
    return Parsed(
        np.empty(most_values),
        np.empty(most_values, dtype=np.int32),
        np.empty(most_rows + 1, dtype=np.int64),
        np.empty(most_rows),
        np.empty((most_rows, 2), dtype=np.int64),
        np.empty(most_rows, dtype=np.int64),
        np.empty((n_hard, 4), dtype=np.int64),
        np.empty(7, dtype=np.int64),
    )


def _piece(name: str, text: np.ndarray, out: Any, layout: Layout) -> tuple[int, Any]:
    """The next line, and the rows of a block: matrix, labels, lines."""
    from polyplane.kernels.svmlight import LARGEST, LINE, N_HARD, N_ROWS, SMALLEST

    n_rows = int(out.tally[N_ROWS])
    indptr, lines = out.indptr[: n_rows + 1].copy(), out.lines[:n_rows].copy()
    for row, index, start, stop in out.hard[: out.tally[N_HARD]].tolist():
        value = float(bytes(text[start:stop]))
        if not np.isfinite(value):
            raise ValueError(f"{name}, line {lines[row]}: {shown(text, start)} is too large a number.")
        if index < 0:
            out.labels[row] = value
        else:
            own = out.indices[indptr[row] : indptr[row + 1]]
            out.values[indptr[row] + np.searchsorted(own, index)] = value
    used = int(indptr[-1])
    X_raw = (out.values[:used].astype(layout.dtype), out.indices[:used].copy(), indptr, int(out.tally[SMALLEST]))
    labels = labels_of(name, text, out, n_rows, layout)
    return int(out.tally[LINE]), ((*X_raw, int(out.tally[LARGEST])), labels, lines)


def _base(layout: Layout, X_raw: Any, lines: np.ndarray, name: str) -> int:
    """Whether indices begin at 0 or at 1: as said, or as the smallest one of the file (a stream: of its start) says."""
    smallest = X_raw[3]
    if layout.zero_based == "auto" and "base" not in layout.findings:
        layout.findings["base"] = 0 if smallest == 0 else 1
    base = layout.findings["base"] if layout.zero_based == "auto" else 1 - int(layout.zero_based)
    if smallest < base:
        row = int(np.searchsorted(X_raw[2], (X_raw[1] == 0).argmax(), side="right")) - 1
        raise ValueError(
            f"{name}, line {lines[row]}: feature index 0, where the first index was taken to be 1; say that indices "
            "begin at 0 (zero_based)."
        )
    return int(base)


def _complaint(name: str, text: np.ndarray, status: int, tally: np.ndarray, layout: Layout) -> str:
    """What was expected where reading ended."""
    from polyplane.kernels import svmlight as parser

    line, position = int(tally[parser.LINE]), int(tally[parser.POSITION])
    found = shown(text, position)
    if status == parser.BAD_INDEX:
        return f"{name}, line {line}: expected index:value, found {found}."
    if status == parser.BAD_VALUE:
        return f"{name}, line {line}: {not_a_number(found)}."
    if status == parser.LARGE_INDEX:
        return _beyond(name, line, int(bytes(text[position : position + 20]).partition(b":")[0]), layout)
    return f"{name}, line {line}: a feature index comes twice."


def _beyond(name: str, line: int, index: int, layout: Layout) -> str:
    if layout.n_features is None:
        return f"{name}, line {line}: feature index {index} is too large."
    return f"{name}, line {line}: feature index {index} is beyond the {layout.n_features} features expected."
