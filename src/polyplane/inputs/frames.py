"""`Table`, a common interface to data frames of pandas, Polars and Arrow, dicts and arrays, and `Cells`, its columns.

The canonical text of a value is the same wherever it comes from, a frame, a file, an array or JSON, and whatever its
neighbours are; it is the name of its level if the column is a category:

* text: without leading and trailing whitespace; `true` and `false` in lower case;
* booleans: `true`, `false`;
* numbers: integers in digits (`3` also of 3.0), others in the shortest form that Python reads back (`0.1`, `1e-07`);
* dates: `2024-05-31`, or with a time that is not midnight `2024-05-31 17:30:00` or `2024-05-31 17:30:00.250000`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from os import PathLike
from typing import Any, Literal

import numpy as np

from polyplane._array_api import as_matrix, is_sparse
from polyplane._plain import did_you_mean
from polyplane.inputs.formats import DATES, LARGEST_EXACT_INTEGER, PLAIN, NumberFormat, Reader, date_reader

Form = Literal["number", "boolean", "date", "text"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The values of a column.

    Parameters
    ----------
    name : str
        Column name.
    form : {"number", "boolean", "date", "text"}
        Form of the values.
    values : ndarray of shape (n_rows,)
        float64 for numbers and booleans (0 and 1), with NaN if missing; datetime64 for dates, with NaT if missing; the
        index in `levels` for strings, with -1 if missing.
    levels : tuple of str
        The distinct strings, without leading and trailing whitespace; not all of them need to occur.
    is_whole : bool
        Whether the numbers have an integer dtype.
    is_declared : bool
        Whether the column has a categorical dtype.
    order : tuple of str
        The levels in their order, if the dtype declares one.
    """

    name: str
    form: Form
    values: np.ndarray
    levels: tuple[str, ...] = ()
    is_whole: bool = False
    is_declared: bool = False
    order: tuple[str, ...] = ()

    @property
    def is_gap(self) -> np.ndarray:
        """Whether each value is missing."""
        if self.form == "text":
            return self.values < 0
        return np.isnat(self.values) if self.form == "date" else np.isnan(self.values)

    def take(self, rows: np.ndarray) -> Cells:
        """Return some of the rows."""
        return replace(self, values=self.values[rows])

    def first_row(self, wanted: np.ndarray) -> int:
        """Return the first row for which a boolean array is true."""
        return int(np.argmax(wanted))


def text_cells(
    name: str, codes: np.ndarray, levels: Iterable[Any], gaps: Collection[str], *, is_declared: bool = False
) -> Cells:
    """Return the cells of indexed strings: whitespace is stripped, and markers of missing values become missing.

    Parameters
    ----------
    name : str
        Column name.
    codes : ndarray of shape (n_rows,)
        Index of each string; -1 if missing.
    levels : iterable of object
        The strings; other values are converted to strings.
    gaps : collection of str
        Strings that mark missing values.
    is_declared : bool, default=False
        Whether the column has a categorical dtype.
    """
    known: dict[str, int] = {}
    new = [-1 if (text := text_of(v)) is None or text in gaps else known.setdefault(text, len(known)) for v in levels]
    return Cells(name, "text", np.array([*new, -1], dtype=np.intp)[codes], tuple(known), is_declared=is_declared)


