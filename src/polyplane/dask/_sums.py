"""Sums over the rows of all partitions: what the exact learners ask of their data."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polyplane._threads import Team
from polyplane.dask._partitions import Cluster, Held
from polyplane.learners._cuts import RowSums
from polyplane.learners._mixture import Likelihood, Point
from polyplane.learners._polyhedron import POWER_STEPS, Rows
from polyplane.learners._units import Units, moments
from polyplane.learners.polyceptron import Bench, Verdict

# The cutting plane. On a worker, the violations at two sets of planes are kept until others are asked for.


class ClusterRowSums:
    """The sums of `RowSums` over all partitions; what moves is planes, their sub-gradients and a few numbers.

    Parameters
    ----------
    cluster : Cluster
        The rows.
    positive : int or None
        The class that is told from the rest; None: all classes at once.
    n_planes : int
        Planes of the problem.
    bias_input : float
        Value of the constant feature.
    """

    def __init__(self, cluster: Cluster, positive: int | None, n_planes: int, bias_input: float) -> None:
        self.cluster, self.terms = cluster, (positive, n_planes, bias_input)
        self.X = np.empty((0, cluster.n_features), dtype=cluster.dtype)
        self.here = self.there = np.zeros((n_planes, cluster.n_features + 1))

    def stand(self, planes: np.ndarray) -> None:
        """Be at `planes`."""
        self.here = self.there = planes.copy()

    def look(self, planes: np.ndarray) -> None:
        """Look at `planes`."""
        self.there = planes.copy()

    def move(self, mu: float) -> None:
        """Go to a point of the way from here to there."""
        self.here = self.here + mu * (self.there - self.here)

    def risks(self, steps: list[float]) -> np.ndarray:
        """The weighted sum of the losses at each of `steps` of the way from here to there."""
        return self.cluster.sum(_risks, self.terms, self.here, self.there, list(steps))

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Sub-gradient and offset of the cut at a point of the way from here to there."""
        flat = self.cluster.sum(_cut, self.terms, self.here, self.there, mu)
        return flat[:-1].reshape(self.here.shape), float(flat[-1])


def _row_sums(held: Held, terms: tuple[int | None, int, float], here: np.ndarray, there: np.ndarray) -> RowSums:
    positive, n_planes, bias_input = terms
    data = held.data
    if terms not in held.cache:
        target = data.y if positive is None else np.where(data.y == positive, 1, -1)
        sums = RowSums(data.X, target.astype(np.int32), data.training_weight, n_planes, bias_input, Team(1))
        held.cache[terms] = sums, [np.nan, np.nan]
    sums, seen = held.cache[terms]
    if not np.array_equal(seen[0], here):
        sums.stand(here)
        seen[:] = here, here
    if not np.array_equal(seen[1], there):
        sums.look(there)
        seen[1] = there
    return sums


def _risks(held: Held, terms: Any, here: np.ndarray, there: np.ndarray, steps: list[float]) -> np.ndarray:
    return _row_sums(held, terms, here, there).risks(steps)


def _cut(held: Held, terms: Any, here: np.ndarray, there: np.ndarray, mu: float) -> np.ndarray:
    sums = _row_sums(held, terms, here, there)
    sums.n_cuts = 0  # sum afresh: the outcome does not depend on what this worker did before
    normal, offset = sums.cut(mu)
    return np.append(normal.ravel(), offset)


# The mixture.


