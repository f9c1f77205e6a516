"""Training with the log-loss, if only few of many planes matter for a row.

A row updates only its `candidates`, the planes with the highest scores, whose contributions to its probabilities are
not negligible. They are searched among all planes in some passes (`renew`) and reused in the others.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import PART, inlined_part, kernel, njit, part, summing_part
from polyplane.kernels.monotone import Order, put_in_order
from polyplane.kernels.rows import borrowed

#: A row does not update planes with a smaller derivative of its loss.
NEGLIGIBLE = 1e-3
#: Lower bound of the probability of the true class, to avoid a division by zero.
LEAST_PROBABILITY = 1e-30
#: In passes that search the candidates, what the old ones missed is measured on every so many rows.
SAMPLED = 16
#: Block size in the search for the highest scores: the maximum of each block is computed first.
BLOCK = 16


class InputRows(NamedTuple):
    """All rows, their scaling ``factor * (x - centre)``, and input noise, if any."""

    X: np.ndarray
    centre: np.ndarray
    factor: float
    y: np.ndarray
    weight: np.ndarray
    noise: np.ndarray


class Visits(NamedTuple):
    """The visited rows, in their order, and the results of each visit."""

    rows: np.ndarray
    noise_starts: np.ndarray  # position of the noise of each row
    probability: np.ndarray  # of the true class, before the update


class Weights(NamedTuple):
    """The planes, ordered by class, the moments of Adam for each weight, and the averaged planes."""

    W: np.ndarray  # (n_classes, n_planes, n_features + 1)
    first: np.ndarray
    second: np.ndarray
    mean: np.ndarray
    anchor: np.ndarray  # the planes towards which the weights are regularised


class AdamSteps(NamedTuple):
    """The parameters of each step, and the common ones."""

    rate: np.ndarray
    shrink: np.ndarray  # towards the anchor; 0: not at all
    n_averaged: np.ndarray  # number of averaged steps; 0: the step is not included in the average
    size: int  # rows of a step
    decay: tuple[float, float]
    epsilon: float


class Buffers(NamedTuple):
    """Preallocated arrays for a step; allocation in the kernel would take longer to compile."""

    gradient: np.ndarray  # (planes, features + 1), 0 between steps
    inputs: np.ndarray  # (rows of a step, features + 1)
    all_scores: np.ndarray  # (rows of a step, planes), if candidates are renewed
    largest: np.ndarray  # of blocks of planes
    scores: np.ndarray  # of the candidates
    missed: np.ndarray  # output: the updates of planes that were not candidates, and all updates, of a sample of rows


@kernel
def train(
    rows: InputRows,
    visits: Visits,
    candidates: np.ndarray,
    weights: Weights,
    steps: AdamSteps,
    buffers: Buffers,
    order: Order,
    renew: bool,
) -> None:
    """Make all steps; `weights`, `candidates` and the probabilities are updated in place."""
    rows, visits, candidates, weights, steps, buffers = borrowed((rows, visits, candidates, weights, steps, buffers))
    order = borrowed(order)
    gradient, inputs, all_scores, largest, scores, missed = buffers
    n_planes, W = weights.W.shape[1], weights.W.reshape(-1, weights.W.shape[2])
    for step in range(len(steps.rate)):
        first = step * steps.size
        n_rows = steps.size if len(visits.rows) - first > steps.size else len(visits.rows) - first
        last = first + n_rows
        _gather(rows, visits.rows[first:last], visits.noise_starts[first:last], inputs)
        if renew:
            np.dot(inputs[:n_rows], W.T, all_scores[:n_rows])
        for i in range(n_rows):
            row = visits.rows[first + i]
            own, x = candidates[row], inputs[i]
            if renew:
                if (first + i) % SAMPLED == 0:
                    _measure_missed(all_scores[i], rows.y[row], n_planes, own, rows.weight[row], missed)
                _find_candidates(all_scores[i], rows.y[row], n_planes, own, scores, largest)
            else:
                _score(x, W, own, scores)
            weight = rows.weight[row] / n_rows
            visits.probability[first + i] = _learn(x, own, rows.y[row], n_planes, weight, scores, gradient)
        _adam(weights, gradient, steps, step, order)


@inlined_part
def _gather(rows: InputRows, chosen: np.ndarray, starts: np.ndarray, inputs: np.ndarray) -> None:
    """Compute scaled rows with noise; the last column is 1."""
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


@part
def _measure_missed(
    all_scores: np.ndarray, label: int, n_planes: int, candidates: np.ndarray, weight: float, missed: np.ndarray
) -> None:
    """Add the derivatives of the loss with respect to scores: those that the candidates leave out, and all.

    With P the probability of the true class, those of its planes sum to 1 - P, and so do those of the other planes.
    """
    top, total, own = all_scores.max(), 0.0, 0.0
    for k in range(len(all_scores)):
        size = np.exp(all_scores[k] - top)
        total += size
        if k // n_planes == label:
            own += size
    kept, to_own = 0.0, (total - own) / max(own, LEAST_PROBABILITY * total)
    for k in candidates:
        kept += np.exp(all_scores[k] - top) * (to_own if k // n_planes == label else 1.0)
    missed[0] += weight * (2.0 * (total - own) - kept) / total
    missed[1] += weight * 2.0 * (total - own) / total


@njit(**{**PART, "fastmath": True})
def _largest(values: np.ndarray, start: int) -> Any:
    """Return the maximum of a block, whose length is a compile-time constant."""
    largest = values[start]
    for i in range(1, BLOCK):
        largest = values[start + i] if values[start + i] > largest else largest
    return largest


@part
def _insert(value: float, number: int, values: np.ndarray, numbers: np.ndarray) -> None:
    """Insert a value into the list of the largest values, in decreasing order; the last one is dropped."""
    at = len(values) - 1
    while at > 0 and values[at - 1] < value:
        values[at], numbers[at] = values[at - 1], numbers[at - 1]
        at -= 1
    values[at], numbers[at] = value, number


@inlined_part
def _find_candidates(
    all_scores: np.ndarray,
    label: int,
    n_planes: int,
    candidates: np.ndarray,
    scores: np.ndarray,
    largest: np.ndarray,
) -> None:
    """Find the planes with the highest scores, in decreasing order, and their scores.

    The n-th largest block maximum is a lower bound of the n-th highest score: blocks below it are skipped. At least one
    plane of the true class, and one of another class, is always among the candidates.
    """
    n, n_blocks = len(candidates), len(all_scores) // BLOCK
    scores[:] = -np.inf
    for b in range(n_blocks):
        largest[b] = _largest(all_scores, b * BLOCK)
        if largest[b] > scores[n - 1]:
            _insert(largest[b], 0, scores, candidates)
    needed = scores[n - 1]
    scores[:] = -np.inf
    for b in range(n_blocks + 1):
        if b == n_blocks or largest[b] >= needed:
            for k in range(b * BLOCK, min((b + 1) * BLOCK, len(all_scores))):
                if all_scores[k] >= needed and all_scores[k] > scores[n - 1]:
                    _insert(all_scores[k], k, scores, candidates)
    n_own = 0
    for j in range(n):
        n_own += candidates[j] // n_planes == label
    if n_own == 0 or n_own == n:
        candidates[n - 1] = _best(all_scores, label, n_planes, n_own == 0)
        scores[n - 1] = all_scores[candidates[n - 1]]


@part
def _best(all_scores: np.ndarray, label: int, n_planes: int, own: bool) -> int:
    """Return the highest-scoring plane of a class, or of all other classes."""
    best = -1
    for k in range(len(all_scores)):
        if (k // n_planes == label) == own and (best < 0 or all_scores[k] > all_scores[best]):
            best = k
    return best


@summing_part
def _score(x: np.ndarray, W: np.ndarray, candidates: np.ndarray, scores: np.ndarray) -> None:
    """Compute the scores of the candidates, two at a time: the row is read half as often."""
    n = len(candidates)
    for c in range(0, n - 1, 2):
        v, w = W[candidates[c]], W[candidates[c + 1]]
        a, b = x[0] * v[0], x[0] * w[0]
        for j in range(1, len(x)):
            a += x[j] * v[j]
            b += x[j] * w[j]
        scores[c], scores[c + 1] = a, b
    if n % 2:
        w = W[candidates[n - 1]]
        a = x[0] * w[0]
        for j in range(1, len(x)):
            a += x[j] * w[j]
        scores[n - 1] = a


@inlined_part
def _learn(
    x: np.ndarray,
    candidates: np.ndarray,
    label: int,
    n_planes: int,
    weight: float,
    scores: np.ndarray,
    gradient: np.ndarray,
) -> float:
    """Add the gradient of a row; return the probability of its class.

    With p the softmax over the candidates and P its sum over those of the true class, the derivative of -log P with
    respect to a score is p for planes of other classes and p (1 - 1 / P) for those of the true class.
    """
    top = scores[0]
    for c in range(1, len(candidates)):
        top = scores[c] if scores[c] > top else top
    total, own = 0.0, 0.0
    for c in range(len(candidates)):
        scores[c] = np.exp(scores[c] - top)
        total += scores[c]
        if candidates[c] // n_planes == label:
            own += scores[c]
    probability = own / total if own > LEAST_PROBABILITY * total else LEAST_PROBABILITY
    for c in range(len(candidates)):
        k = candidates[c]
        slope = scores[c] / total
        if k // n_planes == label:
            slope *= 1 - 1 / probability
        if abs(slope) > NEGLIGIBLE:
            amount, total_of_plane = x.dtype.type(slope * weight), gradient[k]
            for j in range(len(x)):
                total_of_plane[j] += amount * x[j]
    return probability


# A sum of two products can be fused in two ways, and newly compiled code can differ from cached code in this; without
# this option, "fastmath" would be inherited from the caller.
@njit(**{**PART, "fastmath": False})
def _adam(weights: Weights, gradient: np.ndarray, steps: AdamSteps, step: int, order: Order) -> None:
    """Take a step of Adam, reset the gradient to 0, put the weights in order, and update the averaged planes."""
    W, first, second = weights.W.reshape(-1), weights.first.reshape(-1), weights.second.reshape(-1)
    slope, number = gradient.reshape(-1), W.dtype.type
    b1, b2 = number(steps.decay[0]), number(steps.decay[1])
    a1, a2 = number(1 - steps.decay[0]), number(1 - steps.decay[1])
    rate, epsilon, shrink = number(steps.rate[step]), number(steps.epsilon), number(steps.shrink[step])
    if shrink > 0:
        anchor = weights.anchor.reshape(-1)
        for i in range(len(W)):
            W[i] -= shrink * (W[i] - anchor[i])
    for i in range(len(W)):
        first[i] = b1 * first[i] + a1 * slope[i]
        second[i] = b2 * second[i] + a2 * slope[i] * slope[i]
        W[i] -= rate * first[i] / (np.sqrt(second[i]) + epsilon)
        slope[i] = 0
    put_in_order(weights.W.reshape(-1, weights.W.shape[2]), weights.W.shape[1], order)
    if steps.n_averaged[step] > 0:
        mean, share = weights.mean.reshape(-1), number(1 / steps.n_averaged[step])
        for i in range(len(W)):
            mean[i] += (W[i] - mean[i]) * share
