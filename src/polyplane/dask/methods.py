"""Methods on a cluster: models of partitions that are averaged, members that visit all partitions, and exact sums.

Steps that are sums over rows find the same planes as on a single computer: their loops, line searches and small
systems run in the client, with placeholder rows, and only planes, gradients and a few numbers are transferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import ThreadPool
from polyplane.dask.partitions import Cluster, Partition, Parts
from polyplane.engine.data import AffineScaling, Data, moments
from polyplane.engine.method import Method, Traits
from polyplane.engine.run import Run
from polyplane.engine.state import State, mix, workspace
from polyplane.learners.cuts import CutWorkspace
from polyplane.learners.cutting_plane import CuttingPlane
from polyplane.learners.multi_hyperplane import SmoothCommitteeState, SmoothMultiHyperplane
from polyplane.learners.polyceptron import Evaluation, Evaluator, Polyceptron
from polyplane.learners.polyhedral_mixture import MixtureState, PolyhedralMixture
from polyplane.learners.polyhedron import AffineRows, StartRows, split_start
from polyplane.learners.row_sums import RowSums
from polyplane.planes import PlaneSet
from polyplane.tables.members import EncodedRows, Member, TableMethod, cold_start, member_method


@dataclass(frozen=True, eq=False)
class RoundsState(State):
    """The common model after some rounds."""

    model: State
    n_rounds: int = 0
    memories: Any = workspace()  # by partition, futures of the state with the memory of its rows


@dataclass(frozen=True)
class Rounds(Method[RoundsState]):
    """A step is a round: some epochs of `method` on each partition, and an average weighted by the numbers of rows."""

    method: Method[Any]
    cluster: Cluster
    epochs: tuple[int, ...]  # of each round
    choose: Any = None  # as in `Run`

    traits = Traits(RoundsState)

    def start(self, data: Data, seed: int) -> RoundsState:
        """Return the common initial state, from the largest partition that has rows of all classes."""
        infos = self.cluster.infos
        complete = [i for i, info in enumerate(infos) if (info.class_counts > 0).all()]
        if not complete:
            raise ValueError("No partition has rows of all classes; shuffle the rows.")
        first = self.cluster.partitions[max(complete, key=lambda i: infos[i].n_rows)]
        [model] = self.cluster.gather([self.cluster.submit(_start, first, self.method, self.choose, seed)])
        return RoundsState(model, memories=[None] * len(infos))

    def step(self, state: RoundsState, data: Data) -> RoundsState:
        """Train for one round."""
        cluster, number, model = self.cluster, state.n_rounds, state.model
        visits = [
            visit(cluster, partition, self.method, model, memory, self.epochs[number], number, i)
            for i, (partition, memory) in enumerate(zip(cluster.partitions, state.memories, strict=True))
        ]
        models, memories = zip(*visits, strict=True)
        n_rows = np.array([info.n_rows for info in cluster.infos], dtype=np.float64)
        mixed = mix(cluster.gather(list(models)), n_rows / n_rows.sum()).with_seed_of(model)
        return RoundsState(mixed, number + 1, memories)

    def planes(self, state: RoundsState) -> PlaneSet:
        """Return the planes of the common model."""
        return self.method.planes(state.model)

    def metrics(self, state: RoundsState) -> Mapping[str, float]:
        """Return the number of epochs so far, and the averages of the metrics of the method."""
        return {"epochs": sum(self.epochs[: state.n_rounds]), **self.method.metrics(state.model)}


@dataclass(frozen=True)
class Relay(TableMethod):
    """A step is a pass: each member of a table visits all partitions in turn, different members different partitions.

    Parameters
    ----------
    fitted : tuple of Member
        The members: their features, and numbers of planes.
    parts : tuple of Parts
        The prepared rows of each member.
    sample : EncodedRows
        Rows that the starts are computed from.
    max_iter : int
        Number of passes; step sizes decrease over all visits of all partitions.
    """

    fitted: tuple[Member, ...]
    parts: tuple[Parts, ...]
    sample: EncodedRows
    max_iter: int

    traits = Traits(RoundsState)

    @property
    def methods(self) -> list[SmoothMultiHyperplane]:
        """The training method of each member."""
        n_visits = self.max_iter * len(self.parts[0].parts)
        return [member_method(member, self.sample.is_indicator, n_visits) for member in self.fitted]

    def start(self, data: Data, seed: Any) -> RoundsState:
        """The tangent planes at the centres of the sample."""
        members = zip(self.methods, self.fitted, seed, strict=False)
        states = [cold_start(method, member, self.sample, own) for method, member, own in members]
        return RoundsState(SmoothCommitteeState(states), memories=[[None] * len(own.parts) for own in self.parts])

    def step(self, state: RoundsState, data: Data) -> RoundsState:
        """One pass of all members. They start at different partitions, so that all workers are busy."""
        committee: Any = state.model
        n_partitions, n_members = len(self.parts[0].parts), len(self.fitted)
        order = np.random.default_rng([committee.members[0].seed, state.n_rounds]).permutation(n_partitions)
        models, memories = list(committee.members), [list(known) for known in state.memories]
        for k, (method, rows) in enumerate(zip(self.methods, self.parts, strict=True)):
            for i in np.roll(order, -(k * n_partitions // n_members)).tolist():
                models[k], memories[k][i] = visit(rows, rows.parts[i][0], method, models[k], memories[k][i], 1)
        return RoundsState(committee.replace(members=self.parts[0].gather(models)), state.n_rounds + 1, memories)

    def metrics(self, state: RoundsState) -> Mapping[str, float]:
        """The mean loss of the members."""
        committee: Any = state.model
        return {"loss": float(np.mean([own.loss for own in committee.members]))}

    def members(self, state: RoundsState) -> tuple[Member, ...]:
        """The features and the planes of each member."""
        committee: Any = state.model
        found = zip(self.fitted, self.methods, committee.members, strict=True)
        return tuple(member._replace(planes=method.planes(own)) for member, method, own in found)


def _start(partition: Partition, method: Method[Any], choose: Any, seed: int) -> Any:
    data = partition.data
    starter = method if choose is None else choose(method, data, seed).method
    run = Run(method, starter.start(data, seed)).go(repeat(data, method.traits.steps_before_mixing))
    return run.state.without_rows()


def visit(
    parts: Parts, partition: Any, method: Method[Any], model: Any, memory: Any, n_epochs: int, *numbers: int
) -> tuple[Any, Any]:
    """Train a model on a partition.

    Returns
    -------
    model : future of State
        The trained model.
    memory : future of State
        The same with its memory of the rows, which stays on the worker.
    """
    visited = parts.submit(_train, partition, method, model, memory, n_epochs, numbers)
    return parts.submit(itemgetter(0), visited), parts.submit(itemgetter(1), visited)


def _train(
    partition: Partition, method: Method[Any], model: Any, memory: Any, n_epochs: int, numbers: tuple[int, ...]
) -> tuple[Any, Any]:
    data = partition.data
    state = model.with_seed_of(model, *numbers)
    state = state if memory is None else state.with_memory_of(memory)
    state = Run(method, state).go(repeat(data, n_epochs)).state.with_rows_of(data)
    return state.without_rows(), state


# Sums over rows.


def _on_one_partition(kind: Callable[..., Any], method: Any, **others: Any) -> Any:
    """Return the method of one partition: `kind` with the values of the cluster's method."""
    return kind(**{part.name: getattr(method, part.name) for part in fields(kind)} | others)  # type: ignore[arg-type]


