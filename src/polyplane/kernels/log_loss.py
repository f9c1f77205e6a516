"""Training with the log-loss, if only few of many planes matter for a row.

A row updates only its `candidates`, the planes with the highest scores, whose contributions to its probabilities are
not negligible. They are searched among all planes in some passes (`renew`) and reused in the others.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import PART, inlined_part, intrinsic, ir, kernel, njit, part, summing_part, types
from polyplane.kernels.monotone import Order, put_in_order
from polyplane.kernels.rows import borrowed

#: A row does not update planes with a smaller derivative of its loss.
NEGLIGIBLE = 1e-3
#: Lower bound of the probability of the true class, to avoid a division by zero.
LEAST_PROBABILITY = 1e-30
#: In passes that search the candidates, what the old ones missed is measured on every so many rows.
SAMPLED = 16
#: In the search for the highest scores, blocks of this many planes without any of them are skipped.
BLOCK = 64
#: Maximum number of steps of the search for the lowest of them.
SEARCH = 32
#: The search starts at this distance below the highest score of the old candidates, or 16, 256, ... times as far: the
#: lowest one can be that of padding, -1e30.
WIDEST = 64.0


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
    sizes: np.ndarray  # (planes,), if candidates are renewed
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
    order: Order | None,
    renew: bool,
) -> None:
    """Make all steps; `weights`, `candidates` and the probabilities are updated in place."""
    rows, visits, candidates, weights, steps, buffers = borrowed((rows, visits, candidates, weights, steps, buffers))
    gradient, inputs, all_scores, sizes, scores, missed = buffers
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
                    _measure_missed(all_scores[i], rows.y[row], n_planes, own, rows.weight[row], sizes, missed)
                _find_candidates(all_scores[i], rows.y[row], n_planes, own, scores)
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
    all_scores: np.ndarray,
    label: int,
    n_planes: int,
    candidates: np.ndarray,
    weight: float,
    sizes: np.ndarray,
    missed: np.ndarray,
) -> None:
    """Add the derivatives of the loss with respect to scores: those that the candidates leave out, and all.

    With P the probability of the true class, those of its planes sum to 1 - P, and so do those of the other planes.
    """
    total, own, kept, first, last = 0.0, 0.0, 0.0, label * n_planes, (label + 1) * n_planes
    for k in range(len(sizes)):  # an assignment of slices would compile the text of its error, for a second
        sizes[k] = all_scores[k]
    _exponentiate(sizes)
    for k in range(len(sizes)):
        total += sizes[k]
        own += sizes[k] if first <= k < last else 0.0
    to_own = (total - own) / max(own, LEAST_PROBABILITY * total)
    for k in candidates:
        kept += sizes[k] * (to_own if first <= k < last else 1.0)
    missed[0] += weight * (2.0 * (total - own) - kept) / total
    missed[1] += weight * 2.0 * (total - own) / total


@summing_part
def _count(values: np.ndarray, least: float) -> Any:
    """Count the values that are at least `least`, as numbers of their type, so that many are compared at once."""
    n, zero, one = values.dtype.type(0), values.dtype.type(0), values.dtype.type(1)
    for k in range(len(values)):
        n += one if values[k] >= least else zero
    return n


@intrinsic  # type: ignore[untyped-decorator]
def _bits_above(typing_context: Any, values: Any, first: Any, least: Any) -> Any:
    """Compare a block of values with a bound: bit i of the result tells whether ``values[first + i] >= least``.

    Numba vectorises sums over such comparisons, but no search for their positions.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = context.get_value_type(values.dtype)
        start = builder.gep(context.make_array(values)(context, builder, value=args[0]).data, [args[1]])
        block = builder.load(builder.bitcast(start, ir.PointerType(ir.VectorType(number, BLOCK))))
        block.align = values.dtype.bitwidth // 8
        bound = builder.insert_element(ir.Constant(block.type, ir.Undefined), args[2], ir.IntType(32)(0))
        bound = builder.shuffle_vector(bound, bound, ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK))
        return builder.bitcast(builder.fcmp_ordered(">=", block, bound), ir.IntType(BLOCK))

    return types.uint64(values, types.intp, values.dtype), generate


