"""Linear programs over the regions of planes: the largest ball in one, and the planes that have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from polyplane.committee import check_single
from polyplane.geometry._allowed import AllowedChange
from polyplane.planes import PlaneSet

#: A region whose largest ball is smaller than this, in units of the walls' distances, counts as empty.
TOO_THIN = 1e-7
#: A linear program begins with so many of the walls, and takes so many others in at a time.
FIRST_WALLS = 32


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball in feature space.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
        Its centre.
    radius : float
        Its radius; infinite when balls of any size fit. The centre is then that of a ball of radius 1.
    plane : int
        The plane that the ball is due to.
    """

    center: np.ndarray
    radius: float
    plane: int


def chebyshev_ball(
    planes: PlaneSet, c: int | None = None, *, plane: int | None = None, lower: Any = None, upper: Any = None
) -> Ball | None:
    """Find the largest ball inside the region of a class or a plane: its Chebyshev centre and radius.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    c : int, default=None
        The class. Its region is a union of polyhedra, in each of which one of its planes beats all planes of the
        other classes; the ball is the largest that fits into one of these. If the class owns one plane, as the class
        inside of a polyhedron does, this is the largest of all.
    plane : int, default=None
        The plane, instead of a class: the ball lies where it beats all other planes, those of its class as well.
    lower, upper : float or array-like of shape (n_features,), default=None
        Bounds of the ball.

    Returns
    -------
    ball : Ball or None
        None when the region is empty, or too thin to hold any ball.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.geometry import chebyshev_ball
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
        raise ValueError("Specify either a class or a plane.")
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
    """Find planes that win nowhere: removing them does not change any prediction.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    lower, upper : float or array-like of shape (n_features,), default=None
        Consider only points within these bounds.

    Returns
    -------
    redundant : ndarray of bool, shape (n_planes,)
        Of equal planes all but the first are. Each class keeps a plane, even one that wins nowhere, so that
        ``planes.prune(~redundant)`` is a `PlaneSet`.

    Notes
    -----
    A linear program for each plane that does not win at a likely point: seconds for hundreds of planes in tens of
    features, minutes in hundreds of features.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.geometry import redundant_planes
    >>> planes = PlaneSet(np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, -1.0, 0.0]), [0, 1, 3])
    >>> redundant_planes(planes)
    array([False,  True, False])
    """
    check_single(planes)
    allowed = AllowedChange.of(planes, lower, upper)
    alive = np.ones(planes.n_planes, dtype=bool)
    owners, left = planes.owners, np.diff(planes.indptr)
    winning = _surely_winning(planes, allowed)
    # From the last to the first: of equal planes the first wins the ties, so it is the last to be asked.
    for p in np.flatnonzero(~winning)[::-1]:
        rivals = alive.copy()
        rivals[p] = False
        if left[owners[p]] > 1 and not _wins_somewhere(planes, int(p), rivals, allowed):
            alive[p] = False
            left[owners[p]] -= 1
    return ~alive


def _surely_winning(planes: PlaneSet, allowed: AllowedChange) -> np.ndarray:
    """Planes that win clearly at points where they may be expected to, which saves their linear programs."""
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
    """The largest ball in which plane `p` beats the rivals (a mask); None when there is none."""
    program = _Program.of(planes, p, rivals, allowed)
    if program is None:
        return None
    center, radius = program.solve(1.0)
    if radius >= 1.0 - TOO_THIN:  # so large a ball fits: is there a largest one?
        largest, radius = program.solve(np.inf)
        center = largest if radius < np.inf else program.solve(1.0 / program.unit)[0]
    return Ball(center * program.unit, radius * program.unit, p) if radius > TOO_THIN else None


def _wins_somewhere(planes: PlaneSet, p: int, rivals: np.ndarray, allowed: AllowedChange) -> bool:
    """Whether there is any ball: a small one is found sooner than the largest."""
    program = _Program.of(planes, p, rivals, allowed)
    return program is not None and program.solve(1e3 * TOO_THIN)[1] > TOO_THIN


class _Program:
    """The linear program of the largest ball. Walls are met as they are needed: few of many touch it.

    Lengths are measured in a unit, so that the walls' distances from 0 are at most 1.
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
        """The program of the region in which plane `p` beats the rivals; None when an equal or parallel one wins."""
        normals = planes.coef[rivals].astype(np.float64) - planes.coef[p]
        offsets = planes.intercept[p] - planes.intercept[rivals].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
        flat = lengths == 0
        first = np.arange(planes.n_planes)[rivals][flat] > p
        if ((offsets[flat] < 0) | (offsets[flat] == 0) & ~first).any():
            return None
        return cls(normals[~flat] / lengths[~flat, None], offsets[~flat] / lengths[~flat], allowed)

    def solve(self, most: float) -> tuple[np.ndarray, float]:
        """The centre and radius of the largest ball, no larger than `most`; infinite: without that, or any, limit."""
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