@dataclass(frozen=True)
class OnCluster(Method[Any]):
    """What methods whose steps are sums over rows have on a cluster."""

    cluster: Any = None


@dataclass(frozen=True)
class ClusterCuttingPlane(OnCluster, CuttingPlane):
    """The cutting-plane method on a cluster."""

    def _workspace(self, data: Data) -> CutWorkspace:
        local = _on_one_partition(CuttingPlane, self, n_jobs=1)
        problems = range(len(self._positives(data.n_classes)))
        return CutWorkspace([ClusterRowSums(self.cluster, (local, number)) for number in problems], ThreadPool(1))


class ClusterRowSums:
    """The sums of `RowSums` over all partitions, which cache the violations of the current planes."""

    current: np.ndarray
    candidate: np.ndarray

    def __init__(self, cluster: Cluster, problem: tuple[CuttingPlane, int]) -> None:
        self.cluster, self.problem, self.dtype = cluster, problem, cluster.dtype

    def set_current(self, planes: np.ndarray) -> None:
        """Set the current planes and the candidate to `planes`."""
        self.current = self.candidate = planes

    def set_candidate(self, planes: np.ndarray) -> None:
        """Set the candidate to `planes`."""
        self.candidate = planes

    def move(self, mu: float) -> None:
        """Move the current planes towards the candidate, by the fraction `mu`."""
        self.current = self.current + mu * (self.candidate - self.current)

    def risks(self, steps: list[float]) -> np.ndarray:
        """Compute the weighted sum of the losses at each fraction in `steps` between current planes and candidate."""
        return np.array(self.cluster.sum(_risks, self.problem, self.current, self.candidate, steps))

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Compute subgradient and offset of the cut at the fraction `mu` between current planes and candidate."""
        normal, offset = self.cluster.sum(_cut, self.problem, self.current, self.candidate, mu)
        return normal, offset


def _row_sums(partition: Partition, problem: tuple[CuttingPlane, int], current: Any, candidate: Any) -> RowSums:
    """Return the sums over the rows of a partition, for these planes."""
    method, number = problem
    cache = partition.cached("row sums", lambda: [(sums, {}) for sums in method._workspace(partition.data).sums])
    sums, known = cache[number]
    for name, planes, change in (("current", current, sums.set_current), ("candidate", candidate, sums.set_candidate)):
        if not np.array_equal(known.get(name), planes):
            change(planes)
            known |= {name: planes, "candidate": planes}
    return sums


def _risks(partition: Partition, problem: Any, current: Any, candidate: Any, steps: list[float]) -> tuple[Any, ...]:
    return tuple(_row_sums(partition, problem, current, candidate).risks(steps))


def _cut(partition: Partition, problem: Any, current: Any, candidate: Any, mu: float) -> tuple[np.ndarray, float]:
    sums = _row_sums(partition, problem, current, candidate)
    sums.n_cuts = 0  # compute the sums again, so that the result does not depend on the history of this worker
    return sums.cut(mu)


@dataclass(frozen=True)
class PolyhedronOnCluster(OnCluster):
    """What both methods of a polyhedron have on a cluster."""

    n_planes: int = 2

    def class_counts(self, data: Data) -> np.ndarray:
        """Return the number of training rows of each class."""
        counts: np.ndarray = self.cluster.class_counts
        return counts

    def start_planes(self, rows: AffineRows, data: Data, inside: int, seed: int) -> Iterator[np.ndarray]:
        """Yield the initial planes."""
        yield split_start(ClusterStartRows(self.cluster, rows.scaling, inside), self.n_planes)


class ClusterStartRows:
    """The `StartRows` of all partitions, cached on the workers until training starts."""

    is_partitioned = True

    def __init__(self, cluster: Cluster, scaling: AffineScaling, inside: int) -> None:
        self.cluster, self.terms, self.n_features = cluster, (scaling, inside), cluster.n_features

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``function(start_rows, *arguments)`` of each partition."""
        return self.cluster.map(_with_start_rows, self.terms, function, *arguments)