@intrinsic  # type: ignore[untyped-decorator]
def _lowest_bit(typing_context: Any, bits: Any) -> Any:
    """Return the position of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


@part
def _collect(scores: np.ndarray, least: float, below: float, found: np.ndarray, n_found: int) -> int:
    """Append the planes with scores from `least` up to `below` to those found, until there are enough."""
    n_scores, least = len(scores), scores.dtype.type(least)
    for first in range(0, n_scores, BLOCK):
        if first + BLOCK <= n_scores:
            bits = _bits_above(scores, first, least)
            while bits:
                plane = first + np.int64(_lowest_bit(bits))
                if scores[plane] < below and n_found < len(found):
                    found[n_found] = plane
                    n_found += 1
                bits &= bits - np.uint64(1)
        else:
            for k in range(first, n_scores):
                if least <= scores[k] < below and n_found < len(found):
                    found[n_found] = k
                    n_found += 1
    return n_found


@inlined_part
def _find_candidates(
    all_scores: np.ndarray,
    label: int,
    n_planes: int,
    candidates: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Find the n planes with the highest scores, and these.

    The lowest score of the old candidates, n different planes, is a lower bound of the n-th highest score. It is raised
    until n planes are above it; of equal scores at the bound, the first ones are taken. At least one plane of the true
    class, and one of another class, is always among the candidates.
    """
    number, n, low, high = all_scores.dtype.type, len(candidates), all_scores[candidates[0]], all_scores[candidates[0]]
    for k in candidates:
        low, high = min(low, all_scores[k]), max(high, all_scores[k])
    width = number(WIDEST)
    while high - low > width and _count(all_scores, high - width) < n:
        width *= number(16)
    low = max(low, high - width)
    step, is_bounded, n_above = high - low if high > low else number(1), False, _count(all_scores, low)
    for _ in range(SEARCH):
        if n_above == n:
            break
        step *= number(0.5 if is_bounded else 2.0)
        n_higher = _count(all_scores, low + step)
        if n_higher >= n:
            low, n_above = low + step, n_higher
        else:
            is_bounded = True
    if n_above == n:
        _collect(all_scores, low, np.inf, candidates, 0)
    else:
        n_found = _collect(all_scores, low + step, np.inf, candidates, 0)
        _collect(all_scores, low, low + step, candidates, n_found)
    n_own, least = 0, 0
    for c in range(n):
        scores[c] = all_scores[candidates[c]]
        n_own += label * n_planes <= candidates[c] < (label + 1) * n_planes
        least = c if scores[c] < scores[least] else least
    if n_own == 0 or n_own == n:
        candidates[least] = _best(all_scores, label, n_planes, n_own == 0)
        scores[least] = all_scores[candidates[least]]


@part
def _best(all_scores: np.ndarray, label: int, n_planes: int, own: bool) -> int:
    """Return the highest-scoring plane of a class, or of all other classes."""
    best, first, last = -1, label * n_planes, (label + 1) * n_planes
    for k in range(len(all_scores)):
        if (first <= k < last) == own and (best < 0 or all_scores[k] > all_scores[best]):
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


@part
def _exponentiate(scores: np.ndarray) -> None:
    """Replace scores by the exponentials of their differences from the largest: e^x = (e^(x / 128))^128.

    The Taylor series of e^(x / 128) and the seven squarings are computed for several scores at once, unlike a call of
    `exp`; the relative error is at most 1e-6 for x > -87, and smaller x, which would underflow, count as -87.
    """
    number, top = scores.dtype.type, scores[0]
    for c in range(1, len(scores)):
        top = max(top, scores[c])
    for c in range(len(scores)):
        x = scores[c] - top
        x = (x if x > number(-87) else number(-87)) * number(1 / 128)
        value = number(1 / 362880)
        value = value * x + number(1 / 40320)
        value = value * x + number(1 / 5040)
        value = value * x + number(1 / 720)
        value = value * x + number(1 / 120)
        value = value * x + number(1 / 24)
        value = value * x + number(1 / 6)
        value = value * x + number(1 / 2)
        value = value * x + number(1)
        value = value * x + number(1)
        value *= value
        value *= value
        value *= value
        value *= value
        value *= value
        value *= value
        value *= value
        scores[c] = value


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
    _exponentiate(scores)
    total, own, first, last = 0.0, 0.0, label * n_planes, (label + 1) * n_planes
    for c in range(len(candidates)):
        total += scores[c]
        own += scores[c] if first <= candidates[c] < last else 0.0
    probability = own / total if own > LEAST_PROBABILITY * total else LEAST_PROBABILITY
    for c in range(len(candidates)):
        k = candidates[c]
        slope = scores[c] / total
        if first <= k < last:
            slope *= 1 - 1 / probability
        if abs(slope) > NEGLIGIBLE:
            amount, total_of_plane = x.dtype.type(slope * weight), gradient[k]
            for j in range(len(x)):
                total_of_plane[j] += amount * x[j]
    return probability


# A sum of two products can be fused in two ways, and newly compiled code can differ from cached code in this; without
# this option, "fastmath" would be inherited from the caller.
@njit(**{**PART, "fastmath": False})
def _adam(weights: Weights, gradient: np.ndarray, steps: AdamSteps, step: int, order: Order | None) -> None:
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
    if order is not None:  # else this is not compiled
        put_in_order(weights.W.reshape(-1, weights.W.shape[2]), weights.W.shape[1], borrowed(order))
    if steps.n_averaged[step] > 0:
        mean, share = weights.mean.reshape(-1), number(1 / steps.n_averaged[step])
        for i in range(len(W)):
            mean[i] += (W[i] - mean[i]) * share
