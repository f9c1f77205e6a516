"""Rows with labels, and the options for reading them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

FORMATS = ("svmlight", "csv", "parquet")
#: Allowed values of the parameters of `read`.
ALLOWED: dict[str, tuple[Any, ...]] = {
    "format": (None, *FORMATS),
    "labels": ("auto", "number", "text", "ignore"),
    "zero_based": (True, False, "auto"),
}
#: Beyond this, different integers become the same float.
LARGEST_EXACT = 2**53
#: In a NumPy array, each string takes the size of the longest. If most of a larger array would be padding, labels are
#: stored as Python strings.
MOST_ROOM = 1 << 26
#: Maximum number of values in a batch: about 100 MB.
MOST_VALUES = 1 << 23


class Rows(NamedTuple):
    """Rows read from a file.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        The features.
    y : ndarray of shape (n_rows,) or None
        The labels. None if they are ignored.
    feature_names : tuple of str or None
        The column names, if the file has any.
    lines : ndarray of shape (n_rows,)
        The line number of each row in a text file, the row number (from 1) in other files.
    facts : dict
        Options of `read` for other files of the same data: "format" and "zero_based" or "label".
    """

    X: Any
    y: Any
    feature_names: tuple[str, ...] | None
    lines: np.ndarray
    facts: dict[str, Any]

    def cut(self, rows: slice) -> Rows:
        """Return a slice of the rows."""
        return self._replace(X=self.X[rows], y=None if self.y is None else self.y[rows], lines=self.lines[rows])


@dataclass(frozen=True)
class ReadOptions:
    """The validated parameters of `read`; the meaning of "auto" is determined while a file is read."""

    format: str | None = None
    label: str | int | None = None
    labels: str = "auto"
    n_features: int | None = None
    feature_names: Sequence[str] | None = None
    zero_based: bool | str = "auto"
    dtype: Any = np.float64
    whole: bool = False
    decided: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, allowed))}.")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={self.dtype!r} must be numpy.float32 or numpy.float64.")


class MixedLabelsError(ValueError):
    """A label that is not a number, or is too large, after numeric labels."""


class NotNumbersError(ValueError):
    """A column of a table contains other values than numbers: a string, a missing value or a date."""


def settle_labels(values: np.ndarray, options: ReadOptions, name: str) -> np.ndarray:
    """Convert numeric labels: to integers, if all of them are."""
    options.decided.setdefault("labels", "number")
    if (values == np.rint(values)).all() and (np.abs(values) < LARGEST_EXACT).all():
        return values.astype(np.int64)
    _refuse_both("fractions", options, name)
    return values


def whole_labels(values: Sequence[int | None] | np.ndarray, options: ReadOptions, name: str) -> np.ndarray:
    """Convert integer labels exactly; None stands for a value that is too large or not an integer."""
    options.decided.setdefault("labels", "number")
    if isinstance(values, np.ndarray):
        low, high = int(values.min()), int(values.max())
    else:
        found = [2**63 if value is None else value for value in values]
        low, high = min(found), max(found)
    if low < -(2**63) or high >= 2**63:
        raise MixedLabelsError(
            f"{name}: labels beyond 2**53 must be 64-bit integers, or be read as strings (labels='text')."
        )
    if max(-low, high) >= LARGEST_EXACT:
        _refuse_both("wide", options, name)
    return np.array(values, dtype=np.int64)


def _refuse_both(met: str, options: ReadOptions, name: str) -> None:
    """Raise an error for fractions together with integers beyond 2**53, which would not be distinct as floats."""
    options.decided[met] = True
    if {"fractions", "wide"} <= options.decided.keys():
        raise MixedLabelsError(
            f"{name}: the labels are fractions and integers beyond 2**53, which have no common numeric type; read them "
            "as strings (labels='text')."
        )


def text_labels(cells: Sequence[str]) -> np.ndarray:
    """Convert labels to an array of strings, or of objects if one label is much longer than the others."""
    labels, lengths = np.array(cells, dtype=object), [len(cell) for cell in cells]
    return labels if _is_wasteful(4 * max(lengths, default=0) * len(cells), 4 * sum(lengths)) else labels.astype(str)


def _is_wasteful(room: int, used: int) -> bool:
    return room > max(MOST_ROOM, 8 * used)


def wants_text(options: ReadOptions, any_text: bool) -> bool:
    """Whether labels are read as strings: as specified, or because the first ones are not numbers.

    Files are read in pieces, and the first piece determines the type.
    """
    if options.labels == "auto":
        options.decided.setdefault("labels", "text" if any_text else "number")
        return bool(options.decided["labels"] == "text")
    return options.labels == "text"


def stack(parts: list[Rows]) -> Rows:
    """Concatenate rows."""
    if len(parts) == 1:
        return parts[0]
    y = None if parts[0].y is None else _stack_labels([part.y for part in parts])
    return parts[-1]._replace(
        X=_stack_matrices([part.X for part in parts]), y=y, lines=np.concatenate([part.lines for part in parts])
    )


def _stack_labels(parts: list[np.ndarray]) -> np.ndarray:
    room = max(part.dtype.itemsize for part in parts) * sum(map(len, parts))
    if parts[0].dtype.kind == "U" and _is_wasteful(room, sum(part.nbytes for part in parts)):
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def regroup(pieces: Iterator[Rows], n_rows: int | None) -> Iterator[Rows]:
    """Yield the same rows in batches of `n_rows`, the last one smaller; None: as they are read."""
    if n_rows is None:
        yield from pieces
        return
    held: list[Rows] = []
    for piece in pieces:
        while len(piece.lines):
            room = _room(held, n_rows, piece)
            held.append(piece if room >= len(piece.lines) else piece.cut(slice(room)))
            piece = piece.cut(slice(room, None))
            if len(piece.lines) or sum(len(part.lines) for part in held) == n_rows:
                yield stack(held)
                held = []
    if held:
        yield stack(held)


def csr(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int) -> Any:
    """Create a CSR matrix from sorted, distinct indices."""
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32, copy=False)
    X = sparse.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_features))
    X.has_canonical_format = True
    return X


def _room(held: list[Rows], n_rows: int, piece: Rows) -> int:
    """Return how many rows of a piece still fit into the batch; at least one."""
    rows_left = n_rows - sum(len(part.lines) for part in held)
    values_left = MOST_VALUES - sum(_n_values(part.X) for part in held)
    if sparse.issparse(piece.X):
        fitting = int(np.searchsorted(piece.X.indptr, values_left, side="right")) - 1
    else:
        fitting = values_left // max(1, piece.X.shape[1])
    return max(0 if held and fitting < 1 else 1, min(rows_left, fitting))


def _n_values(X: Any) -> int:
    return int(X.nnz) if sparse.issparse(X) else int(X.size)


def _stack_matrices(parts: list[Any]) -> Any:
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)
    n_features = max(part.shape[1] for part in parts)
    offsets = np.cumsum([0, *(part.nnz for part in parts)])
    indptr = [np.zeros(1, dtype=np.int64)]
    indptr += [part.indptr[1:] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    return csr(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate(indptr),
        n_features,
    )
