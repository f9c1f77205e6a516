"""From the rows that a user has to encoded numbers: the columns of a table, their inference, and matrices."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyplane._array_api import as_matrix, is_sparse
from polyplane.inputs.evidence import Labels, evidence, held_out_evidence
from polyplane.inputs.formats import (
    LARGEST_EXACT_INTEGER,
    MAX_FORMAT,
    PLAIN,
    Ambiguous,
    NumberFormat,
    date_reader,
    find_date_format,
    find_number_format,
)
from polyplane.inputs.frames import (
    LARGEST,
    Cells,
    Table,
    as_booleans,
    as_dates,
    as_levels,
    as_numbers,
    as_table,
    positions_of,
    text_of,
)

#: Parts of a date, in addition to the date itself, as numbers; the day of the week is from 1 (Monday) to 7.
DATE_PARTS = ("year", "month", "day of week", "hour")


class Feature(NamedTuple):
    """The meaning of one encoded feature.

    Parameters
    ----------
    column : str
        The table column.
    part : str
        "number", "level" (1 where the column has this level), "other" (a rare or unknown level), "word" (1 where the
        text contains this word), "evidence" (of the level for a class, see `CategoryColumn`), "special" (1 where the
        number is this code), "missing", "true" (of a boolean column), "days" (a date as days since 1970), or "year",
        "month", "day of week" and "hour".
    level : str or None
        The category level, the word, the class or the code, if any.
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
            case "level" | "special":
                return f"{self.column} = {self.level}"
            case "other" | "true":
                return f"{self.column} = {self.part}"
            case "word":
                return f"{self.column} contains {self.level!r}"
            case "evidence":
                return f"{self.column}: evidence for {self.level}"
            case "missing":
                return f"{self.column} is missing"
        return f"{self.column} ({self.part})"

    @property
    def is_indicator(self) -> bool:
        """Whether the values of the feature are 0 and 1."""
        return self.part in ("level", "other", "word", "special", "missing", "true")


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
    is_optional: bool = False


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for float
        return False


def _are_strings(values: Any) -> bool:
    return all(isinstance(text, str) for text in values)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and _are_strings(value) and len(set(value)) == len(value)


def _are_codes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value)) and len({*map(float, value)}) == len(value)


def _is_range(value: Any) -> bool:
    is_three = isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))
    return is_three and value[0] <= value[1] and value[2] > 0


def _is_date_format(value: Any) -> bool:
    try:
        return isinstance(value, str) and date_reader(value) is not None
    except ValueError:
        return False


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(item) and item >= 0 and item == int(item) for item in value)


TEXT = Entry("a string", lambda value: isinstance(value, str))
FLAG = Entry("true or false", lambda value: isinstance(value, bool))
NUMBER = Entry("a finite number", _is_number, float)
TEXTS = Entry("a list of distinct strings", _are_texts, tuple)
COUNTS = Entry("a list of non-negative integers", _are_counts, lambda value: tuple(map(int, value)))
SHARES = Entry(
    "a list of numbers from 0 to 1",
    lambda value: isinstance(value, list) and all(_is_number(share) and 0 <= share <= 1 for share in value),
    lambda value: tuple(map(float, value)),
)
RANGE = Entry("a list of low, high and a positive spread", _is_range, lambda value: Range(*map(float, value)))


#: What the entry of a field is, by the annotation of the field.
ENTRIES = {
    "str": TEXT,
    "bool": FLAG,
    "int": Entry("a non-negative integer", lambda value: _are_counts([value]), int),
    "float": NUMBER,
    "Range": RANGE,
    "tuple[str, ...]": TEXTS,
    "tuple[int, ...]": COUNTS,
    "tuple[float, ...]": SHARES,
    "tuple[tuple[float, ...], ...]": Entry(
        "a list of lists of finite numbers",
        lambda value: isinstance(value, list) and all(isinstance(v, list) and all(map(_is_number, v)) for v in value),
        lambda value: tuple(tuple(map(float, own)) for own in value),
    ),
    "tuple[Column, ...]": Entry("a list", lambda v: isinstance(v, list), lambda v: tuple(map(column_from_dict, v))),
    "Mapping[str, str]": Entry(
        "a dict of strings", lambda v: isinstance(v, dict) and _are_strings([*v, *v.values()]), dict
    ),
    "Mapping[str, int]": Entry(
        "a dict of non-negative integers",
        lambda v: isinstance(v, dict) and _are_strings(v) and _are_counts([*v.values()]),
        lambda v: {name: int(n) for name, n in v.items()},
    ),
}


def entries_of(record: Any, checks: Mapping[str, Entry] = MappingProxyType({})) -> dict[str, Entry]:
    """Return the entries of a dataclass in plain data, by types or `checks`; those with a default are optional."""
    return {
        own.name: checks.get(own.name, ENTRIES[str(own.type)])._replace(
            is_optional=own.default is not MISSING or own.default_factory is not MISSING
        )
        for own in fields(record)
    }


def one_of(values: Collection[str]) -> Entry:
    """An entry that is one of some texts."""
    return Entry(f"one of {', '.join(sorted(values))}", lambda value: isinstance(value, str) and value in values)


