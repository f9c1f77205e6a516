"""The log-loss of a multi-hyperplane model: its gradient, passes over the rows by Adam, and L-BFGS if it is convex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import (
    astype,
    at_least,
    device_of,
    is_foreign,
    is_on_cuda,
    is_torch,
    like,
    namespace,
    softmax,
    take_rows,
    to_numpy,
)
from polyplane.engine.data import AffineScaling, Data, ScaledRows
from polyplane.engine.state import Array, MixedWhole, State
from polyplane.learners.tangents import EpochSampler, update_mean

#: Recording a graph costs as much as a few steps.
WORTH_RECORDING = 16


def run_steps(
    step: Callable[..., Any],
    batches: Sequence[Any],
    paces: Sequence[tuple[float, ...]],
    out: Any,
    recorded: dict[Any, Any] | None = None,
) -> None:
    """Call ``out[i] = step(*(batch[i] for batch in batches), *paces[i])`` for one `i` after the other.

    Parameters
    ----------
    step : callable
        Updates arrays in place and returns an array, without synchronising with the host.
    batches : sequence of arrays
        The inputs of the steps; first axis: steps.
    paces : sequence of tuples of float
        Further arguments of each step. A recorded step gets them as zero-dimensional arrays.
    out : array
        The results of the steps; first axis: steps.
    recorded : dict or None, default=None
        Empty at first. It keeps the recorded step for later calls, whose step must use the same arrays.
    """
    if is_on_cuda(out) and len(paces) and (recorded is not None or len(paces) >= WORTH_RECORDING):
        _run_recorded(step, batches, paces, out, {} if recorded is None else recorded)
        return
    for i, pace in enumerate(paces):
        out[i, ...] = step(*(batch[i, ...] for batch in batches), *pace)


class _Recorded(NamedTuple):
    """A recorded step, and the arrays that it reads and writes."""

    graph: Any
    stream: Any
    arrays: list[Any]  # batches, paces and results
    at: Any  # the number of the next step, on the device


def _run_recorded(
    step: Callable[..., Any],
    batches: Sequence[Any],
    paces: Sequence[tuple[float, ...]],
    out: Any,
    recorded: dict[Any, Any],
) -> None:
    import torch

    numbers, n_steps = torch.tensor(paces, dtype=out.dtype, device=out.device), len(paces)
    arrays = [*batches, numbers, out]
    kind = tuple(array.shape[1:] for array in arrays)
    known = recorded.get(kind)
    if known is not None and len(known.arrays[-1]) >= n_steps:
        current = torch.cuda.current_stream(out.device)
        for own, new in zip(known.arrays[:-1], arrays[:-1], strict=True):
            own[:n_steps].copy_(new)
        known.at.zero_()
        known.stream.wait_stream(current)
        first = 0
    else:
        own = [array.clone() for array in arrays]
        at = torch.zeros(1, dtype=torch.int64, device=out.device)

        def numbered_step() -> None:
            # The recorded step is the same each time: its number is stored on the device.
            inputs = [array.index_select(0, at)[0] for array in own[:-2]]
            own[-1].index_copy_(0, at, step(*inputs, *own[-2].index_select(0, at)[0].unbind())[None])
            at.add_(1)

        stream = torch.cuda.Stream(out.device)
        stream.wait_stream(torch.cuda.current_stream(out.device))
        with torch.cuda.stream(stream):
            numbered_step()  # not recorded: libraries are initialised on the first call
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                numbered_step()
        recorded[kind] = known = _Recorded(graph, stream, own, at)
        first = 1
    try:
        with torch.cuda.stream(known.stream):
            for _ in range(first, n_steps):
                known.graph.replay()
    finally:
        # The arrays may be used or released next, so all steps must have finished, even after an interrupt.
        known.stream.synchronize()
    out.copy_(known.arrays[-1][:n_steps])


#: Lower bound of the probability of a row's class; rows below it no longer change the planes of their class.
LEAST_PROBABILITY = 1e-30
#: Adam's decay rates of the gradient and of its square.
DECAY = (0.9, 0.99)
#: Adam's epsilon for one feature, large enough that planes without a gradient do not move by rounding errors.
EPSILON = 1e-4
#: Rows per step for which these constants and the step size are chosen.
USUAL_BATCH = 256

#: Largest number of values of rows on a device of which training keeps a scaled copy.
MOST_COPIED = 1 << 26

#: Arrays of the shape of the planes.
_BY_WEIGHT = Array("f", "classes", "planes", "features+1", mixed=True)


@dataclass(frozen=True, eq=False)
class Adam(State):
    """The moments of the gradient, and the number of steps made."""

    first: Annotated[Any, _BY_WEIGHT]
    second: Annotated[Any, _BY_WEIGHT]
    t: MixedWhole = 0

    def step(self, W: Any, gradient: Any, decay: tuple[float, float], rate: Any, epsilon: float) -> None:
        """Update the weights and the moments in place; `gradient` is overwritten.

        `rate` already includes the bias correction of the moments.
        """
        xp = namespace(W)
        b1, b2 = decay
        first, second = self.first, self.second
        if is_torch(W):  # in half as many kernels, whose launches take longer than the sums
            first.lerp_(gradient, 1 - b1)
            second.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
            W.addcdiv_(first * rate, second.sqrt().add_(epsilon), value=-1)
            return
        first *= b1
        first += (1 - b1) * gradient
        gradient *= gradient
        gradient *= 1 - b2
        second *= b2
        second += gradient
        move = xp.sqrt(second)
        move += epsilon
        move = first / move
        move *= -rate
        W += move


@cache
def stretch(size: int) -> float:
    """Factor of the step size for batches of `size` rows: gradient noise decreases with the root of the batch size."""
    return max(1.0, size / USUAL_BATCH) ** 0.5


@cache
def decay(size: int) -> tuple[float, float]:
    """Adam's decay rates for batches of `size` rows.

    ``DECAY ** (size / USUAL_BATCH)`` would average over the same number of rows, and `DECAY` over the same number of
    steps. Halfway between is best, or nearly so, for batches of 1,024 to 16,384 rows on each of five data sets.
    """
    return DECAY[0] ** stretch(size), DECAY[1] ** stretch(size)


def add_to_mean(mean: Any, new: Any, share: Any) -> None:
    """Update a mean in place with an array that makes up a share of it."""
    if is_torch(mean):
        mean.lerp_(new, share)
    else:
        mean += (new - mean) * share


class StepSettings(NamedTuple):
    """The settings of a step."""

    rate: float  # step size of Adam
    shrink: float  # fraction by which planes shrink towards the anchor
    n_averaged: float  # states in the average, including this one


@dataclass
class Pass:
    """The data and arrays of a pass over the rows, on the device of the rows; `W`, `adam` and `mean` are updated."""

    X: Any
    y: Any
    weight: Any
    scaling: AffineScaling
    W: Any
    adam: Adam
    mean: Any
    anchor: Any  # planes that the weights shrink to; None: no shrinking
    decay: tuple[float, float]
    noise: Any = None  # rows of noise
    ranks: Any = None  # the order of the classes by the weights of each feature

    @property
    def epsilon(self) -> float:
        """Adam's epsilon."""
        return EPSILON / (self.W.shape[2] - 1) ** 0.5  # type: ignore[no-any-return]