def text_of(value: Any) -> str | None:
    """Return the canonical text of a value, see the module; None if missing."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        text = value.strip()
        return text.lower() if len(text) in (4, 5) and text.lower() in ("true", "false") else text
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < LARGEST_EXACT_INTEGER else str(number)
    if isinstance(value, Decimal | Fraction):
        number = _number(value)
        return str(int(value)) if math.isfinite(number) and value == int(value) else text_of(number)
    if isinstance(value, np.datetime64):
        value = value.astype(DATES)
        return str(value).removesuffix("T00:00:00.000000").removesuffix(".000000").replace("T", " ")
    if isinstance(value, date):
        return text_of(_wall_time(value))
    return str(value).strip()


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def number_cells(name: str, values: np.ndarray, is_whole: bool, exact: Callable[[], Sequence[Any]]) -> Cells:
    """Return the cells of a column of numbers; `exact` returns them as Python integers, if floats would merge them."""
    if is_whole and len(values) and float(np.nanmax(np.abs(values), initial=0.0)) >= LARGEST_EXACT_INTEGER:
        return object_cells(name, exact(), ())
    return Cells(name, "number", values, is_whole=is_whole)


def object_cells(name: str, values: Sequence[Any], gaps: Collection[str]) -> Cells:
    """Return the cells of Python objects: numbers, booleans or dates if all values are, otherwise strings."""
    known: dict[Any, int] = {}
    types = set(map(type, values))
    if any(issubclass(t, complex | np.complexfloating) for t in types):
        raise ValueError(f"Column {name!r} contains complex numbers: convert them to real numbers.")
    # True, 1 and 1.0 are equal, and so would be their keys.
    keys = values if len(types - _TEXTS) < 2 else [(type(v), v) for v in values]
    try:
        codes = np.fromiter((known.setdefault(key, len(known)) for key in keys), dtype=np.intp, count=len(values))
    except TypeError as error:
        row = next(i for i, v in enumerate(values) if type(v).__hash__ is None or isinstance(v, tuple))
        raise TypeError(
            f"Column {name!r} contains a {type(values[row]).__name__} in row {row}: the argument must be a table of "
            "strings, numbers, booleans and dates."
        ) from error
    levels = list(known) if keys is values else [value for _, value in known]
    missing = [is_missing(value) for value in levels]
    form, convert, is_whole = _common_form(
        frozenset(type(v) for v, gone in zip(levels, missing, strict=True) if not gone)
    )
    has_wide = convert is _number and any(
        isinstance(v, int | np.integer) and abs(int(v)) >= LARGEST_EXACT_INTEGER for v in levels
    )
    if form == "text" or has_wide:
        return text_cells(name, codes, levels, gaps)
    gap = np.datetime64("NaT") if form == "date" else np.nan
    found = [gap if gone else convert(v) for v, gone in zip(levels, missing, strict=True)]
    return Cells(name, form, np.array(found, dtype=DATES if form == "date" else np.float64)[codes], is_whole=is_whole)


_TEXTS = {str, type(None)}


@cache
def _common_form(types: frozenset[type]) -> tuple[Form, Callable[[Any], Any], bool]:
    """Return the form of a column with values of these types, the conversion to it, and whether all are integers."""
    if not types:
        return "number", float, False
    for form, convert, members in _FORMS:
        if all(issubclass(t, members) and not (form == "number" and t is bool) for t in types):
            return form, convert, all(issubclass(t, int | np.integer) and t is not bool for t in types)
    return "text", str, False


def _wall_time(value: date) -> Any:
    """Return the local time of a date, without its time zone."""
    if isinstance(value, datetime):
        value = datetime(*value.timetuple()[:6], value.microsecond)  # also of pandas' Timestamp
    return np.datetime64(value, "us")


def _seconds(value: Any) -> float:
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6


#: Form of objects by type, and the conversion to it.


def _number(value: Any) -> float:
    """Return a number as a float: infinite, if an integer is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_FORMS: list[tuple[Form, Any, tuple[type, ...]]] = [
    ("boolean", float, (bool, np.bool_)),
    ("number", _number, (int, float, Decimal, Fraction, np.integer, np.floating)),
    ("date", _wall_time, (date,)),
    ("date", lambda value: value.astype(DATES), (np.datetime64,)),
    ("number", _seconds, (timedelta, time, np.timedelta64)),
]


#: Strings that a boolean column accepts.
BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "on"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n", "0", "off"), 0.0),
}
#: Largest accepted number: sums of squares remain finite.
LARGEST = 1e70


def read_boolean(text: str) -> Any:
    """Parse a boolean as 1.0 or 0.0; None for other strings."""
    return BOOLEAN_WORDS.get(text.lower())


