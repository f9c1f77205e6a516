"""Linear programs over the regions of planes: the largest ball in one, and the planes that have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from polyplane.geometry._counterfactual import check_limits
from polyplane.geometry._nearest import Limits
from polyplane.planes import PlaneSet

#: A region whose largest ball is smaller than this, in units of the walls' distances, counts as empty.
TOO_THIN = 1e-7


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
    """The largest ball inside of the region of a class or of a plane: its Chebyshev centre and radius.

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
    limits = check_limits(planes.n_features, lower, upper, None, None)
    if (c is None) == (plane is None):
        raise ValueError("Give either a class or a plane.")
    if plane is not None:
        if not 0 <= plane < planes.n_planes:
            raise ValueError(f"There is no plane {plane}: this PlaneSet has planes 0 to {planes.n_planes - 1}.")
        return _ball(planes, plane, np.arange(planes.n_planes) != plane, limits)
    if not 0 <= c < planes.n_classes:  # type: ignore[operator]
        raise ValueError(f"There is no class {c}: this PlaneSet has classes 0 to {planes.n_classes - 1}.")
    own = np.flatnonzero(planes.owners == c)
    balls = [ball for p in own if (ball := _ball(planes, int(p), planes.owners != c, limits)) is not None]
    return max(balls, key=lambda ball: ball.radius) if balls else None


def redundant_planes(planes: PlaneSet, *, lower: Any = None, upper: Any = None) -> np.ndarray:
    """The planes that win nowhere: without them, all predictions stay as they are.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    lower, upper : float or array-like of shape (n_features,), default=None
        Look only at points between these bounds.

    Returns
    -------
    redundant : ndarray of bool, shape (n_planes,)
        Of equal planes all but the first are. Each class keeps a plane, even one that wins nowhere, so that
        ``planes.prune(~redundant)`` is a `PlaneSet`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.geometry import redundant_planes
    >>> planes = PlaneSet(np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, -1.0, 0.0]), [0, 1, 3])
    >>> redundant_planes(planes)
    array([False,  True, False])
    """
    limits = check_limits(planes.n_features, lower, upper, None, None)
    alive = np.ones(planes.n_planes, dtype=bool)
    owners, left = planes.owners, np.diff(planes.indptr)
    winning = _surely_winning(planes, limits)
    # From the last to the first: of equal planes the first wins the ties, so it is the last to be asked.
    for p in np.flatnonzero(~winning)[::-1]:
        rivals = alive.copy()
        rivals[p] = False
        if left[owners[p]] > 1 and _ball(planes, int(p), rivals, limits) is None:
            alive[p] = False
            left[owners[p]] -= 1
    return ~alive


def _surely_winning(planes: PlaneSet, limits: Limits) -> np.ndarray:
    """Planes that win clearly at points where they may be expected to, which saves their linear programs."""
    coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
    away = coef - coef.mean(axis=0)
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    away = np.divide(away, lengths, out=np.zeros_like(away), where=lengths > 0)
    sure = np.zeros(planes.n_planes, dtype=bool)
    if not lengths.any():
        return sure
    spread = float(np.abs(intercept).max()) / float(lengths.max()) + 1.0
    for far in (0.3, 1.0, 3.0, 10.0, 100.0):
        scores = np.clip(far * spread * away, limits.lower, limits.upper) @ coef.T + intercept
        own = scores.diagonal().copy()
        np.fill_diagonal(scores, -np.inf)
        sure |= own - scores.max(axis=1) > 1e-6 * (
            np.abs(own) + np.abs(scores).max(axis=1, initial=0.0, where=scores > -np.inf)
        )
    return sure


def _ball(planes: PlaneSet, p: int, rivals: np.ndarray, limits: Limits) -> Ball | None:
    """The largest ball in which plane `p` beats the rivals (a mask); None when there is none."""
    normals = planes.coef[rivals].astype(np.float64) - planes.coef[p]
    offsets = planes.intercept[p] - planes.intercept[rivals].astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    flat = lengths == 0
    first = np.arange(planes.n_planes)[rivals][flat] > p
    if ((offsets[flat] < 0) | (offsets[flat] == 0) & ~first).any():
        return None
    normals, offsets = normals[~flat] / lengths[~flat, None], offsets[~flat] / lengths[~flat]
    center, radius = _largest_ball(normals, offsets, limits)
    return None if center is None else Ball(center, radius, p)


def _largest_ball(normals: np.ndarray, offsets: np.ndarray, limits: Limits) -> tuple[np.ndarray | None, float]:
    """The largest ball with ``normals @ x <= offsets`` and within the box; normals have length 1."""
    n_features = normals.shape[1]
    eye = np.eye(n_features)
    below, above = np.isfinite(limits.lower), np.isfinite(limits.upper)
    normals = np.vstack([normals, -eye[below], eye[above]])
    offsets = np.concatenate([offsets, -limits.lower[below], limits.upper[above]])
    unit = max(float(np.abs(offsets).max(initial=0.0)), np.finfo(float).tiny) if offsets.any() else 1.0
    rows = np.column_stack([normals, np.ones(len(normals))])
    goal = np.append(np.zeros(n_features), -1.0)
    for most in (None, 1.0 / unit):  # balls of any size: one of radius 1
        bounds = [(None, None)] * n_features + [(None, most)]
        found = linprog(goal, A_ub=rows, b_ub=offsets / unit, bounds=bounds, method="highs")
        if found.status == 0:
            break
    if found.status != 0:
        raise ArithmeticError(f"A linear program failed: {found.message}")
    radius = float(found.x[-1])
    if radius <= min(TOO_THIN, 0.5 / unit):
        return None, radius * unit
    return found.x[:-1] * unit, radius * unit if most is None else np.inf
