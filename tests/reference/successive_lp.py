"""PC-SLP (after Astorino and Gaudioso, 2002): one linear program for a given assignment of the rows outside, dense.

`X` carries the constant feature.
"""

import numpy as np
from scipy.optimize import linprog


def solve(inside, outside, owner, n_planes):
    """The least mean slack inside plus mean slack outside, when row `j` outside is kept out by plane ``owner[j]``."""
    size, n_slacks = inside.shape[1], len(inside) + len(outside)
    constraints = []
    for i, x in enumerate(inside):
        for k in range(n_planes):
            row = np.zeros(n_planes * size + n_slacks)
            row[k * size : (k + 1) * size] = -x
            row[n_planes * size + i] = -1
            constraints.append(row)
    for j, x in enumerate(outside):
        row = np.zeros(n_planes * size + n_slacks)
        row[owner[j] * size : (owner[j] + 1) * size] = x
        row[n_planes * size + len(inside) + j] = -1
        constraints.append(row)
    cost = [np.zeros(n_planes * size), np.full(len(inside), 1 / len(inside)), np.full(len(outside), 1 / len(outside))]
    free, slack = [(None, None)] * (n_planes * size), [(0, None)] * n_slacks
    found = linprog(np.concatenate(cost), np.array(constraints), -np.ones(len(constraints)), bounds=free + slack)
    return found.fun, found.x[: n_planes * size].reshape(n_planes, size)


def objective(inside, outside, W):
    """The same two means for given planes, each row outside at its lowest plane."""
    slack_inside = np.maximum(0, 1 - (inside @ W.T).min(axis=1))
    slack_outside = np.maximum(0, 1 + (outside @ W.T).min(axis=1))
    return slack_inside.mean() + slack_outside.mean()
