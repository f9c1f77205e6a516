"""Lazy predictions for Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np


def lazily(X: Any, estimator: Any, method: str, example: np.ndarray) -> Any:
    """Return the lazy result of a method of a fitted estimator for X; `example` is the result for one row."""
    import dask

    empty = example[:0]
    if isinstance(X, list | tuple):
        return [dask.delayed(_apply)(block, estimator, method, empty) for block in X]
    if hasattr(X, "map_partitions"):
        # The dtype of a series of strings differs from that of an empty series of objects.
        meta = _framed(example, estimator).iloc[:0]
        return X.map_partitions(_apply_to_frame, estimator, method, meta, meta=meta)
    if not hasattr(X, "map_blocks"):
        raise TypeError(f"X is a {type(X).__name__}; for rows in memory use to_local().{method}(X).")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    shape = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], (empty.shape[1],))}
    return X.map_blocks(_apply, estimator, method, empty, dtype=empty.dtype, meta=empty, **shape)


def _apply(block: Any, estimator: Any, method: str, empty: np.ndarray) -> np.ndarray:
    result: np.ndarray = getattr(estimator, method)(block) if len(block) else empty
    return result


def _apply_to_frame(block: Any, estimator: Any, method: str, empty: Any) -> Any:
    if not len(block):
        return empty.set_axis(block.index)
    return _framed(getattr(estimator, method)(block), estimator, block.index)


def _framed(result: np.ndarray, estimator: Any, index: Any = None) -> Any:
    """Convert a result to a series, or to a data frame with one column per class."""
    import pandas as pd

    return pd.Series(result, index) if result.ndim == 1 else pd.DataFrame(result, index, estimator.classes_)