def _with_start_rows(
    partition: Partition, terms: tuple[AffineScaling, int], function: Callable[..., Any], *arguments: Any
) -> Any:
    (scaling, inside), data = terms, partition.data
    rows = partition.cached(("start", inside), lambda: StartRows.of(AffineRows(data.X, scaling), data, inside))
    return function(rows, *arguments)


@dataclass(frozen=True)
class ClusterMixture(PolyhedronOnCluster, PolyhedralMixture):
    """The polyhedral mixture on a cluster."""

    def total_weight(self, data: Data) -> float:
        """Return the total weight of all rows."""
        return float(self.cluster.weight)

    def _likelihood(self, state: MixtureState, data: Data) -> Any:
        return ClusterLikelihood(self.cluster, _on_one_partition(PolyhedralMixture, self), state.without_workspaces())


class ClusterPoint(NamedTuple):
    """Planes, their likelihood, and its gradient."""

    planes: np.ndarray
    value: float
    gradient: np.ndarray


class ClusterLikelihood:
    """The likelihood of all rows, the mean of those of the partitions, with its gradient."""

    def __init__(self, cluster: Cluster, method: PolyhedralMixture, state: MixtureState) -> None:
        self.cluster, self.terms = cluster, (method, state)

    def _mean(self, function: Callable[..., Any], planes: np.ndarray) -> list[Any]:
        return [total / self.cluster.weight for total in self.cluster.sum(function, self.terms, planes)]

    def at(self, planes: np.ndarray) -> ClusterPoint:
        """E-step: compute the likelihood of planes."""
        return ClusterPoint(planes, *self._mean(_likelihood, planes))

    def gradient(self, point: ClusterPoint) -> np.ndarray:
        """Return the gradient at the planes of `point`."""
        return point.gradient

    def curvature(self, point: ClusterPoint) -> np.ndarray:
        """Compute the negative Hessian of Q."""
        [matrix] = self._mean(_curvature, point.planes)
        return matrix

    def separates(self, planes: np.ndarray) -> bool:
        """Whether all rows are classified correctly."""
        return all(self.cluster.map(_separates, self.terms, planes))


