"""One plane per class: the log-loss is convex, as in logistic regression, and is minimised by L-BFGS.

Scores are linear along a direction, so the line search needs no product with the rows: an iteration takes one product
for the scores of the direction, and one for the gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import astype, at_least, like, namespace, softmax
from polyplane.engine.data import Data
from polyplane.learners._scaled_rows import ScaledRows
from polyplane.scaling import AffineScaling

#: The minimum is reached when the expected decrease of the next step is less than this, in nats per row.
PRECISION = 1e-5
#: Lower and upper limit of the sum of the feature variances that the penalty refers to.
VARIANCE = (5.0, 25.0)
#: Iterations of L-BFGS that count as a pass: together they take less time than a pass with mini-batches.
ITERATIONS = 5
#: Number of steps that L-BFGS stores.
MEMORY = 10
#: The line search ends when the slope is this fraction of the initial slope; maximum number of its iterations.
FLAT, TRIES = 0.1, 20


class Found(NamedTuple):
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
    :math:`\lambda_j` decreases with the standard deviation of a feature, so that rare words are used, too.
    """

    def __init__(self, data: Data, scaling: AffineScaling) -> None:
        kind, y, weight = scaling.centre, data.y[data.train], data.weight[data.train]
        xp, n_classes = namespace(kind), data.n_classes
        self._rows = ScaledRows(data.X, data.train, scaling)
        self._own = astype(like(y, kind)[:, None] == like(np.arange(n_classes), kind), kind.dtype)
        total = float(weight.sum(dtype=np.float64))
        self._weight = like((weight / total).astype(weight.dtype), kind)
        variance = at_least(self._rows.square_sums(self._weight), 1e-12)  # sums to 1
        constant = xp.ones_like(variance[:1])
        relative = variance ** (0.5 * max(0.0, 1.0 - len(y) / variance.shape[0]))
        allowed = float(np.clip(scaling.factor**-2.0, *VARIANCE))
        unit = float(xp.sum(variance / relative)) / allowed * n_classes / (n_classes - 1) / total
        self._penalty = xp.concat([unit * relative, 0 * constant])
        curvature = xp.concat([variance, constant]) * (1 / 4 if n_classes == 2 else 1 / n_classes) + self._penalty
        self._curvature = at_least(curvature, 1e-12)  # approximate, of each weight: the initial scaling of L-BFGS
        self._forget()

    def _forget(self) -> None:
        self._at: Any = None  # the planes that the scores and the gradient belong to
        self._scores: Any = None
        self._gradient: Any = None
        self._pairs: list[tuple[Any, Any, float]] = []

    def improve(self, planes: Any) -> Found:
        """Make up to `ITERATIONS` iterations from planes of shape (n_classes, 1, n_features + 1)."""
        for _ in range(ITERATIONS):
            found = self._iterate(planes)
            planes = found.W
            if found.is_minimum:
                break
        return found

    def _iterate(self, planes: Any) -> Found:
        W = planes[:, 0, :]
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
        self._at = (W + move)[:, None, :]
        return Found(self._at, loss, 0.5 * _dot(gradient, self._times_inverse(gradient)) < PRECISION)

    def _remember(self, move: Any, change: Any) -> None:
        product = _dot(move, change)
        if product > 0:
            self._pairs = [*self._pairs[1 - MEMORY :], (move, change, product)]

    def _times_inverse(self, vector: Any) -> Any:
        """The product with the approximate inverse Hessian of L-BFGS (two-loop recursion)."""
        factors = []
        for move, change, product in reversed(self._pairs):
            factors.append(_dot(move, vector) / product)
            vector = vector - factors[-1] * change
        vector = vector / self._curvature
        if self._pairs:
            _, change, product = self._pairs[-1]
            vector = vector * (product / _dot(change, change / self._curvature))
        for (move, change, product), factor in zip(self._pairs, reversed(factors), strict=True):
            vector = vector + (factor - _dot(change, vector) / product) * move
        return vector

    def _length(self, W: Any, direction: Any, along: Any) -> float:
        """Line search: the step size at which the slope is nearly 0, by Newton's method within a bracket."""
        xp = namespace(W)
        ridge, bend = (_dot(self._penalty * direction, to) for to in (W, direction))
        enough = FLAT * abs(_dot(self._gradient, direction))
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(TRIES):
            P = softmax(self._scores + length * along)
            mean = xp.sum(P * along, axis=1)
            slope = _dot(mean - xp.sum(self._own * along, axis=1), self._weight) + ridge + length * bend
            if abs(slope) <= enough:
                break
            curve = _dot(xp.sum(P * along * along, axis=1) - mean * mean, self._weight) + bend
            low, high = (length, high) if slope < 0 else (low, length)
            length = min(length - slope / curve if curve > 0 else np.inf, 10 * length)
            if not low < length < high:
                length = (low + high) / 2
        return length

    def _scores_of(self, W: Any) -> Any:
        return self._rows.times(W[:, :-1]) + W[:, -1]

    def _loss(self, W: Any, scores: Any) -> tuple[float, Any]:
        """The mean log-loss, and the gradient of the penalised loss."""
        xp, P = namespace(W), softmax(scores)
        probability = at_least(xp.sum(P * self._own, axis=1), 1e-30)
        residual = (P - self._own) * self._weight[:, None]
        gradient = xp.concat([self._rows.sums(residual), xp.sum(residual, axis=0)[:, None]], axis=1)
        return -_dot(xp.log(probability), self._weight), gradient + self._penalty * W


def _dot(a: Any, b: Any) -> float:
    xp = namespace(a)
    return float(xp.reshape(a, (-1,)) @ xp.reshape(b, (-1,)))
