"""Linear programs over the regions of planes: the largest ball in a region, and planes with an empty region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from polyplane.explain.geometry._allowed import AllowedChange
from polyplane.planes import PlaneSet, check_single

#: A region is treated as empty if the radius of its largest ball, relative to the distances of its walls, is smaller.
TOO_THIN = 1e-7
#: Number of walls that a linear program starts with, and number that is added at a time.
FIRST_WALLS = 32


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball in feature space.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Centre.
    radius : float
        Radius; infinite if balls of any size fit. The centre is then that of a ball of radius 1.
    plane : int
        The plane whose region contains the ball.
    """

    center: np.ndarray
    radius: float
    plane: int


def chebyshev_ball(
    planes: PlaneSet, c: int | None = None, *, plane: int | None = None, lower: Any = None, upper: Any = None
) -> Ball | None:
    """Compute the largest ball inside the region of a class or a plane: its Chebyshev centre and radius.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    c : int, default=None
        Class index. The region of a class is a union of polyhedra. In each of them, one plane of the class scores
        higher than all planes of the other classes. The result is the largest ball that fits into one polyhedron. If
        the class owns one plane, like the class inside a polyhedron, it is the largest ball in the region.
    plane : int, default=None
        Plane index, instead of a class. The ball lies where this plane scores higher than all other planes, including
        those of its class.
    lower, upper : float or array-like of shape (n_features,), default=None
        Bounds of the ball.

    Returns
    -------
    ball : Ball or None
        None if the region is empty or too thin to contain a ball.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import chebyshev_ball
    >>> inside = (np.zeros((1, 2)), np.zeros(1))
    >>> around = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([0.0, -1.0, 0.0, -1.0]))
    >>> square = PlaneSet.of_classes([inside, around])
    >>> ball = chebyshev_ball(square, 0)
    >>> ball.center, round(ball.radius, 6)
    (array([0.5, 0.5]), 0.5)
    >>> chebyshev_ball(square, 1).radius
    inf
    """
    check_single(planes)
    allowed = AllowedChange.of(planes, lower, upper)
    if (c is None) == (plane is None):
        raise ValueError("Specify either a class, c, or a plane.")
    if plane is not None:
        if not 0 <= plane < planes.n_planes:
            raise ValueError(f"plane={plane} is out of range: this PlaneSet has planes 0 to {planes.n_planes - 1}.")
        return _ball(planes, plane, np.arange(planes.n_planes) != plane, allowed)
    if not 0 <= c < planes.n_classes:  # type: ignore[operator]
        raise ValueError(f"c={c} is out of range: this PlaneSet has classes 0 to {planes.n_classes - 1}.")
    own = np.flatnonzero(planes.owners == c)
    balls = [ball for p in own if (ball := _ball(planes, int(p), planes.owners != c, allowed)) is not None]
    return max(balls, key=lambda ball: ball.radius) if balls else None


def redundant_planes(planes: PlaneSet, *, lower: Any = None, upper: Any = None) -> np.ndarray:
    """Find redundant planes: removing them does not change any prediction.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    lower, upper : float or array-like of shape (n_features,), default=None
        Consider only points within these bounds.

    Returns
    -------
    redundant : ndarray of bool, shape (n_planes,)
        True for planes that have the largest score at no point. Of identical planes, all but the first are redundant.
        Each class keeps at least one plane, so that ``planes.prune(~redundant)`` is a valid `PlaneSet`.

    Notes
    -----
    Solves one linear program for each plane without the largest score at one of a few trial points. This takes seconds
    for hundreds of planes with tens of features, and minutes with hundreds of features.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import redundant_planes
    >>> planes = PlaneSet(np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, -1.0, 0.0]), [0, 1, 3])
    >>> redundant_planes(planes)
    array([False,  True, False])
    """
    check_single(planes)
    allowed = AllowedChange.of(planes, lower, upper)
    alive = np.ones(planes.n_planes, dtype=bool)
    owners, left = planes.owners, np.diff(planes.indptr)
    winning = _surely_winning(planes, allowed)
    # From last to first: the first of identical planes wins ties, so it is tested last.
    for p in np.flatnonzero(~winning)[::-1]:
        rivals = alive.copy()
        rivals[p] = False
        if left[owners[p]] > 1 and not _wins_somewhere(planes, int(p), rivals, allowed):
            alive[p] = False
            left[owners[p]] -= 1
    return ~alive


