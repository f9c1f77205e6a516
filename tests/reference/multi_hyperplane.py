"""Multi-hyperplane machines: plain descent by the margin loss, and the log-loss of one row."""

import numpy as np


def train_margin(X, y, W, owner, eta, orders):
    """Stochastic gradient descent on the margin loss from the planes `W`, the step falling linearly from `eta` to 0."""
    W, total = W.copy(), sum(map(len, orders))
    for t, i in enumerate(np.concatenate(orders)):
        scores = W @ X[i]
        own = np.where(owner == y[i], scores, -np.inf).argmax()
        rival = np.where(owner == y[i], -np.inf, scores).argmax()
        if scores[own] - scores[rival] < 1:
            step = eta * (1 - t / total)
            W[own] += step * X[i]
            W[rival] -= step * X[i]
    return W


def log_loss(W, x, y):
    """Multi-class log-loss of one row: each class scores the log-sum-exp of its planes; W (n_classes, n_planes, d)."""
    scores = np.log(np.exp(W @ x).sum(axis=1))
    return np.log(np.exp(scores).sum()) - scores[y]
