"""Convex Polytope Machine (Kantchelian et al., 2014), Algorithms 1 and 2, as printed but for the order of shrinking.

The weights are scaled at every step and the entropy is counted anew at every call, as in the paper. Shrinking comes
before the addition (Pegasos order).
"""

import numpy as np


def first_best(scores, among=None):
    """The lowest index among the best scores; scaling the weights at every step leaves rounding errors in ties."""
    among = range(len(scores)) if among is None else among
    best = max(scores[k] for k in among)
    return next(k for k in among if scores[k] > best - 1e-9 * max(1.0, abs(best)))


def entropy(counts):
    """Entropy of the shares of the planes, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return -(shares * np.log(shares)).sum()


class Assign:
    """ASSIGN (Algorithm 2): UNADJ maps each positive row to the plane that it would naturally go to."""

    def __init__(self, n_planes, min_entropy):
        self.n_planes = n_planes
        self.min_entropy = min_entropy
        self.unadj = {}

    def counts(self, row=None, plane=None):
        unadj = self.unadj if row is None else {**self.unadj, row: plane}
        return np.bincount(list(unadj.values()), minlength=self.n_planes)

    def __call__(self, scores, row):
        natural = chosen = first_best(scores)
        even_enough = entropy(self.counts(row, natural)) >= self.min_entropy
        if len(self.unadj) >= 5 * self.n_planes and not even_enough:
            current = entropy(self.counts())
            rising = [k for k in range(self.n_planes) if entropy(self.counts(row, k)) > current + 1e-12]
            if rising:
                chosen = first_best(scores, rising)
        self.unadj[row] = natural
        return chosen


def sgd_train(X, positive, orders, n_planes, alpha, min_entropy=0.0, weight=None):
    """SGDTRAIN (Algorithm 1): the planes of one polytope that has the rows `positive` outside, and the losses met.

    `X` carries the constant feature; `orders` holds one order of visits per epoch; `min_entropy` is in nats.
    """
    weight = np.ones(len(X)) if weight is None else weight
    W = np.zeros((n_planes, X.shape[1]))
    assign, losses = Assign(n_planes, min_entropy), []
    for t, i in enumerate(np.concatenate(orders), start=1):
        eta = 1.0 / (alpha * t)
        scores = W @ X[i]
        W *= 1.0 - eta * alpha
        violations = np.maximum(1 - scores.max() if positive[i] else 1 + scores, 0.0)
        losses.append(weight[i] * violations.sum())
        if not positive[i]:
            for k in range(n_planes):
                if scores[k] > -1:
                    W[k] -= eta * weight[i] * X[i]
        elif scores.max() < 1:
            z = assign(scores, i) if min_entropy > 0 else first_best(scores)
            W[z] += eta * weight[i] * X[i]
    return W, losses
