"""The papers' made data that no user needs: those of Djuric, Wang and Vucetic (2020) and of the Polyceptron paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyplane import PlaneSet

#: A half-space per row: its normal and, last, its offset.
POLYCEPTRON_1 = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        [1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1],
        [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0.5],
    ]
)  # fmt: skip
POLYCEPTRON_2 = np.array(
    [
        [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 20, 8, 7, 6, 5, 4, 3, 2, 1, 1, 20],
        [-1, 2, -3, 4, -5, 6, -7, 8, -9, 15, -11, 10, -9, 8, -7, 6, -5, 4, -3, 2, 15],
        [1, 0, 1, 0, 1, 0, 1, 2, 0, 8, 0, 2, 3, 0, 3, 3, 0, 4, 0, 4, 8],
        [1, -1, 0, 0, 2, -2, 0, 0, 6, -3, 0, 0, 4, -4, 0, 0, 5, -5, 0, 0, 6],
    ]
)


def make_weights(
    n_samples: int = 15_000, n_features: int = 2, n_planes: int = 50, *, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, PlaneSet]:
    """Points of a random multi-hyperplane machine with two classes, and that machine.

    Planes with coordinates from 0 to 1, scaled to unit length, are given to the classes at random; uniform points from
    0 to 1 take the class of the plane that wins them. The more planes, the more complex.
    """
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


def make_polyceptron_1(n_samples: int = 1000, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Dataset 1 of the Polyceptron paper: class 1 in all of three half-spaces in 10 dimensions."""
    return _uniform_rows(POLYCEPTRON_1, n_samples, random_state)


def make_polyceptron_2(n_samples: int = 1000, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Dataset 2 of the Polyceptron paper: class 1 in all of four half-spaces in 20 dimensions."""
    return _uniform_rows(POLYCEPTRON_2, n_samples, random_state)


def _uniform_rows(halfspaces: np.ndarray, n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows uniform in the cube from -1 to 1."""
    X = check_random_state(random_state).uniform(-1, 1, size=(n_samples, halfspaces.shape[1] - 1))
    inside = (X @ halfspaces[:, :-1].T + halfspaces[:, -1] >= 0).all(axis=1)
    return X, inside.astype(np.intp)
