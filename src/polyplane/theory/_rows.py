"""Rows, classes and probabilities as users give them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from polyplane.committee import check_single
from polyplane.planes import PlaneSet


def check_rows(planes: PlaneSet, X: Any, y: Any) -> tuple[PlaneSet, Any, np.ndarray]:
    """The planes on the host, the rows, and their classes as integers."""
    check_single(planes)
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    y = np.asarray(y)
    if X.ndim != 2 or X.shape[1] != planes.n_features:
        raise ValueError(f"X has shape {tuple(X.shape)}; this PlaneSet needs {planes.n_features} columns.")
    if y.shape != X.shape[:1] or not len(y):
        raise ValueError(
            f"y must contain one class for each of the {X.shape[0]} rows, and there must be at least one row."
        )
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() >= planes.n_classes:
        raise ValueError(
            f"y must contain classes from 0 to {planes.n_classes - 1}; convert labels with "
            "np.searchsorted(model.classes_, labels)."
        )
    return planes.to_numpy(), X, y.astype(np.intp)


def check_probability(delta: float) -> None:
    """Refuse what is not the probability of a bound's failure."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r} must lie between 0 and 1: the probability that the bound does not hold.")


def zero_classes(planes: PlaneSet) -> list[int]:
    """The classes that own nothing but a zero plane."""
    zero = ~planes.coef.any(axis=1) & (planes.intercept == 0)
    return [c for c in range(planes.n_classes) if zero[planes.indptr[c] : planes.indptr[c + 1]].all()]


def outside_class(planes: PlaneSet, outer: int | None) -> int:
    """The class that lives outside a polytope: that given, or the one of two that does not own the zero plane."""
    silent = zero_classes(planes)
    if outer is None:
        if planes.n_classes != 2 or len(silent) != 1:
            raise ValueError("Each class owns planes: specify the class outside the polytope with outer=0, 1, ...")
        return 1 - silent[0]
    if not 0 <= outer < planes.n_classes:
        raise ValueError(f"outer={outer!r} is not a class from 0 to {planes.n_classes - 1}.")
    if outer in silent:
        raise ValueError(f"Class {outer} owns only the zero plane: it is not outside a polytope.")
    return int(outer)


def with_offsets(planes: PlaneSet, c: int) -> np.ndarray:
    """The planes of a class in float64, with the offset as the weight of a constant feature 1, last."""
    return np.column_stack(planes.of(c)).astype(np.float64)


def row_norms(X: Any, constant: float) -> np.ndarray:
    """The lengths of rows to which a constant feature was added."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    norms: np.ndarray = np.sqrt(np.asarray(squares, dtype=np.float64).ravel() + constant**2)
    return norms
