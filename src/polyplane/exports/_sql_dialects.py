"""Differences between databases: conversion of cells, and names of functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyplane.exports._text import real, sql_string

#: Whitespace as defined by Python.
WHITESPACE = (*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)
#: Strings of booleans; some databases write 1.0 and 0.0.
TRUE = ("true", "t", "yes", "y", "1", "1.0", "on")
FALSE = ("false", "f", "no", "n", "0", "0.0", "off")


@dataclass(frozen=True)
class Dialect:
    """The SQL dialect of a database; the methods of this class are for DuckDB.

    Parameters
    ----------
    name, title : str
        The value of the parameter `dialect`, and the name of the database.
    text_type : str
        The type of strings.
    least, greatest : str
        The functions for the minimum and the maximum of their arguments.
    is_case_sensitive : bool
        Whether column names are case-sensitive.
    """

    name: str
    title: str
    text_type: str
    least: str = "least"
    greatest: str = "greatest"
    is_case_sensitive: bool = False

    @property
    def whitespace(self) -> str:
        """The whitespace characters that are trimmed."""
        return "||".join(f"chr({code})" for code in WHITESPACE)

    def literal(self, value: Any, dtype: str = "float64") -> str:
        """Return a number with an exponent: without one, DuckDB reads a decimal."""
        text = real(value, dtype)
        return text if "e" in text else f"{text}e0"

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error for column names that the database does not distinguish."""
        seen: dict[str, str] = {}
        for name in names:
            twin = seen.setdefault(name if self.is_case_sensitive else name.lower(), name)
            if twin is not name and twin != name:
                raise ValueError(f"{self.title} does not distinguish the columns {twin!r} and {name!r}: rename one.")

    def text(self, cell: str, levels: Sequence[str]) -> str:
        """Return a cell as a trimmed string; if levels are integers, an integer without decimal point."""
        return self._trim(self._plain_text(cell, levels))

    def number(self, cell: str, decimal: str) -> str:
        """Return a cell as a number, or NULL if it is not one."""
        if decimal == ",":
            cell = f"replace(CAST({cell} AS {self.text_type}), ',', '.')"
        return f"TRY_CAST({cell} AS DOUBLE)"

    def boolean(self, cell: str) -> str:
        """Return a cell as 1.0 or 0.0, or NULL if it is not a boolean."""
        text = f"lower({self._trim(f'CAST({cell} AS {self.text_type})')})"
        yes, no = (", ".join(map(sql_string, words)) for words in (TRUE, FALSE))
        return f"CASE WHEN {text} IN ({yes}) THEN 1.0 WHEN {text} IN ({no}) THEN 0.0 END"

    def timestamp(self, text: str) -> str:
        """Return a string as a timestamp; anything after the date and time is ignored."""
        return f"TRY_CAST({self._local_time(text)} AS TIMESTAMP)"

    def part(self, cell: str, part: str) -> str:
        """Return a part of a timestamp as a number."""
        if part == "days":
            return f"CAST(extract(epoch FROM {cell}) AS DOUBLE PRECISION) / 86400.0"
        field = {"day of week": "isodow"}.get(part, part)
        return f"CAST(extract({field} FROM {cell}) AS DOUBLE PRECISION)"

    def no_underflow(self, exponent: str) -> str:
        """Return an exponent limited such that its exponential does not underflow with an error."""
        return exponent

    def _trim(self, text: str) -> str:
        return f"trim({text}, w.characters)"

    def _plain_text(self, cell: str, levels: Sequence[str]) -> str:
        text = f"CAST({cell} AS {self.text_type})"
        return f"regexp_replace({text}, '^(-?[0-9]+)\\.0$', '\\1')" if _are_whole(levels) else text

    @staticmethod
    def _local_time(text: str) -> str:
        return f"regexp_replace(replace({text}, ',', '.'), '^(.{{10}}([T ][0-9:.]+)?).*$', '\\1')"


