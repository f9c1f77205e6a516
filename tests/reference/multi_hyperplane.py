"""Multi-hyperplane machines: plain descent by the margin loss, and the log-loss of one row."""

import numpy as np


def train_margin(X, y, W, owner, eta, orders, backoff=0, caution=0.3):
    """Stochastic gradient descent on the margin loss from the planes `W`, the step falling linearly from `eta` to 0.

    With back-off, a row whose margin has some slack is not visited for as many epochs as the slack would last, at most
    `backoff`, if each changed the margin by `caution` times the length of the row and the movement of the plane that
    moved most in the epoch before. Returns the planes, and how many visits were made.
    """
    W, total, t, visits = W.copy(), sum(map(len, orders)), 0, 0
    asleep, movement = np.zeros(len(X), dtype=int), np.inf
    for order in orders:
        before = W.copy()
        for i in order:
            step, t = eta * (1 - t / total), t + 1
            if asleep[i]:
                asleep[i] -= 1
                continue
            visits += 1
            scores = W @ X[i]
            own = np.where(owner == y[i], scores, -np.inf).argmax()
            rival = np.where(owner == y[i], -np.inf, scores).argmax()
            slack = scores[own] - scores[rival] - 1
            if slack < 0:
                W[own] += step * X[i]
                W[rival] -= step * X[i]
            elif movement > 0:
                asleep[i] = min(backoff, int(slack / (caution * np.linalg.norm(X[i]) * movement)))
        movement = np.linalg.norm(W - before, axis=1).max()
    return W, visits


def log_loss(W, x, y):
    """Multi-class log-loss of one row: each class scores the log-sum-exp of its planes; W (n_classes, n_planes, d)."""
    scores = np.log(np.exp(W @ x).sum(axis=1))
    return np.log(np.exp(scores).sum()) - scores[y]
