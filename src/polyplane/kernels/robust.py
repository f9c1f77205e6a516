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
    """The changes of a row: a ball of some radius in the norm of order 1 or 2, or if `order` is 0 the box.

    In the box, each column has `n_bins` successive features, which rise one after another from their smallest values.
    """

    radius: float
    order: int
    n_bins: int


class RowBuffers(NamedTuple):
    """Preallocated arrays for one row."""

    rivals: np.ndarray  # the planes of other classes with the highest scores
    leads: np.ndarray  # by how much they can lead
    shares: np.ndarray  # of the planes of the own class
    own: np.ndarray  # the mean of the planes of the own class
    total: np.ndarray  # the derivative of the loss by it, with the opposite sign


@kernel
def add_worst_cases(
    W: np.ndarray,
    n_planes: int,
    batch: ScoredRows,
    ball: Perturbation,
    buffers: RowBuffers,
    gradient: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the gradient of the mean log-loss of the worst cases; `out` are the smallest probabilities of the classes.

    The loss of a row is the logarithm of 1 plus the sum of the exponentials of the largest leads that planes of other
    classes can have over a mean of the planes of its class, weighted by the softmax of their scores; the derivative of
    a lead is the row where it is attained. The weights are considered constant.
    """
    W, batch, buffers, gradient, out = borrowed((W, batch, buffers, gradient, out))
    rivals, leads, shares, own, point_of_own = buffers
    for i in range(len(batch.x)):
        x, half, scores = batch.x[i], batch.half[i], batch.scores[i]
        first = batch.y[i] * n_planes
        _find(scores, first, first + n_planes, rivals, leads)
        _mix(W, scores, first, shares, own)
        top = 0.0
        for c in range(len(rivals)):
            leads[c] = _largest_lead(W[rivals[c]], own, x, half, ball)
            top = max(top, leads[c])
        total = np.exp(-top)
        out[i] = total
        for c in range(len(rivals)):
            leads[c] = np.exp(leads[c] - top)
            total += leads[c]
        out[i] /= total
        point_of_own[:] = 0
        for c in range(len(rivals)):
            share = leads[c] / total
            if share > NEGLIGIBLE:
                amount = x.dtype.type(share * batch.weight[i])
                _add(amount, W[rivals[c]], own, x, half, ball, gradient[rivals[c]], point_of_own)
        for j in range(n_planes):
            if shares[j] > 0:
                _add_multiple(gradient[first + j], -shares[j], point_of_own)


@inlined_part
def _find(scores: np.ndarray, first: int, end: int, rivals: np.ndarray, values: np.ndarray) -> None:
    """Find the planes with the highest scores, except for those of the own class, from `first` to `end`."""
    values[:] = -np.inf
    rivals[:] = 0 if first else end
    for k in range(len(scores)):
        if not first <= k < end and scores[k] > values[-1]:
            at = len(values) - 1
            while at > 0 and values[at - 1] < scores[k]:
                values[at], rivals[at] = values[at - 1], rivals[at - 1]
                at -= 1
            values[at], rivals[at] = scores[k], k


@summing_part
def _mix(W: np.ndarray, scores: np.ndarray, first: int, shares: np.ndarray, own: np.ndarray) -> None:
    """Compute the weights of the planes of the own class, without negligible ones, and their mean."""
    top, total = scores[first], shares[0] * 0
    for j in range(len(shares)):
        top = max(top, scores[first + j])
    for j in range(len(shares)):
        shares[j] = np.exp(scores[first + j] - top)
        shares[j] = shares[j] if shares[j] > NEGLIGIBLE else 0
        total += shares[j]
    own[:] = 0
    for j in range(len(shares)):
        shares[j] /= total
        if shares[j] > 0:
            _add_multiple(own, shares[j], W[first + j])


@summing_part
def _add_multiple(out: np.ndarray, factor: float, row: np.ndarray) -> None:
    """Add a multiple of a row to another one."""
    for j in range(len(out)):
        out[j] += factor * row[j]


@summing_part
def _largest_lead(rival: np.ndarray, own: np.ndarray, x: np.ndarray, half: np.ndarray, ball: Perturbation) -> float:
    """Return the largest lead of a rival over a plane."""
    lead, length = x[0] * 0, x[0] * 0
    if ball.order == 0 and ball.n_bins > 1:
        for first in range(0, len(x) - 1, ball.n_bins):
            rise, most = x[0] * 0, x[0] * 0
            for j in range(first, first + ball.n_bins):
                lead += (rival[j] - own[j]) * (x[j] - half[j])
                rise += 2 * (rival[j] - own[j]) * half[j]
                most = max(most, rise)
            lead += most
        return lead + rival[-1] - own[-1]
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
    total: np.ndarray,
) -> None:
    """Add the derivative of the largest lead of a rival over a plane, the row where it is attained, to both arrays."""
    last = len(x) - 1
    if ball.order == 0 and ball.n_bins > 1:
        for first in range(0, last, ball.n_bins):
            rise, most, end = x[0] * 0, x[0] * 0, first  # the features before `end` have risen
            for j in range(first, first + ball.n_bins):
                rise += (rival[j] - own[j]) * half[j]
                if rise > most:
                    most, end = rise, j + 1
            for j in range(first, first + ball.n_bins):
                point = amount * (x[j] + (half[j] if j < end else -half[j]))
                gradient[j] += point
                total[j] += point
        gradient[last] += amount
        total[last] += amount
        return
    if ball.order == 0:
        for j in range(len(x)):
            point = amount * (x[j] + (half[j] if rival[j] > own[j] else -half[j]))
            gradient[j] += point
            total[j] += point
        return
    for j in range(len(x)):
        gradient[j] += amount * x[j]
        total[j] += amount * x[j]
    if ball.order == 2:
        length = x[0] * 0
        for j in range(last):
            length += (rival[j] - own[j]) ** 2
        if length > 0:
            step = x.dtype.type(amount * ball.radius / np.sqrt(length))
            for j in range(last):
                gradient[j] += step * (rival[j] - own[j])
                total[j] += step * (rival[j] - own[j])
        return
    largest = 0
    for j in range(last):
        largest = j if abs(rival[j] - own[j]) > abs(rival[largest] - own[largest]) else largest
    step = x.dtype.type(amount * ball.radius * np.sign(rival[largest] - own[largest]))
    gradient[largest] += step
    total[largest] += step
