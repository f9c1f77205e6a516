"""A look at the scales of features, on which the number of cuts depends."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._array_api import namespace, to_numpy
from polyplane.learners._cuts import compiled_kernels

#: Features that differ by more than this factor are warned about.
LARGEST_SCALE = 1e3


def _largest_values(X: Any) -> np.ndarray:
    """The largest absolute value of each column."""
    xp = namespace(X)
    if xp is not np or not compiled_kernels():
        ends = [-X.min(axis=0), X.max(axis=0)] if sparse.issparse(X) else [-xp.min(X, axis=0), xp.max(X, axis=0)]
        low, high = (end.toarray()[0] if sparse.issparse(end) else to_numpy(end) for end in ends)
        return np.maximum(low, high)
    from polyplane.kernels.cutting_plane import dense_scales, sparse_scales

    largest = np.zeros(X.shape[1], dtype=X.dtype)
    if sparse.issparse(X):
        sparse_scales(X.data, X.indices, largest)
    else:
        dense_scales(X, largest)
    return largest


def warn_of_scales(X: Any) -> None:
    """Warn when one feature outweighs the others, or the constant feature, so much that cuts will see little else."""
    largest = _largest_values(X)
    used = largest[largest > 0]
    if len(used) == 0:
        return
    factor = float(used.max()) / min(1.0, float(np.median(used)))
    if factor > LARGEST_SCALE:
        j = int(largest.argmax())
        warnings.warn(
            f"Feature {j} reaches {float(largest[j]):.3g}, {factor:.3g} times the scale of a typical feature or of the "
            "intercept. Training will need many more cuts: scale the features, for example with MaxAbsScaler.",
            UserWarning,
            stacklevel=4,
        )
