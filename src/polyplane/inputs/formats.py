"""How numbers and dates are written in the strings of a column, and how the format of a column is found.

A format is found from all distinct strings of a column, and only if each of them agrees with it. If two formats agree
with all strings and give different values, such as 8797 and 8.797 for "8,797", the column is `Ambiguous`, and neither
is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

#: Dates have microsecond resolution, as in Python, Polars and Arrow, which covers all years from 1 on.
DATES = "datetime64[us]"
#: From here on, neighbouring integers are equal as floats, and a column of them is read as text.
LARGEST_EXACT_INTEGER = 2.0**53

#: Maximum length of a unit and of a date format.
MAX_FORMAT = 100

Reader = Callable[[str], Any]


class Ambiguous(NamedTuple):
    """A string that can be read in two ways, which no other string of its column decides."""

    text: str
    readings: tuple[str, str]
    parameter: str

    def __str__(self) -> str:
        return f"{self.text!r} may be {self.readings[0]} or {self.readings[1]}: set {self.parameter}"


#: The signs and names of currencies, which may precede a number; other units only follow one.
_CURRENCY = (
    r"(?:(?:US|CA|AU|NZ|HK|R|C|A)?\$|[\u00a2-\u00a5\u058f\u09f3\u0e3f\u20a0-\u20c0]|Rs\.?|CHF|kr\.?|zł|Kč|"
    r"(?:AUD|BRL|CAD|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|SEK|SGD|TRY|USD|ZAR))"
)
_UNIT = r"[^\W\d_%][^\W\d_]*(?:[ /·.][^\W\d_]+)*[²³]?|[%‰°][^\W\d_]?"
_SPACE = r"[ \u00a0\u2009\u202f]"
#: Separators of thousands, as classes of characters.
_THOUSANDS = {"": "", ",": ",", ".": r"\.", "'": "['\u2019]", " ": _SPACE}
#: Multiples of a number, as exponents of ten.
MULTIPLES = {"k": "e3", "K": "e3", "M": "e6", "B": "e9", "bn": "e9", "T": "e12"}
#: The parts of a number with a sign, currency, unit or multiple, before the format of its digits is known.
_WRITTEN = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+\u2212])?(?P<before>{_CURRENCY})?{_SPACE}?(?P<inner>[-+\u2212])?"
    rf"(?P<digits>(?:[0-9][0-9.,'\u2019 \u00a0\u2009\u202f]*(?<=[0-9.])|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"(?:{_SPACE}?(?P<after>(?:{_UNIT}|{_CURRENCY})(?:{_SPACE}?{_CURRENCY})?))?(?P<last>-)?(?P<close>\))?"
)
#: Codes with leading zeros, such as postal codes, which numbers would drop.
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+")


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}, default="."
        The decimal separator.
    thousands : {"", ",", ".", "'", " "}, default=""
        The separator of thousands, which numbers may have.
    unit : str, default=""
        The currency before or after a number, or the unit after it, which numbers may have.
    has_multiples : bool, default=False
        Whether k, M, B and T after a number denote thousands, millions, billions and trillions.
    is_accounting : bool, default=False
        Whether numbers in parentheses, or followed by a minus sign, are negative.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    has_multiples: bool = False
    is_accounting: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written with digits, a sign, a decimal separator and an exponent only."""
        return self == NumberFormat(self.decimal)

    @cached_property
    def pattern(self) -> str:
        """A regular expression for the whole string, the same in JavaScript.

        Its groups are the opening parenthesis, the signs before and after a currency, digits, multiple, and minus.
        """
        point, mark = re.escape(self.decimal), _THOUSANDS[self.thousands]
        whole = rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|[0-9]+" if mark else "[0-9]+"
        digits = rf"((?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?)"
        unit = re.escape(self.unit)
        before = rf"(?:{unit})?{_SPACE}?" if re.fullmatch(_CURRENCY, self.unit) else ""
        after = rf"(?:{_SPACE}?{unit})?" if unit else ""
        multiple = f"(?:{_SPACE}?({'|'.join(MULTIPLES)}))?" if self.has_multiples else "()"
        if self.is_accounting:
            return rf"(\()?([-+\u2212])?{before}([-+\u2212])?{digits}{multiple}{after}(-)?\)?"
        return f"()([-+])?{before}([-+])?{digits}{multiple}{after}()"

    @property
    def separators(self) -> str:
        """A regular expression for the separators of thousands."""
        return _THOUSANDS[self.thousands] or "(?!)"

    @cached_property
    def read(self) -> Reader:
        """A function that reads a number from a string; None for other strings."""
        pattern, marks = re.compile(self.pattern), re.compile(self.separators)

        def read(text: str) -> float | None:
            found = pattern.fullmatch(text)
            if found is None:
                return None
            opened, sign, inner, digits, multiple, last = found.groups()
            signs = [mark for mark in (opened, sign, inner, last) if mark]
            if bool(opened) != text.endswith(")") or len(signs) > 1:
                return None
            digits = marks.sub("", digits).replace(self.decimal, ".")
            exponent = MULTIPLES[multiple] if multiple else ""
            if exponent and "e" in digits.lower():
                return None
            value = float(digits + exponent)
            return -value if signs and signs[0] != "+" else value

        return read

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data: the decimal separator, and what differs from a plain number."""
        return {name: value for name, value in asdict(self).items() if name == "decimal" or value}


PLAIN = NumberFormat()


def find_number_format(levels: Collection[str], decimal: str | None = None) -> NumberFormat | Ambiguous | None:
    """Return the format of a column in which all distinct strings are numbers; None if they are not.

    Parameters
    ----------
    levels : collection of str
        The distinct strings, at least one.
    decimal : {".", ","} or None
        The decimal separator of ambiguous numbers. None: they are `Ambiguous`.
    """
    read = PLAIN.read
    if all(not _LEADING_ZERO.fullmatch(text) and read(text) is not None for text in levels):
        points = NumberFormat(",", ".")
        return points if decimal == "," and all(points.read(text) is not None for text in levels) else PLAIN
    parts = _all(map(_WRITTEN.fullmatch, levels))
    if parts is None:
        return None
    before, after, has_multiples = set(), set(), False
    for part in parts:
        unit = part["after"] or ""
        currency = re.search(rf"{_SPACE}?({_CURRENCY})$", unit) if unit not in MULTIPLES else None
        before.add(part["before"] or (currency[1] if currency else ""))
        after.add(unit[: currency.start()].strip() if currency else unit)
    if after <= {"", *MULTIPLES} and (len(after) > 1 or (after != {""} and before != {""})):
        has_multiples, after = True, {""}
    units = {*before, *after} - {""}
    if len(before) > 1 or len(after) > 1 or len(units) > 1 or max(map(len, units), default=0) > MAX_FORMAT:
        return None
    signs = [part["open"] or part["last"] or "\u2212" in f"{part['sign']}{part['inner']}" for part in parts]
    if all(part["open"] for part in parts):
        return None
    how: Any = {"unit": next(iter(units), ""), "has_multiples": has_multiples, "is_accounting": any(signs)}
    found: list[NumberFormat] = []
    values: list[list[float]] = []
    for point, marks in ((".", ("", ",", " ", "'")), (",", ("", ".", " ", "'"))):
        for mark in marks:
            candidate = NumberFormat(point, mark, **how)
            if _is_needed(mark, parts) and not _has_codes(parts):
                numbers = _all(map(candidate.read, levels))
                if numbers is not None and numbers not in values:
                    found.append(candidate)
                    values.append(numbers)
    if len(found) < 2:
        return found[0] if found else None
    chosen = [each for each in found if each.decimal == decimal]
    if chosen:
        return chosen[0]
    i = next(i for i, pair in enumerate(zip(*values[:2], strict=True)) if pair[0] != pair[1])
    text = list(levels)[i]
    return Ambiguous(text, (f"{values[0][i]:.12g}", f"{values[1][i]:.12g}"), 'decimal="." or decimal=","')


def _is_needed(mark: str, parts: Collection[Any]) -> bool:
    return not mark or any(re.search(_THOUSANDS[mark], part["digits"]) for part in parts)


def _has_codes(parts: Collection[Any]) -> bool:
    return any(_LEADING_ZERO.match(part["digits"]) for part in parts)


# Dates.

_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?(?P<zone> ?(?:Z|[+-]\d{2}:?\d{2}))?",
    flags=re.ASCII,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG = ("uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember")
_MONTH = "|".join(f"{short}(?:{rest})?" if rest else short for short, rest in zip(_MONTHS, _LONG, strict=True))
_MONTH = _MONTH.replace("sep(", "sept?(", 1)
_ZONE = r"(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})"
#: Parts of a date format, as regular expressions.
DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d{2})",
    "m": r"(?P<m>\d{1,2})",
    "d": r"(?P<d>\d{1,2})",
    "b": rf"(?P<b>{_MONTH})\.?",
    "q": r"(?P<q>[1-4])",
    "G": r"(?P<G>\d{4})",
    "V": r"(?P<V>\d{1,2})",
    "a": r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?",
    "H": r"(?P<H>\d{1,2})",
    "M": r"(?P<M>\d{2})",
    "S": r"(?P<S>\d{2}(?:[.,]\d{1,9})?)",
    "p": r"(?P<p>[ap])\.?m\.?",
    "z": _ZONE,
}
DIRECTIVES |= {"B": DIRECTIVES["b"], "I": DIRECTIVES["H"], "A": DIRECTIVES["a"]}
#: A time, after a date.
_TIME = (
    rf"(?:(?:T|,? ){DIRECTIVES['H']}:{DIRECTIVES['M']}(?::{DIRECTIVES['S']})?(?: ?{DIRECTIVES['p']})?)?(?: ?{_ZONE})?"
)
#: The formats that are recognised besides ISO 8601; those with both orders of day and month are decided by all values.
_DATE_FORMATS = (
    *("%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d.%m.%Y", "%Y.%m.%d", "%m-%d-%Y", "%d-%m-%Y", "%Y-%m-%d"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%m-%d-%y", "%d-%m-%y"),
    *("%b %d, %Y", "%b %d %Y", "%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d. %b %Y", "%d-%b-%y", "%d %b %y", "%Y %b %d"),
    *("%a, %b %d, %Y", "%a, %d %b %Y", "%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y"),
    *("%G-W%V", "%GW%V", "%YQ%q", "%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q/%Y", "%Y-%m", "%m/%Y", "%Y/%m", "%b %Y", "%b-%Y"),
)


@lru_cache(maxsize=256)
def date_reader(format: str) -> Reader:
    """Return a function that reads a date of a format as local time; None for other strings.

    Parameters
    ----------
    format : str
        The format, with the directives of Python's `strptime`, and %q for the quarter; "" is ISO 8601. A date of a
        format without a time can be followed by one.
    """
    if not format:
        return _read_iso
    pattern = re.compile(date_pattern(format), flags=re.ASCII | re.IGNORECASE)

    def read(text: str) -> Any:
        found = pattern.fullmatch(text)
        return None if found is None else _date_of({name: t for name, t in found.groupdict().items() if t})

    return read


def date_pattern(format: str) -> str:
    """Return a regular expression for dates of a format, with the parts of the date as groups."""
    pieces = re.split(r"%(.)", format)
    directives = pieces[1::2]
    is_known = set(directives) <= set(DIRECTIVES) and len(directives) == len(set(directives))
    is_short = len(format) <= MAX_FORMAT
    if not (is_known and is_short) or len({"Y", "y", "G"} & set(directives)) != 1 or "%" in pieces[::2]:
        listed = ", ".join(f"%{letter}" for letter in DIRECTIVES)
        raise ValueError(f"date_format={format!r} must have a year, and each of its directives once, of: {listed}.")
    pattern = "".join(DIRECTIVES[p] if i % 2 else re.escape(p) for i, p in enumerate(pieces))
    if "y" in directives and "." in format:  # unlike the numbers of versions
        pattern = pattern.replace(r"\d{1,2}", r"\d{2}")
    return pattern + ("" if {"H", "I"} & set(directives) else _TIME)


def _date_of(parts: dict[str, str]) -> Any:
    """Return the date with these parts; None if there is none."""
    if "G" in parts:
        return _week(int(parts["G"]), int(parts["V"]))
    year = int(parts["Y"]) if "Y" in parts else int(parts["y"]) + (1900 if int(parts["y"]) >= 69 else 2000)
    month = int(parts.get("m", 1))
    if "b" in parts:
        month = _MONTHS.index(parts["b"][:3].lower()) + 1
    elif "q" in parts:
        month = 3 * int(parts["q"]) - 2
    hour, minute = int(parts.get("H", 0)), int(parts.get("M", 0))
    if "p" in parts:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (parts["p"].lower() == "p")
    second = parts.get("S", "00").replace(",", ".")
    return _read_iso(f"{year:04d}-{month:02d}-{int(parts.get('d', 1)):02d} {hour:02d}:{minute:02d}:{second}")


def _week(year: int, week: int) -> Any:
    """Return the Monday of a week of ISO 8601."""
    if not (1 <= week <= 53 and year):
        return None
    fourth = np.datetime64(f"{year:04d}-01-04", "D")
    monday = fourth - (fourth.astype(np.int64) + 3) % 7 + 7 * (week - 1)
    is_of_year = (monday + 3).astype("datetime64[Y]").astype(np.int64) + 1970 == year
    return monday.astype(DATES) if is_of_year else None


def _read_iso(text: str) -> Any:
    """Read a date in ISO 8601 format as local time, without its time zone; None for other strings."""
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    zone = found["zone"] or ""
    try:
        return np.datetime64(text.removesuffix(zone).replace(",", "."), "us")
    except ValueError:  # the 30th of February
        return None


def find_date_format(levels: Collection[str]) -> str | Ambiguous | None:
    """Return the format of a column in which all distinct strings are dates; None if they are not."""
    if not any(character.isdigit() for character in next(iter(levels))):
        return None
    found: list[str] = []
    values: list[list[Any]] = []
    for format in ("", *_DATE_FORMATS):
        dates = _all(map(date_reader(format), levels))
        if dates is not None and dates not in values:
            found.append(format)
            values.append(dates)
            if not format:
                break
    if len(found) < 2:
        return found[0] if found else None
    i = next(i for i, pair in enumerate(zip(*values[:2], strict=True)) if pair[0] != pair[1])
    readings = (str(values[0][i])[:10], str(values[1][i])[:10])
    return Ambiguous(list(levels)[i], readings, f"date_format={found[0]!r} or date_format={found[1]!r}")


def _all(values: Iterable[Any]) -> list[Any] | None:
    """Return the values; None if one of them is None, at once."""
    found = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    return found
