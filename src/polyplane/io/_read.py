"""`read` and `batches`: rows of a file, all at once or in parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyplane.io._csv import csv_pieces
from polyplane.io._npz import npz_pieces
from polyplane.io._parquet import parquet_pieces
from polyplane.io._rows import Layout, MixedLabelsError, Rows, regroup, stack
from polyplane.io._sources import FORMATS, Source
from polyplane.io._svmlight import svmlight_pieces

READERS: dict[str, Callable[[Source, Layout], Iterator[Rows]]] = {
    "svmlight": svmlight_pieces,
    "csv": csv_pieces,
    "parquet": parquet_pieces,
    "npz": npz_pieces,
}


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | int | None = None,
    labels: str = "auto",
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = np.float64,
    part: str = "train",
) -> Rows:
    r"""Read all rows of a file.

    Parameters
    ----------
    path : str or path
        A file in svmlight (LIBSVM), CSV or TSV (with a header), Parquet or npz format, plain or compressed by gzip,
        bzip2 or xz; ``"-"`` is standard input.
    format : {"svmlight", "csv", "parquet", "npz"}, default=None
        The format; None: what the content and the extension say.
    label : str or int, default=None
        CSV and Parquet: the label column, by name or by place (from 0; -1 is the last). None: the only column called
        label, class, target or y, or else the last.
    labels : {"auto", "number", "text", "ignore"}, default="auto"
        Take labels as numbers or as text; "auto": numbers if all are. "ignore": take none; there need not be any.
    n_features : int, default=None
        The number of features; more are refused. None: as many as there are.
    feature_names : sequence of str, default=None
        CSV and Parquet: the columns to take, in this order; other columns than these and the label are refused.
    zero_based : bool or "auto", default="auto"
        svmlight: whether the first feature is 0 or 1. "auto": 0 if that index is met anywhere, as in scikit-learn.
    dtype : numpy.float64 or numpy.float32, default=numpy.float64
        The type of the features.
    part : {"train", "test"}, default="train"
        npz: which part to read; a file without a split has one.

    Returns
    -------
    rows : Rows
        `X` (CSR for svmlight and sparse npz files), `y`, `feature_names`, and the `lines` that the rows come from.

    Raises
    ------
    ValueError
        What is wrong with the file, in a sentence with the number of the line.

    Examples
    --------
    >>> import tempfile
    >>> from polyplane.io import read
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
    source = Source(path, keep=True)
    layout = _layout(source, format, label, labels, n_features, feature_names, zero_based, dtype, part)
    layout = replace(layout, whole=True)
    try:
        parts = [part for part in READERS[layout.format](source, layout) if len(part.lines)]
    except MixedLabelsError:
        if labels != "auto":
            raise
        layout = replace(layout, labels="text", findings={})
        parts = [part for part in READERS[layout.format](source, layout) if len(part.lines)]
    if not parts:
        raise ValueError(f"{source.name} has no rows.")
    return stack(parts)


class Batches:
    """Rows of a file in parts, again at each iteration; made by `batches`."""

    def __init__(self, source: Source, layout: Layout, n_rows: int | None) -> None:
        self.source = source
        self.layout = layout
        self.n_rows = n_rows

    def __iter__(self) -> Iterator[Rows]:
        layout = replace(self.layout, findings={})
        empty = True
        for part in regroup(READERS[layout.format](self.source, layout), self.n_rows):
            empty = False
            yield part
        if empty:
            raise ValueError(f"{self.source.name} has no rows.")


def batches(
    path: str | os.PathLike[str],
    rows: int | None = 65_536,
    *,
    format: str | None = None,
    label: str | int | None = None,
    labels: str = "auto",
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = np.float64,
    part: str = "train",
) -> Batches:
    r"""Read a file in parts, in bounded memory.

    Parameters
    ----------
    path : str or path
        As for `read`.
    rows : int or None, default=65536
        Rows per part, fewer where they hold more than 8 million numbers; None: as they come, a few MB at a time.
    format, label, labels, n_features, feature_names, zero_based, dtype, part
        As for `read`, but that what is "auto" is decided by the start of the file. Without `n_features`, the rows of
        an svmlight file have as many as were met so far.

    Returns
    -------
    parts : Batches
        An iterable of `Rows`, which can be iterated over again for further passes; standard input only once.

    Examples
    --------
    >>> import tempfile
    >>> from polyplane.io import batches
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("width,height,label\n1,2,small\n3,4,small\n50,60,large\n")
    ...     file.flush()
    ...     for part in batches(file.name, rows=2):
    ...         print(part.X.tolist(), part.y.tolist())
    [[1.0, 2.0], [3.0, 4.0]] ['small', 'small']
    [[50.0, 60.0]] ['large']
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows must be 1 or more, not {rows}.")
    source = Source(path)
    layout = _layout(source, format, label, labels, n_features, feature_names, zero_based, dtype, part)
    return Batches(source, layout, rows)


def _layout(
    source: Source,
    format: str | None,
    label: str | int | None,
    labels: str,
    n_features: int | None,
    feature_names: Sequence[str] | None,
    zero_based: bool | str,
    dtype: Any,
    part: str,
) -> Layout:
    """Check what can be checked before reading."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}.")
    if labels not in ("auto", "number", "text", "ignore"):
        raise ValueError(f"labels={labels!r} is none of 'auto', 'number', 'text', 'ignore'.")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is neither True nor False nor 'auto'.")
    if part not in ("train", "test"):
        raise ValueError(f"part={part!r} is neither 'train' nor 'test'.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is neither numpy.float32 nor numpy.float64.")
    format = format or source.format()
    return Layout(format, label, labels, n_features, feature_names, zero_based, np.dtype(dtype), part)