@dataclass
class AdamPass(Pass):
    """One pass over the rows by matrix products with all planes, in any array library."""

    def __post_init__(self) -> None:
        self._classes = like(np.arange(self.W.shape[0]), self.W)
        self._recorded: tuple[dict[Any, Any], ...] = ({}, {})
        self._inputs: Any = None  # a scaled copy of the rows, each with a 1 at its end: fewer kernels in each step
        if is_foreign(self.X) and self.X.shape[0] * self.X.shape[1] <= MOST_COPIED:
            scaled = self.scaling.take(self.X, np.arange(self.X.shape[0]))
            self._inputs = namespace(scaled).concat([scaled, namespace(scaled).ones_like(scaled[:, :1])], axis=1)

    def run(self, inputs: Sequence[Any], size: int, paces: Sequence[StepSettings], averaged_from: int) -> Any:
        """Make all steps, `size` rows each; return the probability of each row's class just before it was learned from.

        `inputs` are the indices of the rows to visit and, if there is noise, the row of the noise for each of them.
        Planes are averaged from step `averaged_from` on.
        """
        xp, n_rows = namespace(inputs[0]), inputs[0].shape[0]
        chosen = xp.stack([*inputs, astype(take_rows(self.y, inputs[0]), inputs[0].dtype)])
        share, whole = take_rows(self.weight, inputs[0]), n_rows // size
        n_last = n_rows - whole * size
        share[: n_rows - n_last] /= size
        share[n_rows - n_last :] /= max(n_last, 1)
        if n_last and is_foreign(self.W):  # rows without weight fill the last step, so that it can be recorded, too
            whole += 1
            chosen, share = (_padded(array, size - n_last) for array in (chosen, share))
        probability = xp.empty(share.shape[0], dtype=self.W.dtype, device=device_of(inputs[0]))
        end = whole * size
        batches = [
            xp.permute_dims(xp.reshape(chosen[:, :end], (chosen.shape[0], whole, size)), (1, 0, 2)),
            xp.reshape(share[:end], (whole, size)),
        ]
        out = xp.reshape(probability[:end], (whole, size))
        turn = min(averaged_from, whole)
        steps = (slice(0, turn), self._step), (slice(turn, whole), self._averaged_step)
        for (part, step), recorded in zip(steps, self._recorded, strict=True):
            run_steps(step, [batch[part, ...] for batch in batches], paces[part], out[part, :], recorded)
        if whole < len(paces):
            step = self._step if averaged_from > whole else self._averaged_step
            probability[end:] = step(chosen[:, end:], share[end:], *paces[-1])
        return probability[:n_rows]

    def _step(self, chosen: Any, share: Any, *pace: Any) -> Any:
        """Update the planes with a batch; return the probability of each row's class before the update.

        `chosen` are the rows, the rows of noise if there is noise, and the classes; `share` are the weights of the rows
        in the mean.
        """
        rate, shrink, _ = pace
        probability, gradient = self._gradient(chosen, share)
        if self.anchor is not None:
            self.W -= shrink * (self.W - self.anchor)
        self.adam.step(self.W, gradient, self.decay, rate, self.epsilon)
        if self.ranks is not None:
            put_in_order(self.ranks, self.W)
        return probability

    def _averaged_step(self, chosen: Any, share: Any, *pace: Any) -> Any:
        """The same, followed by an update of the average."""
        probability = self._step(chosen, share, *pace)
        update_mean(self.mean, self.W, pace[-1])
        return probability

    def _gradient(self, chosen: Any, share: Any) -> tuple[Any, Any]:
        W, rows = self.W, chosen[0, ...]
        noise_rows = chosen[1, ...] if chosen.shape[0] == 3 else None
        own = astype(chosen[-1, ...][:, None] == self._classes, W.dtype)
        if sparse.issparse(self.X):
            noise = None if noise_rows is None else (self.noise, noise_rows)
            return sparse_gradient(W, self.X[rows], own, share, self.scaling, noise)
        if self._inputs is not None:
            x = take_rows(self._inputs, rows)
        else:
            x = namespace(W).ones((rows.shape[0], W.shape[2]), dtype=W.dtype, device=device_of(W))
            x[:, :-1] = self.scaling.take(self.X, rows)
        if noise_rows is not None:
            x[:, :-1] += take_rows(self.noise, noise_rows)
        return dense_gradient(W, x, own, share)


