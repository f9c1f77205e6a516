"""Nearest point where one of some planes scores higher than all of some other planes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyplane.explain.geometry._allowed import AllowedChange
from polyplane.explain.geometry._least_change import least_change
from polyplane.planes import PlaneSet

#: Multipliers for the lower bound of the distance to a half-space within a box, relative to the one without the box.
MULTIPLIERS = 2.0 ** (np.arange(15) / 2)


class Found(NamedTuple):
    """A point, its distance, and the plane with the largest score there."""

    point: np.ndarray
    distance: float
    plane: int


class Region:
    r"""Region where one of the planes `own` scores at least as high as all planes `rivals`.

    It is a union of convex polyhedra, one for each plane of `own`. The distance to the farthest half-space of a
    polyhedron is a lower bound on the distance to it. Polyhedra are visited in the order of these bounds, until no
    other can be nearer.
    """

    def __init__(self, planes: PlaneSet, own: np.ndarray, rivals: np.ndarray, allowed: AllowedChange) -> None:
        self.own, self.rivals, self.allowed = own, rivals, allowed
        coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
        self.own_planes = coef[own], intercept[own]
        self.rival_planes = coef[rivals], intercept[rivals]
        a, b = (side[:, allowed.free] * allowed.scale[allowed.free] for side in (coef[own], coef[rivals]))
        sizes = np.add.outer(np.square(a).sum(axis=1), np.square(b).sum(axis=1))
        # The slack exceeds the rounding error of this difference, so that it remains a lower bound.
        self.lengths = np.sqrt(np.maximum(sizes - 2.0 * (a @ b.T), 0.0) + 1e-12 * sizes)
        self.beaten = self._beaten_twins()

    def _beaten_twins(self) -> np.ndarray:
        """Find, for each plane of `own`, identical rivals that come later: the first of identical planes wins ties."""
        (coef, intercept), (rival_coef, rival_intercept) = self.own_planes, self.rival_planes
        beaten = np.zeros((len(self.own), len(self.rivals)), dtype=bool)
        alike = np.equal.outer(intercept, rival_intercept) & np.less.outer(self.own, self.rivals)
        for i, j in np.argwhere(alike & np.equal.outer(coef.sum(axis=1), rival_coef.sum(axis=1))):
            beaten[i, j] = np.array_equal(coef[i], rival_coef[j])
        return beaten

    def nearest(self, x: np.ndarray, margin: float = 0.0) -> Found | None:
        """Return the point nearest to `x` where `own` scores higher by at least `margin`; None if there is none."""
        bounds, farthest = self._half_spaces(x, margin)
        lower, upper = self._box(x)
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            bounds = np.maximum(bounds, self._half_spaces_in_box(x, margin, farthest, lower, upper))
        best, change, plane = np.inf, None, -1
        for i in np.argsort(bounds, kind="stable"):
            if bounds[i] >= best or bounds[i] == np.inf:
                break
            found = self._project(x, int(i), margin, (lower, upper), best)
            if found is not None and (length := float(np.linalg.norm(found))) < best:
                best, change, plane = length, found, int(self.own[i])
        if change is None:
            return None
        point = x.copy()
        point[self.allowed.free] += change * self.allowed.scale[self.allowed.free]
        return Found(point, best, plane)

    def _half_spaces(self, x: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each plane of `own`, the distance to its farthest half-space and the rival that defines it."""
        ours, theirs = (coef @ x + intercept for coef, intercept in (self.own_planes, self.rival_planes))
        missing = theirs - ours[:, None] + margin
        missing[self.beaten] = 0.0
        # If the length is 0, no change affects the difference; `_project` checks its sign.
        ways = np.divide(np.maximum(missing, 0.0), self.lengths, out=np.zeros_like(missing), where=self.lengths > 0)
        farthest = ways.argmax(axis=1)
        return ways[np.arange(len(ways)), farthest] * (1.0 - 1e-12), farthest

    def _half_spaces_in_box(
        self, x: np.ndarray, margin: float, rivals: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> np.ndarray:
        """Return lower bounds of the same distances within the box: values of the dual of one constraint."""
        free = self.allowed.free
        difference = self.own_planes[0] - self.rival_planes[0][rivals]
        missing = margin - difference @ x - (self.own_planes[1] - self.rival_planes[1][rivals])
        normals = difference[:, free] * self.allowed.scale[free]
        square = np.einsum("ij,ij->i", normals, normals)
        start = np.divide(np.maximum(missing, 0.0), square, out=np.zeros_like(square), where=square > 1e-100)
        best = np.zeros(len(normals))
        for factor in MULTIPLIERS:
            multiplier = factor * start
            change = np.clip(multiplier[:, None] * normals, lower, upper)
            left = missing - np.einsum("ij,ij->i", normals, change)
            best = np.maximum(best, 0.5 * np.einsum("ij,ij->i", change, change) + multiplier * left)
        bound: np.ndarray = np.sqrt(2.0 * best) * (1.0 - 1e-9)
        return bound

    def _box(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scale, free, lower, upper = self.allowed
        return ((lower - x) / scale)[free], ((upper - x) / scale)[free]

    def _project(
        self, x: np.ndarray, i: int, margin: float, box: tuple[np.ndarray, np.ndarray], ceiling: float
    ) -> np.ndarray | None:
        """Return the shortest change into the polyhedron of one plane."""
        free = self.allowed.free
        difference = self.own_planes[0][i] - self.rival_planes[0]
        missing = margin - difference @ x - (self.own_planes[1][i] - self.rival_planes[1])
        normals = difference[:, free] * self.allowed.scale[free]
        flat = ~normals.any(axis=1)
        # If no allowed change affects the difference of two planes, it must already have the right sign.
        if (missing[flat & ~self.beaten[i]] > 0).any():
            return None
        return least_change(normals[~flat], missing[~flat], *box, ceiling)
