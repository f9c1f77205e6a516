"""Functions shared by the text readers: output arrays of the kernels, labels, and error messages."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from polyplane.readers._rows import (
    LARGEST_EXACT,
    MixedLabelsError,
    ReadOptions,
    settle_labels,
    text_labels,
    wants_text,
    whole_labels,
)

#: The entries of a tally: the line, the position and the column where parsing stopped, the numbers of rows and of hard
#: numbers, and the smallest and the largest index.
LINE, POSITION, COLUMN, N_ROWS, N_HARD, SMALLEST, LARGEST = range(7)
#: A hard number has at least five characters ("1e281"), and one after it.
HARD_LENGTH = 6
#: The message for other encodings, which cannot be detected; with a wrong guess, distinct labels could become equal.
NOT_UTF8 = "the text is not UTF-8; convert the file first (for instance iconv -f LATIN1 -t UTF-8)"


class Parsed(NamedTuple):
    """The rows of a block of text.

    `values` is a matrix; for sparse rows, CSR with `indices` and `indptr`. `labels` is NaN if the label is not a
    number, `spans` is its position in the text, and `lines` its line. `hard` lists the numbers to parse with `float`:
    row, index (-1 for a label) and span. The entries of `tally` are named above.
    """

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    spans: np.ndarray
    lines: np.ndarray
    hard: np.ndarray
    tally: np.ndarray


def allocate(size: int, n_rows: int, values: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Parsed:
    """Allocate arrays for any block of `size` characters; unused parts need no memory."""
    return Parsed(
        values,
        indices,
        indptr,
        np.empty(n_rows),
        np.empty((n_rows, 2), dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty((size // HARD_LENGTH + 1, 4), dtype=np.int64),
        np.zeros(7, dtype=np.int64),
    )


def hard_values(name: str, text: np.ndarray, out: Parsed) -> Iterator[tuple[int, int, float]]:
    """Parse the hard numbers: labels are stored, others are yielded with row and index."""
    for row, index, start, stop in out.hard[: out.tally[N_HARD]].tolist():
        value = float(bytes(text[start:stop]))
        if not np.isfinite(value):
            raise ValueError(f"{name}, line {out.lines[row]}: the number {shown(text, start)} is too large.")
        if index < 0:
            out.labels[row] = value
        else:
            yield row, index, value


def labels_of(name: str, text: np.ndarray, out: Parsed, options: ReadOptions) -> np.ndarray | None:
    """Return the labels of a block, as numbers or as strings."""
    if options.labels == "ignore":
        return None
    labels, spans, lines = (part[: out.tally[N_ROWS]] for part in (out.labels, out.spans, out.lines))
    missing = spans[:, 0] == spans[:, 1]
    if missing.any():
        raise ValueError(f"{name}, line {lines[missing.argmax()]}: the row has no label.")
    no_number = np.isnan(labels)
    if wants_text(options, bool(no_number.any())):
        return _texts(name, text, spans, lines)
    if no_number.any():
        row = int(no_number.argmax())
        raise MixedLabelsError(
            f"{name}, line {lines[row]}: the label {shown(text, int(spans[row, 0]))} is not a number, unlike the "
            "labels before it or those of the model."
        )
    if (np.abs(labels) >= LARGEST_EXACT).any():
        return whole_labels([_whole(text, span) for span in spans.tolist()], options, name)
    return settle_labels(labels.copy(), options, name)


def _texts(name: str, text: np.ndarray, spans: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return labels as strings."""
    raw, cells = text.tobytes(), []
    for row, (start, stop) in enumerate(spans.tolist()):
        try:
            cells.append(raw[start:stop].decode().replace('""', '"'))
        except UnicodeDecodeError:
            raise ValueError(f"{name}, line {lines[row]}, the label: {NOT_UTF8}.") from None
    return text_labels(cells)


def _whole(text: np.ndarray, span: list[int]) -> int | None:
    """Return a label as an exact integer, if it is one with at most 20 digits; a float would lose digits."""
    label = Decimal(bytes(text[slice(*span)]).decode())
    if label.adjusted() >= 20 or label != label.to_integral_value():
        return None
    return int(label)


def not_a_number(found: str) -> str:
    """Return the error message for a value that is not a number."""
    bare = found.strip("'").lower().lstrip("+-")
    if bare in ("nan", "inf", "infinity", "na", "null", "none", "?"):
        return f"the value {found} is missing or infinite; impute missing values or drop such rows first"
    return f"expected a number, found {found}"


def shown(text: np.ndarray, position: int) -> str:
    """Return the word at a position, for messages."""
    word = bytes(text[position : position + 40]).split(b"\n")[0].split()
    return repr(word[0].decode(errors="replace")[:30]) if word else "nothing"
