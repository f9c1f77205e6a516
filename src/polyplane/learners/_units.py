"""The units in which planes are learned, and the way back to those of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

#: Rows of a dense matrix looked at together, where looking at them all would copy it.
BLOCK_ROWS = 4096


class Units(NamedTuple):
    """Rows seen as ``factor * (x - centre)``. The matrix stays as it is: sparse stays sparse, nothing is copied."""

    centre: np.ndarray
    factor: Any  # one number, or one for each feature

    @classmethod
    def common(cls, X: Any, weight: np.ndarray) -> Units:
        """One factor for all features: centred rows have a mean square norm of 1. Scaling or shifting X is undone."""
        mean, variance = moments(X, weight)
        total = float(variance.sum())
        return cls(mean.astype(X.dtype), 1.0 / np.sqrt(total) if total > 0 else 1.0)

    @classmethod
    def standard(cls, X: Any, weight: np.ndarray) -> Units:
        """Zero mean and unit variance of each feature over the weighted rows; a constant feature is centred only."""
        mean, variance = moments(X, weight)
        return cls(mean, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))

    @classmethod
    def raw(cls, n_features: int) -> Units:
        """The features as they are."""
        return cls(np.zeros(n_features), np.ones(n_features))

    def take(self, X: Any, rows: np.ndarray) -> np.ndarray:
        """Some rows of X, dense, in these units."""
        taken = X[rows]
        taken = taken.toarray() if sparse.issparse(taken) else taken
        return (taken - self.centre) * np.asarray(self.factor, dtype=taken.dtype)

    def fold(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Planes for rows in these units as planes for rows of X."""
        coef = coef * np.asarray(self.factor, dtype=coef.dtype)
        return coef, intercept - coef @ self.centre


def moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature over the weighted rows; a variance that is all rounding error is 0."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight.astype(X.dtype))
    else:
        share = (weight / weight.sum()).astype(X.dtype)
        mean = share @ X
        variance = sum(share[block] @ np.square(X[block] - mean) for block in row_blocks(len(X)))
    mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    noise = np.square(16 * np.finfo(X.dtype).eps * mean)
    return mean, np.where(variance > noise, variance, 0.0)


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Slices that cover the rows, block by block."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, n_rows, BLOCK_ROWS))
