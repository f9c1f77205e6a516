r"""The small quadratic program of the cutting-plane method: minimise ``1/2 x'Gx - c'x`` over the simplex.

An active-set method with warm starts. On its support ``S`` the minimiser is the solution of a linear system, whose
Cholesky factor is updated: on the simplex ``x' 1 1' x = 1``, so ``G`` can be replaced by ``M = G + shift 1 1'``, and
``M_SS`` is positive definite if the cuts of the support are affinely independent. Adding a cut appends a row to the
Cholesky factor; removing one needs a sweep of rotations; both cost ``O(|S|^2)``.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import inlined_part, kernel, part, summing_part
from polyplane.kernels.rows import borrowed

#: A cut whose pivot is smaller, relative to its diagonal, is an affine combination of the support.
DEPENDENT = 1e-12


class Quadratic(NamedTuple):
    """The objective."""

    gram: np.ndarray  # G
    linear: np.ndarray  # c
    shift: float


class Iterate(NamedTuple):
    """The current iterate; the arrays may be longer than needed."""

    x: np.ndarray
    support: np.ndarray  # the indices of the positive entries, in the order of the factor
    factor: np.ndarray  # lower triangle L with M_SS = L L'
    work: np.ndarray  # (3, capacity)


@summing_part
def _dot(a: np.ndarray, b: np.ndarray, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@part
def _forward(factor: np.ndarray, size: int, v: np.ndarray) -> None:
    """``v <- L^-1 v``."""
    for i in range(size):
        v[i] = (v[i] - _dot(factor[i], v, i)) / factor[i, i]


@part
def _backward(factor: np.ndarray, size: int, v: np.ndarray) -> None:
    """``v <- L^-T v``, row by row of L."""
    for i in range(size - 1, -1, -1):
        v[i] /= factor[i, i]
        for j in range(i):
            v[j] -= factor[i, j] * v[i]


@part
def _append(gram: np.ndarray, shift: float, support: np.ndarray, factor: np.ndarray, size: int, j: int) -> float:
    """Write row `size` of the factor for cut `j`; return its pivot relative to the diagonal."""
    row, diagonal = factor[size], gram[j, j] + shift
    for i in range(size):
        row[i] = gram[j, support[i]] + shift
    _forward(factor, size, row)
    pivot, least = diagonal - _dot(row, row, size), DEPENDENT * diagonal
    row[size] = np.sqrt(pivot if pivot > least else least)
    support[size] = j
    return pivot / diagonal


@part
def _remove(x: np.ndarray, support: np.ndarray, factor: np.ndarray, size: int, position: int) -> None:
    """Remove one cut from the support and from the factor."""
    x[support[position]] = 0.0
    for i in range(position, size - 1):
        support[i] = support[i + 1]
        for j in range(i + 2):
            factor[i, j] = factor[i + 1, j]
    for i in range(position, size - 1):
        length = np.hypot(factor[i, i], factor[i, i + 1])
        cosine, sine = factor[i, i] / length, factor[i, i + 1] / length
        for k in range(i, size - 1):
            left, right = factor[k, i], factor[k, i + 1]
            factor[k, i] = cosine * left + sine * right
            factor[k, i + 1] = cosine * right - sine * left


@inlined_part
def _aim(linear: np.ndarray, support: np.ndarray, factor: np.ndarray, size: int, work: np.ndarray) -> None:
    """Compute the minimiser on the affine hull of the support: ``M^-1 (c - level 1)``, whose entries sum to 1."""
    for i in range(size):
        work[0, i], work[1, i] = linear[support[i]], 1.0
    for v in range(2):
        _forward(factor, size, work[v])
        _backward(factor, size, work[v])
    total, ones = 0.0, 0.0
    for i in range(size):
        total += work[0, i]
        ones += work[1, i]
    level = (total - 1.0) / ones
    for i in range(size):
        work[0, i] -= level * work[1, i]


@part
def _walk(x: np.ndarray, support: np.ndarray, size: int, direction: np.ndarray, furthest: float) -> int:
    """Move along `direction` up to the first entry that would become negative; return its position, -1 for none."""
    step, blocking = furthest, -1
    for i in range(size):
        if direction[i] < 0.0 and x[support[i]] < -step * direction[i]:
            step, blocking = -x[support[i]] / direction[i], i
    for i in range(size):
        x[support[i]] += step * direction[i]
    return blocking


@inlined_part
def _minimise_over_support(
    linear: np.ndarray, x: np.ndarray, support: np.ndarray, factor: np.ndarray, size: int, work: np.ndarray
) -> int:
    """Minimise over the support, which may shrink; return its new size."""
    while True:
        _aim(linear, support, factor, size, work)
        for i in range(size):
            work[0, i] -= x[support[i]]
        blocking = _walk(x, support, size, work[0], 1.0)
        if blocking < 0:
            return size
        _remove(x, support, factor, size, blocking)
        size -= 1


@inlined_part
def _most_wanted(
    gram: np.ndarray, linear: np.ndarray, x: np.ndarray, support: np.ndarray, size: int, slope: np.ndarray
) -> tuple[int, float]:
    """Return the cut with the steepest descent, and by how much its slope lies below the level of the support."""
    n = linear.shape[0]
    for j in range(n):
        slope[j] = -linear[j]
    for i in range(size):
        row, share = gram[support[i]], x[support[i]]
        for j in range(n):
            slope[j] += row[j] * share
    level, best = 0.0, 0
    for i in range(size):
        level += slope[support[i]] * x[support[i]]
    for j in range(n):
        if slope[j] < slope[best]:
            best = j
    return best, level - slope[best]


@inlined_part
def _make_room(x: np.ndarray, support: np.ndarray, factor: np.ndarray, size: int, j: int, direction: np.ndarray) -> int:
    """Add a cut that depends on the support, until it replaces another; return the position of that, -1 for none."""
    for i in range(size):
        direction[i] = -factor[size, i]
    _backward(factor, size, direction)
    scale, before, after = 0.0, 0.0, 0.0
    for i in range(size):
        scale -= direction[i]  # 1 up to rounding
        before += x[support[i]]
    for i in range(size):
        direction[i] /= scale
    blocking = _walk(x, support, size, direction, np.inf)
    if blocking >= 0:
        for i in range(size):
            after += x[support[i]]
        x[j] = before - after
        _remove(x, support, factor, size, blocking)
    return blocking


@kernel
def minimise(problem: Quadratic, at: Iterate, size: int, afresh: bool, tol: float, max_pivots: int) -> Any:
    """Continue from `at` until the objective is within `tol` of its minimum; return the size of the support.

    The bound is the Frank-Wolfe gap: the level of the slopes on the support minus the smallest slope. With `afresh`,
    the factor of the support is computed again first: for a new shift, and to remove rounding errors.
    """
    problem, at = borrowed((problem, at))
    gram, linear, shift = problem.gram, problem.linear, problem.shift
    x, support, factor, work = at.x, at.support, at.factor, at.work
    for i in range(size if afresh else 0):
        _append(gram, shift, support, factor, i, support[i])
    for pivot in range(max_pivots + 1):
        size = _minimise_over_support(linear, x, support, factor, size, work)
        j, excess = _most_wanted(gram, linear, x, support, size, work[2])
        # If the support contains all cuts, no cut can be missing.
        if pivot == max_pivots or excess <= tol or x[j] > 0.0 or size == linear.shape[0]:
            break
        if _append(gram, shift, support, factor, size, j) > DEPENDENT:
            size += 1
        elif _make_room(x, support, factor, size, j, work[0]) >= 0:
            _append(gram, shift, support, factor, size - 1, j)
    return size
