"""The rows that a method trains on, the ranges of their features, and affine scalings of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from polyplane._array_api import device_of, host_dtype, is_on_host, is_sparse, like, namespace, take_rows, to_numpy


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
    ranks : ndarray of shape (n_features, n_classes) or None
        The order of the classes by the weights of their planes for each feature, if columns are monotone; see
        `polyplane.learners.monotone`.
    memory : dict or None
        What several runs on these rows share; see `shared`. None: nothing is kept.
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
    ranks: np.ndarray | None = None
    memory: dict[Any, Any] | None = None

    def shared(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return what `compute` does, computed only once if several runs share it."""
        if self.memory is None:
            return compute()
        value = self.memory.get(key)
        if value is None:
            self.memory[key] = value = compute()
        return value

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


def as_rows(X: Any) -> Any:
    """View a validated matrix as the rows that kernels take; nothing is copied."""
    from polyplane.kernels.rows import DenseRows, SparseRows

    return SparseRows(X.data, X.indices, X.indptr) if is_sparse(X) else DenseRows(X)


#: The scaling that a method applies itself: none; centring and one common factor; unit variance for each feature.
OwnScaling = Literal["none", "common", "standard"]

#: The largest allowed values, by the size of their dtype: sums of their squares over rows, features and steps are
#: finite, and so are the squares of such sums, which are computed in float64.
LARGEST_VALUE = {4: 1e15, 8: 1e70}

#: The largest absolute value must be above this: below it, squares underflow.
SMALLEST_VALUE = {4: 1e-15, 8: 1e-70}

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
TINY_VALUES = 1e-4

#: Ranges in which methods with their own scaling lose no precision, also in float32.
COMFORTABLE = (1e-5, 1e12)


def refuse_extremes(X: Any) -> None:
    """Raise an error for finite rows whose sum of squares overflows."""
    dtype, values = host_dtype(X), X.data if is_sparse(X) else X
    xp, largest = namespace(values), LARGEST_VALUE[dtype.itemsize]
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
        if not is_sparse(X):
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
        if 0.0 < largest < SMALLEST_VALUE[dtype.itemsize]:
            raise ValueError(
                f"No value of X is larger than {largest:.3g}, and the squares of such values underflow in {dtype}: "
                "scale the features first, for example with MaxAbsScaler."
            )

    def maxabs(self) -> AffineScaling:
        """Divide each feature by its largest absolute value."""
        return AffineScaling(np.zeros(len(self.low)), 1.0 / np.where(self.size > 0, self.size, 1.0))

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
        if scaling == "none" and size[large] < TINY_VALUES:
            return (
                f"No value of X is larger than {size[large]:.3g}, so the constant feature of the intercept dominates "
                f"training: {remedy}"
            )
        return None


def _is_comfortable(width: float) -> bool:
    return COMFORTABLE[0] < width < COMFORTABLE[1]


#: Number of rows in a block of a dense matrix, to avoid a copy of the whole; on a device, number of elements.
BLOCK_ROWS, DEVICE_BLOCK = 4096, 1 << 26