def read_entries(what: str, value: Any, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Validate plain data from JSON: entries must exist, unless they are optional, and be valid, without others."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a dict, not a {type(value).__name__}.")
    for name, entry in entries.items():
        if name not in value and not entry.is_optional:
            raise ValueError(f"{what} has no {name!r}.")
        if name in value and not entry.is_valid(value[name]):
            raise ValueError(f"{what} has an invalid {name!r}: it must be {entry.wanted}.")
    for name in value:
        if name not in entries:
            raise ValueError(f"{what} has an unknown entry, {name!r}.")
    return {name: entry.convert(value[name]) for name, entry in entries.items() if name in value}


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Column(ABC):
    """One column. A missing value gives a neutral value and, if values were missing in fitting, a 1 in an indicator."""

    name: str
    has_gaps: bool

    kind: ClassVar[str]
    #: Checks of fields in plain data whose types do not tell all.
    checks: ClassVar[Mapping[str, Entry]] = MappingProxyType({})

    @property
    def features(self) -> tuple[Feature, ...]:
        """The encoded features."""
        own = tuple(Feature(self.name, part, level) for part, level in self._parts())
        return (*own, Feature(self.name, "missing")) if self.has_gaps else own

    @property
    def growing(self) -> slice | None:
        """The features whose weights tell how scores change as the column grows; None if it has no order."""
        return None

    def encode(self, cells: Cells, out: np.ndarray) -> None:
        """Write the features of some rows into an array of zeros, shape (n_rows, n_features)."""
        self._encode(cells, out)
        if self.has_gaps:
            out[:, -1] = cells.is_gap

    def entry(self, value: Any) -> tuple[int, float] | None:
        """Return the only feature of a Python object that is not 0, with its value; None if it must be read as a cell.

        The features are those of `encode`, which takes longer for a few rows.
        """
        return None

    def _present(self, *values: float) -> np.ndarray:
        """The features of a value that is not missing."""
        return np.array([*values, 0.0] if self.has_gaps else values)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data, for JSON."""
        usual = {each.name: each.default for each in fields(self)}
        values = {name: value for name, value in asdict(self).items() if value != usual[name]}
        return {"kind": self.kind, **{name: _listed(value) for name, value in values.items()}}

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
    """A numeric column; the neutral value is the median.

    The fields from `thousands` to `is_accounting` are the `NumberFormat` of strings. Numbers in `special` are codes,
    such as -999: like missing values, they give the neutral value, and each has an indicator.
    """

    neutral: float
    decimal: str
    range: Range
    is_whole: bool
    thousands: str = ""
    unit: str = ""
    has_multiples: bool = False
    is_accounting: bool = False
    special: tuple[float, ...] = ()

    kind = "number"
    checks = MappingProxyType(
        {
            "decimal": one_of((".", ",")),
            "thousands": one_of(("", ",", ".", "'", " ")),
            "unit": Entry("a short string", lambda v: isinstance(v, str) and len(v) <= MAX_FORMAT),
            "special": Entry("a list of distinct numbers", _are_codes, lambda v: tuple(map(float, v))),
        }
    )

    @cached_property
    def format(self) -> NumberFormat:
        """How the numbers are written in strings."""
        return NumberFormat(self.decimal, self.thousands, self.unit, self.has_multiples, self.is_accounting)

    @property
    def growing(self) -> slice:
        """The number."""
        return slice(0, 1)

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("number", None), *(("special", self.text_of_code(code)) for code in self.special)]

    def text_of_code(self, code: float) -> str:
        """Return a special code as text."""
        return str(text_of(code))

    def code_of(self, encoded: np.ndarray) -> float | None:
        """Return the special code with these features, if it is one."""
        return next((code for code, is_own in zip(self.special, encoded[1:], strict=False) if is_own), None)

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        values = as_numbers(cells, self.format)
        for j, code in enumerate(self.special, start=1):
            out[:, j] = values == code
        out[:, 0] = np.where(np.isnan(values) | np.isin(values, self.special), self.neutral, values)

    def entry(self, value: Any) -> tuple[int, float] | None:
        """Return the number, if it is one and no special code."""
        is_plain = is_number(value) and abs(value) <= LARGEST and value not in self.special
        return (0, value) if is_plain else None

    @property
    def reference(self) -> np.ndarray:
        """Features of the median."""
        return self._present(self.neutral, *[0.0] * len(self.special))


@dataclass(frozen=True)
class BooleanColumn(Column):
    """A boolean column, 1 for true and 0 for false; the neutral value is the share of true."""

    neutral: float

    kind = "boolean"

    @property
    def growing(self) -> slice:
        """The indicator of true."""
        return slice(0, 1)

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

    Parameters
    ----------
    levels : tuple of str
        The known levels; if the column `is_ordered`, in their order.
    has_other : bool
        Whether there is an indicator of other levels.
    counts : tuple of int
        Numbers of rows of each level in fitting, and last of the other levels.
    is_ordered : bool
        Whether the levels have an order.
    n_shared : int
        Number of levels, the last ones, without an indicator: they share that of other levels.
    evidence : tuple of tuple of float
        Numbers that the levels are also encoded as: for each class of `evidence_for`, that of each level. It is 0 for
        missing values and unknown levels.
    evidence_for : tuple of str
        The classes.
    """

    levels: tuple[str, ...]
    has_other: bool
    counts: tuple[int, ...]
    is_ordered: bool = False
    n_shared: int = 0
    evidence: tuple[tuple[float, ...], ...] = ()
    evidence_for: tuple[str, ...] = ()

    kind = "category"

    @cached_property
    def _index(self) -> dict[str, int]:
        return {level: j for j, level in enumerate(self.levels)}

    @property
    def n_own(self) -> int:
        """Number of levels with an indicator of their own."""
        return len(self.levels) - self.n_shared

    @property
    def growing(self) -> slice | None:
        """The levels after the first one, whose weights count relative to those of the level before."""
        return slice(1, len(self.levels)) if self.is_ordered else None

    @cached_property
    def encoded_levels(self) -> np.ndarray:
        """The features of each level, and last those of other levels, without the indicator of missing values."""
        found = np.zeros((len(self.levels) + self.has_other, len(self._parts())))
        self._write(np.arange(len(found)), np.arange(len(found)), found)
        return found

    def level_of(self, encoded: np.ndarray) -> int:
        """Return the index of the level with these features; of other levels, it is the number of levels."""
        own = encoded[: self.encoded_levels.shape[1]]
        return int(np.abs(self.encoded_levels - own).sum(axis=1).argmin()) if own.any() else len(self.levels)

    def index_of(self, cells: Cells) -> np.ndarray:
        """Return the index of the level of each row: the number of levels if it is another one, -1 if missing."""
        codes, levels = as_levels(cells)
        return np.array([*(self._index.get(level, len(self.levels)) for level in levels), -1])[codes]

    def held_out(self, cells: Cells, labels: Labels) -> np.ndarray:
        """Return the evidence of training rows, from other rows than themselves."""
        index = self.index_of(cells)
        return held_out_evidence(np.where(index == len(self.levels), -1, index), len(self.levels), labels)

    def _parts(self) -> list[tuple[str, str | None]]:
        own: list[tuple[str, str | None]] = [("level", level) for level in self.levels[: self.n_own]]
        return own + [("other", None)] * self.has_other + [("evidence", label) for label in self.evidence_for]

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        index = self.index_of(cells)
        rows = np.flatnonzero((index >= 0) & (index < len(self.levels) + self.has_other))
        self._write(rows, index[rows], out)

    def _write(self, rows: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        """Write the features of levels."""
        out[rows, np.minimum(index, self.n_own)] = 1.0
        for j, own in enumerate(self.evidence, start=self.n_own + self.has_other):
            out[rows, j] = np.append(own, 0.0)[index]

    def entry(self, value: Any) -> tuple[int, float] | None:
        """Return the level, if the value is the text of one, without evidence."""
        j = self._index.get(value) if type(value) is str and not self.evidence else None
        return None if j is None else (j, 1.0)

    @property
    def reference(self) -> np.ndarray:
        """Features of the most frequent level."""
        if not self.counts:
            return self._present()
        return self._present(*self.encoded_levels[np.argmax(self.counts)].tolist())


@dataclass(frozen=True)
class DateColumn(Column):
    """A date column: days since 1970, and the parts of the date that vary; the neutral value is the median date.

    `format` is that of strings, see `date_reader`; "" is ISO 8601.
    """

    neutral: float
    parts: tuple[str, ...]
    range: Range
    format: str = ""

    kind = "date"
    checks = MappingProxyType(
        {
            "neutral": Entry(
                "a number of days in the range of dates", lambda v: _is_number(v) and abs(v) <= 4e6, float
            ),
            "parts": Entry(
                f"a subset of {', '.join(DATE_PARTS)}", lambda v: _are_texts(v) and set(v) <= set(DATE_PARTS), tuple
            ),
            "format": Entry("a date format", _is_date_format),
        }
    )

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("days", None), *((part, None) for part in self.parts)]

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        dates = as_dates(cells, self.format)
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
        return self.of_days(np.array([day]))[0]

    def of_days(self, values: np.ndarray) -> np.ndarray:
        """Return dates as days since 1970, and their parts, shape (n_dates, 1 + n_parts)."""
        dates = np.datetime64(0, "us") + np.round(values * 86_400e6).astype(np.int64).astype("timedelta64[us]")
        return np.stack([days(dates), *(date_part(dates, part) for part in self.parts)], axis=1).astype(np.float64)


