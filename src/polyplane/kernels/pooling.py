"""Class scores of many planes for rows of which few features are not zero."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import intrinsic, ir, kernel, part, summing_part, types
from polyplane.kernels.rows import PlaneSums, SparseRows, borrowed, scores

#: ln 2 as the sum of a number with few bits, whose multiples are exact, and the rest.
LN_2, REST_OF_LN_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: A number added to this one is rounded to a whole number, which the last bits of the sum then are.
WHOLE = 1.5 * 2.0**52


class PlaneBlocks(NamedTuple):
    """Planes in blocks that fit into the cache, the last one padded, and the classes of the members that own them."""

    coef: np.ndarray  # (n_blocks, n_features, planes of a block)
    intercept: np.ndarray  # (n_blocks, planes of a block)
    indptr: np.ndarray  # planes of each class in each member


@kernel
def log_sum_exp(rows: SparseRows, planes: PlaneBlocks, pooled: np.ndarray, sums: np.ndarray) -> None:
    """Compute the log-sum-exp of the scores of the planes of each class in each member, shape (n_rows, n_pools).

    The largest score so far of the planes of each class and the sum of the exponentials relative to it are updated
    block by block. `sums` has the same shape.
    """
    rows, planes = borrowed((rows, planes))
    indptr, size, found, nothing = planes.indptr, planes.coef.shape[2], np.empty(planes.coef.shape[2]), np.empty(0)
    pooled[:], sums[:] = -np.inf, 0.0
    first_pool = 0
    for block in range(len(planes.coef)):
        first, last = block * size, min((block + 1) * size, indptr[-1])
        while indptr[first_pool + 1] <= first:
            first_pool += 1
        own = PlaneSums(planes.coef[block], planes.intercept[block], 1.0, nothing)
        for i in range(len(pooled)):
            scores(rows, i, own, found)
            pool, start = first_pool, first
            while start < last:
                end = min(indptr[pool + 1], last)
                top = max(pooled[i, pool], _largest(found, start - first, end - first))
                sums[i, pool] *= np.exp(pooled[i, pool] - top)
                pooled[i, pool] = top
                for k in range(start - first, end - first):
                    found[k] -= top
                pool, start = pool + 1, end
            _exponentiate(found)
            pool, start = first_pool, first
            while start < last:
                end = min(indptr[pool + 1], last)
                sums[i, pool] += _sum(found, start - first, end - first)
                pool, start = pool + 1, end
    for i in range(len(pooled)):
        for pool in range(len(indptr) - 1):
            pooled[i, pool] += np.log(sums[i, pool])


@summing_part
def _largest(values: np.ndarray, first: int, last: int) -> Any:
    top = values[first]
    for k in range(first + 1, last):
        top = values[k] if values[k] > top else top
    return top


@summing_part
def _sum(values: np.ndarray, first: int, last: int) -> Any:
    total = 0.0
    for k in range(first, last):
        total += values[k]
    return total


@intrinsic  # type: ignore[untyped-decorator]
def _times_power_of_two(typing_context: Any, value: Any, whole: Any) -> Any:
    """Multiply `value` by 2 ** n, for ``whole = n + WHOLE``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits, exponent = (builder.bitcast(number, ir.IntType(64)) for number in args)
        bits = builder.add(bits, builder.shl(exponent, ir.Constant(ir.IntType(64), 52)))
        return builder.bitcast(bits, ir.DoubleType())

    return types.float64(types.float64, types.float64), generate


@part
def _exponentiate(values: np.ndarray) -> None:
    """Replace numbers up to 0 by their exponentials, several at once, unlike `exp`; below -700 they count as -700.

    With the whole number n nearest to x / ln 2, e^x is 2^n times the Taylor series of e^(x - n ln 2); the relative
    error is at most 1e-14.
    """
    for k in range(len(values)):
        x = values[k] if values[k] > -700.0 else -700.0
        whole = x * 1.4426950408889634 + WHOLE
        n = whole - WHOLE
        x = x - n * LN_2 - n * REST_OF_LN_2
        value = 1 / 39916800
        value = value * x + 1 / 3628800
        value = value * x + 1 / 362880
        value = value * x + 1 / 40320
        value = value * x + 1 / 5040
        value = value * x + 1 / 720
        value = value * x + 1 / 120
        value = value * x + 1 / 24
        value = value * x + 1 / 6
        value = value * x + 1 / 2
        value = value * x + 1.0
        value = value * x + 1.0
        values[k] = _times_power_of_two(value, whole)
