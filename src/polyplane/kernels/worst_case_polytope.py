"""The worst-case-margin form of the Convex Polytope Machine (Kantchelian et al., 2014): one epoch for one polytope."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, scores

#: Scores and norms closer than this, relative to the best, are equal.
TIE = 1e-9


class WorstCaseProblem(NamedTuple):
    """The classification problem of a polytope, and the position in the step size schedule ``1 / (alpha t)``."""

    labels: np.ndarray  # class of each row
    weight: np.ndarray  # weight of each row
    square: np.ndarray  # squared norm of each row, including the constant feature
    outer: int  # the class outside the polytope
    alpha: float
    t: float  # before the first visit
    longest_alone: bool  # regularise only the plane with the largest norm; else all, as for the total margin


@part
def _first_best(values: np.ndarray) -> int:
    """Return the first of the best, up to TIE: initially all planes are equal, and rounding should not decide."""
    best = values[0]
    for k in range(1, values.shape[0]):
        best = max(best, values[k])
    k = 0
    while values[k] < best - TIE * abs(best):
        k += 1
    return k


@kernel
def worst_case_epoch(
    rows: Any, order: np.ndarray, planes: PlaneSums, norm: np.ndarray, problem: WorstCaseProblem, score: np.ndarray
) -> tuple[float, int]:
    """Visit the rows in `order`; return the sum of the losses, and the number of rows that updated a plane.

    A visit shrinks only the plane with the largest norm. Planes are stored as ``W_k / factor_k``, so that a visit
    accesses only the non-zero values of its row; the squared norms, in `norm`, are updated by the score of the row.
    """
    rows, order, planes, norm, problem, score = borrowed((rows, order, planes, norm, problem, score))
    labels, weights, square = problem.labels, problem.weight, problem.square
    n_planes, alpha, t, longest_alone = score.shape[0], problem.alpha, problem.t, problem.longest_alone
    factor = np.ones(n_planes)
    loss, n_updates = 0.0, 0
    for i in order:
        t += 1.0
        scores(rows, i, planes, score)
        for k in range(n_planes):
            score[k] *= factor[k]
        longest, shrink, eta = _first_best(norm), 1.0 - 1.0 / t, 1.0 / (alpha * t)
        for k in range(n_planes):
            if k == longest or not longest_alone:
                norm[k] *= shrink * shrink
                factor[k] *= shrink
        outside = labels[i] == problem.outer
        sign = 1.0 if outside else -1.0
        step = sign * eta * weights[i]
        z = _first_best(score)
        n_updates += sign * score[z] < 1.0
        for k in range(z, z + 1) if outside else range(n_planes):
            if sign * score[k] < 1.0:
                loss += weights[i] * (1.0 - sign * score[k])
                shrunk = score[k] * shrink if k == longest or not longest_alone else score[k]
                norm[k] += step * (2.0 * shrunk + step * square[i])
                add(rows, i, planes, k, step / factor[k])
    coef, intercept = planes.coef, planes.intercept
    for k in range(n_planes):
        intercept[k] *= factor[k]
        for j in range(coef.shape[0]):
            coef[j, k] *= factor[k]
    return loss, n_updates
