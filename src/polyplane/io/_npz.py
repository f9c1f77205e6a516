"""NumPy's npz files: dense or CSR rows, read some at a time although the members are compressed.

A set is `X_train` and `y_train` and, where it has a split, `X_test` and `y_test`; plain `X` and `y` are taken as well.
A sparse matrix is its CSR pieces, `X_train_data`, `X_train_indices`, `X_train_indptr` and `X_train_shape`.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy

from polyplane.io._input_file import InputFile
from polyplane.io._rows import MixedLabelsError, ReadOptions, Rows, csr, settle_labels, wants_text

#: Numbers taken out of a file at a time.
VALUES = 1 << 20


def npz_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """The rows, some at a time."""
    with input_file.open() as opened:
        file = opened if opened.seekable() and not input_file.is_stdin else BytesIO(opened.read())
        try:
            with ZipFile(file) as archive:
                yield from _Archive(archive, input_file.name).pieces(options)
        except (BadZipFile, KeyError, EOFError, TypeError) as error:
            raise ValueError(f"{input_file.name} is not a data set, or is damaged: {error}.") from None


class _Member:
    """An array in an archive, read from front to back."""

    def __init__(self, archive: ZipFile, key: str) -> None:
        self.file = archive.open(f"{key}.npy")
        major, _ = npy.read_magic(self.file)
        header = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
        self.shape, self.by_column, self.dtype = header(self.file)
        if self.dtype.hasobject:
            raise ValueError(f"The array {key!r} holds Python objects, which are not read: they could run code.")
        if self.by_column and len(self.shape) > 1:
            raise ValueError(f"The array {key!r} is stored by columns; save numpy.ascontiguousarray of it.")

    def take(self, n: int) -> np.ndarray:
        """The next `n` entries or rows."""
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        raw = self.file.read(n * width * self.dtype.itemsize)
        if len(raw) != n * width * self.dtype.itemsize:
            raise EOFError("an array ends early")
        return np.frombuffer(raw, dtype=self.dtype).reshape(n, *([width] if len(self.shape) > 1 else []))


class _Archive:
    """A data set in a zip archive."""

    def __init__(self, archive: ZipFile, name: str) -> None:
        self.archive = archive
        self.name = name
        self.keys = {member.removesuffix(".npy") for member in archive.namelist()}

    def pieces(self, options: ReadOptions) -> Iterator[Rows]:
        """The rows of the part that is asked for."""
        X_key, y_key = self._part(options.part)
        labels = None
        if options.labels != "ignore":
            if y_key not in self.keys:
                raise ValueError(f"{self.name} has no labels: there is no array {y_key!r} in it.")
            labels = _Member(self.archive, y_key)
        names = self._names()
        start = 0
        for X in self._matrices(X_key, options):
            if options.n_features is not None and X.shape[1] != options.n_features:
                raise ValueError(f"{self.name} has {X.shape[1]} features where {options.n_features} are expected.")
            _check_finite(X, start, self.name)
            n_rows = X.shape[0]
            y = None if labels is None else _labels(labels.take(n_rows), options, self.name)
            lines = np.arange(start + 1, start + n_rows + 1)
            fitting = names if names is not None and len(names) == X.shape[1] else None
            yield Rows(X, y, fitting, lines, {"format": "npz"})
            start += n_rows

    def _part(self, part: str) -> tuple[str, str]:
        """The keys of the rows and of the labels; a set without a split has one part."""
        for which in (part, "train"):
            if {f"X_{which}", f"X_{which}_data"} & self.keys:
                return f"X_{which}", f"y_{which}"
        if {"X", "X_data"} & self.keys:
            return "X", "y"
        raise ValueError(f"{self.name} holds no data set: there is neither an array 'X_train' nor 'X' in it.")

    def _names(self) -> tuple[str, ...] | None:
        if "feature_names" not in self.keys:
            return None
        member = _Member(self.archive, "feature_names")
        return tuple(str(feature) for feature in member.take(member.shape[0]))

    def _matrices(self, key: str, options: ReadOptions) -> Iterator[Any]:
        if key in self.keys:
            rows = _Member(self.archive, key)
            if len(rows.shape) < 2:
                raise ValueError(f"{self.name}: the array {key!r} is not a matrix.")
            size = max(1, VALUES // max(1, int(np.prod(rows.shape[1:]))))
            for start in range(0, rows.shape[0], size):
                yield rows.take(min(size, rows.shape[0] - start)).astype(options.dtype)
            return
        yield from self._sparse_matrices(key, options)

    def _sparse_matrices(self, key: str, options: ReadOptions) -> Iterator[Any]:
        data, indices, ends, shape = (
            _Member(self.archive, f"{key}_{part}") for part in ("data", "indices", "indptr", "shape")
        )
        n_rows, n_features = (int(n) for n in shape.take(2))
        at = int(ends.take(1)[0])
        size = VALUES // 16
        for start in range(0, n_rows, size):
            stops = ends.take(min(size, n_rows - start)).astype(np.int64)
            n_values = int(stops[-1]) - at
            values, places = data.take(n_values).astype(options.dtype), indices.take(n_values)
            if n_values and not 0 <= places.min() <= places.max() < n_features:
                raise ValueError(f"{self.name} is damaged: a feature index is beyond the {n_features} features.")
            indptr = np.concatenate([[0], stops - at])
            if (np.diff(indptr) < 0).any():
                raise ValueError(f"{self.name} is damaged: the rows of {key!r} do not follow each other.")
            X = csr(values, places.astype(np.int32), indptr, n_features)
            X.has_canonical_format = False
            X.sum_duplicates()
            yield X
            at = int(stops[-1])


def _check_finite(X: Any, start: int, name: str) -> None:
    values = X.data if hasattr(X, "indptr") else X
    if np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    wrong = (~np.isfinite(values)).reshape(-1)
    place = int(wrong.argmax())
    row = int(np.searchsorted(X.indptr, place, side="right")) - 1 if hasattr(X, "indptr") else place // X.shape[1]
    raise ValueError(
        f"{name}, row {start + row + 1}: the value is missing or infinite, and planes need numbers: fill or drop such "
        "rows first."
    )


def _labels(values: np.ndarray, options: ReadOptions, name: str) -> np.ndarray:
    is_text = values.dtype.kind in "US"
    if wants_text(options, is_text):
        return values.astype(str)
    if is_text:
        raise MixedLabelsError(f"{name}: the labels are text, where those of the model are numbers.")
    return settle_labels(values.astype(np.float64), options)
