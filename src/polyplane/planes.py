"""`PlaneSet`: the model of all learners."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, pairwise
from typing import Any, Literal

import numpy as np

from polyplane._array_api import (
    blocks_of,
    describe,
    device_of,
    host_dtype,
    in_threads,
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

#: Number of scores in a block of rows, which bounds the memory, and should fit into the cache. A block on a device must
#: be large enough for thousands of threads.
BLOCK_SCORES, DEVICE_BLOCK_SCORES = 1 << 18, 1 << 23
#: Smallest number of rows of a block: with fewer, the planes are read from memory too often.
LEAST_ROWS = 32
#: How much further below the highest score, relative to it, a plane is considered because of rounding.
NEARLY_TIED = 1e-5


@dataclass(frozen=True, eq=False, repr=False)
class PlaneSet:
    r"""Planes in feature space, each owned by a class.

    The score of class :math:`c` is the largest score of its planes. The prediction is the class with the largest score:

    .. math:: \hat y(x) = \operatorname{argmax}_c \max_{k \in c} \; w_k \cdot x + b_k

    A class without learned planes owns one zero plane. In a committee, each member has planes of all classes, and the
    score of a class is the weighted mean of its scores in the members. With ``pooling="logsumexp"``, the score of a
    class in a member is :math:`\log \sum_k e^{w_k \cdot x + b_k}`, a smooth maximum: at least the largest score of its
    planes, and at most the logarithm of their number above it.

    Parameters
    ----------
    coef : array of shape (n_planes, n_features)
        Normals of the planes, ordered by class, in float32 or float64. Arrays of PyTorch, CuPy and other libraries that
        follow the array API standard remain on their device, and rows are scored there.
    intercept : array of shape (n_planes,)
        Offsets of the planes, of the same library and dtype.
    indptr : ndarray of shape (n_members * n_classes + 1,)
        Class `c` owns the planes ``indptr[c]:indptr[c + 1]``; in a committee, class `c` of member `m` owns the planes
        ``indptr[i]:indptr[i + 1]`` with ``i = m * n_classes + c``. Each class owns at least one plane in each member.
    member_weight : ndarray of shape (n_members,), default=[1.0]
        Weights of the members of a committee; their sum is 1.
    pooling : {"max", "logsumexp"}, default="max"
        How the score of a class in a member follows from the scores of its planes.

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
    member_weight: Any = (1.0,)
    pooling: Literal["max", "logsumexp"] = "max"

    def __post_init__(self) -> None:
        coef, intercept = (a if is_foreign(a) else np.asarray(a) for a in (self.coef, self.intercept))
        indptr = np.asarray(self.indptr, dtype=np.intp)
        weight = np.asarray(self.member_weight, dtype=np.float64)
        _check_arrays(coef, intercept, indptr)
        _check_members(indptr, weight, self.pooling)
        arrays = {"coef": coef, "intercept": intercept, "indptr": indptr, "member_weight": weight}
        for name, array in arrays.items():
            view = array
            if isinstance(array, np.ndarray):
                view = array.view()
                view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of_classes(cls, classes: Iterable[tuple[Any, Any]], pooling: Literal["max", "logsumexp"] = "max") -> PlaneSet:
        """Create a set from one ``(coef, intercept)`` pair per class."""
        coefs, intercepts = zip(*classes, strict=True)
        xp = namespace(coefs[0])
        indptr = np.concatenate([[0], np.cumsum([coef.shape[0] for coef in coefs])])
        return cls(xp.concat(coefs), xp.concat(intercepts), indptr, pooling=pooling)

    @classmethod
    def of_members(cls, members: Sequence[PlaneSet], weight: Any = None) -> PlaneSet:
        """Create a committee from the planes of its members.

        Parameters
        ----------
        members : sequence of PlaneSet
            Planes of single members, with the same classes, features, dtype and pooling.
        weight : array-like of shape (n_members,), default=None
            Weights of the members. None: all are equal.

        Returns
        -------
        planes : PlaneSet
            The planes of all members, whose scores take one matrix product.

        Examples
        --------
        >>> import numpy as np
        >>> from polyplane import PlaneSet
        >>> line, steeper = (PlaneSet(np.array([[0.0], [w]]), np.array([0.0, -1.0]), [0, 1, 2]) for w in (1.0, 3.0))
        >>> both = PlaneSet.of_members([line, steeper])
        >>> both.class_scores(np.array([[2.0]]))
        array([[0., 3.]])
        >>> both.predict(np.array([[0.4], [0.6]]))
        array([0, 1])
        """
        if not members:
            raise ValueError("members must contain at least one PlaneSet.")
        first = members[0]
        form = (first.n_classes, first.n_features, first.coef.dtype, first.pooling, 1)
        for member in members:
            if (member.n_classes, member.n_features, member.coef.dtype, member.pooling, member.n_members) != form:
                raise ValueError(f"{member!r} and {first!r} must have the same classes, features, dtype and pooling.")
        if len(members) == 1:
            return first
        xp = namespace(first.coef)
        starts = np.cumsum([0, *(member.n_planes for member in members[:-1])])
        ends = [start + member.indptr[1:] for start, member in zip(starts, members, strict=True)]
        weight = np.ones(len(members)) if weight is None else np.asarray(weight, dtype=np.float64)
        return cls(
            xp.concat([member.coef for member in members]),
            xp.concat([member.intercept for member in members]),
            np.concatenate([[0], *ends]),
            weight / weight.sum(),
            first.pooling,
        )

    @property
    def members(self) -> tuple[PlaneSet, ...]:
        """The planes of each member of a committee; of a single model, the set itself."""
        if self.n_members == 1:
            return (self,)
        found = []
        for start in range(0, len(self.indptr) - 1, self.n_classes):
            indptr = self.indptr[start : start + self.n_classes + 1]
            own = slice(int(indptr[0]), int(indptr[-1]))
            edges = indptr - indptr[0]
            found.append(PlaneSet(self.coef[own, :], self.intercept[own], edges, pooling=self.pooling))
        return tuple(found)

    def to_numpy(self) -> PlaneSet:
        """Return the planes as NumPy arrays in host memory."""
        return self.replace(coef=to_numpy(self.coef), intercept=to_numpy(self.intercept))

    def replace(self, **changes: Any) -> PlaneSet:
        """Return a copy with other arrays, or another pooling."""
        return replace(self, **changes)

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
        return self.replace(coef=like(self.coef, X), intercept=like(self.intercept, X))

    @property
    def n_members(self) -> int:
        """Number of members of a committee; 1 for a single model."""
        return len(self.member_weight)

    @property
    def has_winners(self) -> bool:
        """Whether the class of each row is decided by one plane, the one with the largest score."""
        return self.n_members == 1 and (self.pooling == "max" or self.n_planes == self.n_classes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return (len(self.indptr) - 1) // self.n_members

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
        return np.repeat(np.arange(len(self.indptr) - 1) % self.n_classes, np.diff(self.indptr))

    @property
    def weights(self) -> np.ndarray:
        """Weight of the member that each plane belongs to, shape (n_planes,)."""
        return np.repeat(np.repeat(self.member_weight, self.n_classes), np.diff(self.indptr))

    def of(self, c: int, member: int = 0) -> tuple[Any, Any]:
        """Return the planes of class `c` of a member: its part of `coef` and of `intercept`."""
        if not 0 <= c < self.n_classes:
            raise ValueError(f"c={c} is not a class of this PlaneSet: its classes are 0 to {self.n_classes - 1}.")
        index = member * self.n_classes + c
        own = slice(int(self.indptr[index]), int(self.indptr[index + 1]))
        return self.coef[own, :], self.intercept[own]

    def scores(self, X: Any, n_jobs: int | None = None) -> Any:
        """Compute the score of each row on each plane, shape (n_rows, n_planes)."""
        return self._map_blocks(X, lambda scores: scores, n_jobs)

    def class_scores(self, X: Any, n_jobs: int | None = None) -> Any:
        """Compute the score of each row for each class, shape (n_rows, n_classes)."""
        return self._map_blocks(X, self.pooled, n_jobs)

    def winners(self, X: Any, n_jobs: int | None = None) -> Any:
        """Return the index of the plane with the largest score for each row, shape (n_rows,); the first one if tied."""
        return self._map_blocks(X, lambda scores: namespace(scores).argmax(scores, axis=1), n_jobs)

    def predict(self, X: Any, n_jobs: int | None = None) -> Any:
        """Predict the class index of each row: the class with the largest score."""
        if self.has_winners:
            winners = self.winners(X, n_jobs)
            return take_rows(like(self.owners, winners), winners)
        if self.n_members == 1 and namespace(self.coef) is np:
            return self._map_blocks(X, self._most_likely, n_jobs)
        scores = self.class_scores(X, n_jobs)
        return namespace(scores).argmax(scores, axis=1)

    def _most_likely(self, scores: np.ndarray) -> np.ndarray:
        """Return the classes with the largest log-sum-exp, computed for rows where another class can have it."""
        best = scores.argmax(axis=1)
        found, highest = self.owners[best], scores[np.arange(len(best)), best]
        lead = math.log(self._sizes.max()) + NEARLY_TIED * (1.0 + np.abs(highest))
        row, plane = np.divmod(np.flatnonzero(scores > (highest - lead)[:, None]), self.n_planes)
        is_close = np.zeros(len(best), dtype=bool)
        is_close[row[self.owners[plane] != found[row]]] = True
        close = np.flatnonzero(is_close)
        found[close] = self.pooled(scores[close]).argmax(axis=1)
        return found

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
        return self.replace(coef=take_rows(self.coef, kept), intercept=take_rows(self.intercept, kept), indptr=indptr)

    def at(self, x: np.ndarray) -> PlaneSet:
        """Return the linear classifier that touches the class scores at a row: one plane per class.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            The row.

        Returns
        -------
        planes : PlaneSet
            For each class, the mean over members of the plane with the largest score at the row, or with
            ``pooling="logsumexp"`` of the planes, weighted by their shares of the score.

        Examples
        --------
        >>> import numpy as np
        >>> from polyplane import PlaneSet
        >>> line, steeper = (PlaneSet(np.array([[0.0], [w]]), np.array([0.0, -1.0]), [0, 1, 2]) for w in (1.0, 3.0))
        >>> PlaneSet.of_members([line, steeper]).at(np.array([0.5])).coef
        array([[0.],
               [2.]])
        """
        scores = self.scores(x[None])
        largest = self.member_weight.max()
        share = self.shares(scores)[0] * (self.weights / largest)  # equal weights are 1, so that equal sums stay equal
        coef = np.zeros((self.n_classes, self.n_features), dtype=self.coef.dtype)
        np.add.at(coef, self.owners, self.coef * share[:, None].astype(self.coef.dtype))
        coef = coef * coef.dtype.type(largest)
        if self.pooling == "max":  # the difference below would be rounded for a row far away
            intercept = np.bincount(self.owners, share * self.intercept, self.n_classes) * largest
        else:
            intercept = self.pooled(scores)[0] - coef @ x
        return PlaneSet(coef, intercept.astype(self.coef.dtype), np.arange(self.n_classes + 1))

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """Compute the weight of each plane in the score of its class in its member, from 0 to 1, along the last axis.

        Parameters
        ----------
        scores : ndarray of shape (..., n_planes)
            Scores of the planes.

        Returns
        -------
        shares : ndarray of shape (..., n_planes)
            The derivative of the class score by the score of the plane: for "max", 1 for the best plane (the first one
            if tied) and 0 for the others; for "logsumexp", the softmax over the planes of the class.
        """
        starts, sizes = self.indptr[:-1], self._sizes
        top = np.repeat(np.maximum.reduceat(scores, starts, axis=-1), sizes, axis=-1)
        if self.pooling == "logsumexp":
            parts = np.exp(scores - top)
            return parts / np.repeat(np.add.reduceat(parts, starts, axis=-1), sizes, axis=-1)
        is_best = scores == top
        seen = np.cumsum(is_best, axis=-1)
        before = np.repeat(np.take(seen - is_best, starts, axis=-1), sizes, axis=-1)
        return (is_best & (seen - before == 1)).astype(scores.dtype)

    def pooled(self, scores: Any) -> Any:
        """Compute the scores of the classes from the scores of the planes, shape (n_rows, n_classes)."""
        return self.mean_of_members(self.pooled_in_members(scores))

    def mean_of_members(self, pooled: Any) -> Any:
        """Compute the scores of the classes from those in each member, shape (n_rows, n_members * n_classes)."""
        if self.n_members == 1:
            return pooled
        xp, largest = namespace(pooled), float(self.member_weight.max())
        apart = xp.reshape(pooled, (-1, self.n_members, self.n_classes))
        # Equal weights are 1, so that equal sums stay equal.
        weight = like((self.member_weight / largest).astype(host_dtype(pooled)), pooled)
        total = np.einsum("nmc,m->nc", apart, weight) if xp is np else xp.sum(apart * weight[:, None], axis=1)
        return total * largest

    def pooled_in_members(self, scores: Any) -> Any:
        """Compute the scores of the classes in each member, shape (n_rows, n_members * n_classes)."""
        xp, sizes = namespace(scores), self._sizes
        if self.n_planes == len(sizes):
            return scores
        if xp is np:
            best = np.maximum.reduceat(scores, self.indptr[:-1], axis=1)
            if self.pooling == "max":
                return best
            parts = np.exp(scores - np.repeat(best, sizes, axis=1))
            return best + np.log(np.add.reduceat(parts, self.indptr[:-1], axis=1))
        if (sizes == sizes[0]).all():
            return self._pool(xp.reshape(scores, (scores.shape[0], len(sizes), int(sizes[0]))), xp)
        edges = pairwise(self.indptr.tolist())
        return xp.stack([self._pool(scores[:, start:stop], xp) for start, stop in edges], axis=1)

    @cached_property
    def _sizes(self) -> np.ndarray:
        """Number of planes of each class in each member."""
        return np.diff(self.indptr)

    def _pool(self, scores: Any, xp: Any) -> Any:
        """Pool the scores along the last axis."""
        best = xp.max(scores, axis=-1)
        return best if self.pooling == "max" else best + xp.log(xp.sum(xp.exp(scores - best[..., None]), axis=-1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlaneSet):
            return NotImplemented
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return self.pooling == other.pooling and all(
            a.dtype == b.dtype and np.array_equal(to_numpy(a), to_numpy(b)) for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        members = f"n_members={self.n_members}, " if self.n_members > 1 else ""
        device = "" if namespace(self.coef) is np else f", device={device_of(self.coef)}"
        return (
            f"PlaneSet({members}n_classes={self.n_classes}, n_planes={self.n_planes}, n_features={self.n_features}, "
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
            for c, (start, stop) in zip(cycle(range(self.n_classes)), pairwise(planes.indptr.tolist()), strict=False)
        )
        heads = "".join(f"<th>{head}</th>" for head in ("class", "planes", "smallest norm", "largest norm"))
        return f"<table><caption>{escape(repr(self))}</caption><tr>{heads}</tr>{rows}</table>"

    def __reduce__(self) -> tuple[type[PlaneSet], tuple[Any, ...]]:
        return PlaneSet, (*self._arrays(), self.pooling)

    def _arrays(self) -> tuple[Any, ...]:
        return self.coef, self.intercept, self.indptr, self.member_weight

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
            with np.errstate(over="ignore", invalid="ignore"):
                scores = X[block, :] @ by_feature
                scores += self.intercept
            if xp is np and not np.isfinite(scores).all():
                row = block.start + int((~np.isfinite(scores)).any(axis=1).argmax())
                raise ValueError(f"The scores of row {row} overflow {scores.dtype}: its numbers are too large.")
            return reduce(scores)

        if xp is np:
            size = max(LEAST_ROWS, BLOCK_SCORES // self.n_planes)
            parts = in_threads(score, blocks_of(X.shape[0], size), n_jobs)
        else:
            with within_device_memory("Predict fewer rows at a time."):
                parts = [score(block) for block in blocks_of(X.shape[0], DEVICE_BLOCK_SCORES // self.n_planes)]
        return parts[0] if len(parts) == 1 else xp.concat(parts)


#: Another name for `PlaneSet.of_members`.
PlaneCommittee = PlaneSet.of_members


def check_winners(planes: PlaneSet) -> PlaneSet:
    """Raise an error if `planes` is a committee or pools by log-sum-exp, where single planes must decide."""
    if not isinstance(planes, PlaneSet):
        raise TypeError(
            f"A PlaneSet is required, such as `planes_` of a fitted classifier, not a {type(planes).__name__}."
        )
    if planes.n_members > 1:
        raise TypeError(
            f"A single PlaneSet is required, but this committee has {planes.n_members} members: pass one of them, "
            "`planes_.members[i]`."
        )
    if not planes.has_winners:
        raise TypeError(
            "This function requires class scores that are maxima of planes, and these are their log-sum-exp: pass "
            "planes_.replace(pooling='max'), or train with loss='hinge'."
        )
    return planes


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


def _check_members(indptr: np.ndarray, weight: np.ndarray, pooling: str) -> None:
    if pooling not in ("max", "logsumexp"):
        raise ValueError(f"pooling={pooling!r} must be 'max' or 'logsumexp'.")
    if weight.ndim != 1 or not len(weight) or not (weight > 0).all() or abs(float(weight.sum()) - 1.0) > 1e-6:
        raise ValueError("member_weight must be positive numbers, one per member, whose sum is 1.")
    if (len(indptr) - 1) % len(weight):
        raise ValueError(f"indptr has {len(indptr) - 1} parts, which {len(weight)} members cannot share equally.")
