"""Joint training of a projection and planes: log-loss, mini-batches, Adam and quantisation-aware training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from polyplane.compression._low_rank import LowRank

#: Rows per step.
BATCH = 128
#: Fractions of the steps after which weights are rounded in each step, and after which they are averaged.
ROUNDED_FROM, AVERAGED_FROM = 0.6, 0.85
#: Adam's decay rates of the gradient and of its square.
DECAY = 0.9, 0.99
#: Lower bound of the probability of the true class.
MIN_PROBABILITY = 1e-12
#: Rows of noise, drawn once, that steps choose from at random.
NOISE_ROWS = 4096


@dataclass
class Adam:
    """Adam for one array; `rate` is the initial step size."""

    values: np.ndarray
    rate: float
    mean: np.ndarray = field(init=False)
    square: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.values = self.values.copy()
        self.mean, self.square = np.zeros_like(self.values), np.zeros_like(self.values)

    def step(self, gradient: np.ndarray, t: int, fraction: float) -> None:
        """Step number `t`, with a fraction of the rate."""
        for memory, decay, value in ((self.mean, DECAY[0], gradient), (self.square, DECAY[1], gradient * gradient)):
            memory *= decay
            memory += (1 - decay) * value
        size = self.rate * fraction * (1 - DECAY[1] ** t) ** 0.5 / (1 - DECAY[0] ** t)
        self.values -= size * self.mean / (np.sqrt(self.square) + 1e-7)


@dataclass(frozen=True)
class Training:
    """The training of planes.

    Parameters
    ----------
    n_passes : int
        Number of passes over the rows.
    rate : float
        Initial step size, relative to the root mean square of the weights; step sizes decrease linearly to 0.
    noise : float
        Standard deviation of the noise added to scaled rows.
    """

    n_passes: int
    rate: float
    noise: float

    def run(
        self, planes: LowRank, X: np.ndarray, y: np.ndarray, weight: np.ndarray, rng: np.random.Generator
    ) -> tuple[LowRank, list[float]]:
        """Train on scaled rows; return the planes, rounded to one-byte weights, and the loss of each pass."""
        starts = np.searchsorted(planes.owners, np.arange(int(planes.owners[-1]) + 1))
        parameters = [Adam(values, self.rate * _size(planes, values)) for values in planes[:3] if values is not None]
        mean, n_averaged = [np.zeros_like(part.values) for part in parameters], 0
        losses, n_steps, t = [], self.n_passes * -(-len(X) // BATCH), 0
        noise = (self.noise * rng.standard_normal((NOISE_ROWS, X.shape[1]))).astype(X.dtype) if self.noise else None
        for _ in range(self.n_passes):
            loss = 0.0
            for rows in _batches(len(X), rng):
                x = X[rows] if noise is None else X[rows] + noise[rng.integers(NOISE_ROWS, size=len(rows))]
                current = _planes(planes, [part.values for part in parameters])
                used = current.rounded() if t >= ROUNDED_FROM * n_steps else current
                batch_loss, gradients = _gradients(used, x, y[rows], weight[rows], starts)
                loss += batch_loss
                t += 1
                for part, gradient in zip(parameters, gradients, strict=True):
                    part.step(gradient, t, 1 - t / n_steps)
                if t >= AVERAGED_FROM * n_steps:
                    n_averaged += 1
                    for average, part in zip(mean, parameters, strict=True):
                        average += (part.values - average) / n_averaged
            losses.append(loss / len(X))
        return _planes(planes, mean).rounded(), losses


def _size(planes: LowRank, values: np.ndarray) -> float:
    """Root mean square of an array; for the intercepts, that of the weights, so that both move alike."""
    measured = planes.weights if values is planes.intercept else values
    return float(np.sqrt(np.square(measured).mean())) or 1.0


def _planes(like: LowRank, values: list[np.ndarray]) -> LowRank:
    projection = None if like.projection is None else values[0]
    return LowRank(projection, values[-2], values[-1], like.owners)


def _batches(n_rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    order = rng.permutation(n_rows)
    return (order[first : first + BATCH] for first in range(0, n_rows, BATCH))


def _gradients(
    planes: LowRank, x: np.ndarray, y: np.ndarray, weight: np.ndarray, starts: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    r"""The sum of the log-losses of a batch, and the gradients of their mean: projection (if any), weights, intercepts.

    The score of a class is the log-sum-exp of the scores of its planes. Let :math:`p_k` be the softmax over all planes
    and :math:`P` its sum over the planes of the row's class. The derivative of the loss with respect to a plane score
    is :math:`p_k (1 - 1 / P)` for planes of the row's class, and :math:`p_k` for the others.
    """
    z = x if planes.projection is None else x @ planes.projection.T
    scores = z @ planes.weights.T
    scores += planes.intercept
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    by_class, rows = np.add.reduceat(scores, starts, axis=1), np.arange(len(x))
    total = by_class.sum(axis=1)
    probability = np.maximum(by_class[rows, y] / total, MIN_PROBABILITY)
    loss = -float(weight @ np.log(probability))
    factor = np.repeat((weight / (total * len(x)))[:, None], len(starts), axis=1)
    factor[rows, y] *= 1 - 1 / probability
    scores *= factor[:, planes.owners]
    gradients = [scores.T @ z, scores.sum(axis=0)]
    if planes.projection is not None:
        gradients.insert(0, (scores @ planes.weights).T @ x)
    return loss, gradients