def _local(partition: Partition, terms: tuple[PolyhedralMixture, MixtureState]) -> tuple[Any, float]:
    """Return the likelihood of the rows of a partition, and their total weight."""
    method, state = terms
    likelihood = partition.cached(("likelihood", state.inside), lambda: method._likelihood(state, partition.data))
    return likelihood, method.total_weight(partition.data)


def _likelihood(partition: Partition, terms: Any, planes: np.ndarray) -> tuple[float, np.ndarray]:
    likelihood, weight = _local(partition, terms)
    point = likelihood.at(planes)
    return point.value * weight, likelihood.gradient(point) * weight


def _curvature(partition: Partition, terms: Any, planes: np.ndarray) -> tuple[np.ndarray]:
    likelihood, weight = _local(partition, terms)
    return (likelihood.curvature(likelihood.at(planes)) * weight,)


def _separates(partition: Partition, terms: Any, planes: np.ndarray) -> bool:
    is_separated: bool = _local(partition, terms)[0].separates(planes)
    return is_separated


@dataclass(frozen=True)
class ClusterPolyceptron(PolyhedronOnCluster, Polyceptron):
    """The batch Polyceptron on a cluster."""

    def _evaluator(self, data: Data, inside: int) -> Evaluator:
        return ClusterEvaluator(self.cluster, inside)


class ClusterEvaluator(Evaluator):
    """Evaluates planes on all rows; returns the gradient instead of the weight of each row in the gradient."""

    def __init__(self, cluster: Cluster, inside: int) -> None:
        self.cluster, self.inside = cluster, inside
        self._last = None

    def _evaluate(self, planes: np.ndarray) -> Evaluation:
        error, criterion, gradient = self.cluster.sum(_evaluate, self.inside, planes)
        return Evaluation(planes, error / self.cluster.weight, criterion / self.cluster.weight, gradient)

    def gradient(self, evaluation: Evaluation) -> np.ndarray:
        """Return the gradient, which was computed with the evaluation."""
        gradient: np.ndarray = evaluation.gradient_weights
        return gradient


