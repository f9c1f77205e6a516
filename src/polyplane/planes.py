"""`PlaneSet`: the model of all learners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from polyplane._array_api import (
    describe,
    device_of,
    host_dtype,
    is_foreign,
    is_sparse,
    kind_of,
    like,
    namespace,
    same_place,
    take_rows,
    to_numpy,
    widest_float,
    within_device_memory,
)
from polyplane._threads import in_threads

#: Number of scores in a block of rows, which bounds the memory. A block on a device must be large enough for thousands
#: of threads, and its scores should fit into the cache.
BLOCK_SCORES, DEVICE_BLOCK_SCORES = 1 << 21, 1 << 23


@dataclass(frozen=True, eq=False, repr=False)
class PlaneSet:
    r"""Planes in feature space, each owned by a class.

    The score of class :math:`c` is the largest score of its planes. The prediction is the class with the largest score:

    .. math:: \hat y(x) = \operatorname{argmax}_c \max_{k \in c} \; w_k \cdot x + b_k

    A class without learned planes owns one zero plane.

    Parameters
    ----------
    coef : array of shape (n_planes, n_features)
        Normals of the planes, ordered by class, in float32 or float64. Arrays of PyTorch, CuPy and other libraries that
        follow the array API standard remain on their device, and rows are scored there.
    intercept : array of shape (n_planes,)
        Offsets of the planes, of the same library and dtype.
    indptr : ndarray of shape (n_classes + 1,)
        Class `c` owns the planes ``indptr[c]:indptr[c + 1]``. Each class owns at least one plane.

    Notes
    -----
    The arrays are not copied. NumPy arrays are stored as read-only views.

    Examples
    --------
    The unit square (class 0, the zero plane) and its complement (class 1, four planes):

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

    coef: Any
    intercept: Any
    indptr: np.ndarray

    def __post_init__(self) -> None:
        coef, intercept = (a if is_foreign(a) else np.asarray(a) for a in (self.coef, self.intercept))
        indptr = np.asarray(self.indptr, dtype=np.intp)
        _check_arrays(coef, intercept, indptr)
        for name, array in (("coef", coef), ("intercept", intercept), ("indptr", indptr)):
            view = array
            if isinstance(array, np.ndarray):
                view = array.view()
                view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of_classes(cls, classes: Iterable[tuple[Any, Any]]) -> PlaneSet:
        """Create a set from one ``(coef, intercept)`` pair per class."""
        coefs, intercepts = zip(*classes, strict=True)
        xp = namespace(coefs[0])
        indptr = np.concatenate([[0], np.cumsum([coef.shape[0] for coef in coefs])])
        return cls(xp.concat(coefs), xp.concat(intercepts), indptr)

    def to_numpy(self) -> PlaneSet:
        """Return the planes as NumPy arrays in host memory."""
        return PlaneSet(to_numpy(self.coef), to_numpy(self.intercept), self.indptr)

    def to(self, X: Any) -> PlaneSet:
        """Return the planes as arrays of the library of `X`, on its device.

        Parameters
        ----------
        X : array
            An array on the target device, for example the rows to score.

        Returns
        -------
        planes : PlaneSet
            The same planes.
        """
        if host_dtype(self.coef) == np.float64 and widest_float(kind_of(X)) == namespace(X).float32:
            raise ValueError(f"The planes are float64, which {device_of(X)} does not support: train on float32 rows.")
        return PlaneSet(like(self.coef, X), like(self.intercept, X), self.indptr)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.indptr) - 1

    @property
    def n_planes(self) -> int:
        """Total number of planes."""
        return int(self.coef.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.coef.shape[1])

    @property
    def owners(self) -> np.ndarray:
        """Index of the class that owns each plane, shape (n_planes,)."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.indptr))

    def of(self, c: int) -> tuple[Any, Any]:
        """Return the planes of class `c`: its part of `coef` and of `intercept`."""
        if not 0 <= c < self.n_classes:
            raise ValueError(f"c={c} is not a class of this PlaneSet: its classes are 0 to {self.n_classes - 1}.")
        own = slice(int(self.indptr[c]), int(self.indptr[c + 1]))
        return self.coef[own, :], self.intercept[own]

    def scores(self, X: Any, n_jobs: int | None = None) -> Any:
        """Compute the score of each row on each plane, shape (n_rows, n_planes)."""
        return self._map_blocks(X, lambda scores: scores, n_jobs)

    def class_scores(self, X: Any, n_jobs: int | None = None) -> Any:
        """Compute the score of each row for each class, shape (n_rows, n_classes)."""
        return self._map_blocks(X, self._best_of_classes, n_jobs)

    def winners(self, X: Any, n_jobs: int | None = None) -> Any:
        """Return the index of the plane with the largest score for each row, shape (n_rows,); the first one if tied."""
        return self._map_blocks(X, lambda scores: namespace(scores).argmax(scores, axis=1), n_jobs)

    def predict(self, X: Any, n_jobs: int | None = None) -> Any:
        """Predict the class index of each row: the owner of the plane with the largest score."""
        winners = self.winners(X, n_jobs)
        return take_rows(like(self.owners, winners), winners)

    def margins(self, X: Any, y: Any = None, n_jobs: int | None = None) -> Any:
        """Compute the score of each row's class minus the largest score of another class, shape (n_rows,).

        If `y` (class indices) is given, it is the class of the row, and negative margins are errors. Otherwise the
        class is the predicted one.
        """
        return margins_of(self.class_scores(X, n_jobs), y)

    def prune(self, keep: np.ndarray) -> PlaneSet:
        """Return a set with the planes for which the boolean array `keep` is true."""
        keep = np.asarray(keep)
        if keep.dtype != bool or keep.shape != (self.n_planes,):
            raise ValueError(f"keep must be an array of {self.n_planes} booleans, one per plane.")
        left = np.add.reduceat(keep.astype(np.intp), self.indptr[:-1])
        if not left.all():
            raise ValueError(f"keep removes all planes of class {int(left.argmin())}; each class must keep one.")
        kept = np.flatnonzero(keep)
        indptr = np.concatenate([[0], np.cumsum(left)])
        return PlaneSet(take_rows(self.coef, kept), take_rows(self.intercept, kept), indptr)

    def merge(self, other: PlaneSet) -> PlaneSet:
        """Return a set in which each class owns its planes of both sets; its score is the larger of the two scores."""
        if (self.n_classes, self.n_features) != (other.n_classes, other.n_features):
            raise ValueError(f"{self!r} and {other!r} must have the same classes and features.")
        xp = namespace(self.coef)
        both = zip(map(self.of, range(self.n_classes)), map(other.of, range(self.n_classes)), strict=True)
        return PlaneSet.of_classes((xp.concat([a, c]), xp.concat([b, d])) for (a, b), (c, d) in both)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlaneSet):
            return NotImplemented
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return all(a.dtype == b.dtype and np.array_equal(to_numpy(a), to_numpy(b)) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        device = "" if namespace(self.coef) is np else f", device={device_of(self.coef)}"
        return (
            f"PlaneSet(n_classes={self.n_classes}, n_planes={self.n_planes}, n_features={self.n_features}, "
            f"dtype={host_dtype(self.coef)}{device})"
        )

    def _repr_html_(self) -> str:
        """Return a table of the planes of each class, for notebooks."""
        from html import escape

        planes = self.to_numpy()
        norms = np.linalg.norm(planes.coef, axis=1)
        rows = "".join(
            f"<tr><td>{c}</td><td>{stop - start}</td><td>{norms[start:stop].min():.3g}</td>"
            f"<td>{norms[start:stop].max():.3g}</td></tr>"
            for c, (start, stop) in enumerate(pairwise(planes.indptr.tolist()))
        )
        heads = "".join(f"<th>{head}</th>" for head in ("class", "planes", "smallest norm", "largest norm"))
        return f"<table><caption>{escape(repr(self))}</caption><tr>{heads}</tr>{rows}</table>"

    def __reduce__(self) -> tuple[type[PlaneSet], tuple[Any, ...]]:
        return PlaneSet, self._arrays()

    def _arrays(self) -> tuple[Any, ...]:
        return self.coef, self.intercept, self.indptr

    def _best_of_classes(self, scores: Any) -> Any:
        if self.n_planes == self.n_classes:
            return scores
        xp = namespace(scores)
        if xp is np:
            return np.maximum.reduceat(scores, self.indptr[:-1], axis=1)
        sizes = np.diff(self.indptr)
        if (sizes == sizes[0]).all():
            return xp.max(xp.reshape(scores, (scores.shape[0], self.n_classes, int(sizes[0]))), axis=2)
        edges = zip(self.indptr.tolist(), self.indptr[1:].tolist(), strict=False)
        return xp.stack([xp.max(scores[:, start:stop], axis=1) for start, stop in edges], axis=1)

    def _map_blocks(self, X: Any, reduce: Any, n_jobs: int | None) -> Any:
        """Apply `reduce` to the plane scores of each block of rows."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {tuple(X.shape)}, but the planes have {self.n_features} features.")
        if not same_place(self.coef, X):
            raise ValueError(
                f"X is {describe(X)}, but the planes are {describe(self.coef)}: "
                "move the planes with to(X) or to_numpy()."
            )
        xp, by_feature = namespace(X), self.coef.T
        if is_sparse(X):
            X, by_feature = _sound_csr(X), np.ascontiguousarray(by_feature)

        def score(block: slice) -> Any:
            scores = X[block, :] @ by_feature
            scores += self.intercept
            return reduce(scores)

        if xp is np:
            parts = in_threads(score, _blocks(X.shape[0], self.n_planes, BLOCK_SCORES), n_jobs)
        else:
            with within_device_memory("Predict fewer rows at a time."):
                parts = [score(block) for block in _blocks(X.shape[0], self.n_planes, DEVICE_BLOCK_SCORES)]
        return parts[0] if len(parts) == 1 else xp.concat(parts)


