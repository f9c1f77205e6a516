"""Probabilities of the classes as the log-loss trains them, and their temperature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyplane._threads import in_threads
from polyplane.planes import PlaneSet

#: Rows are scored in blocks of about this many scores.
BLOCK = 1 << 20
#: The least probability that is told from 0.
LEAST = 1e-30


def class_probabilities(planes: PlaneSet, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    r"""The share of each class in the sum of :math:`e^{w_k x + b_k}` over all planes, shape (n_rows, n_classes).

    This is what the log-loss trains: the softmax of the log-sum-exp of the planes of each class.
    """
    size = max(1, BLOCK // planes.n_planes)
    blocks = [X[start : start + size] for start in range(0, len(X), size)]

    def share(block: np.ndarray) -> np.ndarray:
        likeness = planes.scores(block)
        likeness = likeness - likeness.max(axis=1, keepdims=True)
        np.exp(likeness, out=likeness)
        by_class = np.add.reduceat(likeness, planes.indptr[:-1], axis=1).astype(np.float64)
        return by_class / by_class.sum(axis=1, keepdims=True)

    return np.concatenate(in_threads(share, blocks, n_jobs))


def at_temperature(probability: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities to the power 1 / temperature, summing to 1: above 1 they are drawn to each other."""
    logits = np.log(np.maximum(probability, LEAST)) / temperature
    sharper = np.exp(logits - logits.max(axis=1, keepdims=True))
    return sharper / sharper.sum(axis=1, keepdims=True)


def log_losses(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The log-loss of each row."""
    return -np.log(np.maximum(probability[np.arange(len(y)), y], LEAST))


def best_temperature(probability: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The temperature of the least log-loss, which is convex in its inverse, between 1/8 and 8.

    One more row of each class than there are, spread evenly over the classes, keeps few rows that are all right from
    asking for certainty.
    """
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    logits = np.log(np.maximum(probability, LEAST))
    own, n_classes = logits[np.arange(len(y)), y], probability.shape[1]
    low, high = -3.0, 3.0
    for _ in range(30):
        power = 0.5 * (low + high)
        now = at_temperature(probability, 2.0**-power)
        expected = (now * logits).sum(axis=1)
        slope = weight @ (expected - own) + (expected - logits.mean(axis=1)).mean() * n_classes
        low, high = (low, power) if slope > 0 else (power, high)
    return float(2.0 ** (-0.5 * (low + high)))


def mean_probabilities(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The mean of the probabilities of several machines."""
    return sum(parts[1:], parts[0]) / len(parts)
