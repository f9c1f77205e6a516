"""What the learners of a single polyhedron share: which class is inside, how to start, and the planes they give."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import (
    astype,
    host_dtype,
    like,
    namespace,
    to_numpy,
    widest_float,
)
from polyplane._validation import Data
from polyplane.base import PlaneClassifier
from polyplane.learners._units import Units
from polyplane.planes import PlaneSet

#: Products with the covariance that find the long axis of a group of rows, near enough to cut it in two.
POWER_STEPS = 10


class Rows(NamedTuple):
    """A matrix seen in given units. The standardised matrix is never made: sparse stays sparse, nothing is copied.

    Everything that the learners ask of their rows is one of two products, each a sum over rows. What has one number per
    row lives where the rows are; planes, of which there are few, live on the host.
    """

    X: Any
    units: Units

    def scores(self, planes: np.ndarray) -> Any:
        """Score of each row on each plane, shape (n_planes, n_rows)."""
        coef, intercept = self.units.fold(planes[:, :-1], planes[:, -1])
        if sparse.issparse(self.X):
            product = (self.X @ coef.T.astype(self.X.dtype, copy=False)).T
        else:
            product = like(coef, self.X, self.X.dtype) @ self.X.T
        wide = like(product, self.X, widest_float(self.X))
        offset = like(intercept, wide, wide.dtype)[:, None]
        return np.add(wide, offset, order="C") if isinstance(wide, np.ndarray) else wide + offset

    def sums(self, shares: Any) -> np.ndarray:
        """Sums of the rows, each carrying a constant 1, times `shares` (n_sums, n_rows); (n_sums, n_features + 1)."""
        single = astype(shares, self.X.dtype)
        product = to_numpy((self.X.T @ single.T).T if sparse.issparse(self.X) else single @ self.X)
        total = to_numpy(namespace(shares).sum(shares, axis=1))
        features = (product - total[:, None] * self.units.centre) * self.units.factor
        return np.column_stack([features, total])

    def spread(self, numbers: np.ndarray) -> Any:
        """Numbers or truths, one per row, where the rows are."""
        if numbers.dtype == bool:
            return like(numbers, self.X)
        return like(numbers, self.X, widest_float(self.X))


class PolyhedronLearner(PlaneClassifier):
    """Learns the planes around one of two classes: a row is inside when all :math:`f_k(x) > 0`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "inside": "no_validation",
    }

    #: Steps that each start is given before the best goes on.
    _trial_steps: ClassVar[int] = 20

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: np.ndarray | None) -> Data:
        data = super()._take(X, y, sample_weight, classes)
        if data.n_classes != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass ({data.n_classes} "
                f"classes): wrap the estimator, OneVsRestClassifier({type(self).__name__}(...)) of sklearn.multiclass."
            )
        return data

    def _inside_class(self) -> int:
        """The class inside, as an index."""
        if self.inside is None:
            return 1
        found = np.flatnonzero(self.classes_ == self.inside)
        if len(found) != 1:
            raise ValueError(f"inside={self.inside!r} is not one of the labels {self.classes_.tolist()}.")
        return int(found[0])

    def _check_rows(self, data: Data, inside: int) -> None:
        """Whether there are rows enough to learn from; asked by `fit`, not of the pieces given to `partial_fit`."""
        n_inside, n_rows = int((data.y[data.train] == inside).sum()), len(data.train)
        if n_inside < 2:
            label = self.classes_.tolist()[inside]
            raise ValueError(f"The inside class {label!r} has a single row: a region needs two or more points.")
        if self.n_planes > n_rows:
            raise ValueError(f"n_planes={self.n_planes} is more than the {n_rows} rows to learn from.")

    def _start_planes(self, rows: Rows, data: Data, inside: int, seed: int) -> Iterator[np.ndarray]:
        """The planes that each of the `n_init` starts begins with."""
        weight, is_inside = rows.spread(data.training_weight), rows.spread(data.y == inside)
        for i in range(self.n_init):
            rng = np.random.default_rng([seed, i])
            if len(np.unique(data.y[data.train])) < 2:
                yield blind_start(self.n_planes, data.X.shape[1], rng)
            elif i == 0:
                yield split_start(rows, is_inside, weight, self.n_planes)
            else:
                yield random_start(rows, is_inside, weight, self.n_planes, rng)

    def _trial(self, state: Any, data: Data) -> Any:
        """The state after a few steps, by which starts are judged."""
        converged = self._stopping_rule()
        for _ in range(min(self._trial_steps, self.max_iter)):
            state = self._step(state, data)
            if converged(self._figures(state)):
                break
        return state

    def _plane_set(self, planes: np.ndarray, units: Units, inside: int, kind: Any) -> PlaneSet:
        """The class outside owns the planes :math:`-f_k`, the class inside a zero plane; all where `kind` is."""
        coef, intercept = units.fold(planes[:, :-1], planes[:, -1])
        with np.errstate(over="ignore"):  # a PlaneSet refuses what is not finite, in words
            around = (-coef.astype(host_dtype(kind)), -intercept.astype(host_dtype(kind)))
        nothing = (np.zeros_like(around[0][:1]), np.zeros_like(around[1][:1]))
        planes_of = PlaneSet.of_classes([nothing, around] if inside == 0 else [around, nothing])
        return planes_of.to(kind)


