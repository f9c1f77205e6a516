"""Planes as sentences: few digits, few terms, the same predictions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polyplane.planes import PlaneSet

#: Digits of numbers that could not be checked on rows.
UNCHECKED_DIGITS = 4
#: Names that need no quotes beside numbers and signs.
PLAIN_NAME = re.compile(r"[^\W\d](?:[\w .,:%/()²³°µ-]*[\w.%)²³°])?")


@dataclass(frozen=True, eq=False)
class Readable:
    """Planes rounded for reading.

    Parameters
    ----------
    planes : PlaneSet
        The rounded planes.
    digits : int
        Significant digits of the weights.
    offset_digits : int
        Significant digits of the offsets.
    dropped : int
        Terms that were left out.
    changed : float or None
        The share of the rows whose class this changes; None when there were no rows to look at.
    """

    planes: PlaneSet
    digits: int
    offset_digits: int
    dropped: int
    changed: float | None


def single_sided(planes: PlaneSet) -> int | None:
    """The class that is given where all of some inequalities hold: that of two which owns one plane; None: none.

    With one plane each it is the first, so that the rule speaks of the second.
    """
    if planes.n_classes != 2:
        return None
    sizes = np.diff(planes.indptr)
    return int(sizes.argmin()) if sizes.min() == 1 else None


def inequalities(planes: PlaneSet, inside: int, influence: np.ndarray) -> PlaneSet:
    """The same predictions from a zero plane and from differences to it, each with 1 as its leading weight."""
    (own, own_offset), (coef, intercept) = planes.of(inside), planes.of(1 - inside)
    coef, intercept = coef.astype(np.float64) - own, intercept.astype(np.float64) - own_offset
    leading = np.abs(coef * influence).argmax(axis=1)
    unit = np.abs(coef[np.arange(len(coef)), leading])
    unit = np.where(unit > 0, unit, 1.0)
    around = (coef / unit[:, None], intercept / unit)
    nothing = (np.zeros((1, planes.n_features)), np.zeros(1))
    return PlaneSet.of_classes([nothing, around] if inside == 0 else [around, nothing])


def readable(
    planes: PlaneSet, X: Any, influence: np.ndarray, tolerance: float = 0.0, digits: int | None = None
) -> Readable:
    """Round planes to the fewest digits, and leave out the smallest terms, that keep the predictions on some rows.

    Parameters
    ----------
    planes : PlaneSet
        The planes.
    X : matrix of shape (n_rows, n_features) or None
        The rows; None: nothing is left out, and the digits are not checked.
    influence : ndarray of shape (n_features,)
        How far each feature varies: a term is small when its weight times this is.
    tolerance : float, default=0.0
        The share of the rows whose class may change.
    digits : int, default=None
        As many digits instead, whatever changes.

    Returns
    -------
    rounded : Readable
        The planes, and what was done to them.
    """
    exact = PlaneSet(planes.coef.astype(np.float64), planes.intercept.astype(np.float64), planes.indptr)
    if X is None or X.shape[0] == 0:
        places = UNCHECKED_DIGITS if digits is None else digits
        return Readable(_rounded(exact, places, places), places, places, 0, None)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    aim = planes.predict(X)

    def changed(candidate: PlaneSet) -> float:
        return float(np.mean(candidate.predict(X) != aim))

    fewer, dropped = _drop_terms(exact, influence, mean, lambda candidate: changed(candidate) <= tolerance / 2)
    for places in range(2, 9) if digits is None else [digits]:
        coef = round_to(fewer.coef, places)
        offsets = fewer.intercept + (fewer.coef - coef) @ mean  # the score of the mean row stays
        for offset_places in range(places, places + 3):
            candidate = PlaneSet(coef, round_to(offsets, offset_places), planes.indptr)
            share = changed(candidate)
            if share <= tolerance or (digits is not None and offset_places == places + 2):
                return Readable(candidate, places, offset_places, dropped, share)
    return Readable(exact, 17, 17, 0, 0.0)


def _drop_terms(planes: PlaneSet, influence: np.ndarray, mean: np.ndarray, keeps: Any) -> tuple[PlaneSet, int]:
    """Leave out as many of the smallest terms as may be, their mean going to the offset."""
    sizes = np.abs(planes.coef) * influence
    order = np.argsort(sizes, axis=None, kind="stable")
    order = (
        order[np.count_nonzero(planes.coef == 0) :] if (influence > 0).all() else order[planes.coef.ravel()[order] != 0]
    )

    def without(count: int) -> PlaneSet:
        coef = planes.coef.copy()
        coef.ravel()[order[:count]] = 0.0
        return PlaneSet(coef, planes.intercept + (planes.coef - coef) @ mean, planes.indptr)

    # Each plane keeps its leading term: a rule of nothing is none.
    leading = np.ravel_multi_index((np.arange(planes.n_planes), sizes.argmax(axis=1)), sizes.shape)
    order = order[~np.isin(order, leading)]
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keeps(without(middle)) else (low, middle - 1)
    return without(low), low


def _rounded(planes: PlaneSet, digits: int, offset_digits: int) -> PlaneSet:
    return PlaneSet(round_to(planes.coef, digits), round_to(planes.intercept, offset_digits), planes.indptr)


def round_to(values: np.ndarray, digits: int) -> np.ndarray:
    """Numbers with so many significant digits."""
    sizes = np.abs(values)
    powers = np.floor(np.log10(sizes, out=np.zeros_like(sizes), where=sizes > 0))
    shift = digits - 1 - powers
    # Two steps: 10 ** 300 and more overflows.
    up = np.round(values * 10.0 ** np.clip(shift, -200, 200))
    return np.where(np.abs(shift) > 200, values, up / 10.0 ** np.clip(shift, -200, 200))


def influence_of(X: Any, scale: np.ndarray) -> np.ndarray:
    """How far each feature varies over rows: its standard deviation, or the given scale without rows."""
    if X is None or X.shape[0] < 2:
        return scale
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        return np.sqrt(np.maximum(square - mean**2, 0.0))
    deviation: np.ndarray = np.std(X, axis=0, dtype=np.float64)
    return deviation


def number(value: float, digits: int = 4) -> str:
    """A number as people write it: so many significant digits, no exponent unless it is very small or large."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-5 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-", unique=True)


def quoted(name: str) -> str:
    """A feature's name beside numbers and signs: in quotes where it could be taken for more than a name."""
    return name if PLAIN_NAME.fullmatch(name) else repr(name)


def sum_of_terms(
    coef: np.ndarray, names: Sequence[str], influence: np.ndarray, digits: int, top: int | None = None
) -> str:
    """A weighted sum in words, the most influential terms first."""
    order = [j for j in np.argsort(-np.abs(coef * influence), kind="stable") if coef[j] != 0]
    shown = order if top is None else order[:top]
    text = ""
    for j in shown:
        sign = ("-" if coef[j] < 0 else "") if not text else (" - " if coef[j] < 0 else " + ")
        size = number(abs(float(coef[j])), digits)
        text += sign + (quoted(names[j]) if size == "1" else f"{size} x {quoted(names[j])}")
    left = len(order) - len(shown)
    return (text or "0") + (f" + {left} smaller terms" if left else "")
