"""Stochastic gradient descent with the steps 1 / (alpha t): back-off, averaged planes, and what its methods share.

A holder of planes has the fields `coef` of shape (n_features, n_planes), `intercept`, `margin` and `mean`. The first
two are `margin` times the planes, so that shrinking the planes costs nothing; `mean` is their running average, or None.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from polyplane.engine.data import Data
from polyplane.engine.method import Method

#: Movements are measured on one row in sixteen; minimum and maximum number of these rows.
ROWS_TO_MEASURE = (32, 256)


class MeasuredRows:
    """The norms of all rows, and the rows on which movements are measured.

    Attributes
    ----------
    length : ndarray of shape (n_rows,)
        Norm of each row, including the constant feature.
    update_length : float
        Root mean square, over the rows, of the norm of an update of a plane, relative to the step size.
    rows : ndarray of int
        Indices of the measured rows.
    X, y : matrix and ndarray of int
        These rows, and their classes.
    """

    def __init__(self, data: Data, bias_input: float) -> None:
        dtype, n_rows = data.X.dtype, len(data.train)
        squares = row_norms(data.X, squared=True) + max(bias_input, np.finfo(dtype).tiny)
        self.length: np.ndarray = np.sqrt(squares).astype(dtype)
        updates = (data.weight * self.length)[data.train]
        self.update_length = float(np.linalg.norm(updates)) / max(1, n_rows) ** 0.5
        self.rows = data.train[:: max(1, n_rows // int(np.clip(n_rows // 16, *ROWS_TO_MEASURE)))]
        self.X, self.y = data.X[self.rows], data.y[self.rows]

    def movement(self, now: np.ndarray, before: np.ndarray, step: float) -> Any:
        """The movement of scores per pass, relative to the norm of the row; first axis of `now` and `before`: rows.

        It is the largest movement in the last pass plus that of a single update: if steps are large, the planes after a
        pass may be close to those before it.
        """
        moved = np.abs(now - before).T / self.length[self.rows]
        return moved.max(axis=-1, initial=0.0).astype(np.float64) + self.update_length * step


Holder = TypeVar("Holder", bound=Any)
S = TypeVar("S", bound=Any)

#: Fields of these methods that may change when training continues.
ADJUSTABLE = frozenset({"min_entropy", "backoff", "average", "shuffle", "n_jobs"})

#: Window of steps 1 / (alpha t) that always decrease.
FOREVER = 1 << 60
#: With a half-life, stored sums grow by at most this factor before they are scaled down, far below the float32 maximum.
LARGEST_GROWTH = float(1 << 20)
#: Approximate number of rows used to choose between the average of the planes and the last planes.
ROWS_TO_JUDGE = 5000


def window_of(half_life: float | None) -> int:
    """Number of visits after which steps are constant, so that the influence of a row is halved in `half_life` rows.

    From then on the planes lose 1 / window of themselves at each visit: (1 - 1 / window) ** half_life is 1/2.
    """
    return FOREVER if half_life is None else max(2, round(half_life / math.log(2)))


def pieces(order: np.ndarray, window: int) -> Iterator[np.ndarray]:
    """Split an order into parts in which the margin grows by at most LARGEST_GROWTH."""
    length = max(1, int(math.log(LARGEST_GROWTH) * (window - 1)))
    for first in range(0, len(order), length):
        yield order[first : first + length]


def share_of_last(blends: int, blend_rows: int, window: int) -> float:
    """The weight of the current planes in their average.

    Polynomial-decay averaging (Shamir and Zhang, 2013): later planes have larger weights. With a half-life, the average
    covers about a quarter of the window.
    """
    return max(4.0 / (blends + 4.0), -math.expm1(-4.0 * blend_rows / window))


def rescaled(holder: Holder, margin: float) -> Holder:
    """The same planes with another margin."""
    factor = margin / holder.margin
    return holder.replace(coef=holder.coef * factor, intercept=holder.intercept * factor, margin=margin)


def last_planes(holder: Any) -> tuple[np.ndarray, np.ndarray]:
    """The current planes, not averaged."""
    scale = 1.0 / holder.margin
    return holder.coef * scale, holder.intercept * scale


def planes_of(holder: Any, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The average of the planes, in which the current planes have the weight `share`."""
    mean: tuple[np.ndarray, np.ndarray] | None = holder.mean
    if mean is None:
        return last_planes(holder)
    if share == 0.0:
        return mean
    now = last_planes(holder)
    return now[0] * share + mean[0] * (1.0 - share), now[1] * share + mean[1] * (1.0 - share)


