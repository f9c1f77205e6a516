"""Training of compressed models: a projection and planes together, by the log-loss, Adam and one-byte weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Array, State, workspace
from polyplane.features import Features, Projection
from polyplane.learners.log_loss import put_in_order
from polyplane.learners.tangents import kmeans, update_mean
from polyplane.planes import PlaneSet

#: The largest one-byte weight.
LARGEST_WEIGHT = 127


class LowRank(NamedTuple):
    """Planes over scaled rows.

    Parameters
    ----------
    projection : ndarray of shape (rank, n_features) or None
        The shared projection. None: no projection; `rank` is then `n_features`.
    weights : ndarray of shape (n_planes, rank)
        Weights of the planes over projected rows.
    intercept : ndarray of shape (n_planes,)
        Intercepts of the planes.
    owners : ndarray of shape (n_planes,)
        The class of each plane, ascending.
    """

    projection: np.ndarray | None
    weights: np.ndarray
    intercept: np.ndarray
    owners: np.ndarray

    @property
    def coef(self) -> np.ndarray:
        """Weights of the planes over scaled rows, shape (n_planes, n_features)."""
        return self.weights if self.projection is None else self.weights @ self.projection

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the class indices of scaled rows."""
        Z = X if self.projection is None else X @ self.projection.T
        return np.asarray(self.owners[(Z @ self.weights.T + self.intercept).argmax(axis=1)])

    def rounded(self) -> LowRank:
        """The planes with weights rounded to one byte, for straight-through training."""
        projection = self.projection
        if projection is not None:
            scales = _scales(projection, axis=1)
            projection = np.rint(projection / scales) * scales
        scales = _scales(self.weights, axis=0)
        return self._replace(projection=projection, weights=np.rint(self.weights / scales) * scales)

    def model_parts(self, kept: np.ndarray, n_features: int, n_classes: int, scaling: AffineScaling) -> dict[str, Any]:
        """Return the features, projection and planes of a `Model`, of bytes and float32, over the features `kept`."""
        by_plane = _scales(self.weights, axis=0)
        units, matrix = by_plane[0].astype(np.float64), None
        if self.projection is not None:
            by_row = _scales(self.projection, axis=1)
            units = units * by_row[:, 0]
            matrix = np.rint(self.projection / by_row).astype(np.int8)
        is_common, intercept = np.ndim(scaling.factor) == 0, self.intercept.astype(np.float64)
        if is_common:  # the units include the common factor, and the intercepts the centre
            units = units * float(scaling.factor)
        projection = Projection(matrix, units.astype("f4"))
        weights = np.rint(self.weights / by_plane).astype(np.float64)
        centre = np.asarray(scaling.centre, dtype=np.float64)
        if is_common:
            intercept = intercept - projection.fold(weights) @ centre
        own = {} if is_common else {"centre": centre.astype("f4"), "factor": np.asarray(scaling.factor, dtype="f4")}
        indptr = np.searchsorted(self.owners, np.arange(n_classes + 1))
        return {
            "features": Features.of(kept, n_inputs=n_features, **own),
            "projection": projection,
            "planes": PlaneSet(weights, intercept.astype("f4").astype(np.float64), indptr),
        }


