"""A look at the scales of features, on which the number of cuts depends."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from polyplane._array_api import namespace, to_numpy

#: Features that differ by more than this factor are warned about.
LARGEST_SCALE = 1e3


def largest_values(X: Any) -> np.ndarray:
    """The largest absolute value of each column."""
    xp = namespace(X)
    if xp is not np:
        return np.maximum(to_numpy(-xp.min(X, axis=0)), to_numpy(xp.max(X, axis=0)))
    from polyplane.kernels import cutting_plane as kernels
    from polyplane.kernels.rows import as_rows

    largest = np.zeros(X.shape[1], dtype=X.dtype)
    kernels.largest_values(as_rows(X), X.shape[0], largest)
    return largest


def warn_of_scales(X: Any) -> None:
    """Warn when one feature outweighs the others, or the constant feature, so much that cuts will see little else."""
    largest = largest_values(X)
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
            stacklevel=8,
        )
