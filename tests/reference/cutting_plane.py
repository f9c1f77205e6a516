"""CPA, OCA-E and OCA-T (Arnosti and Kalita), Algorithms 1 to 4, on the mean loss as in equations (1) and (2).

The figures of the paper belong to C on the sum of the losses: what its text calls C = 1 is ``C = n_rows`` here.

Two corrections: the cut point is ``(1 - lambda) w_b + lambda w_t`` (the second lambda is missing in print), and the
best point seen bounds the optimum from above, as neither CPA nor the three-point search lowers the objective each time.
"""

from itertools import pairwise

import numpy as np


class TwoClasses:
    """The mean hinge loss of signs `y`, and its cuts."""

    def __init__(self, X, y):
        self.X, self.y, self.shape = X, y, X.shape[1:]

    def lines(self, w):
        """One column per linear piece of each row's loss."""
        return np.column_stack([np.zeros(len(self.y)), 1 - self.y * (self.X @ w)])

    def risk(self, w):
        return self.lines(w).max(axis=1).mean()

    def cut(self, w):
        """Equations (6) and (4)."""
        violated = self.y * (self.X @ w) <= 1
        a = -(violated * self.y) @ self.X / len(self.y)
        return a, self.risk(w) - (a * w).sum()


class ManyClasses:
    """The mean loss of Crammer and Singer, and its cuts."""

    def __init__(self, X, y):
        self.X, self.y, self.shape = X, y, (y.max() + 1, X.shape[1])

    def lines(self, w):
        scores = self.X @ w.T
        own = scores[np.arange(len(self.y)), self.y]
        return scores - own[:, None] + (np.arange(self.shape[0]) != self.y[:, None])

    def risk(self, w):
        return self.lines(w).max(axis=1).mean()

    def cut(self, w):
        lines = self.lines(w)
        lines[np.arange(len(self.y)), self.y] = -np.inf
        a = np.zeros(self.shape)
        for x, own, other, loss in zip(self.X, self.y, lines.argmax(axis=1), lines.max(axis=1), strict=True):
            if loss >= 0:
                a[other] += x / len(self.y)
                a[own] -= x / len(self.y)
        return a, self.risk(w) - (a * w).sum()


def reduced_problem(cuts, C, shape):
    """Problem (3), by its dual: shift weight between two cuts until no shift helps."""
    A = np.array([np.zeros(shape).ravel()] + [a.ravel() for a, _ in cuts])
    b = np.array([0.0] + [b for _, b in cuts])
    alpha = np.eye(len(b))[0] * C
    H = A @ A.T
    for _ in range(200_000):
        slope = H @ alpha - b
        i, j = slope.argmin(), np.where(alpha > 0, slope, -np.inf).argmax()
        if slope[j] - slope[i] < 1e-13:
            break
        curvature = H[i, i] + H[j, j] - 2 * H[i, j]
        step = min(alpha[j], (slope[j] - slope[i]) / curvature) if curvature > 0 else alpha[j]
        alpha[i] += step
        alpha[j] -= step
    return -(alpha @ A).reshape(shape), alpha @ b - 0.5 * alpha @ H @ alpha


def exact(problem, C, here, there, last):
    """Algorithm 3: between thresholds f is a parabola; go from one to the next."""
    start, rise = problem.lines(here), problem.lines(there) - problem.lines(here)
    along = there - here
    A, B = (along**2).sum(), (here * along).sum()
    thresholds = []
    for k in range(start.shape[1]):
        for j in range(k):
            with np.errstate(divide="ignore", invalid="ignore"):
                thresholds.extend((start[:, j] - start[:, k]) / (rise[:, k] - rise[:, j]))
    thresholds = np.array(thresholds)
    inner = np.unique(thresholds[np.isfinite(thresholds) & (thresholds > 0)])
    ends = np.concatenate([[0.0], inner, [inner.max(initial=0.0) + 1e6]])
    for low, high in pairwise(ends):
        middle = (start + rise * (low + high) / 2).argmax(axis=1)
        slope = B + C * rise[np.arange(len(rise)), middle].mean()
        if A * low + slope >= 0:
            return low
        if A * high + slope >= 0:
            return -slope / A
    raise AssertionError("f grows without bound")


def non_greedy(problem, C, here, there, last):
    """Algorithm 3, but never mu = 0 twice in a row (section 4.2): then as far as the first window of Algorithm 4."""
    mu = exact(problem, C, here, there, last)
    return 0.02 if max(mu, last) < 1e-6 else mu


def three_point(problem, C, here, there, last):
    """Algorithm 4."""

    def f(mu):
        w = mu * there + (1 - mu) * here
        return (w**2).sum() / 2 + C * problem.risk(w)

    delta = 0.02
    low, mid, high = last - delta, last, last + delta
    while f(high) < f(mid):
        delta *= 2
        low, mid, high = mid, high, high + delta
    while f(low) < f(mid):
        delta *= 2
        low, mid, high = low - delta, low, mid
    return mid


def none(problem, C, here, there, last):
    """CPA."""
    return 1.0


def optimise(problem, C, search, n_iter, cut_point=0.1):
    """Algorithms 1 and 2; return after each iteration the best objective and the lower bound, and the best point."""
    best = here = np.zeros(problem.shape)
    cuts, mu, primal, history = [], 1.0, np.inf, []
    for _ in range(n_iter):
        there, dual = reduced_problem(cuts, C, problem.shape)
        mu = search(problem, C, here, there, mu) if cuts else mu
        here = mu * there + (1 - mu) * here
        cuts.append(problem.cut((1 - cut_point) * here + cut_point * there))
        objective = (here**2).sum() / 2 + C * problem.risk(here)
        if objective < primal:
            best, primal = here, objective
        history.append((primal, dual))
    return np.array(history), best
