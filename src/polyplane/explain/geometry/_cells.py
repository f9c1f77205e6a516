"""Cells of a model in two dimensions: convex polygons in which one plane has the largest score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain.geometry._allowed import check_row
from polyplane.planes import PlaneSet, check_single


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
    check_single(planes)
    point = check_row(planes, np.zeros(planes.n_features) if at is None else at).astype(np.float64)
    coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
    if directions is not None:
        axes = np.asarray(directions, dtype=np.float64)
        if features is not None or axes.shape != (2, planes.n_features):
            raise ValueError(f"Specify either features, or directions of shape (2, {planes.n_features}).")
        return PlaneSet(coef @ axes.T, intercept + coef @ point, planes.indptr)
    if features is None and planes.n_features != 2:
        raise ValueError(f"The model has {planes.n_features} features: specify two in features, or two directions.")
    pair = np.array([0, 1] if features is None else features)
    if pair.shape != (2,) or pair[0] == pair[1] or pair.min() < 0 or pair.max() >= planes.n_features:
        raise ValueError(f"features must be two different indices from 0 to {planes.n_features - 1}.")
    rest = point.copy()
    rest[pair] = 0.0
    return PlaneSet(coef[:, pair], intercept + coef @ rest, planes.indptr)


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