def margins_of(scores: Any, y: Any = None) -> Any:
    """Compute the score of each row's class (`y`, or the predicted one) minus the largest score of another class."""
    xp = namespace(scores)
    y = xp.argmax(scores, axis=1) if y is None else like(y, scores)
    own = xp.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    is_own = y[:, None] == like(np.arange(scores.shape[1]), scores)
    return own - xp.max(xp.where(is_own, -xp.inf, scores), axis=1)


def _sound_csr(X: Any) -> Any:
    """Convert a sparse matrix to CSR and validate its indices: SciPy's product does not check their bounds."""
    if X.format != "csr":
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        X = X.tocsr()
    X.check_format(full_check=True)
    return X


def _blocks(n_rows: int, n_planes: int, n_scores: int) -> Iterator[slice]:
    size = max(1, n_scores // n_planes)
    for start in range(0, max(n_rows, 1), size):
        yield slice(start, min(start + size, n_rows))


def _check_arrays(coef: Any, intercept: Any, indptr: np.ndarray) -> None:
    xp, n_planes = namespace(coef), coef.shape[0] if coef.ndim else 0
    if coef.ndim != 2 or coef.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"coef must be a float32 or float64 matrix, not {coef.dtype} of shape {tuple(coef.shape)}.")
    if not same_place(coef, intercept):
        raise ValueError(f"coef is {describe(coef)}, but intercept is {describe(intercept)}: move one of them.")
    if intercept.shape != coef.shape[:1] or intercept.dtype != coef.dtype:
        raise ValueError(f"intercept must be an array of {n_planes} numbers of dtype {coef.dtype}, one per plane.")
    if not (xp.all(xp.isfinite(coef)) and xp.all(xp.isfinite(intercept))):
        raise ValueError("coef and intercept must be finite.")
    if indptr.ndim != 1 or len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != n_planes:
        raise ValueError(f"indptr must increase from 0 to the number of planes ({n_planes}).")
    if (np.diff(indptr) < 1).any():
        raise ValueError(f"Class {int(np.diff(indptr).argmin())} owns no plane: add a zero plane to it.")
