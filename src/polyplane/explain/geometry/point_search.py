"""Counterfactuals of rows of numbers, the nearest points of other classes, and distances to these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from polyplane.explain.geometry.nearest import TOLERANCE, AllowedChange, Region, check_row, least_change
from polyplane.model import Model
from polyplane.planes import PlaneSet, check_winners

#: How often the step beyond the boundary is doubled before a region is considered too thin.
MAX_DOUBLINGS = 40
#: Largest number of linearisations of the target's score, and of rounds of cuts for each of them.
MAX_MOVES, MAX_ROUNDS = 20, 100
#: Number of classes that are tried if no target is given.
MAX_GOALS = 4
#: Margins, relative to the largest score, that are tried until the model itself predicts the class of the point.
MARGINS = (0.0, *(10.0**power for power in range(-10, -2)))
#: The local search stops when a move reduces the length of the change by less than this fraction.
PROGRESS = 1e-6


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
        The plane with the largest score at the point; None if class scores are not maxima of planes.
    proven : bool
        Whether no nearer point is of the target class, or of another class if no target is given.
    """

    point: np.ndarray
    change: np.ndarray
    distance: float
    before: int
    after: int
    plane: int | None
    proven: bool = True


def counterfactual(
    planes: PlaneSet | Model,
    x: Any,
    target: int | None = None,
    *,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    scale: Any = None,
    norm: Any = 2,
    margin: float = 0.0,
) -> Counterfactual | None:
    r"""Find the nearest point of another class.

    The region of class :math:`c`, where one of its planes scores at least as high as all planes of the other classes,
    is a union of convex polyhedra:

    .. math:: \bigcup_{p \in c} \{x : w_p x + b_p \ge w_q x + b_q \text{ for all } q \notin c\}

    The distance to each polyhedron is the solution of a small quadratic program, or with another norm of a linear
    program, which is solved exactly; polyhedra that cannot be the nearest are skipped. The point lies slightly beyond
    the decision boundary, so that `planes.predict` is not affected by rounding.

    For a committee, or planes pooled by log-sum-exp, a nearby point is found by local search, which is not proven to be
    the nearest one. The class scores :math:`f_c` are convex. The score :math:`f_t` of the target class is replaced by
    its tangent plane :math:`\bar f_t \le f_t` at a point, and the solution of the convex program

    .. math:: \min_z \|z - x\| \quad\text{s.t.}\quad \bar f_t(z) \ge f_c(z) \text{ for all } c \ne t

    is in the target class. This is repeated from the solution; the change never becomes longer. The search starts from
    the row and from the counterfactual of each member.

    Parameters
    ----------
    planes : PlaneSet or Model
        The planes, or a model that is linear between its kinks: the point is one that the model itself, whose scalers
        round differently than its planes, assigns to another class.
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
    norm : {1, 2, inf}, default=2
        How the distance is measured: the sum of all :math:`|\Delta_j / s_j|`, which changes few features, the root of
        the sum of their squares, or the largest of them.
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

    A committee:

    >>> line, steeper = (PlaneSet(np.array([[0.0], [w]]), np.array([0.0, -1.0]), [0, 1, 2]) for w in (1.0, 3.0))
    >>> found = counterfactual(PlaneSet.of_members([line, steeper]), [0.0])
    >>> found.after, round(found.distance, 6), found.proven
    (1, 0.5, False)
    """
    limits: dict[str, Any] = {"lower": lower, "upper": upper, "frozen": frozen, "scale": scale, "norm": norm}
    if isinstance(planes, Model):
        flat, before = planes.flat().planes, int(planes.class_scores(np.asarray(x)[None]).argmax())
        size = float(np.abs(flat.scores(np.asarray(x)[None])).max()) + 1e-30
        for share in MARGINS:
            found = counterfactual(flat, x, target, margin=margin + share * size, **limits)
            if found is None:
                return None
            after = int(planes.class_scores(found.point[None]).argmax())
            if after == target or (target is None and after != before):
                return replace(found, after=after)
        return None
    search = _Search(planes, x, target, AllowedChange.of(planes.n_features, **limits), margin)
    if search.best is not None:
        return search.best
    if search.is_exact:
        search.find_nearest(target)
    else:
        goals = search.goals_from(search.x)[:MAX_GOALS] if target is None else [target]
        for goal in goals:
            search.descend(search.x, goal)
        aims: list[int | None] = list(goals)
        for member, aim in product(planes.members, aims if search.ceiling == np.inf else [target]):
            found = counterfactual(member.replace(pooling="max"), x, aim, margin=margin, **limits)
            if found is not None:
                search.take(found.point, target)
                search.descend(found.point, search.goals_from(found.point)[0] if aim is None else aim)
    return search.best


