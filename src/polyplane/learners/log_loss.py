"""The log-loss of a multi-hyperplane model, its gradient, and passes over the rows by Adam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import astype, at_least, device_of, is_on_cuda, like, namespace, take_rows
from polyplane.engine.data import Data
from polyplane.engine.state import Array, MixedWhole, State
from polyplane.learners.tangents import EpochRandomness, EpochSampler, update_mean
from polyplane.scaling import AffineScaling

#: Recording a graph costs as much as a few steps.
WORTH_RECORDING = 16


def run_steps(step: Callable[..., Any], batches: Sequence[Any], paces: Sequence[tuple[float, ...]], out: Any) -> None:
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
    """
    if is_on_cuda(out) and len(paces) >= WORTH_RECORDING:
        _run_recorded(step, batches, paces, out)
        return
    for i, pace in enumerate(paces):
        out[i, ...] = step(*(batch[i, ...] for batch in batches), *pace)


def _run_recorded(
    step: Callable[..., Any], batches: Sequence[Any], paces: Sequence[tuple[float, ...]], out: Any
) -> None:
    import torch

    numbers = torch.tensor(paces, dtype=out.dtype, device=out.device)
    at = torch.zeros(1, dtype=torch.int64, device=out.device)

    def numbered_step() -> None:
        # The recorded step is the same each time: its number is stored on the device.
        inputs = [batch.index_select(0, at)[0] for batch in batches]
        out.index_copy_(0, at, step(*inputs, *numbers.index_select(0, at)[0].unbind())[None])
        at.add_(1)

    stream = torch.cuda.Stream(out.device)
    stream.wait_stream(torch.cuda.current_stream(out.device))
    try:
        with torch.cuda.stream(stream):
            numbered_step()  # not recorded: libraries are initialised on the first call
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                numbered_step()
            for _ in range(len(paces) - 1):
                graph.replay()
    finally:
        # The memory of the graph is released on return, so all steps must have finished, even after an interrupt.
        stream.synchronize()


#: Lower bound of the probability of a row's class; rows below it no longer change the planes of their class.
LEAST_PROBABILITY = 1e-30
#: Adam's decay rates of the gradient and of its square.
DECAY = (0.9, 0.99)
#: Adam's epsilon for one feature, large enough that planes without a gradient do not move by rounding errors.
EPSILON = 1e-4
#: Rows per step for which these constants and the step size are chosen.
USUAL_BATCH = 256

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


class Pace(NamedTuple):
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

    @property
    def epsilon(self) -> float:
        """Adam's epsilon."""
        return EPSILON / (self.W.shape[2] - 1) ** 0.5  # type: ignore[no-any-return]


@dataclass
class AdamPass(Pass):
    """One pass over the rows by matrix products with all planes, in any array library."""

    def __post_init__(self) -> None:
        self._classes = like(np.arange(self.W.shape[0]), self.W)

    def run(self, inputs: Sequence[Any], size: int, paces: Sequence[Pace], averaged_from: int) -> Any:
        """Make all steps, `size` rows each; return the probability of each row's class just before it was learned from.

        `inputs` are the indices of the rows to visit and, if there is noise, the row of the noise for each of them.
        Planes are averaged from step `averaged_from` on.
        """
        xp, n_rows = namespace(inputs[0]), inputs[0].shape[0]
        probability = xp.empty(n_rows, dtype=self.W.dtype, device=device_of(inputs[0]))
        whole = n_rows // size
        batches = [xp.reshape(array[: whole * size], (whole, size)) for array in inputs]
        out = xp.reshape(probability[: whole * size], (whole, size))
        turn = min(averaged_from, whole)
        for part, step in ((slice(0, turn), self._step), (slice(turn, whole), self._averaged_step)):
            run_steps(step, [batch[part, :] for batch in batches], paces[part], out[part, :])
        if whole < len(paces):
            step = self._step if averaged_from > whole else self._averaged_step
            probability[whole * size :] = step(*(array[whole * size :] for array in inputs), *paces[-1])
        return probability

    def _step(self, rows: Any, *rest: Any) -> Any:
        """Update the planes with a batch; return the probability of each row's class before the update."""
        *noise_rows, rate, shrink, _ = rest
        probability, gradient = self._gradient(rows, *noise_rows)
        if self.anchor is not None:
            self.W -= shrink * (self.W - self.anchor)
        self.adam.step(self.W, gradient, self.decay, rate, self.epsilon)
        return probability

    def _averaged_step(self, rows: Any, *rest: Any) -> Any:
        """The same, followed by an update of the average."""
        probability = self._step(rows, *rest)
        update_mean(self.mean, self.W, rest[-1])
        return probability

    def _gradient(self, rows: Any, noise_rows: Any = None) -> tuple[Any, Any]:
        W, n_rows = self.W, rows.shape[0]
        own = astype(take_rows(self.y, rows)[:, None] == self._classes, W.dtype)
        weight = take_rows(self.weight, rows) / n_rows
        if sparse.issparse(self.X):
            noise = None if noise_rows is None else (self.noise, noise_rows)
            return sparse_gradient(W, self.X[rows], own, weight, self.scaling, noise)
        x = namespace(W).ones((n_rows, W.shape[2]), dtype=W.dtype, device=device_of(W))
        x[:, :-1] = self.scaling.take(self.X, rows)
        if noise_rows is not None:
            x[:, :-1] += take_rows(self.noise, noise_rows)
        return dense_gradient(W, x, own, weight)


