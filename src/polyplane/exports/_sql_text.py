"""Formatting of SQL expressions, in lines and groups of limited length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyplane.exports._text import sql_string

#: Maximum number of terms in a group: databases limit the depth of expressions and the number of arguments.
GROUP = 50


def literal(label: Any) -> str:
    """Return a label as a literal."""
    if isinstance(label, bool):
        return str(label).upper()
    if isinstance(label, int) and not -(2**63) <= label < 2**63:
        raise ValueError(f"The label {label} does not fit into a signed 64-bit integer: rename it.")
    return sql_string(label) if isinstance(label, str) else repr(label)


def sum_of(terms: list[str]) -> str:
    """Return the sum of terms, in nested groups if there are many."""
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
    """Join the columns of a SELECT with commas; a comment, after a NUL, follows the comma."""
    columns = list(columns)
    lines = []
    for i, column in enumerate(columns):
        expression, _, comment = column.partition("\0")
        comma = "," if i < len(columns) - 1 else ""
        lines.append(f"{expression}{comma}" + (f" -- {comment}" if comment else ""))
    return "\n".join(lines)
