"""`Snapshot`: undoes a step that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane._array_api import is_sparse, namespace, put
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array


class Snapshot:
    """The values of what a step may overwrite, before the step."""

    def __init__(self, written: Sequence[tuple[Array, Any]], data: Data) -> None:
        touched = _touched_features(data) if any(kind.by_feature for kind, _ in written) else None
        self._saved: list[tuple[Any, Any, Any]] = []
        for kind, array in written:
            at = touched if kind.by_feature else None
            self._saved.append((array, at, copy_array(array) if at is None else np.take(array, at, axis=0)))

    def restore(self) -> None:
        """Restore the values. Ctrl-C is raised after this is done."""
        interrupt = None
        while True:
            try:
                for array, at, before in self._saved:
                    if at is None:
                        array[...] = before
                    else:
                        put(array, at, before)
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _touched_features(data: Data) -> np.ndarray | None:
    """The features that occur in sparse rows, possibly repeated, if they are few; else None."""
    if not is_sparse(data.X) or data.X.nnz > data.X.shape[1]:
        return None
    if 8 * data.X.nnz < data.X.shape[1]:  # a pass over all features would take longer than saving some twice
        indices: np.ndarray = data.X.indices
        return indices
    seen = np.zeros(data.X.shape[1], dtype=bool)
    seen[data.X.indices] = True
    return np.flatnonzero(seen)


def copy_array(array: Any) -> Any:
    """A copy with the same memory layout: BLAS sums in another order over a transposed array."""
    return np.array(array, order="K") if isinstance(array, np.ndarray) else namespace(array).asarray(array, copy=True)
