"""Stochastic training of multi-hyperplane machines by the margin loss (Djuric, Wang and Vucetic, 2020).

Each plane is a column of `PlaneSums`; `owner` tells its class, -1 a column that is still free.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels._jit import kernel, part
from polyplane.kernels.rows import PlaneSums, add, borrowed, scores

#: W is 0 at the first visit: every margin is violated.
TINY = float(np.finfo(np.float32).tiny)


class Targets(NamedTuple):
    """What is known of each row."""

    labels: np.ndarray
    weight: np.ndarray


class Clocks(NamedTuple):
    """Back-off: how many visits of each row are still to be passed over, and what the next such number depends on."""

    skip: np.ndarray
    reach: np.ndarray  # by how much an epoch may change the margin of each row
    max_skip: int


class Steps(NamedTuple):
    """A step length, and by how much it falls at each visit."""

    length: float
    fall: float


class Growth(NamedTuple):
    """How an adaptive machine grows."""

    alpha: float
    decay: float  # of the chance to duplicate a plane (beta)
    unused: int  # a class with fewer planes than this has zero planes that were not used yet
    most: int  # planes of a class up to which they are duplicated
    draws: np.ndarray  # one uniform number per visit
    assigned: np.ndarray  # plane of each row, where fixed for a round; empty or -1: the best one
    parents: np.ndarray  # to be written: of which plane a new one is a copy, -1: it began as a zero plane


@kernel
def margin_epoch(
    X: Any,
    order: np.ndarray,
    planes: PlaneSums,
    owner: np.ndarray,
    targets: Targets,
    clocks: Clocks,
    steps: Steps,
    score: np.ndarray,
) -> float:
    """Plain stochastic gradient descent; returns the sum of the losses met."""
    X, order, planes, owner, targets, clocks, score = borrowed((X, order, planes, owner, targets, clocks, score))
    labels, weights, skip, reach = targets.labels, targets.weight, clocks.skip, clocks.reach
    loss = 0.0
    for visit in range(order.shape[0]):
        i = order[visit]
        if skip[i] > 0:
            skip[i] -= 1
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
        elif reached - 1.0 >= clocks.max_skip * reach[i]:
            skip[i] = clocks.max_skip
        else:
            skip[i] = int((reached - 1.0) / reach[i])
    return loss


@part
def _answers(score: np.ndarray, owner: np.ndarray, size: int, best: np.ndarray, where: np.ndarray) -> None:
    """Best plane of each class and its score; a class without planes answers 0 by none (-1)."""
    for c in range(best.shape[0]):
        best[c], where[c] = 0.0, -1
    for k in range(size):
        c = owner[k]
        if where[c] < 0 or score[k] > best[c]:
            best[c] = score[k]
            where[c] = k


@part
def _rival_of(label: int, best: np.ndarray, where: np.ndarray, counts: np.ndarray, unused: int) -> int:
    """The rival class with the best answer; a class that has zero planes left answers at least 0.

    Among several that answer 0 so, the one whose planes come closest: the lowest index would collect all new planes.
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
    """Give a free column to a class."""
    owner[column], parents[column] = label, parent
    counts[label] += 1
    return column


@part
def _forget(coef: np.ndarray, intercept: np.ndarray, shift: np.ndarray) -> None:
    """Let all planes be zero planes."""
    for k in range(intercept.shape[0]):
        intercept[k] = shift[k] = 0.0
    for j in range(coef.shape[0]):
        for k in range(coef.shape[1]):
            coef[j, k] = 0.0


@part
def _copy_plane(coef: np.ndarray, intercept: np.ndarray, shift: np.ndarray, old: int, new: int) -> None:
    """Copy a plane to another column. An assignment of slices would compile the text of its error, for 3 s."""
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
    """MM, AMM and GAMM: visit rows until `order` ends or no column is free; return how many were visited, and losses.

    `planes` holds the sums ``V = alpha (t - 1) W``, never scaled: margins are compared with ``alpha (t - 1)`` in place
    of 1. `state` keeps the number of planes, that of the visits made (t), the chance to duplicate (p), and, before the
    first visit of a round, what ``alpha t`` came to in the round before: the visit compares with the planes of that
    round, and its step, multiplied with ``1 - 1/t = 0``, forgets them.
    """
    X, order, planes, owner, counts, targets, growth = borrowed((X, order, planes, owner, counts, targets, growth))
    size, t, chance, before = int(state[0]), int(state[1]), state[2], state[3]
    labels, weights, unused = targets.labels, targets.weight, growth.unused
    score = np.empty(owner.shape[0], planes.coef.dtype)
    best, where = np.empty(counts.shape[0]), np.empty(counts.shape[0], np.int64)
    loss, visit = 0.0, 0
    # One visit may add three planes: its own, a copy of it, and one of the rival.
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
            # Zero planes are not duplicated: there are more of them already.
            if own_score > 0.0 and growth.draws[visit - 1] < chance and counts[label] < growth.most:
                # The copy keeps the old plane, the original takes the update: the tie is broken at once.
                copy, size = _new_plane(label, own, size, owner, counts, growth.parents), size + 1
                _copy_plane(planes.coef, planes.intercept, planes.shift, own, copy)
                chance *= growth.decay
            if rival < 0:
                rival, size = _new_plane(other, -1, size, owner, counts, growth.parents), size + 1
            add(X, i, planes, own, weights[i])
            add(X, i, planes, rival, -weights[i])
    state[0], state[1], state[2] = size, t, chance
    return visit, loss