class ClusterLikelihood:
    """The likelihood of all rows; its gradient comes along with its value, in one go over the partitions."""

    def __init__(self, cluster: Cluster, units: Units, inside: int, alpha: float, gamma: float | None) -> None:
        self.cluster, self.alpha = cluster, alpha
        self.terms = (units, inside, gamma)

    def at(self, planes: np.ndarray) -> Point:
        """E-step: the likelihood of planes; in place of the scores of the rows, the gradient."""
        flat = self.cluster.sum(_likelihood, self.terms, planes) / self.cluster.weight
        ridge = 0.5 * self.alpha * np.square(planes[:, :-1]).sum()
        gradient = flat[1:].reshape(planes.shape)
        gradient[:, :-1] -= self.alpha * planes[:, :-1]
        return Point(planes, float(flat[0] - ridge), gradient, None)  # type: ignore[arg-type]

    def gradient(self, point: Point) -> np.ndarray:
        """Gradient at the planes of `point`."""
        gradient: np.ndarray = point.scores
        return gradient

    def curvature(self, point: Point) -> np.ndarray:
        """Minus the Hessian of Q."""
        matrix = self.cluster.sum(_curvature, self.terms, point.planes) / self.cluster.weight
        n_planes, size = point.planes.shape
        ridge = np.tile(np.append(np.full(size - 1, self.alpha), 0.0), n_planes)
        matrix[np.diag_indices(len(matrix))] += ridge
        return matrix

    def separated(self, planes: np.ndarray) -> bool:
        """Whether all rows are on their side."""
        return bool(min(self.cluster.map(_least_margin, self.terms, planes)) > 0)


def _local(held: Held, terms: tuple[Units, int, float | None]) -> tuple[Likelihood, float]:
    """The likelihood of a partition's rows, and their weight."""
    units, inside, gamma = terms
    data, weight = held.data, held.data.training_weight
    sign = np.where(data.y == inside, 1.0, -1.0)
    return Likelihood(Rows(data.X, units), sign, weight, 0.0, gamma), float(weight.sum())


def _likelihood(held: Held, terms: Any, planes: np.ndarray) -> np.ndarray:
    likelihood, total = _local(held, terms)
    point = likelihood.at(planes)
    return np.append(point.value, likelihood.gradient(point).ravel()) * total


def _curvature(held: Held, terms: Any, planes: np.ndarray) -> np.ndarray:
    likelihood, total = _local(held, terms)
    return likelihood.curvature(likelihood.at(planes)) * total


def _least_margin(held: Held, terms: Any, planes: np.ndarray) -> float:
    likelihood, _ = _local(held, terms)
    margin = likelihood.sign * likelihood.rows.scores(planes).min(axis=0)
    return float(margin[likelihood.weight > 0].min())


# The batch Polyceptron.


class ClusterBench:
    """All rows to try planes on; in place of the pull of each row, the sum."""

    def __init__(self, cluster: Cluster, inside: int) -> None:
        self.cluster, self.inside = cluster, inside
        self.rows = self
        self.last: Verdict | None = None
        self.pocket: np.ndarray | None = None

    def judge(self, planes: np.ndarray) -> Verdict:
        """Try planes on the rows."""
        if self.last is None or self.last.planes is not planes:
            flat = self.cluster.sum(_judge, self.inside, planes)
            error, criterion = flat[:2] / self.cluster.weight
            self.last = Verdict(planes, float(error), float(criterion), flat[2:].reshape(planes.shape))
        return self.last

    def sums(self, pull: np.ndarray) -> np.ndarray:
        """The pull is summed already."""
        return pull


def _judge(held: Held, inside: int, planes: np.ndarray) -> np.ndarray:
    bench = Bench(held.data, inside)
    verdict = bench.judge(planes)
    gradient = bench.rows.sums(verdict.pull)
    return np.concatenate([np.array([verdict.error, verdict.criterion]) * float(bench.total), gradient.ravel()])


# How they start.


