"""NumPy's npz files: dense or CSR rows, read in batches although the arrays are compressed.

A data set consists of `X_train` and `y_train` and, if it has a split, `X_test` and `y_test`; or of `X` and `y`. A
sparse matrix is stored as its CSR arrays, `X_train_data`, `X_train_indices`, `X_train_indptr` and `X_train_shape`.

A file of some KB can contain arrays of many GB. The amount read at a time is bounded by the limits below.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy

from polyplane.readers._input_file import InputFile, seekable
from polyplane.readers._rows import (
    MixedLabelsError,
    ReadOptions,
    Rows,
    csr,
    settle_labels,
    text_labels,
    wants_text,
    whole_labels,
)
from polyplane.readers._text import NOT_UTF8

#: Maximum number of values read at a time; a single row may have more, up to the second limit.
VALUES, LARGEST_ROW = 1 << 20, 1 << 24
#: Maximum size in bytes of the labels of a batch, and of the feature names.
TEXT_BYTES = 1 << 26
#: Maximum number of features, because of 32-bit indices.
MOST_FEATURES = 2**31 - 1


def npz_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows in batches."""
    with input_file.open() as opened, seekable(opened) as file:
        try:
            with ZipFile(file) as archive:
                yield from _Archive(archive, input_file.name).pieces(options)
        except (BadZipFile, KeyError, EOFError, TypeError, RuntimeError) as error:
            reason = str(error).rstrip(".")  # RuntimeError: encrypted, or an unknown compression method
            raise ValueError(f"{input_file.name} is not a data set, or is damaged: {reason}.") from None
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: the offset of an array is negative
                raise
            raise ValueError(f"{input_file.name} is damaged: its directory is wrong.") from None


class _Member:
    """An array in an archive, with one of the dtype kinds in `kinds`, read sequentially."""

    def __init__(self, archive: ZipFile, key: str, kinds: str) -> None:
        self.key, self.file = key, archive.open(f"{key}.npy")
        try:
            major, _ = npy.read_magic(self.file)
            header = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
            self.shape, by_column, self.dtype = header(self.file)
        except (BadZipFile, EOFError, OSError, RuntimeError):
            raise
        except Exception:  # the header is Python source, and NumPy's parser can raise any exception
            raise ValueError(f"The array {key!r} has a damaged header.") from None
        if self.dtype.hasobject:
            raise ValueError(f"The array {key!r} contains Python objects, which are not read for security reasons.")
        if self.dtype.kind not in kinds or not self.dtype.itemsize:
            raise ValueError(f"The array {key!r} has the unsupported dtype {self.dtype}.")
        if by_column and len(self.shape) > 1:
            raise ValueError(f"The array {key!r} is in Fortran order; save numpy.ascontiguousarray of it.")

    @property
    def width(self) -> int:
        """The number of values per row."""
        width = 1
        for length in self.shape[1:]:
            width *= length
        return width

    def is_vector(self, length: int) -> bool:
        """Whether the array is one-dimensional with this length."""
        return tuple(self.shape) == (length,)

    def take(self, n: int) -> np.ndarray:
        """Read the next `n` values or rows."""
        size = n * self.width * self.dtype.itemsize
        raw = self.file.read(size)
        if len(raw) != size:
            raise EOFError(f"the array {self.key!r} ends early")
        return np.frombuffer(raw, dtype=self.dtype).reshape(n, *([self.width] if len(self.shape) > 1 else []))


