"""Smooth class scores, probabilities, and temperature scaling."""

from __future__ import annotations

import numpy as np

from polyplane._threads import in_threads
from polyplane.planes import PlaneSet

#: Number of scores in a block of rows.
BLOCK = 1 << 20
#: Smallest probability, to avoid an infinite log-loss.
LEAST = 1e-30


def soft_class_scores(planes: PlaneSet, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    r"""Compute :math:`\log \sum_k e^{w_k x + b_k}` over the planes of each class, shape (n_rows, n_classes).

    This is a smooth maximum of the scores of the planes, as used by the log-loss in training.
    """
    size = max(1, BLOCK // planes.n_planes)
    blocks = [X[start : start + size] for start in range(0, len(X), size)]

    def score(block: np.ndarray) -> np.ndarray:
        scores = planes.scores(block)
        most = scores.max(axis=1, keepdims=True)
        shares = np.exp(scores - most)
        by_class = np.add.reduceat(shares, planes.indptr[:-1], axis=1).astype(np.float64)
        return np.log(np.maximum(by_class, LEAST)) + most

    return np.concatenate(in_threads(score, blocks, n_jobs))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Convert scores to probabilities, row by row."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def log_losses(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the log-loss of each row."""
    return -np.log(np.maximum(probability[np.arange(len(y)), y], LEAST))


def best_temperature(scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Find the temperature between 1/8 and 8 that minimises the log-loss, which is convex in its inverse.

    A prior equivalent to one row per class, with uniform class probabilities, prevents extreme temperatures if there
    are few rows and all are classified correctly.
    """
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    own, n_classes = scores[np.arange(len(y)), y], scores.shape[1]
    low, high = -3.0, 3.0
    for _ in range(30):
        power = 0.5 * (low + high)
        expected = (softmax(scores * 2.0**power) * scores).sum(axis=1)
        slope = weight @ (expected - own) + (expected - scores.mean(axis=1)).mean() * n_classes
        low, high = (low, power) if slope > 0 else (power, high)
    return float(2.0 ** (-0.5 * (low + high)))
