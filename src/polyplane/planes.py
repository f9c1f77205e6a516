"""`PlaneSet`: the one model of the library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._threads import in_threads

#: Rows are scored in blocks of about this many scores, so that memory stays bounded.
BLOCK_SCORES = 1 << 21


@dataclass(frozen=True, eq=False, repr=False)
class PlaneSet:
    r"""Planes in feature space, each owned by a class.

    The score of class :math:`c` is the best of its planes, and the class with the best score wins:

    .. math:: \hat y(x) = \arg\max_c \max_{k \in c} \; w_k \cdot x + b_k

    A class with nothing to say owns one zero plane.

    Parameters
    ----------
    coef : ndarray of shape (n_planes, n_features)
        The planes' normals, class by class, in float32 or float64.
    intercept : ndarray of shape (n_planes,)
        The planes' offsets, of the same dtype.
    indptr : ndarray of shape (n_classes + 1,)
        Class `c` owns the planes ``indptr[c]:indptr[c + 1]``; no class is without a plane.

    Notes
    -----
    The arrays are kept as read-only views, not copied.

    Examples
    --------
    The unit square (class 0, the zero plane) and what surrounds it (class 1, four planes):

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> inside = (np.zeros((1, 2)), np.zeros(1))
    >>> around = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([0.0, -1.0, 0.0, -1.0]))
    >>> square = PlaneSet.of_classes([inside, around])
    >>> square
    PlaneSet(n_classes=2, n_planes=5, n_features=2, dtype=float64)
    >>> square.predict(np.array([[0.5, 0.5], [0.5, 1.5]]))
    array([0, 1])
    >>> square.winners(np.array([[0.5, 0.5], [0.5, 1.5]]))
    array([0, 4])
    """

    coef: np.ndarray
    intercept: np.ndarray
    indptr: np.ndarray

    def __post_init__(self) -> None:
        coef, intercept = np.asarray(self.coef), np.asarray(self.intercept)
        indptr = np.asarray(self.indptr, dtype=np.intp)
        _check_arrays(coef, intercept, indptr)
        for name, array in (("coef", coef), ("intercept", intercept), ("indptr", indptr)):
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of_classes(cls, classes: Iterable[tuple[np.ndarray, np.ndarray]]) -> PlaneSet:
        """Build a set from one ``(coef, intercept)`` pair per class."""
        coefs, intercepts = zip(*classes, strict=True)
        indptr = np.concatenate([[0], np.cumsum([len(coef) for coef in coefs])])
        return cls(np.concatenate(coefs), np.concatenate(intercepts), indptr)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.indptr) - 1

    @property
    def n_planes(self) -> int:
        """Number of planes of all classes together."""
        return len(self.coef)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.coef.shape[1])

    @property
    def owners(self) -> np.ndarray:
        """The class that owns each plane, shape (n_planes,)."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.indptr))

    def of(self, c: int) -> tuple[np.ndarray, np.ndarray]:
        """The planes of class `c`: its rows of `coef` and of `intercept`."""
        if not 0 <= c < self.n_classes:
            raise ValueError(f"There is no class {c}: this PlaneSet has classes 0 to {self.n_classes - 1}.")
        own = slice(self.indptr[c], self.indptr[c + 1])
        return self.coef[own], self.intercept[own]

    def scores(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Score of each row on each plane, shape (n_rows, n_planes)."""
        return self._map_blocks(X, lambda scores: scores, n_jobs)

    def class_scores(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Score of each row for each class, shape (n_rows, n_classes)."""
        return self._map_blocks(X, self._best_of_classes, n_jobs)

    def winners(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """The plane that decides each row, shape (n_rows,): the first of the best."""
        return self._map_blocks(X, lambda scores: scores.argmax(axis=1), n_jobs)

    def predict(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """The class of each row, as an integer: the owner of the winning plane."""
        return self.owners[self.winners(X, n_jobs)]

    def margins(self, X: Any, y: np.ndarray | None = None, n_jobs: int | None = None) -> np.ndarray:
        """Score of each row's class less the best score of another class, shape (n_rows,).

        The class is `y` (integers) where given: negative margins are errors. Otherwise it is the predicted class.
        """
        scores = self.class_scores(X, n_jobs)
        rows = np.arange(len(scores))
        y = scores.argmax(axis=1) if y is None else np.asarray(y)
        own = scores[rows, y].copy()
        scores[rows, y] = -np.inf
        return own - scores.max(axis=1)

    def prune(self, keep: np.ndarray) -> PlaneSet:
        """The set with only those planes for which the boolean array `keep` is true."""
        keep = np.asarray(keep)
        if keep.dtype != bool or keep.shape != (self.n_planes,):
            raise ValueError(f"keep must hold one boolean per plane ({self.n_planes}).")
        left = np.add.reduceat(keep.astype(np.intp), self.indptr[:-1])
        if not left.all():
            raise ValueError(f"Class {int(left.argmin())} would lose its last plane.")
        return PlaneSet(self.coef[keep], self.intercept[keep], np.concatenate([[0], np.cumsum(left)]))

    def merge(self, other: PlaneSet) -> PlaneSet:
        """The set in which each class owns its planes from both sets: the score of a class is the better of the two."""
        if (self.n_classes, self.n_features) != (other.n_classes, other.n_features):
            raise ValueError(f"{self!r} and {other!r} must have the same classes and features.")
        both = zip(map(self.of, range(self.n_classes)), map(other.of, range(self.n_classes)), strict=True)
        return PlaneSet.of_classes((np.concatenate([a, c]), np.concatenate([b, d])) for (a, b), (c, d) in both)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlaneSet):
            return NotImplemented
        return all(
            a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"PlaneSet(n_classes={self.n_classes}, n_planes={self.n_planes}, n_features={self.n_features}, "
            f"dtype={self.coef.dtype})"
        )

    def __reduce__(self) -> tuple[type[PlaneSet], tuple[np.ndarray, ...]]:
        return PlaneSet, self._arrays()

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.coef, self.intercept, self.indptr

    def _best_of_classes(self, scores: np.ndarray) -> np.ndarray:
        if self.n_planes == self.n_classes:
            return scores
        best: np.ndarray = np.maximum.reduceat(scores, self.indptr[:-1], axis=1)
        return best

    def _map_blocks(self, X: Any, reduce: Any, n_jobs: int | None) -> np.ndarray:
        """Apply `reduce` to the plane scores of each block of rows."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {X.shape}; this PlaneSet needs {self.n_features} columns.")
        by_feature = self.coef.T if not sparse.issparse(X) else np.ascontiguousarray(self.coef.T)

        def score(block: slice) -> Any:
            scores = X[block] @ by_feature
            scores += self.intercept
            return reduce(scores)

        parts = in_threads(score, _blocks(X.shape[0], self.n_planes), n_jobs)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _blocks(n_rows: int, n_planes: int) -> Iterator[slice]:
    size = max(1, BLOCK_SCORES // n_planes)
    for start in range(0, max(n_rows, 1), size):
        yield slice(start, min(start + size, n_rows))


def _check_arrays(coef: np.ndarray, intercept: np.ndarray, indptr: np.ndarray) -> None:
    if coef.ndim != 2 or coef.dtype not in (np.float32, np.float64):
        raise ValueError(f"coef must be a float32 or float64 matrix, not {coef.dtype} of shape {coef.shape}.")
    if intercept.shape != coef.shape[:1] or intercept.dtype != coef.dtype:
        raise ValueError(f"intercept must hold one {coef.dtype} per plane ({len(coef)}).")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coef and intercept must be finite.")
    if indptr.ndim != 1 or len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != len(coef):
        raise ValueError(f"indptr must rise from 0 to the number of planes ({len(coef)}).")
    if (np.diff(indptr) < 1).any():
        raise ValueError(f"Class {int(np.diff(indptr).argmin())} owns no plane; give it a zero plane.")