def as_numbers(cells: Cells, format: NumberFormat = PLAIN, largest: float = LARGEST) -> np.ndarray:
    """Convert values to float64, with NaN for missing values; larger ones are an error."""
    if cells.form == "date":
        raise _wrong(cells, "dates", "numbers")
    values = cells.values
    if cells.form == "text":
        values = _read_levels(cells, format.read, "number", np.float64)
    with np.errstate(invalid="ignore"):
        extreme = np.abs(values) > largest
    if extreme.any():
        row = cells.first_row(extreme)
        raise ValueError(
            f"Column {cells.name!r} contains {values[row]:g} in row {row}: numbers must be finite and at most "
            f"{largest:g} in absolute value. Replace it, or mark it as missing (NaN)."
        )
    return values


def as_dates(cells: Cells, format: str = "") -> np.ndarray:
    """Convert values to datetime64, with NaT for missing values; `format` is that of strings."""
    if cells.form == "text":
        wanted = f"date in the format {format}" if format else "date like 2024-05-31 or 2024-05-31 17:30"
        return _read_levels(cells, date_reader(format), wanted, DATES)
    if cells.form != "date":
        if np.isnan(cells.values).all():
            return np.full(len(cells.values), np.datetime64("NaT"), dtype=DATES)
        raise _wrong(cells, f"{cells.form}s", "dates")
    return cells.values


def as_booleans(cells: Cells) -> np.ndarray:
    """Convert values to 0.0 and 1.0, with NaN for missing values."""
    if cells.form == "date":
        raise _wrong(cells, "dates", "booleans")
    if cells.form == "text":
        return _read_levels(cells, read_boolean, "boolean (true, false, yes, no, 1, 0)", np.float64)
    other = ~(np.isnan(cells.values) | (cells.values == 0) | (cells.values == 1))
    if other.any():
        row = cells.first_row(other)
        raise ValueError(f"Column {cells.name!r} contains {cells.values[row]:g} in row {row}, which is not a boolean.")
    return cells.values


def as_levels(cells: Cells) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return values as indices of levels, with -1 for missing values, and the levels."""
    if cells.form == "text":
        return cells.values, cells.levels
    gap = cells.is_gap
    if gap.all():
        return np.full(len(gap), -1), ()
    different, codes = np.unique(cells.values[~gap], return_inverse=True)
    values = different.astype(bool) if cells.form == "boolean" else different
    result = np.full(len(gap), -1)
    result[~gap] = codes
    return result, tuple(str(text_of(value)) for value in values)


def _read_levels(cells: Cells, read: Reader, wanted: str, dtype: Any) -> np.ndarray:
    """Parse each distinct string once; a string that cannot be parsed is an error if it occurs."""
    found = [read(level) for level in cells.levels]
    wrong = np.array([*(value is None for value in found), False])
    if wrong.any() and wrong[cells.values].any():
        row = cells.first_row(wrong[cells.values])
        raise ValueError(
            f"Column {cells.name!r} contains {cells.levels[cells.values[row]]!r} in row {row}, which is not a {wanted}."
        )
    gap = np.nan if dtype is np.float64 else np.datetime64("NaT")
    return np.array([*(gap if value is None else value for value in found), gap], dtype=dtype)[cells.values]


def _wrong(cells: Cells, found: str, wanted: str) -> ValueError:
    return ValueError(
        f"Column {cells.name!r} contains {found}, but {wanted} are expected: convert it, or set its kind with the "
        "`kinds` parameter."
    )


#: Frames of pandas with at most this many rows are read at once, as objects: a series for each column takes longer.
ROWS_READ_AS_OBJECTS = 16


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
    objects : function of int, or None
        Returns the values of a column as Python objects, from which few rows are encoded faster than from cells; None
        for many rows.
    """

    names: tuple[str, ...]
    is_named: bool
    n_rows: int
    read: Callable[[int], Cells]
    matrix: np.ndarray | None = None
    objects: Callable[[int], Iterable[Any]] | None = None

    def take(self, rows: np.ndarray) -> Table:
        """Return some of the rows."""
        matrix = None if self.matrix is None else self.matrix[rows]
        return replace(self, n_rows=len(rows), read=lambda j: self.read(j).take(rows), matrix=matrix, objects=None)


