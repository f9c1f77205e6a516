"""The worst-case-margin form of the Convex Polytope Machine (Kantchelian et al., 2014): one epoch for one polytope."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels._jit import kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, scores

#: Scores and norms closer than this, relative to the best, are equal.
TIE = 1e-9


class WorstCaseProblem(NamedTuple):
    """What the polytope has to separate, and where the steps ``1 / (alpha t)`` have got to."""

    labels: np.ndarray  # class of each row
    weight: np.ndarray  # weight of each row
    square: np.ndarray  # squared norm of each row, the constant feature included
    outer: int  # the class that lives outside
    alpha: float
    t: float  # before the first visit
    longest_alone: bool  # shrink the longest plane; else all of them, as the total margin has it


@part
def _first_best(values: np.ndarray) -> int:
    """The first of the best, up to TIE: planes begin alike, and rounding is not to choose among them."""
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
    """Visit the rows in `order`; return the sum of the losses met, and the number of rows that moved a plane.

    A visit shrinks the plane of the largest norm alone. So that it touches only the entries of its row, a plane is
    stored as ``W_k / factor_k`` in the meantime, and its squared norm, in `norm`, follows from the row's score.
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
