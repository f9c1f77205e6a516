r"""The small quadratic problem behind a bundle of cuts: minimise ``1/2 x'Gx - c'x`` over the simplex.

An active-set method that starts where the last one ended. On its support ``S`` the minimiser is a linear system, kept
factorised: on the simplex ``x' 1 1' x = 1``, so ``M = G + shift 1 1'`` may stand for ``G``, and ``M_SS`` is positive
definite whenever the cuts of the support are affinely independent. One more cut is one more row of the Cholesky factor;
one less is a sweep of rotations; both cost ``O(|S|^2)``.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from polyplane.kernels._jit import kernel

#: A cut whose pivot falls below this share of its diagonal is an affine combination of the support.
DEPENDENT = 1e-12


class Quadratic(NamedTuple):
    """What to minimise."""

    gram: np.ndarray  # G
    linear: np.ndarray  # c
    shift: float


class Iterate(NamedTuple):
    """Where the method is; the arrays may be longer than needed."""

    x: np.ndarray
    support: np.ndarray  # the indices of the positive entries, in the order of the factor
    factor: np.ndarray  # lower triangle L with M_SS = L L'
    work: np.ndarray  # (3, capacity)


@njit(fastmath={"reassoc", "contract"})
def _dot(a: np.ndarray, b: np.ndarray, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@kernel
def _forward(factor: np.ndarray, size: int, v: np.ndarray) -> None:
    """``v <- L^-1 v``."""
    for i in range(size):
        v[i] = (v[i] - _dot(factor[i], v, i)) / factor[i, i]


@kernel
def _backward(factor: np.ndarray, size: int, v: np.ndarray) -> None:
    """``v <- L^-T v``, row by row of L."""
    for i in range(size - 1, -1, -1):
        v[i] /= factor[i, i]
        for j in range(i):
            v[j] -= factor[i, j] * v[i]


@kernel
def _append(problem: Quadratic, at: Iterate, size: int, j: int) -> float:
    """Write row `size` of the factor for cut `j`; return its pivot as a share of the diagonal."""
    row, diagonal = at.factor[size], problem.gram[j, j] + problem.shift
    for i in range(size):
        row[i] = problem.gram[j, at.support[i]] + problem.shift
    _forward(at.factor, size, row)
    pivot = diagonal - _dot(row, row, size)
    row[size] = np.sqrt(max(pivot, DEPENDENT * diagonal))
    at.support[size] = j
    return pivot / diagonal


@kernel
def _remove(at: Iterate, size: int, position: int) -> None:
    """Take one cut out of the support and rotate its row out of the factor."""
    factor = at.factor
    at.x[at.support[position]] = 0.0
    for i in range(position, size - 1):
        at.support[i] = at.support[i + 1]
        for j in range(i + 2):
            factor[i, j] = factor[i + 1, j]
    for i in range(position, size - 1):
        length = np.hypot(factor[i, i], factor[i, i + 1])
        cosine, sine = factor[i, i] / length, factor[i, i + 1] / length
        for k in range(i, size - 1):
            left, right = factor[k, i], factor[k, i + 1]
            factor[k, i] = cosine * left + sine * right
            factor[k, i + 1] = cosine * right - sine * left


@kernel
def _aim(problem: Quadratic, at: Iterate, size: int, aim: np.ndarray, ones: np.ndarray) -> None:
    """The minimiser on the affine hull of the support: ``M^-1 (c - level 1)`` with the level that makes it sum to 1."""
    for i in range(size):
        aim[i], ones[i] = problem.linear[at.support[i]], 1.0
    _forward(at.factor, size, aim)
    _forward(at.factor, size, ones)
    _backward(at.factor, size, aim)
    _backward(at.factor, size, ones)
    level = (aim[:size].sum() - 1.0) / ones[:size].sum()
    for i in range(size):
        aim[i] -= level * ones[i]


@kernel
def _walk(at: Iterate, size: int, direction: np.ndarray, furthest: float) -> int:
    """Go along `direction` up to the first entry that would turn negative; return its position, -1 for none."""
    step, blocking = furthest, -1
    for i in range(size):
        if direction[i] < 0.0 and at.x[at.support[i]] < -step * direction[i]:
            step, blocking = -at.x[at.support[i]] / direction[i], i
    for i in range(size):
        at.x[at.support[i]] += step * direction[i]
    return blocking


@kernel
def _settle(problem: Quadratic, at: Iterate, size: int) -> int:
    """Minimise over the support, which may shrink; return its new size."""
    while True:
        direction, ones = at.work[0], at.work[1]
        _aim(problem, at, size, direction, ones)
        for i in range(size):
            direction[i] -= at.x[at.support[i]]
        blocking = _walk(at, size, direction, 1.0)
        if blocking < 0:
            return size
        _remove(at, size, blocking)
        size -= 1


@kernel
def _most_wanted(problem: Quadratic, at: Iterate, size: int) -> tuple[int, float]:
    """The cut along which the objective falls fastest, and by how much it lies below the level of the support."""
    n = problem.linear.shape[0]
    slope = at.work[2]
    for j in range(n):
        slope[j] = -problem.linear[j]
    for i in range(size):
        row, x = problem.gram[at.support[i]], at.x[at.support[i]]
        for j in range(n):
            slope[j] += row[j] * x
    level, best = 0.0, 0
    for i in range(size):
        level += slope[at.support[i]] * at.x[at.support[i]]
    for j in range(n):
        if slope[j] < slope[best]:
            best = j
    return best, level - slope[best]


@kernel
def _make_room(problem: Quadratic, at: Iterate, size: int, j: int) -> int:
    """Let in a cut that depends on the support: it replaces the first one that it drives out; return the new size."""
    direction = at.work[0]
    for i in range(size):
        direction[i] = -at.factor[size, i]
    _backward(at.factor, size, direction)
    scale = -direction[:size].sum()  # 1 but for rounding
    before = at.x[at.support[:size]].sum()
    for i in range(size):
        direction[i] /= scale
    blocking = _walk(at, size, direction, np.inf)
    if blocking < 0:
        return size
    at.x[j] = before - at.x[at.support[:size]].sum()
    _remove(at, size, blocking)
    _append(problem, at, size - 1, j)
    return size


@kernel
def factorise(problem: Quadratic, at: Iterate, size: int) -> None:
    """Make the factor of the support afresh: for another shift, and against rounding errors."""
    for i in range(size):
        _append(problem, at, i, at.support[i])


@kernel
def minimise(problem: Quadratic, at: Iterate, size: int, tol: float, max_pivots: int) -> Any:
    """Go on from `at` until the objective is within `tol` of its minimum; return the size of the support.

    The bound is the one of Frank and Wolfe: the level of the slopes on the support less the smallest slope.
    """
    size = _settle(problem, at, size)
    for _ in range(max_pivots):
        j, excess = _most_wanted(problem, at, size)
        if excess <= tol or at.x[j] > 0.0 or size == problem.linear.shape[0]:  # when all are in, none can be missing
            break
        if _append(problem, at, size, j) > DEPENDENT:
            size += 1
        else:
            size = _make_room(problem, at, size, j)
        size = _settle(problem, at, size)
    return size
