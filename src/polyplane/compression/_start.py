"""Where training starts: directions that matter to given planes, and the tangents of k-means centres among them."""

from __future__ import annotations

import numpy as np

from polyplane.compression._low_rank import LowRank
from polyplane.learners._tangent import kmeans

#: By how much the scores of the two best classes differ at the start, relative to the gap and the spread of the rows.
SCALE = 2.5
#: Weight of the directions in which rows differ, beside those in which the scores of the given planes do.
SPREAD_WEIGHT = 0.05
#: What is added to the variances, relative to their mean, before they are divided by.
RIDGE = 1.0
#: Rows that k-means looks at for each centre, and rows from which lengths are read.
ROWS_PER_CENTRE, SAMPLE = 64, 800


def start(
    X: np.ndarray, y: np.ndarray, n_classes: int, rank: int | None, n_planes: int, coef: np.ndarray | None,
    rng: np.random.Generator,
) -> LowRank:  # fmt: skip
    """Planes that tell the classes apart before any training: `n_planes` for each class.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Centred rows, in float32.
    y : ndarray of shape (n_rows,)
        Their classes, as integers.
    n_classes : int
        Number of classes.
    rank : int or None
        Number of projected features; None: no projection.
    n_planes : int
        Planes of each class; fewer where a class has fewer rows.
    coef : ndarray of shape (n_given, n_features) or None
        Planes whose directions the projection starts with.
    rng : Generator
        Draws rows.
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
    """A projection that keeps most of the scores of given planes, and of what else rows differ in.

    The best projection for the scores :math:`W x` of rows with covariance S, in squares, has the leading right singular
    vectors of :math:`W S^{1/2}`, times :math:`S^{-1/2}`. Projected rows have a mean square norm of 1.
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
    if not len(Z):  # no row to learn from: one plane at the centre of all
        return np.zeros((1, Z.shape[1]), dtype=Z.dtype)
    most = ROWS_PER_CENTRE * n_centres
    rows = Z if len(Z) <= most else Z[np.sort(rng.choice(len(Z), most, replace=False))]
    return np.asarray(kmeans(rows, n_centres, rng))
