"""Algorithm 2 of the Polyceptron (Manwani and Sastry): one pass over the rows."""

from typing import Any

import numpy as np

from polyplane.kernels.jit import kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, scores


@part
def _argmin(values: np.ndarray) -> int:
    best = 0
    for k in range(1, values.shape[0]):
        if values[k] < values[best]:
            best = k
    return best


@kernel
def polyceptron_epoch(
    rows: Any, order: np.ndarray, sign: np.ndarray, step: np.ndarray, planes: PlaneSums, score: np.ndarray
) -> int:
    """Visit the rows in `order`, update the lowest-scoring plane of each misclassified row; return their number.

    `sign` is +1 inside and -1 outside, `step` the step size of each row.
    """
    rows, order, sign, step, planes, score = borrowed((rows, order, sign, step, planes, score))
    mistakes = 0
    for i in order:
        scores(rows, i, planes, score)
        r = _argmin(score)
        if sign[i] * score[r] <= 0.0:
            add(rows, i, planes, r, sign[i] * step[i])
            mistakes += 1
    return mistakes