def split_start(rows: Rows, is_inside: Any, weight: Any, n_planes: int) -> np.ndarray:
    """Planes between the class inside and `n_planes` groups of the class outside, found without any randomness.

    The widest group is cut across its long axis until there are enough (Su and Dy, 2007, for k-means). A row of weight
    2 is the same as two rows.
    """
    xp = namespace(weight)
    groups = [_Group(rows, xp.where(is_inside, xp.zeros_like(weight), weight))]
    while len(groups) < n_planes:
        widest = max(range(len(groups)), key=lambda g: groups[g].line.spread)
        groups[widest : widest + 1] = groups[widest].halves()
    return _between(rows, is_inside, weight, xp.stack([group.weight for group in groups]))


def random_start(rows: Rows, is_inside: Any, weight: Any, n_planes: int, rng: np.random.Generator) -> np.ndarray:
    """The same, for groups around randomly chosen rows of the class outside."""
    xp = namespace(weight)
    outside = np.where(to_numpy(is_inside), 0.0, to_numpy(weight)).astype(np.float64, copy=False)
    few = int(np.count_nonzero(outside)) < n_planes
    chosen = rng.choice(len(outside), n_planes, replace=few, p=outside / outside.sum())
    seeds = rows.units.take(rows.X, chosen).astype(np.float64)
    nearness = rows.scores(np.column_stack([seeds, -0.5 * np.square(seeds).sum(axis=1)]))
    groups = rows.spread(outside) * astype(members(xp.argmax(nearness, axis=0), n_planes), weight.dtype)
    return _between(rows, is_inside, weight, groups)


def members(group: Any, n_groups: int) -> Any:
    """Which rows belong to each group: booleans of shape (n_groups, n_rows)."""
    return group[None, :] == like(np.arange(n_groups), group)[:, None]


def blind_start(n_planes: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Random planes, for a first piece of data that does not show both classes."""
    planes = rng.normal(size=(n_planes, n_features + 1)) / np.sqrt(n_features)
    planes[:, -1] = 0.0
    return planes


class _Line(NamedTuple):
    """How rows lie along the long axis of their group, from its centre, and how widely."""

    along: Any
    spread: float


class _Group:
    """Rows outside that share a plane at the start, given by their weights."""

    def __init__(self, rows: Rows, weight: Any) -> None:
        self.rows = rows
        self.weight = weight

    @cached_property
    def line(self) -> _Line:
        """The rows along the long axis, found by the power method."""
        xp = namespace(self.weight)
        total = max(float(xp.sum(self.weight)), np.finfo(host_dtype(self.weight)).tiny)
        # Not the user's randomness: any fixed vector will do.
        axis = np.random.default_rng(0).normal(size=self.rows.X.shape[1])
        for _ in range(POWER_STEPS):
            along = self.rows.scores(np.append(axis, 0.0)[None])[0, :]
            along -= self.weight @ along / total
            axis = self.rows.sums((self.weight * along)[None, :])[0, :-1]
            length = np.linalg.norm(axis)
            if length == 0:  # all rows are one point
                return _Line(xp.zeros_like(self.weight), 0.0)
            axis = axis / length
        return _Line(along, float(length))

    def halves(self) -> tuple[_Group, _Group]:
        """The rows on either side of the centre; the whole group twice when it cannot be cut."""
        xp, nothing = namespace(self.weight), namespace(self.weight).zeros_like(self.weight)
        upper = self.line.along > 0
        parts = xp.where(upper, self.weight, nothing), xp.where(upper, nothing, self.weight)
        if not all(xp.any(part != 0) for part in parts):
            return self, self
        return _Group(self.rows, parts[0]), _Group(self.rows, parts[1])


def _between(rows: Rows, is_inside: Any, weight: Any, groups: Any) -> np.ndarray:
    """The planes midway between the centre of the class inside and the centres of groups of rows outside."""
    xp = namespace(weight)
    sums = rows.sums(xp.concat([xp.where(is_inside, weight, xp.zeros_like(weight))[None, :], groups]))
    centres = sums[:, :-1] / np.maximum(sums[:, -1:], np.finfo(float).tiny)
    normals = centres[:1] - centres[1:]
    offsets = -0.5 * (normals * (centres[:1] + centres[1:])).sum(axis=1)
    return np.column_stack([normals, offsets])
