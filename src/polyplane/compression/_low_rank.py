"""`LowRank`: planes of a shared projection in floating point, and their rounding to one byte."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyplane.compression._tables import CompressedTables
from polyplane.scaling import AffineScaling

#: The largest weight of one byte.
MOST = 127


class LowRank(NamedTuple):
    """Planes over scaled rows.

    Parameters
    ----------
    projection : ndarray of shape (rank, n_features) or None
        The shared projection; None: there is none.
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
        """Weights of the planes over scaled rows."""
        return self.weights if self.projection is None else self.weights @ self.projection

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Classes of scaled rows, as integers."""
        Z = X if self.projection is None else X @ self.projection.T
        return np.asarray(self.owners[(Z @ self.weights.T + self.intercept).argmax(axis=1)])

    def rounded(self) -> LowRank:
        """The same with weights that one byte can hold; straight-through training replaces them by these."""
        projection = self.projection
        if projection is not None:
            scales = _scales(projection, axis=1)
            projection = np.rint(projection / scales) * scales
        scales = _scales(self.weights, axis=0)
        return self._replace(projection=projection, weights=np.rint(self.weights / scales) * scales)

    def tables(self, kept: np.ndarray, n_features: int, n_classes: int, scaling: AffineScaling) -> CompressedTables:
        """The planes as integers, over the features `kept` of rows as they come, not scaled."""
        by_plane = _scales(self.weights, axis=0)
        units, projection = by_plane[0].astype(np.float64), None
        if self.projection is not None:
            by_row = _scales(self.projection, axis=1)
            units = units * by_row[:, 0]
            projection = np.rint(self.projection / by_row).astype(np.int8)
        is_common, intercept = np.ndim(scaling.factor) == 0, self.intercept.astype(np.float64)
        if is_common:  # one factor is a part of the units, and the centre one of the intercepts
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
    """What one step of the integers is worth, in each row or column."""
    most = np.abs(values).max(axis=axis, keepdims=True)
    return np.asarray(np.where(most > 0, most, 1) / MOST, dtype=values.dtype)
