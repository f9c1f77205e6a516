"""`Cells`: the values of one column of any data frame library, in one of four forms."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

Form = Literal["number", "boolean", "date", "text"]
#: Dates have microsecond resolution, as in Python, Polars and Arrow, which covers all years from 1 on.
DATES = "datetime64[us]"


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
    """

    name: str
    form: Form
    values: np.ndarray
    levels: tuple[str, ...] = ()
    is_whole: bool = False
    is_declared: bool = False

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
    """Convert a value to the name of a level; None if missing. 3, 3.0 and "3" are the same level."""
    if isinstance(value, str):
        return value.strip()
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 1e15:
        return str(int(value))
    return str(value).strip()


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def object_cells(name: str, values: Sequence[Any], gaps: Collection[str]) -> Cells:
    """Return the cells of Python objects: numbers, booleans or dates if all values are, otherwise strings."""
    known: dict[Any, int] = {}
    try:
        codes = np.fromiter((known.setdefault(v, len(known)) for v in values), dtype=np.intp, count=len(values))
    except TypeError as error:
        row = next(i for i, v in enumerate(values) if type(v).__hash__ is None or isinstance(v, tuple))
        raise TypeError(
            f"Column {name!r} contains a {type(values[row]).__name__} in row {row}: the argument must be a table of "
            "strings, numbers, booleans and dates."
        ) from error
    levels = list(known)
    types = {type(level) for level in levels if not is_missing(level)}
    for form, convert, members in _FORMS:
        if types and all(issubclass(t, members) for t in types) and (form != "number" or not types & _FLAGS):
            gap = np.datetime64("NaT") if form == "date" else np.nan
            found = np.array([gap if is_missing(v) else convert(v) for v in levels], dtype=_DTYPES[form])
            return Cells(name, form, found[codes], is_whole=all(issubclass(t, _WHOLE) for t in types))
    if not types:
        return Cells(name, "number", np.full(len(values), np.nan))
    return text_cells(name, codes, levels, gaps)


_FLAGS, _WHOLE = {bool, np.bool_}, (int, np.integer)
_DTYPES: dict[str, Any] = {"boolean": np.float64, "number": np.float64, "date": DATES}


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
