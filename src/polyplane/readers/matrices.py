"""`read` and `batches`: numeric data files as matrices, in memory or in batches; Parquet files among them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyplane.readers.rows import (
    LABEL,
    ColumnUses,
    MixedLabelsError,
    NotNumbersError,
    ReadOptions,
    Rows,
    choose_columns,
    convert_labels,
    regroup,
    stack,
)
from polyplane.readers.source import InputFile
from polyplane.readers.tables import open_parquet
from polyplane.readers.text import csv_pieces, svmlight_pieces

#: Maximum number of values of a Parquet file read at a time.
MAX_PARQUET_VALUES = 1 << 20


def parquet_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of a Parquet file in batches."""
    name = input_file.name
    with open_parquet(input_file) as table:
        columns = choose_columns(table.schema_arrow.names, options, name)
        for field, use in zip(table.schema_arrow, columns.uses, strict=True):
            if use >= 0 and not _is_numeric(field.type):
                raise NotNumbersError(
                    f"{name}: column {field.name!r} is of type {field.type}; encode such columns as numbers first (for "
                    "instance one-hot)."
                )
        first = 1
        for batch in table.iter_batches(max(1, MAX_PARQUET_VALUES // len(columns.header))):
            if batch.num_rows:
                yield _parquet_rows(batch, columns, first, options, name)
            first += batch.num_rows


def _is_numeric(column_type: Any) -> bool:
    from pyarrow import types

    return any(test(column_type) for test in (types.is_integer, types.is_floating, types.is_boolean))


def _parquet_rows(batch: Any, columns: ColumnUses, first: int, options: ReadOptions, name: str) -> Rows:
    X, y = np.empty((batch.num_rows, len(columns.names)), dtype=options.dtype), None
    for cell, use, column in zip(columns.header, columns.uses, batch.columns, strict=True):
        if use == LABEL:
            y = _parquet_labels(column, options, first, name)
        elif use >= 0:
            values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)  # missing values become NaN
            if not np.isfinite(values).all():
                row = first + int(np.isfinite(values).argmin())
                raise NotNumbersError(
                    f"{name}, row {row}, column {cell!r}: the value is missing or infinite; impute missing values or "
                    "drop such rows first."
                )
            X[:, use] = values
    lines = np.arange(first, first + batch.num_rows)
    return Rows(X, y, columns.names, lines, {"format": "parquet", "label": columns.label})


def _parquet_labels(column: Any, options: ReadOptions, first: int, name: str) -> np.ndarray:
    numbers = np.full(len(column), np.nan)
    if _is_numeric(column.type):
        numbers = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return convert_labels(
        numbers,
        np.asarray(column.is_null(nan_is_null=True)) | np.isinf(numbers),
        lambda: [str(cell) for cell in column.to_pylist()],
        lambda row: f"row {first + row}",
        options,
        name,
    )


READERS: dict[str, Callable[[InputFile, ReadOptions], Iterator[Rows]]] = {
    "svmlight": svmlight_pieces,
    "csv": csv_pieces,
    "parquet": parquet_pieces,
}


def read(
    path: str | os.PathLike[str] | InputFile,
    *,
    format: str | None = None,
    label: str | int | None = None,
    labels: str = "auto",
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = np.float64,
) -> Rows:
    r"""Read a data file into memory.

    Parameters
    ----------
    path : str or path
        A file in svmlight (LIBSVM), CSV, TSV (with a header) or Parquet format, plain or compressed by gzip,
        bzip2 or xz; ``"-"`` is standard input.
    format : {"svmlight", "csv", "parquet"}, default=None
        The format. None: detected from content and extension.
    label : str or int, default=None
        CSV and Parquet: the label column, by name or index (0 is the first, -1 the last). None: the only column named
        label, class, target or y, or else the last one.
    labels : {"auto", "number", "text", "ignore"}, default="auto"
        Read labels as numbers or as strings. "auto": as numbers if all labels are. "ignore": do not read labels, which
        may then be absent. Integers are read as 64 bits; if one is larger, "auto" reads strings. Strings are UTF-8.
    n_features : int, default=None
        The number of features; more features are an error. None: determined by the file.
    feature_names : sequence of str, default=None
        CSV and Parquet: the columns to read, in this order; other columns are ignored.
    zero_based : bool or "auto", default="auto"
        svmlight: whether feature indices start at 0 or 1. "auto": 0 if that index occurs, as in scikit-learn.
    dtype : numpy.float64 or numpy.float32, default=numpy.float64
        Data type of the features.

    Returns
    -------
    rows : Rows
        `X` (CSR for svmlight), `y`, `feature_names`, and the line numbers of the rows, `lines`.

    Raises
    ------
    ValueError
        If the file is invalid; the message names the line and the problem.

    Examples
    --------
    >>> import tempfile
    >>> from polyplane.readers import read
    >>> with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
    ...     _ = file.write("+1 1:0.5 3:2  # two of three features\n-1 2:0.25\n")
    ...     file.flush()
    ...     rows = read(file.name)
    >>> rows.X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]])
    >>> rows.y
    array([ 1, -1])
    """
    options = ReadOptions(format, label, labels, n_features, feature_names, zero_based, dtype, whole=True)
    input_file = path if isinstance(path, InputFile) else InputFile(path, keep=True)
    try:
        return stack(list(_pieces(input_file, options)))
    except MixedLabelsError:
        if labels != "auto":
            raise
        return stack(list(_pieces(input_file, replace(options, labels="text"))))


def _pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of a file in pieces; options that are "auto" are determined again."""
    is_empty, format = True, options.format or input_file.format()
    if format not in READERS:
        raise ValueError(f"{input_file.name} is in {format} format; matrices are read from {', '.join(READERS)} files.")
    for piece in READERS[format](input_file, replace(options, decided={})):
        is_empty = False
        yield piece
    if is_empty:
        raise ValueError(f"{input_file.name} has no rows.")


@dataclass(frozen=True, eq=False, repr=False)
class Batches:
    """Iterable over the batches of a file, returned by `batches`; it can be iterated over repeatedly."""

    input_file: InputFile
    options: ReadOptions
    batch_size: int | None

    def __iter__(self) -> Iterator[Rows]:
        return regroup(_pieces(self.input_file, self.options), self.batch_size)


def batches(
    path: str | os.PathLike[str] | InputFile,
    batch_size: int | None = 65_536,
    *,
    format: str | None = None,
    label: str | int | None = None,
    labels: str = "auto",
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = np.float64,
) -> Batches:
    r"""Read a data file in batches, in bounded memory.

    Parameters
    ----------
    path : str or path
        As for `read`.
    batch_size : int or None, default=65536
        Rows per batch, fewer if they have more than 8 million numbers. None: batches of a few MB.
    format, label, labels, n_features, feature_names, zero_based, dtype
        As for `read`; "auto" is decided by the start of the file. Without `n_features`, the number of features of an
        svmlight file can grow from batch to batch.

    Returns
    -------
    parts : Batches
        An iterable of `Rows`. It can be iterated over repeatedly, except for standard input.

    Examples
    --------
    >>> import tempfile
    >>> from polyplane.readers import batches
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("width,height,label\n1,2,small\n3,4,small\n50,60,large\n")
    ...     file.flush()
    ...     for part in batches(file.name, batch_size=2):
    ...         print(part.X.tolist(), part.y.tolist())
    [[1.0, 2.0], [3.0, 4.0]] ['small', 'small']
    [[50.0, 60.0]] ['large']
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be 1 or more.")
    options = ReadOptions(format, label, labels, n_features, feature_names, zero_based, dtype)
    input_file = path if isinstance(path, InputFile) else InputFile(path)
    return Batches(input_file, replace(options, format=format or input_file.format()), batch_size)
