"""Rows with an implicit scaling, dense or sparse, and the products that training needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._array_api import device_of, host_dtype, is_on_host, namespace, take_rows, to_numpy
from polyplane.scaling import BLOCK_ROWS, DEVICE_BLOCK, AffineScaling

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
        copied = not whole and (sparse.issparse(X) or len(rows) * X.shape[1] <= FEW)
        self._x, whole = (take_rows(X, rows) if copied else X), whole or copied
        self._rows = None if whole else rows
        self._scaling, self._shape = scaling, (len(rows), X.shape[1])
        distance = float(np.linalg.norm(to_numpy(scaling.centre).astype(np.float64))) * scaling.factor
        self._is_centred_late = sparse.issparse(X) or (whole and distance * np.finfo(host_dtype(X)).eps < ROUNDING)

    def times(self, V: Any) -> Any:
        """The products with each row of `V` (n, n_features): shape (n_rows, n)."""
        if not self._is_centred_late:
            out = namespace(V).empty((self._shape[0], V.shape[0]), dtype=V.dtype, device=device_of(V))
            for block, z in self._blocks():
                out[block, :] = z @ V.T
            return out
        coef = V.T * self._scaling.factor
        coef = np.ascontiguousarray(coef) if sparse.issparse(self._x) else coef
        return self._x @ coef - self._scaling.centre @ coef

    def sums(self, R: Any) -> Any:
        """The sums of the rows, weighted by each column of `R` (n_rows, n): shape (n, n_features)."""
        if not self._is_centred_late:
            return sum(R[block, :].T @ z for block, z in self._blocks())
        total = namespace(R).sum(R, axis=0)
        return ((self._x.T @ R).T - total[:, None] * self._scaling.centre) * self._scaling.factor

    def square_sums(self, weight: Any) -> Any:
        """The weighted sum of the squares of each feature: shape (n_features,)."""
        if not sparse.issparse(self._x):
            return sum(weight[block] @ (z * z) for block, z in self._blocks())
        centre, factor = self._scaling.centre, self._scaling.factor
        uncentred = self._squares().T @ weight - 2 * centre * (self._x.T @ weight)
        return np.maximum(uncentred + centre * centre * weight.sum(), 0) * factor**2

    def square_norms(self) -> Any:
        """The squared norm of each row."""
        if not sparse.issparse(self._x):
            return namespace(self._x).concat([namespace(z).sum(z * z, axis=1) for _, z in self._blocks()])
        centre, factor = self._scaling.centre, self._scaling.factor
        uncentred = np.asarray(self._squares().sum(axis=1)).ravel() - 2 * (self._x @ centre)
        return np.maximum(uncentred + centre @ centre, 0) * factor**2

    def _squares(self) -> sparse.csr_array:
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
