"""Algorithms 1 and 2 of the Convex Polytope Machine (Kantchelian et al., 2014): an epoch of one polytope, or of all."""

import math
from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import comparing_part, kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, prefetch_ahead, scores
from polyplane.kernels.skipping import Checks, is_checked, note_update, passes_within, relative_slack

#: W is 0 at the first visit: every margin is violated.
TINY = float(np.finfo(np.float32).tiny)


class Problem(NamedTuple):
    """The classification problem of a polytope, and its hyperparameters."""

    labels: np.ndarray  # class of each row
    weight: np.ndarray  # weight of each row
    outer: int  # the class outside the polytope
    alpha: float
    min_entropy: float  # in nats (the paper's h)


class Backoff(NamedTuple):
    """The rows that are skipped, and for how long."""

    skip: np.ndarray  # visits of each row still to be skipped
    length: np.ndarray  # norm |x| of each row
    #: Change of each plane's score in a pass, or of all margins, for a row of norm 1; infinite if unknown.
    movement: Any
    longest: int  # maximum number of visits to skip, 0 for none
    checks: Checks


class Memory(NamedTuple):
    """The assignment of outer rows to planes, for the entropy."""

    recorded: np.ndarray  # the highest-scoring plane of each row at its last margin violation (UNADJ), -1: none
    counts: np.ndarray  # number of outer rows recorded for each plane (n_k)
    sums: np.ndarray  # the sums of n_k and of n_k log n_k, from which the entropy is computed; of all classes, by class


class SgdProgress(NamedTuple):
    """The progress of training: the planes are ``W = V / margin``, and V is stored."""

    t: int  # number of visits so far
    margin: float
    window: int  # number of visits after which the step size 1 / (alpha t) no longer decreases


@part
def _n_log_n(n: int) -> float:
    return n * math.log(n) if n > 0 else 0.0


@part
def _recount(counts: np.ndarray, sums: np.ndarray) -> None:
    sums[:] = 0.0
    for n in counts:
        sums[0] += n
        sums[1] += _n_log_n(n)


@comparing_part
def _largest(values: np.ndarray) -> Any:
    largest = values[0]
    for k in range(1, values.shape[0]):
        largest = max(largest, values[k])
    return largest


@part
def _argmax(values: np.ndarray) -> int:
    largest = _largest(values)
    for k in range(values.shape[0]):
        if values[k] == largest:
            return k
    return 0


@part
def _best_of_rarer(score: np.ndarray, counts: np.ndarray, old: int, total: int, sum_n_log_n: float) -> int:
    """Return the highest-scoring plane whose assignment would increase the entropy; -1 if there is none."""
    entropy = math.log(total) - sum_n_log_n / total
    best = -1
    for k in range(score.shape[0]):
        if old >= 0:
            # Moving a row from `old` to `k` increases the entropy if and only if the two counts become more equal.
            raises = counts[k] < counts[old] - 1
        else:
            grown = sum_n_log_n + _n_log_n(counts[k] + 1) - _n_log_n(counts[k])
            raises = math.log(total + 1) - grown / (total + 1) > entropy
        if raises and (best < 0 or score[k] > score[best]):
            best = k
    return best


@part
def _assign(score: np.ndarray, i: int, natural: int, memory: Memory, min_entropy: float) -> int:
    """Algorithm 2, ASSIGN, in O(K)."""
    counts, sums = memory.counts, memory.sums
    old = memory.recorded[i]
    total, before = int(sums[0]), sums[1]
    after = before
    if old != natural:
        after += _n_log_n(counts[natural] + 1) - _n_log_n(counts[natural])
        if old >= 0:
            after += _n_log_n(counts[old] - 1) - _n_log_n(counts[old])
    grown_total = total + 1 if old < 0 else total
    chosen = natural
    # The entropy of few rows is not meaningful: wait for five rows per plane on average.
    if total >= 5 * counts.shape[0] and math.log(grown_total) - after / grown_total < min_entropy:
        rarer = _best_of_rarer(score, counts, old, total, before)
        chosen = rarer if rarer >= 0 else natural
    if old >= 0:
        counts[old] -= 1
    counts[natural] += 1
    memory.recorded[i] = natural
    sums[0], sums[1] = grown_total, after
    return chosen


