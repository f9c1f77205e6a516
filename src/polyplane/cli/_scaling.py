"""Features scaled for training, and planes that speak the data's own units all the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np

Method = Literal["none", "standard", "maxabs"]


class Scaling(NamedTuple):
    """Rows seen as ``(x - centre) * factor``.

    Parameters
    ----------
    method : str
        How it was found: "standard" (zero mean, unit variance; the mean of sparse rows is left, so that they stay
        sparse) or "maxabs" (the largest absolute value of each feature is 1).
    centre : ndarray of shape (n_features,)
        What is taken off.
    factor : ndarray of shape (n_features,)
        What is multiplied with.
    """

    method: str
    centre: np.ndarray
    factor: np.ndarray

    def apply(self, X: Any) -> Any:
        """The rows, scaled; X is not changed."""
        if not hasattr(X, "indptr"):
            return (X - self.centre.astype(X.dtype)) * self.factor.astype(X.dtype)
        scaled = X.copy()
        scaled.data *= self.factor.astype(X.dtype)[X.indices]
        return scaled

    def fold(self, planes: Any) -> Any:
        """Planes for scaled rows as planes for the rows themselves."""
        from polyplane.planes import PlaneSet

        coef = planes.coef * self.factor
        intercept = planes.intercept - coef @ self.centre
        dtype = planes.coef.dtype
        return PlaneSet(coef.astype(dtype), intercept.astype(dtype), planes.indptr)

    def to_metadata(self) -> dict[str, Any]:
        """What a model file keeps of it."""
        return {"scaling": self.method, "scaling_centre": self.centre, "scaling_factor": self.factor}


def from_metadata(metadata: Mapping[str, Any]) -> Scaling | None:
    """The scaling that a model was trained with."""
    if metadata.get("scaling", "none") == "none":
        return None
    return Scaling(metadata["scaling"], metadata["scaling_centre"], metadata["scaling_factor"])


class Moments:
    """Mean, sum of squared deviations and largest absolute value of each feature, over matrices that come in parts."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.is_sparse = False
        self.precision = 0.0
        self.mean: Any = 0.0
        self.squares: Any = 0.0
        self.largest: Any = 0.0

    def add(self, X: Any) -> None:
        """Take some more rows; columns that were not there before were 0."""
        import numpy as np

        from polyplane.learners._units import moments

        n = X.shape[0]
        mean, variance = moments(X, np.ones(n))
        self.is_sparse, self.precision = hasattr(X, "indptr"), float(np.finfo(X.dtype).eps)
        largest = np.abs(X).max(axis=0)
        largest = largest.toarray().ravel() if self.is_sparse else largest
        if self.n_rows == 0:
            self.mean, self.squares, self.largest = np.zeros((3, len(mean)))
        missing = (0, len(mean) - len(self.mean))
        before = [np.pad(array, missing) for array in (self.mean, self.squares, self.largest)]
        total = self.n_rows + n
        gap = mean - before[0]
        self.mean = before[0] + gap * (n / total)
        self.squares = before[1] + variance * n + gap**2 * (self.n_rows * n / total)
        self.largest = np.maximum(before[2], largest)
        self.n_rows = total

    def scaling(self, method: str) -> Scaling | None:
        """The scaling by a method; a feature that says nothing is left as it is."""
        import numpy as np

        if method == "none":
            return None
        if method == "maxabs":
            return Scaling(method, np.zeros(len(self.mean)), 1.0 / np.where(self.largest > 0, self.largest, 1.0))
        variance = self.squares / self.n_rows
        variance[variance <= np.square(16 * self.precision * self.mean)] = 0.0  # a constant, but for rounding
        centre = np.zeros(len(self.mean)) if self.is_sparse else self.mean
        return Scaling(method, centre, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)))


def scaling_of(matrices: Iterable[Any], method: str) -> Scaling | None:
    """The scaling by a method, from all rows."""
    if method == "none":
        return None
    moments = Moments()
    for X in matrices:
        moments.add(X)
    return moments.scaling(method)
