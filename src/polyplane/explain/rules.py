"""Planes as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from polyplane.planes import PlaneSet

#: Feature names that need no quotes in a sum of terms.
PLAIN_NAME = re.compile(r"[^\W\d](?:[\w .,:%/()²³°µ-]*[\w.%)²³°])?")


def single_sided(planes: PlaneSet) -> int | None:
    """Return the class that is predicted if all inequalities hold: the one of two classes that owns one plane.

    None if there is no such class. If both own one plane it is the first, so that the rule describes the second.
    """
    if planes.n_classes != 2:
        return None
    sizes = np.diff(planes.indptr)
    return int(sizes.argmin()) if sizes.min() == 1 else None


def inequalities(planes: PlaneSet, inside: int, influence: np.ndarray) -> PlaneSet:
    """Return equivalent planes: a zero plane and the differences to it, scaled to a leading weight of 1."""
    (own, own_offset), (coef, intercept) = planes.of(inside), planes.of(1 - inside)
    coef, intercept = coef.astype(np.float64) - own, intercept.astype(np.float64) - own_offset
    leading = np.abs(coef * influence).argmax(axis=1)
    unit = np.abs(coef[np.arange(len(coef)), leading])
    unit = np.where(unit > 0, unit, 1.0)
    around = (coef / unit[:, None], intercept / unit)
    nothing = (np.zeros((1, planes.n_features)), np.zeros(1))
    return PlaneSet.of_classes([nothing, around] if inside == 0 else [around, nothing])


def number(value: float, digits: int = 4) -> str:
    """Format a number with some significant digits, and without an exponent unless it is very small or large."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-5 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-", unique=True)


def quoted(name: str) -> str:
    """Return the name of a feature, in quotes if it could be misread in a sum of terms."""
    return name if PLAIN_NAME.fullmatch(name) else repr(name)


def sum_of_terms(
    coef: np.ndarray, names: Sequence[str], influence: np.ndarray, digits: int, top: int | None = None
) -> str:
    """Format a weighted sum, the most influential terms first."""
    order = [j for j in np.argsort(-np.abs(coef * influence), kind="stable") if coef[j] != 0]
    shown = order if top is None else order[:top]
    text = ""
    for j in shown:
        sign = ("-" if coef[j] < 0 else "") if not text else (" - " if coef[j] < 0 else " + ")
        size = number(abs(float(coef[j])), digits)
        text += sign + (quoted(names[j]) if size == "1" else f"{size} x {quoted(names[j])}")
    left = len(order) - len(shown)
    return (text or "0") + (f" + {left} smaller terms" if left else "")