@kernel
def polytope_scores(rows: Any, some: np.ndarray, planes: PlaneSums, out: np.ndarray) -> None:
    """Compute the scores of the planes for some rows."""
    rows, planes, out = borrowed((rows, planes, out))
    for j in range(some.shape[0]):
        scores(rows, some[j], planes, out[j])


@comparing_part
def _least_slack(score: np.ndarray, margin: float, length: float, movement: np.ndarray) -> float:
    """Return the smallest slack of the planes for an inner row, relative to their movements."""
    least = np.inf
    for k in range(score.shape[0]):
        least = min(least, relative_slack(-score[k] / margin - 1.0, length * movement[k]))
    return least


@part
def _passes_to_skip(
    score: np.ndarray, z: int, is_outer: bool, margin: float, length: float, movement: np.ndarray, longest: int
) -> int:
    """Return the number of passes for which row `i` keeps its margin, if planes move as in the last pass.

    An outer row keeps its margin until the score of its best plane `z` has decreased by its slack, an inner row until
    the score of some plane has increased by the slack of that plane.
    """
    if is_outer:
        return passes_within(relative_slack(score[z] / margin - 1.0, length * movement[z]), longest)
    return passes_within(_least_slack(score, margin, length, movement), longest)


@kernel
def polytope_epoch(
    rows: Any, order: np.ndarray, pace: SgdProgress, planes: PlaneSums, problem: Problem, memory: Memory | None,
    backoff: Backoff, score: np.ndarray,
) -> tuple[float, int, float]:  # fmt: skip
    """Visit the rows in `order`; return the sum of the losses, the number of rows that updated a plane, and the margin.

    `planes` contains ``V = margin W``, which is never rescaled: scores are compared with the margin instead of 1. With
    the step size ``1 / (alpha t)`` the margin is ``alpha t``, and an update adds the row itself. For ``t > window`` the
    step size remains ``1 / (alpha window)``: each visit multiplies ``W`` by ``1 - 1 / window``, which for V means that
    the margin, and the factor of updates, grow accordingly. Without an entropy constraint there is no `memory`.
    """
    rows, order, planes, problem, backoff, score = borrowed((rows, order, planes, problem, backoff, score))
    labels, weights = problem.labels, problem.weight
    skip, length, movement, longest = backoff.skip, backoff.length, backoff.movement, backoff.longest
    outer, alpha = problem.outer, problem.alpha
    t, window, upcoming = pace.t, pace.window, pace.margin
    growth = window / (window - 1.0)
    n_planes = score.shape[0]
    if memory is not None:
        _recount(memory.counts, memory.sums)
    loss, n_updates, n_updated, amount = 0.0, 0, 0, 1.0
    for visit in range(order.shape[0]):
        i = order[visit]
        prefetch_ahead(rows, order, visit, skip)
        if t < window:
            margin, upcoming = max(alpha * t, TINY), alpha * (t + 1)
        else:
            margin, upcoming = upcoming, upcoming * growth
            amount = upcoming / (alpha * window)
        t += 1
        is_skipped = skip[i] > 0
        if is_skipped:
            skip[i] -= 1
            if not is_checked(t, weights[i], backoff.checks):
                continue
        scores(rows, i, planes, score)
        z = _argmax(score)
        if labels[i] == outer:
            reached = float(score[z])
            if reached < margin:
                loss += weights[i] * (1.0 - reached / margin)
                n_updates += 1
                n_updated = 1
                if memory is not None:
                    z = _assign(score, i, z, borrowed(memory), problem.min_entropy)
                add(rows, i, planes, z, weights[i] * amount)
        else:
            reached = -float(score[z])
            if reached < margin:
                n_updates += 1
                n_updated = 0
                for k in range(n_planes):
                    if score[k] > -margin:
                        loss += weights[i] * (1.0 + score[k] / margin)
                        n_updated += 1
                        add(rows, i, planes, k, -weights[i] * amount)
        if longest > 0 and reached < margin:
            note_update(skip, i, is_skipped, n_updated, weights[i], backoff.checks)
        elif longest > 0 and reached > margin and not is_skipped:
            skip[i] = _passes_to_skip(score, z, labels[i] == outer, margin, length[i], movement, longest)
    return loss, n_updates, upcoming


