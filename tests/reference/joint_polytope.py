"""The joint convex polytope machine: one objective over the planes of all classes, by stochastic gradient descent.

Each class owns some planes and scores the largest of its planes' scores. The loss of a row is
``[1 + best score of another class - best score of its own class]_+``, beside ``alpha / 2`` times the squares of all
planes. Weights are scaled at every step, as an algorithm box would have it, shrinking before the addition.
"""

import numpy as np

from tests.reference.convex_polytope import Assign, first_best


def joint_train(X, y, orders, planes, alpha, t=0, min_entropy=0.0, weight=None):
    """The planes, shape (n_classes, n_planes, n_features), after the visits of `orders`, and the losses met.

    `X` carries the constant feature; `t` visits count as made when training begins with `planes`; `min_entropy` is in
    nats, and kept by the assignment of Algorithm 2 of the paper in each class.
    """
    weight = np.ones(len(X)) if weight is None else weight
    W = np.array(planes, dtype=float)
    assign = [Assign(W.shape[1], min_entropy) for _ in W]
    losses = []
    for i in np.concatenate(orders):
        t += 1
        eta, c = 1.0 / (alpha * t), y[i]
        scores = W @ X[i]
        rivals = np.where(np.arange(len(W))[:, None] == c, -np.inf, scores).ravel()
        rival = np.unravel_index(first_best(rivals), scores.shape)
        loss = 1.0 - (scores[c].max() - scores[rival])
        W *= 1.0 - eta * alpha
        if loss > 0:
            own = assign[c](scores[c], i) if min_entropy > 0 else first_best(scores[c])
            W[c, own] += eta * weight[i] * X[i]
            W[rival] -= eta * weight[i] * X[i]
        losses.append(weight[i] * max(loss, 0.0))
    return W, losses