class PostgreSQL(Dialect):
    """PostgreSQL, in which invalid casts and exponentials that underflow are errors."""

    def literal(self, value: Any, dtype: str = "float64") -> str:
        """Return a number."""
        return real(value, dtype)

    def number(self, cell: str, decimal: str) -> str:
        """Return a cell as a number."""
        return super().number(cell, decimal).replace("TRY_CAST", "CAST").replace("DOUBLE", "double precision")

    def timestamp(self, text: str) -> str:
        """Return a string as a timestamp."""
        return super().timestamp(text).replace("TRY_CAST", "CAST")

    def no_underflow(self, exponent: str) -> str:
        """Return an exponent of at least -700."""
        return f"greatest({exponent}, -700.0)"

    def _trim(self, text: str) -> str:
        return f"btrim({text}, w.characters)"


class SQLite(Dialect):
    """SQLite, in which values have types, not columns, and which has neither dates nor regular expressions."""

    @property
    def whitespace(self) -> str:
        """The whitespace characters that are trimmed."""
        return f"char({', '.join(map(str, WHITESPACE))})"

    def literal(self, value: Any, dtype: str = "float64") -> str:
        """Return a number."""
        return real(value, dtype)

    def number(self, cell: str, decimal: str) -> str:
        """Return a cell as a number; a string must consist of digits, signs, points and exponents."""
        text = f"replace({self._trim(cell)}, ',', '.')" if decimal == "," else self._trim(cell)
        is_number = f"{text} GLOB '*[0-9]*' AND {text} NOT GLOB '*[^-+.eE0-9]*'"
        return (
            f"CASE WHEN typeof({cell}) IN ('integer', 'real') THEN {cell} + 0.0 "
            f"WHEN typeof({cell}) = 'text' AND {is_number} THEN CAST({text} AS REAL) END"
        )

    def timestamp(self, text: str) -> str:
        """Return the string itself, or NULL if it does not start with a date."""
        return f"CASE WHEN julianday(substr({text}, 1, 10)) IS NOT NULL THEN {text} END"

    def part(self, cell: str, part: str) -> str:
        """Return a part of a date that is a string."""
        has_time = f"substr({cell}, 11, 1) IN ('T', ' ') AND substr({cell}, 14, 1) = ':'"
        hour = f"CASE WHEN {has_time} THEN CAST(substr({cell}, 12, 2) AS REAL) ELSE 0.0 END"
        match part:
            case "year":
                return f"CAST(substr({cell}, 1, 4) AS REAL)"
            case "month":
                return f"CAST(substr({cell}, 6, 2) AS REAL)"
            case "day of week":
                return f"(strftime('%w', substr({cell}, 1, 10)) + 6) % 7 + 1.0"
            case "hour":
                return hour
        minute = f"CASE WHEN {has_time} THEN CAST(substr({cell}, 15, 2) AS REAL) ELSE 0.0 END"
        second = (
            f"CASE WHEN {has_time} AND substr({cell}, 17, 1) = ':' "
            f"THEN CAST(replace(substr({cell}, 18), ',', '.') AS REAL) ELSE 0.0 END"
        )
        return (
            f"julianday(substr({cell}, 1, 10)) - 2440587.5 + ({hour}) / 24.0 + ({minute}) / 1440.0 "
            f"+ ({second}) / 86400.0"
        )

    def _plain_text(self, cell: str, levels: Sequence[str]) -> str:
        if not _are_whole(levels):
            return f"CAST({cell} AS TEXT)"
        return f"CASE typeof({cell}) WHEN 'real' THEN printf('%.15g', {cell}) ELSE CAST({cell} AS TEXT) END"


def _are_whole(levels: Sequence[str]) -> bool:
    """Whether some levels are integers, which databases may write as 1.0, and none ends in ".0"."""
    return any(re.fullmatch(r"-?\d+", level) for level in levels) and not any(level.endswith(".0") for level in levels)


DIALECTS: dict[str, Dialect] = {
    "sqlite": SQLite("sqlite", "SQLite", "TEXT", "min", "max"),
    "duckdb": Dialect("duckdb", "DuckDB", "VARCHAR"),
    "postgresql": PostgreSQL("postgresql", "PostgreSQL", "text", is_case_sensitive=True),
}
