"""Affine scaling of features, and conversion of planes to the units of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import device_of, host_dtype, is_on_host, is_sparse, like, namespace, take_rows, to_numpy

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


#: Products with dense rows are centred, not the rows, if the relative rounding error is below this.
ROUNDING = 1e-5
#: A part of a dense matrix is copied once, not for each product, if it has at most this many numbers.
FEW = 1 << 22


class ScaledRows:
    """Some rows of a matrix as ``z = factor * (x - centre)``, with one factor for all features.

    Sparse rows stay sparse: the centre is subtracted from the products. The same holds for all rows of a dense matrix,
    or for few of them, unless they are too far from the origin; otherwise they are scaled block by block.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The matrix.
    rows : ndarray of int
        Indices of the rows, on the host.
    scaling : AffineScaling
        The centre, on the device of the rows, and the factor.
    """

    def __init__(self, X: Any, rows: np.ndarray, scaling: AffineScaling) -> None:
        whole = len(rows) == X.shape[0] and bool((np.diff(rows) == 1).all())
        copied = not whole and (is_sparse(X) or len(rows) * X.shape[1] <= FEW)
        self._x, whole = (take_rows(X, rows) if copied else X), whole or copied
        self._rows = None if whole else rows
        self._scaling, self._shape = scaling, (len(rows), X.shape[1])
        distance = float(np.linalg.norm(to_numpy(scaling.centre).astype(np.float64))) * scaling.factor
        self._is_centred_late = is_sparse(X) or (whole and distance * np.finfo(host_dtype(X)).eps < ROUNDING)

    def times(self, V: Any) -> Any:
        """The products with each row of `V` (n, n_features): shape (n_rows, n)."""
        if not self._is_centred_late:
            out = namespace(V).empty((self._shape[0], V.shape[0]), dtype=V.dtype, device=device_of(V))
            for block, z in self._blocks():
                out[block, :] = z @ V.T
            return out
        coef = V.T * self._scaling.factor
        coef = np.ascontiguousarray(coef) if is_sparse(self._x) else coef
        return self._x @ coef - self._scaling.centre @ coef

    def sums(self, R: Any) -> Any:
        """The sums of the rows, weighted by each column of `R` (n_rows, n): shape (n, n_features)."""
        if not self._is_centred_late:
            return sum(R[block, :].T @ z for block, z in self._blocks())
        total = namespace(R).sum(R, axis=0)
        return ((self._x.T @ R).T - total[:, None] * self._scaling.centre) * self._scaling.factor

    def square_sums(self, weight: Any) -> Any:
        """The weighted sum of the squares of each feature: shape (n_features,)."""
        if not is_sparse(self._x):
            return sum(weight[block] @ (z * z) for block, z in self._blocks())
        centre, factor = self._scaling.centre, self._scaling.factor
        uncentred = self._squares().T @ weight - 2 * centre * (self._x.T @ weight)
        return np.maximum(uncentred + centre * centre * weight.sum(), 0) * factor**2

    def square_norms(self) -> Any:
        """The squared norm of each row."""
        if not is_sparse(self._x):
            return namespace(self._x).concat([namespace(z).sum(z * z, axis=1) for _, z in self._blocks()])
        centre, factor = self._scaling.centre, self._scaling.factor
        uncentred = np.asarray(self._squares().sum(axis=1)).ravel() - 2 * (self._x @ centre)
        return np.maximum(uncentred + centre @ centre, 0) * factor**2

    def _squares(self) -> Any:
        from scipy import sparse  # prediction needs NumPy only

        x = self._x
        return sparse.csr_array((x.data * x.data, x.indices, x.indptr), shape=x.shape)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of dense scaled rows, with their positions."""
        n_rows, n_features = self._shape
        size = BLOCK_ROWS if is_on_host(self._x) else max(1, DEVICE_BLOCK // n_features)
        for start in range(0, n_rows, size):
            block = slice(start, min(start + size, n_rows))
            rows = np.arange(block.start, block.stop) if self._rows is None else self._rows[block]
            yield block, self._scaling.take(self._x, rows)
