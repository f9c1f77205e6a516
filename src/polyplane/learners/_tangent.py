"""The tangent start: planes that already tell the classes apart before any training.

By Theorem 1 of Djuric, Wang and Vucetic (2020) the tangents of a convex function at some points, as planes, divide
space into one cell around each point. With the paraboloid :math:`s |x|^2` and the k-means centres :math:`m` of each
class the planes are :math:`w = 2 s m`, :math:`b = -s |m|^2`, and the start is the nearest-centre classifier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polyplane.learners._units import Units

#: Rows per centre that k-means looks at.
ROWS_PER_CENTRE = 256
#: Rows from which the lengths of the data are read.
SAMPLE = 2000


class Lengths(NamedTuple):
    """What the start tells about the data, as squared lengths but for the last."""

    spread: float  # mean square distance of a row to the nearest centre of its class
    gap: float  # by how much the nearest rival centre is further than the nearest own one, or nearer: median
    margin: float  # distance of a row to the wall between its two best centres: median


class Tangents(NamedTuple):
    """Centres of the classes and the planes tangent above them, in training units.

    Classes have their own numbers of centres; the arrays are as wide as the largest.
    """

    centres: np.ndarray  # (n_classes, n_planes, n_features)
    real: np.ndarray  # (n_classes, n_planes): False for what only fills up the array
    lengths: Lengths
    scale: float


def tangent_start(
    X: Any, y: np.ndarray, rows: np.ndarray, n_planes: np.ndarray, units: Units, scale: float, rng: np.random.Generator
) -> Tangents:
    """Find the centres of the classes and the paraboloid that suits the data.

    The scale, relative to the sum of the gap and the spread, sets by how much the scores of the two best classes
    differ at the start: enough to be of use, too little to be stuck there.
    """
    shape = (len(n_planes), int(n_planes.max()))
    centres = np.zeros((*shape, X.shape[1]), dtype=X.dtype)
    real = np.zeros(shape, dtype=bool)
    for c, k in enumerate(n_planes):
        own = rows[y[rows] == c]
        if len(own) > ROWS_PER_CENTRE * k:
            own = np.sort(rng.choice(own, ROWS_PER_CENTRE * int(k), replace=False))
        # A class that has no row yet starts with one plane at the centre of all.
        found = kmeans(units.take(X, own), int(k), rng) if len(own) else np.zeros((1, X.shape[1]))
        centres[c, : len(found)] = found
        real[c, : len(found)] = True
    sample = np.sort(rng.choice(rows, min(len(rows), SAMPLE), replace=False))
    lengths = _measure(centres, real, units.take(X, sample), y[sample])
    return Tangents(centres, real, lengths, scale / max(lengths.gap + lengths.spread, 1e-6))


def kmeans(X: np.ndarray, n_centres: int, rng: np.random.Generator, max_iter: int = 10) -> np.ndarray:
    """Centres by a few of Lloyd's passes, in matrix products; an empty centre moves to the row that is served worst.

    A start needs no converged k-means: scikit-learn's takes five times as long here and trains to the same error.
    """
    n_rows = len(X)
    if n_rows <= n_centres:
        return X.copy()
    centres = X[rng.choice(n_rows, n_centres, replace=False)]
    for _ in range(max_iter):
        cost = X @ (-2.0 * centres.T)
        cost += (centres * centres).sum(axis=1)
        nearest = cost.argmin(axis=1)
        count = np.bincount(nearest, minlength=n_centres)
        served = count > 0
        first = np.concatenate([[0], np.cumsum(count)[:-1]])
        by_centre = X[np.argsort(nearest, kind="stable")]
        centres[served] = np.add.reduceat(by_centre, first[served], axis=0) / count[served, None].astype(X.dtype)
        if not served.all():
            distance = cost[np.arange(n_rows), nearest] + (X * X).sum(axis=1)
            centres[~served] = X[np.argsort(distance)[n_rows - (~served).sum() :]]
    return centres


def _measure(centres: np.ndarray, real: np.ndarray, X: np.ndarray, y: np.ndarray) -> Lengths:
    """Read the lengths off some rows."""
    rows, flat = np.arange(len(X)), centres.reshape(-1, centres.shape[2])
    closeness = (2 * (X @ flat.T) - (flat * flat).sum(axis=1)).reshape(len(X), *real.shape)
    closeness[:, ~real] = -np.inf
    own = closeness[rows, y]
    best = own.max(axis=1)
    own_centre = centres[y, own.argmax(axis=1)]
    closeness[rows, y] = -np.inf
    rivals = closeness.reshape(len(X), -1)
    apart = np.sqrt(((own_centre - flat[rivals.argmax(axis=1)]) ** 2).sum(axis=1))
    gaps = np.abs(best - rivals.max(axis=1))
    spread = max(float(((X * X).sum(axis=1) - best).mean()), 0.0)
    return Lengths(spread, float(np.median(gaps)), float(np.median(gaps / (2 * apart + 1e-12))))
