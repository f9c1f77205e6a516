"""`LowRank`: planes with a shared projection in floating point, and their rounding to one-byte weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyplane.compression._tables import CompressedTables
from polyplane.engine.data import AffineScaling

#: The largest one-byte weight.
LARGEST_WEIGHT = 127


class LowRank(NamedTuple):
    """Planes over scaled rows.

    Parameters
    ----------
    projection : ndarray of shape (rank, n_features) or None
        The shared projection. None: no projection; `rank` is then `n_features`.
    weights : ndarray of shape (n_planes, rank)
        Weights of the planes over projected rows.
    intercept : ndarray of shape (n_planes,)
        Intercepts of the planes.
    owners : ndarray of shape (n_planes,)
        The class of each plane, ascending.
    """

    projection: np.ndarray | None
    weights: np.ndarray
    intercept: np.ndarray
    owners: np.ndarray

    @property
    def coef(self) -> np.ndarray:
        """Weights of the planes over scaled rows, shape (n_planes, n_features)."""
        return self.weights if self.projection is None else self.weights @ self.projection

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the class indices of scaled rows."""
        Z = X if self.projection is None else X @ self.projection.T
        return np.asarray(self.owners[(Z @ self.weights.T + self.intercept).argmax(axis=1)])

    def rounded(self) -> LowRank:
        """The planes with weights rounded to one byte, for straight-through training."""
        projection = self.projection
        if projection is not None:
            scales = _scales(projection, axis=1)
            projection = np.rint(projection / scales) * scales
        scales = _scales(self.weights, axis=0)
        return self._replace(projection=projection, weights=np.rint(self.weights / scales) * scales)

    def tables(self, kept: np.ndarray, n_features: int, n_classes: int, scaling: AffineScaling) -> CompressedTables:
        """Convert the planes to integer tables over the unscaled features with indices `kept`."""
        by_plane = _scales(self.weights, axis=0)
        units, projection = by_plane[0].astype(np.float64), None
        if self.projection is not None:
            by_row = _scales(self.projection, axis=1)
            units = units * by_row[:, 0]
            projection = np.rint(self.projection / by_row).astype(np.int8)
        is_common, intercept = np.ndim(scaling.factor) == 0, self.intercept.astype(np.float64)
        if is_common:  # the units include the common factor, and the intercepts the centre
            units = units * float(scaling.factor)
        weights, units = np.rint(self.weights / by_plane).astype(np.int8), units.astype(np.float32)
        if is_common:
            inner = weights * units.astype(np.float64)
            coef = inner if projection is None else inner @ projection.astype(np.float64)
            intercept = intercept - coef @ np.asarray(scaling.centre, dtype=np.float64)
        return CompressedTables(
            n_features=n_features,
            kept=kept,
            projection=projection,
            units=units,
            weights=weights,
            intercept=intercept.astype(np.float32),
            indptr=np.searchsorted(self.owners, np.arange(n_classes + 1)),
            centres=None if is_common else np.asarray(scaling.centre, dtype=np.float32),
            factors=None if is_common else np.asarray(scaling.factor, dtype=np.float32),
        )


def _scales(values: np.ndarray, axis: int) -> np.ndarray:
    """The value of the integer 1, such that the integers along `axis` are at most 127 in absolute value."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    return np.asarray(np.where(largest > 0, largest, 1) / LARGEST_WEIGHT, dtype=values.dtype)