class AffineScaling(NamedTuple):
    """The transformation ``factor * (x - centre)`` of rows."""

    centre: Any  # an array on the device of the rows, except for `standard`
    factor: Any  # one number, or one per feature

    @classmethod
    def common(cls, X: Any, weight: np.ndarray) -> AffineScaling:
        """Scale all features by one factor, so that centred rows have a mean squared norm of 1."""
        mean, variance = moments(X, weight)
        total = float(variance.sum())
        return cls(like(mean, X, X.dtype), 1.0 / float(np.sqrt(total)) if total > 0 else 1.0)

    @classmethod
    def standard(cls, X: Any, weight: np.ndarray) -> AffineScaling:
        """Scale each feature to zero mean and unit variance over the weighted rows; constant features are only centred.

        The scaling is always stored in host memory: it transforms the planes, which are few, not the rows.
        """
        mean, variance = moments(X, weight)
        return cls(mean, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))

    @classmethod
    def identity(cls, n_features: int) -> AffineScaling:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features))

    def apply(self, X: Any) -> Any:
        """Return a scaled copy of X; sparse rows stay sparse and are not centred."""
        if not is_sparse(X):
            return (X - like(self.centre, X, X.dtype)) * like(self.factor, X, X.dtype)
        scaled = X.copy()
        scaled.data *= self.factor.astype(X.dtype)[X.indices]
        return scaled

    def take(self, X: Any, rows: Any) -> Any:
        """Return some rows of X, dense and scaled, on the device of `centre`."""
        taken = like(take_rows(X, rows), self.centre) if not is_sparse(X) else X[rows].toarray()
        return (taken - self.centre) * _cast(self.factor, taken)

    def undo(self, Z: Any) -> Any:
        """Transform scaled rows back to the units of the data."""
        return Z / self.factor + self.centre

    def then(self, other: AffineScaling) -> AffineScaling:
        """Return the composition of this scaling, followed by another."""
        return AffineScaling(self.undo(other.centre), self.factor * other.factor)

    def to_input_space(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Convert planes for scaled rows to planes for the rows of X."""
        coef = coef * _cast(self.factor, coef)
        return coef, intercept - coef @ self.centre


def _cast(factor: Any, array: Any) -> Any:
    """Convert a factor so that multiplication keeps the dtype of `array`."""
    return np.asarray(factor, dtype=array.dtype) if namespace(array) is np else factor


def moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the weighted mean and variance of each feature, in host memory; variances within rounding error are 0."""
    dtype = host_dtype(X)
    if is_sparse(X):
        from sklearn.utils.sparsefuncs import mean_variance_axis

        mean, variance = mean_variance_axis(X, axis=0, weights=weight.astype(dtype))
    else:
        xp = namespace(X)
        share = like((weight / weight.sum()).astype(dtype), X)
        mean = share @ X
        apart = ((share[block], X[block, :] - mean) for block in row_blocks(X))
        sums = [xp.stack([part @ xp.square(gap), part @ gap]) for part, gap in apart]
        # Correct for the rounding of the mean, which would be the whole variance of a constant feature.
        total = sum(sums[1:], sums[0])
        variance = total[0, :] - xp.square(total[1, :])
    mean, variance = (np.asarray(to_numpy(moment), dtype=np.float64) for moment in (mean, variance))
    noise = np.square(16 * np.finfo(dtype).eps * mean)
    return mean, np.where(variance > noise, variance, 0.0)


def row_blocks(X: Any, n_rows: int | None = None) -> Iterator[slice]:
    """Return slices that cover the rows of a dense matrix, or so many rows of it, block by block."""
    n_rows = X.shape[0] if n_rows is None else n_rows
    size = BLOCK_ROWS if is_on_host(X) else max(1, DEVICE_BLOCK // X.shape[1])
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


class FeatureMoments:
    """Mean, variance and largest absolute value of each feature, computed incrementally over batches of rows."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.is_sparse = False
        self._precision = 0.0
        self.mean: Any = np.zeros(0)
        self._squares: Any = np.zeros(0)
        self.largest: Any = np.zeros(0)

    def add(self, X: Any) -> None:
        """Add a batch of rows; new columns are assumed to be 0 in earlier batches."""
        n = X.shape[0]
        mean, variance = moments(X, np.ones(n))
        self.is_sparse, self._precision = is_sparse(X), float(np.finfo(X.dtype).eps)
        largest = np.abs(X).max(axis=0)
        largest = largest.toarray().ravel() if self.is_sparse else largest
        missing = (0, len(mean) - len(self.mean))
        before = [np.pad(array, missing) for array in (self.mean, self._squares, self.largest)]
        total = self.n_rows + n
        gap = mean - before[0]
        self.mean = before[0] + gap * (n / total)
        self._squares = before[1] + variance * n + gap**2 * (self.n_rows * n / total)
        self.largest = np.maximum(before[2], largest)
        self.n_rows = total

    @property
    def variance(self) -> np.ndarray:
        """Variance of each feature; variances within rounding error are 0."""
        variance: np.ndarray = self._squares / self.n_rows
        variance[variance <= np.square(16 * self._precision * self.mean)] = 0.0
        return variance

    def standard(self) -> AffineScaling:
        """Scale each feature to zero mean and unit variance; sparse rows are not centred, so that they stay sparse."""
        variance = self.variance
        centre = np.zeros(len(self.mean)) if self.is_sparse else self.mean
        return AffineScaling(centre, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))

    def maxabs(self) -> AffineScaling:
        """Divide each feature by its largest absolute value."""
        return AffineScaling(np.zeros(len(self.mean)), 1.0 / np.where(self.largest > 0, self.largest, 1.0))


#: Products with dense rows are centred, not the rows, if the relative rounding error is below this.
ROUNDING = 1e-5
#: A part of a dense matrix is copied once, not for each product, if it has at most this many numbers.
FEW = 1 << 22


class ScaledRows:
    """Some rows of a matrix as ``z = factor * (x - centre)``, with one factor for all features.

    Sparse rows stay sparse: the centre is subtracted from the products. The same holds for all rows of a dense matrix,
    or for few of them, unless they are too far from the origin; otherwise they are scaled block by block.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The matrix.
    rows : ndarray of int
        Indices of the rows, on the host.
    scaling : AffineScaling
        The centre, on the device of the rows, and the factor.
    """

    def __init__(self, X: Any, rows: np.ndarray, scaling: AffineScaling) -> None:
        whole = len(rows) == X.shape[0] and bool((np.diff(rows) == 1).all())
        copied = not whole and (is_sparse(X) or len(rows) * X.shape[1] <= FEW)
        self._x, whole = (take_rows(X, rows) if copied else X), whole or copied
        self._rows = None if whole else rows
        self._scaling, self._shape = scaling, (len(rows), X.shape[1])
        distance = float(np.linalg.norm(to_numpy(scaling.centre).astype(np.float64))) * scaling.factor
        self._is_centred_late = is_sparse(X) or (whole and distance * np.finfo(host_dtype(X)).eps < ROUNDING)

    def times(self, V: Any) -> Any:
        """The products with each row of `V` (n, n_features): shape (n_rows, n)."""
        if not self._is_centred_late:
            out = namespace(V).empty((self._shape[0], V.shape[0]), dtype=V.dtype, device=device_of(V))
            for block, z in self._blocks():
                out[block, :] = z @ V.T
            return out
        coef = V.T * self._scaling.factor
        coef = np.ascontiguousarray(coef) if is_sparse(self._x) else coef
        return self._x @ coef - self._scaling.centre @ coef

    def sums(self, R: Any) -> Any:
        """The sums of the rows, weighted by each column of `R` (n_rows, n): shape (n, n_features)."""
        if not self._is_centred_late:
            return sum(R[block, :].T @ z for block, z in self._blocks())
        total = namespace(R).sum(R, axis=0)
        return ((self._x.T @ R).T - total[:, None] * self._scaling.centre) * self._scaling.factor

    def square_sums(self, weight: Any) -> Any:
        """The weighted sum of the squares of each feature: shape (n_features,)."""
        if not is_sparse(self._x):
            return sum(weight[block] @ (z * z) for block, z in self._blocks())
        centre, factor = self._scaling.centre, self._scaling.factor
        uncentred = self._squares().T @ weight - 2 * centre * (self._x.T @ weight)
        return np.maximum(uncentred + centre * centre * weight.sum(), 0) * factor**2

    def square_norms(self) -> Any:
        """The squared norm of each row."""
        if not is_sparse(self._x):
            return namespace(self._x).concat([namespace(z).sum(z * z, axis=1) for _, z in self._blocks()])
        centre, factor = self._scaling.centre, self._scaling.factor
        uncentred = np.asarray(self._squares().sum(axis=1)).ravel() - 2 * (self._x @ centre)
        return np.maximum(uncentred + centre @ centre, 0) * factor**2

    def _squares(self) -> Any:
        from scipy import sparse  # prediction needs NumPy only

        x = self._x
        return sparse.csr_array((x.data * x.data, x.indices, x.indptr), shape=x.shape)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of dense scaled rows, with their positions."""
        for block in row_blocks(self._x, self._shape[0]):
            rows = np.arange(block.start, block.stop) if self._rows is None else self._rows[block]
            yield block, self._scaling.take(self._x, rows)
