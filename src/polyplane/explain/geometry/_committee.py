"""Counterfactuals of a committee: local search for a small change that leads to another class."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from polyplane.explain.geometry._allowed import AllowedChange, check_row
from polyplane.explain.geometry._counterfactual import DOUBLINGS, Counterfactual, check_goal, counterfactual, rounding
from polyplane.explain.geometry._least_change import least_change
from polyplane.planes import PlaneSet

#: Largest number of linearisations of the target's score, and of rounds of cuts for each of them.
MOVES, ROUNDS = 20, 100
#: Number of classes that are tried if no target is given.
MOST_GOALS = 4
#: The search stops when a move reduces the length of the change by less than this fraction.
PROGRESS = 1e-6


def committee_counterfactual(
    committee: PlaneSet,
    x: Any,
    target: int | None = None,
    *,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    scale: Any = None,
    margin: float = 0.0,
) -> Counterfactual | None:
    r"""Find a nearby point that a committee assigns to another class, by local search.

    The class scores :math:`f_c` are convex: means of maxima of planes. The search replaces the score :math:`f_t` of the
    target class by its tangent plane :math:`\bar f_t \le f_t` at a point, and solves the convex program

    .. math:: \min_z \|z - x\| \quad\text{s.t.}\quad \bar f_t(z) \ge f_c(z) \text{ for all } c \ne t

    The committee assigns the solution to the target class. The search repeats this from the solution; the change never
    becomes longer. It starts from the row and from the counterfactual of each member, and returns the nearest point
    found. This point is not proven to be the nearest one, except for a committee of one member, whose exact
    counterfactual is returned.

    Parameters
    ----------
    committee : PlaneSet
        The model.
    x : array-like of shape (n_features,)
        The row. For a float32 row, the point is float32.
    target : int, default=None
        Target class. If None, any class other than the predicted one.
    lower, upper, frozen, scale, margin
        As in `counterfactual`.

    Returns
    -------
    found : Counterfactual or None
        None if the search finds no such point. `plane` is None, unless the committee has one member.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import committee_counterfactual
    >>> line, steeper = (PlaneSet(np.array([[0.0], [w]]), np.array([0.0, -1.0]), [0, 1, 2]) for w in (1.0, 3.0))
    >>> found = committee_counterfactual(PlaneSet.of_members([line, steeper]), [0.0])
    >>> found.after, round(found.distance, 6)
    (1, 0.5)
    """
    how = {"lower": lower, "upper": upper, "frozen": frozen, "scale": scale, "margin": margin}
    if committee.n_members == 1:
        return counterfactual(committee.members[0], x, target, **how)
    row = check_row(committee, x)
    allowed = AllowedChange.of(committee, lower, upper, frozen, scale)
    check_goal(committee, target, margin)
    before = int(committee.predict(row[None])[0])
    if target == before and margin == 0 and allowed.contains(row):
        return Counterfactual(row, np.zeros_like(row), 0.0, before, before, None)
    search = _Search(committee, row, allowed, before, margin)
    goals = search.goals_from(row)[:MOST_GOALS] if target is None else [target]
    for goal in goals:
        search.descend(row, goal)
    for member, aim in product(committee.members, [target] if target is not None or search.best else goals):
        found = counterfactual(member, row, aim, **how)
        if found is not None:
            search.take(found.point, target)
            search.descend(found.point, search.goals_from(found.point)[0] if aim is None else aim)
    return search.best


class _Search:
    """Local search, with the nearest point so far."""

    def __init__(
        self, committee: PlaneSet, row: np.ndarray, allowed: AllowedChange, before: int, margin: float
    ) -> None:
        self.committee, self.row, self.allowed, self.before, self.margin = committee, row, allowed, before, margin
        coef, intercept = (part.astype(np.float64) for part in (committee.coef, committee.intercept))
        self.exact = committee.replace(coef=coef, intercept=intercept)
        self.x, self.push = row.astype(np.float64), rounding(committee, row)
        lower, upper = ((edge - self.x) / allowed.scale for edge in (allowed.lower, allowed.upper))
        self.box = lower[allowed.free], upper[allowed.free]
        self.best: Counterfactual | None = None

    def goals_from(self, point: np.ndarray) -> list[int]:
        """Return the classes other than the predicted one, sorted by descending score at a point."""
        scores = self.exact.class_scores(point[None].astype(np.float64))[0]
        order = np.argsort(-scores, kind="stable")
        return order[order != self.before].tolist()

    def descend(self, start: np.ndarray, goal: int) -> None:
        """Move from a start to nearer points of a class until convergence."""
        point = start.astype(np.float64)
        for _ in range(MOVES):
            before = self._ceiling()
            found = self._beyond_the_wall(goal, point)
            if found is None and self.best is None:
                found = self._by_the_local_machine(goal, point)
            elif self._ceiling() > before * (1.0 - PROGRESS):
                return
            if found is None or np.allclose(found, point, rtol=PROGRESS, atol=0.0):
                return
            point = found

    def take(self, point: np.ndarray, goal: int | None) -> bool:
        """Keep a point if it is the nearest so far; return whether it is in the target class by the margin."""
        scores = self.committee.class_scores(point[None])[0].astype(np.float64)
        after = int(scores.argmax())
        lead = scores[after] - np.delete(scores, after).max()
        if (after == self.before if goal is None else after != goal) or lead < self.margin:
            return False
        change = point - self.row
        distance = float(np.linalg.norm(change.astype(np.float64) / self.allowed.scale))
        if distance < self._ceiling():
            self.best = Counterfactual(point, change, distance, self.before, after, None)
        return True

    def _ceiling(self) -> float:
        return np.inf if self.best is None else self.best.distance

    def _by_the_local_machine(self, goal: int, point: np.ndarray) -> np.ndarray | None:
        """Return the nearest point of the class for the linear classifier that equals the committee at a point."""
        scale, free, lower, upper = self.allowed
        found = counterfactual(
            self.exact.at(point), self.x, goal, lower=lower, upper=upper, frozen=~free, scale=scale, margin=self.margin
        )
        return None if found is None else found.point

    def _beyond_the_wall(self, goal: int, point: np.ndarray) -> np.ndarray | None:
        """Return the solution for the tangent at a point, slightly beyond the boundary because of rounding."""
        tangent, push = self.exact.at(point), self.push
        for _ in range(DOUBLINGS):
            found = self._solve(tangent.coef[goal], float(tangent.intercept[goal]), goal, push)
            if found is None:
                return None
            if self.take(self.allowed.clip(found, self.row), goal):
                return found
            push *= 2.0
        return None

    def _solve(self, coef: np.ndarray, intercept: float, goal: int, push: float) -> np.ndarray | None:
        """Return the nearest point where a plane exceeds all other class scores, which are approximated by cuts."""
        others, free = np.arange(self.exact.n_classes) != goal, self.allowed.free
        normals, limits, point = np.zeros((0, np.count_nonzero(free))), np.zeros(0), self.x
        for _ in range(ROUNDS):
            rivals = self.exact.at(point)
            ahead, offsets = coef - rivals.coef[others], intercept - rivals.intercept[others]
            behind = ahead @ point + offsets < self.margin + 0.5 * push
            if not behind.any():
                return point
            cuts = ahead[behind][:, free] * self.allowed.scale[free]
            if not cuts.any(axis=1).all():
                return None  # no allowed change affects the difference to this class
            normals = np.concatenate([normals, cuts])
            limits = np.concatenate([limits, self.margin + push - ahead[behind] @ self.x - offsets[behind]])
            change = least_change(normals, limits, *self.box, self._ceiling() * (1.0 + PROGRESS))
            if change is None:
                return None
            point = self.x.copy()
            point[free] += change * self.allowed.scale[free]
        return None