class _Archive:
    """A data set in a zip archive."""

    def __init__(self, archive: ZipFile, name: str) -> None:
        self.archive = archive
        self.name = name
        self.keys = {member.removesuffix(".npy") for member in archive.namelist()}

    def pieces(self, options: ReadOptions) -> Iterator[Rows]:
        """Yield the rows of the requested part."""
        X_key, y_key = self._part(options.part)
        matrix: _Dense | _Sparse = (_Dense if X_key in self.keys else _Sparse)(self.archive, X_key, self.name)
        if options.n_features is not None and matrix.n_features != options.n_features:
            raise ValueError(f"{self.name} has {matrix.n_features} features, but {options.n_features} are expected.")
        labels = None if options.labels == "ignore" else self._labels(y_key, matrix.n_rows)
        names, start = self._names(matrix.n_features), 0
        most_rows = VALUES if labels is None else max(1, TEXT_BYTES // labels.dtype.itemsize)
        while start < matrix.n_rows:
            X = matrix.take(min(most_rows, matrix.n_rows - start), options)
            _check_finite(X, start, self.name)
            n_rows = X.shape[0]
            y = None if labels is None else _settled(labels.take(n_rows), options, self.name)
            yield Rows(X, y, names, np.arange(start + 1, start + n_rows + 1), {"format": "npz"})
            start += n_rows

    def _part(self, part: str) -> tuple[str, str]:
        """Return the keys of the rows and of the labels; a data set without a split has one part."""
        for which in (part, "train"):
            if {f"X_{which}", f"X_{which}_data"} & self.keys:
                return f"X_{which}", f"y_{which}"
        if {"X", "X_data"} & self.keys:
            return "X", "y"
        raise ValueError(f"{self.name} is not a data set: it has neither an array 'X_train' nor 'X'.")

    def _labels(self, key: str, n_rows: int) -> _Member:
        if key not in self.keys:
            raise ValueError(f"{self.name} has no labels: it has no array {key!r}.")
        labels = _Member(self.archive, key, "biufUS")
        if not labels.is_vector(n_rows):
            raise ValueError(f"{self.name} has {n_rows} rows, but its labels {key!r} have the shape {labels.shape}.")
        if labels.dtype.itemsize > TEXT_BYTES:
            raise ValueError(f"{self.name}: the labels {key!r} take more than {TEXT_BYTES >> 20} MB each.")
        return labels

    def _names(self, n_features: int) -> tuple[str, ...] | None:
        if "feature_names" not in self.keys:
            return None
        member = _Member(self.archive, "feature_names", "US")
        if not member.is_vector(n_features):
            return None
        if n_features * member.dtype.itemsize > TEXT_BYTES:
            raise ValueError(f"{self.name}: the feature names take more than {TEXT_BYTES >> 20} MB.")
        return tuple(_texts(member.take(n_features), self.name))


class _Dense:
    """A matrix, or an array with more axes: all except the first are flattened to features."""

    def __init__(self, archive: ZipFile, key: str, name: str) -> None:
        self.values = _Member(archive, key, "biuf")
        if len(self.values.shape) < 2:
            raise ValueError(f"{name}: the array {key!r} is not a matrix.")
        self.n_rows, self.n_features = self.values.shape[0], self.values.width
        if not 0 < self.n_features <= LARGEST_ROW:
            raise ValueError(
                f"{name}: the rows of {key!r} have {self.n_features:,} features, not 1 to {LARGEST_ROW:,}."
            )

    def take(self, most_rows: int, options: ReadOptions) -> np.ndarray:
        """Read the next rows."""
        return self.values.take(min(most_rows, max(1, VALUES // self.n_features))).astype(options.dtype)


class _Sparse:
    """A CSR matrix, stored as four arrays."""

    def __init__(self, archive: ZipFile, key: str, name: str) -> None:
        kinds = {"data": "biuf", "indices": "iu", "indptr": "iu", "shape": "iu"}
        self.data, self.indices, self.ends, shape = (
            _Member(archive, f"{key}_{part}", kind) for part, kind in kinds.items()
        )
        self.name = name
        if not shape.is_vector(2):
            raise self._damage("its shape is not two numbers")
        self.n_rows, self.n_features = (int(n) for n in shape.take(2))
        if not 0 < self.n_features <= MOST_FEATURES:
            raise ValueError(f"{name}: the rows of {key!r} have {self.n_features:,} features, not 1 to 2,147,483,647.")
        if (
            not self.ends.is_vector(self.n_rows + 1)
            or len(self.data.shape) != 1
            or self.data.shape != self.indices.shape
        ):
            raise self._damage(f"the arrays of {key!r} do not fit together")
        self.at = int(self._edges(1)[0])
        if self.at != 0:
            raise self._damage(f"the rows of {key!r} do not begin with its first value")
        self.stops, self.n_unread = np.empty(0, dtype=np.int64), self.n_rows  # where the next rows end, read ahead

    def take(self, most_rows: int, options: ReadOptions) -> Any:
        """Read the next rows: with up to `VALUES` values, or a single row."""
        if not len(self.stops):
            self.stops = self._edges(min(VALUES // 16, self.n_unread))
            self.n_unread -= len(self.stops)
            if (np.diff(self.stops, prepend=self.at) < 0).any():
                raise self._damage("its rows do not follow each other")
        n_rows = max(1, min(most_rows, int(np.searchsorted(self.stops, self.at + VALUES, side="right"))))
        stops, self.stops = self.stops[:n_rows], self.stops[n_rows:]
        X = self._matrix(np.concatenate([[0], stops - self.at]), options)
        self.at = int(stops[-1])
        return X

    def _matrix(self, indptr: np.ndarray, options: ReadOptions) -> Any:
        n_values = int(indptr[-1])
        if n_values > LARGEST_ROW:
            raise ValueError(f"{self.name} has a row of {n_values:,} values; at most {LARGEST_ROW:,} are supported.")
        values, places = self.data.take(n_values).astype(options.dtype), self.indices.take(n_values)
        if n_values and not 0 <= places.min() <= places.max() < self.n_features:
            raise self._damage(f"a feature index is beyond the {self.n_features} features")
        X = csr(values, places.astype(np.int32), indptr, self.n_features)
        X.has_canonical_format = False
        X.sum_duplicates()
        return X

    def _edges(self, n: int) -> np.ndarray:
        """Read the next entries of `indptr`."""
        edges = self.ends.take(n)
        if not 0 <= edges.min() <= edges.max() <= self.data.shape[0]:
            raise self._damage("a row ends beyond the values")
        return edges.astype(np.int64)

    def _damage(self, reason: str) -> ValueError:
        return ValueError(f"{self.name} is damaged: {reason}.")


def _check_finite(X: Any, start: int, name: str) -> None:
    values = X.data if hasattr(X, "indptr") else X
    if np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    wrong = (~np.isfinite(values)).reshape(-1)
    place = int(wrong.argmax())
    row = int(np.searchsorted(X.indptr, place, side="right")) - 1 if hasattr(X, "indptr") else place // X.shape[1]
    raise ValueError(
        f"{name}, row {start + row + 1}: the value is missing or infinite; impute missing values or drop such rows "
        "first."
    )


def _settled(values: np.ndarray, options: ReadOptions, name: str) -> np.ndarray:
    """Convert labels to numbers or strings."""
    is_text = values.dtype.kind in "US"
    if wants_text(options, is_text):
        return text_labels(_texts(values, name) if is_text else list(map(str, values.tolist())))
    if is_text:
        raise MixedLabelsError(f"{name}: the labels are strings, but those of the model are numbers.")
    if values.dtype.kind in "iu":
        return whole_labels(values, options, name)
    return settle_labels(values.astype(np.float64), options, name)


def _texts(values: np.ndarray, name: str) -> list[str]:
    try:
        texts: list[str] = (np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values).tolist()
    except UnicodeDecodeError:
        raise ValueError(f"{name}: {NOT_UTF8}.") from None
    return texts
