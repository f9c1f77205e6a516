"""Fitted columns as plain data: one class for each kind of column."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyplane.inputs.cells import Cells, as_booleans, as_dates, as_levels, as_numbers

#: Parts of a date, in addition to the date itself, as numbers; the day of the week is from 1 (Monday) to 7.
DATE_PARTS = ("year", "month", "day of week", "hour")


class Feature(NamedTuple):
    """The meaning of one encoded feature.

    Parameters
    ----------
    column : str
        The table column.
    part : str
        "number", "level" (1 where the column has this level), "other" (a rare or unknown level), "missing", "true"
        (of a boolean column), "days" (a date as days since 1970), or "year", "month", "day of week" and "hour".
    level : str or None
        The category level, if any.
    """

    column: str
    part: str
    level: str | None = None

    @property
    def name(self) -> str:
        """The name of the feature, for people."""
        match self.part:
            case "number":
                return self.column
            case "level":
                return f"{self.column} = {self.level}"
            case "other" | "true":
                return f"{self.column} = {self.part}"
            case "missing":
                return f"{self.column} is missing"
        return f"{self.column} ({self.part})"

    @property
    def is_indicator(self) -> bool:
        """Whether the values of the feature are 0 and 1."""
        return self.part in ("level", "other", "missing", "true")


class Range(NamedTuple):
    """The training range of a numeric column, or of a date column in days.

    Parameters
    ----------
    low, high : float
        The smallest and the largest value.
    spread : float
        The interquartile range, or the standard deviation if that is 0; changes are measured in this unit.
    """

    low: float
    high: float
    spread: float

    @classmethod
    def of(cls, values: np.ndarray) -> Range:
        """Compute the range of the values that are not missing."""
        first, third = np.quantile(values, [0.25, 0.75])
        spread = float(third - first) or float(values.std()) or 1.0
        return cls(float(values.min()), float(values.max()), spread)


class Entry(NamedTuple):
    """What an entry of plain data must be, and how it is converted."""

    wanted: str
    is_valid: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for float
        return False


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value) and len(set(value)) == len(value)


def _is_range(value: Any) -> bool:
    is_three = isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))
    return is_three and value[0] <= value[1] and value[2] > 0


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(item) and item >= 0 and item == int(item) for item in value)


TEXT = Entry("a string", lambda value: isinstance(value, str))
FLAG = Entry("true or false", lambda value: isinstance(value, bool))
NUMBER = Entry("a finite number", _is_number, float)
TEXTS = Entry("a list of distinct strings", _are_texts, tuple)
COUNTS = Entry("a list of non-negative integers", _are_counts, lambda value: tuple(map(int, value)))
RANGE = Entry("a list of low, high and a positive spread", _is_range, lambda value: Range(*map(float, value)))


def one_of(values: Collection[str]) -> Entry:
    """An entry that is one of some texts."""
    return Entry(f"one of {', '.join(sorted(values))}", lambda value: isinstance(value, str) and value in values)


def read_entries(what: str, value: Any, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Validate plain data from JSON: each entry must exist and be valid, and there must be no others."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a dict, not a {type(value).__name__}.")
    for name, entry in entries.items():
        if name not in value:
            raise ValueError(f"{what} has no {name!r}.")
        if not entry.is_valid(value[name]):
            raise ValueError(f"{what} has an invalid {name!r}: it must be {entry.wanted}.")
    for name in value:
        if name not in entries:
            raise ValueError(f"{what} has an unknown entry, {name!r}.")
    return {name: entry.convert(value[name]) for name, entry in entries.items()}


@dataclass(frozen=True)
class Column(ABC):
    """One column. A missing value gives a neutral value and, if values were missing in fitting, a 1 in an indicator."""

    name: str
    has_gaps: bool

    kind: ClassVar[str]
    #: The fields of this kind of column in plain data.
    entries: ClassVar[Mapping[str, Entry]]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The encoded features."""
        own = tuple(Feature(self.name, part, level) for part, level in self._parts())
        return (*own, Feature(self.name, "missing")) if self.has_gaps else own

    def encode(self, cells: Cells, out: np.ndarray) -> None:
        """Write the features of some rows into an array of zeros, shape (n_rows, n_features)."""
        self._encode(cells, out)
        if self.has_gaps:
            out[:, -1] = cells.is_gap

    def _present(self, *values: float) -> np.ndarray:
        """The features of a value that is not missing."""
        return np.array([*values, 0.0] if self.has_gaps else values)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data, for JSON."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"kind": self.kind, **values}

    @property
    @abstractmethod
    def reference(self) -> np.ndarray:
        """The features of the reference value: the median, or the most frequent level."""

    @abstractmethod
    def _parts(self) -> list[tuple[str, str | None]]:
        """Return the parts of the column that become features, with their levels."""

    @abstractmethod
    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        """Write the features, except for the indicator of missing values."""


