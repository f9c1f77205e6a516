"""Initial planes of the joint polytopes: tangents of a paraboloid at the centres of each class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from polyplane.engine.data import Data
from polyplane.scaling import moments

#: Minimum number of rows of a class per centre.
ROWS_PER_CENTRE = 3
#: Maximum number of rows per centre for k-means, and its passes.
ROWS_TO_CLUSTER, PASSES = 256, 10


class Centres(NamedTuple):
    """The centres of the rows of each class, relative to the mean of all rows."""

    of_class: list[np.ndarray]  # each of shape (n_centres, n_features); empty for a class without rows
    mean: np.ndarray
    square: float  # the mean squared distance of the rows from their mean

    @classmethod
    def of(cls, data: Data, n_planes: int, seed: int) -> Centres:
        """Compute up to `n_planes` centres of each class."""
        X, y, rows, rng = data.X, data.y, data.train, np.random.default_rng(seed)
        mean = moments(X, np.isin(np.arange(X.shape[0]), rows).astype(X.dtype))[0]
        found = []
        for c in range(data.n_classes):
            own = rows[y[rows] == c]
            n_centres = int(np.clip(len(own) // ROWS_PER_CENTRE, 1, n_planes))
            found.append(kmeans(X, own, n_centres, rng) - mean if len(own) else np.zeros((0, X.shape[1])))
        return cls(found, mean, float(mean_square(X, rows, 0.0) - mean @ mean))

    def tangent_sums(self, n_planes: int, weight: float, bias_input: float, dtype: Any) -> tuple[Any, Any]:
        """Initial sums, in columns, class by class: `weight` times the tangents of |x - mean|^2 at the centres.

        These planes predict the class of the nearest centre, and each counts as an update by `weight` rows. A class
        with few rows has several planes at the same centre, all but the first lower; a class without rows has them at
        the mean.
        """
        coef = np.empty((len(self.mean), len(self.of_class) * n_planes), dtype=dtype)
        intercept = np.empty(coef.shape[1], dtype=dtype)
        for c, centres in enumerate(self.of_class):
            lower = np.zeros(n_planes)
            lower[len(centres) :] = self.square
            if not len(centres):
                centres = np.zeros((1, len(self.mean)))
            columns = slice(c * n_planes, (c + 1) * n_planes)
            at = np.arange(n_planes) % len(centres)
            coef[:, columns] = 2.0 * weight * centres[at].T
            offsets = -(centres * centres).sum(axis=1) - 2.0 * centres @ self.mean
            intercept[columns] = weight * (offsets[at] - lower)
        return coef, intercept * dtype.type(bias_input)


def mean_square(X: Any, rows: np.ndarray, bias_input: float) -> float:
    """The mean squared norm of the rows with these indices, including the constant feature."""
    return float(row_norms(X, squared=True)[rows].mean(dtype=np.float64)) + bias_input**2


def kmeans(X: Any, rows: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    """Centres of dense or sparse rows by a few passes of Lloyd's algorithm; an empty centre does not move."""
    if len(rows) > ROWS_TO_CLUSTER * n_centres:
        rows = np.sort(rng.choice(rows, ROWS_TO_CLUSTER * n_centres, replace=False))
    X = X[rows]
    centres = _dense(X[np.sort(rng.choice(len(rows), n_centres, replace=False))]).astype(np.float64)
    if n_centres == 1:
        return np.asarray(X.mean(axis=0), dtype=np.float64).reshape(1, -1)
    for _ in range(PASSES):
        cost = X @ (-2.0 * centres.T) + (centres * centres).sum(axis=1)
        nearest = cost.argmin(axis=1)
        count = np.bincount(nearest, minlength=n_centres)
        member = sparse.csr_array(
            (np.ones(len(rows)), np.argsort(nearest, kind="stable"), np.append(0, count.cumsum())),
            shape=(n_centres, len(rows)),
        )
        won = count > 0
        centres[won] = _dense(member @ X)[won] / count[won, None]
    return centres


def _dense(X: Any) -> np.ndarray:
    rows: np.ndarray = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return rows
