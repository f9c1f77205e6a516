"""`Features`: what planes are linear in, as functions of the encoded columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from polyplane._array_api import is_foreign, like, namespace

#: Bound that smoothly clipped numbers approach.
SMOOTH_BOUND = 3.0
#: Largest value at 0 that is subtracted from a feature so that it is 0 there: that of a larger one is rounded too much.
LARGEST_AT_ZERO = 64.0
#: The functions of a feature, by their code in `Features.op`.
OPS = ("value", "square", "smooth", "smooth square")


@dataclass(frozen=True, eq=False)
class Features:
    r"""Features of a model, each a function of one encoded column.

    With :math:`u = (z - centre) \cdot factor`, where z is the encoded column `source`, the feature is

    * "value": u;
    * "square": :math:`u^2`;
    * "smooth": :math:`u / \sqrt{1 + (u / 3)^2}`, which is u near 0 and approaches -3 and 3;
    * "smooth square": the square of it;

    clipped to [`low`, `high`]. A bin of a number is a "value" with the limits 0 and 1, and the indicator of a level is
    a "value" without scaling and limits.

    Parameters
    ----------
    n_inputs : int
        Number of encoded columns.
    source : ndarray of shape (n_features,)
        Index of the encoded column of each feature.
    op : ndarray of shape (n_features,) and dtype uint8
        Index in `OPS`.
    centre, factor : ndarray of shape (n_features,)
        The scaling from z to u.
    low, high : ndarray of shape (n_features,)
        Limits of the feature; infinite where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane.features import Features
    >>> scaled = Features.of([0, 0], ["value", "square"], centre=[1.0, 1.0], factor=[0.5, 0.5], n_inputs=1)
    >>> scaled.transform(np.array([[5.0], [1.0]]))
    array([[2., 4.],
           [0., 0.]])
    """

    n_inputs: int
    source: np.ndarray
    op: np.ndarray
    centre: np.ndarray
    factor: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls,
        source: Any,
        op: Any = "value",
        *,
        centre: Any = 0.0,
        factor: Any = 1.0,
        low: Any = -np.inf,
        high: Any = np.inf,
        n_inputs: int,
    ) -> Features:
        """Create features; scalars apply to all of them, and `op` is a name or a sequence of names."""
        source = np.asarray(source, dtype=np.intp)
        codes = np.uint8(OPS.index(op)) if isinstance(op, str) else np.array([OPS.index(name) for name in op], np.uint8)
        numbers = [np.broadcast_to(np.asarray(n, dtype=np.float64), source.shape) for n in (centre, factor, low, high)]
        return cls(n_inputs, source, np.broadcast_to(codes, source.shape), *numbers)

    @classmethod
    def identity(cls, n_inputs: int) -> Features:
        """Return the features that are the encoded columns themselves."""
        return cls.of(np.arange(n_inputs), n_inputs=n_inputs)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.source)

    @cached_property
    def is_identity(self) -> bool:
        """Whether the features are the encoded columns themselves."""
        same = self.n_features == self.n_inputs and np.array_equal(self.source, np.arange(self.n_inputs))
        return bool(same and self.is_affine and not self.centre.any() and (self.factor == 1.0).all())

    @cached_property
    def is_affine(self) -> bool:
        """Whether all features are affine functions of the encoded columns."""
        return bool(not self.op.any() and np.isinf(self.low).all() and np.isinf(self.high).all())

    def replace(self, **changes: Any) -> Features:
        """Return a copy with other arrays."""
        return replace(self, **changes)

    def take(self, features: Any) -> Features:
        """Return some of the features."""
        parts = (self.source, self.op, self.centre, self.factor, self.low, self.high)
        return Features(self.n_inputs, *(part[features] for part in parts))

    def transform(self, Z: Any) -> Any:
        """Compute the features of encoded rows, shape (n_rows, n_features)."""
        if self.is_identity:
            return Z
        if is_foreign(Z):
            return self._on_device(Z)
        # Feature by feature in memory: a function then applies to contiguous numbers.
        u = np.take(np.asarray(Z, dtype=np.float64).T, self.source, axis=0)
        for own, centre, factor in self._scaled:
            u[own] = (u[own] - centre) * factor
        smooth, square, limited, low, high = self._changed
        if len(smooth):
            part = u[smooth]
            u[smooth] = part / np.sqrt(1.0 + np.square(part / SMOOTH_BOUND))
        if len(square):
            u[square] = np.square(u[square])
        if len(limited):
            u[limited] = np.minimum(np.maximum(u[limited], low), high)
        return u.T

    def _on_device(self, Z: Any) -> Any:
        """Compute the features with arrays of another library, each function for all features."""
        xp = namespace(Z)
        centre, factor, low, high, op = (
            like(part, Z, Z.dtype) for part in (self.centre, self.factor, self.low, self.high, self.op)
        )
        u = (xp.take(Z, like(self.source, Z), axis=1) - centre) * factor
        u = xp.where(op >= 2, u / xp.sqrt(1.0 + (u / SMOOTH_BOUND) ** 2), u)
        u = xp.where(op % 2 == 1, u * u, u)
        return xp.minimum(xp.maximum(u, low), high)

    def bounds(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the smallest and the largest value of each feature for encoded numbers within ranges.

        Parameters
        ----------
        low, high : ndarray of shape (n_ranges, n_inputs)
            The smallest and the largest value of each encoded number.

        Returns
        -------
        least, most : ndarray of shape (n_ranges, n_features)
            The extremes, which are attained: features are monotone on either side of their centre, so they are at the
            ends of a range, or at the value nearest to the centre.
        """
        ends = [np.asarray(end, dtype=np.float64)[:, self.source] for end in (low, high)]
        each = self.replace(n_inputs=self.n_features, source=np.arange(self.n_features))
        values = each.transform(np.concatenate([*ends, np.clip(self.centre, *ends)])).reshape(3, *ends[0].shape)
        return values.min(axis=0), values.max(axis=0)

    def knots(self, source: int) -> np.ndarray:
        """Return the values of an encoded number where the features of it bend: their centres and finite limits."""
        own = self.take((self.source == source) & (self.factor != 0))
        ends = np.concatenate([own.centre, *(own.centre + end / own.factor for end in (own.low, own.high))])
        return np.unique(ends[np.isfinite(ends)])

    @cached_property
    def sequences(self) -> list[np.ndarray]:
        """The features of each number that rise one after another as it grows, such as bins: their indices, in order.

        A feature that rises alone is in none.
        """
        rises = (self.op == 0) & (self.factor > 0) & np.isfinite(self.low) & np.isfinite(self.high)
        rising = np.flatnonzero(rises)
        start, end = (self.centre + limit / np.where(rises, self.factor, 1.0) for limit in (self.low, self.high))
        found: list[list[int]] = []
        for source in np.flatnonzero(np.bincount(self.source[rising], minlength=1) > 1):
            own: list[list[int]] = []
            numbers = rising[self.source[rising] == source]
            for j in numbers[np.argsort(start[numbers], kind="stable")].tolist():
                latest = start[j] + 1e-9 * (end[j] - start[j])
                for each in own:
                    if end[each[-1]] <= latest:
                        each.append(j)
                        break
                else:
                    own.append([j])
            found += own
        return [np.array(each) for each in found if len(each) > 1]

    def after(self, inner: Features) -> Features:
        """Return these features as functions of the columns that other features take, which are "values".

        A TypeError is raised if limits of the other features cannot be expressed: before a square or a smooth clip.
        """
        centre, factor, low, high = (part[self.source] for part in (inner.centre, inner.factor, inner.low, inner.high))
        if self.op[np.isfinite(low) | np.isfinite(high)].any():
            raise TypeError("Features with limits cannot be followed by squares or smooth clips.")
        edges = [(edge - self.centre) * self.factor for edge in (low, high)]
        return Features(
            inner.n_inputs,
            inner.source[self.source],
            self.op,
            centre + self.centre / factor,
            factor * self.factor,
            np.where(self.op, self.low, np.clip(np.minimum(*edges), self.low, self.high)),
            np.where(self.op, self.high, np.clip(np.maximum(*edges), self.low, self.high)),
        )

    @cached_property
    def _scaled(self) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """The features with a centre or a factor, and these; most features of tables are indicators without them."""
        own = np.flatnonzero((self.centre != 0) | (self.factor != 1))
        return [(own, self.centre[own, None], self.factor[own, None])] if len(own) else []

    @cached_property
    def _changed(self) -> tuple[np.ndarray, ...]:
        """Indices of the features that are clipped smoothly, squared, and limited, and the limits of these."""
        limited = np.flatnonzero(np.isfinite(self.low) | np.isfinite(self.high))
        limits = self.low[limited, None], self.high[limited, None]
        return np.flatnonzero(self.op >= 2), np.flatnonzero(self.op % 2 == 1), limited, *limits

    def keys(self) -> np.ndarray:
        """Return a row of numbers for each feature, by which equal features are found."""
        return np.stack([self.source, self.op, self.centre, self.factor, self.low, self.high], axis=1)

    @staticmethod
    def merged(parts: list[Features]) -> tuple[Features, list[np.ndarray]]:
        """Return the distinct features of several sets, ordered by source, and the indices of those of each set."""
        keys = np.concatenate([part.keys() for part in parts])
        different, index = np.unique(keys, axis=0, return_inverse=True)
        source, op, *numbers = different.T
        union = Features(parts[0].n_inputs, source.astype(np.intp), op.astype(np.uint8), *map(np.array, numbers))
        ends = np.cumsum([part.n_features for part in parts])[:-1]
        return union, np.split(index.ravel(), ends)


