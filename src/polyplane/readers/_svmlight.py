"""SVMlight and LIBSVM text, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polyplane.readers._input_file import InputFile, line_blocks
from polyplane.readers._rows import ReadOptions, Rows, csr
from polyplane.readers._small import small_svmlight
from polyplane.readers._text import (
    LARGEST,
    LINE,
    N_ROWS,
    POSITION,
    SMALLEST,
    Parsed,
    allocate,
    hard_values,
    labels_of,
    not_a_number,
    shown,
)

#: The largest feature index, because of 32-bit indices.
LARGEST_INDEX = 2**31 - 2


class _Block(NamedTuple):
    """The rows of a block of text, before it is known whether indices start at 0 or 1."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    smallest: int
    largest: int
    y: np.ndarray | None
    lines: np.ndarray

    def line_of(self, place: Any) -> int:
        """Return the line of the value at a position."""
        return int(self.lines[np.searchsorted(self.indptr, place, side="right") - 1])


def svmlight_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block of text."""
    blocks = _blocks(input_file, options)
    if options.whole:  # the first index is certain only after the whole file
        kept = list(blocks)
        options.decided["base"] = int(all(block.smallest > 0 for block in kept))
        blocks = iter(kept)
    n_features = options.n_features or 0
    for block in blocks:
        base = _base(options, block, input_file.name)
        n_features = max(n_features, block.largest + 1 - base)
        if options.n_features is not None and n_features > options.n_features:
            line = block.line_of(block.indices.argmax())
            raise ValueError(_beyond(input_file.name, line, block.largest, options))
        X = csr(block.values, block.indices - np.int32(base), block.indptr, max(1, n_features))
        yield Rows(X, block.y, None, block.lines, {"format": "svmlight", "zero_based": base == 0})


def _blocks(input_file: InputFile, options: ReadOptions) -> Iterator[_Block]:
    limit = LARGEST_INDEX if options.n_features is None else options.n_features - (options.zero_based is True)
    line = 1
    with input_file.open() as file:
        for text, size in line_blocks(file, input_file.name):
            out = small_svmlight(text[:size], limit) if line == 1 else None
            if out is None:
                out = _parse(text, size, line, limit, options, input_file.name)
            line = int(out.tally[LINE])
            if out.tally[N_ROWS]:
                yield _block(input_file.name, text, out, options)


def _parse(text: np.ndarray, size: int, line: int, limit: int, options: ReadOptions, name: str) -> Parsed:
    from polyplane.readers import _svmlight_kernel as parser

    most_values, most_rows = size // 4 + 2, size // 2 + 2
    values, indices = np.empty(most_values), np.empty(most_values, dtype=np.int32)
    out = allocate(size, most_rows, values, indices, np.empty(most_rows + 1, dtype=np.int64))
    status = parser.parse_svmlight(text, size, line, limit, out)
    if status != parser.DONE:
        raise ValueError(_message(name, text, status, out.tally, options))
    return out


def _block(name: str, text: np.ndarray, out: Parsed, options: ReadOptions) -> _Block:
    n_rows, indptr = int(out.tally[N_ROWS]), out.indptr
    for row, index, value in hard_values(name, text, out):
        own = out.indices[indptr[row] : indptr[row + 1]]
        out.values[indptr[row] + np.searchsorted(own, index)] = value
    used = int(indptr[n_rows])
    return _Block(
        out.values[:used].astype(options.dtype),
        out.indices[:used].copy(),
        indptr[: n_rows + 1].copy(),
        int(out.tally[SMALLEST]),
        int(out.tally[LARGEST]),
        labels_of(name, text, out, options),
        out.lines[:n_rows].copy(),
    )


def _base(options: ReadOptions, block: _Block, name: str) -> int:
    """Return the first index, 0 or 1: as specified, or by the smallest index of the file (of a stream: its start)."""
    if options.zero_based == "auto" and "base" not in options.decided:
        options.decided["base"] = 0 if block.smallest == 0 else 1
    base = int(options.decided["base"] if options.zero_based == "auto" else not options.zero_based)
    if block.smallest < base:
        line = block.line_of((block.indices == 0).argmax())
        raise ValueError(
            f"{name}, line {line}: feature index 0, but indices were assumed to start at 1; set zero_based "
            "(--zero-based on the command line)."
        )
    return base


def _message(name: str, text: np.ndarray, status: int, tally: np.ndarray, options: ReadOptions) -> str:
    """Return the error message for the position where parsing stopped."""
    from polyplane.readers import _svmlight_kernel as parser

    line, position = int(tally[LINE]), int(tally[POSITION])
    found = shown(text, position)
    if status == parser.BAD_INDEX:
        return f"{name}, line {line}: expected index:value, found {found}."
    if status == parser.BAD_VALUE:
        return f"{name}, line {line}: {not_a_number(found)}."
    if status == parser.LARGE_INDEX:
        return _beyond(name, line, int(bytes(text[position : position + 20]).partition(b":")[0]), options)
    return f"{name}, line {line}: duplicate feature index."


def _beyond(name: str, line: int, index: int, options: ReadOptions) -> str:
    if options.n_features is None:
        return f"{name}, line {line}: feature index {index} is too large."
    return f"{name}, line {line}: feature index {index} is out of range: {options.n_features} features are expected."
