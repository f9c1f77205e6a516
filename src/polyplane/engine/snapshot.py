"""`Snapshot`: undoes a step that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane._array_api import is_sparse, namespace, put
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array


class Snapshot:
    """What a step may overwrite, as it was before."""

    def __init__(self, written: Sequence[tuple[Array, Any]], data: Data) -> None:
        touched = _touched_features(data) if any(kind.by_feature for kind, _ in written) else None
        self._saved: list[tuple[Any, Any, Any]] = []
        for kind, array in written:
            at = touched if kind.by_feature else None
            self._saved.append((array, at, copy_array(array) if at is None else np.take(array, at, axis=0)))

    def restore(self) -> None:
        """Undo what was written since; a Ctrl-C has to wait until this is done."""
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
    """The features that sparse rows have, where these are few, some perhaps several times; else None."""
    if not is_sparse(data.X) or data.X.nnz > data.X.shape[1]:
        return None
    if 8 * data.X.nnz < data.X.shape[1]:  # to go through all features would take longer than to save some twice
        indices: np.ndarray = data.X.indices
        return indices
    seen = np.zeros(data.X.shape[1], dtype=bool)
    seen[data.X.indices] = True
    return np.flatnonzero(seen)


def copy_array(array: Any) -> Any:
    """A copy in the same order in memory: BLAS sums in another order over a transposed array."""
    return np.array(array, order="K") if isinstance(array, np.ndarray) else namespace(array).asarray(array, copy=True)
