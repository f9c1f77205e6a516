"""The tangent start: planes that already separate the classes before any training.

By Theorem 1 of Djuric, Wang and Vucetic (2020), the tangent planes of a convex function at given points divide the
space into one cell around each point. With the paraboloid :math:`s |x|^2` and the k-means centres :math:`m` of each
class, the planes are :math:`w = 2 s m`, :math:`b = -s |m|^2`, and the start is the nearest-centre classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from polyplane._array_api import astype, at_least, host_dtype, like, namespace, put, take_rows, to_numpy
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array
from polyplane.engine.state import State
from polyplane.learners._scaled_rows import ScaledRows
from polyplane.scaling import AffineScaling

#: Maximum number of rows per centre for k-means.
ROWS_PER_CENTRE = 256
#: Number of rows from which gap, spread and margin are estimated.
SAMPLE = 800


@dataclass(frozen=True, eq=False)
class Tangents(State):
    """Centres of the classes and the tangent planes at them, over scaled rows.

    Classes may have different numbers of centres; the arrays are padded to the largest.
    """

    centres: Annotated[Any, Array("f", "classes", "planes", "features", in_place=False)]  # on the device of the rows
    mask: Annotated[np.ndarray, Array("b", "classes", "planes", in_place=False)]  # False: padding
    scale: float
    spread: float  # mean squared distance of a row to the nearest centre of its class
    margin: float  # median distance of a row to the boundary between its nearest own and rival centres

    def check(self, sizes: dict[str, int]) -> bool:
        """Each class has a centre."""
        return bool(self.mask.any(axis=1).all())

    def planes(self) -> Any:
        """The planes, shape (n_classes, n_planes, n_features + 1); padding never has the highest score."""
        xp, centres = namespace(self.centres), self.centres
        square = xp.sum(centres**2, axis=2, keepdims=True)
        W = self.scale * xp.concat([2 * centres, -square], axis=2)
        W[:, :, -1] = xp.where(like(self.mask, W), W[:, :, -1], xp.full_like(W[:, :, -1], -1e30))
        return W

    @property
    def step(self) -> float:
        """The unit of step sizes: the change of a plane from a row to its centre, or by a quarter of the margin."""
        return 2 * self.scale * max(self.spread**0.5, self.margin / 4, 1e-6)


def tangent_start(data: Data, n_planes: np.ndarray, scaling: AffineScaling, scale: float, seed: int) -> Tangents:
    """Find the centres of the classes and the scale of the paraboloid.

    `scale`, relative to the sum of the gap and the spread, determines the difference of the scores of the two best
    classes at the start: large enough to be useful, small enough that training can change it.
    """
    X, y, rows = data.X, data.y, data.train
    xp, rng = namespace(X), np.random.default_rng(seed)
    shape = (len(n_planes), int(n_planes.max()))
    centres = like(np.zeros((*shape, X.shape[1]), dtype=host_dtype(X)), X)
    mask = np.zeros(shape, dtype=bool)
    for c, k in enumerate(n_planes):
        own = rows[y[rows] == c]
        if len(own) > ROWS_PER_CENTRE * k:
            own = np.sort(rng.choice(own, ROWS_PER_CENTRE * int(k), replace=False))
        # A class without rows starts with one plane at the centre of all rows.
        found = _centres_of(X, own, scaling, int(k), rng) if len(own) else xp.zeros_like(centres[c, :1, :])
        centres[c, : found.shape[0], :] = found
        mask[c, : found.shape[0]] = True
    sample = np.sort(rng.choice(rows, min(len(rows), SAMPLE), replace=False))
    gap, spread, margin = _measure(centres, mask, ScaledRows(X, sample, scaling), y[sample])
    return Tangents(centres, mask, scale / max(gap + spread, 1e-6), spread, margin)


def most_planes(data: Data) -> int:
    """Maximum number of planes per class: no more weights than the rows have nonzero values."""
    X = data.X
    numbers = X.count_nonzero() if sparse.issparse(X) else int(namespace(X).count_nonzero(X))
    return max(1, numbers * len(data.train) // (X.shape[0] * X.shape[1] * data.n_classes))


def _centres_of(X: Any, rows: np.ndarray, scaling: AffineScaling, n_centres: int, rng: np.random.Generator) -> Any:
    """The k-means centres of the scaled rows; sparse rows stay sparse, and their centres are scaled instead."""
    if not sparse.issparse(X):
        return kmeans(scaling.take(X, rows), n_centres, rng)
    return (kmeans(X[rows], n_centres, rng) - scaling.centre) * X.dtype.type(scaling.factor)


def kmeans(X: Any, n_centres: int, rng: np.random.Generator, max_iter: int = 10) -> Any:
    """Centres by a few passes of Lloyd's algorithm; an empty centre moves to the row farthest from its centre.

    k-means need not converge here: scikit-learn's takes five times as long and leads to the same error.
    """
    xp, n_rows = namespace(X), X.shape[0]
    if n_rows <= n_centres:
        return xp.asarray(_dense(X), copy=True)
    centres = _dense(take_rows(X, rng.choice(n_rows, n_centres, replace=False)))
    for _ in range(max_iter if n_centres > 1 else 1):
        cost = X @ (-2.0 * centres.T)
        cost += xp.sum(centres * centres, axis=1)
        nearest = xp.argmin(cost, axis=1)
        sums, count = _sums_of_groups(X, nearest, n_centres)
        centres = sums / at_least(count, 1.0)[:, None]
        idle = np.flatnonzero(to_numpy(count) == 0)
        if len(idle):
            norms = X.multiply(X).sum(axis=1) if sparse.issparse(X) else xp.sum(X * X, axis=1)
            distance = xp.min(cost, axis=1) + xp.reshape(xp.asarray(norms), (-1,))
            put(centres, like(idle, centres), _dense(take_rows(X, xp.argsort(distance)[n_rows - len(idle) :])))
    return centres


def _sums_of_groups(X: Any, group: Any, n_groups: int) -> tuple[Any, Any]:
    """Sum of the rows of each group, and their number, by a matrix product."""
    xp = namespace(X)
    if sparse.issparse(X):
        ones, rows = np.ones(len(group), dtype=X.dtype), np.arange(len(group))
        member = sparse.csr_array((ones, (group, rows)), shape=(n_groups, len(group)))
        return (member @ X).toarray(), np.asarray(member.sum(axis=1)).ravel()
    member = astype(group[None, :] == like(np.arange(n_groups), group)[:, None], X.dtype)
    return member @ X, xp.sum(member, axis=1)


def _dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


def _measure(centres: Any, mask: np.ndarray, sample: ScaledRows, y: np.ndarray) -> tuple[float, float, float]:
    """Estimate the gap, the spread and the margin from a sample of rows.

    The gap is the median absolute difference of the squared distances to the nearest own and the nearest rival centre.
    """
    rows, flat = np.arange(len(y)), namespace(centres).reshape(centres, (-1, centres.shape[2]))
    products, inner = to_numpy(sample.times(flat)), to_numpy(flat @ flat.T).astype(np.float64)
    squares = np.diagonal(inner)
    closeness = (2 * products - squares).reshape(len(y), *mask.shape)
    closeness[:, ~mask] = -np.inf
    own = closeness[rows, y]
    best, own_centre = own.max(axis=1), y * mask.shape[1] + own.argmax(axis=1)
    closeness[rows, y] = -np.inf
    rivals = closeness.reshape(len(y), -1)
    rival = rivals.argmax(axis=1)
    apart = np.sqrt(np.maximum(squares[own_centre] + squares[rival] - 2 * inner[own_centre, rival], 0))
    gaps = np.abs(best - rivals.max(axis=1))
    spread = max(float((to_numpy(sample.square_norms()) - best).mean()), 0.0)
    return float(np.median(gaps)), spread, float(np.median(gaps / (2 * apart + 1e-12)))