def _evaluate(partition: Partition, inside: int, planes: np.ndarray) -> tuple[float, float, np.ndarray]:
    evaluator = partition.cached(("evaluator", inside), lambda: Evaluator(partition.data, inside))
    found = evaluator.at(planes)
    return found.error * evaluator.total, found.criterion * evaluator.total, evaluator.gradient(found)


#: Methods whose steps are sums over rows, on a cluster.
EXACT_METHODS: dict[type, type[OnCluster]] = {
    CuttingPlane: ClusterCuttingPlane,
    Polyceptron: ClusterPolyceptron,
    PolyhedralMixture: ClusterMixture,
}


def check_method(estimator: Any, method: Any) -> None:
    """Raise an error if the method of an estimator cannot be trained on a cluster."""
    name = type(estimator).__name__
    if type(method) not in EXACT_METHODS:
        if not method.traits.mixable:
            raise ValueError(
                f"{name} cannot be trained on a cluster: its steps are not sums over rows, and models of different "
                "partitions cannot be averaged."
            )
        if getattr(estimator, "tol", None) is not None:
            raise ValueError(f"On a cluster, {name} always runs max_iter epochs: set tol to None.")
    elif getattr(method, "line_search", None) in ("exact", "non-greedy"):
        raise ValueError(
            f"line_search={method.line_search!r} needs all rows in one place, which is not possible on a cluster; "
            "use 'three-point'."
        )
    elif getattr(method, "n_init", 1) > 1:
        raise ValueError(f"n_init={method.n_init} is not supported on a cluster; set n_init=1.")
    elif getattr(method, "mode", None) == "online":
        raise ValueError("mode='online' is not supported on a cluster; use mode='batch', which is exact.")


def on_cluster(
    method: Any, cluster: Cluster, n_rounds: int, n_epochs: int, choose: Any
) -> tuple[Method[Any], Data, int]:
    """Return the method with sums over all partitions, or in rounds; placeholder rows; and the number of steps."""
    if type(method) in EXACT_METHODS:
        rows = _rows_with_moments(cluster) if isinstance(method, PolyhedralMixture) else None
        return EXACT_METHODS[type(method)](**vars(method), cluster=cluster), placeholder(cluster, rows), n_epochs
    if "n_jobs" in (part.name for part in fields(method)):
        method = replace(method, n_jobs=1)
    shares = np.array_split(np.arange(n_epochs), min(n_rounds, n_epochs))
    epochs = tuple(len(share) for share in shares)
    return Rounds(method, cluster, epochs, choose), placeholder(cluster), len(epochs)


def placeholder(cluster: Cluster, rows: np.ndarray | None = None) -> Data:
    """Return two rows, one of each of the first two classes, for a run whose rows are on the cluster."""
    X = (np.zeros((2, cluster.n_features)) if rows is None else rows).astype(cluster.dtype)
    return Data(X, np.arange(2), np.ones(2, X.dtype), np.arange(2), len(cluster.classes))


def _rows_with_moments(cluster: Cluster) -> np.ndarray:
    """Return two rows with the mean and the variance of all rows."""
    weights, means, variances = (np.array(part) for part in zip(*cluster.map(_moments), strict=True))
    share = weights / cluster.weight
    mean = share @ means
    variance = share @ (variances + np.square(means - mean))
    rows: np.ndarray = mean + np.sqrt(variance) * np.array([[1.0], [-1.0]])
    return rows


def _moments(partition: Partition) -> tuple[float, np.ndarray, np.ndarray]:
    weight = partition.data.training_weight
    return float(weight.sum()), *moments(partition.data.X, weight)