def log_loss_residual(scores: Any, own: Any, weight: Any) -> tuple[Any, Any]:
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
    """
    xp = namespace(scores)
    scores -= xp.max(scores, axis=(-2, -1), keepdims=True)
    scores = xp.exp(scores)
    by_class = xp.sum(scores, axis=-1)
    total = xp.sum(by_class, axis=-1)
    probability = xp.sum(by_class * own, axis=-1) / total
    probability = at_least(probability, LEAST_PROBABILITY)
    factor = (1.0 - own / probability[..., None]) * (weight / total)[..., None]
    scores *= factor[..., None]
    return scores, probability


def dense_gradient(W: Any, x: Any, own: Any, weight: Any) -> tuple[Any, Any]:
    """Own-class probabilities, and the gradient in W (n_classes, n_planes, n_features + 1); the rows end in a 1."""
    xp = namespace(W)
    scores = xp.reshape(x @ xp.reshape(W, (-1, W.shape[2])).T, (x.shape[0], *W.shape[:2]))
    residual, probability = log_loss_residual(scores, own, weight)
    residual = xp.reshape(residual, (x.shape[0], -1))
    return probability, xp.reshape(residual.T @ x, W.shape)


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


#: Number of candidate planes of a row. With 32, errors are the same; with 8, some are larger.
N_CANDIDATES = 16
#: Candidates are updated in the passes 0, 1, 3, 7 and then every this many passes. Without the late updates, training
#: fails for some seeds, because the planes have moved in the meantime.
RENEWED_EVERY = 8
#: Length of the noise of an epoch; each row gets a random slice of it.
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
        self.candidates = np.zeros((len(data.y), min(n_planes, N_CANDIDATES)), dtype=np.int32)
        self.all_are_candidates = n_planes <= N_CANDIDATES
        self.is_new = not self.all_are_candidates
        if self.all_are_candidates:
            self.candidates[:] = np.arange(n_planes)

    def is_renewed(self, turn: int, data: Data) -> bool:
        """Whether to update the candidates."""
        return not self.all_are_candidates and (self.is_new or data.stream or renews(turn))

    def _draw_noise(self, rng: np.random.Generator, order: np.ndarray) -> EpochRandomness:
        n_features = self._n_features
        noise = rng.standard_normal(min(len(order) * n_features, NOISE) + n_features, dtype=self._dtype)
        return EpochRandomness(order, noise, rng.integers(0, len(noise) - n_features + 1, len(order)))


@dataclass
class CandidatePass(Pass):
    """One pass over dense rows on the host."""

    candidates: np.ndarray = field(kw_only=True)
    renew: bool = field(kw_only=True)
    _parts: tuple[Any, Any, Any] | None = field(default=None, init=False, repr=False)

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
        rows, machine, room = self._kernel_arguments(size)
        at_once = max(1, MULTIPLICATIONS // (size * self.W.size))
        for first in range(0, len(paces), at_once):
            steps, part = slice(first, first + at_once), slice(first * size, (first + at_once) * size)
            kernels.train(
                rows, kernels.Visits(visited[part], starts[part], probability[part]), self.candidates, machine,
                kernels.Steps(rate[steps], shrink[steps], n_averaged[steps], size, self.decay, self.epsilon), room,
                self.renew,
            )  # fmt: skip
        return probability

    def _kernel_arguments(self, size: int) -> tuple[Any, Any, Any]:
        """The arguments of the kernel, reused by the next pass."""
        if self._parts is None:
            kernels = _kernels()
            W, nothing = self.W, self.W[:0]
            noise = np.empty(0, dtype=W.dtype) if self.noise is None else self.noise
            mean, anchor = (nothing if array is None else array for array in (self.mean, self.anchor))
            room = kernels.Room(
                gradient=np.zeros((W.shape[0] * W.shape[1], W.shape[2]), dtype=W.dtype),
                inputs=np.empty((size, W.shape[2]), dtype=W.dtype),
                all_scores=np.empty((size if self.renew else 0, W.shape[0] * W.shape[1]), dtype=W.dtype),
                largest=np.empty(W.shape[0] * W.shape[1] // kernels.BLOCK, dtype=W.dtype),
                scores=np.empty(self.candidates.shape[1], dtype=W.dtype),
            )
            rows = kernels.Rows(self.X, self.scaling.centre, self.scaling.factor, self.y, self.weight, noise)
            self._parts = rows, kernels.Machine(W, self.adam.first, self.adam.second, mean, anchor), room
        return self._parts