class SparseFeatures:
    """Functions of the encoded columns, few of which are not 0 for a row, of which features are sums.

    All bins of a column together are interpolated between their ends: there is a function for each end, 1 at this end
    and 0 at all others, of which one or two are not 0. The other features remain, and those of "value" are moved so
    that they are 0 where the encoded column is: most columns of a table are indicators.

    Parameters
    ----------
    features : Features
        The features.
    """

    def __init__(self, features: Features) -> None:
        f = features
        is_bin = (f.op == 0) & (f.low == 0) & (f.high == 1) & (f.factor != 0)
        with np.errstate(divide="ignore"):
            other_end = f.centre + 1 / f.factor
        is_bin &= other_end != f.centre
        self._kept, at_zero = np.flatnonzero(~is_bin), -f.centre * f.factor
        self._others = f.take(self._kept)
        self._at_zero = np.where((f.op == 0) & (np.abs(at_zero) < LARGEST_AT_ZERO), at_zero, 0.0)[self._kept]
        self._bins = [np.flatnonzero(is_bin & (f.source == j)) for j in np.unique(f.source[is_bin])]
        self._ends = [np.unique([f.centre[own], other_end[own]]) for own in self._bins]
        self._columns = [int(f.source[own[0]]) for own in self._bins]
        self._at_ends = [
            np.clip((ends[:, None] - f.centre[own]) * f.factor[own], 0.0, 1.0)
            for own, ends in zip(self._bins, self._ends, strict=True)
        ]

    def weights(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of planes over these functions, shape (n_functions, n_planes), and their intercepts."""
        by_feature = coef.T.astype(np.float64)
        kept = by_feature[self._kept]
        at_ends = [values @ by_feature[own] for own, values in zip(self._bins, self._at_ends, strict=True)]
        return np.concatenate([kept, *at_ends]), intercept + self._at_zero @ kept

    def rows(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute the functions of encoded rows: the data, indices and indptr of a CSR matrix."""
        n_kept = len(self._kept)
        values = np.empty((len(Z), n_kept + 2 * len(self._columns)))
        index = np.empty(values.shape, dtype=np.int32)
        values[:, :n_kept], index[:, :n_kept] = self._others.transform(Z) - self._at_zero, np.arange(n_kept)
        first = n_kept
        for number, (j, ends) in enumerate(zip(self._columns, self._ends, strict=True)):
            low = np.clip(np.searchsorted(ends, Z[:, j], side="right") - 1, 0, len(ends) - 2)
            above = np.clip((Z[:, j] - ends[low]) / (ends[low + 1] - ends[low]), 0.0, 1.0)
            place = n_kept + 2 * number
            values[:, place], values[:, place + 1] = 1.0 - above, above
            index[:, place], index[:, place + 1] = first + low, first + low + 1
            first += len(ends)
        is_used = values != 0
        return values[is_used], index[is_used], np.append(0, is_used.sum(axis=1).cumsum())


@dataclass(frozen=True, eq=False)
class Projection:
    """The end of the features of a compressed model: a linear map to fewer features, or a factor for each feature.

    The weights of the planes over projected features are whole numbers from -127 to 127.

    Parameters
    ----------
    matrix : ndarray of shape (n_projected, n_features) and dtype int8, or None
        The matrix. None: the features are only multiplied by the factors.
    scale : ndarray of shape (n_projected,)
        A factor for each projected feature.
    """

    matrix: np.ndarray | None
    scale: np.ndarray

    @property
    def rank(self) -> int | None:
        """Number of projected features; None without a matrix."""
        return None if self.matrix is None else len(self.scale)

    def transform(self, values: Any) -> Any:
        """Project the features of rows, shape (n_rows, n_projected)."""
        scale = self.scale.astype(np.float64)
        return values * scale if self.matrix is None else values @ (self.matrix.astype(np.float64) * scale[:, None]).T

    def fold(self, coef: np.ndarray) -> np.ndarray:
        """Return the weights of planes over the features, given those over the projected features."""
        inner: np.ndarray = coef * self.scale.astype(np.float64)
        return inner if self.matrix is None else inner @ self.matrix.astype(np.float64)


def columns_of(Z: Any, columns: np.ndarray) -> np.ndarray:
    """Return some columns (sorted) of CSR rows as an array; time and memory do not depend on the number of others."""
    rows = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))
    at = np.minimum(np.searchsorted(columns, Z.indices), len(columns) - 1)
    kept = columns[at] == Z.indices
    out = np.zeros((Z.shape[0], len(columns)), dtype=Z.data.dtype)
    np.add.at(out, (rows[kept], at[kept]), Z.data[kept])
    return out
