"""The rows that a method trains on, and the ranges of their features."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import host_dtype, is_sparse, namespace, to_numpy
from polyplane.scaling import AffineScaling


@dataclass(frozen=True)
class Data:
    """Validated rows with their labels and weights.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows, never copied; float32 or float64. The other arrays are in host memory, also if X is on a device.
    y : ndarray of shape (n_rows,)
        The classes, as integers.
    weight : ndarray of shape (n_rows,)
        Sample weight times class weight, in the dtype of X.
    train : ndarray
        The indices of the training rows: those of positive weight that are not held out.
    n_classes : int
        The number of classes; not all of them need occur in these rows.
    stream : bool
        Whether more rows may follow, so that the number of passes is unknown.
    half_life : float or None
        For streams with concept drift: the number of rows after which the weight of a row is halved.
    is_part : bool
        Whether other partitions are trained on at the same time and the models are averaged.
    is_repeated : bool
        Whether these rows of a stream were seen in an earlier pass.
    identity : bytes or None
        An identifier of the rows that is cheaper than a hash. None: use the SHA-256; see `fingerprint`.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    train: np.ndarray
    n_classes: int
    stream: bool = False
    half_life: float | None = None
    is_part: bool = False
    is_repeated: bool = False
    identity: bytes | None = None

    @property
    def training_weight(self) -> np.ndarray:
        """The weight of each row in training, 0 for held-out rows."""
        weight = np.zeros(len(self.y))
        weight[self.train] = self.weight[self.train]
        return weight

    @property
    def class_counts(self) -> np.ndarray:
        """The number of training rows of each class."""
        return np.bincount(self.y[self.train], minlength=self.n_classes)

    @cached_property
    def fingerprint(self) -> bytes:
        """Return the SHA-256 of the rows, labels, weights and indices of the training rows, to compare data sets."""
        if self.identity is not None:
            return self.identity
        X = self.X
        parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (to_numpy(X),)
        digest = hashlib.sha256(repr((tuple(X.shape), host_dtype(X), self.n_classes)).encode())
        for part in (*parts, self.y, self.weight, self.train):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    def hold_out(self, fraction: float, seed: int) -> tuple[Data, np.ndarray]:
        """Hold out a stratified fraction of the training rows; return the data without them, and their indices."""
        from sklearn.model_selection import train_test_split  # slow to import, and rarely needed

        try:
            train, held_out = train_test_split(
                self.train, test_size=fraction, random_state=seed, stratify=self.y[self.train]
            )
        except ValueError as error:
            raise ValueError(
                f"early_stopping={fraction} needs more rows of each class than there are: {error}"
            ) from None
        return replace(self, train=train), held_out


#: The scaling that a method applies itself: none; centring and one common factor; unit variance for each feature.
OwnScaling = Literal["none", "common", "standard"]

#: The largest allowed values, by the size of their dtype: sums of their squares over rows, features and steps are
#: finite, and so are the squares of such sums, which are computed in float64.
LARGEST = {4: 1e15, 8: 1e70}

#: The largest absolute value must be above this: below it, squares underflow.
SMALLEST = {4: 1e-15, 8: 1e-70}

#: A larger ratio between the sizes of features causes a warning. Chosen on 33 data sets: for pixels, one-hot codes,
#: tf-idf and other features in one unit the ratio is below 65; for tables with mixed units it is at least 350 (pima).
SIZES_APART = 100.0

#: The quantile of the feature sizes that represents the small features; the minimum would be a pixel that is nearly
#: always black.
SMALL_SHARE = 0.1

#: A larger distance from 0, in units of the range, causes a warning in methods that do not centre the rows. In the same
#: data sets, unscaled, it is at most 4, except in those with a warning for another reason.
DISTANT = 10.0

#: Methods without scaling learn almost nothing from smaller values, because the regularisation dominates.
TINY = 1e-4

#: Ranges in which methods with their own scaling lose no precision, also in float32.
COMFORTABLE = (1e-5, 1e12)