def blended(holder: Holder, share: float) -> Holder:
    """The same planes, added to their average with the weight `share`."""
    coef, intercept = last_planes(holder)
    if holder.mean is not None:
        for new, mean in zip((coef, intercept), holder.mean, strict=True):
            new *= share
            new += mean * (1.0 - share)
    return holder.replace(mean=(coef, intercept))


def scores_of(holder: Any, X: Any, share: float) -> Any:
    """The scores of rows, computed from the stored sums, because planes may have millions of features to copy."""
    parts = [(holder.coef, holder.intercept, 1.0 / holder.margin)]
    if holder.mean is not None:
        parts = [(holder.coef, holder.intercept, share / holder.margin), (*holder.mean, 1.0 - share)]
    total: Any = 0.0
    for coef, intercept, factor in parts:
        if factor:
            total = total + (np.asarray(X @ coef[: X.shape[1]]) + intercept) * factor
    return total


def widened(holder: Holder, n_features: int) -> Holder:
    """The same planes with capacity for more features, and some in reserve, since features are often added again."""
    room = len(holder.coef)
    if n_features <= room:
        return holder
    room = max(n_features, room + room // 4)
    mean = holder.mean and (_padded(holder.mean[0], room), holder.mean[1])
    return holder.replace(coef=_padded(holder.coef, room), mean=mean)


def _padded(array: np.ndarray, n_rows: int) -> np.ndarray:
    """The array, padded with rows of zeros."""
    padded = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded


def better_planes(method: Any, state: S, data: Data) -> S:
    """The state, with the last planes instead of their average if they make clearly fewer errors on the training rows.

    If the data have no structure to fit, planes keep exchanging their roles, and their average fits no rows.
    """
    if not method.average:
        return state.replace(prefers_last=False)
    rows = data.train[:: max(1, len(data.train) // ROWS_TO_JUDGE)]
    X, y = data.X[rows], data.y[rows]
    mean_error, last_error = (
        float(np.mean(method.planes(state.replace(prefers_last=last)).predict(X) != y)) for last in (False, True)
    )
    deviation = math.sqrt(mean_error * (1.0 - mean_error) / len(rows))
    return state.replace(prefers_last=last_error + 3.0 * deviation < mean_error)


@dataclass(frozen=True, kw_only=True)
class InverseTimeSGD(Method[S]):
    """Stochastic gradient descent with the steps 1 / (alpha t), back-off and averaged planes.

    States have the fields `t`, `step`, `loss`, `updates`, `window`, `blends`, `blend_rows`, `blend_entries` and
    `prefers_last`.
    """

    min_entropy: float = 0.0
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    shuffle: bool = True
    n_jobs: int | None = None

    @property
    def _bias_input(self) -> float:
        return 1.0 if self.fit_intercept else 0.0

    def _permutation(self, seed: int, epoch: int, data: Data) -> np.ndarray:
        """The order of the rows in an epoch."""
        return np.random.default_rng([seed, epoch]).permutation(data.train) if self.shuffle else data.train

    def _measured_rows(self, data: Data) -> MeasuredRows | None:
        """The rows on which movements are measured, to skip rows; None in a stream, where rows are visited once."""
        return MeasuredRows(data, self._bias_input) if self.backoff > 0 and not data.stream else None

    def _averaged(self, state: S, data: Data) -> S:
        """Update the average of the planes after each epoch, or less often if batches are small."""
        if not self.average:
            return self._without_mean(state)
        rows = state.blend_rows + len(data.train)
        entries = state.blend_entries + (data.X.nnz if sparse.issparse(data.X) else data.X.size)
        if data.stream and state.blends and entries < data.X.shape[1]:
            return state.replace(blend_rows=rows, blend_entries=entries)
        state = self._blended(state, share_of_last(state.blends, rows, state.window))
        return state.replace(blends=state.blends + 1, blend_rows=0, blend_entries=0)

    @abstractmethod
    def _blended(self, state: S, share: float) -> S:
        """The state with the current planes added to the averages with the weight `share`."""

    @abstractmethod
    def _without_mean(self, state: S) -> S:
        """The state without averages."""

    def metrics(self, state: S) -> Mapping[str, float]:
        """Mean loss, fraction of the visits that updated a plane, and last step size."""
        return {"loss": state.loss, "updates": state.updates, "step": state.step}