@dataclass(frozen=True)
class NumberColumn(Column):
    """A numeric column; the neutral value is the median."""

    neutral: float
    decimal: str
    range: Range
    is_whole: bool

    kind = "number"
    entries = MappingProxyType({"neutral": NUMBER, "decimal": one_of((".", ",")), "range": RANGE, "is_whole": FLAG})

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("number", None)]

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        values = as_numbers(cells, self.decimal)
        out[:, 0] = np.where(np.isnan(values), self.neutral, values)

    @property
    def reference(self) -> np.ndarray:
        """Features of the median."""
        return self._present(self.neutral)


@dataclass(frozen=True)
class BooleanColumn(Column):
    """A boolean column, 1 for true and 0 for false; the neutral value is the share of true."""

    neutral: float

    kind = "boolean"
    entries = MappingProxyType({"neutral": NUMBER})

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("true", None)]

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        values = as_booleans(cells)
        out[:, 0] = np.where(np.isnan(values), self.neutral, values)

    @property
    def reference(self) -> np.ndarray:
        """Features of the more frequent value."""
        return self._present(float(self.neutral > 0.5))


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A categorical column: an indicator for each level, and one for other levels if there were any in fitting.

    `counts` are the numbers of rows of each level in fitting, and last of the other levels.
    """

    levels: tuple[str, ...]
    has_other: bool
    counts: tuple[int, ...]

    kind = "category"
    entries = MappingProxyType({"levels": TEXTS, "has_other": FLAG, "counts": COUNTS})

    @cached_property
    def _index(self) -> dict[str, int]:
        return {level: j for j, level in enumerate(self.levels)}

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("level", level) for level in self.levels] + ([("other", None)] if self.has_other else [])

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        codes, levels = as_levels(cells)
        other = len(self.levels) if self.has_other else -1
        column = np.array([*(self._index.get(level, other) for level in levels), -1])[codes]
        rows = np.flatnonzero(column >= 0)
        out[rows, column[rows]] = 1.0

    @property
    def reference(self) -> np.ndarray:
        """Features of the most frequent level."""
        levels = np.zeros(len(self.counts))
        if len(levels):
            levels[np.argmax(self.counts)] = 1.0
        return self._present(*levels.tolist())


@dataclass(frozen=True)
class DateColumn(Column):
    """A date column: days since 1970, and the parts of the date that vary; the neutral value is the median date."""

    neutral: float
    parts: tuple[str, ...]
    range: Range

    kind = "date"
    entries = MappingProxyType(
        {
            "neutral": Entry(
                "a number of days in the range of dates", lambda v: _is_number(v) and abs(v) <= 4e6, float
            ),
            "parts": Entry(
                f"a subset of {', '.join(DATE_PARTS)}", lambda v: _are_texts(v) and set(v) <= set(DATE_PARTS), tuple
            ),
            "range": RANGE,
        }
    )

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("days", None), *((part, None) for part in self.parts)]

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        dates = as_dates(cells)
        median = np.datetime64(0, "us") + np.timedelta64(round(self.neutral * 86_400e6), "us")
        dates = np.where(np.isnat(dates), median, dates)
        out[:, 0] = days(dates)
        for j, part in enumerate(self.parts, start=1):
            out[:, j] = date_part(dates, part)

    @property
    def reference(self) -> np.ndarray:
        """Features of the median date."""
        return self._present(*self.of_day(self.neutral).tolist())

    def of_day(self, day: float) -> np.ndarray:
        """Return a date as days since 1970, and its parts."""
        date = np.array([np.datetime64(0, "us") + np.timedelta64(round(day * 86_400e6), "us")])
        return np.concatenate([days(date), *(date_part(date, part) for part in self.parts)]).astype(np.float64)


def days(dates: np.ndarray) -> np.ndarray:
    """Convert dates to days since 1970."""
    return (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D")


def date_part(dates: np.ndarray, part: str) -> np.ndarray:
    """A part of the date as a number."""
    whole = dates.astype("datetime64[D]")
    match part:
        case "year":
            return dates.astype("datetime64[Y]").astype(np.int64) + 1970
        case "month":
            return dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
        case "day of week":
            return (whole.astype(np.int64) + 3) % 7 + 1
    return (dates - whole) // np.timedelta64(1, "h")


COLUMNS: dict[str, type[Column]] = {c.kind: c for c in (NumberColumn, CategoryColumn, BooleanColumn, DateColumn)}


def column_from_dict(value: Any) -> Column:
    """Read the output of `Column.to_dict`; anything else is an error."""
    named = value if isinstance(value, dict) else {}
    what = f"Column {named['name']!r}" if isinstance(named.get("name"), str) else "A column"
    found = COLUMNS.get(str(named.get("kind")), Column)
    common = {"name": TEXT, "kind": one_of(COLUMNS), "has_gaps": FLAG}
    fields = read_entries(what, value, common if found is Column else {**common, **found.entries})
    del fields["kind"]
    if "counts" in fields and len(fields["counts"]) != len(fields["levels"]) + fields["has_other"]:
        raise ValueError(f"{what} has an invalid 'counts': it must be a list of one count per level.")
    return found(**fields)
