"""`Cells`: the values of one column, whatever library they come from, in one of four forms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

Form = Literal["number", "boolean", "date", "text"]
#: Dates are kept to the microsecond: from the year 1 on, and as Python, Polars and Arrow have them.
DATES = "datetime64[us]"


@dataclass(frozen=True, eq=False)
class Cells:
    """The values of a column.

    Parameters
    ----------
    name : str
        The column.
    form : {"number", "boolean", "date", "text"}
        What the values are. Texts are numbered.
    values : ndarray of shape (n_rows,)
        float64 for numbers and booleans (0 and 1), where NaN is a gap; datetime64, where NaT is a gap; for texts their
        index in `levels`, where -1 is a gap.
    levels : tuple of str
        The different texts, without blanks at their ends; not all of them need to occur.
    is_whole : bool
        Whether the numbers are integers by their type.
    is_declared : bool
        Whether the column was declared categorical by whoever made the table.
    """

    name: str
    form: Form
    values: np.ndarray
    levels: tuple[str, ...] = ()
    is_whole: bool = False
    is_declared: bool = False

    @property
    def is_gap(self) -> np.ndarray:
        """Which values are missing."""
        if self.form == "text":
            return self.values < 0
        return np.isnat(self.values) if self.form == "date" else np.isnan(self.values)

    def take(self, rows: np.ndarray) -> Cells:
        """Some of the rows."""
        return replace(self, values=self.values[rows])

    def first_row(self, wanted: np.ndarray) -> int:
        """The first row for which a boolean array is true."""
        return int(np.argmax(wanted))


def text_cells(
    name: str, codes: np.ndarray, levels: Iterable[Any], gaps: Collection[str], *, is_declared: bool = False
) -> Cells:
    """Cells of numbered texts: blanks at their ends are cut off, and those that stand for a gap become one.

    Parameters
    ----------
    name : str
        The column.
    codes : ndarray of shape (n_rows,)
        The index of each text; -1 is a gap.
    levels : iterable of object
        The texts; other values stand by their texts.
    gaps : collection of str
        Texts that stand for a gap.
    is_declared : bool, default=False
        Whether the column was declared categorical.
    """
    known: dict[str, int] = {}
    new = [-1 if (text := text_of(v)) is None or text in gaps else known.setdefault(text, len(known)) for v in levels]
    return Cells(name, "text", np.array([*new, -1], dtype=np.intp)[codes], tuple(known), is_declared=is_declared)


def text_of(value: Any) -> str | None:
    """A value as the name of a level; None for a gap. 3, 3.0 and "3" are the same level."""
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
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def object_cells(name: str, values: Sequence[Any], gaps: Collection[str]) -> Cells:
    """Cells of Python's objects: numbers, booleans or dates where all are, otherwise texts."""
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
    """A date as the clock on the wall showed it."""
    if isinstance(value, datetime):
        value = datetime(*value.timetuple()[:6], value.microsecond)  # also of pandas' Timestamp
    return np.datetime64(value, "us")


def _seconds(value: Any) -> float:
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6


#: In which form objects of some types are kept, and how they get there.
_FORMS: list[tuple[Form, Any, tuple[type, ...]]] = [
    ("boolean", float, (bool, np.bool_)),
    ("number", float, (int, float, Decimal, Fraction, np.integer, np.floating)),
    ("date", _wall_time, (date,)),
    ("date", lambda value: value.astype(DATES), (np.datetime64,)),
    ("number", _seconds, (timedelta, time, np.timedelta64)),
]
