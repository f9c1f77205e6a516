"""The ranges of features: what is refused, undone or warned of before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import host_dtype, namespace, to_numpy
from polyplane.scaling import AffineScaling

#: How a method itself scales features: not at all; all by one number, after centring; each to unit variance.
OwnScaling = Literal["none", "common", "standard"]

#: Values that are taken, by the size of their dtype: sums of their squares over rows, features and steps stay finite,
#: and so do the squares of such sums, which are made in float64.
LARGEST = {4: 1e15, 8: 1e70}

#: The largest value of all has to be above this: below it, squares lose their digits.
SMALLEST = {4: 1e-15, 8: 1e-70}

#: Features whose sizes differ by more are warned of. Chosen on 33 sets: pixels, one-hot codes, tf-idf and others in one
#: unit stay below 65; tables of mixed units begin at 350 (pima) and 440 (heart).
SIZES_APART = 100.0

#: A size that one in ten features falls below stands for the small ones: a pixel that is nearly always black does not.
SMALL_SHARE = 0.1

#: Rows further from 0 than this, in units of their range, are warned of by methods that do not centre them: of the same
#: sets, in their own units, none is further than 4 that would not be warned of anyway.
DISTANT = 10.0

#: Methods that do not scale learn next to nothing from smaller values: their regulariser outweighs them.
TINY = 1e-4

#: Ranges in which methods that undo scales do so without a loss of digits, in float32 too.
COMFORTABLE = (1e-5, 1e12)


def refuse_extremes(X: Any) -> None:
    """Refuse finite rows whose squares, summed up, would not be finite."""
    dtype, values = host_dtype(X), X.data if sparse.issparse(X) else X
    xp, largest = namespace(values), LARGEST[dtype.itemsize]
    if xp is np:
        flat = values.reshape(-1)
        with np.errstate(over="ignore"):
            if float(flat @ flat) < largest**2:  # one pass, and no row is looked at twice
                return
    if values.shape[0] and max(float(xp.max(values)), -float(xp.min(values))) > largest:
        raise ValueError(
            f"X holds {_most_extreme(X):.3g}, and the squares of such values overflow when they are summed up in "
            f"{dtype}: scale the features first, for example with MaxAbsScaler"
            + (", or convert X to float64." if dtype == np.float32 else ".")
        )


def _most_extreme(X: Any) -> float:
    low, high = FeatureRanges.of(X)
    return float(high.max() if high.max() >= -low.min() else low.min())


class FeatureRanges(NamedTuple):
    """The smallest and the largest value of each feature, on the host; the zeros of sparse rows are values."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, X: Any) -> FeatureRanges:
        """Look at all rows."""
        xp = namespace(X)
        if not sparse.issparse(X):
            ends = xp.min(X, axis=0), xp.max(X, axis=0)
            return cls(*(np.asarray(to_numpy(end), dtype=np.float64) for end in ends))
        from polyplane.kernels.feature_ranges import widen_ranges

        low, high = np.zeros((2, X.shape[1]))
        widen_ranges(X.data, X.indices, low, high)
        return cls(low, high)

    @classmethod
    def union(cls, parts: Sequence[FeatureRanges]) -> FeatureRanges:
        """Of matrices one below the other."""
        return cls(np.min([part.low for part in parts], axis=0), np.max([part.high for part in parts], axis=0))

    @property
    def width(self) -> np.ndarray:
        """How far the values of each feature lie apart."""
        return self.high - self.low

    @property
    def middle(self) -> np.ndarray:
        """The centre of each range."""
        return self.low + 0.5 * self.width

    @property
    def size(self) -> np.ndarray:
        """The largest absolute value of each feature."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def refuse_tiny(self, dtype: Any) -> None:
        """Refuse rows whose squares lose their digits; rows of zeros are rows."""
        largest = float(self.size.max())
        if 0.0 < largest < SMALLEST[dtype.itemsize]:
            raise ValueError(
                f"No value of X is larger than {largest:.3g}, and the squares of such values underflow in {dtype}: "
                "scale the features first, for example with MaxAbsScaler."
            )

    def nearer(self, dtype: Any) -> AffineScaling | None:
        """What brings rows so near to 0, and to 1 in size, that a method can undo the rest; None where they are.

        To take a centre off again costs the digits that it has before the point: half of those of float32 are gone when
        the rows are 10,000 times as far from 0 as from each other, and squares have lost them all.
        """
        width, bound = float(self.width.max()), np.finfo(dtype).eps ** (-1 / 3)
        alone = (self.width > 0) & (np.abs(self.middle) > bound * self.width)
        if width == 0.0 or not (alone.any() or self._is_distant(bound) or not _is_comfortable(width)):
            return None
        factor = 1.0 if _is_comfortable(width) else 2.0 ** -round(np.log2(width))
        return AffineScaling(self.middle.astype(dtype).astype(np.float64), np.full(len(self.low), factor))

    def _is_distant(self, bound: float) -> bool:
        """Whether a feature is further from 0 than `bound` times the widest range of all."""
        return bool(np.abs(self.middle).max() > bound * self.width.max())

    def complaint(self, scaling: OwnScaling, name: Callable[[int], str]) -> str | None:
        """What a user has to know of the features, for a method that scales them so; None where all is well."""
        if scaling == "standard" or not self.width.any():
            return None
        size = self.size if scaling == "none" else self.width
        used = np.flatnonzero(size > 0)
        order = used[np.argsort(size[used], kind="stable")]
        small, large = order[int(SMALL_SHARE * (len(order) - 1))], order[-1]
        remedy = "scale the features first, for example with StandardScaler."
        if size[large] > SIZES_APART * size[small]:
            verb = "reaches" if scaling == "none" else "spans"
            return (
                f"{name(large)} {verb} {size[large]:.3g} and {name(small)} only {size[small]:.3g}, so that training "
                f"sees little but the former: {remedy}"
            )
        if scaling == "none" and self._is_distant(DISTANT):
            far = int(np.argmax(np.abs(self.middle)))
            return (
                f"{name(far)} lies about {self.middle[far]:.3g} and spans only {self.width[far]:.3g}, so that training "
                f"sees little but its distance from 0: {remedy}"
            )
        if scaling == "none" and size[large] < TINY:
            return (
                f"No value of X is larger than {size[large]:.3g}, so that training hardly sees them beside the "
                f"constant feature of the intercept: {remedy}"
            )
        return None


def _is_comfortable(width: float) -> bool:
    return COMFORTABLE[0] < width < COMFORTABLE[1]
