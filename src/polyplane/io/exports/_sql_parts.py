"""Features as expressions of SQL, and what the columns of a query are called."""

from __future__ import annotations

from polyplane.io.exports._program import CLIP, LARGEST, Program, Term
from polyplane.io.exports._sql_dialects import Dialect


def feature_of(dialect: Dialect, value: str, term: Term) -> str:
    """A feature of a number."""
    u = f"{value} - {dialect.literal(term.centre)}".replace("- -", "+ ")
    if term.factor != 1.0:
        u = f"({u}) * {dialect.literal(term.factor)}"
    least, most = dialect.least, dialect.greatest
    match term.kind:
        case "value":
            return u
        case "limited":
            limits = dialect.literal(term.least), dialect.literal(term.most)
            # Not by the functions for the larger of two numbers: those of some databases ignore NULL.
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
    """What the letters of columns mean."""
    has_features = program.of_table or program.is_scaled
    meanings = {
        "k: key": has_key,
        "c: cells": True,
        "v: numbers": has_features,
        "m: whether they are missing": any(item.missing is not None for item in program.inputs),
        "f: features": has_features,
        "p: scores of planes": True,
        "b: the largest of each machine": program.is_soft,
        "s: scores of classes": True,
        "e: their exponentials": program.temperature is not None,
    }
    return [meaning for meaning, is_used in meanings.items() if is_used]
