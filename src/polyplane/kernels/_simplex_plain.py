"""The inner loops of `simplex_qp` by NumPy, for where Numba is not installed."""

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular


def dot(a: np.ndarray, b: np.ndarray, n: int) -> float:
    """Sum of the first `n` products."""
    return float(a[:n] @ b[:n])


def forward(factor: np.ndarray, size: int, v: np.ndarray) -> None:
    """``v <- L^-1 v``."""
    if size:
        v[:size] = solve_triangular(factor[:size, :size], v[:size], lower=True, check_finite=False)


def backward(factor: np.ndarray, size: int, v: np.ndarray) -> None:
    """``v <- L^-T v``."""
    if size:
        v[:size] = solve_triangular(factor[:size, :size], v[:size], lower=True, trans=1, check_finite=False)


def remove(at: Any, size: int, position: int) -> None:
    """Take one cut out of the support and rotate its row out of the factor."""
    factor = at.factor
    at.x[at.support[position]] = 0.0
    at.support[position : size - 1] = at.support[position + 1 : size].copy()
    factor[position : size - 1, :size] = factor[position + 1 : size, :size].copy()
    for i in range(position, size - 1):
        length = np.hypot(factor[i, i], factor[i, i + 1])
        cosine, sine = factor[i, i] / length, factor[i, i + 1] / length
        left, right = factor[i : size - 1, i].copy(), factor[i : size - 1, i + 1].copy()
        factor[i : size - 1, i] = cosine * left + sine * right
        factor[i : size - 1, i + 1] = cosine * right - sine * left


def most_wanted(problem: Any, at: Any, size: int) -> tuple[int, float]:
    """The cut along which the objective falls fastest, and by how much it lies below the level of the support."""
    used = at.support[:size]
    slope = at.x[used] @ problem.gram[used] - problem.linear
    best = int(slope.argmin())
    return best, float(slope[used] @ at.x[used] - slope[best])
