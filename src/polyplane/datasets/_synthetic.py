"""Synthetic data sets: checkerboards, and one class inside a polyhedron."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyplane.datasets._checks import check_counts, check_shares
from polyplane.planes import PlaneSet


def make_checkerboard(
    n_samples: int = 15_000, shape: tuple[int, int] = (4, 4), *, flip_y: float = 0.0, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Generate points on a checkerboard over the square [-1, 1] x [-1, 1]; the class is the colour of the cell.

    Parameters
    ----------
    n_samples : int, default=15_000
        Number of points.
    shape : tuple of int, default=(4, 4)
        Number of cells along the first and the second feature.
    flip_y : float, default=0.0
        Fraction of the points whose class is replaced by a random one.
    random_state : int, RandomState or None, default=None
        Controls the random numbers. Pass an int for reproducible output.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, uniformly distributed over the square.
    y : ndarray of shape (n_samples,)
        0 or 1.

    Examples
    --------
    >>> from polyplane.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1000, (2, 2), random_state=0)
    >>> bool(((X[:, 0] * X[:, 1] < 0) == y).all())
    True
    """
    check_counts(n_samples=n_samples)
    check_shares(flip_y=flip_y)
    if min(shape) < 1 or max(shape) < 2:
        raise ValueError(f"shape={shape} has only one cell: specify at least two.")
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, size=(n_samples, 2))
    fields = np.floor((X + 1.0) / 2.0 * np.array(shape)).astype(int)
    y = fields.sum(axis=1) % 2
    drawn = rng.uniform(size=n_samples) < flip_y
    return X, np.where(drawn, rng.randint(2, size=n_samples), y)


def make_polyhedron(
    n_samples: int = 1000,
    n_features: int = 2,
    n_planes: int = 4,
    *,
    inside: float = 0.5,
    flip_y: float = 0.0,
    random_state: Any = None,
    return_planes: bool = False,
) -> Any:
    """Generate uniform points in a cube, with class 1 inside a random polyhedron.

    The planes have random normals and the same distance to the origin, which is set by the fraction of rows inside.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, uniformly distributed in the cube from -1 to 1.
    n_features : int, default=2
        Number of features.
    n_planes : int, default=4
        Number of planes. A bounded polyhedron needs at least n_features + 1 planes.
    inside : float, default=0.5
        Fraction of the rows inside.
    flip_y : float, default=0.0
        Fraction of the rows whose class is then replaced by a random one.
    random_state : int, RandomState or None, default=None
        Controls the random planes, rows and labels. Pass an int for reproducible output.
    return_planes : bool, default=False
        If True, also return the true planes.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        1 inside, 0 outside.
    planes : PlaneSet
        The true planes, owned by class 0. Only returned if `return_planes` is True.

    Examples
    --------
    >>> from polyplane.datasets import make_polyhedron
    >>> X, y, planes = make_polyhedron(500, 3, 6, random_state=0, return_planes=True)
    >>> int(y.sum())
    250
    >>> planes
    PlaneSet(n_classes=2, n_planes=7, n_features=3, dtype=float64)
    """
    check_counts(n_samples=n_samples, n_features=n_features, n_planes=n_planes)
    check_shares(inside=inside, flip_y=flip_y)
    rng = check_random_state(random_state)
    normals = rng.normal(size=(n_planes, n_features))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    X = rng.uniform(-1, 1, size=(n_samples, n_features))
    outermost = (X @ normals.T).max(axis=1)
    distance = float(np.quantile(outermost, inside))
    y = (outermost <= distance).astype(np.intp)
    planes = PlaneSet.of_classes([(normals, np.full(n_planes, -distance)), (np.zeros((1, n_features)), np.zeros(1))])
    drawn = rng.permutation(n_samples)[: round(flip_y * n_samples)]
    y[drawn] = rng.randint(2, size=len(drawn))
    return (X, y, planes) if return_planes else (X, y)