def is_number(value: Any) -> bool:
    """Whether an object is a float, or an integer that is the same as a float; booleans are not."""
    return type(value) is float or (type(value) is int and abs(value) < LARGEST_EXACT_INTEGER)


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


#: A word of a text: letters and digits, compared in lower case.
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class TextColumn(Column):
    """A column of free text: an indicator for each of the words that were kept in fitting.

    `shares` are the fractions of the training texts that contain each word.
    """

    words: tuple[str, ...]
    shares: tuple[float, ...]

    kind = "text"

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: j for j, word in enumerate(self.words)}

    def _parts(self) -> list[tuple[str, str | None]]:
        return [("word", word) for word in self.words]

    def _encode(self, cells: Cells, out: np.ndarray) -> None:
        codes, levels = as_levels(cells)
        found = [[self._index[word] for word in words_of(level) if word in self._index] for level in levels]
        sizes = np.array([*map(len, found), 0])[codes]
        rows = np.repeat(np.arange(len(codes)), sizes)
        out[rows, np.array([j for code in codes.tolist() if code >= 0 for j in found[code]], dtype=np.intp)] = 1.0

    @property
    def reference(self) -> np.ndarray:
        """Features of a text with the words that most texts contain."""
        return self._present(*(float(share > 0.5) for share in self.shares))


