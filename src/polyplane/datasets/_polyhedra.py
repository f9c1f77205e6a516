"""Synthetic sets with one class inside a polyhedron."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyplane.datasets._checks import check_counts, check_shares
from polyplane.planes import PlaneSet

_HALFSPACES_1 = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1],
        [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0.5],
    ]
)  # fmt: skip

_HALFSPACES_2 = np.array(
    [
        [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 20, 8, 7, 6, 5, 4, 3, 2, 1, 1, 20],
        [-1, 2, -3, 4, -5, 6, -7, 8, -9, 15, -11, 10, -9, 8, -7, 6, -5, 4, -3, 2, 15],
        [1, 0, 1, 0, 1, 0, 1, 2, 0, 8, 0, 2, 3, 0, 3, 3, 0, 4, 0, 4, 8],
        [1, -1, 0, 0, 2, -2, 0, 0, 6, -3, 0, 0, 4, -4, 0, 0, 5, -5, 0, 0, 6],
    ]
)


def make_polyceptron_1(n_samples: int = 1000, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Dataset 1 of the Polyceptron paper: three half-spaces in 10 dimensions.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, uniform in the cube from -1 to 1.
    random_state : int, RandomState or None, default=None
        Source of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 10)
        The rows.
    y : ndarray of shape (n_samples,)
        1 in all three half-spaces, 0 elsewhere.

    Examples
    --------
    >>> from polyplane.datasets import make_polyceptron_1
    >>> X, y = make_polyceptron_1(random_state=0)
    >>> X.shape, int(y.sum())
    ((1000, 10), 465)
    """
    return _uniform_rows(_HALFSPACES_1, n_samples, random_state)


def make_polyceptron_2(n_samples: int = 1000, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Dataset 2 of the Polyceptron paper: four half-spaces in 20 dimensions.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, uniform in the cube from -1 to 1.
    random_state : int, RandomState or None, default=None
        Source of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 20)
        The rows.
    y : ndarray of shape (n_samples,)
        1 in all four half-spaces, 0 elsewhere.

    Examples
    --------
    >>> from polyplane.datasets import make_polyceptron_2
    >>> X, y = make_polyceptron_2(random_state=0)
    >>> X.shape, int(y.sum())
    ((1000, 20), 488)
    """
    return _uniform_rows(_HALFSPACES_2, n_samples, random_state)


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
    """Rows uniform in a cube, those in a random polyhedron labelled 1.

    The planes have random normals and one distance to the origin, chosen so that the wanted share of rows is inside.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, uniform in the cube from -1 to 1.
    n_features : int, default=2
        Number of features.
    n_planes : int, default=4
        Number of planes. With fewer than three in the plane (n + 1 in n dimensions) the region is open to one side.
    inside : float, default=0.5
        Share of the rows inside.
    flip_y : float, default=0.0
        Share of the rows whose label is drawn anew after that, at random: noise.
    random_state : int, RandomState or None, default=None
        Source of planes, rows and noise.
    return_planes : bool, default=False
        Whether to return the true planes, too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        1 inside, 0 outside.
    planes : PlaneSet
        The true planes, owned by class 0; with `return_planes` only.

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


def _uniform_rows(halfspaces: np.ndarray, n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    check_counts(n_samples=n_samples)
    X = check_random_state(random_state).uniform(-1, 1, size=(n_samples, halfspaces.shape[1] - 1))
    inside = (X @ halfspaces[:, :-1].T + halfspaces[:, -1] >= 0).all(axis=1)
    return X, inside.astype(np.intp)
