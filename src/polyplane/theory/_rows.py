"""Validation of rows, classes and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from polyplane.planes import PlaneSet, check_single


def check_rows(planes: PlaneSet, X: Any, y: Any) -> tuple[PlaneSet, Any, np.ndarray]:
    """Return the planes as NumPy arrays, the rows, and their class indices, after validation."""
    check_single(planes)
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    y = np.asarray(y)
    if X.ndim != 2 or X.shape[1] != planes.n_features:
        raise ValueError(f"X has shape {tuple(X.shape)}, but the planes have {planes.n_features} features.")
    if y.shape != X.shape[:1] or not len(y):
        raise ValueError(f"y must contain one class for each of the {X.shape[0]} rows of X, and X at least one row.")
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() >= planes.n_classes:
        raise ValueError(
            f"y must contain class indices from 0 to {planes.n_classes - 1}; convert labels with "
            "np.searchsorted(model.classes_, labels)."
        )
    return planes.to_numpy(), X, y.astype(np.intp)


def check_probability(delta: float) -> None:
    """Raise an error if `delta` is not a probability between 0 and 1."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r} must be between 0 and 1: the probability that the bound does not hold.")


def zero_classes(planes: PlaneSet) -> list[int]:
    """Return the classes that own only zero planes."""
    zero = ~planes.coef.any(axis=1) & (planes.intercept == 0)
    return [c for c in range(planes.n_classes) if zero[planes.indptr[c] : planes.indptr[c + 1]].all()]


def outside_class(planes: PlaneSet, outer: int | None) -> int:
    """Return the class outside the polytope: `outer`, or the one of two classes that does not own the zero plane."""
    zero = zero_classes(planes)
    if outer is None:
        if planes.n_classes != 2 or len(zero) != 1:
            raise ValueError("Each class owns planes: specify the class outside the polytope with outer=0, 1, ...")
        return 1 - zero[0]
    if not 0 <= outer < planes.n_classes:
        raise ValueError(f"outer={outer!r} is not a class from 0 to {planes.n_classes - 1}.")
    if outer in zero:
        raise ValueError(f"outer={outer!r} owns only the zero plane: specify a class that owns other planes.")
    return int(outer)


def with_offsets(planes: PlaneSet, c: int) -> np.ndarray:
    """Return the planes of a class in float64, with the offset as the last column."""
    return np.column_stack(planes.of(c)).astype(np.float64)


def row_norms(X: Any, constant: float) -> np.ndarray:
    """Compute the norms of the rows after adding a feature of the given constant value."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    norms: np.ndarray = np.sqrt(np.asarray(squares, dtype=np.float64).ravel() + constant**2)
    return norms
