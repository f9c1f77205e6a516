r"""Sums over rows for the cutting-plane SVM (Franc and Sonnenburg, 2009; Arnosti and Kalita).

Rows are seen through their *violations*: for two classes ``v = 1 - s w.x`` in one column, for more
``v_k = [k != y] + (w_k - w_y).x`` in one column per class. In both cases the loss is ``max(0, max_k v_k)``, and ``v``
is affine in the planes: between two sets of planes it is interpolated, not computed.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from polyplane.kernels._jit import kernel
from polyplane.kernels.rows import PlaneSums, add_to, score, scores


class Segment(NamedTuple):
    """The violations of the rows at both ends of a line search."""

    current: np.ndarray  # (n_rows, n_columns)
    candidate: np.ndarray
    target: np.ndarray  # class of each row; for two classes, its sign
    weight: np.ndarray


@kernel
def outputs_on_one(rows: Any, start: int, w: np.ndarray, intercept: float, out: np.ndarray) -> None:
    """Scores on a single plane."""
    for i in range(out.shape[0]):
        out[i, 0] = score(rows, start + i, w, intercept)


@kernel
def outputs_on_many(rows: Any, start: int, planes: PlaneSums, out: np.ndarray) -> None:
    """Scores on several planes."""
    for i in range(out.shape[0]):
        scores(rows, start + i, planes, out[i])


@kernel
def violations(outputs: np.ndarray, target: np.ndarray) -> None:
    """Turn scores into violations, in place."""
    n_rows, n_columns = outputs.shape
    if n_columns == 1:
        for i in range(n_rows):
            outputs[i, 0] = 1.0 - target[i] * outputs[i, 0]
        return
    for i in range(n_rows):
        own = outputs[i, target[i]]
        for k in range(n_columns):
            outputs[i, k] += 1.0 - own
        outputs[i, target[i]] = 0.0


@njit(fastmath={"reassoc", "contract"})
def _hinge(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float) -> float:
    total = 0.0
    for i in range(weight.shape[0]):
        v = current[i] + mu * (candidate[i] - current[i])
        total += weight[i] * (v if v > 0.0 else 0.0)
    return total


@njit(fastmath={"reassoc", "contract"})
def _max_hinge(current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float) -> float:
    total = 0.0
    for i in range(weight.shape[0]):
        best = 0.0
        for k in range(current.shape[1]):
            v = current[i, k] + mu * (candidate[i, k] - current[i, k])
            best = v if v > best else best
        total += weight[i] * best
    return total


@kernel
def risk(segment: Segment, mu: float) -> Any:
    """The weighted sum of the losses at ``current + mu (candidate - current)``."""
    current, candidate = segment.current, segment.candidate
    if current.shape[1] == 1:
        return _hinge(current.reshape(-1), candidate.reshape(-1), segment.weight, mu)
    return _max_hinge(current, candidate, segment.weight, mu)


@kernel
def move(segment: Segment, mu: float) -> None:
    """Let `current` be the point ``current + mu (candidate - current)``."""
    current, candidate = segment.current.reshape(-1), segment.candidate.reshape(-1)
    for i in range(current.shape[0]):
        current[i] += mu * (candidate[i] - current[i])


@njit(fastmath={"reassoc", "contract"})
def _choose_hinge(
    current: np.ndarray, candidate: np.ndarray, weight: np.ndarray, mu: float, chosen: np.ndarray
) -> float:
    offset = 0.0
    for i in range(weight.shape[0]):
        violated = current[i] + mu * (candidate[i] - current[i]) >= 0.0
        chosen[i] = 0 if violated else -1
        offset += weight[i] if violated else 0.0
    return offset


@kernel
def choose(segment: Segment, mu: float, chosen: np.ndarray) -> Any:
    """Equation (6): the column of the largest violation of each row, -1 where the margin is kept.

    Return the weight of the rows that violate theirs, which is the offset of the cut.
    """
    current, candidate, target, weight = segment.current, segment.candidate, segment.target, segment.weight
    if current.shape[1] == 1:
        return _choose_hinge(current.reshape(-1), candidate.reshape(-1), weight, mu, chosen)
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
def changes(before: np.ndarray, now: np.ndarray, segment: Segment, row: np.ndarray, coefficient: np.ndarray) -> int:
    """What the sub-gradient of the risk gains when the choices `before` become `now`, as multiples of rows.

    Write pairs (row, plane) into `row` and their factors into `coefficient`; return how many there are. Late in
    training few rows change sides from one cut to the next, and only these are added up.
    """
    target, weight = segment.target, segment.weight
    binary = segment.current.shape[1] == 1
    n = 0
    for i in range(weight.shape[0]):
        old, new, w = before[i], now[i], float(weight[i])
        if old == new:
            continue
        own = 0 if binary else target[i]
        if binary:
            w *= -target[i]
        if new >= 0:
            row[n, 0], row[n, 1], coefficient[n] = i, new, w
            n += 1
        if old >= 0:
            row[n, 0], row[n, 1], coefficient[n] = i, old, -w
            n += 1
        if not binary and (old < 0 or new < 0):
            row[n, 0], row[n, 1], coefficient[n] = i, own, -w if new >= 0 else w
            n += 1
    return n


@kernel
def add_rows(
    rows: Any, start: int, row: np.ndarray, coefficient: np.ndarray, bias_input: float, sums: np.ndarray
) -> None:
    """Add multiples of rows to the planes in `sums`: the transposed product of X and sparse coefficients.

    The last column of `sums` belongs to the constant feature.
    """
    n_features = sums.shape[1] - 1
    for n in range(coefficient.shape[0]):
        total, factor = sums[row[n, 1]], coefficient[n]
        add_to(total, rows, start + row[n, 0], factor)
        total[n_features] += factor * bias_input


@kernel
def _first_line(current: np.ndarray, candidate: np.ndarray) -> tuple[float, float]:
    """Value and slope, just after 0, of the largest of the lines ``current + mu (candidate - current)`` and 0."""
    value, slope = 0.0, 0.0
    for k in range(current.shape[0]):
        v, s = float(current[k]), float(candidate[k]) - float(current[k])
        if v > value or (v == value and s > slope):
            value, slope = v, s
    return value, slope


@kernel
def slope_of_risk(segment: Segment) -> float:
    """The right derivative of the risk at 0."""
    total = 0.0
    for i in range(segment.weight.shape[0]):
        total += segment.weight[i] * _first_line(segment.current[i], segment.candidate[i])[1]
    return total


@kernel
def kinks(segment: Segment, furthest: float, at: np.ndarray, rise: np.ndarray) -> int:
    """Where in (0, furthest] the slope of the risk jumps, and by how much; return how many such points there are.

    Only as many are written as there is room for. Each row walks along the upper envelope of its lines.
    """
    current, candidate, weight = segment.current, segment.candidate, segment.weight
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
