"""Features as SQL expressions, and a legend of the column names of a query."""

from __future__ import annotations

from polyplane.exports._program import CLIP, LARGEST, Program, Term
from polyplane.exports._sql_dialects import Dialect


def feature_of(dialect: Dialect, value: str, term: Term) -> str:
    """Return a feature of a number as an expression."""
    u = f"{value} - {dialect.literal(term.centre)}".replace("- -", "+ ")
    if term.factor != 1.0:
        u = f"({u}) * {dialect.literal(term.factor)}"
    least, most = dialect.least, dialect.greatest
    match term.kind:
        case "value":
            return u
        case "limited":
            limits = dialect.literal(term.least), dialect.literal(term.most)
            # Not with least and greatest, which ignore NULL in some databases.
            return f"CASE WHEN {u} < {limits[0]} THEN {limits[0]} WHEN {u} > {limits[1]} THEN {limits[1]} ELSE {u} END"
        case "scaled":
            return f"{least}({most}({u}, {-LARGEST:g}), {LARGEST:g})"
        case "clipped":
            return f"({u}) / sqrt(1.0 + ({u}) * ({u}) / {CLIP**2})"
        case "clipped square":
            return f"({u}) * ({u}) / (1.0 + ({u}) * ({u}) / {CLIP**2})"
        case "square":
            return f"{least}(({u}) * ({u}), {dialect.literal(term.most)})"
    return f"{least}({most}({u}, 0.0), 1.0)"


def legend(program: Program, has_key: bool) -> list[str]:
    """Return the meanings of the first letters of column names."""
    has_features = program.of_table or program.is_scaled
    meanings = {
        "k: key": has_key,
        "c: cells": True,
        "v: numbers": has_features,
        "m: missing-value indicators": any(item.missing is not None for item in program.inputs),
        "f: features": has_features,
        "p: scores of planes": True,
        "b: largest plane score of each member": program.is_soft,
        "s: scores of classes": True,
        "e: exponentials of the scores": program.temperature is not None,
    }
    return [meaning for meaning, is_used in meanings.items() if is_used]