class _Search:
    """Search for the nearest point of a class, with the nearest one so far."""

    def __init__(self, planes: PlaneSet, x: Any, target: int | None, allowed: AllowedChange, margin: float) -> None:
        self.planes, self.allowed, self.margin = planes, allowed, margin
        self.row = check_row(planes, x)
        self.before = int(planes.predict(self.row[None])[0])
        if target is not None and not 0 <= target < planes.n_classes:
            raise ValueError(f"target={target!r} is not one of the classes 0 to {planes.n_classes - 1}.")
        if not 0 <= margin < np.inf:
            raise ValueError(f"margin={margin!r} must be finite and non-negative.")
        self.x = self.row.astype(np.float64)
        self.is_exact = planes.has_winners
        self.best: Counterfactual | None = None
        if target == self.before and margin == 0 and allowed.contains(self.row):
            self.take(self.row, target)
        self.push = _rounding(planes, self.row)
        self.precise = planes.replace(
            coef=planes.coef.astype(np.float64), intercept=planes.intercept.astype(np.float64)
        )
        lower, upper = ((edge - self.x) / allowed.scale for edge in (allowed.lower, allowed.upper))
        self.box = lower[allowed.free], upper[allowed.free]

    @property
    def ceiling(self) -> float:
        """Distance of the nearest point so far."""
        return np.inf if self.best is None else self.best.distance

    def take(self, point: np.ndarray, target: int | None) -> bool:
        """Keep a point if it is the nearest so far; return whether it is in the target class by the margin."""
        scores = self.planes.class_scores(point[None])[0].astype(np.float64)
        after = int(scores.argmax())
        lead = scores[after] - np.delete(scores, after).max()
        if after == self.before if target is None else after != target:
            return False
        if not self.is_exact and lead < self.margin:  # an exact program has it, over the class of the row
            return False
        change = point - self.row
        distance = self.allowed.length(change)
        if distance < self.ceiling:
            plane = int(self.planes.winners(point[None])[0]) if self.is_exact else None
            self.best = Counterfactual(
                point, change, distance, self.before, after, plane, self.is_exact or not distance
            )
        return True

    def beyond(self, solve: Callable[[float], np.ndarray | None], target: int | None) -> np.ndarray | None:
        """Return the solution of a program, slightly beyond the boundary because of rounding."""
        push = self.push
        for _ in range(MAX_DOUBLINGS):
            found = solve(push)
            if found is None or self.take(self.allowed.clip(found, self.row), target):
                return found
            push *= 2.0
        return None

    def find_nearest(self, target: int | None) -> None:
        """Find the nearest point, where class scores are maxima of planes."""
        own = self.planes.owners != self.before if target is None else self.planes.owners == target
        region = Region(self.planes, np.flatnonzero(own), np.flatnonzero(~own), self.allowed)

        self.beyond(lambda push: region.nearest(self.x, self.margin + push)[0], target)

    def goals_from(self, point: np.ndarray) -> list[int]:
        """Return the classes other than the predicted one, sorted by descending score at a point."""
        order = np.argsort(-self.precise.class_scores(point[None].astype(np.float64))[0], kind="stable")
        return order[order != self.before].tolist()

    def descend(self, start: np.ndarray, goal: int) -> None:
        """Move from a start to nearer points of a class until convergence."""
        point = start.astype(np.float64)
        for _ in range(MAX_MOVES):
            before, tangent = self.ceiling, self.precise.at(point)
            found = self.beyond(partial(self._solve, tangent, goal), goal)
            if found is None and self.best is None:
                # The nearest point of the class for the linear classifier that equals the model at the point.
                local = _Search(tangent, self.x, goal, self.allowed, self.margin)
                local.find_nearest(goal)
                found = None if local.best is None else local.best.point
            elif self.ceiling > before * (1.0 - PROGRESS):
                return
            if found is None or np.allclose(found, point, rtol=PROGRESS, atol=0.0):
                return
            point = found

    def _solve(self, tangent: PlaneSet, goal: int, push: float) -> np.ndarray | None:
        """Return the nearest point where a plane exceeds all other class scores, which are approximated by cuts."""
        others, free = np.arange(self.planes.n_classes) != goal, self.allowed.free
        normals, limits, point = np.zeros((0, np.count_nonzero(free))), np.zeros(0), self.x
        for _ in range(MAX_ROUNDS):
            rivals = self.precise.at(point)
            ahead = tangent.coef[goal] - rivals.coef[others]
            offsets = tangent.intercept[goal] - rivals.intercept[others]
            behind = ahead @ point + offsets < self.margin + 0.5 * push
            if not behind.any():
                return point
            cuts = ahead[behind][:, free] * self.allowed.scale[free]
            if not cuts.any(axis=1).all():
                return None  # no allowed change affects the difference to this class
            normals = np.concatenate([normals, cuts])
            limits = np.concatenate([limits, self.margin + push - ahead[behind] @ self.x - offsets[behind]])
            change = least_change(normals, limits, *self.box, self.ceiling * (1.0 + PROGRESS), self.allowed.norm)
            if change is None:
                return None
            point = self.x.copy()
            point[free] += change * self.allowed.scale[free]
        return None


