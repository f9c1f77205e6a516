"""Rounding of planes: few digits and few terms with the same predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.engine.data import moments
from polyplane.planes import PlaneSet

#: Number of digits without rows to check them on.
UNCHECKED_DIGITS = 4
#: Number of rows in a block: a candidate that changes too many predictions is rejected early.
BLOCK_ROWS = 4096
#: Largest number of terms that are tried one by one; with more, only the smallest ones together.
FEW_TERMS = 200


@dataclass(frozen=True, eq=False)
class RoundedPlanes:
    """Planes rounded for display.

    Parameters
    ----------
    planes : PlaneSet
        The rounded planes.
    digits : int
        Significant digits of the weights.
    offset_digits : int
        Significant digits of the offsets.
    dropped : int
        Number of omitted terms.
    changed : float or None
        Fraction of the rows whose predicted class changes; None without rows.
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
    """Round planes to the fewest digits, and omit the smallest terms, without changing predictions on some rows.

    Parameters
    ----------
    planes : PlaneSet
        The planes.
    X : matrix of shape (n_rows, n_features) or None
        The rows. If None, no terms are omitted, and the number of digits is fixed.
    influence : ndarray of shape (n_features,)
        Scale of each feature: the size of a term is its weight times the scale.
    tolerance : float, default=0.0
        Fraction of the rows whose predicted class may change.
    digits : int, default=None
        Number of digits. If None, the fewest digits within the tolerance.
    apart : bool, default=False
        Whether each plane is an inequality of its own, whose terms are compared with each other only.
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
    # Omitting terms uses at most half of the tolerance; rounding uses the rest.
    fewer, dropped = _drop_terms(
        exact, sizes, exactly.mean, lambda planes: exactly.changed(planes, tolerance / 2) is not None
    )
    for places in range(2, 9) if digits is None else [digits]:
        coef = round_to(fewer.coef, places)
        offsets = fewer.intercept + (fewer.coef - coef) @ exactly.mean  # keeps the score of the mean row
        for offset_places in range(places, places + 3):
            candidate = PlaneSet(coef, round_to(offsets, offset_places), planes.indptr)
            forced = digits is not None and offset_places == places + 2
            share = exactly.changed(candidate, 1.0 if forced else tolerance)
            if share is not None:
                return RoundedPlanes(candidate, places, offset_places, dropped, share)
    return RoundedPlanes(exact, 17, 17, 0, 0.0)


class _ExactPredictions:
    """Rows, and the predictions of the exact planes."""

    def __init__(self, planes: PlaneSet, X: Any) -> None:
        self.X, self.predicted = X, planes.predict(X)
        self.mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()

    def changed(self, planes: PlaneSet, allowed: float) -> float | None:
        """Return the fraction of rows whose predicted class changes with other planes; None if it is too large."""
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
    """Omit as many of the smallest terms as possible; their means are added to the offset."""
    weights = planes.coef.ravel()
    # Each plane keeps its leading term, so that no rule is empty.
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
    """Round numbers to some significant digits."""
    sizes = np.abs(values)
    powers = np.floor(np.log10(sizes, out=np.zeros_like(sizes), where=sizes > 0))
    shift = digits - 1 - powers
    factor = 10.0 ** np.clip(shift, -200, 200)  # 10 ** 309 overflows
    return np.where(np.abs(shift) > 200, values, np.round(values * factor) / factor)


def influence_of(X: Any, scale: np.ndarray) -> np.ndarray:
    """Return the scale of each feature: its standard deviation over rows, or without rows, the given scale."""
    if X is None or X.shape[0] < 2:
        return scale
    deviation: np.ndarray = np.sqrt(moments(X, np.ones(X.shape[0]))[1])
    return deviation
