"""Validation of rows and of the allowed changes of a counterfactual."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polyplane.planes import PlaneSet


class AllowedChange(NamedTuple):
    """Allowed changes of a row: scale of each feature, features that may change, and their bounds."""

    scale: np.ndarray
    free: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(
        cls,
        planes: PlaneSet,
        lower: Any = None,
        upper: Any = None,
        frozen: Any = None,
        scale: Any = None,
    ) -> AllowedChange:
        """Validate the parameters; None means no bounds, no frozen features and a scale of 1."""
        n_features = planes.n_features
        low = _per_feature("lower", -np.inf if lower is None else lower, n_features)
        high = _per_feature("upper", np.inf if upper is None else upper, n_features)
        lengths = _per_feature("scale", 1.0 if scale is None else scale, n_features)
        if (low > high).any():
            raise ValueError(f"lower must not exceed upper, but it does for feature {int((low > high).argmax())}.")
        if not ((lengths > 0) & np.isfinite(lengths)).all():
            raise ValueError(f"scale must be positive, but it is not for feature {int((~(lengths > 0)).argmax())}.")
        free = np.ones(n_features, dtype=bool)
        if frozen is not None:
            free[_feature_numbers(frozen, n_features)] = False
        return cls(lengths, free, low, high)

    def contains(self, row: np.ndarray) -> bool:
        """Return whether the features that may change are within the bounds."""
        return bool(((row >= self.lower) & (row <= self.upper) | ~self.free).all())

    def clip(self, point: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Convert a changed row to the dtype of the row, without exceeding a bound by rounding."""
        lower, upper = self.lower.astype(row.dtype), self.upper.astype(row.dtype)
        lower = np.where(lower < self.lower, np.nextafter(lower, np.inf, dtype=row.dtype), lower)
        upper = np.where(upper > self.upper, np.nextafter(upper, -np.inf, dtype=row.dtype), upper)
        return np.where(self.free, np.clip(point.astype(row.dtype), lower, upper), row)


def check_row(planes: PlaneSet, x: Any) -> np.ndarray:
    """Return a finite float row with the number of features of the planes."""
    row = np.asarray(x)
    row = row if row.dtype in (np.float32, np.float64) else row.astype(np.float64)
    if row.shape != (planes.n_features,):
        raise ValueError(f"x has shape {row.shape}; it must be one row of {planes.n_features} features.")
    if not np.isfinite(row).all():
        raise ValueError(f"x must be finite, but feature {int((~np.isfinite(row)).argmax())} is not.")
    return row


def _per_feature(name: str, value: Any, n_features: int) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        raise ValueError(f"{name} must be one number or {n_features} numbers, one per feature.")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN.")
    return np.broadcast_to(array, n_features)


def _feature_numbers(frozen: Any, n_features: int) -> np.ndarray:
    array = np.asarray(frozen)
    if array.dtype == bool and array.shape == (n_features,):
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.min() < 0 or array.max() >= n_features:
        raise ValueError(f"frozen must be a mask of {n_features} booleans or indices from 0 to {n_features - 1}.")
    return array
