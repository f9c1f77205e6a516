"""`Cells`: the values of one column of any data frame library, in one of four forms, and conversions between these.

The canonical text of a value is the same wherever it comes from, a frame, a file, an array or JSON, and whatever its
neighbours are; it is the name of its level if the column is a category:

* text: without leading and trailing whitespace; `true` and `false` in lower case;
* booleans: `true`, `false`;
* numbers: integers in digits (`3` also of 3.0), others in the shortest form that Python reads back (`0.1`, `1e-07`);
* dates: `2024-05-31`, or with a time that is not midnight `2024-05-31 17:30:00` or `2024-05-31 17:30:00.250000`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np

Form = Literal["number", "boolean", "date", "text"]
#: Dates have microsecond resolution, as in Python, Polars and Arrow, which covers all years from 1 on.
DATES = "datetime64[us]"
#: From here on, neighbouring integers are equal as floats, and a column of them is read as text.
EXACT = 2.0**53


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
        return str(int(number)) if number.is_integer() and abs(number) < EXACT else str(number)
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
    if is_whole and len(values) and float(np.nanmax(np.abs(values), initial=0.0)) >= EXACT:
        return object_cells(name, exact(), ())
    return Cells(name, "number", values, is_whole=is_whole)


def object_cells(name: str, values: Sequence[Any], gaps: Collection[str]) -> Cells:
    """Return the cells of Python objects: numbers, booleans or dates if all values are, otherwise strings."""
    known: dict[Any, int] = {}
    types = set(map(type, values))
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
    has_wide = convert is _number and any(isinstance(v, int | np.integer) and abs(int(v)) >= EXACT for v in levels)
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


#: Numbers as strings, by decimal separator. With a decimal comma, "1.234" is not a number: it may mean 1234.
_NUMBERS = {
    sign: re.compile(rf"[+-]?(\d+({mark}\d*)?|{mark}\d+)([eE][+-]?\d+)?", flags=re.ASCII)
    for sign, mark in ((".", r"\."), (",", ","))
}
#: Codes with leading zeros, such as postal codes, which numbers would drop.
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?(?P<zone> ?(?:Z|[+-]\d{2}:?\d{2}))?",
    flags=re.ASCII,
)
#: Strings that a boolean column accepts.
BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "on"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n", "0", "off"), 0.0),
}
#: Largest accepted number: sums of squares remain finite.
LARGEST = 1e70

Reader = Callable[[str], Any]


def number_reader(decimal: str) -> Reader:
    """Return a function that parses a number from a string, or returns None."""
    pattern = _NUMBERS[decimal]
    return lambda text: float(text.replace(",", ".")) if pattern.fullmatch(text) else None


def read_date(text: str) -> Any:
    """Parse a date in ISO 8601 format as local time, without its time zone; None for other strings."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    zone = found["zone"] or ""
    try:
        return np.datetime64(text.removesuffix(zone).replace(",", "."), "us")
    except ValueError:  # the 30th of February
        return None


def read_boolean(text: str) -> Any:
    """Parse a boolean as 1.0 or 0.0; None for other strings."""
    return BOOLEAN_WORDS.get(text.lower())


def looks_like_numbers(levels: Iterable[str], decimal: str) -> bool:
    """Return whether all strings are numbers without leading zeros."""
    read = number_reader(decimal)
    return all(not _LEADING_ZERO.fullmatch(text) and read(text) is not None for text in levels)


def looks_like_dates(levels: Iterable[str]) -> bool:
    """Return whether all strings are dates."""
    return all(read_date(text) is not None for text in levels)


def as_numbers(cells: Cells, decimal: str, largest: float = LARGEST) -> np.ndarray:
    """Convert values to float64, with NaN for missing values; larger ones are an error."""
    if cells.form == "date":
        raise _wrong(cells, "dates", "numbers")
    values = cells.values
    if cells.form == "text":
        values = _read_levels(cells, number_reader(decimal), "number", np.float64)
    with np.errstate(invalid="ignore"):
        extreme = np.abs(values) > largest
    if extreme.any():
        row = cells.first_row(extreme)
        raise ValueError(
            f"Column {cells.name!r} contains {values[row]:g} in row {row}: numbers must be finite and at most "
            f"{largest:g} in absolute value. Replace it, or mark it as missing (NaN)."
        )
    return values


def as_dates(cells: Cells) -> np.ndarray:
    """Convert values to datetime64, with NaT for missing values."""
    if cells.form == "text":
        return _read_levels(cells, read_date, "date like 2024-05-31 or 2024-05-31 17:30", DATES)
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
        comma = ' For decimal commas, set decimal=",".' if wanted == "number" and _is_comma(cells, row) else ""
        raise ValueError(
            f"Column {cells.name!r} contains {cells.levels[cells.values[row]]!r} in row {row}, which is not a {wanted}."
            f"{comma}"
        )
    gap = np.nan if dtype is np.float64 else np.datetime64("NaT")
    return np.array([*(gap if value is None else value for value in found), gap], dtype=dtype)[cells.values]


def _is_comma(cells: Cells, row: int) -> bool:
    return number_reader(",")(cells.levels[cells.values[row]]) is not None


def _wrong(cells: Cells, found: str, wanted: str) -> ValueError:
    return ValueError(
        f"Column {cells.name!r} contains {found}, but {wanted} are expected: convert it, or set its kind with the "
        "`kinds` parameter."
    )