def _surely_winning(planes: PlaneSet, allowed: AllowedChange) -> np.ndarray:
    """Find planes with clearly the largest score at a trial point, which need no linear program."""
    coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
    away = coef - coef.mean(axis=0)
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    away = np.divide(away, lengths, out=np.zeros_like(away), where=lengths > 0)
    sure = np.zeros(planes.n_planes, dtype=bool)
    if not lengths.any():
        return sure
    reach = float(np.abs(intercept).max()) / float(lengths.max()) + 1.0
    for far in (0.3, 1.0, 3.0, 10.0, 100.0):
        scores = np.clip(far * reach * away, allowed.lower, allowed.upper) @ coef.T + intercept
        own = scores.diagonal().copy()
        np.fill_diagonal(scores, -np.inf)
        sure |= own - scores.max(axis=1) > 1e-6 * (
            np.abs(own) + np.abs(scores).max(axis=1, initial=0.0, where=scores > -np.inf)
        )
    return sure


def _ball(planes: PlaneSet, p: int, rivals: np.ndarray, allowed: AllowedChange) -> Ball | None:
    """Compute the largest ball in which plane `p` scores higher than the rivals (a mask); None if there is none."""
    program = _Program.of(planes, p, rivals, allowed)
    if program is None:
        return None
    center, radius = program.solve(1.0)
    if radius >= 1.0 - TOO_THIN:  # a very large ball fits: check whether the region is unbounded
        largest, radius = program.solve(np.inf)
        center = largest if radius < np.inf else program.solve(1.0 / program.unit)[0]
    return Ball(center * program.unit, radius * program.unit, p) if radius > TOO_THIN else None


def _wins_somewhere(planes: PlaneSet, p: int, rivals: np.ndarray, allowed: AllowedChange) -> bool:
    """Return whether any ball fits: finding a small one is faster than finding the largest."""
    program = _Program.of(planes, p, rivals, allowed)
    return program is not None and program.solve(1e3 * TOO_THIN)[1] > TOO_THIN


class _Program:
    """Linear program of the largest ball, with constraint generation: few of many walls are active.

    Lengths are scaled so that the distances of the walls from 0 are at most 1.
    """

    def __init__(self, normals: np.ndarray, offsets: np.ndarray, allowed: AllowedChange) -> None:
        below, above = np.isfinite(allowed.lower), np.isfinite(allowed.upper)
        edges = np.concatenate([-allowed.lower[below], allowed.upper[above]])
        size = float(np.abs(np.concatenate([offsets, edges])).max(initial=0.0))
        self.unit = max(size, float(np.finfo(np.float32).tiny)) if size > 0 else 1.0
        self.normals, self.offsets, self.edges = normals, offsets / self.unit, edges / self.unit
        eye = sparse.eye_array(normals.shape[1], format="csr")
        self.box = sparse.vstack([-eye[below], eye[above]], format="csr")

    @classmethod
    def of(cls, planes: PlaneSet, p: int, rivals: np.ndarray, allowed: AllowedChange) -> _Program | None:
        """Return the program of the region where plane `p` exceeds the rivals; None if a parallel rival exceeds it."""
        normals = planes.coef[rivals].astype(np.float64) - planes.coef[p]
        offsets = planes.intercept[p] - planes.intercept[rivals].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
        flat = lengths == 0
        first = np.arange(planes.n_planes)[rivals][flat] > p
        if ((offsets[flat] < 0) | (offsets[flat] == 0) & ~first).any():
            return None
        return cls(normals[~flat] / lengths[~flat, None], offsets[~flat] / lengths[~flat], allowed)

    def solve(self, most: float) -> tuple[np.ndarray, float]:
        """Return centre and radius of the largest ball with radius up to `most`; infinite if unbounded."""
        n_walls = len(self.offsets)
        met = np.arange(n_walls) if most == np.inf else np.argsort(self.offsets, kind="stable")[:FIRST_WALLS]
        while True:
            found = self._with(met, most)
            if found.status == 3:
                return np.zeros(self.normals.shape[1]), np.inf
            if found.status != 0:
                raise ArithmeticError(f"A linear program failed: {found.message}")
            center, radius = found.x[:-1], float(found.x[-1])
            over = self.normals @ center + radius - self.offsets
            over[met] = 0.0
            new = np.argsort(-over, kind="stable")[:FIRST_WALLS]
            new = new[over[new] > 0.01 * TOO_THIN]
            if not len(new):
                return center, radius
            met = np.concatenate([met, new])

    def _with(self, met: np.ndarray, most: float) -> Any:
        rows = sparse.vstack([sparse.csr_array(self.normals[met]), self.box], format="csr")
        rows = sparse.hstack([rows, np.ones((rows.shape[0], 1))], format="csr")
        n_features = self.normals.shape[1]
        goal = np.append(np.zeros(n_features), -1.0)
        bounds = [(None, None)] * n_features + [(None, None if most == np.inf else most)]
        limits = np.concatenate([self.offsets[met], self.edges])
        return linprog(goal, A_ub=rows, b_ub=limits, bounds=bounds, method="highs-ds")
