"""Regions of planes: the largest ball in one, cells in two dimensions, and planes that can be removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import polyplane.planes
from polyplane.explain.geometry.nearest import AllowedChange, check_row
from polyplane.planes import PlaneSet, check_winners

#: A region is treated as empty if the radius of its largest ball, relative to the distances of its walls, is smaller.
TOO_THIN = 1e-7


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
    check_winners(planes)
    allowed = AllowedChange.of(planes.n_features, lower, upper)
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
    check_winners(planes)
    allowed = AllowedChange.of(planes.n_features, lower, upper)
    alive = np.ones(planes.n_planes, dtype=bool)
    owners, left = planes.owners, np.diff(planes.indptr)
    winning = _surely_winning(planes, allowed)
    # From last to first: the first of identical planes wins ties, so it is tested last.
    for p in np.flatnonzero(~winning)[::-1]:
        rivals = alive.copy()
        rivals[p] = False
        # The plane wins somewhere if any ball fits: finding a small one is faster than finding the largest.
        if left[owners[p]] > 1 and _Program(planes, int(p), rivals, allowed).solve(1e3 * TOO_THIN)[1] <= TOO_THIN:
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
    program = _Program(planes, p, rivals, allowed)
    center, radius = program.solve(1.0)
    if radius >= 1.0 - TOO_THIN:  # a very large ball fits: check whether the region is unbounded
        largest, radius = program.solve(np.inf)
        center = largest if radius < np.inf else program.solve(1.0 / program.unit)[0]
    return Ball(center * program.unit, radius * program.unit, p) if radius > TOO_THIN else None


class _Program:
    """Linear program of the largest ball where plane `p` exceeds the rivals.

    Lengths are scaled so that the distances of the walls from 0 are at most 1.
    """

    def __init__(self, planes: PlaneSet, p: int, rivals: np.ndarray, allowed: AllowedChange) -> None:
        normals = planes.coef[rivals].astype(np.float64) - planes.coef[p]
        offsets = planes.intercept[p] - planes.intercept[rivals].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
        flat = lengths == 0
        first = np.arange(planes.n_planes)[rivals][flat] > p
        #: Whether a parallel rival exceeds the plane everywhere.
        self.is_empty = bool(((offsets[flat] < 0) | (offsets[flat] == 0) & ~first).any())
        below, above = np.isfinite(allowed.lower), np.isfinite(allowed.upper)
        eye = sparse.eye_array(planes.n_features, format="csr")
        walls = sparse.csr_array(normals[~flat] / lengths[~flat, None])
        rows = sparse.vstack([walls, -eye[below], eye[above]])
        self.rows = sparse.hstack([rows, np.ones((rows.shape[0], 1))], format="csr")
        limits = np.concatenate([offsets[~flat] / lengths[~flat], -allowed.lower[below], allowed.upper[above]])
        size = float(np.abs(limits).max(initial=0.0))
        self.unit = max(size, float(np.finfo(np.float32).tiny)) if size > 0 else 1.0
        self.limits = limits / self.unit

    def solve(self, most: float) -> tuple[np.ndarray, float]:
        """Return centre and radius of the largest ball with radius up to `most`; infinite if unbounded."""
        n_features = self.rows.shape[1] - 1
        if self.is_empty:
            return np.zeros(n_features), -np.inf
        goal = np.append(np.zeros(n_features), -1.0)
        bounds = [(None, None)] * n_features + [(None, None if most == np.inf else most)]
        found = linprog(goal, A_ub=self.rows, b_ub=self.limits, bounds=bounds, method="highs-ds")
        if found.status == 3:
            return np.zeros(n_features), np.inf
        if found.status != 0:
            raise ArithmeticError(f"A linear program failed: {found.message}")
        return found.x[:-1], float(found.x[-1])


@dataclass(frozen=True, eq=False)
class Cell:
    """A convex polygon in which one plane has the largest score.

    Parameters
    ----------
    vertices : ndarray of shape (n_vertices, 2)
        The vertices, anticlockwise.
    across : ndarray of shape (n_vertices,)
        The plane on the other side of the edge from each vertex to the next; -1 at the edge of the box.
    plane : int
        The plane with the largest score.
    c : int
        The class that owns the plane.
    """

    vertices: np.ndarray
    across: np.ndarray
    plane: int
    c: int

    @property
    def area(self) -> float:
        """Area of the polygon."""
        x, y = self.vertices.T
        return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def plane_slice(planes: PlaneSet, *, features: Any = None, at: Any = None, directions: Any = None) -> PlaneSet:
    """Restrict planes to a two-dimensional slice of feature space.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    features : pair of int, default=None
        Indices of the two features that vary. May be None for a model with two features.
    at : array-like of shape (n_features,), default=None
        A point of the slice. It determines the values of the other features, or is the origin of the two directions.
        If None, all zeros.
    directions : array-like of shape (2, n_features), default=None
        Instead of features: the point with the coordinates (u, v) is ``at + u * directions[0] + v * directions[1]``.

    Returns
    -------
    flat : PlaneSet
        Planes with two features, in the same order and with the same classes.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import plane_slice
    >>> planes = PlaneSet(np.arange(6.0).reshape(2, 3), np.zeros(2), [0, 1, 2])
    >>> flat = plane_slice(planes, features=(0, 2), at=[0, 10, 0])
    >>> flat.coef, flat.intercept
    (array([[0., 2.],
           [3., 5.]]), array([10., 40.]))
    """
    check_winners(planes)
    point = check_row(planes, np.zeros(planes.n_features) if at is None else at).astype(np.float64)
    coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
    if directions is not None:
        axes = np.asarray(directions, dtype=np.float64)
        if features is not None or axes.shape != (2, planes.n_features):
            raise ValueError(f"Specify either features, or directions of shape (2, {planes.n_features}).")
        return planes.replace(coef=coef @ axes.T, intercept=intercept + coef @ point)
    if features is None and planes.n_features != 2:
        raise ValueError(f"The model has {planes.n_features} features: specify two in features, or two directions.")
    pair = np.array([0, 1] if features is None else features)
    if pair.shape != (2,) or pair[0] == pair[1] or pair.min() < 0 or pair.max() >= planes.n_features:
        raise ValueError(f"features must be two different indices from 0 to {planes.n_features - 1}.")
    rest = point.copy()
    rest[pair] = 0.0
    return planes.replace(coef=coef[:, pair], intercept=intercept + coef @ rest)


def cells(planes: PlaneSet, box: Any, *, features: Any = None, at: Any = None, directions: Any = None) -> list[Cell]:
    """Compute the cells of a model with two features, or of a slice of a model, within a box.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    box : tuple of float
        ``(left, right, bottom, top)``, in the coordinates of the slice.
    features, at, directions
        The slice, as in `plane_slice`.

    Returns
    -------
    cells : list of Cell
        The polygons of the planes that have the largest score somewhere in the box, ordered by plane. They cover the
        box without overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import cells
    >>> planes = PlaneSet(np.array([[0.0, 0.0], [1.0, 0.0]]), np.zeros(2), [0, 1, 2])
    >>> [(cell.c, cell.area) for cell in cells(planes, (-1, 3, 0, 1))]
    [(0, 1.0), (1, 3.0)]
    >>> cells(planes, (-1, 3, 0, 1))[0].across.tolist()
    [-1, 1, -1, -1]
    """
    flat = plane_slice(planes, features=features, at=at, directions=directions)
    left, right, bottom, top = (float(edge) for edge in box)
    if not (left < right and bottom < top and np.isfinite([left, right, bottom, top]).all()):
        raise ValueError(f"box={tuple(box)} must be (left, right, bottom, top), with left < right and bottom < top.")
    corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    found = (_cell(flat, p, corners) for p in range(flat.n_planes))
    return [cell for cell in found if cell is not None]


def _cell(planes: PlaneSet, p: int, corners: np.ndarray) -> Cell | None:
    """Cut off the regions of other planes, those with the largest lead first, until the plane wins at all vertices."""
    coef, offsets = planes.coef - planes.coef[p], planes.intercept - planes.intercept[p]
    scale = np.abs(corners @ planes.coef.T).max() + np.abs(planes.intercept).max()
    vertices, across = corners, np.full(len(corners), -1)
    for _ in range(planes.n_planes):
        ahead = vertices @ coef.T + offsets
        lead = ahead.max(axis=0)
        if (np.abs(ahead[:, :p]).max(axis=0, initial=0.0) <= 1e-12 * scale).any():
            return None  # the first of identical planes wins
        rival = int(lead.argmax())
        if lead[rival] <= 1e-12 * scale:
            break
        vertices, across = _cut(vertices, across, ahead[:, rival], rival)
        if len(vertices) < 3:
            return None
    # Where three planes meet, rounding creates edges of length 0.
    lengths = np.abs(np.roll(vertices, -1, axis=0) - vertices).max(axis=1)
    mask = lengths > 1e-12 * np.ptp(corners, axis=0).max()
    if np.count_nonzero(mask) < 3:
        return None
    return Cell(vertices[mask], across[mask], p, int(planes.owners[p]))


def _cut(vertices: np.ndarray, across: np.ndarray, ahead: np.ndarray, rival: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of a convex polygon where the linear function `ahead`, given at the vertices, is not positive."""
    kept: list[np.ndarray] = []
    labels: list[int] = []
    for i in range(len(vertices)):
        j = (i + 1) % len(vertices)
        start, end = ahead[i], ahead[j]
        if start <= 0:
            kept.append(vertices[i])
            labels.append(rival if start == 0 and end > 0 else int(across[i]))
        if start < 0 < end or end < 0 < start:
            kept.append(vertices[i] + (start / (start - end)) * (vertices[j] - vertices[i]))
            labels.append(rival if start < 0 else int(across[i]))
    return np.array(kept).reshape(-1, 2), np.array(labels, dtype=np.intp)