def _scales(values: np.ndarray, axis: int) -> np.ndarray:
    """The value of the integer 1, such that the integers along `axis` are at most 127 in absolute value."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    return np.asarray(np.where(largest > 0, largest, 1) / LARGEST_WEIGHT, dtype=values.dtype)


# The start: a projection from given planes, and tangent planes at k-means centres of the projected rows.

#: Difference of the scores of the two best classes at the start, relative to the gap and the spread of the rows.
SCALE = 2.5
#: Weight of the covariance of the rows, relative to that of the scores of the given planes.
SPREAD_WEIGHT = 0.05
#: Regularisation of the inverse covariance: added to the variances, relative to their mean.
RIDGE = 1.0
#: Rows per centre for k-means, and rows to estimate the gap and the spread from.
ROWS_PER_CENTRE, SAMPLE = 64, 800


def directions(X: np.ndarray, coef: np.ndarray | None, rank: int) -> np.ndarray:
    """A projection, of shape (rank, n_features), that preserves the scores of the given planes and the rows' variance.

    The least-squares projection for the scores :math:`W x` of rows with covariance S consists of the leading right
    singular vectors of :math:`W S^{1/2}`, times :math:`S^{-1/2}`. Projected rows have a mean squared norm of 1.
    """
    covariance = np.asarray(X.T @ X, dtype=np.float64) / len(X)
    variances, U = np.linalg.eigh(covariance)
    variances = np.maximum(variances, 0)
    wanted = covariance / max(np.trace(covariance), 1e-300)
    if coef is not None:
        W = coef.astype(np.float64) - coef.mean(axis=0)
        scores = W @ (U * np.sqrt(variances)) @ U.T
        total = np.square(scores).sum()
        if total > 0:
            wanted = scores.T @ scores / total + SPREAD_WEIGHT * wanted
    strength, B = np.linalg.eigh(wanted)
    B, strength = B[:, ::-1][:, :rank], np.maximum(strength[::-1][:rank], 0)
    inverse = (U / np.sqrt(variances + RIDGE * variances.mean() + 1e-300)) @ U.T
    projection = ((np.sqrt(strength) * B).T @ inverse).astype(np.float32)
    norm = float(np.sqrt(np.square(X @ projection.T).sum(axis=1).mean()))
    return projection / np.float32(norm or 1.0)


def _centres(Z: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    if not len(Z):  # a class without rows: one plane at the centre of all rows
        return np.zeros((1, Z.shape[1]), dtype=Z.dtype)
    max_rows = ROWS_PER_CENTRE * n_centres
    rows = Z if len(Z) <= max_rows else Z[np.sort(rng.choice(len(Z), max_rows, replace=False))]
    return np.asarray(kmeans(rows, n_centres, rng))


# The steps.

#: Rows per step.
BATCH = 128
#: Fractions of the steps after which weights are rounded in each step, and after which they are averaged.
ROUNDED_FROM, AVERAGED_FROM = 0.6, 0.85
#: Adam's decay rates of the gradient and of its square.
DECAY = 0.9, 0.99
#: Lower bound of the probability of the true class.
MIN_PROBABILITY = 1e-12
#: Rows of noise, drawn once, that steps choose from at random.
NOISE_ROWS = 4096

_VALUES = Array("f", "rows of values", "columns of values")


@dataclass(frozen=True, eq=False)
class Parameter(State):
    """An array that is trained, its initial step size, Adam's moments, and the mean of its last values."""

    values: Annotated[np.ndarray, _VALUES]
    rate: float
    first: Annotated[np.ndarray, _VALUES]
    second: Annotated[np.ndarray, _VALUES]
    mean: Annotated[np.ndarray, _VALUES]

    own_sizes: ClassVar[tuple[str, ...]] = ("rows of values", "columns of values")

    @classmethod
    def of(cls, values: np.ndarray, measured: np.ndarray, rate: float) -> Parameter:
        """Start from these values; the step size is relative to the root mean square of `measured`."""
        size = float(np.sqrt(np.square(measured).mean())) or 1.0
        return cls(values.copy(), rate * size, *(np.zeros_like(values) for _ in range(3)))

    def step(self, gradient: np.ndarray, t: int, fraction: float) -> None:
        """Step number `t` of Adam, with a fraction of the rate."""
        for memory, decay, value in ((self.first, DECAY[0], gradient), (self.second, DECAY[1], gradient * gradient)):
            memory *= decay
            memory += (1 - decay) * value
        size = self.rate * fraction * (1 - DECAY[1] ** t) ** 0.5 / (1 - DECAY[0] ** t)
        np.subtract(self.values, size * self.first / (np.sqrt(self.second) + 1e-7), out=self.values)


@dataclass(frozen=True, eq=False)
class LowRankState(State):
    """The projection (if any), the weights and, as a row, the intercepts, with the class of each plane."""

    parameters: list[Parameter]
    owners: Annotated[np.ndarray, Array("i", "planes", below="classes", in_place=False)]
    t: int = 0  # steps of Adam
    n_averaged: int = 0
    loss: float = np.inf
    workspace: tuple[np.random.Generator, np.ndarray | None] = workspace()  # random numbers; rows of noise

    def low_rank(self, arrays: Sequence[np.ndarray]) -> LowRank:
        """Planes with these values of the parameters."""
        return LowRank(arrays[0] if len(arrays) == 3 else None, arrays[-2], arrays[-1][0], self.owners)


