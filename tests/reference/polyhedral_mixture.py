"""PLUME (Shah, Sastry and Manwani, 2019), Algorithm 1, and its hard limit SPLA1, row by row and plane by plane.

`X` carries the constant feature, `y` is +1 inside and -1 outside, `W` holds one plane per row. Likelihood and Q are
means over the rows less a ridge that spares the offset. The step is searched along the likelihood: it grants every step
that Q grants, and it is all that hard gating can promise.

Misprints of the paper corrected: Newton and BFGS go along minus the inverse of the Hessian, which is negative definite
(equations 9 and 10 would go downhill), and the last term of the rank-two update has a step where the print has planes.
"""

import math

import numpy as np


def sigma(a):
    return 1 / (1 + math.exp(-a)) if a > -500 else math.exp(a)


def gate(x, W, gamma):
    """Equation (4); gamma = None: the lowest plane takes the row."""
    scores = W @ x
    if gamma is None:
        return np.eye(len(W))[scores.argmin()]
    g = np.exp(-gamma * (scores - scores.min()))
    return g / g.sum()


def expert(x, y, W):
    return np.array([sigma(y * w @ x) for w in W])


def responsibilities(X, y, W, gamma):
    """E-step, equation (6)."""
    joint = np.array([gate(x, W, gamma) * expert(x, label, W) for x, label in zip(X, y, strict=True)])
    return joint / joint.sum(axis=1, keepdims=True)


def ridge(W, alpha):
    return 0.5 * alpha * (W[:, :-1] ** 2).sum()


def log_likelihood(X, y, W, gamma, alpha=0.0):
    """Logarithm of equation (3)."""
    rows = [gate(x, W, gamma) @ expert(x, label, W) for x, label in zip(X, y, strict=True)]
    return np.mean([math.log(p) if p > 0 else -math.inf for p in rows]) - ridge(W, alpha)


def q(X, y, W, gamma, pi, alpha=0.0):
    """What the M-step raises: the expected logarithm of gate times expert."""
    rows = [p @ np.log(gate(x, W, gamma) * expert(x, label, W)) for x, label, p in zip(X, y, pi, strict=True)]
    return np.mean(rows) - ridge(W, alpha)


def q_gradient(X, y, W, gamma, pi, alpha=0.0):
    """Equation (8)."""
    gradient = np.zeros_like(W)
    for x, label, p in zip(X, y, pi, strict=True):
        g, s = gate(x, W, gamma), expert(x, label, W)
        for k in range(len(W)):
            gradient[k] += (-(gamma or 0.0) * (p[k] - g[k]) + label * p[k] * (1 - s[k])) * x
    gradient /= len(X)
    gradient[:, :-1] -= alpha * W[:, :-1]
    return gradient


def q_hessian(X, y, W, gamma, pi, alpha=0.0):
    """The blocks under equation (9)."""
    n_planes, size = W.shape
    H = np.zeros((n_planes, size, n_planes, size))
    for x, p in zip(X, pi, strict=True):
        g, square = gate(x, W, gamma), np.outer(x, x)
        for k in range(n_planes):
            s = sigma(W[k] @ x)
            H[k, :, k] -= (p[k] * s * (1 - s) + (gamma or 0.0) ** 2 * g[k] * (1 - g[k])) * square
            for r in range(n_planes):
                if r != k:
                    H[k, :, r] += (gamma or 0.0) ** 2 * g[k] * g[r] * square
    H /= len(X)
    for k in range(n_planes):
        H[k, :-1, k, :-1] -= alpha * np.eye(size - 1)
    return H.reshape(n_planes * size, n_planes * size)


def rank_two(B, moved, change):
    """The update before equation (10) of B, the inverse of minus the Hessian; `change` is the fall of the gradient."""
    curvature = moved @ change
    cross = B @ np.outer(change, moved) / curvature
    return B + (1 + change @ B @ change / curvature) * np.outer(moved, moved) / curvature - cross - cross.T


def fitting_identity(moved, change):
    """The multiple of the identity that fits a step (Nocedal and Wright, 6.20)."""
    return np.eye(len(moved)) * (moved @ change) / (change @ change)


def bfgs_inverse(pairs):
    """BFGS: the updates of all steps, of a matrix that fits the first."""
    B = fitting_identity(*pairs[0])
    for pair in pairs:
        B = rank_two(B, *pair)
    return B


def lbfgs_inverse(pairs):
    """L-BFGS (Nocedal, 1980), not in the paper: the updates of the last ten steps, of a matrix that fits the last."""
    B = fitting_identity(*pairs[-1])
    for pair in pairs[-10:]:
        B = rank_two(B, *pair)
    return B


INVERSES = {"bfgs": bfgs_inverse, "lbfgs": lbfgs_inverse}


def train(X, y, W, gamma, solver, n_steps, alpha=0.0):
    """Algorithm 1, for a number of steps; the planes after each, the start first."""
    path, pairs, last_step = [W], [], 1.0
    pi = responsibilities(X, y, W, gamma)
    gradient = q_gradient(X, y, W, gamma, pi, alpha)
    for _ in range(n_steps):
        direction, step = gradient.ravel(), 2 * last_step
        if solver == "newton":
            H = -q_hessian(X, y, W, gamma, pi, alpha)
            direction, step = np.linalg.solve(H + 1e-9 * H.diagonal().max() * np.eye(len(H)), direction), 1.0
        elif solver in INVERSES and pairs:
            direction, step = INVERSES[solver](pairs) @ direction, 1.0
        direction = direction.reshape(W.shape)
        now, slope = log_likelihood(X, y, W, gamma, alpha), (gradient * direction).sum()
        while log_likelihood(X, y, W + step * direction, gamma, alpha) < now + 1e-4 * step * slope:
            step /= 2
        if solver == "gradient" or (solver in INVERSES and not pairs):
            last_step = step
        moved, before = step * direction, gradient
        W = W + moved
        pi = responsibilities(X, y, W, gamma)
        gradient = q_gradient(X, y, W, gamma, pi, alpha)
        if (moved * (before - gradient)).sum() > 0:
            pairs.append((moved.ravel(), (before - gradient).ravel()))
        path.append(W)
    return path
