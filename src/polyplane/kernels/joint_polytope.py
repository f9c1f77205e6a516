"""The joint convex polytope machine: one epoch of stochastic gradient descent on the planes of all classes.

Planes are columns, class by class, as many for each class.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels._jit import kernel, part
from polyplane.kernels.backoff import passes_to_skip
from polyplane.kernels.convex_polytope import TINY, Memory, Pace, _assign, _recount
from polyplane.kernels.rows import PlaneSums, add, borrowed, scores


class JointProblem(NamedTuple):
    """What is to be separated, and with which hyper-parameters."""

    labels: np.ndarray  # class of each row
    weight: np.ndarray  # weight of each row
    n_planes: int  # of each class
    alpha: float
    min_entropy: float  # in nats (the paper's h)


class Shares(NamedTuple):
    """Each plane's share of the rows of its class, by which the entropy is kept."""

    recorded: np.ndarray  # plane of its class that each row would have gone to when it last moved one (UNADJ)
    counts: np.ndarray  # how many rows are recorded at each plane (n_k)
    sums: np.ndarray  # of each class: the sums of n_k and of n_k log n_k


class Skipping(NamedTuple):
    """Which rows are skipped, and for how long a row may be."""

    skip: np.ndarray  # visits of each row still to be skipped
    length: np.ndarray  # length |x| of each row
    movement: float  # how far margins move in a pass, on a row of length 1; infinite: not known
    longest: int  # the most visits to skip, 0 for none


@part
def _best(score: np.ndarray, first: int, last: int, best: int) -> int:
    """The best of some planes, and of the plane `best`, if there is one."""
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
    """Visit the rows in `order`; return the sum of the losses met, the number of rows that moved planes, the margin.

    `planes` holds the sums ``V = margin W``, never scaled, as in `polyplane.kernels.convex_polytope.polytope_epoch`: a
    row that beats the best rival plane by less than the margin is added to its own best plane and taken off the rival.
    Without an entropy to keep there are no `shares`.
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
