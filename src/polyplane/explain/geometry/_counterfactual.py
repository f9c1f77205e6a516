"""Counterfactuals: the smallest change of a row that leads to another class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain.geometry._allowed import AllowedChange, check_row
from polyplane.explain.geometry._least_change import TOLERANCE
from polyplane.explain.geometry._nearest import Region
from polyplane.planes import PlaneSet, check_single

#: How often the step beyond the boundary is doubled before a region is considered too thin.
DOUBLINGS = 40


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A counterfactual: a nearby point of another class.

    Parameters
    ----------
    point : ndarray of shape (n_features,)
        The changed row, in the dtype of the row.
    change : ndarray of shape (n_features,)
        The point minus the row.
    distance : float
        Length of the change, with each feature divided by its `scale`.
    before, after : int
        Predicted classes of the row and of the point.
    plane : int or None
        The plane with the largest score at the point; None for a committee.
    """

    point: np.ndarray
    change: np.ndarray
    distance: float
    before: int
    after: int
    plane: int | None


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
    r"""Find the nearest point that the planes assign to another class.

    The region of class :math:`c`, where one of its planes scores at least as high as all planes of the other classes,
    is a union of convex polyhedra:

    .. math:: \bigcup_{p \in c} \{x : w_p x + b_p \ge w_q x + b_q \text{ for all } q \notin c\}

    The distance to each polyhedron is the solution of a small quadratic program, which is solved exactly; polyhedra
    that cannot be the nearest are skipped. The point lies slightly beyond the decision boundary, so that
    `planes.predict` is not affected by rounding.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    x : array-like of shape (n_features,)
        The row. For a float32 row, the point is float32.
    target : int, default=None
        Target class. If None, any class other than the predicted one.
    lower, upper : float or array-like of shape (n_features,), default=None
        Bounds of the point.
    frozen : array-like of bool or of int, default=None
        Features that must not change, as a mask or as indices; bounds do not apply to them.
    scale : array-like of shape (n_features,), default=None
        Units :math:`s_j` of the features: the distance is :math:`\sqrt{\sum_j (\Delta_j / s_j)^2}`. If None, 1 for all.
    margin : float, default=0.0
        Required difference between the score of the target class and the largest score of another class at the point.

    Returns
    -------
    found : Counterfactual or None
        None if there is no such point: within the bounds, the target class is predicted nowhere, or only where scores
        are tied. If the row is in the target class and within the bounds, the distance is 0.

    Examples
    --------
    Class 1 is outside the unit square. The nearest point of class 1 is beyond the nearest side:

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import counterfactual
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
    check_single(planes)
    row = check_row(planes, x)
    allowed = AllowedChange.of(planes, lower, upper, frozen, scale)
    before = int(planes.predict(row[None])[0])
    check_goal(planes, target, margin)
    if target == before and margin == 0 and allowed.contains(row):
        return Counterfactual(row, np.zeros_like(row), 0.0, before, before, int(planes.winners(row[None])[0]))
    own = planes.owners != before if target is None else planes.owners == target
    region = Region(planes, np.flatnonzero(own), np.flatnonzero(~own), allowed)
    return _beyond_the_wall(planes, region, row, before, target, margin)


def check_goal(planes: PlaneSet, target: int | None, margin: float) -> None:
    """Raise an error if the target class or the margin is invalid."""
    if target is not None and not 0 <= target < planes.n_classes:
        raise ValueError(f"target={target!r} is not one of the classes 0 to {planes.n_classes - 1}.")
    if not 0 <= margin < np.inf:
        raise ValueError(f"margin={margin!r} must be finite and non-negative.")


def _beyond_the_wall(
    planes: PlaneSet, region: Region, row: np.ndarray, before: int, target: int | None, margin: float
) -> Counterfactual | None:
    push = rounding(planes, row)
    for _ in range(DOUBLINGS):
        found = region.nearest(row.astype(np.float64), margin + push)
        if found is None:
            return None
        point = region.allowed.clip(found.point, row)
        plane = int(planes.winners(point[None])[0])
        after = int(planes.owners[plane])
        if (after != before) if target is None else (after == target):
            change = point - row
            distance = float(np.linalg.norm(change.astype(np.float64) / region.allowed.scale))
            return Counterfactual(point, change, distance, before, after, plane)
        push *= 2.0
    return None


def rounding(planes: PlaneSet, row: np.ndarray) -> float:
    """Return an upper bound on the rounding error of scores and of the solution of a quadratic program."""
    size = np.abs(planes.coef).astype(np.float64) @ np.abs(row).astype(np.float64) + np.abs(planes.intercept)
    eps = float(np.finfo(row.dtype).eps)
    share = max(2.0 * eps * (8.0 + planes.n_features**0.5), 10 * TOLERANCE)
    return max(share * float(size.max()), float(np.finfo(np.float32).tiny))