def words_of(text: str) -> set[str]:
    """Return the words of a text."""
    return set(_WORD.findall(text.lower()))


COLUMNS: dict[str, type[Column]] = {
    c.kind: c for c in (NumberColumn, CategoryColumn, BooleanColumn, DateColumn, TextColumn)
}


def column_from_dict(value: Any) -> Column:
    """Read the output of `Column.to_dict`; anything else is an error."""
    named = value if isinstance(value, dict) else {}
    what = f"Column {named['name']!r}" if isinstance(named.get("name"), str) else "A column"
    found = COLUMNS.get(str(named.get("kind")), Column)
    given = read_entries(what, value, {"kind": one_of(COLUMNS), **entries_of(found, found.checks)})
    del given["kind"]
    if "counts" in given and len(given["counts"]) != len(given["levels"]) + given["has_other"]:
        raise ValueError(f"{what} has an invalid 'counts': it must be a list of one count per level.")
    if any(len(own) != len(given["levels"]) for own in given.get("evidence", ())):
        raise ValueError(f"{what} has an invalid 'evidence': it must be lists of one number per level.")
    n_shared, n_classes = given.get("n_shared", 0), len(given.get("evidence_for", ()))
    if n_classes != len(given.get("evidence", ())) or n_shared > (len(given.get("levels", ())) if n_classes else 0):
        raise ValueError(f"{what} has an invalid 'n_shared' or 'evidence_for': they do not match the evidence.")
    if n_classes and (not given["has_other"] or given.get("is_ordered", False)):
        raise ValueError(f"{what} has an invalid 'evidence': it is for unordered categories with other levels.")
    if "shares" in given and len(given["shares"]) != len(given["words"]):
        raise ValueError(f"{what} has an invalid 'shares': it must be a list of one share per word.")
    return found(**given)


#: Integers that differ in each row are an id if they fill this fraction of their range, like row numbers, also in a
#: sample of half of the rows. With fewer rows than the second number, values may be distinct by chance.
DENSE, ENOUGH_ROWS = 0.5, 100
#: Where at most this share of the different texts of a column are not numbers, the column may be meant as numeric.
FEW_TEXTS = 0.1
#: Integers in strings with fewer digits are exact as floats.
EXACT_DIGITS = 15
#: Strings are free text if at least this share of the known rows differ, with at least this many words in the mean.
TEXT_DIFFERENT, TEXT_WORDS = 0.5, 3.0
#: If rare levels are this share of the known rows, the column is reported.
MUCH = 0.1
#: Largest number of levels with evidence but no indicator, and smallest evidence of any level that is worth it.
MOST_SHARED, LEAST_EVIDENCE = 100_000, 0.1
_ID_NAME = re.compile(r"(.*[_\W])?(id|uid|uuid|guid|key|index|row|rownum|row_number|unnamed: 0)", re.IGNORECASE)


@dataclass(frozen=True)
class EncoderParameters:
    """How columns are read when they are fitted: parameters of `TableEncoder`.

    Parameters
    ----------
    kinds : dict of str to str
        Kinds of columns that are not inferred.
    orders : dict of str to list of str
        Levels of ordered categories, in addition to those whose dtype declares an order.
    min_rows : int
        Smallest number of rows of a category level or a word of a text.
    max_levels, max_words : int
        Largest numbers of levels and of words; the most frequent ones are kept.
    decimal : {".", ","} or None
        Decimal separator of numbers that can be read in two ways.
    date_format : str, dict of str to str, or None
        Format of dates in strings, of all columns or by column.
    special : dict of str to tuple of float
        Special codes of numeric columns.
    """

    kinds: Mapping[str, str]
    orders: Mapping[str, Sequence[str]]
    min_rows: int
    max_levels: int
    max_words: int
    decimal: str | None
    date_format: str | Mapping[str, str] | None
    special: Mapping[str, tuple[float, ...]]


class ColumnFormat(NamedTuple):
    """How the values of a column are read: the kind, the format of strings, and a note for the user."""

    kind: str
    format: Any = None
    note: str = ""


def find_reading(cells: Cells, rules: EncoderParameters) -> ColumnFormat:
    """Find how a column is read, from its dtype or from all of its strings."""
    kind = rules.kinds.get(cells.name)
    used = _used_levels(cells) if cells.form == "text" else []
    if not used or (cells.is_declared and kind is None):
        return ColumnFormat(kind or ("category" if cells.form == "text" else cells.form))
    dates: Any = rules.date_format if isinstance(rules.date_format, str) else (rules.date_format or {}).get(cells.name)
    if dates is not None and kind in ("date", None):
        read = date_reader(dates)
        if kind == "date" or not isinstance(rules.date_format, str) or all(read(text) is not None for text in used):
            return ColumnFormat("date", dates)
    ambiguous = ""
    numbers = find_number_format(used, rules.decimal) if kind in ("number", None) else None
    if isinstance(numbers, Ambiguous):
        ambiguous = str(numbers)
    elif numbers is not None:
        if kind is None and _are_wide(used, numbers):
            return ColumnFormat("category", None, "its integers are beyond 2^53, which floats merge: they are levels")
        return ColumnFormat("number", numbers, _example(used[0], "number", numbers))
    found = find_date_format(used) if kind in ("date", None) else None
    if isinstance(found, Ambiguous):
        ambiguous = str(found)
    elif found is not None:
        return ColumnFormat("date", found, _example(used[0], "date", found))
    if kind is not None:
        if ambiguous:
            raise ValueError(f"Column {cells.name!r} is ambiguous: {ambiguous}.")
        return ColumnFormat(kind)
    if set(used) == {"true", "false"}:
        return ColumnFormat("boolean")
    n_known = int((cells.values >= 0).sum())
    n_words = sum(len(text.split()) for text in used)
    if len(used) >= TEXT_DIFFERENT * n_known and n_words >= TEXT_WORDS * len(used) and rules.max_words:
        return ColumnFormat("text")
    return ColumnFormat("category", None, ambiguous or _few_texts(used))


