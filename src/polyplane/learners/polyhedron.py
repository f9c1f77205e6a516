"""What the learners of a single polyhedron share: products with scaled rows, initial planes, the choice of a start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from operator import add
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from polyplane._array_api import astype, host_dtype, like, namespace, to_numpy, widest_float
from polyplane.base import PlaneClassifier, class_index
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.method import Method
from polyplane.engine.run import Run
from polyplane.engine.state import Array, RowsLike, State, Whole
from polyplane.planes import PlaneSet

#: Power iterations to find the principal axis of a group of rows; an approximation suffices to split it.
POWER_STEPS = 10
#: Replaces a weight of 0 in divisions.
TINY = float(np.finfo(float).tiny)


class AffineRows(NamedTuple):
    """A matrix with an implicit scaling: it is not copied, and sparse rows stay sparse.

    The learners need two products only. Arrays with one entry per row are on the device of the rows; planes are on the
    host.
    """

    X: Any
    scaling: AffineScaling

    def scores(self, planes: np.ndarray) -> Any:
        """Score of each row on each plane, shape (n_planes, n_rows)."""
        coef, intercept = self.scaling.to_input_space(planes[:, :-1], planes[:, -1])
        if sparse.issparse(self.X):
            product = (self.X @ coef.T.astype(self.X.dtype, copy=False)).T
        else:
            product = like(coef, self.X, self.X.dtype) @ self.X.T
        wide = like(product, self.X, widest_float(self.X))
        offset = like(intercept, wide, wide.dtype)[:, None]
        return np.add(wide, offset, order="C") if isinstance(wide, np.ndarray) else wide + offset

    def sums(self, shares: Any) -> np.ndarray:
        """Sums of the rows, with a constant 1, weighted by `shares` (n_sums, n_rows); (n_sums, n_features + 1)."""
        single = astype(shares, self.X.dtype)
        product = to_numpy((self.X.T @ single.T).T if sparse.issparse(self.X) else single @ self.X)
        total = to_numpy(namespace(shares).sum(shares, axis=1))
        features = (product - total[:, None] * self.scaling.centre) * self.scaling.factor
        return np.column_stack([features, total])

    def per_row(self, numbers: np.ndarray) -> Any:
        """Copy numbers or booleans, one per row, to the device of the rows."""
        return like(numbers, self.X, None if numbers.dtype == bool else widest_float(self.X))


def members(group: Any, n_groups: int) -> Any:
    """A mask of the rows of each group, of shape (n_groups, n_rows)."""
    return group[None, :] == like(np.arange(n_groups), group)[:, None]


class Cut(NamedTuple):
    """The split of a group of rows: those below `centre` along `axis` become a new group."""

    group: int
    axis: np.ndarray
    centre: float


class Scatter(NamedTuple):
    """The spread of the rows of a group along an axis."""

    weight: float
    moment: float  # the sum of the positions along the axis
    sums: np.ndarray  # of the rows times their centred positions; for partitions, also of the rows themselves

    def about(self, centre: float) -> np.ndarray:
        """The sum of the rows times their positions relative to the centre of all partitions."""
        if len(self.sums) == 1:  # a single partition
            return self.sums[0]
        return self.sums[0] + (_mean(self.moment, self.weight) - centre) * self.sums[1]


def _mean(total: float, weight: float) -> float:
    return total / max(weight, TINY)


class StartRows:
    """The weighted rows for the initial planes: those inside, and groups of those outside.

    Results are summed over partitions, through `map`; this class is a single partition. The groups are determined by
    the cuts made so far; the first one splits group 0 into the groups 0 and 1.
    """

    is_partitioned = False

    def __init__(self, rows: AffineRows, is_inside: Any, weight: Any) -> None:
        xp, nothing = namespace(weight), namespace(weight).zeros_like(weight)
        self.rows, self.n_features = rows, rows.X.shape[1]
        self.inside, self.outside = xp.where(is_inside, weight, nothing), xp.where(is_inside, nothing, weight)
        self._nothing = self._group = nothing
        self._n_cuts = 0
        # Caches of the last results: the weight of a group, and the positions of the rows along an axis.
        self._weighed, self._weight = (-1, -1), (nothing, 0.0)
        self._axis, self._places = np.empty(0), nothing

    @classmethod
    def of(cls, rows: AffineRows, data: Data, inside: int) -> StartRows:
        """The training rows, with the given class inside."""
        return cls(rows, rows.per_row(data.y == inside), rows.per_row(data.training_weight))

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``function(partition, *arguments)`` for each partition."""
        return [function(self, *arguments)]

    def _weight_of(self, cuts: list[Cut], group: int) -> tuple[Any, float]:
        """The weight of each row in a group, and the total weight of the group."""
        if self._weighed != (len(cuts), group):
            xp = namespace(self.outside)
            if len(cuts) < self._n_cuts:
                self._group, self._n_cuts = self._nothing, 0
            for number, cut in enumerate(cuts[self._n_cuts :], start=self._n_cuts + 1):
                below = (self._group == cut.group) & ~self._is_above(cut)
                self._group, self._n_cuts = xp.where(below, xp.full_like(self._group, number), self._group), number
            weight = xp.where(self._group == group, self.outside, self._nothing)
            self._weighed, self._weight = (len(cuts), group), (weight, float(xp.sum(weight)))
        return self._weight

    def _along(self, axis: np.ndarray) -> Any:
        """The position of each row along an axis."""
        if not np.array_equal(self._axis, axis):
            self._axis, self._places = axis, self.rows.scores(np.append(axis, 0.0)[None])[0, :]
        return self._places

    def _is_above(self, cut: Cut) -> Any:
        return self._along(cut.axis) - cut.centre > 0

    def scatter_along(self, cuts: list[Cut], group: int, axis: np.ndarray, with_sums: bool) -> Scatter:
        """The spread of a group along an axis."""
        (weight, total), along = self._weight_of(cuts, group), self._along(axis)
        moment = float(weight @ along)
        shares = weight * (along - _mean(moment, total))
        shares = namespace(weight).stack([shares, weight]) if with_sums else shares[None, :]
        return Scatter(total, moment, self.rows.sums(shares)[:, :-1])

    def is_divided(self, cuts: list[Cut], cut: Cut) -> np.ndarray:
        """Whether a cut leaves rows above it, and below it."""
        xp, weight, above = namespace(self.outside), self._weight_of(cuts, cut.group)[0], self._is_above(cut)
        return np.array([bool(xp.any((weight != 0) & side)) for side in (above, ~above)])

    def sums(self, cuts: list[Cut], groups: list[int]) -> np.ndarray:
        """Sums of the rows inside, and of those of each group."""
        weights = [self.inside, *(self._weight_of(cuts, group)[0] for group in groups)]
        return self.rows.sums(namespace(self.inside).stack(weights))


