"""Training by the log-loss: each class scores the log-sum-exp of its planes; nothing but matrix products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import namespace
from polyplane._threads import blas_threads
from polyplane._validation import Data
from polyplane.learners._schedule import Schedule
from polyplane.learners._tangent import Tangents
from polyplane.learners._units import Units
from polyplane.planes import PlaneSet

#: The least probability of a row's own class that is told from 0; below it the row no longer lifts its own planes.
LEAST = 1e-30
#: A row whose class has this probability hardly moves a plane: it may rest.
AMPLE = 0.99
#: Adam's memory of the gradient and of its square.
DECAY = (0.9, 0.99)
#: Adam's epsilon for one feature: planes without a gradient do not wander by rounding errors.
EPSILON = 1e-4


class Adam(NamedTuple):
    """The moments of the gradient, and the number of steps made."""

    first: Any
    second: Any
    t: int

    def step(self, W: Any, gradient: Any, rate: float, epsilon: float) -> tuple[Any, Adam]:
        """Move the weights; they and the moments are updated in place."""
        xp = namespace(W)
        b1, b2 = DECAY
        first, second, t = self.first, self.second, self.t + 1
        first *= b1
        first += (1 - b1) * gradient
        gradient *= gradient
        gradient *= 1 - b2
        second *= b2
        second += gradient
        move = xp.sqrt(second)
        move += epsilon
        move = first / move
        move *= -rate * (1 - b2**t) ** 0.5 / (1 - b1**t)
        W += move
        return W, Adam(first, second, t)


def log_loss_residual(scores: Any, own: Any, weight: Any) -> tuple[Any, Any]:
    r"""Derivative of the weighted mean log-loss by the plane scores, and the probability of each row's own class.

    With :math:`p_k` the softmax over all planes and :math:`P_c` its sum over the planes of class c, the loss of a row
    is :math:`-\log P_y`, and its derivative :math:`p_k` for planes of other classes, :math:`p_k (1 - 1 / P_y)` for
    those of its own.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes, n_planes)
        Scores of the planes; overwritten.
    own : array of shape (n_rows, n_classes)
        1 at each row's class, else 0.
    weight : array of shape (n_rows,)
        Weights of the rows, divided by their number.
    """
    xp = namespace(scores)
    scores -= xp.max(scores, axis=(1, 2), keepdims=True)
    scores = xp.exp(scores)
    by_class = xp.sum(scores, axis=2)
    total = xp.sum(by_class, axis=1)
    probability = xp.sum(by_class * own, axis=1) / total
    probability = xp.where(probability < LEAST, xp.full_like(probability, LEAST), probability)
    factor = (1.0 - own / probability[:, None]) * (weight / total)[:, None]
    scores *= factor[:, :, None]
    return scores, probability


def dense_gradient(W: Any, x: Any, own: Any, weight: Any) -> tuple[Any, Any]:
    """Own-class probabilities, and the gradient by W (n_classes, n_planes, n_features + 1), on rows that end in a 1."""
    xp = namespace(W)
    scores = xp.reshape(x @ xp.reshape(W, (-1, W.shape[2])).T, (x.shape[0], *W.shape[:2]))
    residual, probability = log_loss_residual(scores, own, weight)
    residual = xp.reshape(residual, (x.shape[0], -1))
    return probability, xp.reshape(residual.T @ x, W.shape)


def sparse_gradient(
    W: np.ndarray, x: sparse.csr_matrix, own: np.ndarray, weight: np.ndarray, units: Units
) -> tuple[np.ndarray, np.ndarray]:
    """The same for CSR rows as they come: centring and scaling stay implicit."""
    flat = W.reshape(-1, W.shape[2])
    factor = W.dtype.type(units.factor)
    coef = np.ascontiguousarray(flat[:, :-1].T) * factor
    scores = np.asarray(x @ coef)
    scores += flat[:, -1] - units.centre @ coef
    residual, probability = log_loss_residual(scores.reshape(x.shape[0], *W.shape[:2]), own, weight)
    residual = residual.reshape(x.shape[0], -1)
    total = residual.sum(axis=0)
    result = np.empty_like(flat)
    result[:, :-1] = (x.T @ residual).T
    result[:, :-1] -= np.multiply.outer(total, units.centre)
    result[:, :-1] *= factor
    result[:, -1] = total
    return probability, result.reshape(W.shape)


class Rest(NamedTuple):
    """Back-off: how many visits each row is still passed over, and how many next time."""

    skip: np.ndarray
    patience: np.ndarray

    @classmethod
    def fresh(cls, n_rows: int) -> Rest:
        """All rows awake."""
        return cls(np.zeros(n_rows, dtype=np.uint8), np.zeros(n_rows, dtype=np.uint8))

    def wake(self, order: np.ndarray) -> np.ndarray:
        """The rows of `order` to look at in this epoch."""
        asleep = self.skip[order] > 0
        self.skip[order[asleep]] -= 1
        return order[~asleep]

    def note(self, rows: np.ndarray, ample: np.ndarray, longest: int) -> None:
        """Look away from rows that are amply right for 1, 3, 7, ... visits."""
        patience = np.where(ample, np.minimum(2 * self.patience[rows].astype(np.intp) + 1, longest), 0)
        self.patience[rows] = self.skip[rows] = patience


class SmoothState(NamedTuple):
    """Everything that training by the log-loss needs to go on; arrays are updated in place."""

    W: np.ndarray  # (n_classes, n_planes, n_features + 1), in training units
    anchor: np.ndarray | None  # the start, when weights decay towards it
    adam: Adam
    units: Units
    tangents: Tangents
    seed: int
    epoch: int = 0
    loss: float = np.inf
    mean: np.ndarray | None = None  # average over the last steps
    n_averaged: int = 0

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.tangents.real.sum())


class SmoothTraining(NamedTuple):
    """How to train by the log-loss: mini-batches, Adam, a step that falls linearly."""

    batch_size: int
    eta0: float  # first step, relative to the way from a row to its centre
    noise: float  # standard deviation of the noise on the inputs, relative to the margin
    alpha: float
    tail: float  # the last part of the passes, whose planes are averaged
    backoff: int
    shuffle: bool
    schedule: Schedule

    def start(self, tangents: Tangents, units: Units, seed: int) -> SmoothState:
        """The state before the first epoch."""
        square = (tangents.centres**2).sum(axis=2, keepdims=True)
        W = tangents.scale * np.concatenate([2 * tangents.centres, -square], axis=2)
        W[~tangents.real, -1] = -1e30  # never wins, has no gradient
        adam = Adam(np.zeros_like(W), np.zeros_like(W), 0)
        return SmoothState(W, W.copy() if self.alpha else None, adam, units, tangents, seed)

    def epoch(self, state: SmoothState, data: Data) -> SmoothState:
        """The state after one more pass over the rows."""
        rng = np.random.default_rng([state.seed, state.epoch])
        order = rng.permutation(data.train) if self.shuffle else data.train
        rest = data.recall(lambda: Rest.fresh(len(data.y)))
        awake = rest.wake(order)
        noise = self._noise_pool(state, rng)
        loss = 0.0
        with blas_threads(self.batch_size * state.W.size):
            for first in range(0, len(awake), self.batch_size):
                rows = awake[first : first + self.batch_size]
                probability, gradient = self._gradient(state, data, rows, noise, rng)
                state = self._move(state, gradient, first / len(awake))
                loss -= float(data.weight[rows] @ np.log(probability))
                if self.backoff:
                    rest.note(rows, probability > AMPLE, self.backoff)
        return state._replace(epoch=state.epoch + 1, loss=loss / float(data.weight[order].sum()))

    def planes(self, state: SmoothState) -> PlaneSet:
        """The model in a state, in the units of X."""
        W = state.W if state.mean is None else state.mean
        by_class = []
        for planes, real in zip(W, state.tangents.real, strict=True):
            by_class.append(state.units.fold(planes[real, :-1], planes[real, -1]))
        return PlaneSet.of_classes(by_class)

    def _noise_pool(self, state: SmoothState, rng: np.random.Generator) -> np.ndarray | None:
        """Noise to draw from: fresh noise for each row would cost more than the matrix products."""
        if not self.noise:
            return None
        pool = rng.standard_normal((2048, state.W.shape[2] - 1), dtype=state.W.dtype)
        pool *= self.noise * state.tangents.lengths.margin
        return pool

    def _gradient(
        self, state: SmoothState, data: Data, rows: np.ndarray, noise: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        W, n_rows = state.W, len(rows)
        own = np.zeros((n_rows, W.shape[0]), dtype=W.dtype)
        own[np.arange(n_rows), data.y[rows]] = 1.0
        weight = data.weight[rows] / n_rows
        if sparse.issparse(data.X):
            return sparse_gradient(W, data.X[rows], own, weight, state.units)
        x = np.ones((n_rows, W.shape[2]), dtype=W.dtype)
        x[:, :-1] = state.units.take(data.X, rows)
        if noise is not None:
            x[:, :-1] += noise[rng.integers(0, len(noise), n_rows)]
        return dense_gradient(W, x, own, weight)

    def _move(self, state: SmoothState, gradient: np.ndarray, fraction: float) -> SmoothState:
        rate = self.eta0 * self.schedule.rate(state.epoch, fraction)
        lengths, n_features = state.tangents.lengths, state.W.shape[2] - 1
        # A step is a fraction of the way from a row to its centre, or of the margin where each row is its own centre.
        way = max(lengths.spread**0.5, lengths.margin / 4, 1e-6)
        unit = 2 * state.tangents.scale * way / n_features**0.5
        W = state.W
        if state.anchor is not None:
            W -= min(1.0, rate * self.alpha) * (W - state.anchor)
        W, adam = state.adam.step(W, gradient, rate * unit, EPSILON / n_features**0.5)
        state = state._replace(W=W, adam=adam)
        if not self.schedule.averages(state.epoch, fraction, self.tail):
            return state._replace(mean=None)
        return self._average(state)

    def _average(self, state: SmoothState) -> SmoothState:
        if state.mean is None:
            return state._replace(mean=state.W.copy(), n_averaged=1)
        n_averaged = min(state.n_averaged + 1, self.schedule.window)
        mean = state.mean
        mean += (state.W - mean) / n_averaged
        return state._replace(mean=mean, n_averaged=n_averaged)