def _rounding(planes: PlaneSet, row: np.ndarray) -> float:
    """Return an upper bound on the rounding error of scores and of the solution of a quadratic program."""
    size = np.abs(planes.coef).astype(np.float64) @ np.abs(row).astype(np.float64) + np.abs(planes.intercept)
    eps = float(np.finfo(row.dtype).eps)
    share = max(2.0 * eps * (8.0 + planes.n_features**0.5), 10 * TOLERANCE)
    return max(share * float(size.max()), float(np.finfo(np.float32).tiny))


def signed_distance(
    planes: PlaneSet,
    X: Any,
    y: Any = None,
    *,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    scale: Any = None,
    norm: Any = 2,
) -> np.ndarray:
    r"""Compute the distance of rows to the decision boundary of a class: positive inside, negative outside.

    For a row inside the region of the class, it is the distance to the nearest point of another class; for a row
    outside, to the nearest point of the class. It is exact also where several planes meet, where it differs from the
    smallest distance to a plane.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows.
    y : int or array-like of shape (n_rows,), default=None
        Class index, or one per row. If None, the predicted classes; all distances are then non-negative.
    lower, upper, frozen, scale, norm
        As in `counterfactual`.

    Returns
    -------
    distances : ndarray of shape (n_rows,)
        Signed distances; :math:`\pm\infty` for a class without a boundary.

    Examples
    --------
    The second row is nearest to a corner of the unit square:

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import signed_distance
    >>> inside = (np.zeros((1, 2)), np.zeros(1))
    >>> around = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([0.0, -1.0, 0.0, -1.0]))
    >>> square = PlaneSet.of_classes([inside, around])
    >>> signed_distance(square, [[0.25, 0.5], [4.0, 5.0]], 0)
    array([ 0.25, -5.  ])
    """
    check_winners(planes)
    X = X if sparse.issparse(X) else np.asarray(X)
    allowed = AllowedChange.of(planes.n_features, lower, upper, frozen, scale, norm)
    predicted = planes.predict(X)
    classes = predicted if y is None else np.broadcast_to(np.asarray(y), len(predicted))
    if len(classes) and not (classes.min() >= 0 and classes.max() < planes.n_classes):
        raise ValueError(f"y must contain class indices from 0 to {planes.n_classes - 1}.")
    distances = np.empty(len(predicted))
    for c in np.unique(classes):
        own, others = np.flatnonzero(planes.owners == c), np.flatnonzero(planes.owners != c)
        for inside in (True, False):
            rows = np.flatnonzero((classes == c) & ((predicted == c) == inside))
            if len(rows):
                region = Region(planes, *((others, own) if inside else (own, others)), allowed)
                for row in rows:
                    x = X[[row]].toarray()[0] if sparse.issparse(X) else X[row]
                    distances[row] = region.nearest(x.astype(np.float64))[1] * (1.0 if inside else -1.0)
    return distances
