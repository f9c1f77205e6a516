"""Few digits, few terms, the same predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.scaling import moments

#: Digits of numbers that could not be checked on rows.
UNCHECKED_DIGITS = 4
#: Rows looked at together: a candidate that changes too much is given up early.
BLOCK_ROWS = 4096
#: Up to this many terms are tried one by one; of more, only the smallest together.
FEW_TERMS = 200


@dataclass(frozen=True, eq=False)
class RoundedPlanes:
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


def round_planes(
    planes: PlaneSet,
    X: Any,
    influence: np.ndarray,
    tolerance: float = 0.0,
    digits: int | None = None,
    *,
    apart: bool = False,
) -> RoundedPlanes:
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
        So many digits instead, whatever changes.
    apart : bool, default=False
        Each plane is an inequality of its own: its terms are small or large by themselves.
    """
    exact = PlaneSet(planes.coef.astype(np.float64), planes.intercept.astype(np.float64), planes.indptr)
    if X is None or X.shape[0] == 0:
        places = UNCHECKED_DIGITS if digits is None else digits
        rounded = PlaneSet(round_to(exact.coef, places), round_to(exact.intercept, places), planes.indptr)
        return RoundedPlanes(rounded, places, places, 0, None)
    exactly = _ExactPredictions(exact, X)
    sizes = np.abs(exact.coef) * influence
    if apart:
        sizes = sizes / np.maximum(sizes.max(axis=1, keepdims=True), np.finfo(float).tiny)
    # Rounding gets what dropping leaves of the tolerance, half of it or more.
    fewer, dropped = _drop_terms(
        exact, sizes, exactly.mean, lambda planes: exactly.changed(planes, tolerance / 2) is not None
    )
    for places in range(2, 9) if digits is None else [digits]:
        coef = round_to(fewer.coef, places)
        offsets = fewer.intercept + (fewer.coef - coef) @ exactly.mean  # the score of the mean row stays
        for offset_places in range(places, places + 3):
            candidate = PlaneSet(coef, round_to(offsets, offset_places), planes.indptr)
            forced = digits is not None and offset_places == places + 2
            share = exactly.changed(candidate, 1.0 if forced else tolerance)
            if share is not None:
                return RoundedPlanes(candidate, places, offset_places, dropped, share)
    return RoundedPlanes(exact, 17, 17, 0, 0.0)


class _ExactPredictions:
    """Rows, and the classes that the exact planes predict for them."""

    def __init__(self, planes: PlaneSet, X: Any) -> None:
        self.X, self.predicted = X, planes.predict(X)
        self.mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()

    def changed(self, planes: PlaneSet, allowed: float) -> float | None:
        """The share of the rows for which other planes predict another class; None when it is more than allowed."""
        count, n_rows = 0, len(self.predicted)
        for start in range(0, n_rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            count += int(np.count_nonzero(planes.predict(self.X[block]) != self.predicted[block]))
            if count > allowed * n_rows * (1 + 1e-12):
                return None
        return count / n_rows


def _drop_terms(
    planes: PlaneSet, sizes: np.ndarray, mean: np.ndarray, keeps: Callable[[PlaneSet], bool]
) -> tuple[PlaneSet, int]:
    """Leave out as many of the smallest terms as may be, their mean going to the offset."""
    weights = planes.coef.ravel()
    # Each plane keeps its leading term: a rule of nothing is none.
    leading = np.ravel_multi_index((np.arange(planes.n_planes), sizes.argmax(axis=1)), sizes.shape)
    order = np.argsort(sizes, axis=None, kind="stable")
    order = order[(weights[order] != 0) & ~np.isin(order, leading)]

    def without(terms: np.ndarray) -> PlaneSet:
        coef = planes.coef.copy()
        coef.ravel()[terms] = 0.0
        return PlaneSet(coef, planes.intercept + (planes.coef - coef) @ mean, planes.indptr)

    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keeps(without(order[:middle])) else (low, middle - 1)
    dropped = order[:low]
    for term in order[low:] if len(order) <= FEW_TERMS else ():
        if keeps(without(np.append(dropped, term))):
            dropped = np.append(dropped, term)
    return without(dropped), len(dropped)


def round_to(values: np.ndarray, digits: int) -> np.ndarray:
    """Numbers with so many significant digits."""
    sizes = np.abs(values)
    powers = np.floor(np.log10(sizes, out=np.zeros_like(sizes), where=sizes > 0))
    shift = digits - 1 - powers
    factor = 10.0 ** np.clip(shift, -200, 200)  # 10 ** 309 overflows
    return np.where(np.abs(shift) > 200, values, np.round(values * factor) / factor)


def influence_of(X: Any, scale: np.ndarray) -> np.ndarray:
    """How far each feature varies over rows: its standard deviation, or the given scale without rows."""
    if X is None or X.shape[0] < 2:
        return scale
    deviation: np.ndarray = np.sqrt(moments(X, np.ones(X.shape[0]))[1])
    return deviation
