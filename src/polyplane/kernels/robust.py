"""Training for the worst case within a ball or a box around each row."""

from typing import NamedTuple

import numpy as np

from polyplane.kernels.jit import inlined_part, kernel, summing_part
from polyplane.kernels.rows import borrowed

#: A row does not update planes with a smaller derivative of its loss.
NEGLIGIBLE = 1e-4


class ScoredRows(NamedTuple):
    """Rows that end in a 1, their classes and weights, and the scores of all planes."""

    x: np.ndarray
    half: np.ndarray  # half of the width of the box around each row, which ends in a 0; used if `order` is 0
    y: np.ndarray
    weight: np.ndarray
    scores: np.ndarray


class Perturbation(NamedTuple):
    """The changes of a row: a ball of some radius in the norm of order 1 or 2, or if `order` is 0 the box."""

    radius: float
    order: int


class Rivals(NamedTuple):
    """Preallocated arrays: the planes of other classes with the highest scores, and by how much these can lead."""

    rivals: np.ndarray
    leads: np.ndarray


@kernel
def add_worst_cases(
    W: np.ndarray,
    n_planes: int,
    batch: ScoredRows,
    ball: Perturbation,
    buffers: Rivals,
    gradient: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the gradient of the mean log-loss of the worst cases; `out` are the smallest probabilities of the classes.

    The loss of a row is the logarithm of 1 plus the sum of the exponentials of the largest leads that planes of other
    classes can have over the best plane of its class; the derivative of a lead is the row where it is attained.
    """
    W, batch, buffers, gradient, out = borrowed((W, batch, buffers, gradient, out))
    rivals, leads = buffers
    for i in range(len(batch.x)):
        x, half, scores = batch.x[i], batch.half[i], batch.scores[i]
        own = _find(scores, batch.y[i], n_planes, rivals, leads)
        top = 0.0
        for c in range(len(rivals)):
            leads[c] = _largest_lead(W[rivals[c]], W[own], x, half, ball)
            top = max(top, leads[c])
        total = np.exp(-top)
        out[i] = total
        for c in range(len(rivals)):
            leads[c] = np.exp(leads[c] - top)
            total += leads[c]
        out[i] /= total
        for c in range(len(rivals)):
            share = leads[c] / total
            if share > NEGLIGIBLE:
                amount = x.dtype.type(share * batch.weight[i])
                _add(amount, W[rivals[c]], W[own], x, half, ball, gradient[rivals[c]], gradient[own])


@inlined_part
def _find(scores: np.ndarray, label: int, n_planes: int, rivals: np.ndarray, values: np.ndarray) -> int:
    """Find the planes of other classes with the highest scores; return the best plane of the own class."""
    values[:] = -np.inf
    rivals[:] = 0 if label else n_planes
    own = label * n_planes
    for k in range(len(scores)):
        if label * n_planes <= k < (label + 1) * n_planes:
            own = k if scores[k] > scores[own] else own
        elif scores[k] > values[-1]:
            at = len(values) - 1
            while at > 0 and values[at - 1] < scores[k]:
                values[at], rivals[at] = values[at - 1], rivals[at - 1]
                at -= 1
            values[at], rivals[at] = scores[k], k
    return own


@summing_part
def _largest_lead(rival: np.ndarray, own: np.ndarray, x: np.ndarray, half: np.ndarray, ball: Perturbation) -> float:
    """Return the largest lead of a rival over a plane."""
    lead, length = x[0] * 0, x[0] * 0
    if ball.order == 0:
        for j in range(len(x)):
            lead += (rival[j] - own[j]) * x[j] + abs(rival[j] - own[j]) * half[j]
        return lead
    for j in range(len(x)):
        lead += (rival[j] - own[j]) * x[j]
    if ball.order == 2:
        for j in range(len(x) - 1):
            length += (rival[j] - own[j]) ** 2
        return lead + ball.radius * np.sqrt(length)
    for j in range(len(x) - 1):
        length = max(length, abs(rival[j] - own[j]))
    return lead + ball.radius * length


@summing_part
def _add(
    amount: float,
    rival: np.ndarray,
    own: np.ndarray,
    x: np.ndarray,
    half: np.ndarray,
    ball: Perturbation,
    gradient: np.ndarray,
    own_gradient: np.ndarray,
) -> None:
    """Add the derivative of the largest lead of a rival over a plane: the row where it is attained."""
    last = len(x) - 1
    if ball.order == 0:
        for j in range(len(x)):
            point = amount * (x[j] + (half[j] if rival[j] > own[j] else -half[j]))
            gradient[j] += point
            own_gradient[j] -= point
        return
    for j in range(len(x)):
        gradient[j] += amount * x[j]
        own_gradient[j] -= amount * x[j]
    if ball.order == 2:
        length = x[0] * 0
        for j in range(last):
            length += (rival[j] - own[j]) ** 2
        if length > 0:
            step = x.dtype.type(amount * ball.radius / np.sqrt(length))
            for j in range(last):
                gradient[j] += step * (rival[j] - own[j])
                own_gradient[j] -= step * (rival[j] - own[j])
        return
    largest = 0
    for j in range(last):
        largest = j if abs(rival[j] - own[j]) > abs(rival[largest] - own[largest]) else largest
    step = x.dtype.type(amount * ball.radius * np.sign(rival[largest] - own[largest]))
    gradient[largest] += step
    own_gradient[largest] -= step