def _padded(array: Any, n: int) -> Any:
    """An array with `n` zeros added along its last axis."""
    xp = namespace(array)
    zeros = xp.zeros((*array.shape[:-1], n), dtype=array.dtype, device=device_of(array))
    return xp.concat([array, zeros], axis=-1)


def log_loss_residual(scores: Any, own: Any, weight: Any, doubt: Any = None) -> tuple[Any, Any]:
    r"""Derivative of the weighted mean log-loss by the plane scores, and the probability of each row's own class.

    With :math:`p_k` the softmax over all planes and :math:`P_c` its sum over the planes of class c, the loss of a row
    is :math:`-\log P_y`, and its derivative :math:`p_k` for planes of other classes, :math:`p_k (1 - 1 / P_y)` for
    those of its own.

    Parameters
    ----------
    scores : array of shape (..., n_rows, n_classes, n_planes)
        Scores of the planes, possibly of many models; overwritten.
    own : array of shape (..., n_rows, n_classes)
        1 at each row's class, else 0.
    weight : array of shape (..., n_rows)
        Weights of the rows, divided by their number.
    doubt : array of shape (..., 1), default=None
        Odds of a random label that is the row's: rows count less where their class is less probable. None: 0.
    """
    xp = namespace(scores)
    if is_torch(scores):  # one kernel instead of five
        scores = scores.flatten(-2).softmax(-1).view(scores.shape)
    else:
        scores -= xp.max(scores, axis=(-2, -1), keepdims=True)
        scores = xp.exp(scores)
    by_class = xp.sum(scores, axis=-1)
    probability = xp.sum(by_class * own, axis=-1)
    if not is_torch(scores):
        total = xp.sum(by_class, axis=-1)
        probability, weight = probability / total, weight / total
    probability = at_least(probability, LEAST_PROBABILITY)
    if doubt is not None:
        weight = weight * (probability / (probability + doubt))
    if is_torch(scores):  # in two kernels instead of three
        factor = weight[..., None].addcmul(own, (weight / probability)[..., None], value=-1)
    else:
        factor = (1.0 - own / probability[..., None]) * weight[..., None]
    scores *= factor[..., None]
    return scores, probability


