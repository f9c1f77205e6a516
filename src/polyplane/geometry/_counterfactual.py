"""The smallest change that makes a row another class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.geometry._least_change import TOLERANCE
from polyplane.geometry._nearest import Limits, Region
from polyplane.planes import PlaneSet

#: How often the push beyond the wall is doubled before a region counts as too thin to be met.
DOUBLINGS = 40


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A row of another class, as near as there is one.

    Parameters
    ----------
    point : ndarray of shape (n_features,)
        The changed row, in the dtype of the row.
    change : ndarray of shape (n_features,)
        What was added to the row.
    distance : float
        The length of the change, each feature measured in its `scale`.
    before, after : int
        The class of the row and that of the point.
    plane : int
        The plane that wins at the point.
    """

    point: np.ndarray
    change: np.ndarray
    distance: float
    before: int
    after: int
    plane: int


def counterfactual(
    planes: PlaneSet,
    x: Any,
    target: int | None = None,
    *,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    scale: Any = None,
    margin: float = 0.0,
) -> Counterfactual | None:
    r"""The nearest point that the planes give another class.

    Class :math:`c` wins where one of its planes beats all planes of the other classes, a union of convex polyhedra:

    .. math:: \bigcup_{p \in c} \{x : w_p x + b_p \ge w_q x + b_q \text{ for all } q \notin c\}

    The distance to each is a small quadratic program, solved exactly; polyhedra that cannot be the nearest are left
    out. The point lies a hair beyond the wall, just enough for `planes.predict` to say so whatever the rounding.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    x : array-like of shape (n_features,)
        The row. A float32 row gets a float32 point.
    target : int, default=None
        The class to get to; None: any but that of the row.
    lower, upper : float or array-like of shape (n_features,), default=None
        Bounds of the point.
    frozen : array-like of bool or of int, default=None
        The features that must stay as they are, as a mask or by their numbers; bounds do not concern them.
    scale : array-like of shape (n_features,), default=None
        The change of each feature that counts as 1: the distance is :math:`\sqrt{\sum_j (\Delta_j / s_j)^2}`. None: 1.
    margin : float, default=0.0
        The score by which the point must win, beyond what rounding needs.

    Returns
    -------
    found : Counterfactual or None
        None when there is no such point: the target wins nowhere within the bounds, or only where it ties. A row of
        the target class that keeps to the bounds is its own counterfactual, at distance 0.

    Examples
    --------
    Class 1 lies outside of the unit square; the nearest way out is through the nearest side:

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.geometry import counterfactual
    >>> inside = (np.zeros((1, 2)), np.zeros(1))
    >>> around = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([0.0, -1.0, 0.0, -1.0]))
    >>> square = PlaneSet.of_classes([inside, around])
    >>> out = counterfactual(square, [0.25, 0.5])
    >>> out.after, round(out.distance, 6), out.point.round(6)
    (1, 0.25, array([-0. ,  0.5]))
    >>> counterfactual(square, [0.25, 0.5], frozen=[0]).point.round(6)
    array([ 0.25, -0.  ])
    >>> counterfactual(square, [0.25, 0.5], lower=0, upper=1) is None
    True
    """
    row = check_row(planes, x)
    limits = check_limits(planes.n_features, lower, upper, frozen, scale)
    before = int(planes.predict(row[None])[0])
    if target is not None and not 0 <= target < planes.n_classes:
        raise ValueError(f"target={target!r} is not one of the classes 0 to {planes.n_classes - 1}.")
    if not 0 <= margin < np.inf:
        raise ValueError(f"margin={margin!r} must be finite and not negative.")
    if target == before and margin == 0 and _allows(limits, row):
        return Counterfactual(row, np.zeros_like(row), 0.0, before, before, int(planes.winners(row[None])[0]))
    own = planes.owners != before if target is None else planes.owners == target
    region = Region(planes, np.flatnonzero(own), np.flatnonzero(~own), limits)
    return _beyond_the_wall(planes, region, row, before, target, margin)


