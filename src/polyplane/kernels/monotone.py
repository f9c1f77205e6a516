"""Projection of planes whose weights must be in an order of the classes."""

from typing import NamedTuple

import numpy as np

from polyplane.kernels.jit import kernel, part
from polyplane.kernels.rows import borrowed

#: Planes with a smaller intercept are padding.
LEAST_INTERCEPT = -1e29


class Order(NamedTuple):
    """The order of the classes for some features, and preallocated arrays."""

    features: np.ndarray
    ranks: np.ndarray  # (n_features, n_classes): no weight is larger than one of a class of higher rank
    sorted: np.ndarray  # (n_features, n_planes): the planes, sorted by rank and weight in the last step
    value: np.ndarray  # (n_planes,)
    size: np.ndarray


@part
def put_in_order(W: np.ndarray, n_planes: int, order: Order) -> None:
    """Replace the weights of each feature by the nearest ones that are in the order of the classes.

    Among classes of equal rank the nearest weights are sorted as before, so that this is isotonic regression on the
    weights sorted by rank and value, which pooling of adjacent violators solves.
    """
    value, size = order.value, order.size
    for i in range(len(order.features)):
        j, ranks, planes, n_blocks = order.features[i], order.ranks[i], order.sorted[i], 0
        for m in range(len(planes)):
            k, at = planes[m], m
            while at > 0:
                rank, before = ranks[k // n_planes], ranks[planes[at - 1] // n_planes]
                if before < rank or (before == rank and W[planes[at - 1], j] <= W[k, j]):
                    break
                planes[at] = planes[at - 1]
                at -= 1
            planes[at] = k
        for k in planes:
            if W[k, -1] > LEAST_INTERCEPT:
                value[n_blocks], size[n_blocks] = W[k, j], 1
                while n_blocks > 0 and value[n_blocks - 1] > value[n_blocks]:
                    total = size[n_blocks - 1] + size[n_blocks]
                    share = size[n_blocks] / total
                    value[n_blocks - 1] += value.dtype.type(share * (value[n_blocks] - value[n_blocks - 1]))
                    size[n_blocks - 1] = total
                    n_blocks -= 1
                n_blocks += 1
        block, left = 0, size[0]
        for k in planes:
            if W[k, -1] > LEAST_INTERCEPT:
                if left == 0:
                    block += 1
                    left = size[block]
                W[k, j] = value[block]
                left -= 1


@kernel
def project(W: np.ndarray, n_planes: int, order: Order) -> None:
    """Put planes ordered by class, of shape (n_classes * n_planes, n_features + 1), in order."""
    W, order = borrowed((W, order))
    put_in_order(W, n_planes, order)
