"""Conversion of input rows to a matrix of floats, for planes and scalers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyplane._array_api import as_matrix, is_sparse
from polyplane.inputs.conversion import as_numbers
from polyplane.inputs.encoding import positions_of
from polyplane.inputs.frames import read_table


def read_rows(X: Any, names: Any, n_features: int, owner: str) -> Any:
    """Return a matrix of float32 or float64 in C order, possibly with NaN; sparse matrices of SciPy stay sparse.

    Parameters
    ----------
    X : ndarray, sparse matrix, data frame, dict of columns, list of dicts, or array-like
        Input rows.
    names : sequence of str or None
        Names of the features seen during `fit`; columns are selected by these names.
    n_features : int
        Number of features.
    owner : str
        Name of the estimator, for messages.
    """
    if is_sparse(X):
        rows = X.tocsr()
        rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    else:
        rows = _by_name(X, names, owner) if _has_names(X) else as_matrix(X)
        if rows.dtype == np.float16:
            raise ValueError("X is float16, which is not precise enough; convert it with X.astype(numpy.float32).")
        rows = np.ascontiguousarray(rows, rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)
    if rows.shape[1] != n_features:
        raise ValueError(f"X has {rows.shape[1]} features, but {owner} is expecting {n_features} features as input.")
    if np.isinf(rows.data if is_sparse(rows) else rows).any():
        raise ValueError("Input X contains infinity or a value too large for its dtype.")
    return rows


def refuse_missing(rows: Any, owner: str) -> Any:
    """Return the rows, or raise an error if they contain NaN."""
    if not np.isfinite(rows.data if is_sparse(rows) else rows).all():
        raise ValueError(f"Input X contains NaN, which {owner} does not accept: train a pipeline with SimpleImputer.")
    return rows


def _has_names(X: Any) -> bool:
    """Return whether columns can be selected by name."""
    of_rows = isinstance(X, list) and len(X) > 0 and isinstance(X[0], Mapping)
    return of_rows or isinstance(X, Mapping) or hasattr(X, "columns")


def _by_name(X: Any, names: Any, owner: str) -> np.ndarray:
    """Return the columns of a frame or of dicts, in the order of training."""
    table = read_table(X)
    known = table.names if names is None else tuple(names)
    positions = positions_of(known, known, True, table, owner)
    matrix = np.column_stack([as_numbers(table.read(j), ".") for j in positions])
    is_narrow = {str(dtype).lower() for dtype in getattr(X, "dtypes", ())} == {"float32"}
    return matrix.astype(np.float32) if is_narrow else matrix