@dataclass(frozen=True)
class LowRankMethod(Method[LowRankState]):
    """Planes over a shared projection, trained on scaled rows; a step is a pass over the rows.

    Parameters
    ----------
    rank : int or None
        Number of projected features. None: no projection.
    n_planes : int
        Number of planes per class; a class with fewer rows gets one plane per row.
    max_iter : int
        Number of passes over the rows.
    rate : float
        Initial step size, relative to the root mean square of the weights; step sizes decrease linearly to 0.
    noise : float
        Standard deviation of the noise added to scaled rows.
    coef : ndarray of shape (n_given, n_features) or None
        Normals of the planes, over scaled rows, that initialise the projection.
    """

    rank: int | None
    n_planes: int
    max_iter: int
    rate: float
    noise: float
    coef: np.ndarray | None = field(default=None, compare=False)

    traits = Traits(LowRankState)

    def start(self, data: Data, seed: int) -> LowRankState:
        """The nearest-centre classifier of the projected rows."""
        X, y, rng = data.X, data.y, np.random.default_rng(seed)
        projection = None if self.rank is None else directions(X, self.coef, self.rank)
        Z = X if projection is None else X @ projection.T
        centres = [_centres(Z[y == c], self.n_planes, rng) for c in range(data.n_classes)]
        owners = np.repeat(np.arange(data.n_classes), [len(part) for part in centres])
        M = np.concatenate(centres)
        squares = np.square(M).sum(axis=1)
        sample = rng.choice(len(Z), min(len(Z), SAMPLE), replace=False)
        closeness = 2 * Z[sample] @ M.T - squares
        own = owners == y[sample][:, None]
        best = np.where(own, closeness, -np.inf).max(axis=1)
        gap = float(np.median(np.abs(best - np.where(own, -np.inf, closeness).max(axis=1))))
        spread = max(float((np.square(Z[sample]).sum(axis=1) - best).mean()), 0.0)
        scale = np.float32(SCALE / max(gap + spread, 1e-6))
        weights, intercept = 2 * scale * M, -scale * squares
        # The step size of the intercepts is that of the weights, so that both move alike.
        parameters = [Parameter.of(weights, weights, self.rate), Parameter.of(intercept[None], weights, self.rate)]
        if projection is not None:
            parameters.insert(0, Parameter.of(projection, projection, self.rate))
        noise = None
        if self.noise:
            noise = (self.noise * rng.standard_normal((NOISE_ROWS, X.shape[1]))).astype(X.dtype)
        return LowRankState(parameters, owners, workspace=(rng, noise))

    def step(self, state: LowRankState, data: Data) -> LowRankState:
        """One pass over the rows by mini-batches; in the last ones, scores are those of rounded weights."""
        X, parameters, (rng, noise) = data.X, state.parameters, state.workspace
        n_steps, t, n_averaged, loss = self.max_iter * -(-len(X) // BATCH), state.t, state.n_averaged, 0.0
        starts = np.searchsorted(state.owners, np.arange(data.n_classes))
        order = rng.permutation(len(X))
        for first in range(0, len(X), BATCH):
            rows = order[first : first + BATCH]
            x = X[rows] if noise is None else X[rows] + noise[rng.integers(NOISE_ROWS, size=len(rows))]
            planes = state.low_rank([part.values for part in parameters])
            used = planes.rounded() if t >= ROUNDED_FROM * n_steps else planes
            batch_loss, gradients = log_loss(used, x, data.y[rows], data.weight[rows], starts)
            loss, t = loss + batch_loss, t + 1
            for part, gradient in zip(parameters, gradients, strict=True):
                part.step(gradient, t, 1 - t / n_steps)
            if data.ranks is not None:
                _put_in_order(data.ranks, parameters[-2].values, state.owners)
            if t >= AVERAGED_FROM * n_steps:
                n_averaged += 1
                for part in parameters:
                    update_mean(part.mean, part.values, n_averaged)
        return state.replace(t=t, n_averaged=n_averaged, loss=loss / len(X))

    def metrics(self, state: LowRankState) -> Mapping[str, float]:
        """The mean log-loss met in the last pass."""
        return {"loss": state.loss}

    def low_rank(self, state: LowRankState) -> LowRank:
        """The mean of the last planes, with weights rounded to one byte."""
        return state.low_rank([part.mean for part in state.parameters]).rounded()

    def planes(self, state: LowRankState) -> PlaneSet:
        """The same planes, over scaled rows."""
        found = self.low_rank(state)
        return PlaneSet(found.coef, found.intercept, np.searchsorted(state.owners, np.arange(state.owners[-1] + 2)))


def _put_in_order(ranks: np.ndarray, weights: np.ndarray, owners: np.ndarray) -> None:
    """Replace weights, in place, by the nearest ones that are in the order of the classes.

    Rounding keeps the order, since all planes have the same scale for a feature.
    """
    position = np.arange(len(owners)) - np.searchsorted(owners, owners)
    W = np.zeros((owners[-1] + 1, position.max() + 1, weights.shape[1] + 1), dtype=weights.dtype)
    W[:, :, -1] = -1e30  # padding, of classes with fewer planes
    W[owners, position] = np.pad(weights, [(0, 0), (0, 1)])
    put_in_order(ranks, W)
    weights[:] = W[owners, position, :-1]


def log_loss(
    planes: LowRank, x: np.ndarray, y: np.ndarray, weight: np.ndarray, starts: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    r"""The sum of the log-losses of a batch, and the gradients of their mean by each parameter.

    The score of a class is the log-sum-exp of the scores of its planes. Let :math:`p_k` be the softmax over all planes
    and :math:`P` its sum over the planes of the row's class. The derivative of the loss with respect to a plane score
    is :math:`p_k (1 - 1 / P)` for planes of the row's class, and :math:`p_k` for the others.
    """
    z = x if planes.projection is None else x @ planes.projection.T
    scores = z @ planes.weights.T
    scores += planes.intercept
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    by_class, rows = np.add.reduceat(scores, starts, axis=1), np.arange(len(x))
    total = by_class.sum(axis=1)
    probability = np.maximum(by_class[rows, y] / total, MIN_PROBABILITY)
    loss = -float(weight @ np.log(probability))
    factor = np.repeat((weight / (total * len(x)))[:, None], len(starts), axis=1)
    factor[rows, y] *= 1 - 1 / probability
    scores *= factor[:, planes.owners]
    gradients = [scores.T @ z, scores.sum(axis=0)[None]]
    if planes.projection is not None:
        gradients.insert(0, (scores @ planes.weights).T @ x)
    return loss, gradients
