"""The log-loss of a multi-hyperplane machine, its gradient, and Adam's way down: nothing but matrix products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import at_least, namespace
from polyplane.learners._units import Units

#: The least probability of a row's own class that is told from 0; below it the row no longer lifts its own planes.
LEAST = 1e-30


class Adam(NamedTuple):
    """The moments of the gradient, and the number of steps made."""

    first: Any
    second: Any
    t: int

    def step(self, W: Any, gradient: Any, decay: tuple[float, float], rate: Any, epsilon: float) -> None:
        """Move the weights in place; the moments follow, the gradient is used up.

        `rate` already holds what makes up for the moments' start at 0.
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
    probability = at_least(probability, LEAST)
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
