"""Theorem 5 of the PLUME paper, row by row: the bound of the cross-entropy on new rows, as printed and as proven."""

import math

import numpy as np


def posterior(W, x, y, gamma):
    """Equations 3 and 4: the probability of the label y, -1 or 1, of a row that ends in a 1."""
    gates = [math.exp(-gamma * float(w @ x)) for w in W]
    return sum(g / sum(gates) / (1.0 + math.exp(-y * float(w @ x))) for g, w in zip(gates, W, strict=True))


def theorem_5(W, b, X, y, gamma, delta):
    """The bound for planes W x + b, where the class y = 1 is inside: as printed, and as its proof has it.

    Equation 12 has the factor 2 before the capacity term, which the printed c_1 lacks. The proof leaves the offsets out
    of its suprema, so that lengths and radius are those without them.
    """
    n_planes, n_rows = len(W), len(X)
    lengths, radius = [math.sqrt(float(w @ w)) for w in W], max(math.sqrt(float(x @ x)) for x in X)
    with_offsets, ending_in_1 = np.column_stack([W, b]), np.column_stack([X, np.ones(n_rows)])
    losses = [-math.log(posterior(with_offsets, x, label, gamma)) for x, label in zip(ending_in_1, y, strict=True)]
    lipschitz = (1.0 + math.exp(max(lengths) * radius)) * math.exp(gamma * (max(lengths) + min(lengths)) * radius)
    c_1 = lipschitz * (3.0 * math.sqrt(n_planes - 1) / math.sqrt(2.0) + 1.0)
    c_2 = 3.0 * lipschitz
    capacity = c_1 * sum(length * radius / math.sqrt(n_rows) for length in lengths)
    rest = sum(losses) / n_rows + c_2 * math.sqrt(math.log(2.0 / delta) / (2.0 * n_rows))
    return rest + capacity, rest + 2.0 * capacity
