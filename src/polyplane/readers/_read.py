"""`read` and `batches`: read a data file into memory or in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyplane.readers._csv import csv_pieces
from polyplane.readers._input_file import InputFile
from polyplane.readers._parquet import parquet_pieces
from polyplane.readers._rows import MixedLabelsError, ReadOptions, Rows, regroup, stack
from polyplane.readers._svmlight import svmlight_pieces

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
    empty = True
    for piece in READERS[options.format or input_file.format()](input_file, replace(options, decided={})):
        if len(piece.lines):
            empty = False
            yield piece
    if empty:
        raise ValueError(f"{input_file.name} has no rows.")


class Batches:
    """Iterable over the batches of a file, returned by `batches`; it can be iterated over repeatedly."""

    def __init__(self, input_file: InputFile, options: ReadOptions, batch_size: int | None) -> None:
        self.input_file, self.options, self.batch_size = input_file, options, batch_size

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
