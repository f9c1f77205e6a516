"""`Table`: a common interface to data frames of pandas, Polars and Arrow, dicts and arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyplane._array_api import as_matrix, is_sparse
from polyplane.inputs.cells import DATES, Cells, object_cells, text_cells


@dataclass(frozen=True)
class Table:
    """A table whose columns are read on demand.

    Parameters
    ----------
    names : tuple of str
        Column names.
    is_named : bool
        Whether the input has column names; otherwise they are x0, x1 and so on.
    n_rows : int
        Number of rows.
    read : function of int
        Returns the cells of a column, given its position.
    matrix : ndarray of shape (n_rows, n_columns) or None
        The values of all columns as float64 if all are numbers, for faster encoding.
    """

    names: tuple[str, ...]
    is_named: bool
    n_rows: int
    read: Callable[[int], Cells]
    matrix: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Table:
        """Return some of the rows."""
        matrix = None if self.matrix is None else self.matrix[rows]
        return replace(self, n_rows=len(rows), read=lambda j: self.read(j).take(rows), matrix=matrix)


def read_table(X: Any, gaps: Collection[str] = ()) -> Table:
    """Convert a data frame, dicts or an array to a `Table`.

    Parameters
    ----------
    X : data frame of pandas, Polars or Arrow, array-like of shape (n_rows, n_columns), dict, list of dict, or Table
        The rows. A dict contains the values of each column, a list of dicts the values of each row.
    gaps : collection of str
        Strings that mark missing values.
    """
    if isinstance(X, Table):
        return X
    if is_sparse(X):
        raise TypeError("Sparse input is not supported. Convert it with X.toarray().")
    library = type(X).__module__.partition(".")[0]
    if hasattr(X, "collect"):
        raise TypeError(f"{type(X).__name__} is not supported: call its collect() method first.")
    if isinstance(X, list) and X and isinstance(X[0], Mapping):
        X = _by_column(X)
    if isinstance(X, Mapping):
        n_rows, (columns, cells) = _n_rows(X), _mapping(X)
    elif library in _LIBRARIES and hasattr(X, "columns"):
        n_rows, (columns, cells) = len(X), _LIBRARIES[library](X)
    elif hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns"):
        import pyarrow

        n_rows, (columns, cells) = len(X), _arrow(pyarrow.table(X))
    else:
        return _read_array(X, gaps)
    names = tuple(str(name) for name in columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Column names must be unique, but {twice!r} occurs twice; rename one of the columns.")
    if not names or not n_rows:
        raise ValueError(
            f"Found array with {len(names)} feature(s) and {n_rows} sample(s), while a minimum of 1 is required."
        )
    return Table(names, True, n_rows, lambda j: cells(j, names[j], gaps), _matrix(X) if library == "pandas" else None)


def _matrix(frame: Any) -> np.ndarray | None:
    """Return the values of a pandas frame as float64 if all columns are numbers; otherwise None."""
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in frame.dtypes):
        return None
    return np.asarray(frame.to_numpy(dtype=np.float64))


def _read_array(X: Any, gaps: Collection[str]) -> Table:
    array = as_matrix(X)
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    matrix = array.astype(np.float64) if array.dtype.kind in "iuf" else None
    return Table(names, False, len(array), lambda j: _array_cells(array[:, j], names[j], gaps), matrix)


def _by_column(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """Convert a list of dicts to columns; each row must have the columns of the first."""
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) or not row.keys() >= rows[0].keys():
            missing = next((name for name in rows[0] if not isinstance(row, Mapping) or name not in row), None)
            raise ValueError(f"Row {i} has no column {missing!r}, but the first row does: use None for missing values.")
    return {name: [row[name] for row in rows] for name in rows[0]}


def _n_rows(columns: Mapping[Any, Any]) -> int:
    """Return the common number of values of the columns."""
    n_rows = 0
    for i, (name, values) in enumerate(columns.items()):
        if isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
            raise TypeError(
                f"Column {name!r} is a {type(values).__name__}: pass the values of all rows as a list or an array, or "
                "the rows as a list of dicts."
            )
        n_rows = n_rows if i else len(values)
        if len(values) != n_rows:
            raise ValueError(f"Column {name!r} has {len(values)} values, but the columns before it have {n_rows}.")
    return n_rows


def _array_cells(values: np.ndarray, name: str, gaps: Collection[str]) -> Cells:
    kind = values.dtype.kind
    if kind in "iuf":
        return Cells(name, "number", values.astype(np.float64), is_whole=kind in "iu")
    if kind == "b":
        return Cells(name, "boolean", values.astype(np.float64))
    if kind == "M":
        return Cells(name, "date", values.astype(DATES))
    if kind == "m":
        return Cells(name, "number", values / np.timedelta64(1, "s"))
    return object_cells(name, values.tolist(), gaps)


Columns = tuple[Collection[Any], Callable[[int, str, Collection[str]], Cells]]


def _mapping(columns: Mapping[Any, Any]) -> Columns:
    values = list(columns.values())

    def cells(j: int, name: str, gaps: Collection[str]) -> Cells:
        if isinstance(values[j], np.ndarray):
            return _array_cells(values[j], name, gaps)
        return object_cells(name, list(values[j]), gaps)

    return columns.keys(), cells


def _pandas(frame: Any) -> Columns:
    columns = [series for _, series in frame.items()]

    def cells(j: int, name: str, gaps: Collection[str]) -> Cells:
        series = columns[j]
        dtype = series.dtype
        if isinstance(dtype, np.dtype) and dtype.kind != "O":
            return _array_cells(series.to_numpy(), name, gaps)
        if hasattr(dtype, "categories"):
            return text_cells(name, series.cat.codes.to_numpy(), series.cat.categories, gaps, is_declared=True)
        kind = dtype.kind
        if kind in "iufb":
            values = series.to_numpy(dtype=np.float64, na_value=np.nan)
            return Cells(name, "boolean" if kind == "b" else "number", values, is_whole=kind in "iu")
        if kind == "M":
            if getattr(dtype, "tz", None) is not None:
                series = series.dt.tz_localize(None)
            return Cells(name, "date", series.to_numpy(dtype=DATES))
        if kind == "m":
            return Cells(name, "number", series.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan))
        return object_cells(name, series.tolist(), gaps)

    return frame.columns, cells


def _polars(frame: Any) -> Columns:
    import polars

    def cells(j: int, name: str, gaps: Collection[str]) -> Cells:
        series = frame.to_series(j)
        dtype = series.dtype
        if dtype == polars.Boolean or dtype.is_numeric():
            form, values = "boolean" if dtype == polars.Boolean else "number", series.cast(polars.Float64)
            return Cells(name, form, values.to_numpy().astype(np.float64), is_whole=dtype.is_integer())  # type: ignore[arg-type]
        if dtype in (polars.Date, polars.Datetime):
            if getattr(dtype, "time_zone", None) is not None:
                series = series.dt.replace_time_zone(None)
            return Cells(name, "date", series.cast(polars.Datetime("us")).to_numpy().astype(DATES))
        if dtype in (polars.Categorical, polars.Enum):
            return replace(object_cells(name, series.cast(polars.String).to_list(), gaps), is_declared=True)
        return object_cells(name, series.to_list(), gaps)

    return frame.columns, cells


def _arrow(frame: Any) -> Columns:
    import pyarrow
    from pyarrow import compute, types

    def cells(j: int, name: str, gaps: Collection[str]) -> Cells:
        column = frame.column(j)
        if isinstance(column, pyarrow.ChunkedArray):
            column = column.combine_chunks()
        dtype = column.type
        if types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype):
            form = "boolean" if types.is_boolean(dtype) else "number"
            values = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            return Cells(name, form, values.astype(np.float64), is_whole=types.is_integer(dtype))  # type: ignore[arg-type]
        if types.is_timestamp(dtype) or types.is_date(dtype):
            if types.is_timestamp(dtype) and dtype.tz is not None:
                column = compute.local_timestamp(column)
            return Cells(name, "date", column.to_numpy(zero_copy_only=False).astype(DATES))
        if types.is_dictionary(dtype) or types.is_string(dtype) or types.is_large_string(dtype):
            coded = column if types.is_dictionary(dtype) else column.dictionary_encode()
            codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
            levels = coded.dictionary.to_pylist()
            return text_cells(name, codes, levels, gaps, is_declared=types.is_dictionary(dtype))
        return object_cells(name, column.to_pylist(), gaps)

    return frame.schema.names, cells


_LIBRARIES: dict[str, Callable[[Any], Columns]] = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}
