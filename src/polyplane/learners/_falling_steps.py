"""Planes as sums that are never scaled, with steps 1 / (alpha t): what the machines trained so have in common.

A holder of such planes has the fields `coef` (feature by feature), `intercept`, `margin` and `mean`: what it stores is
`margin` times the planes, and `mean` is their running average, or None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from polyplane.engine.data import Data
from polyplane.engine.method import Method

Holder = TypeVar("Holder", bound=Any)

#: Steps 1 / (alpha t) that always fall.
FOREVER = 1 << 60
#: Where old rows fade, the stored sums grow by this much before they are scaled down, far from the end of float32.
LARGEST_GROWTH = float(1 << 20)
#: About so many rows decide between the average of the planes and the last ones.
ROWS_TO_JUDGE = 5000


def window_of(half_life: float | None) -> int:
    """Visits after which steps fall no more, so that what a row taught is halved in `half_life` rows.

    From then on the planes lose 1 / window of themselves at each visit: (1 - 1 / window) ** half_life is 1/2.
    """
    return FOREVER if half_life is None else max(2, round(half_life / math.log(2)))


def pieces(order: np.ndarray, window: int) -> Iterator[np.ndarray]:
    """Parts in which the margin grows by no more than LARGEST_GROWTH."""
    length = max(1, int(math.log(LARGEST_GROWTH) * (window - 1)))
    for first in range(0, len(order), length):
        yield order[first : first + length]


def share_of_last(blends: int, blend_rows: int, window: int) -> float:
    """The part of the planes at hand in their average.

    Polynomial-decay averaging (Shamir and Zhang, 2013): late ones count most. Where old rows fade, the average looks
    back on a quarter of the window.
    """
    return max(4.0 / (blends + 4.0), -math.expm1(-4.0 * blend_rows / window))


def rescaled(holder: Holder, margin: float) -> Holder:
    """The same planes with another margin."""
    factor = margin / holder.margin
    return replace(holder, coef=holder.coef * factor, intercept=holder.intercept * factor, margin=margin)


def last_planes(holder: Any) -> tuple[np.ndarray, np.ndarray]:
    """The planes as they are, not averaged."""
    scale = 1.0 / holder.margin
    return holder.coef * scale, holder.intercept * scale


def planes_of(holder: Any, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The average of the planes, with the part of the planes at hand that has not gone into it yet."""
    mean: tuple[np.ndarray, np.ndarray] | None = holder.mean
    if mean is None:
        return last_planes(holder)
    if share == 0.0:
        return mean
    now = last_planes(holder)
    return now[0] * share + mean[0] * (1.0 - share), now[1] * share + mean[1] * (1.0 - share)


def blended(holder: Holder, share: float) -> Holder:
    """The same planes, taken into their average."""
    coef, intercept = last_planes(holder)
    if holder.mean is not None:
        for new, mean in zip((coef, intercept), holder.mean, strict=True):
            new *= share
            new += mean * (1.0 - share)
    return replace(holder, mean=(coef, intercept))


def taller(array: np.ndarray, n_rows: int) -> np.ndarray:
    """The array with rows of zeros after its own."""
    higher = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    higher[: len(array)] = array
    return higher


def last_is_better(method: Method[Any], state: Any, data: Data) -> bool:
    """Whether the last planes err clearly less on the rows of the training than their average.

    Planes that have no shape to find keep changing places: their average is a plane of nobody's.
    """
    rows = data.train[:: max(1, len(data.train) // ROWS_TO_JUDGE)]
    X, y = data.X[rows], data.y[rows]
    mean_error, last_error = (
        float(np.mean(method.planes(replace(state, prefers_last=last)).predict(X) != y)) for last in (False, True)
    )
    return last_error + 3.0 * math.sqrt(mean_error * (1.0 - mean_error) / len(rows)) < mean_error