def as_table(X: Any, gaps: Collection[str] = (), *, is_typed: bool = True) -> Table:
    """Convert a data frame, dicts or an array to a `Table`.

    Parameters
    ----------
    X : data frame of pandas, Polars or Arrow, array-like of shape (n_rows, n_columns), dict, list of dict, or Table
        The rows. A dict contains the values of each column, a list of dicts the values of each row.
    gaps : collection of str
        Strings that mark missing values.
    is_typed : bool, default=True
        Whether the cells tell the types of the columns, as fitting needs. False: only their values matter.
    """
    if isinstance(X, Table):
        return X
    if is_sparse(X):
        raise TypeError("Sparse input is not supported. Convert it with X.toarray().")
    library = type(X).__module__.partition(".")[0]
    if isinstance(X, str | PathLike):
        raise TypeError(f"X is {str(X)!r}, not a table: read the file first, for example with pandas.read_csv.")
    if hasattr(X, "collect"):
        raise TypeError(f"{type(X).__name__} is not supported: call its collect() method first.")
    n_given = 0
    if isinstance(X, list) and X and isinstance(X[0], Mapping):
        n_given, X = len(X), _by_column(X)
    columns: Collection[Any]
    objects: Callable[[int], Any] | None = None
    if isinstance(X, Mapping):
        n_rows, columns, objects = n_given or _n_rows(X), X.keys(), list(X.values()).__getitem__
    elif library == "pandas" and hasattr(X, "iloc") and not is_typed and len(X) <= ROWS_READ_AS_OBJECTS:
        n_rows, columns, objects = len(X), X.columns.tolist(), X.to_numpy(dtype=object).T.tolist().__getitem__
    elif library in _LIBRARIES and hasattr(X, "columns"):
        n_rows, (columns, cells) = len(X), _LIBRARIES[library](X)
    elif hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns"):
        import pyarrow

        n_rows, (columns, cells) = len(X), _arrow(pyarrow.table(X))
    else:
        return _read_array(X, gaps)
    names = tuple(map(str, columns))
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"Column names must be unique, but {twice!r} occurs twice; rename one of the columns.")
    if not names or not n_rows:
        raise ValueError(
            f"Found array with {len(names)} feature(s) and {n_rows} sample(s), while a minimum of 1 is required."
        )
    matrix = _matrix(X) if library == "pandas" and n_rows > ROWS_READ_AS_OBJECTS else None
    if objects is not None:
        few = objects if n_rows <= ROWS_READ_AS_OBJECTS else None
        return Table(names, True, n_rows, lambda j: _list_cells(objects(j), names[j], gaps), objects=few)
    return Table(names, True, n_rows, lambda j: cells(j, names[j], gaps), matrix)


def _matrix(frame: Any) -> np.ndarray | None:
    """Return the values of a pandas frame as float64 if all columns are numbers; otherwise None."""
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in frame.dtypes):
        return None
    return np.asarray(frame.to_numpy(dtype=np.float64))


def _read_array(X: Any, gaps: Collection[str]) -> Table:
    array = as_matrix(X)
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    matrix = array.astype(np.float64) if array.dtype.kind in "iuf" else None
    # The objects of durations in nanoseconds would be integers.
    few = array.T.tolist().__getitem__ if len(array) <= ROWS_READ_AS_OBJECTS and array.dtype.kind not in "mM" else None
    return Table(names, False, len(array), lambda j: _array_cells(array[:, j], names[j], gaps), matrix, few)


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
        return number_cells(name, values.astype(np.float64), kind in "iu", values.tolist)
    if kind == "b":
        return Cells(name, "boolean", values.astype(np.float64))
    if kind == "M":
        return Cells(name, "date", values.astype(DATES))
    if kind == "m":
        return Cells(name, "number", values / np.timedelta64(1, "s"))
    return object_cells(name, values.tolist(), gaps)