def simplify(planes: PlaneSet, X: Any, tolerance: float = 0.0, *, y: Any = None) -> PlaneSet:
    """Remove planes as long as predictions do not change.

    The plane whose removal changes the fewest predictions is removed first; in case of ties, the one that wins the
    fewest rows. The effect of a removal is known exactly: the rows of a plane go to the second-best plane. Each class
    keeps at least one plane.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Representative rows, for instance the training rows.
    tolerance : float, default=0.0
        Fraction of predictions that may change; with `y`, the allowed increase of the error.
    y : array-like of shape (n_rows,), default=None
        True class indices. If given, the error is preserved instead of the predictions.

    Returns
    -------
    fewer : PlaneSet
        The remaining planes, unchanged.

    Notes
    -----
    The memory used is a block of scores and a few numbers per row.

    If a model fits its training rows without error, these need fewer planes than new rows. To preserve the accuracy of
    such a model, include rows that were not used in training.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import simplify
    >>> planes = PlaneSet(np.array([[-1.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, -1.0, -9.0]), [0, 1, 4])
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> simplify(planes, X)
    PlaneSet(n_classes=2, n_planes=2, n_features=1, dtype=float64)
    """
    check_winners(planes)
    X = X if sparse.issparse(X) else np.asarray(X)
    if not 0 <= tolerance <= 1:
        raise ValueError(f"tolerance={tolerance!r} must be a fraction from 0 to 1.")
    if planes.n_planes == planes.n_classes:
        return planes
    owners, alive, left = planes.owners, np.ones(planes.n_planes, dtype=bool), np.diff(planes.indptr)
    norms = np.linalg.norm(planes.coef.astype(np.float64), axis=1)
    best = np.empty((X.shape[0], 2), dtype=np.int32)  # the best and the second-best remaining plane of each row

    def rank(rows: np.ndarray) -> None:
        """Score rows on the remaining planes, in blocks."""
        remaining = np.flatnonzero(alive)
        coef, intercept = np.ascontiguousarray(planes.coef[remaining].T), planes.intercept[remaining]
        size = max(1, polyplane.planes.BLOCK_SCORES // len(remaining))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            scores = X[block] @ coef + intercept
            for place in range(2):  # ties are resolved in favour of the first plane, as in prediction
                winners = scores.argmax(axis=1)
                best[block, place] = remaining[winners]
                scores[np.arange(len(block)), winners] = -np.inf

    rank(np.arange(X.shape[0]))
    predicted = owners[best[:, 0]]
    aim = predicted if y is None else np.asarray(y)
    if aim.shape != predicted.shape:
        raise ValueError(f"y must contain one class for each of the {len(predicted)} rows.")
    allowed = int(tolerance * len(aim) * (1 + 1e-12)) + int(np.count_nonzero(aim != predicted))
    while True:
        first, second = best.T
        right, then = owners[first] == aim, owners[second] == aim
        lost = np.bincount(first, right.astype(np.float64) - then, minlength=planes.n_planes)
        wins = np.bincount(first, minlength=planes.n_planes)
        may_go = np.flatnonzero(alive & (left[owners] > 1) & (np.count_nonzero(~right) + lost <= allowed))
        if not len(may_go):
            return planes.prune(alive)
        plane = may_go[np.lexsort((norms[may_go], wins[may_go], lost[may_go]))[0]]
        alive[plane] = False
        left[owners[plane]] -= 1
        rank(np.flatnonzero((best == plane).any(axis=1)))