def _used_levels(cells: Cells) -> list[str]:
    return [cells.levels[i] for i in np.unique(cells.values[cells.values >= 0])]


def _are_wide(levels: list[str], format: NumberFormat) -> bool:
    """Whether a string has an integer that floats may merge with its neighbours."""
    return any(
        sum(map(str.isdigit, text)) > EXACT_DIGITS
        and text[-1] not in ".eE"
        and abs(format.read(text)) >= LARGEST_EXACT_INTEGER
        for text in levels
        if "e" not in text.lower()
    )


def _example(text: str, kind: str, format: Any) -> str:
    """Return a note of how a string is read, unless it is a plain number or an ISO date."""
    if kind == "date":
        return f"{text!r} is read as {str(date_reader(format)(text)).removesuffix('T00:00:00.000000')}" * bool(format)
    if format == PLAIN:
        return ""
    return f"{text!r} is read as {format.read(text):.12g}{f' (unit {format.unit})' if format.unit else ''}"


def _few_texts(used: list[str]) -> str:
    """Return a note if a few texts keep a column from being numeric."""
    most = int(FEW_TEXTS * len(used))
    other = list(islice((text for text in used if find_number_format([text], ".") is None), most + 1))
    if not 0 < len(other) <= most:
        return ""
    named = ", ".join(map(repr, other[:3])) + (", ..." if other[3:] else "")
    return (
        f"it is a category, although it is numeric except for {named}: if these are missing values, add them to `gaps`"
    )


def learn_column(cells: Cells, rules: EncoderParameters, labels: Labels | None = None) -> tuple[Column | None, str]:
    """Return the fitted column, or None if it is dropped, and a note for the user or the reason to drop it."""
    kind, format, note = find_reading(cells, rules)
    is_gap, special = cells.is_gap, rules.special.get(cells.name, ())
    if special and kind != "number":
        raise ValueError(f"special_codes names {cells.name!r}, which is a {kind}: only numbers have special codes.")
    if is_gap.all():
        return None, "it has no values"
    values = _values(cells, kind, format)
    different = np.unique(values[~is_gap])
    if len(different) == 1 and not is_gap.any():
        level = as_levels(cells)[1][as_levels(cells)[0][0]]
        return None, f"it is constant: all values are {level!r}"
    if cells.name not in rules.kinds and (reason := _id_reason(cells, kind, values, len(different))) is not None:
        return None, f"{note}, but {reason}" if note else reason
    if kind == "text":
        return _learn_text(cells, rules)
    if kind == "category" or len(different) == 1:
        column, reduced = _learn_category(cells, rules, labels)
        return column, "; ".join(filter(None, (note if kind == "category" else "", reduced)))
    usual = values[~(is_gap | np.isin(values, special))] if special else values[~is_gap]
    if not len(usual):
        raise ValueError(f"Column {cells.name!r} has no numbers but its special codes: drop it, or make it a category.")
    return _learn_numbers(cells.name, kind, usual, bool(is_gap.any()), format, special), note


def _values(cells: Cells, kind: str, format: Any) -> np.ndarray:
    match kind:
        case "number":
            return as_numbers(cells, format or PLAIN)
        case "boolean":
            return as_booleans(cells)
        case "date":
            return as_dates(cells, format or "")
    return as_levels(cells)[0]


def _id_reason(cells: Cells, kind: str, values: np.ndarray, n_different: int) -> str | None:
    """Return the reason why a column is an id; None if it is not."""
    n_rows = len(values)
    if n_different < n_rows or n_rows < 3:
        return None
    if kind == "category":
        return f"it is an id: its text is different in each of the {n_rows} rows"
    if kind != "number" or not (cells.is_whole or cells.form == "text") or (values % 1 != 0).any():
        return None
    is_dense = n_rows >= ENOUGH_ROWS and n_rows >= DENSE * (np.ptp(values) + 1)
    if is_dense or _ID_NAME.fullmatch(cells.name):
        return f"it is an id: its integer is different in each of the {n_rows} rows"
    return None