Columns = tuple[Collection[Any], Callable[[int, str, Collection[str]], Cells]]


def _list_cells(values: Any, name: str, gaps: Collection[str]) -> Cells:
    return _array_cells(values, name, gaps) if isinstance(values, np.ndarray) else object_cells(name, [*values], gaps)


def _pandas(frame: Any) -> Columns:
    from pandas.api.types import infer_dtype

    def cells(j: int, name: str, gaps: Collection[str]) -> Cells:
        series = frame.iloc[:, j]
        dtype = series.dtype
        if type(dtype).__name__ == "PeriodDtype":
            series = series.dt.to_timestamp()
            dtype = series.dtype
        if isinstance(dtype, np.dtype) and dtype.kind != "O":
            return _array_cells(series.to_numpy(), name, gaps)
        if hasattr(dtype, "categories"):
            found = text_cells(name, series.cat.codes.to_numpy(), series.cat.categories, gaps, is_declared=True)
            return replace(found, order=found.levels) if dtype.ordered else found
        kind = dtype.kind
        if kind in "iufb":
            values = series.to_numpy(dtype=np.float64, na_value=np.nan)
            return (
                Cells(name, "boolean", values)
                if kind == "b"
                else number_cells(name, values, kind in "iu", series.tolist)
            )
        if kind == "M":
            if getattr(dtype, "tz", None) is not None:
                series = series.dt.tz_localize(None)
            return Cells(name, "date", series.to_numpy(dtype=DATES))
        if kind == "m":
            return Cells(name, "number", series.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan))
        if infer_dtype(series) == "string":
            codes, levels = series.factorize()
            return text_cells(name, codes, levels, gaps)
        return object_cells(name, series.tolist(), gaps)

    return frame.columns, cells


def _polars(frame: Any) -> Columns:
    import polars

    def cells(j: int, name: str, gaps: Collection[str]) -> Cells:
        series = frame.to_series(j)
        dtype = series.dtype
        if dtype == polars.Boolean or dtype.is_numeric():
            values = series.cast(polars.Float64).to_numpy().astype(np.float64)
            if dtype == polars.Boolean:
                return Cells(name, "boolean", values)
            return number_cells(name, values, dtype.is_integer(), series.to_list)
        if dtype in (polars.Date, polars.Datetime):
            if getattr(dtype, "time_zone", None) is not None:
                series = series.dt.replace_time_zone(None)
            return Cells(name, "date", series.cast(polars.Datetime("us")).to_numpy().astype(DATES))
        if dtype in (polars.Categorical, polars.Enum):
            order = text_cells(name, np.zeros(0, int), getattr(dtype, "categories", ()), gaps).levels  # of an Enum
            return replace(
                object_cells(name, series.cast(polars.String).to_list(), gaps), is_declared=True, order=order
            )
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
            values = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
            if types.is_boolean(dtype):
                return Cells(name, "boolean", values)
            return number_cells(name, values, types.is_integer(dtype), column.to_pylist)
        if types.is_timestamp(dtype) or types.is_date(dtype):
            if types.is_timestamp(dtype) and dtype.tz is not None:
                column = compute.local_timestamp(column)
            return Cells(name, "date", column.to_numpy(zero_copy_only=False).astype(DATES))
        if types.is_dictionary(dtype) or types.is_string(dtype) or types.is_large_string(dtype):
            coded = column if types.is_dictionary(dtype) else column.dictionary_encode()
            indices = coded.indices.cast(pyarrow.int64())  # those of Polars are unsigned
            codes = indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
            levels = coded.dictionary.to_pylist()
            found = text_cells(name, codes, levels, gaps, is_declared=types.is_dictionary(dtype))
            return replace(found, order=found.levels) if found.is_declared and dtype.ordered else found
        return object_cells(name, column.to_pylist(), gaps)

    return frame.schema.names, cells


