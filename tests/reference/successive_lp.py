"""PC-SLP: polyhedral separability through successive linear programs (Astorino and Gaudioso, 2002), row by row.

Their article says: the error of h planes is the mean over the rows inside of the largest violation of any plane at
margin 1, plus the mean over the rows outside of the least. It is piecewise linear, neither convex nor concave, and a
descent finds each direction by a linear program. As papers 001 and 003 retell it, each program knows which plane is
responsible for each row outside, and where several may be, there is a program for each possibility.

Written from that: at the current planes the least violation of a row outside is replaced by that of its responsible
plane, which is linear; a linear program finds the displacement D, each number of it within the radius, that lowers the
error so replaced the most. The radius doubles when D reaches it. `inside` and `outside` carry the constant feature,
`a` and `b` are the costs of their rows; a ridge on the absolute weights, which spares offsets, is not in the article.
"""

from itertools import islice, product

import numpy as np
from scipy.optimize import linprog


def error(inside, outside, W, a, b, alpha=0.0):
    """The error function: row i inside costs ``a[i]`` times its largest violation, row j outside the least."""
    violations_inside = [max(0, max(1 - w @ x for w in W)) for x in inside]
    violations_outside = [max(0, min(1 + w @ x for w in W)) for x in outside]
    return np.dot(a, violations_inside) + np.dot(b, violations_outside) + alpha * np.abs(W[:, :-1]).sum()


def balanced(inside, outside):
    """The costs of the article: a mean for each class."""
    return np.full(len(inside), 1 / len(inside)), np.full(len(outside), 1 / len(outside))


def replaced_error(inside, outside, W, owner, a, b, alpha=0.0):
    """The error with the violation of each row outside replaced by that of the plane that is responsible."""
    return error(inside, outside[:0], W, a, b[:0], alpha) + sum(
        c * max(0, 1 + W[k] @ x) for x, k, c in zip(outside, owner, b, strict=True)
    )


def direction(inside, outside, W, owner, a, b, radius, alpha=0.0):
    """The displacement found by one program, and the error that it promises at most."""
    n_planes, size = W.shape
    n_free, n_in, n_out = W.size, len(inside), len(outside)
    n = 2 * n_free + n_in + n_out  # displacements, absolute values of the moved weights, violations

    def place(k, x):
        row = np.zeros(n)
        row[k * size : (k + 1) * size] = x
        return row

    constraints, limits = [], []
    for i, x in enumerate(inside):
        for k in range(n_planes):  # 1 - (w + d) x <= violation
            row = place(k, -x)
            row[2 * n_free + i] = -1
            constraints.append(row)
            limits.append(W[k] @ x - 1)
    for j, x in enumerate(outside):  # 1 + (w + d) x <= violation, of the plane that is responsible
        row = place(owner[j], x)
        row[2 * n_free + n_in + j] = -1
        constraints.append(row)
        limits.append(-1 - W[owner[j]] @ x)
    for at in range(n_free):  # |w + d| <= its absolute value, which costs nothing for an offset
        for sign in (1, -1):
            row = np.zeros(n)
            row[at], row[n_free + at] = sign, -1
            constraints.append(row)
            limits.append(-sign * W.ravel()[at])
    weights = np.tile(np.append(np.full(size - 1, alpha), 0.0), n_planes)
    cost = np.concatenate([np.zeros(n_free), weights, a, b])
    bounds = [(-radius, radius)] * n_free + [(0, None)] * (n - n_free)
    found = linprog(cost, np.array(constraints), np.array(limits), bounds=bounds)
    return found.x[:n_free].reshape(W.shape), found.fun


def possibilities(outside, W):
    """Choices of the plane that is responsible for each row outside: of those that share the least violation; eight."""
    shared = []
    for x in outside:
        scores = W @ x
        lowest = [k for k in range(len(W)) if scores[k] <= scores.min() + 1e-9 * (1 + abs(scores.min()))]
        shared.append(lowest if scores.min() > -1 - 1e-9 else lowest[:1])
    return islice(product(*shared), 8)


def descend(inside, outside, W, a, b, radius, alpha=0.0, max_steps=50, tol=1e-6):
    """The planes after each step, the start first."""
    path = [W]
    for _ in range(max_steps):
        now = error(inside, outside, W, a, b, alpha)
        for owner in possibilities(outside, W):
            D, _ = direction(inside, outside, W, owner, a, b, radius, alpha)
            if error(inside, outside, W + D, a, b, alpha) < (1 - tol) * now:
                break
        else:
            return path
        W = W + D
        radius = 2 * radius if np.abs(D).max() > 0.99 * radius else radius
        path.append(W)
    return path
