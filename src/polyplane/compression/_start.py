"""Initialisation: a projection from given planes, and tangent planes at k-means centres of the projected rows."""

from __future__ import annotations

import numpy as np

from polyplane.compression._low_rank import LowRank
from polyplane.learners.tangents import kmeans

#: Difference of the scores of the two best classes at the start, relative to the gap and the spread of the rows.
SCALE = 2.5
#: Weight of the covariance of the rows, relative to that of the scores of the given planes.
SPREAD_WEIGHT = 0.05
#: Regularisation of the inverse covariance: added to the variances, relative to their mean.
RIDGE = 1.0
#: Rows per centre for k-means, and rows to estimate the gap and the spread from.
ROWS_PER_CENTRE, SAMPLE = 64, 800


def start(
    X: np.ndarray, y: np.ndarray, n_classes: int, rank: int | None, n_planes: int, coef: np.ndarray | None,
    rng: np.random.Generator,
) -> LowRank:  # fmt: skip
    """Initial planes, `n_planes` per class: the nearest-centre classifier of the projected rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Centred rows, in float32.
    y : ndarray of shape (n_rows,)
        Class indices.
    n_classes : int
        Number of classes.
    rank : int or None
        Number of projected features. None: no projection.
    n_planes : int
        Number of planes per class; a class with fewer rows gets one plane per row.
    coef : ndarray of shape (n_given, n_features) or None
        Normals of the planes that initialise the projection.
    rng : Generator
        Random number generator.
    """
    projection = None if rank is None else directions(X, coef, rank)
    Z = X if projection is None else X @ projection.T
    centres = [_centres(Z[y == c], n_planes, rng) for c in range(n_classes)]
    owners = np.repeat(np.arange(n_classes), [len(part) for part in centres])
    M = np.concatenate(centres)
    squares = np.square(M).sum(axis=1)
    sample = rng.choice(len(Z), min(len(Z), SAMPLE), replace=False)
    closeness = 2 * Z[sample] @ M.T - squares
    own = owners == y[sample][:, None]
    best = np.where(own, closeness, -np.inf).max(axis=1)
    gap = float(np.median(np.abs(best - np.where(own, -np.inf, closeness).max(axis=1))))
    spread = max(float((np.square(Z[sample]).sum(axis=1) - best).mean()), 0.0)
    scale = np.float32(SCALE / max(gap + spread, 1e-6))
    return LowRank(projection, 2 * scale * M, -scale * squares, owners)


def directions(X: np.ndarray, coef: np.ndarray | None, rank: int) -> np.ndarray:
    """A projection, of shape (rank, n_features), that preserves the scores of the given planes and the rows' variance.

    The least-squares projection for the scores :math:`W x` of rows with covariance S consists of the leading right
    singular vectors of :math:`W S^{1/2}`, times :math:`S^{-1/2}`. Projected rows have a mean squared norm of 1.
    """
    covariance = np.asarray(X.T @ X, dtype=np.float64) / len(X)
    variances, U = np.linalg.eigh(covariance)
    variances = np.maximum(variances, 0)
    wanted = covariance / max(np.trace(covariance), 1e-300)
    if coef is not None:
        W = coef.astype(np.float64) - coef.mean(axis=0)
        scores = W @ (U * np.sqrt(variances)) @ U.T
        total = np.square(scores).sum()
        if total > 0:
            wanted = scores.T @ scores / total + SPREAD_WEIGHT * wanted
    strength, B = np.linalg.eigh(wanted)
    B, strength = B[:, ::-1][:, :rank], np.maximum(strength[::-1][:rank], 0)
    inverse = (U / np.sqrt(variances + RIDGE * variances.mean() + 1e-300)) @ U.T
    projection = ((np.sqrt(strength) * B).T @ inverse).astype(np.float32)
    norm = float(np.sqrt(np.square(X @ projection.T).sum(axis=1).mean()))
    return projection / np.float32(norm or 1.0)


def _centres(Z: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    if not len(Z):  # a class without rows: one plane at the centre of all rows
        return np.zeros((1, Z.shape[1]), dtype=Z.dtype)
    max_rows = ROWS_PER_CENTRE * n_centres
    rows = Z if len(Z) <= max_rows else Z[np.sort(rng.choice(len(Z), max_rows, replace=False))]
    return np.asarray(kmeans(rows, n_centres, rng))
