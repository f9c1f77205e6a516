"""Rows with labels: the options for reading them, the use of columns, the type of labels, and batches."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane.readers.source import DELIMITERS, MAX_HEADER_BYTES

FORMATS = ("svmlight", "csv", "parquet")
#: Allowed values of the parameters of `read`.
ALLOWED: dict[str, tuple[Any, ...]] = {
    "format": (None, *FORMATS),
    "labels": ("auto", "number", "text", "ignore"),
    "zero_based": (True, False, "auto"),
}
#: Common names of label columns.
USUAL_LABELS = ("label", "class", "target", "y")
#: Uses of columns that are not features.
LABEL, SKIPPED = -1, -2
#: Maximum number of columns: names need memory, and a compressed header of commas only needs almost no space.
MAX_COLUMNS = 1 << 20
#: Beyond this, different integers become the same float.
MAX_EXACT_INTEGER = 2**53
#: If most of a larger array of strings would be padding, labels are stored as Python strings.
MAX_PADDED_BYTES = 1 << 26
#: Maximum number of values in a batch, about 100 MB, and memory of its string labels.
MAX_BATCH_VALUES, MAX_BATCH_LABEL_BYTES = 1 << 23, 1 << 25
#: Maximum length of a label.
MAX_LABEL_BYTES = 1 << 20


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


class ColumnUses(NamedTuple):
    """The use of each column of a table: label, feature or none.

    Parameters
    ----------
    header : list of str
        All names, in the order of the file.
    uses : ndarray of int64
        The use of each column: the index of a feature, `LABEL` or `SKIPPED`.
    names : tuple of str
        The names of the features, by index.
    label : str or None
        The name of the label column, if there is one.
    """

    header: list[str]
    uses: np.ndarray
    names: tuple[str, ...]
    label: str | None


def choose_columns(header: Sequence[str], options: ReadOptions, name: str) -> ColumnUses:
    """Find the label and the features in a header.

    The label is the column that `options.label` gives by name or index; else the only one with a common label name;
    else the last one. If features are matched by name, they can be in any order, and other columns are skipped.
    """
    header = list(header)
    check_names(header, name)
    indices = {cell: j for j, cell in enumerate(header)}
    label = _label_column(header, options, name)
    names = tuple(cell for j, cell in enumerate(header) if j != label)
    if options.feature_names is not None:
        names = tuple(str(feature) for feature in options.feature_names)
        missing = [feature for feature in names if indices.get(feature, label) == label]
        if missing:
            raise ValueError(f"{name} has no column {missing[0]!r}, which the model requires.")
        twice, n_times = Counter(names).most_common(1)[0] if names else ("", 1)
        if n_times > 1:
            raise ValueError(
                f"{name}: feature names must be unique to match columns by name, but {twice!r} occurs twice."
            )
    if options.n_features is not None and len(names) != options.n_features:
        raise ValueError(f"{name} has {len(names)} feature columns where {options.n_features} are expected.")
    if not names:
        raise ValueError(f"{name} has no columns other than the label.")
    uses = np.full(len(header), SKIPPED, dtype=np.int64)
    uses[[indices[feature] for feature in names]] = np.arange(len(names))
    if label is not None and options.labels != "ignore":
        uses[label] = LABEL
    return ColumnUses(header, uses, names, None if label is None else header[label])


def header_too_long(name: str) -> ValueError:
    """Return the error of a header that is too long."""
    return ValueError(f"{name} has a header of more than {MAX_HEADER_BYTES >> 20} MB, the maximum length of a header.")


def parse_header(text: io.StringIO, name: str) -> tuple[str, list[str], int]:
    """Read the header of delimited text; return the delimiter, the column names and the number of lines.

    The delimiter is the most frequent one of the first line, outside of quotation marks.
    """
    first_line = text.getvalue().lstrip("\r\n ").partition("\n")[0]
    bare = re.sub(r'"[^"]*"?', "", first_line)
    delimiter = max(DELIMITERS, key=bare.count)
    _check_number_of_columns(bare.count(delimiter) + 1, name)
    rows = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    try:
        cells = next((row for row in rows if any(cell.strip() for cell in row)), [])
    except csv.Error as error:
        raise ValueError(f"{name}: the header cannot be read, {error}.") from None
    if not cells:
        raise ValueError(f"{name}: the header contains no column names.")
    _check_number_of_columns(len(cells), name)
    names = [cell.strip() for cell in cells]
    try:
        list(map(float, names))
    except ValueError:
        return delimiter, names, rows.line_num
    raise ValueError(f"{name} has no header: the first line must contain the column names, not numbers.")


def check_names(header: Sequence[str], name: str) -> None:
    """Raise an error if there are too many columns, or two of the same name."""
    _check_number_of_columns(len(header), name)
    twice = [cell for cell, n_times in Counter(header).items() if n_times > 1]
    if twice:
        raise ValueError(f"{name}: the column {twice[0]!r} occurs twice in the header.")


def _check_number_of_columns(n_columns: int, name: str) -> None:
    if n_columns > MAX_COLUMNS:
        raise ValueError(f"{name} has {n_columns:,} columns; at most {MAX_COLUMNS:,} are supported.")


def _label_column(header: list[str], options: ReadOptions, name: str) -> int | None:
    """Return the index of the label column; None if labels are optional and missing."""
    wanted, optional = options.label, options.labels == "ignore"
    if wanted in header:
        return header.index(str(wanted))
    if wanted is not None and str(wanted).lstrip("-").isdigit():
        index = int(wanted)
        if not -len(header) <= index < len(header):
            raise ValueError(f"{name} has {len(header)} columns; the column index {index} is out of range.")
        return index % len(header)
    if wanted is not None and not optional:
        raise ValueError(f"{name} has no column {wanted!r}; its columns are {', '.join(header[:10])}.")
    usual = [j for j, cell in enumerate(header) if cell.lower() in USUAL_LABELS]
    if not optional:
        return usual[0] if len(usual) == 1 else len(header) - 1
    expected = set(options.feature_names or ())
    unexpected = [j for j in usual if header[j] not in expected]
    if len(unexpected) == 1:
        return unexpected[0]
    one_too_many = options.feature_names is None and options.n_features == len(header) - 1
    return len(header) - 1 if one_too_many else None


def convert_labels(
    numbers: np.ndarray,
    is_missing: np.ndarray,
    texts: Callable[[], Sequence[str]],
    where: Callable[[int], str],
    options: ReadOptions,
    name: str,
) -> np.ndarray:
    """Convert the labels of some rows to numbers or to strings.

    Files are read in pieces: unless it is specified, the first piece determines the type.

    Parameters
    ----------
    numbers : ndarray of float64
        The labels as numbers; NaN for a label that is not a number.
    is_missing : ndarray of bool
        Which rows have no label.
    texts : callable
        Returns the labels as strings.
    where : callable
        Returns the line of a row, for messages.
    options : ReadOptions
        Its `labels` and `decided` give the type.
    name : str
        The name of the file.
    """
    if is_missing.any():
        raise ValueError(f"{name}, {where(int(is_missing.argmax()))}: the row has no label.")
    is_text, decided = np.isnan(numbers), options.decided
    if options.labels == "auto":
        decided.setdefault("labels", "text" if is_text.any() else "number")
    if decided.get("labels", options.labels) == "text":
        labels = np.array(texts(), dtype=object)
        n_characters = sum(map(len, labels))
        is_wasteful = _is_wasteful(4 * max(map(len, labels)) * len(labels), 4 * n_characters)
        # NumPy's strings lose zero characters at their ends.
        return labels if is_wasteful or any(text.endswith("\0") for text in labels) else labels.astype(str)
    if is_text.any():
        row = int(is_text.argmax())
        raise MixedLabelsError(
            f"{name}, {where(row)}: the label {texts()[row][:30]!r} is not a number, unlike the labels before it or "
            "those of the model."
        )
    values = numbers
    if (np.abs(numbers) >= MAX_EXACT_INTEGER).any():
        exact = [_whole(text) for text in texts()]
        if any(value is None or not -(2**63) <= value < 2**63 for value in exact):
            raise MixedLabelsError(
                f"{name}: labels beyond 2**53 must be 64-bit integers, or be read as strings (labels='text')."
            )
        values, decided["wide"] = np.array(exact, dtype=np.int64), True
    elif (numbers == np.rint(numbers)).all():
        values = numbers.astype(np.int64)
    else:
        decided["fractions"] = True
    if {"fractions", "wide"} <= decided.keys():  # these integers would not be distinct as floats
        raise MixedLabelsError(
            f"{name}: the labels are fractions and integers beyond 2**53, which have no common numeric type; read them "
            "as strings (labels='text')."
        )
    return values


def _whole(text: str) -> int | None:
    """Return a label as an exact integer, if it is one with at most 20 digits; a float would lose digits."""
    label = Decimal(text)
    return int(label) if label.adjusted() < 20 and label == label.to_integral_value() else None


def _is_wasteful(n_bytes: int, n_used: int) -> bool:
    """Whether an array of strings, which all take the size of the longest, would be large and mostly padding."""
    return n_bytes > max(MAX_PADDED_BYTES, 8 * n_used)


def stack(parts: list[Rows]) -> Rows:
    """Concatenate rows."""
    if len(parts) == 1:
        return parts[0]
    matrices, y = [part.X for part in parts], None
    if parts[0].y is not None:
        labels = [part.y for part in parts]
        room = max(own.dtype.itemsize for own in labels) * sum(map(len, labels))
        if labels[0].dtype.kind == "U" and _is_wasteful(room, sum(own.nbytes for own in labels)):
            labels = [own.astype(object) for own in labels]
        y = np.concatenate(labels)
    if sparse.issparse(matrices[0]):
        n_features = max(X.shape[1] for X in matrices)
        for X in matrices:
            X.resize(X.shape[0], n_features)
        whole = sparse.vstack(matrices, format="csr")
        whole.has_canonical_format = True
    else:
        whole = np.concatenate(matrices)
    return parts[-1]._replace(X=whole, y=y, lines=np.concatenate([part.lines for part in parts]))


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


def _room(held: list[Rows], n_rows: int, piece: Rows) -> int:
    """Return how many rows of a piece still fit into the batch; at least one, if it is empty."""
    if held and sum(_label_bytes(part.y) for part in (*held, piece)) > MAX_BATCH_LABEL_BYTES:
        return 0
    rows_left = n_rows - sum(len(part.lines) for part in held)
    values_left = MAX_BATCH_VALUES - sum(part.X.size for part in held)  # of a sparse matrix, the stored ones
    if sparse.issparse(piece.X):
        fitting = int(np.searchsorted(piece.X.indptr, values_left, side="right")) - 1
    else:
        fitting = values_left // max(1, piece.X.shape[1])
    return max(0 if held and fitting < 1 else 1, min(rows_left, fitting))


def _label_bytes(y: Any) -> int:
    if y is None or y.dtype.kind not in "UO":
        return 0
    return int(y.nbytes if y.dtype.kind == "U" else 4 * sum(map(len, y)))
