"""The units in which planes are learned, and the way back to those of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from polyplane._array_api import host_dtype, is_on_host, like, namespace, take_rows, to_numpy

#: Rows of a dense matrix looked at together, where looking at them all would copy it; on a device, how many numbers.
BLOCK_ROWS, DEVICE_BLOCK = 4096, 1 << 26


class Units(NamedTuple):
    """Rows seen as ``factor * (x - centre)``. The matrix stays as it is: sparse stays sparse, nothing is copied."""

    centre: Any  # where the rows are
    factor: Any  # one number, or one for each feature

    @classmethod
    def common(cls, X: Any, weight: np.ndarray) -> Units:
        """One factor for all features: centred rows have a mean square norm of 1. Scaling or shifting X is undone."""
        mean, variance = moments(X, weight)
        total = float(variance.sum())
        return cls(like(mean, X, X.dtype), 1.0 / float(np.sqrt(total)) if total > 0 else 1.0)

    @classmethod
    def standard(cls, X: Any, weight: np.ndarray) -> Units:
        """Zero mean and unit variance of each feature over the weighted rows; a constant feature is centred only.

        These units are kept on the host, wherever X is: they change planes, of which there are few, not rows.
        """
        mean, variance = moments(X, weight)
        return cls(mean, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))

    @classmethod
    def raw(cls, n_features: int) -> Units:
        """The features as they are."""
        return cls(np.zeros(n_features), np.ones(n_features))

    def take(self, X: Any, rows: Any) -> Any:
        """Some rows of X, dense, in these units; where the centre is."""
        taken = like(take_rows(X, rows), self.centre) if not sparse.issparse(X) else X[rows].toarray()
        return (taken - self.centre) * _cast(self.factor, taken)

    def fold(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Planes for rows in these units as planes for rows of X."""
        coef = coef * _cast(self.factor, coef)
        return coef, intercept - coef @ self.centre


def _cast(factor: Any, array: Any) -> Any:
    """A factor that leaves the dtype of `array` what it is."""
    return np.asarray(factor, dtype=array.dtype) if namespace(array) is np else factor


def moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature over the weighted rows, on the host; a variance all of rounding error is 0."""
    dtype = host_dtype(X)
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight.astype(dtype))
    else:
        xp = namespace(X)
        share = like((weight / weight.sum()).astype(dtype), X)
        mean = share @ X
        variance = sum(share[block] @ xp.square(X[block, :] - mean) for block in row_blocks(X))
    mean, variance = (np.asarray(to_numpy(moment), dtype=np.float64) for moment in (mean, variance))
    noise = np.square(16 * np.finfo(dtype).eps * mean)
    return mean, np.where(variance > noise, variance, 0.0)


def row_blocks(X: Any) -> Iterator[slice]:
    """Slices that cover the rows of a dense matrix, block by block."""
    n_rows, n_features = X.shape
    size = BLOCK_ROWS if is_on_host(X) else max(1, DEVICE_BLOCK // n_features)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))