def _beyond_the_wall(
    planes: PlaneSet, region: Region, row: np.ndarray, before: int, target: int | None, margin: float
) -> Counterfactual | None:
    push = _rounding(planes, row)
    for _ in range(DOUBLINGS):
        found = region.nearest(row.astype(np.float64), margin + push)
        if found is None:
            return None
        point = _in_bounds(found.point, row, region.limits)
        plane = int(planes.winners(point[None])[0])
        after = int(planes.owners[plane])
        if (after != before) if target is None else (after == target):
            change = point - row
            distance = float(np.linalg.norm(change.astype(np.float64) / region.limits.scale))
            return Counterfactual(point, change, distance, before, after, plane)
        push *= 2.0
    return None


def _rounding(planes: PlaneSet, row: np.ndarray) -> float:
    """More than the scores of a row, and the answer of a quadratic program, can be wrong by."""
    size = np.abs(planes.coef).astype(np.float64) @ np.abs(row).astype(np.float64) + np.abs(planes.intercept)
    eps = float(np.finfo(row.dtype).eps)
    share = max(2.0 * eps * (8.0 + planes.n_features**0.5), 10 * TOLERANCE)
    return max(share * float(size.max()), float(np.finfo(np.float32).tiny))


def _in_bounds(point: np.ndarray, row: np.ndarray, limits: Limits) -> np.ndarray:
    """The point in the dtype of the row; rounding carries no feature over its bound."""
    lower, upper = limits.lower.astype(row.dtype), limits.upper.astype(row.dtype)
    lower = np.where(lower < limits.lower, np.nextafter(lower, np.inf, dtype=row.dtype), lower)
    upper = np.where(upper > limits.upper, np.nextafter(upper, -np.inf, dtype=row.dtype), upper)
    return np.where(limits.free, np.clip(point.astype(row.dtype), lower, upper), row)


def _allows(limits: Limits, row: np.ndarray) -> bool:
    return bool(((row >= limits.lower) & (row <= limits.upper) | ~limits.free).all())


def check_row(planes: PlaneSet, x: Any) -> np.ndarray:
    """A finite float row with as many features as the planes."""
    row = np.asarray(x)
    row = row if row.dtype in (np.float32, np.float64) else row.astype(np.float64)
    if row.shape != (planes.n_features,):
        raise ValueError(f"x has shape {row.shape}; this PlaneSet needs one row of {planes.n_features} features.")
    if not np.isfinite(row).all():
        raise ValueError(f"x is not finite in feature {int((~np.isfinite(row)).argmax())}.")
    return row


def check_limits(n_features: int, lower: Any, upper: Any, frozen: Any, scale: Any) -> Limits:
    """The limits of a change, checked."""
    low, high = (
        _per_feature("lower", -np.inf if lower is None else lower, n_features),
        _per_feature("upper", np.inf if upper is None else upper, n_features),
    )
    lengths = _per_feature("scale", 1.0 if scale is None else scale, n_features)
    if (low > high).any():
        raise ValueError(f"lower is above upper in feature {int((low > high).argmax())}.")
    if not ((lengths > 0) & np.isfinite(lengths)).all():
        raise ValueError(f"scale must be positive; feature {int((~(lengths > 0)).argmax())} has none such.")
    free = np.ones(n_features, dtype=bool)
    if frozen is not None:
        free[_numbers(frozen, n_features)] = False
    return Limits(lengths, free, low, high)


def _per_feature(name: str, value: Any, n_features: int) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        raise ValueError(f"{name} must be one number or one for each of the {n_features} features.")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN.")
    return np.broadcast_to(array, n_features)


def _numbers(frozen: Any, n_features: int) -> np.ndarray:
    array = np.asarray(frozen)
    if array.dtype == bool and array.shape == (n_features,):
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.min() < 0 or array.max() >= n_features:
        raise ValueError(f"frozen must be a mask of {n_features} booleans or numbers from 0 to {n_features - 1}.")
    return array
