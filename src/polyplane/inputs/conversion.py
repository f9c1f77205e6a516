"""Conversion of cells to the form of a column: numbers, dates and booleans from strings, and levels from any value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from polyplane.inputs.cells import DATES, Cells, text_of

#: Numbers as strings, by decimal separator. With a decimal comma, "1.234" is not a number: it may mean 1234.
_NUMBERS = {
    sign: re.compile(rf"[+-]?(\d+({mark}\d*)?|{mark}\d+)([eE][+-]?\d+)?") for sign, mark in ((".", r"\."), (",", ","))
}
#: Codes with leading zeros, such as postal codes, which numbers would drop.
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?(?P<zone>\s?(?:Z|[+-]\d{2}:?\d{2}))?"
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


def as_numbers(cells: Cells, decimal: str) -> np.ndarray:
    """Convert values to float64, with NaN for missing values."""
    if cells.form == "date":
        raise _wrong(cells, "dates", "numbers")
    values = cells.values
    if cells.form == "text":
        values = _read_levels(cells, number_reader(decimal), "number", np.float64)
    with np.errstate(invalid="ignore"):
        extreme = np.abs(values) > LARGEST
    if extreme.any():
        row = cells.first_row(extreme)
        raise ValueError(
            f"Column {cells.name!r} contains {values[row]:g} in row {row}: numbers must be finite and at most "
            f"{LARGEST:g} in absolute value. Replace it, or mark it as missing (NaN)."
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
    if cells.form == "date":
        return result, tuple(str(value).removesuffix("T00:00:00.000000") for value in values)
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
