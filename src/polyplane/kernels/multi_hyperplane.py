"""Stochastic training of multi-hyperplane machines with the margin loss (Djuric, Wang and Vucetic, 2020).

Each plane is a column of `PlaneSums`; `owner` is its class, or -1 for an unused column.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, prefetch_ahead, scores
from polyplane.kernels.skipping import Checks, is_checked, note_update

#: W is 0 at the first visit: every margin is violated.
TINY = float(np.finfo(np.float32).tiny)


class Targets(NamedTuple):
    """The class and weight of each row."""

    labels: np.ndarray
    weight: np.ndarray


class Clocks(NamedTuple):
    """Back-off: the number of visits of each row still to be skipped, and the data for the next such number."""

    skip: np.ndarray
    reach: np.ndarray  # possible change of the margin of each row in an epoch
    longest: int  # maximum number of visits to skip, 0 for none
    first_visit: int  # number of visits before those of this call
    checks: Checks


class StepSize(NamedTuple):
    """The step size, and its decrease at each visit."""

    length: float
    fall: float


class Growth(NamedTuple):
    """The growth of an adaptive multi-hyperplane machine."""

    alpha: float
    decay: float  # of the probability of duplicating a plane (beta)
    unused: int  # a class with fewer planes than this still has unused zero planes
    most: int  # maximum number of planes of a class for duplication
    draws: np.ndarray  # one uniform random number per visit
    assigned: np.ndarray  # plane of each row, if fixed for a round; empty or -1: the highest-scoring one
    parents: np.ndarray  # output: the plane that a new one was copied from, -1: a zero plane


@kernel
def margin_epoch(
    X: Any,
    order: np.ndarray,
    planes: PlaneSums,
    owner: np.ndarray,
    targets: Targets,
    clocks: Clocks,
    steps: StepSize,
    score: np.ndarray,
) -> float:
    """Plain stochastic gradient descent; return the sum of the losses."""
    X, order, planes, owner, targets, clocks, score = borrowed((X, order, planes, owner, targets, clocks, score))
    labels, weights, skip, reach = targets.labels, targets.weight, clocks.skip, clocks.reach
    loss = 0.0
    for visit in range(order.shape[0]):
        i = order[visit]
        prefetch_ahead(X, order, visit, skip)
        is_skipped = skip[i] > 0
        if is_skipped:
            skip[i] -= 1
            if not is_checked(clocks.first_visit + visit, weights[i], clocks.checks):
                continue
        scores(X, i, planes, score)
        own, rival = -1, -1
        for k in range(score.shape[0]):
            if owner[k] == labels[i]:
                if own < 0 or score[k] > score[own]:
                    own = k
            elif rival < 0 or score[k] > score[rival]:
                rival = k
        reached = float(score[own]) - float(score[rival])
        if reached < 1.0:
            loss += weights[i] * (1.0 - reached)
            step = weights[i] * (steps.length - visit * steps.fall)
            add(X, i, planes, own, step)
            add(X, i, planes, rival, -step)
            note_update(skip, i, is_skipped, 1, weights[i], clocks.checks)
        elif not is_skipped:
            lasts = reached - 1.0 >= clocks.longest * reach[i]
            skip[i] = clocks.longest if lasts else int((reached - 1.0) / reach[i])
    return loss


@part
def _answers(score: np.ndarray, owner: np.ndarray, size: int, best: np.ndarray, where: np.ndarray) -> None:
    """Find the highest-scoring plane of each class and its score; without planes, the score is 0 and the plane -1."""
    for c in range(best.shape[0]):
        best[c], where[c] = 0.0, -1
    for k in range(size):
        c = owner[k]
        if where[c] < 0 or score[k] > best[c]:
            best[c] = score[k]
            where[c] = k


@part
def _rival_of(label: int, best: np.ndarray, where: np.ndarray, counts: np.ndarray, unused: int) -> int:
    """Return the other class with the highest score; a class with unused zero planes has at least the score 0.

    Among several such classes with the score 0, return the one with the highest-scoring plane: with the lowest index,
    one class would get all new planes.
    """
    rival, answer = -1, 0.0
    for c in range(best.shape[0]):
        if c == label:
            continue
        mine = max(best[c], 0.0) if where[c] < 0 or counts[c] < unused else best[c]
        if rival < 0 or mine > answer or (mine == answer and best[c] > best[rival]):
            rival, answer = c, mine
    return rival


@part
def _new_plane(label: int, parent: int, column: int, owner: np.ndarray, counts: np.ndarray, parents: np.ndarray) -> int:
    """Assign an unused column to a class."""
    owner[column], parents[column] = label, parent
    counts[label] += 1
    return column


@part
def _forget(coef: np.ndarray, intercept: np.ndarray, shift: np.ndarray) -> None:
    """Set all planes to zero."""
    for k in range(intercept.shape[0]):
        intercept[k] = shift[k] = 0.0
    for j in range(coef.shape[0]):
        for k in range(coef.shape[1]):
            coef[j, k] = 0.0


@part
def _copy_plane(coef: np.ndarray, intercept: np.ndarray, shift: np.ndarray, old: int, new: int) -> None:
    """Copy a plane to another column. A slice assignment would take 3 s longer to compile, for its error message."""
    for j in range(coef.shape[0]):
        coef[j, new] = coef[j, old]
    intercept[new], shift[new] = intercept[old], shift[old]


@kernel
def adaptive_epoch(
    X: Any,
    order: np.ndarray,
    planes: PlaneSums,
    owner: np.ndarray,
    counts: np.ndarray,
    targets: Targets,
    growth: Growth,
    state: np.ndarray,
) -> tuple[int, float]:
    """MM, AMM and GAMM: visit rows until the end of `order` or of the unused columns; return the visits and the losses.

    `planes` contains ``V = alpha (t - 1) W``, never rescaled: margins are compared with ``alpha (t - 1)`` instead of 1.
    `state` contains the number of planes, the number of visits (t), the probability of duplication (p), and, before the
    first visit of a round, the last ``alpha t`` of the previous round: the first visit compares with the planes of that
    round, and its step resets them, because they are multiplied by ``1 - 1/t = 0``.
    """
    X, order, planes, owner, counts, targets, growth = borrowed((X, order, planes, owner, counts, targets, growth))
    size, t, chance, before = int(state[0]), int(state[1]), state[2], state[3]
    labels, weights, unused = targets.labels, targets.weight, growth.unused
    score = np.empty(owner.shape[0], planes.coef.dtype)
    best, where = np.empty(counts.shape[0]), np.empty(counts.shape[0], np.int64)
    loss, visit = 0.0, 0
    # One visit may add three planes: one of its class, a copy of it, and one of the other class.
    while visit < order.shape[0] and size + 3 <= owner.shape[0]:
        i = order[visit]
        label = labels[i]
        margin = max(growth.alpha * t, before, TINY)
        t += 1
        visit += 1
        scores(X, i, planes, score)
        _answers(score, owner, size, best, where)
        own, own_score = where[label], best[label]
        if growth.assigned.shape[0] > 0 and growth.assigned[i] >= 0:
            own = growth.assigned[i]
            own_score = float(score[own])
        elif own < 0 or (own_score <= 0.0 and counts[label] < unused):
            own, own_score = -1, 0.0
        other = _rival_of(label, best, where, counts, unused)
        rival, rival_score = where[other], best[other]
        if rival < 0 or (rival_score <= 0.0 and counts[other] < unused):
            rival, rival_score = -1, 0.0
        if before > 0.0:
            _forget(planes.coef, planes.intercept, planes.shift)
            before = 0.0
        reached = own_score - rival_score
        if reached < margin:
            loss += weights[i] * (1.0 - reached / margin)
            if own < 0:
                own, size = _new_plane(label, -1, size, owner, counts, growth.parents), size + 1
            # Zero planes are not duplicated: the class still has unused ones.
            if own_score > 0.0 and growth.draws[visit - 1] < chance and counts[label] < growth.most:
                # The copy is the old plane, and only the original is updated: this breaks the tie.
                copy, size = _new_plane(label, own, size, owner, counts, growth.parents), size + 1
                _copy_plane(planes.coef, planes.intercept, planes.shift, own, copy)
                chance *= growth.decay
            if rival < 0:
                rival, size = _new_plane(other, -1, size, owner, counts, growth.parents), size + 1
            add(X, i, planes, own, weights[i])
            add(X, i, planes, rival, -weights[i])
    state[0], state[1], state[2] = size, t, chance
    return visit, loss
