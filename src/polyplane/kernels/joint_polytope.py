"""The joint convex polytope machine: one epoch of stochastic gradient descent on the planes of all classes.

Planes are columns, ordered by class, with the same number for each class.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.convex_polytope import TINY, Memory, Pace, _assign, _recount, passes_to_skip
from polyplane.kernels.jit import kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, scores


class JointProblem(NamedTuple):
    """The classification problem, and its hyperparameters."""

    labels: np.ndarray  # class of each row
    weight: np.ndarray  # weight of each row
    n_planes: int  # of each class
    alpha: float
    min_entropy: float  # in nats (the paper's h)


class Shares(NamedTuple):
    """The assignment of rows to the planes of their class, for the entropy constraint."""

    recorded: np.ndarray  # the highest-scoring plane of its class for each row, at its last update (UNADJ)
    counts: np.ndarray  # number of rows recorded for each plane (n_k)
    sums: np.ndarray  # for each class: the sums of n_k and of n_k log n_k


class Skipping(NamedTuple):
    """The rows that are skipped, and for how long."""

    skip: np.ndarray  # visits of each row still to be skipped
    length: np.ndarray  # norm |x| of each row
    movement: float  # change of margins in a pass, for a row of norm 1; infinite if unknown
    longest: int  # maximum number of visits to skip, 0 for none


@part
def _best(score: np.ndarray, first: int, last: int, best: int) -> int:
    """Return the highest-scoring plane among `first` to `last` - 1 and the plane `best`, if there is one."""
    for k in range(first, last):
        if best < 0 or score[k] > score[best]:
            best = k
    return best


@kernel
def joint_epoch(
    rows: Any,
    order: np.ndarray,
    pace: Pace,
    planes: PlaneSums,
    problem: JointProblem,
    shares: Shares | None,
    skipping: Skipping,
    score: np.ndarray,
) -> tuple[float, int, float]:
    """Visit the rows in `order`; return the sum of the losses, the number of rows that updated planes, and the margin.

    `planes` contains ``V = margin W``, never rescaled, as in `polyplane.kernels.convex_polytope.polytope_epoch`. If the
    score of a row for its own class exceeds that of the best plane of another class by less than the margin, the row is
    added to the best plane of its class and subtracted from the other plane. Without an entropy constraint there are no
    `shares`.
    """
    rows, order, planes, problem, skipping, score = borrowed((rows, order, planes, problem, skipping, score))
    labels, weights, alpha, min_entropy = problem.labels, problem.weight, problem.alpha, problem.min_entropy
    skip, length, movement, longest = skipping.skip, skipping.length, skipping.movement, skipping.longest
    t, window, upcoming = pace.t, pace.window, pace.margin
    growth = window / (window - 1.0)
    n_columns, n_planes = score.shape[0], problem.n_planes
    if shares is not None:
        for c in range(shares.sums.shape[0]):
            _recount(shares.counts[c * n_planes : (c + 1) * n_planes], shares.sums[c])
    loss, n_updates, amount = 0.0, 0, 1.0
    for i in order:
        if t < window:
            margin, upcoming = max(alpha * t, TINY), alpha * (t + 1)
        else:
            margin, upcoming = upcoming, upcoming * growth
            amount = upcoming / (alpha * window)
        t += 1
        if skip[i] > 0:
            skip[i] -= 1
            continue
        scores(rows, i, planes, score)
        first = labels[i] * n_planes
        last = first + n_planes
        own = _best(score, first, last, -1)
        rival = _best(score, last, n_columns, _best(score, 0, first, -1))
        reached = float(score[own]) - float(score[rival])
        if reached < margin:
            loss += weights[i] * (1.0 - reached / margin)
            n_updates += 1
            if shares is not None:
                kept = borrowed(shares)
                of_class = Memory(kept.recorded, kept.counts[first:last], kept.sums[labels[i]])
                own = first + _assign(score[first:last], i, own - first, of_class, min_entropy)
            add(rows, i, planes, own, weights[i] * amount)
            add(rows, i, planes, rival, -weights[i] * amount)
        elif longest > 0:
            skip[i] = passes_to_skip(reached / margin - 1.0, length[i] * movement, longest)
    return loss, n_updates, upcoming
