"""Training by the log-loss, where of many planes only a few are in contention for a row.

A row teaches the planes whose share in its probabilities is not negligible: its `contenders`, the planes with the best
scores. They are found among all planes in some passes (`renew`), and taken from memory in the others.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from polyplane.kernels._jit import PART, inlined_part, kernel, part, summing_part
from polyplane.kernels.rows import borrowed

#: A plane whose part in the derivative of a row's loss is smaller than this is not moved by the row.
NEGLIGIBLE = 1e-3
#: The least probability of a row's own class that is told from 0.
LEAST = 1e-30
#: Planes of which the largest score is found first, when the best are sought.
BLOCK = 16


class Rows(NamedTuple):
    """All rows as they come, how they are seen, ``factor * (x - centre)``, and numbers to add to them, if any."""

    X: np.ndarray
    centre: np.ndarray
    factor: float
    y: np.ndarray
    weight: np.ndarray
    noise: np.ndarray


class Visits(NamedTuple):
    """Which rows are visited, in their order, and what is noted of each visit."""

    rows: np.ndarray
    noise_starts: np.ndarray  # from where on in the noise a row gets its own
    probability: np.ndarray  # of the own class, before the row was learned from


class Machine(NamedTuple):
    """The planes, class by class, what Adam remembers of each of their weights, and their average."""

    W: np.ndarray  # (n_classes, n_planes, n_features + 1)
    first: np.ndarray
    second: np.ndarray
    mean: np.ndarray
    anchor: np.ndarray  # what planes are drawn back to


class Steps(NamedTuple):
    """The numbers of each step, and those that all have in common."""

    rate: np.ndarray
    shrink: np.ndarray  # towards the anchor; 0: not at all
    n_averaged: np.ndarray  # states in the average; 0: the step does not go into it
    size: int  # rows of a step
    decay: tuple[float, float]
    epsilon: float


class Room(NamedTuple):
    """Room for what a step computes; to allocate it in the kernel would be longer to compile."""

    gradient: np.ndarray  # (planes, features + 1), 0 between steps
    inputs: np.ndarray  # (rows of a step, features + 1)
    all_scores: np.ndarray  # (rows of a step, planes), if contenders are found anew
    largest: np.ndarray  # of blocks of planes
    scores: np.ndarray  # of the contenders


@kernel
def train(
    rows: Rows, visits: Visits, contenders: np.ndarray, machine: Machine, steps: Steps, room: Room, renew: bool
) -> None:
    """Make all steps; `machine`, `contenders` and the probabilities are written into."""
    rows, visits, contenders, machine, steps, room = borrowed((rows, visits, contenders, machine, steps, room))
    gradient, inputs, all_scores, largest, scores = room
    n_planes, W = machine.W.shape[1], machine.W.reshape(-1, machine.W.shape[2])
    for step in range(len(steps.rate)):
        first = step * steps.size
        n_rows = steps.size if len(visits.rows) - first > steps.size else len(visits.rows) - first
        last = first + n_rows
        _gather(rows, visits.rows[first:last], visits.noise_starts[first:last], inputs)
        if renew:
            np.dot(inputs[:n_rows], W.T, all_scores[:n_rows])
        for i in range(n_rows):
            row = visits.rows[first + i]
            own, x = contenders[row], inputs[i]
            if renew:
                _find_contenders(all_scores[i], rows.y[row], n_planes, own, scores, largest)
            else:
                _score(x, W, own, scores)
            weight = rows.weight[row] / n_rows
            visits.probability[first + i] = _learn(x, own, rows.y[row], n_planes, weight, scores, gradient)
        _adam(machine, gradient, steps, step)


@inlined_part
def _gather(rows: Rows, chosen: np.ndarray, starts: np.ndarray, inputs: np.ndarray) -> None:
    """Scaled rows with their noise, ending in a 1."""
    n_features = rows.X.shape[1]
    factor = inputs.dtype.type(rows.factor)
    for i in range(len(chosen)):
        x, z = rows.X[chosen[i]], inputs[i]
        for j in range(n_features):
            z[j] = (x[j] - rows.centre[j]) * factor
        if len(rows.noise):
            noise = rows.noise[starts[i] : starts[i] + n_features]
            for j in range(n_features):
                z[j] += noise[j]
        z[n_features] = 1


@njit(**{**PART, "fastmath": True})
def _largest(values: np.ndarray, start: int) -> Any:
    """The largest of a block, whose length is known when this is compiled."""
    largest = values[start]
    for i in range(1, BLOCK):
        largest = values[start + i] if values[start + i] > largest else largest
    return largest


@part
def _insert(value: float, number: int, values: np.ndarray, numbers: np.ndarray) -> None:
    """Let a value take its place among the largest, which stand in falling order; the last one gives way."""
    at = len(values) - 1
    while at > 0 and values[at - 1] < value:
        values[at], numbers[at] = values[at - 1], numbers[at - 1]
        at -= 1
    values[at], numbers[at] = value, number


@inlined_part
def _find_contenders(
    all_scores: np.ndarray,
    label: int,
    n_planes: int,
    contenders: np.ndarray,
    scores: np.ndarray,
    largest: np.ndarray,
) -> None:
    """The planes with the best scores, best first, and their scores.

    Of the largest scores of all blocks the n-th is a bound for the n-th best score: blocks below it are not looked at.
    One plane of the row's class is always among the contenders, and one of another class.
    """
    n, n_blocks = len(contenders), len(all_scores) // BLOCK
    scores[:] = -np.inf
    for b in range(n_blocks):
        largest[b] = _largest(all_scores, b * BLOCK)
        if largest[b] > scores[n - 1]:
            _insert(largest[b], 0, scores, contenders)
    needed = scores[n - 1]
    scores[:] = -np.inf
    for b in range(n_blocks + 1):
        if b == n_blocks or largest[b] >= needed:
            for k in range(b * BLOCK, min((b + 1) * BLOCK, len(all_scores))):
                if all_scores[k] >= needed and all_scores[k] > scores[n - 1]:
                    _insert(all_scores[k], k, scores, contenders)
    n_own = 0
    for j in range(n):
        n_own += contenders[j] // n_planes == label
    if n_own == 0 or n_own == n:
        contenders[n - 1] = _best(all_scores, label, n_planes, n_own == 0)
        scores[n - 1] = all_scores[contenders[n - 1]]


@part
def _best(all_scores: np.ndarray, label: int, n_planes: int, own: bool) -> int:
    """The best plane of a class, or of all others."""
    best = -1
    for k in range(len(all_scores)):
        if (k // n_planes == label) == own and (best < 0 or all_scores[k] > all_scores[best]):
            best = k
    return best


@summing_part
def _score(x: np.ndarray, W: np.ndarray, contenders: np.ndarray, scores: np.ndarray) -> None:
    """The scores of the contenders, two at a time: a row is read half as often."""
    n = len(contenders)
    for c in range(0, n - 1, 2):
        v, w = W[contenders[c]], W[contenders[c + 1]]
        a, b = x[0] * v[0], x[0] * w[0]
        for j in range(1, len(x)):
            a += x[j] * v[j]
            b += x[j] * w[j]
        scores[c], scores[c + 1] = a, b
    if n % 2:
        w = W[contenders[n - 1]]
        a = x[0] * w[0]
        for j in range(1, len(x)):
            a += x[j] * w[j]
        scores[n - 1] = a


@inlined_part
def _learn(
    x: np.ndarray,
    contenders: np.ndarray,
    label: int,
    n_planes: int,
    weight: float,
    scores: np.ndarray,
    gradient: np.ndarray,
) -> float:
    """Add what a row has to say to the gradient; return the probability of its class.

    With p the softmax over the contenders and P its sum over those of the row's class, the derivative of -log P by a
    score is p for planes of other classes and p (1 - 1 / P) for those of its own.
    """
    top = scores[0]
    for c in range(1, len(contenders)):
        top = scores[c] if scores[c] > top else top
    total, own = 0.0, 0.0
    for c in range(len(contenders)):
        scores[c] = np.exp(scores[c] - top)
        total += scores[c]
        if contenders[c] // n_planes == label:
            own += scores[c]
    probability = own / total if own > LEAST * total else LEAST
    for c in range(len(contenders)):
        k = contenders[c]
        slope = scores[c] / total
        if k // n_planes == label:
            slope *= 1 - 1 / probability
        if abs(slope) > NEGLIGIBLE:
            amount, total_of_plane = x.dtype.type(slope * weight), gradient[k]
            for j in range(len(x)):
                total_of_plane[j] += amount * x[j]
    return probability


# Sums of two products could be fused in two ways, and freshly compiled code and that of the cache do not agree on one;
# without this "fastmath" would be what the caller has.
@njit(**{**PART, "fastmath": False})
def _adam(machine: Machine, gradient: np.ndarray, steps: Steps, step: int) -> None:
    """Move the planes down the gradient, which is 0 afterwards, and let them join the average."""
    W, first, second = machine.W.reshape(-1), machine.first.reshape(-1), machine.second.reshape(-1)
    slope, number = gradient.reshape(-1), W.dtype.type
    b1, b2 = number(steps.decay[0]), number(steps.decay[1])
    a1, a2 = number(1 - steps.decay[0]), number(1 - steps.decay[1])
    rate, epsilon, shrink = number(steps.rate[step]), number(steps.epsilon), number(steps.shrink[step])
    if shrink > 0:
        anchor = machine.anchor.reshape(-1)
        for i in range(len(W)):
            W[i] -= shrink * (W[i] - anchor[i])
    for i in range(len(W)):
        first[i] = b1 * first[i] + a1 * slope[i]
        second[i] = b2 * second[i] + a2 * slope[i] * slope[i]
        W[i] -= rate * first[i] / (np.sqrt(second[i]) + epsilon)
        slope[i] = 0
    if steps.n_averaged[step] > 0:
        mean, share = machine.mean.reshape(-1), number(1 / steps.n_averaged[step])
        for i in range(len(W)):
            mean[i] += (W[i] - mean[i]) * share