def _learn_category(cells: Cells, rules: EncoderParameters, labels: Labels | None) -> tuple[Column | None, str]:
    codes, levels = as_levels(cells)
    ordered = rules.orders.get(cells.name, cells.order)
    place = {level: i for i, level in enumerate(ordered)}
    count = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = np.argsort(-count, kind="stable")
    kept = order[count[order] >= rules.min_rows][: rules.max_levels]
    n_gaps, n_levels = int((codes < 0).sum()), np.count_nonzero(count)
    n_known, shared = len(codes) - n_gaps, order[:0]
    if labels is not None and not ordered and n_levels > rules.max_levels:
        rest = order[len(kept) : n_levels][:MOST_SHARED]
        shared = rest if count[rest].sum() >= MUCH * n_known else shared
    if not len(kept) and not n_gaps and not len(shared):
        return None, f"none of its {n_levels} levels occurs in at least {rules.min_rows} rows (min_rows)"
    if unknown := [levels[i] for i in np.flatnonzero(count) if ordered and levels[i] not in place]:
        raise ValueError(f"Column {cells.name!r} contains {unknown[0]!r}, which is not in the order of its levels.")
    shown = sorted(kept.tolist(), key=lambda i: place[levels[i]] if ordered else _by_size(levels[i]))
    shown += sorted(shared.tolist(), key=lambda i: _by_size(levels[i]))
    n_other = n_known - int(count[shown].sum())
    counts = [int(count[i]) for i in shown] + [n_other] * (n_other > 0 or len(shared) > 0)
    share, note = 1.0 - int(count[kept].sum()) / n_known, ""
    if len(shared):
        note = f"{len(kept)} of its {n_levels} levels have an indicator; {len(shown)} are encoded by their classes"
    elif share >= MUCH:
        note = f"{len(kept)} of its {n_levels} levels are used; the others, {share:.0%} of the rows, are 'other'"
    kept_levels = tuple(levels[i] for i in shown)
    column = CategoryColumn(
        cells.name, n_gaps > 0, kept_levels, len(counts) > len(shown), tuple(counts), len(ordered) > 0, len(shared)
    )
    if len(shared) and labels is not None:
        index = np.full(len(levels) + 1, -1)
        index[shown] = np.arange(len(shown))
        found = evidence(index[codes], len(shown), labels)
        if np.abs(found).max() < LEAST_EVIDENCE:  # the levels differ as much as they do by chance
            return _learn_category(cells, rules, None)
        classes = tuple(labels.classes[c] for c in labels.explained)
        column = replace(column, evidence=tuple(map(tuple, found.T.tolist())), evidence_for=classes)
    return column, note


def _learn_text(cells: Cells, rules: EncoderParameters) -> tuple[Column | None, str]:
    """Keep the most frequent words, but those that all texts contain."""
    codes, levels = as_levels(cells)
    rows = np.bincount(codes[codes >= 0], minlength=len(levels)).tolist()
    count: Counter[str] = Counter()
    for level, n_rows in zip(levels, rows, strict=True):
        if n_rows:
            count.update(dict.fromkeys(words_of(level), n_rows))
    n_known = sum(rows)
    usual = [word for word, n in count.items() if rules.min_rows <= n < n_known]
    words = tuple(sorted(sorted(usual, key=lambda word: (-count[word], word))[: rules.max_words]))
    if not words:
        return None, f"none of its {len(count)} words occurs in at least {rules.min_rows} rows (min_rows)"
    column = TextColumn(cells.name, n_known < len(codes), words, tuple(count[word] / n_known for word in words))
    return column, f"{len(words)} of its {len(count)} words are used"


def _learn_numbers(
    name: str, kind: str, values: np.ndarray, has_gaps: bool, format: Any, special: tuple[float, ...]
) -> Column:
    if kind == "number":
        is_whole = bool((values % 1 == 0).all())
        middle = _middle(values) if is_whole else float(np.median(values))
        how = (format or PLAIN).to_dict()
        return NumberColumn(name, has_gaps, middle, range=Range.of(values), is_whole=is_whole, **how, special=special)
    if kind == "boolean":
        return BooleanColumn(name, has_gaps, float(values.mean()))
    parts = tuple(part for part in DATE_PARTS if np.ptp(date_part(values, part)) > 0)
    return DateColumn(name, has_gaps, _middle(days(values)), parts, Range.of(days(values)), format or "")


def _middle(values: np.ndarray) -> float:
    """Return the lower median, which is one of the values: the mean of two integers or dates may be invalid."""
    return float(np.quantile(values, 0.5, method="lower"))


def _by_size(level: str) -> tuple[bool, float, str]:
    """Return the sort key of a level for display: numbers by value, then strings."""
    number = PLAIN.read(level)
    return number is None, number or 0.0, level


