"""Affine scaling of features, and conversion of planes to the units of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import host_dtype, is_on_host, is_sparse, like, namespace, take_rows, to_numpy

#: Number of rows in a block of a dense matrix, to avoid a copy of the whole; on a device, number of elements.
BLOCK_ROWS, DEVICE_BLOCK = 4096, 1 << 26


class AffineScaling(NamedTuple):
    """The transformation ``factor * (x - centre)`` of rows."""

    centre: Any  # an array on the device of the rows, except for `standard`
    factor: Any  # one number, or one per feature

    @classmethod
    def common(cls, X: Any, weight: np.ndarray) -> AffineScaling:
        """Scale all features by one factor, so that centred rows have a mean squared norm of 1."""
        mean, variance = moments(X, weight)
        total = float(variance.sum())
        return cls(like(mean, X, X.dtype), 1.0 / float(np.sqrt(total)) if total > 0 else 1.0)

    @classmethod
    def standard(cls, X: Any, weight: np.ndarray) -> AffineScaling:
        """Scale each feature to zero mean and unit variance over the weighted rows; constant features are only centred.

        The scaling is always stored in host memory: it transforms the planes, which are few, not the rows.
        """
        mean, variance = moments(X, weight)
        return cls(mean, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))

    @classmethod
    def identity(cls, n_features: int) -> AffineScaling:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features))

    def apply(self, X: Any) -> Any:
        """Return a scaled copy of X; sparse rows stay sparse and are not centred."""
        if not is_sparse(X):
            return (X - self.centre.astype(X.dtype)) * self.factor.astype(X.dtype)
        scaled = X.copy()
        scaled.data *= self.factor.astype(X.dtype)[X.indices]
        return scaled

    def take(self, X: Any, rows: Any) -> Any:
        """Return some rows of X, dense and scaled, on the device of `centre`."""
        taken = like(take_rows(X, rows), self.centre) if not is_sparse(X) else X[rows].toarray()
        return (taken - self.centre) * _cast(self.factor, taken)

    def undo(self, Z: Any) -> Any:
        """Transform scaled rows back to the units of the data."""
        return Z / self.factor + self.centre

    def then(self, other: AffineScaling) -> AffineScaling:
        """Return the composition of this scaling, followed by another."""
        return AffineScaling(self.undo(other.centre), self.factor * other.factor)

    def to_input_space(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Convert planes for scaled rows to planes for the rows of X."""
        coef = coef * _cast(self.factor, coef)
        return coef, intercept - coef @ self.centre


def _cast(factor: Any, array: Any) -> Any:
    """Convert a factor so that multiplication keeps the dtype of `array`."""
    return np.asarray(factor, dtype=array.dtype) if namespace(array) is np else factor


def moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the weighted mean and variance of each feature, in host memory; variances within rounding error are 0."""
    dtype = host_dtype(X)
    if is_sparse(X):
        from sklearn.utils.sparsefuncs import mean_variance_axis

        mean, variance = mean_variance_axis(X, axis=0, weights=weight.astype(dtype))
    else:
        xp = namespace(X)
        share = like((weight / weight.sum()).astype(dtype), X)
        mean = share @ X
        apart = ((share[block], X[block, :] - mean) for block in row_blocks(X))
        sums = [xp.stack([part @ xp.square(gap), part @ gap]) for part, gap in apart]
        # Correct for the rounding of the mean, which would be the whole variance of a constant feature.
        total = sum(sums[1:], sums[0])
        variance = total[0, :] - xp.square(total[1, :])
    mean, variance = (np.asarray(to_numpy(moment), dtype=np.float64) for moment in (mean, variance))
    noise = np.square(16 * np.finfo(dtype).eps * mean)
    return mean, np.where(variance > noise, variance, 0.0)


def row_blocks(X: Any) -> Iterator[slice]:
    """Yield slices that cover the rows of a dense matrix, block by block."""
    n_rows, n_features = X.shape
    size = BLOCK_ROWS if is_on_host(X) else max(1, DEVICE_BLOCK // n_features)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


class FeatureMoments:
    """Mean, variance and largest absolute value of each feature, computed incrementally over batches of rows."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.is_sparse = False
        self._precision = 0.0
        self.mean: Any = np.zeros(0)
        self._squares: Any = np.zeros(0)
        self.largest: Any = np.zeros(0)

    def add(self, X: Any) -> None:
        """Add a batch of rows; new columns are assumed to be 0 in earlier batches."""
        n = X.shape[0]
        mean, variance = moments(X, np.ones(n))
        self.is_sparse, self._precision = is_sparse(X), float(np.finfo(X.dtype).eps)
        largest = np.abs(X).max(axis=0)
        largest = largest.toarray().ravel() if self.is_sparse else largest
        missing = (0, len(mean) - len(self.mean))
        before = [np.pad(array, missing) for array in (self.mean, self._squares, self.largest)]
        total = self.n_rows + n
        gap = mean - before[0]
        self.mean = before[0] + gap * (n / total)
        self._squares = before[1] + variance * n + gap**2 * (self.n_rows * n / total)
        self.largest = np.maximum(before[2], largest)
        self.n_rows = total

    @property
    def variance(self) -> np.ndarray:
        """Variance of each feature; variances within rounding error are 0."""
        variance: np.ndarray = self._squares / self.n_rows
        variance[variance <= np.square(16 * self._precision * self.mean)] = 0.0
        return variance

    def standard(self) -> AffineScaling:
        """Scale each feature to zero mean and unit variance; sparse rows are not centred, so that they stay sparse."""
        variance = self.variance
        centre = np.zeros(len(self.mean)) if self.is_sparse else self.mean
        return AffineScaling(centre, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))

    def maxabs(self) -> AffineScaling:
        """Divide each feature by its largest absolute value."""
        return AffineScaling(np.zeros(len(self.mean)), 1.0 / np.where(self.largest > 0, self.largest, 1.0))
