"""Planes as sums that are never scaled, with steps 1 / (alpha t): code shared by the methods trained this way.

A holder of such planes has the fields `coef` (feature by feature), `intercept`, `margin` and `mean`: what it stores is
`margin` times the planes, and `mean` is their running average, or None.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.learners._backoff import MeasuredRows

Holder = TypeVar("Holder", bound=Any)
S = TypeVar("S", bound=Any)

#: Window of steps 1 / (alpha t) that always decrease.
FOREVER = 1 << 60
#: Where old rows fade, the stored sums grow by this much before they are scaled down, far from the end of float32.
LARGEST_GROWTH = float(1 << 20)
#: Approximate number of rows used to choose between the average of the planes and the last planes.
ROWS_TO_JUDGE = 5000


def window_of(half_life: float | None) -> int:
    """Number of visits after which steps are constant, so that the influence of a row is halved in `half_life` rows.

    From then on the planes lose 1 / window of themselves at each visit: (1 - 1 / window) ** half_life is 1/2.
    """
    return FOREVER if half_life is None else max(2, round(half_life / math.log(2)))


def pieces(order: np.ndarray, window: int) -> Iterator[np.ndarray]:
    """Parts in which the margin grows by no more than LARGEST_GROWTH."""
    length = max(1, int(math.log(LARGEST_GROWTH) * (window - 1)))
    for first in range(0, len(order), length):
        yield order[first : first + length]


def share_of_last(blends: int, blend_rows: int, window: int) -> float:
    """The share of the current planes in their average.

    Polynomial-decay averaging (Shamir and Zhang, 2013): late ones count most. Where old rows fade, the average looks
    back on a quarter of the window.
    """
    return max(4.0 / (blends + 4.0), -math.expm1(-4.0 * blend_rows / window))


def rescaled(holder: Holder, margin: float) -> Holder:
    """The same planes with another margin."""
    factor = margin / holder.margin
    return replace(holder, coef=holder.coef * factor, intercept=holder.intercept * factor, margin=margin)


def last_planes(holder: Any) -> tuple[np.ndarray, np.ndarray]:
    """The current planes, not averaged."""
    scale = 1.0 / holder.margin
    return holder.coef * scale, holder.intercept * scale


def planes_of(holder: Any, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The average of the planes, including this share of the current planes."""
    mean: tuple[np.ndarray, np.ndarray] | None = holder.mean
    if mean is None:
        return last_planes(holder)
    if share == 0.0:
        return mean
    now = last_planes(holder)
    return now[0] * share + mean[0] * (1.0 - share), now[1] * share + mean[1] * (1.0 - share)


def blended(holder: Holder, share: float) -> Holder:
    """The same planes, included in their average."""
    coef, intercept = last_planes(holder)
    if holder.mean is not None:
        for new, mean in zip((coef, intercept), holder.mean, strict=True):
            new *= share
            new += mean * (1.0 - share)
    return replace(holder, mean=(coef, intercept))


def scores_of(holder: Any, X: Any, share: float) -> Any:
    """The scores of rows, from the stored sums: planes with millions of features are not copied."""
    parts = [(holder.coef, holder.intercept, 1.0 / holder.margin)]
    if holder.mean is not None:
        parts = [(holder.coef, holder.intercept, share / holder.margin), (*holder.mean, 1.0 - share)]
    total: Any = 0.0
    for coef, intercept, factor in parts:
        if factor:
            total = total + (np.asarray(X @ coef[: X.shape[1]]) + intercept) * factor
    return total


def widened(holder: Holder, n_features: int) -> Holder:
    """The same planes with room for more features, and some to spare: features are often added many times."""
    room = len(holder.coef)
    if n_features <= room:
        return holder
    room = max(n_features, room + room // 4)
    mean = holder.mean and (_taller(holder.mean[0], room), holder.mean[1])
    return replace(holder, coef=_taller(holder.coef, room), mean=mean)


def _taller(array: np.ndarray, n_rows: int) -> np.ndarray:
    """The array with rows of zeros after its own."""
    higher = np.zeros((n_rows, array.shape[1]), dtype=array.dtype)
    higher[: len(array)] = array
    return higher


def last_is_better(method: Method[Any], state: Any, data: Data) -> bool:
    """Whether the last planes make clearly fewer errors on the training rows than their average.

    Planes without a structure to fit keep changing places, and their average fits none of the rows.
    """
    rows = data.train[:: max(1, len(data.train) // ROWS_TO_JUDGE)]
    X, y = data.X[rows], data.y[rows]
    mean_error, last_error = (
        float(np.mean(method.planes(replace(state, prefers_last=last)).predict(X) != y)) for last in (False, True)
    )
    return last_error + 3.0 * math.sqrt(mean_error * (1.0 - mean_error) / len(rows)) < mean_error


@dataclass(frozen=True, kw_only=True)
class FallingSteps(Method[S]):
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

    fades = True
    adjustable = frozenset({"min_entropy", "backoff", "average", "shuffle", "n_jobs"})
    mixable = True

    @property
    def _bias_input(self) -> float:
        return 1.0 if self.fit_intercept else 0.0

    def _permutation(self, seed: int, epoch: int, data: Data) -> np.ndarray:
        """The order of the rows in an epoch."""
        return np.random.default_rng([seed, epoch]).permutation(data.train) if self.shuffle else data.train

    def _measured_rows(self, data: Data) -> MeasuredRows | None:
        """What decides which rows are skipped; None in a stream, where rows are not visited again."""
        return MeasuredRows(data, self._bias_input) if self.backoff > 0 and not data.stream else None

    def _averaged(self, state: S, data: Data) -> S:
        """Update the average of the planes: after each epoch, or more rarely if batches are small."""
        if not self.average:
            return self._without_mean(state)
        rows = state.blend_rows + len(data.train)
        entries = state.blend_entries + (data.X.nnz if sparse.issparse(data.X) else data.X.size)
        if data.stream and state.blends and entries < data.X.shape[1]:
            return replace(state, blend_rows=rows, blend_entries=entries)
        state = self._blended(state, share_of_last(state.blends, rows, state.window))
        return replace(state, blends=state.blends + 1, blend_rows=0, blend_entries=0)

    @abstractmethod
    def _blended(self, state: S, share: float) -> S:
        """The state whose averages include this share of the current planes."""

    @abstractmethod
    def _without_mean(self, state: S) -> S:
        """The state without averages."""

    def conclude(self, state: S, data: Data) -> S:
        """Prefer the last planes to their average where they make clearly fewer errors on the training rows."""
        return replace(state, prefers_last=self.average and last_is_better(self, state, data))

    def figures(self, state: S) -> Mapping[str, float]:
        """Mean loss, share of the visits that moved a plane, and length of the last step."""
        return {"loss": state.loss, "updates": state.updates, "step": state.step}