_LIBRARIES: dict[str, Callable[[Any], Columns]] = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}


def positions_of(wanted: Sequence[str], names: Sequence[str], is_named: bool, table: Table, owner: str) -> list[int]:
    """Return the positions of the `wanted` columns in a table: by name if all have names, otherwise by position."""
    if is_named and table.is_named:
        place = {name: j for j, name in enumerate(table.names)}
        missing = [name for name in wanted if name not in place]
        if missing:
            raise ValueError(_missing_sentence(missing, table.names))
        return [place[name] for name in wanted]
    if len(table.names) != len(names):
        raise ValueError(f"X has {len(table.names)} features, but {owner} is expecting {len(names)} features as input.")
    place = {name: j for j, name in enumerate(names)}
    return [place[name] for name in wanted]


def _missing_sentence(missing: list[str], names: tuple[str, ...]) -> str:
    listed = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    if len(missing) > 1:
        return f"The table has no columns {listed}, which were present during fit."
    return f"The table has no column {listed}, which was present during fit.{did_you_mean(missing[0], names)}"


# Concatenation, column by column.

#: The missing value of each form.
MISSING_BY_FORM = {"number": np.nan, "boolean": np.nan, "date": np.datetime64("NaT"), "text": -1}
_DTYPES = {"number": np.float64, "boolean": np.float64, "date": DATES, "text": np.intp}


def loaded(table: Table) -> Table:
    """Return the table with all columns read, so that it no longer depends on its source."""
    cells = [table.read(j) for j in range(len(table.names))]
    return replace(table, read=cells.__getitem__, objects=None)


def concatenated(tables: Sequence[Table], owner: str) -> Table:
    """Concatenate the rows of tables with the columns of the first one, in any order; `owner` is for messages."""
    first = tables[0]
    if len(tables) == 1:
        return first
    places = [positions_of(first.names, first.names, first.is_named, table, owner) for table in tables]

    def read(j: int) -> Cells:
        return concatenated_cells([table.read(place[j]) for table, place in zip(tables, places, strict=True)])

    return Table(first.names, first.is_named, sum(table.n_rows for table in tables), read)


def concatenated_cells(parts: Sequence[Cells]) -> Cells:
    """Concatenate the values of a column; parts of different forms become strings, unless all values are missing."""
    first = parts[0]
    empty = [bool(part.is_gap.all()) for part in parts]
    known = [part for part, is_empty in zip(parts, empty, strict=True) if not is_empty] or [first]
    forms = {part.form for part in known}
    form: Form = known[0].form if len(forms) == 1 else "text"
    if form == "text":
        known = [_as_text(part) for part in known]
    place: dict[str, int] = {}
    for part in known:
        for level in part.levels:
            place.setdefault(level, len(place))
    filled = iter(known)
    values = [
        np.full(len(part.values), MISSING_BY_FORM[form], dtype=_DTYPES[form])
        if is_empty
        else _values(next(filled), place)
        for part, is_empty in zip(parts, empty, strict=True)
    ]
    return Cells(
        first.name,
        form,
        np.concatenate(values),
        tuple(place),
        is_whole=all(part.is_whole for part in known),
        is_declared=any(part.is_declared for part in parts),
        order=known[0].order if len({part.order for part in known}) == 1 else (),
    )


def _as_text(cells: Cells) -> Cells:
    if cells.form == "text":
        return cells
    codes, levels = as_levels(cells)
    return Cells(cells.name, "text", codes, levels, is_declared=cells.is_declared)


def _values(cells: Cells, place: dict[str, int]) -> np.ndarray:
    """Return the values; strings as their indices in the common list of levels."""
    if cells.form != "text":
        return cells.values
    return np.array([*(place[level] for level in cells.levels), -1], dtype=np.intp)[cells.values]
