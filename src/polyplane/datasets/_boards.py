"""The synthetic data of the paper on growing adaptive multi-hyperplane machines (Djuric, Wang and Vucetic, 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyplane.datasets._checks import check_counts, check_shares
from polyplane.planes import PlaneSet


def make_checkerboard(
    n_samples: int = 15_000, shape: tuple[int, int] = (4, 4), *, flip_y: float = 0.0, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Points on a checkerboard over the square from -1 to 1; the class is the colour of the field.

    Parameters
    ----------
    n_samples : int, default=15_000
        Number of points.
    shape : tuple of int, default=(4, 4)
        Rows and columns of the board.
    flip_y : float, default=0.0
        Share of the points whose class is drawn anew, at random.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, uniform over the board.
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
        raise ValueError(f"shape={shape} has only one field.")
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, size=(n_samples, 2))
    fields = np.floor((X + 1.0) / 2.0 * np.array(shape)).astype(int)
    y = fields.sum(axis=1) % 2
    drawn = rng.uniform(size=n_samples) < flip_y
    return X, np.where(drawn, rng.randint(2, size=n_samples), y)


def make_weights(
    n_samples: int = 15_000, n_features: int = 2, n_planes: int = 50, *, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, PlaneSet]:
    """Points of a random multi-hyperplane machine with two classes.

    Planes with coordinates from 0 to 1, scaled to unit length, are given to the classes at random; uniform points from
    0 to 1 take the class of the plane that wins them.

    Parameters
    ----------
    n_samples : int, default=15_000
        Number of points.
    n_features : int, default=2
        Number of features (D).
    n_planes : int, default=50
        Number of planes of both classes together; the more, the more complex.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of shape (n_samples,)
        0 or 1.
    planes : PlaneSet
        The machine that labelled them.

    Examples
    --------
    >>> from polyplane.datasets import make_weights
    >>> X, y, planes = make_weights(500, n_features=5, n_planes=20, random_state=0)
    >>> bool((planes.predict(X) == y).all())
    True
    """
    check_counts(n_samples=n_samples, n_features=n_features)
    if n_planes < 2:
        raise ValueError(f"n_planes={n_planes} leaves a class without a plane; give at least 2.")
    rng = check_random_state(random_state)
    weights = rng.uniform(size=(n_planes, n_features + 1))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    owner = rng.randint(2, size=n_planes)
    owner[:2] = 0, 1  # both classes have a plane
    weights = weights[np.argsort(owner, kind="stable")]
    planes = PlaneSet(weights[:, :-1], weights[:, -1], np.array([0, (owner == 0).sum(), n_planes]))
    X = rng.uniform(size=(n_samples, n_features))
    return X, planes.predict(X), planes