def moments_of(cluster: Cluster) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each feature over all rows."""
    means, variances = zip(*cluster.map(_moments), strict=True)
    share = np.array([fact.weight for fact in cluster.facts]) / cluster.weight
    mean = share @ np.array(means)
    return mean, share @ (np.array(variances) + np.square(np.array(means) - mean))


def _moments(held: Held) -> tuple[np.ndarray, np.ndarray]:
    return moments(held.data.X, held.data.training_weight)


def largest_values(cluster: Cluster) -> np.ndarray:
    """The largest absolute value of each feature."""
    largest: np.ndarray = np.max(cluster.map(_largest), axis=0)
    return largest


def _largest(held: Held) -> np.ndarray:
    X = abs(held.data.X).max(axis=0)
    return np.asarray(X.todense() if hasattr(X, "todense") else X).ravel()


class Line(NamedTuple):
    """The long axis of a group of rows, where its centre lies on it, and how widely the rows are spread."""

    axis: np.ndarray
    centre: float
    spread: float


class Group:
    """Rows outside that share a plane at the start: those on given sides of the cuts made so far."""

    def __init__(self, cluster: Cluster, units: Units, inside: int, cuts: tuple[Any, ...] = ()) -> None:
        self.cluster, self.terms = cluster, (units, inside, cuts)

    @cached_property
    def line(self) -> Line:
        """The rows along the long axis, found by the power method."""
        following = np.random.default_rng(0).normal(size=self.cluster.n_features)
        for _ in range(POWER_STEPS):
            axis = following
            along, plain = self.cluster.sum(_sums_along, self.terms, axis)
            centre = along[-1] / max(plain[-1], np.finfo(float).tiny)
            following = along[:-1] - centre * plain[:-1]
            length = float(np.linalg.norm(following))
            if length == 0:
                break
            following = following / length
        return Line(axis, centre, length)

    def halves(self) -> tuple[Group, Group]:
        """The rows on either side of the centre; the whole group twice when it cannot be cut."""
        units, inside, cuts = self.terms
        both = [(*cuts, (self.line.axis, self.line.centre, upper)) for upper in (True, False)]
        sums = self.cluster.sum(_group_sums, units, inside, both)
        if self.line.spread == 0 or not (sums[1:, -1] > 0).all():
            return self, self
        upper, lower = (Group(self.cluster, units, inside, half) for half in both)
        return upper, lower


def split_start(cluster: Cluster, units: Units, inside: int, n_planes: int) -> np.ndarray:
    """The start of `polyplane.learners._polyhedron.split_start`, over all partitions."""
    groups = [Group(cluster, units, inside)]
    while len(groups) < n_planes:
        widest = max(range(len(groups)), key=lambda g: groups[g].line.spread)
        groups[widest : widest + 1] = groups[widest].halves()
    sums = cluster.sum(_group_sums, units, inside, [group.terms[2] for group in groups])
    centres = sums[:, :-1] / np.maximum(sums[:, -1:], np.finfo(float).tiny)
    normals = centres[:1] - centres[1:]
    offsets = -0.5 * (normals * (centres[:1] + centres[1:])).sum(axis=1)
    return np.column_stack([normals, offsets])


def _group_weight(held: Held, units: Units, inside: int, cuts: tuple[Any, ...]) -> np.ndarray:
    data, rows = held.data, Rows(held.data.X, units)
    weight = np.where(data.y == inside, 0.0, data.training_weight)
    for axis, centre, upper in cuts:
        along = rows.scores(np.append(axis, 0.0)[None])[0] - centre
        weight = np.where((along > 0) == upper, weight, 0.0)
    return weight


def _sums_along(held: Held, terms: tuple[Units, int, tuple[Any, ...]], axis: np.ndarray) -> np.ndarray:
    weight, rows = _group_weight(held, *terms), Rows(held.data.X, terms[0])
    along = rows.scores(np.append(axis, 0.0)[None])[0]
    return rows.sums(np.stack([weight * along, weight]))


def _group_sums(held: Held, units: Units, inside: int, groups: list[tuple[Any, ...]]) -> np.ndarray:
    data = held.data
    own = np.where(data.y == inside, data.training_weight, 0.0)
    return Rows(data.X, units).sums(np.stack([own, *(_group_weight(held, units, inside, cuts) for cuts in groups)]))
