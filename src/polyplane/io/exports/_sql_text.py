"""Expressions of SQL in lines that people can read and databases can parse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyplane.io.exports._text import sql_string

#: Sums are written in groups of so many: databases limit how deep an expression may be, and how many arguments the
#: maximum may have.
GROUP = 50


def literal(label: Any) -> str:
    """A label."""
    if isinstance(label, bool):
        return str(label).upper()
    if isinstance(label, int) and not -(2**63) <= label < 2**63:
        raise ValueError(f"The label {label} does not fit into 64 bits with a sign: rename it.")
    return sql_string(label) if isinstance(label, str) else repr(label)


def sum_of(terms: list[str]) -> str:
    """A sum in lines, of groups that are not too long."""
    while len(terms) > GROUP:
        groups = [terms[i : i + GROUP] for i in range(0, len(terms), GROUP)]
        terms = [f"({_lines(group)})" if len(group) > 1 else group[0] for group in groups]
    return _lines(terms)


def _lines(terms: list[str], width: int = 100) -> str:
    text, used = terms[0], len(terms[0])
    for term in terms[1:]:
        fits = used + len(term) < width
        shown = f" - {term[1:]}" if term.startswith("-") else f" + {term}"
        text += shown if fits else f"\n     {shown}"
        used = used + len(shown) if fits else len(shown)
    return text


def listed(columns: Iterable[str]) -> str:
    """Columns with commas between them, and comments after these."""
    columns = list(columns)
    lines = []
    for i, column in enumerate(columns):
        expression, _, comment = column.partition("\0")
        comma = "," if i < len(columns) - 1 else ""
        lines.append(f"{expression}{comma}" + (f" -- {comment}" if comment else ""))
    return "\n".join(lines)