# The planes of all classes together: columns, class by class, with the same number for each class.


class JointProblem(NamedTuple):
    """The classification problem, and its hyperparameters."""

    labels: np.ndarray  # class of each row
    weight: np.ndarray  # weight of each row
    n_planes: int  # of each class
    alpha: float
    min_entropy: float  # in nats (the paper's h)


@part
def _best_rival(score: np.ndarray, first: int, last: int) -> int:
    """Return the highest-scoring plane, except planes `first` to `last` - 1."""
    if first == 0:
        return last + _argmax(score[last:])
    before = _argmax(score[:first])
    if last == score.shape[0]:
        return before
    after = last + _argmax(score[last:])
    return after if score[after] > score[before] else before


@kernel
def joint_epoch(
    rows: Any, order: np.ndarray, pace: SgdProgress, planes: PlaneSums, problem: JointProblem, memory: Memory | None,
    backoff: Backoff, score: np.ndarray,
) -> tuple[float, int, float]:  # fmt: skip
    """Visit the rows in `order`; return the sum of the losses, the number of rows that updated planes, and the margin.

    `planes` contains ``V = margin W``, never rescaled, as in `polytope_epoch`. If the
    score of a row for its own class exceeds that of the best plane of another class by less than the margin, the row is
    added to the best plane of its class and subtracted from the other plane. Without an entropy constraint there are no
    `memory`.
    """
    rows, order, planes, problem, backoff, score = borrowed((rows, order, planes, problem, backoff, score))
    labels, weights, alpha, min_entropy = problem.labels, problem.weight, problem.alpha, problem.min_entropy
    skip, length, movement, longest = backoff.skip, backoff.length, backoff.movement, backoff.longest
    t, window, upcoming = pace.t, pace.window, pace.margin
    growth = window / (window - 1.0)
    n_planes = problem.n_planes
    if memory is not None:
        for c in range(memory.sums.shape[0]):
            _recount(memory.counts[c * n_planes : (c + 1) * n_planes], memory.sums[c])
    loss, n_updates, amount = 0.0, 0, 1.0
    for visit in range(order.shape[0]):
        i = order[visit]
        prefetch_ahead(rows, order, visit, skip)
        if t < window:
            margin, upcoming = max(alpha * t, TINY), alpha * (t + 1)
        else:
            margin, upcoming = upcoming, upcoming * growth
            amount = upcoming / (alpha * window)
        t += 1
        is_skipped = skip[i] > 0
        if is_skipped:
            skip[i] -= 1
            if not is_checked(t, weights[i], backoff.checks):
                continue
        scores(rows, i, planes, score)
        first = labels[i] * n_planes
        last = first + n_planes
        own, rival = first + _argmax(score[first:last]), _best_rival(score, first, last)
        reached = float(score[own]) - float(score[rival])
        if reached < margin:
            loss += weights[i] * (1.0 - reached / margin)
            n_updates += 1
            if memory is not None:
                kept = borrowed(memory)
                of_class = Memory(kept.recorded, kept.counts[first:last], kept.sums[labels[i]])
                own = first + _assign(score[first:last], i, own - first, of_class, min_entropy)
            add(rows, i, planes, own, weights[i] * amount)
            add(rows, i, planes, rival, -weights[i] * amount)
            if longest > 0:
                note_update(skip, i, is_skipped, 1, weights[i], backoff.checks)
        elif longest > 0 and not is_skipped:
            skip[i] = passes_within(relative_slack(reached / margin - 1.0, length[i] * movement), longest)
    return loss, n_updates, upcoming