def split_start(rows: Any, n_planes: int) -> np.ndarray:
    """Planes between the class inside and `n_planes` groups of the class outside, without random choices.

    The widest group is split across its principal axis until there are enough (Su and Dy, 2007, for k-means). A row
    with weight 2 is equivalent to two rows. `rows` are `StartRows`, or those of a cluster.
    """
    cuts: list[Cut] = []
    groups, lines = [0], {}
    while len(groups) < n_planes:
        for group in groups:
            if group not in lines:
                lines[group] = _principal_cut(rows, cuts, group)
        widest = max(groups, key=lambda group: lines[group][1])
        cut, width = lines[widest]
        halves = [widest, widest]  # a group that cannot be split is used twice
        if width > 0 and np.any(rows.map(StartRows.is_divided, cuts, cut), axis=0).all():
            del lines[widest]
            cuts.append(cut)
            halves = [widest, len(cuts)]
        at = groups.index(widest)
        groups[at : at + 1] = halves
    return _between(reduce(add, rows.map(StartRows.sums, cuts, groups)))


def _principal_cut(rows: Any, cuts: list[Cut], group: int) -> tuple[Cut, float]:
    """The cut across the principal axis of a group, found by power iteration, and the spread along this axis."""
    # Independent of random_state: any fixed vector is suitable.
    following = np.random.default_rng(0).normal(size=rows.n_features)
    for _ in range(POWER_STEPS):
        axis = following
        parts = rows.map(StartRows.scatter_along, cuts, group, axis, rows.is_partitioned)
        centre = _mean(sum(part.moment for part in parts), sum(part.weight for part in parts))
        scatter = reduce(add, (part.about(centre) for part in parts))
        length = float(np.linalg.norm(scatter))
        if length == 0:  # all rows are equal
            break
        following = scatter / length
    return Cut(group, axis, centre), length