@dataclass(frozen=True)
class TableInputs:
    """Columns of a table, and how each is encoded as numbers: the fitted state of a `TableEncoder`.

    Parameters
    ----------
    names : tuple of str
        All columns seen during fit, in order.
    is_named : bool
        Whether the columns had names; otherwise they are matched by position.
    gaps : tuple of str
        Strings that mark missing values.
    columns : tuple of Column
        The encoded columns.
    dropped : dict of str to str
        The dropped columns, with the reason.
    notes : dict of str to str
        What users should know of columns: how strings are read, and how many levels or words are used.
    n_rows : int
        Number of training rows; 0 if it is not known.
    n_missing : dict of str to int
        Number of missing values of the columns that have any.
    """

    names: tuple[str, ...]
    is_named: bool
    gaps: tuple[str, ...]
    columns: tuple[Column, ...]
    dropped: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)
    n_rows: int = 0
    n_missing: Mapping[str, int] = field(default_factory=dict)

    #: Whether rows are tables with columns of any type, not matrices.
    is_table: ClassVar[bool] = True

    @property
    def n_columns(self) -> int:
        """Number of columns seen in training, including those not in use."""
        return len(self.names)

    @property
    def n_encoded(self) -> int:
        """Number of encoded numbers."""
        return sum(self._sizes)

    def read(self, X: Any, owner: str) -> np.ndarray:
        """Encode the rows of a table; `owner` is the name of the estimator, for messages."""
        return self.encode(as_table(X, self.gaps, is_typed=False), owner)

    @classmethod
    def learn(
        cls, table: Table, gaps: tuple[str, ...], rules: EncoderParameters, labels: Labels | None = None
    ) -> TableInputs:
        """Fit the encoding to a table; wide categories have evidence if labels are given."""
        columns: list[Column] = []
        dropped: dict[str, str] = {}
        notes: dict[str, str] = {}
        n_missing: dict[str, int] = {}
        for j, name in enumerate(table.names):
            cells = table.read(j)
            column, note = learn_column(cells, rules, labels)
            if column is None:
                dropped[name] = note
            else:
                columns.append(column)
                notes |= {name: note} if note else {}
            if n_gaps := int(cells.is_gap.sum()):
                n_missing[name] = n_gaps
        if not columns:
            name, reason = next(iter(dropped.items()))
            raise ValueError(
                f"All columns were dropped (n_samples = {table.n_rows}): {name!r} because {reason}"
                + (f", and {len(dropped) - 1} others for similar reasons." if len(dropped) > 1 else ".")
            )
        return cls(table.names, table.is_named, gaps, tuple(columns), dropped, notes, table.n_rows, n_missing)

    def report(self) -> list[dict[str, Any]]:
        """Return how each column is read, as plain data: one row for each, in the order of the table."""
        known = {column.name: column for column in self.columns}
        rows = []
        for name in self.names:
            column, missing = known.get(name), self.n_missing.get(name, 0)
            rows.append(
                {
                    "column": name,
                    "read as": "dropped" if column is None else column.kind,
                    "features": 0 if column is None else len(column.features),
                    "known values": self.n_rows - missing,
                    "missing": missing,
                    "note": self.dropped.get(name, self.notes.get(name, "")),
                }
            )
        return rows

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The encoded features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @cached_property
    def is_indicator(self) -> np.ndarray:
        """Whether each feature is an indicator, shape (n_features,)."""
        return np.array([feature.is_indicator for feature in self.features])

    @cached_property
    def reference(self) -> np.ndarray:
        """Encoded reference row: the median or the most frequent level of each column, shape (n_features,)."""
        return np.concatenate([column.reference for column in self.columns])

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Positions of the features of each column."""
        stops = np.cumsum(self._sizes).tolist()
        return tuple(slice(stop - size, stop) for stop, size in zip(stops, self._sizes, strict=True))

    @cached_property
    def column_of_encoded(self) -> np.ndarray:
        """Index in `columns` of the column that each encoded number belongs to, shape (n_encoded,)."""
        return np.repeat(np.arange(len(self.columns)), self._sizes)

    @cached_property
    def _sizes(self) -> list[int]:
        return [len(column.features) for column in self.columns]

    def encode(self, table: Table, owner: str, dtype: Any = np.float64) -> np.ndarray:
        """Encode a table, shape (n_rows, n_features); `owner` is the name of the estimator, for messages."""
        positions = self.positions(table, owner)
        out = np.zeros((table.n_rows, sum(self._sizes)), dtype=dtype)
        with np.errstate(over="ignore"):
            if not self._encode_numbers(table, positions, out):
                objects = table.objects
                for column, position, place in zip(self.columns, positions, self.places, strict=True):
                    entries: list[Any] = [None] if objects is None else [*map(column.entry, objects(position))]
                    if None in entries:
                        column.encode(table.read(position), out[:, place])
                    else:
                        for i, (j, value) in enumerate(entries):
                            out[i, place.start + j] = value
        if out.dtype == np.float32 and not np.isfinite(out).all():
            name = self.features[int(np.argmax(~np.isfinite(out).all(axis=0)))].column
            raise ValueError(f"Column {name!r} contains numbers too large for float32: use dtype=numpy.float64.")
        return out

    def encode_training(self, table: Table, owner: str, labels: Labels) -> np.ndarray:
        """Encode the rows that the encoding was fitted to; the evidence of a row is that of other rows."""
        out = self.encode(table, owner)
        for column, position, place in zip(self.columns, self.positions(table, owner), self.places, strict=True):
            if isinstance(column, CategoryColumn) and column.evidence:
                first = place.start + column.n_own + 1
                out[:, first : first + len(column.evidence)] = column.held_out(table.read(position), labels)
        return out

    def _encode_numbers(self, table: Table, positions: list[int], out: np.ndarray) -> bool:
        """Encode a table of numbers only in one step; return False if this is not possible."""
        if table.matrix is None:
            return False
        numbers = [column for column in self.columns if isinstance(column, NumberColumn)]
        if len(numbers) < len(self.columns) or any(column.special for column in numbers):
            return False
        values = table.matrix[:, positions]
        is_gap = np.isnan(values)
        if not (is_gap | (np.abs(values) <= LARGEST)).all():
            return False
        first = [place.start for place in self.places]
        out[:, first] = np.where(is_gap, [column.neutral for column in numbers], values)
        marked = [j for j, column in enumerate(numbers) if column.has_gaps]
        out[:, [first[j] + 1 for j in marked]] = is_gap[:, marked]
        return True

    def positions(self, table: Table, owner: str) -> list[int]:
        """Return the positions of the columns in a table."""
        return positions_of([column.name for column in self.columns], self.names, self.is_named, table, owner)

    def to_dict(self) -> dict[str, Any]:
        """Convert the encoding to plain data that can be stored as JSON."""
        return {
            "names": list(self.names),
            "is_named": self.is_named,
            "gaps": list(self.gaps),
            "columns": [column.to_dict() for column in self.columns],
            "dropped": dict(self.dropped),
            "notes": dict(self.notes),
            "n_rows": self.n_rows,
            "n_missing": dict(self.n_missing),
        }

    @classmethod
    def from_dict(cls, value: Any) -> TableInputs:
        """Create an encoding from the output of `to_dict`; invalid data raise a ValueError."""
        given = read_entries("The encoding", value, entries_of(cls))
        names, columns, dropped = given["names"], given["columns"], given["dropped"]
        encoded = [column.name for column in columns]
        if not encoded or len(set(encoded)) < len(encoded) or set(encoded) & set(dropped):
            raise ValueError(
                "The encoding must have at least one column, without duplicates, and none of them can also be dropped."
            )
        if set(encoded) | set(dropped) != set(names):
            raise ValueError(
                "The encoding must list each of its names either as an encoded column or as a dropped one."
            )
        return cls(**given)


@dataclass(frozen=True, eq=False)
class MatrixInputs:
    """Rows of numbers: a matrix whose columns are the encoded numbers themselves.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    given_names : tuple of str or None, default=None
        Names of the columns seen in training; None if they had no names.
    neutral : ndarray of shape (n_columns,) or None, default=None
        Replacement of missing values (NaN). None: values must not be missing.
    """

    n_columns: int
    given_names: tuple[str, ...] | None = None
    neutral: np.ndarray | None = None

    #: Whether rows are tables with columns of any type, not matrices.
    is_table: ClassVar[bool] = False

    @property
    def n_encoded(self) -> int:
        """Number of encoded numbers."""
        return self.n_columns

    @property
    def is_named(self) -> bool:
        """Whether the columns had names in training."""
        return self.given_names is not None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns: those seen in training, or x0, x1 and so on."""
        return self.given_names or tuple(f"x{j}" for j in range(self.n_columns))

    @property
    def column_of_encoded(self) -> np.ndarray:
        """Index of the column that each encoded number belongs to, shape (n_encoded,)."""
        return np.arange(self.n_columns)

    def read(self, X: Any, owner: str) -> Any:
        """Return the rows as a matrix of float32 or float64 without missing values; sparse matrices stay sparse.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame, dict of columns, list of dicts, or array-like
            The rows. Named columns are selected by name, if the columns had names in training.
        owner : str
            Name of the estimator, for messages.
        """
        rows = self._matrix(X, owner)
        if rows.shape[1] != self.n_columns:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {owner} is expecting {self.n_columns} features as input."
            )
        values = rows.data if is_sparse(rows) else rows
        if np.isfinite(values).all():
            return rows
        if np.isinf(values).any():
            raise ValueError("Input X contains infinity or a value too large for its dtype.")
        if self.neutral is None:
            raise ValueError(
                f"Input X contains NaN, which {owner} does not accept: train a pipeline with SimpleImputer."
            )
        rows = rows.toarray() if is_sparse(rows) else rows
        return np.where(np.isnan(rows), self.neutral.astype(rows.dtype), rows)

    def _matrix(self, X: Any, owner: str) -> Any:
        if is_sparse(X):
            rows = X.tocsr()
            return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
        of_rows = isinstance(X, list) and len(X) > 0 and isinstance(X[0], Mapping)
        has_names = of_rows or isinstance(X, Mapping) or hasattr(X, "columns")
        rows = self._by_name(X, owner) if has_names else as_matrix(X)
        if rows.dtype == np.float16:
            raise ValueError("X is float16, which is not precise enough; convert it with X.astype(numpy.float32).")
        try:
            return np.ascontiguousarray(rows, rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)
        except OverflowError:  # of Python's integers
            raise ValueError("Input X contains infinity or a value too large for its dtype.") from None

    def _by_name(self, X: Any, owner: str) -> np.ndarray:
        """Return the columns of a frame or of dicts, in the order of training."""
        table = as_table(X, is_typed=False)
        known = self.given_names or table.names
        positions = positions_of(known, known, True, table, owner)
        few = [] if table.objects is None else [[*table.objects(j)] for j in positions]
        if few and all(is_number(value) for values in few for value in values):
            matrix = np.array(few, dtype=np.float64).T
        else:
            matrix = np.column_stack([as_numbers(table.read(j), largest=np.inf) for j in positions])
        is_narrow = {str(dtype).lower() for dtype in getattr(X, "dtypes", ())} == {"float32"}
        return matrix.astype(np.float32) if is_narrow else matrix
