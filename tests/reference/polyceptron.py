"""Polyceptron (Manwani and Sastry), Algorithms 1 and 2, with their misprints corrected.

The batch loop runs *while* the sum of the gradients' lengths is above its threshold (the print has it the other way
round), and sums over the *misclassified* rows of each plane (the print sums over all). `X` carries the constant
feature.
"""

import numpy as np


def lowest(x, W):
    """The lowest plane of a row, the first of equals, and its score."""
    scores = [w @ x for w in W]
    r = int(np.argmin(scores))
    return r, scores[r]


def gradient(X, y, W, weight):
    total = np.zeros_like(W)
    for x, label, c in zip(X, y, weight, strict=True):
        r, h = lowest(x, W)
        if label * h <= 0:
            total[r] += c * label * x
    return total


def batch(X, y, W, eta, threshold, max_steps, weight):
    """Algorithm 1; the planes after each step, the start first."""
    path = [W]
    for _ in range(max_steps):
        g = gradient(X, y, W, weight)
        if sum(np.linalg.norm(row) for row in g) <= threshold:
            break
        W = W + eta * g
        path.append(W)
    return path


def online(X, y, W, eta, orders, weight):
    """Algorithm 2; the planes after each pass, the start first."""
    path = [W]
    for order in orders:
        W = W.copy()
        for i in order:
            r, h = lowest(X[i], W)
            if y[i] * h <= 0:
                W[r] += eta * weight[i] * y[i] * X[i]
        path.append(W)
    return path


def errors(X, y, W, weight):
    """Weighted share of the rows on the wrong side."""
    return sum(c for x, label, c in zip(X, y, weight, strict=True) if label * lowest(x, W)[1] <= 0) / sum(weight)