def random_start(rows: StartRows, n_planes: int, rng: np.random.Generator) -> np.ndarray:
    """The same, for groups around randomly chosen rows of the class outside."""
    xp = namespace(rows.outside)
    outside = np.asarray(to_numpy(rows.outside), dtype=np.float64)
    few = int(np.count_nonzero(outside)) < n_planes
    chosen = rng.choice(len(outside), n_planes, replace=few, p=outside / outside.sum())
    seeds = rows.rows.scaling.take(rows.rows.X, chosen).astype(np.float64)
    nearness = rows.rows.scores(np.column_stack([seeds, -0.5 * np.square(seeds).sum(axis=1)]))
    groups = rows.outside * astype(members(xp.argmax(nearness, axis=0), n_planes), rows.outside.dtype)
    return _between(rows.rows.sums(xp.concat([rows.inside[None, :], groups])))


def blind_start(n_planes: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Random planes, for a first batch that does not contain both classes."""
    planes = rng.normal(size=(n_planes, n_features + 1)) / np.sqrt(n_features)
    planes[:, -1] = 0.0
    return planes


def _between(sums: np.ndarray) -> np.ndarray:
    """The planes midway between the centre of the class inside and the centres of groups of rows outside."""
    centres = sums[:, :-1] / np.maximum(sums[:, -1:], TINY)
    normals = centres[:1] - centres[1:]
    offsets = -0.5 * (normals * (centres[:1] + centres[1:])).sum(axis=1)
    return np.column_stack([normals, offsets])


#: Planes in training, on the host, one per row with its offset last. Steps replace the array.
PolyhedronPlanes = Annotated[np.ndarray, Array("float64", "n_planes", "features+1", in_place=False)]


@dataclass(frozen=True, eq=False)
class PolyhedronState(State):
    """The fields common to the states of these methods."""

    planes: PolyhedronPlanes
    inside: Annotated[int, Whole("classes")]
    rows_like: RowsLike

    def check(self, sizes: dict[str, int]) -> bool:
        """There are two classes, one of them inside."""
        return sizes["classes"] == 2


S = TypeVar("S", bound=PolyhedronState)
M = TypeVar("M", bound="PolyhedronMethod[Any]")

#: Fields of these methods that may change when training continues.
ADJUSTABLE = frozenset({"n_init", "trial_steps"})


@dataclass(frozen=True)
class PolyhedronMethod(Method[S]):
    """Learns the planes around one of two classes: a row is inside when all :math:`f_k(x) > 0`."""

    n_planes: int = 2
    inside: int | None = None  # None: each class is tried
    n_init: int = 1
    trial_steps: int = 20  # steps from each start before the best one is chosen
    labels: tuple[Any, ...] = (0, 1)  # the class labels, for messages

    def candidates(self, data: Data) -> tuple[int, ...]:
        """The classes that may be inside; the first one is preferred in case of ties."""
        if self.inside is not None:
            return (self.inside,)
        # If the first batch of a stream has one class only, the classes cannot be compared.
        return (1, 0) if np.all(self.class_counts(data) > 0) else (1,)

    def check(self, data: Data) -> None:
        """Raise an error if there are too few rows, except in a stream."""
        if data.stream:
            return
        counts = self.class_counts(data)
        if self.inside is not None and counts[self.inside] < 2:
            label = self.labels[self.inside]
            raise ValueError(f"The inside class {label!r} has a single row: a region needs two or more points.")
        if self.n_planes > counts.sum():
            raise ValueError(f"n_planes={self.n_planes} is more than the {counts.sum()} rows to learn from.")

    def class_counts(self, data: Data) -> np.ndarray:
        """The number of training rows of each class."""
        return data.class_counts

    def start_planes(self, rows: AffineRows, data: Data, inside: int, seed: int) -> Iterator[np.ndarray]:
        """The planes that each of the `n_init` starts begins with."""
        start_rows = StartRows.of(rows, data, inside)
        for i in range(self.n_init):
            rng = np.random.default_rng([seed, i])
            if np.count_nonzero(data.class_counts) < 2:
                yield blind_start(self.n_planes, data.X.shape[1], rng)
            elif i == 0:
                yield split_start(start_rows, self.n_planes)
            else:
                yield random_start(start_rows, self.n_planes, rng)

    def best_start(
        self,
        data: Data,
        seed: int,
        scaling: AffineScaling,
        begin: Callable[[np.ndarray, int], S],
        cost: Callable[[S], float],
    ) -> S:
        """The start with the lowest cost after a trial, among all starts for each class that may be inside.

        `begin` returns the state of given planes, and the class inside.
        """
        self.check(data)
        rows, candidates = AffineRows(data.X, scaling), self.candidates(data)
        starts = (begin(planes, c) for c in candidates for planes in self.start_planes(rows, data, c, seed))
        best: S | None = None
        for start in starts:
            if self.n_init * len(candidates) == 1:
                return start
            if best is not None:
                best = best.without_rows()  # a workspace may be as large as the rows: keep one at a time
            run = Run(self, start)
            # In a stream, a run does not check convergence; a trial does.
            run.go(data for _ in range(self.trial_steps) if not self.done(run.state))
            best = run.state if best is None or cost(run.state) < cost(best) else best
        assert best is not None
        return best

    def planes(self, state: Any) -> PlaneSet:
        """The planes over the rows as they are."""
        return plane_set(state.planes, state.scaling, state.inside, state.rows_like)


def plane_set(planes: np.ndarray, scaling: AffineScaling, inside: int, rows_like: Any) -> PlaneSet:
    """The class outside owns the planes :math:`-f_k`, the class inside a zero plane, on the device of `rows_like`."""
    coef, intercept = scaling.to_input_space(planes[:, :-1], planes[:, -1])
    dtype = host_dtype(rows_like)
    with np.errstate(over="ignore"):  # PlaneSet raises an error for infinite values
        around = (-coef.astype(dtype), -intercept.astype(dtype))
    zero = (np.zeros_like(around[0][:1]), np.zeros_like(around[1][:1]))
    return PlaneSet.of_classes([zero, around] if inside == 0 else [around, zero]).to(rows_like)


@dataclass(eq=False, repr=False)
class PolyhedronClassifier(PlaneClassifier):
    """An estimator of one polyhedron."""

    n_planes: int = 2
    _: KW_ONLY
    inside: Any = None
    n_init: int = 1
    max_iter: int = 200
    random_state: Any = None

    @property
    def inside_(self) -> Any:
        """The class inside."""
        return self.classes_[self._state.inside]

    def _polyhedron_method(self, kind: type[M], classes: np.ndarray, **others: Any) -> M:
        """The method with the parameters of the estimator, for these labels."""
        shared: dict[str, Any] = {"inside": None, "labels": tuple(classes.tolist())}
        if self.inside is not None:
            shared["inside"] = class_index("inside", self.inside, classes)
        return self._method_of(kind, trial_steps=min(kind.trial_steps, self.max_iter), **(shared | others))
