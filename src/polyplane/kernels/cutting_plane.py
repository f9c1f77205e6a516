r"""Sums over rows for the cutting-plane SVM (Franc and Sonnenburg, 2009; Arnosti and Kalita).

Rows are represented by their *violations*: for two classes ``v = 1 - s w.x`` in one column, for more
``v_k = [k != y] + (w_k - w_y).x`` in one column per class. In both cases the loss is ``max(0, max_k v_k)``, and ``v``
is affine in the planes: between two sets of planes it is interpolated.
"""

from typing import Any

import numpy as np

from polyplane.kernels.jit import kernel, part, summing_kernel
from polyplane.kernels.rows import PlaneSums, add_to, borrowed, score, scores

# There are separate kernels for one plane and for several, so that a fit compiles only those that it needs. `current`
# and `candidate` are the violations at the two ends of a line search, `mu` is a position between them (0 to 1).


@kernel
def violations_of_one(
    rows: Any, start: int, w: np.ndarray, intercept: float, target: np.ndarray, out: np.ndarray
) -> None:
    """Compute the violations for a single plane. `target` is the sign of each row."""
    rows, w = borrowed((rows, w))
    for i in range(out.shape[0]):
        out[i] = score(rows, start + i, w, intercept)
        out[i] = 1.0 - target[i] * out[i]


@kernel
def outputs_on_many(rows: Any, start: int, planes: PlaneSums, out: np.ndarray) -> None:
    """Compute the scores of several planes."""
    rows, planes, out = borrowed((rows, planes, out))
    for i in range(out.shape[0]):
        scores(rows, start + i, planes, out[i])


@kernel
def violations_of_many(outputs: np.ndarray, target: np.ndarray) -> None:
    """Convert scores to violations, in place. `target` is the class of each row."""
    n_rows, n_columns = outputs.shape
    for i in range(n_rows):
        own = outputs[i, target[i]]
        for k in range(n_columns):
            outputs[i, k] += 1.0 - own
        outputs[i, target[i]] = 0.0


@summing_kernel
def risk_of_one(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float) -> Any:
    """Compute the weighted sum of the losses at ``current + mu (candidate - current)``."""
    total = 0.0
    for i in range(weight.shape[0]):
        v = current[i] + mu * (candidate[i] - current[i])
        total += weight[i] * (v if v > 0.0 else 0.0)
    return total


@summing_kernel
def risk_of_many(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float) -> Any:
    """Compute the weighted sum of the losses of several planes."""
    total = 0.0
    for i in range(weight.shape[0]):
        best = 0.0
        for k in range(current.shape[1]):
            v = current[i, k] + mu * (candidate[i, k] - current[i, k])
            best = v if v > best else best
        total += weight[i] * best
    return total


@kernel
def move(current: np.ndarray, candidate: np.ndarray, mu: float) -> None:
    """Set `current` to ``current + mu (candidate - current)``; both are flattened."""
    for i in range(current.shape[0]):
        current[i] += mu * (candidate[i] - current[i])


@summing_kernel
def choose_of_one(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float, chosen: np.ndarray) -> Any:
    """Equation (6): set `chosen` to 0 for rows that violate their margin, and to -1 for the others.

    Return the total weight of the rows that violate their margin, which is the offset of the cut.
    """
    offset = 0.0
    for i in range(weight.shape[0]):
        violated = current[i] + mu * (candidate[i] - current[i]) >= 0.0
        chosen[i] = 0 if violated else -1
        offset += weight[i] if violated else 0.0
    return offset


@kernel
def choose_of_many(
    current: np.ndarray, candidate: np.ndarray, target: np.ndarray, weight: np.ndarray, mu: float, chosen: np.ndarray
) -> Any:
    """Do the same for several planes: the column of the largest violation of each row, -1 if the margin is kept."""
    offset = 0.0
    for i in range(weight.shape[0]):
        column, largest = -1, 0.0
        for k in range(current.shape[1]):
            v = current[i, k] + mu * (candidate[i, k] - current[i, k])
            if k != target[i] and (v >= largest if column < 0 else v > largest):
                column, largest = k, v
        chosen[i] = column
        if column >= 0:
            offset += weight[i]
    return offset


@kernel
def add_changes(
    rows: Any, start: int, before: np.ndarray, now: np.ndarray, target: np.ndarray, weight: np.ndarray,
    bias_input: float, sums: np.ndarray,
) -> None:  # fmt: skip
    """Add to `sums` the change of the subgradient of the risk when the choices change from `before` to `now`.

    The last column of `sums` corresponds to the constant feature. Late in training few rows change between cuts, and
    only these are added.
    """
    rows, sums = borrowed((rows, sums))
    binary, n_features = sums.shape[0] == 1, sums.shape[1] - 1
    for i in range(weight.shape[0]):
        old, new = before[i], now[i]
        if old == new:
            continue
        w = float(weight[i])
        if binary:
            w *= -target[i]
        for gains in range(2 if binary or (old >= 0 and new >= 0) else 3):
            plane, factor = (new, w) if gains == 0 else (old, -w)
            if gains == 2:
                plane, factor = target[i], -w if new >= 0 else w
            if plane >= 0:
                total = sums[plane]
                add_to(total, rows, start + i, factor)
                total[n_features] += factor * bias_input


@part
def _first_line(current: np.ndarray, candidate: np.ndarray) -> tuple[float, float]:
    """Return value and right derivative, at 0, of the maximum of 0 and ``current + mu (candidate - current)``."""
    value, slope = 0.0, 0.0
    for k in range(current.shape[0]):
        v, s = float(current[k]), float(candidate[k]) - float(current[k])
        if v > value or (v == value and s > slope):
            value, slope = v, s
    return value, slope


@kernel
def slope_of_risk(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray) -> float:
    """Compute the right derivative of the risk at 0."""
    current, candidate = borrowed((current, candidate))
    total = 0.0
    for i in range(weight.shape[0]):
        total += weight[i] * _first_line(current[i], candidate[i])[1]
    return total


@kernel
def kinks(
    current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, furthest: float, at: np.ndarray, rise: np.ndarray
) -> int:
    """Find the points in (0, furthest] where the slope of the risk jumps, and the jumps; return their number.

    No more points are written than the arrays can hold. For each row, they lie on the upper envelope of its lines.
    """
    current, candidate = borrowed((current, candidate))
    count = 0
    for i in range(weight.shape[0]):
        value, slope = _first_line(current[i], candidate[i])
        while True:
            crossing, steeper = np.inf, slope
            for k in range(-1, current.shape[1]):
                v = float(current[i, k]) if k >= 0 else 0.0
                s = float(candidate[i, k]) - v if k >= 0 else 0.0
                if s > slope:
                    mu = (value - v) / (s - slope)
                    if mu < crossing or (mu == crossing and s > steeper):
                        crossing, steeper = mu, s
                        next_value = v
            if not crossing <= furthest:
                break
            if count < at.shape[0]:
                at[count], rise[count] = crossing, weight[i] * (steeper - slope)
            count += 1
            value, slope = next_value, steeper
    return count


@kernel
def first_zero(at: np.ndarray, rise: np.ndarray, slope: float, curvature: float) -> float:
    """Algorithm 3: return the zero of ``slope + curvature mu + (sum of rises up to mu)``; `at` is sorted."""
    for i in range(at.shape[0]):
        if slope + curvature * at[i] >= 0.0:
            break
        slope += rise[i]
        if slope + curvature * at[i] >= 0.0:
            return at[i]
    return -slope / curvature
