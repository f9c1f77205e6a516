r"""Sums over rows for the cutting-plane SVM (Franc and Sonnenburg, 2009; Arnosti and Kalita).

Rows are seen through their *violations*: for two classes ``v = 1 - s w.x`` in one column, for more
``v_k = [k != y] + (w_k - w_y).x`` in one column per class. In both cases the loss is ``max(0, max_k v_k)``, and ``v``
is affine in the planes: between two sets of planes it is interpolated, not computed.
"""

from typing import Any

import numpy as np

from polyplane.kernels._jit import kernel, part, summing_kernel
from polyplane.kernels.rows import PlaneSums, add_to, borrowed, score, scores

# One plane and several have kernels of their own, so that a fit compiles those that it needs. `current` and `candidate`
# are the violations of the rows at both ends of a line search, `mu` is a point of the way from the one to the other.


@kernel
def violations_of_one(
    rows: Any, start: int, w: np.ndarray, intercept: float, target: np.ndarray, out: np.ndarray
) -> None:
    """The violations at a single plane. `target` is the sign of each row."""
    rows, w = borrowed((rows, w))
    for i in range(out.shape[0]):
        out[i] = score(rows, start + i, w, intercept)
        out[i] = 1.0 - target[i] * out[i]


@kernel
def outputs_on_many(rows: Any, start: int, planes: PlaneSums, out: np.ndarray) -> None:
    """Scores on several planes."""
    rows, planes, out = borrowed((rows, planes, out))
    for i in range(out.shape[0]):
        scores(rows, start + i, planes, out[i])


@kernel
def violations_of_many(outputs: np.ndarray, target: np.ndarray) -> None:
    """Turn scores into violations, in place. `target` is the class of each row."""
    n_rows, n_columns = outputs.shape
    for i in range(n_rows):
        own = outputs[i, target[i]]
        for k in range(n_columns):
            outputs[i, k] += 1.0 - own
        outputs[i, target[i]] = 0.0


@summing_kernel
def risk_of_one(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float) -> Any:
    """The weighted sum of the losses at ``current + mu (candidate - current)``."""
    total = 0.0
    for i in range(weight.shape[0]):
        v = current[i] + mu * (candidate[i] - current[i])
        total += weight[i] * (v if v > 0.0 else 0.0)
    return total


@summing_kernel
def risk_of_many(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float) -> Any:
    """The same, of several planes."""
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
    """Let `current` be the point ``current + mu (candidate - current)``; both without their shapes."""
    for i in range(current.shape[0]):
        current[i] += mu * (candidate[i] - current[i])


@summing_kernel
def choose_of_one(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float, chosen: np.ndarray) -> Any:
    """Equation (6): 0 for rows that violate their margin, -1 for the others.

    Return the weight of the rows that violate theirs, which is the offset of the cut.
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
    """The same, of several planes: the column of the largest violation of each row, -1 where the margin is kept."""
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
    """Add to `sums` what the sub-gradient of the risk gains when the choices `before` become `now`.

    The last column of `sums` belongs to the constant feature. Late in training few rows change sides from one cut to
    the next, and only these are added up.
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
    """Value and slope, just after 0, of the largest of the lines ``current + mu (candidate - current)`` and 0."""
    value, slope = 0.0, 0.0
    for k in range(current.shape[0]):
        v, s = float(current[k]), float(candidate[k]) - float(current[k])
        if v > value or (v == value and s > slope):
            value, slope = v, s
    return value, slope


@kernel
def slope_of_risk(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray) -> float:
    """The right derivative of the risk at 0."""
    current, candidate = borrowed((current, candidate))
    total = 0.0
    for i in range(weight.shape[0]):
        total += weight[i] * _first_line(current[i], candidate[i])[1]
    return total


@kernel
def kinks(
    current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, furthest: float, at: np.ndarray, rise: np.ndarray
) -> int:
    """Where in (0, furthest] the slope of the risk jumps, and by how much; return how many such points there are.

    Only as many are written as there is room for. Each row walks along the upper envelope of its lines.
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
    """Algorithm 3: where ``slope + curvature mu + (rises up to mu)`` passes 0; `at` is sorted."""
    for i in range(at.shape[0]):
        if slope + curvature * at[i] >= 0.0:
            break
        slope += rise[i]
        if slope + curvature * at[i] >= 0.0:
            return at[i]
    return -slope / curvature