def refuse_extremes(X: Any) -> None:
    """Raise an error for finite rows whose sum of squares overflows."""
    dtype, values = host_dtype(X), X.data if sparse.issparse(X) else X
    xp, largest = namespace(values), LARGEST[dtype.itemsize]
    if xp is np:
        flat = values.reshape(-1)
        with np.errstate(over="ignore"):
            if float(flat @ flat) < largest**2:  # a single pass over the rows
                return
    if values.shape[0] and max(float(xp.max(values)), -float(xp.min(values))) > largest:
        raise ValueError(
            f"X contains {_most_extreme(X):.3g}, and the squares of such values overflow when summed in {dtype}: "
            "scale the features first, for example with MaxAbsScaler"
            + (", or convert X to float64." if dtype == np.float32 else ".")
        )


def _most_extreme(X: Any) -> float:
    low, high = FeatureRanges.of(X)
    return float(high.max() if high.max() >= -low.min() else low.min())


class FeatureRanges(NamedTuple):
    """The minimum and maximum of each feature, in host memory; zeros of sparse rows count as values."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, X: Any) -> FeatureRanges:
        """Compute the ranges of all rows."""
        xp = namespace(X)
        if not sparse.issparse(X):
            ends = xp.min(X, axis=0), xp.max(X, axis=0)
            return cls(*(np.asarray(to_numpy(end), dtype=np.float64) for end in ends))
        from polyplane.kernels.rows import widen_ranges

        low, high = np.zeros((2, X.shape[1]))
        widen_ranges(X.data, X.indices, low, high)
        return cls(low, high)

    @classmethod
    def union(cls, parts: Sequence[FeatureRanges]) -> FeatureRanges:
        """Combine the ranges of several sets of rows."""
        return cls(np.min([part.low for part in parts], axis=0), np.max([part.high for part in parts], axis=0))

    @property
    def width(self) -> np.ndarray:
        """The maximum minus the minimum of each feature."""
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
        """Raise an error for rows whose squares underflow; rows of zeros are valid."""
        largest = float(self.size.max())
        if 0.0 < largest < SMALLEST[dtype.itemsize]:
            raise ValueError(
                f"No value of X is larger than {largest:.3g}, and the squares of such values underflow in {dtype}: "
                "scale the features first, for example with MaxAbsScaler."
            )

    def nearer(self, dtype: Any) -> AffineScaling | None:
        """Return a shift and a factor that bring the rows close to 0 and to size 1; None if this is not necessary.

        Centring loses precision if rows lie far from 0: at a distance of 10,000 times their range, half of the digits
        of float32 are lost, and all of those of the squares.
        """
        width, bound = float(self.width.max()), np.finfo(dtype).eps ** (-1 / 3)
        alone = (self.width > 0) & (np.abs(self.middle) > bound * self.width)
        if width == 0.0 or not (alone.any() or self._is_distant(bound) or not _is_comfortable(width)):
            return None
        factor = 1.0 if _is_comfortable(width) else 2.0 ** -round(np.log2(width))
        return AffineScaling(self.middle.astype(dtype).astype(np.float64), np.full(len(self.low), factor))

    def _is_distant(self, bound: float) -> bool:
        """Whether a feature lies further from 0 than `bound` times the largest range of all features."""
        return bool(np.abs(self.middle).max() > bound * self.width.max())

    def complaint(self, scaling: OwnScaling, name: Callable[[int], str]) -> str | None:
        """Return a warning about the scales of the features, for a method with this scaling; None if there is none."""
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
                f"{name(large)} {verb} {size[large]:.3g} and {name(small)} only {size[small]:.3g}, so the former "
                f"dominates training: {remedy}"
            )
        if scaling == "none" and self._is_distant(DISTANT):
            far = int(np.argmax(np.abs(self.middle)))
            return (
                f"{name(far)} lies about {self.middle[far]:.3g} and spans only {self.width[far]:.3g}, so its distance "
                f"from 0 dominates training: {remedy}"
            )
        if scaling == "none" and size[large] < TINY:
            return (
                f"No value of X is larger than {size[large]:.3g}, so the constant feature of the intercept dominates "
                f"training: {remedy}"
            )
        return None


def _is_comfortable(width: float) -> bool:
    return COMFORTABLE[0] < width < COMFORTABLE[1]
