"""The minimum and maximum of each feature of sparse rows."""

import numpy as np

from polyplane.kernels._jit import kernel


@kernel
def widen_ranges(data: np.ndarray, indices: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Update the minimum `low` and the maximum `high` of each feature by the values of a CSR matrix."""
    for p in range(data.shape[0]):
        j, x = indices[p], data[p]
        low[j] = min(low[j], x)
        high[j] = max(high[j], x)