def dense_gradient(W: Any, x: Any, own: Any, weight: Any, doubt: Any = None) -> tuple[Any, Any]:
    """Own-class probabilities, and the gradient in W (..., n_classes, n_planes, n_features + 1); the rows end in a 1.

    Several models, the first axis of all arrays, are independent of each other.
    """
    xp = namespace(W)
    flat = xp.reshape(W, (*W.shape[:-3], -1, W.shape[-1]))
    scores = xp.reshape(x @ xp.matrix_transpose(flat), (*x.shape[:-1], *W.shape[-3:-1]))
    residual, probability = log_loss_residual(scores, own, weight, doubt)
    residual = xp.reshape(residual, (*x.shape[:-1], -1))
    return probability, xp.reshape(xp.matrix_transpose(residual) @ x, W.shape)


def sparse_gradient(
    W: np.ndarray,
    x: sparse.csr_matrix,
    own: np.ndarray,
    weight: np.ndarray,
    scaling: AffineScaling,
    noise: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The same for unscaled CSR rows: centring, scaling and noise are implicit, so that rows stay sparse.

    `noise` consists of a few rows of noise, and the index of the noise for each row of `x`.
    """
    flat = W.reshape(-1, W.shape[2])
    factor = W.dtype.type(scaling.factor)
    coef = np.ascontiguousarray(flat[:, :-1].T) * factor
    scores = np.asarray(x @ coef)
    scores += flat[:, -1] - scaling.centre @ coef
    if noise is not None:
        used, which = np.unique(noise[1], return_inverse=True)
        shared = noise[0][used]
        scores += (shared @ flat[:, :-1].T)[which]
    residual, probability = log_loss_residual(scores.reshape(x.shape[0], *W.shape[:2]), own, weight)
    residual = residual.reshape(x.shape[0], -1)
    total = residual.sum(axis=0)
    result = np.empty_like(flat)
    result[:, :-1] = (x.T @ residual).T
    result[:, :-1] -= np.multiply.outer(total, scaling.centre)
    result[:, :-1] *= factor
    if noise is not None:
        result[:, :-1] += ((which == np.arange(len(used))[:, None]).astype(W.dtype) @ residual).T @ shared
    result[:, -1] = total
    return probability, result.reshape(W.shape)


#: Initial number of candidate planes of a row; with 8, some errors are larger.
N_CANDIDATES = 16
#: If the candidates miss a larger part of the gradient, their number is doubled. Measured from pass 3 on: before that,
#: planes that start between the rows of their class score alike.
MOST_LEFT_OUT, SETTLED = 0.45, 3
#: Candidates are updated in the passes 0, 1, 3, 7 and then every this many passes. Without the late updates, training
#: fails for some seeds, because the planes have moved in the meantime.
RENEWED_EVERY = 8
#: Length of the noise of an epoch; each row gets a random slice of it. With the same noise in all epochs, errors are
#: larger (ijcnn1 1.64 instead of 1.45 %).
NOISE = 1 << 16
#: Multiplications after which the kernel returns to Python, so that Ctrl-C is handled.
MULTIPLICATIONS = 1 << 33


@cache
def _kernels() -> Any:
    """The compiled kernels, imported when they are first used."""
    from polyplane.kernels import log_loss

    return log_loss


def renews(turn: int) -> bool:
    """Whether candidates are updated in pass `turn`."""
    return turn in (0, 1, 3) or turn % RENEWED_EVERY == RENEWED_EVERY - 1


class CandidatePlanes(EpochSampler):
    """The candidate planes of each row, those with the best scores, and the order and the noise of each epoch."""

    def __init__(self, data: Data, shuffle: bool, noise: bool, n_planes: int) -> None:
        super().__init__(data, shuffle, noise)
        self._n_planes = n_planes
        self.missed = 0.0  # part of the gradient that belongs to planes that are not candidates, when last measured
        self._allot(N_CANDIDATES, len(data.y))

    def _allot(self, n_candidates: int, n_rows: int) -> None:
        self.all_are_candidates = self._n_planes <= n_candidates
        self.is_new = not self.all_are_candidates
        self.candidates = np.empty((n_rows, min(self._n_planes, n_candidates)), dtype=np.int32)
        self.candidates[:] = np.arange(self.candidates.shape[1])

    def renewed(self, turn: int, missed: float) -> None:
        """Note that the candidates were found anew in a pass, and what part of the gradient the old ones missed."""
        self.missed = 0.0 if self.is_new else missed
        self.is_new = False
        if turn >= SETTLED and self.missed > MOST_LEFT_OUT:
            self._allot(2 * self.candidates.shape[1], len(self.candidates))

    def is_renewed(self, turn: int, data: Data) -> bool:
        """Whether to update the candidates."""
        return not self.all_are_candidates and (self.is_new or data.stream or renews(turn))

    def _draw_noise(self, rng: np.random.Generator, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_features = self._n_features
        noise = rng.standard_normal(min(len(order) * n_features, NOISE) + n_features, dtype=self._dtype)
        return noise, rng.integers(0, len(noise) - n_features + 1, len(order))


@dataclass
class CandidatePass(Pass):
    """One pass over dense rows on the host."""

    planes: CandidatePlanes = field(kw_only=True)
    turn: int = field(kw_only=True)  # number of passes of the schedule so far
    renew: bool = field(kw_only=True)  # whether to update the candidates
    _parts: tuple[Any, Any, Any, Any] | None = field(default=None, init=False, repr=False)

    def run(self, inputs: Sequence[Any], size: int, paces: Any, averaged_from: int) -> np.ndarray:
        """Make all steps, `size` rows each; return the probability of each row's class just before it was learned from.

        `inputs` are the indices of the rows to visit and, if there is noise, the start of the noise of each row. Planes
        are averaged from step `averaged_from` on.
        """
        kernels = _kernels()
        rate, shrink, n_averaged = np.array(paces, dtype=float).reshape(-1, 3).T.copy()
        n_averaged[:averaged_from] = 0
        visited, starts = inputs[0], inputs[-1]
        probability = np.empty(len(visited), dtype=self.W.dtype)
        rows, weights, buffers, order = self._kernel_arguments(size)
        at_once = max(1, MULTIPLICATIONS // (size * self.W.size))
        for first in range(0, len(paces), at_once):
            steps, part = slice(first, first + at_once), slice(first * size, (first + at_once) * size)
            visits = kernels.Visits(visited[part], starts[part], probability[part])
            adam = kernels.AdamSteps(rate[steps], shrink[steps], n_averaged[steps], size, self.decay, self.epsilon)
            kernels.train(rows, visits, self.planes.candidates, weights, adam, buffers, order, self.renew)
        if self.renew:
            self.planes.renewed(self.turn, float(buffers.missed[0] / max(buffers.missed[1], LEAST_PROBABILITY)))
        elif self.planes.all_are_candidates:
            self.planes.missed = 0.0
        return probability

    def _kernel_arguments(self, size: int) -> tuple[Any, Any, Any, Any]:
        """The arguments of the kernel, reused by the next pass unless it updates the candidates."""
        if self._parts is None or self.renew:
            kernels = _kernels()
            W, nothing = self.W, self.W[:0]
            noise = np.empty(0, dtype=W.dtype) if self.noise is None else self.noise
            mean, anchor = (nothing if array is None else array for array in (self.mean, self.anchor))
            buffers = kernels.Buffers(
                gradient=np.zeros((W.shape[0] * W.shape[1], W.shape[2]), dtype=W.dtype),
                inputs=np.empty((size, W.shape[2]), dtype=W.dtype),
                all_scores=np.empty((size if self.renew else 0, W.shape[0] * W.shape[1]), dtype=W.dtype),
                sizes=np.empty(W.shape[0] * W.shape[1] if self.renew else 0, dtype=W.dtype),
                scores=np.empty(self.planes.candidates.shape[1], dtype=W.dtype),
                missed=np.zeros(2),
            )
            rows = kernels.InputRows(self.X, self.scaling.centre, self.scaling.factor, self.y, self.weight, noise)
            weights = kernels.Weights(W, self.adam.first, self.adam.second, mean, anchor)
            parts = rows, weights, buffers, None if self.ranks is None else order_of(self.ranks, W)
            self._parts = None if self.renew else parts  # the number of candidates may change
            return parts
        return self._parts


def order_of(ranks: np.ndarray, W: np.ndarray) -> Any:
    """Return the order of the classes as the argument of kernels, for planes of shape (classes, planes, features+1)."""
    from polyplane.kernels.monotone import Order

    n_planes = W.shape[0] * W.shape[1]
    used = np.flatnonzero(ranks.any(axis=1))
    planes = np.tile(np.arange(n_planes), (len(used), 1))
    return Order(used, ranks[used], planes, np.empty(n_planes, dtype=W.dtype), np.empty(n_planes, dtype=np.int64))


def put_in_order(ranks: np.ndarray, *planes: np.ndarray | None) -> None:
    """Replace weights, in place, by the nearest ones that are in the order of the classes."""
    from polyplane.kernels.monotone import project

    for W in planes:
        if W is not None:
            project(W.reshape(-1, W.shape[2]), W.shape[1], order_of(ranks, W))


#: The minimum is reached when the expected decrease of the next step is less than this, in nats per row.
PRECISION = 1e-5
#: Lower and upper limit of the sum of the feature variances that the penalty refers to.
VARIANCE = (5.0, 25.0)
#: Iterations of L-BFGS that count as a pass: together they take less time than a pass with mini-batches.
ITERATIONS = 5
#: Number of steps that L-BFGS stores.
LBFGS_MEMORY = 10
#: The line search ends when the slope is this fraction of the initial slope; maximum number of its iterations.
FLAT, TRIES = 0.1, 20


def times_inverse(pairs: Sequence[tuple[Any, Any, float]], vector: Any, curvature: Any = 1.0) -> Any:
    """The product with the approximate inverse Hessian of L-BFGS (two-loop recursion).

    Parameters
    ----------
    pairs : sequence of (move, change, product)
        The last steps, the changes of the gradient in them, and their inner products.
    vector : array
        The vector.
    curvature : array or float, default=1.0
        The initial approximation of the diagonal of the Hessian, up to a factor.
    """
    factors = []
    for move, change, product in reversed(pairs):
        factors.append(_dot(move, vector) / product)
        vector = vector - factors[-1] * change
    vector = vector / curvature
    if pairs:
        _, change, product = pairs[-1]
        vector = vector * (product / _dot(change, change / curvature))
    for (move, change, product), factor in zip(pairs, reversed(factors), strict=True):
        vector = vector + (factor - _dot(change, vector) / product) * move
    return vector


class MinimisedPlanes(NamedTuple):
    """Planes, their mean log-loss, and whether that is the minimum."""

    W: Any
    loss: float
    is_minimum: bool


class OnePlanePerClass:
    r"""The minimum of the mean log-loss of one plane per class, and of a penalty on their weights:

    .. math:: \frac{1}{n} \Big( \sum_i -\log p_{y_i}(x_i) + \frac{C}{2 (C - 1)} \sum_{c, j} \lambda_j w_{cj}^2 \Big)

    for C classes; intercepts are not penalised. If the variances of the features sum to 5 to 25, as in most tables,
    :math:`\lambda_j = 1`, and this is the objective of scikit-learn's `LogisticRegression`: exactly for two classes,
    nearly for more. Otherwise :math:`\lambda` is such as if they summed to the nearer of these limits, so that the
    penalty is neither too weak (pixels) nor too strong (words). If there are more features than rows, as in texts,
    :math:`\lambda_j` decreases with the standard deviation of a feature, so that rare words are used, too. All
    :math:`\lambda_j` are multiplied by `penalty`.

    Scores are linear along a direction, so the line search of L-BFGS needs no product with the rows: an iteration takes
    one product for the scores of the direction, and one for the gradient. (SciPy's L-BFGS makes two products for each
    step that it tries, and knows no arrays on devices.) Scores have one row per class: sums over the few classes of
    each column are vectorised over the columns. Of rows on a device, only what has their number is computed there.
    """

    def __init__(self, data: Data, scaling: AffineScaling, penalty: float = 1.0) -> None:
        kind, y, weight = scaling.centre, data.y[data.train], data.weight[data.train]
        n_classes = data.n_classes
        self._rows = ScaledRows(data.X, data.train, scaling)
        self._own = astype(like(y, kind)[None, :] == like(np.arange(n_classes), kind)[:, None], kind.dtype)
        total = float(weight.sum(dtype=np.float64))
        self._weight = like((weight / total).astype(weight.dtype), kind)
        variance = np.maximum(to_numpy(self._rows.square_sums(self._weight)), 1e-12)  # sums to 1
        constant = np.ones_like(variance[:1])
        relative = variance ** (0.5 * max(0.0, 1.0 - len(y) / variance.shape[0]))
        allowed = float(np.clip(scaling.factor**-2.0, *VARIANCE))
        unit = penalty * float(np.sum(variance / relative)) / allowed * n_classes / (n_classes - 1) / total
        self._penalty = np.concat([unit * relative, 0 * constant])
        curvature = np.concat([variance, constant]) * (1 / 4 if n_classes == 2 else 1 / n_classes) + self._penalty
        self._curvature = np.maximum(curvature, 1e-12)  # approximate, of each weight: the initial scaling of L-BFGS
        self._forget()

    def _forget(self) -> None:
        self._at: Any = None  # the planes that the scores and the gradient belong to
        self._scores: Any = None
        self._gradient: Any = None
        self._pairs: list[tuple[Any, Any, float]] = []

    def improve(self, planes: Any) -> MinimisedPlanes:
        """Make up to `ITERATIONS` iterations from planes of shape (n_classes, 1, n_features + 1)."""
        for _ in range(ITERATIONS):
            found = self._iterate(planes)
            planes = found.W
            if found.is_minimum:
                break
        return found

    def _iterate(self, planes: Any) -> MinimisedPlanes:
        W = to_numpy(planes[:, 0, :])
        if planes is not self._at:
            self._forget()
            self._scores = self._scores_of(W)
            _, self._gradient = self._loss(W, self._scores)
        direction = -1.0 * self._times_inverse(self._gradient)
        along = self._scores_of(direction)
        length = self._length(W, direction, along)
        move, scores = length * direction, self._scores + length * along
        loss, gradient = self._loss(W + move, scores)
        self._at = None  # after an interrupt, scores and gradient are computed again
        self._remember(move, gradient - self._gradient)
        self._scores, self._gradient = scores, gradient
        self._at = like((W + move)[:, None, :], planes)
        return MinimisedPlanes(self._at, loss, 0.5 * _dot(gradient, self._times_inverse(gradient)) < PRECISION)

    def _remember(self, move: Any, change: Any) -> None:
        product = _dot(move, change)
        if product > 0:
            self._pairs = [*self._pairs[1 - LBFGS_MEMORY :], (move, change, product)]

    def _times_inverse(self, vector: Any) -> Any:
        return times_inverse(self._pairs, vector, self._curvature)

    def _length(self, W: Any, direction: Any, along: Any) -> float:
        """Line search: the step size at which the slope is nearly 0, by Newton's method within a bracket."""
        xp = namespace(along)
        ridge, bend = (_dot(self._penalty * direction, to) for to in (W, direction))
        enough = FLAT * abs(_dot(self._gradient, direction))
        ridge -= _dot(xp.sum(self._own * along, axis=0), self._weight)
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(TRIES):
            P = softmax(self._scores + length * along, axis=0)
            change = P * along
            mean = xp.sum(change, axis=0)
            slope = _dot(mean, self._weight) + ridge + length * bend
            if abs(slope) <= enough:
                break
            change *= along
            curve = _dot(xp.sum(change, axis=0) - mean * mean, self._weight) + bend
            low, high = (length, high) if slope < 0 else (low, length)
            length = min(length - slope / curve if curve > 0 else np.inf, 10 * length)
            if not low < length < high:
                length = (low + high) / 2
        return length

    def _scores_of(self, W: np.ndarray) -> Any:
        W = like(W, self._own)
        scores = namespace(W).matrix_transpose(self._rows.times(W[:, :-1]) + W[:, -1])
        return np.ascontiguousarray(scores) if isinstance(scores, np.ndarray) else scores

    def _loss(self, W: Any, scores: Any) -> tuple[float, Any]:
        """The mean log-loss, and the gradient of the penalised loss."""
        xp, P = namespace(scores), softmax(scores, axis=0)
        probability = at_least(xp.sum(P * self._own, axis=0), 1e-30)
        P -= self._own
        P *= self._weight
        sums = self._rows.sums(xp.matrix_transpose(P))
        gradient = to_numpy(xp.concat([sums, xp.sum(P, axis=1)[:, None]], axis=1))
        return -_dot(xp.log(probability), self._weight), gradient + self._penalty * W


def _dot(a: Any, b: Any) -> float:
    xp = namespace(a)
    return float(xp.reshape(a, (-1,)) @ xp.reshape(b, (-1,)))
