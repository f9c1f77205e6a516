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

from polyplane._array_api import Team
from polyplane.dask.partitions import Cluster, Partition
from polyplane.engine.committee import CommitteeState
from polyplane.engine.data import AffineScaling, Data, moments
from polyplane.engine.method import Method, Traits
from polyplane.engine.run import Run
from polyplane.engine.state import State, mix, workspace
from polyplane.learners.cuts import Workspace
from polyplane.learners.cutting_plane import CuttingPlane
from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane, SmoothState
from polyplane.learners.polyceptron import Evaluation, Evaluator, Polyceptron
from polyplane.learners.polyhedral_mixture import Likelihood, MixtureState, PolyhedralMixture
from polyplane.learners.polyhedron import AffineRows, StartRows, split_start
from polyplane.learners.row_sums import RowSums, targets
from polyplane.planes import PlaneSet
from polyplane.tables.members import EncodedRows, Member
from polyplane.tables.training import TableMethod, cold_start, member_method

#: Methods whose steps are sums over rows.
EXACT = (CuttingPlane, Polyceptron, PolyhedralMixture)


@dataclass(frozen=True, eq=False)
class RoundsState(State):
    """The common model after some rounds."""

    model: State
    n_rounds: int = 0
    memories: list[Any] = workspace()  # futures of the memory of the rows of each partition


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
        cluster, number = self.cluster, state.n_rounds
        model: Any = state.model
        task, epochs = train_on_partition, self.epochs[number]
        trained = [
            cluster.submit(task, partition, self.method, model, memory, epochs, (number, i))
            for i, (partition, memory) in enumerate(zip(cluster.partitions, state.memories, strict=True))
        ]
        models = cluster.gather([cluster.submit(itemgetter(0), result) for result in trained])
        memories = [cluster.submit(itemgetter(1), result) for result in trained]  # these stay on the workers
        n_rows = np.array([info.n_rows for info in cluster.infos], dtype=np.float64)
        model = mix(models, n_rows / n_rows.sum()).with_seed_of(model)
        return RoundsState(model, number + 1, memories)

    def planes(self, state: RoundsState) -> PlaneSet:
        """Return the planes of the common model."""
        return self.method.planes(state.model)

    def metrics(self, state: RoundsState) -> Mapping[str, float]:
        """Return the number of epochs so far, and the averages of the metrics of the method."""
        return {"epochs": sum(self.epochs[: state.n_rounds]), **self.method.metrics(state.model)}


@dataclass(frozen=True, eq=False)
class RelayState(CommitteeState):
    """The members of a table's committee after some passes over all partitions."""

    members: list[SmoothState]
    n_passes: int = 0
    memories: list[list[Any]] = workspace()  # futures of each member's states with its memory of the rows


@dataclass(frozen=True)
class Relay(TableMethod):
    """A step is a pass: each member visits all partitions in turn, and different members different partitions.

    Parameters
    ----------
    fitted : tuple of Member
        The members: their features, and numbers of planes.
    clusters : tuple of Cluster
        The prepared rows of each member.
    sample : EncodedRows
        Rows that the starts are computed from.
    max_iter : int
        Number of passes; step sizes decrease over all visits of all partitions.
    """

    fitted: tuple[Member, ...]
    clusters: tuple[Cluster, ...]
    sample: EncodedRows
    max_iter: int

    traits = Traits(RelayState)

    @property
    def methods(self) -> list[SmoothMultiHyperplane]:
        """The training method of each member."""
        n_visits = self.max_iter * len(self.clusters[0].partitions)
        return [member_method(member, self.sample.is_indicator, n_visits) for member in self.fitted]

    def start(self, data: Data, seed: Any) -> RelayState:
        """The tangent planes at the centres of the sample."""
        members = zip(self.methods, self.fitted, seed, strict=True)
        states = [cold_start(method, member, self.sample, own) for method, member, own in members]
        return RelayState(states, memories=[[None] * len(cluster.partitions) for cluster in self.clusters])

    def step(self, state: RelayState, data: Data) -> RelayState:
        """One pass of all members. They start at different partitions, so that all workers are busy."""
        n_partitions, n_members = len(self.clusters[0].partitions), len(self.fitted)
        order = np.random.default_rng([state.members[0].seed, state.n_passes]).permutation(n_partitions)
        results, memories = [], []
        for k, (method, cluster, model) in enumerate(zip(self.methods, self.clusters, state.members, strict=True)):
            result: Any = model
            known = list(state.memories[k])
            for number in np.roll(order, -(k * n_partitions // n_members)).tolist():
                visit = cluster.partitions[number], method, result, known[number], 1, ()
                visited = cluster.submit(train_on_partition, *visit)
                result, known[number] = (cluster.submit(itemgetter(j), visited) for j in (0, 1))
            results.append(result)
            memories.append(known)
        return RelayState(self.clusters[0].gather(results), state.n_passes + 1, memories)

    def metrics(self, state: RelayState) -> Mapping[str, float]:
        """The mean loss of the members."""
        return {"loss": float(np.mean([own.loss for own in state.members]))}

    def members(self, state: RelayState) -> tuple[Member, ...]:
        """The features and the planes of each member."""
        found = zip(self.fitted, self.methods, state.members, strict=True)
        return tuple(Member(member.preparation, method.planes(own)) for member, method, own in found)


def stand_in_of(cluster: Cluster) -> Data:
    """Return rows for a run whose rows are on the cluster: none."""
    X, none = np.empty((0, cluster.n_features), dtype=cluster.dtype), np.empty(0, dtype=np.intp)
    return Data(X, none, X[:, 0], none, len(cluster.classes))


def in_rounds(
    method: Method[Any], cluster: Cluster, n_rounds: int, n_epochs: int, choose: Any = None
) -> tuple[Rounds, Data]:
    """Return rounds that divide the epochs of `method`, with one thread per partition, and empty rows for the run."""
    if "n_jobs" in (part.name for part in fields(method)):
        method = replace(method, n_jobs=1)  # type: ignore[call-arg]
    shares = np.array_split(np.arange(n_epochs), min(n_rounds, n_epochs))
    return Rounds(method, cluster, tuple(len(share) for share in shares), choose), stand_in_of(cluster)


def _start(partition: Partition, method: Method[Any], choose: Any, seed: int) -> Any:
    data = partition.data
    starter = method if choose is None else choose(method, data, seed).method
    run = Run(method, starter.start(data, seed)).go(repeat(data, method.traits.steps_before_mixing))
    return run.state.without_rows()


def train_on_partition(
    partition: Partition, method: Method[Any], model: Any, memory: Any, n_epochs: int, numbers: tuple[int, ...]
) -> tuple[Any, Any]:
    """Train the common model on a partition; return the trained model, and the state with its memory of the rows."""
    data = partition.data
    state = model.with_seed_of(model, *numbers)
    state = state if memory is None else state.with_memory_of(memory)
    state = Run(method, state).go(repeat(data, n_epochs)).state.with_rows_of(data)
    return state.without_rows(), state


@dataclass(frozen=True)
class ClusterCuttingPlane(CuttingPlane):
    """The cutting-plane method on a cluster."""

    cluster: Any = None

    def _workspace(self, data: Data) -> Workspace:
        n_planes, bias_input = self._planes_of_problem(data.n_classes), float(self.fit_intercept)
        problems = [Problem(positive, n_planes, bias_input) for positive in self._positives(data.n_classes)]
        return Workspace([ClusterRowSums(self.cluster, problem) for problem in problems], Team(1))


class Problem(NamedTuple):
    """One SVM."""

    positive: int | None  # the positive class, against the rest; None: all classes jointly
    n_planes: int
    bias_input: float  # value of the constant feature


class ClusterRowSums:
    """The sums of `RowSums` over all partitions, which cache the violations of the current planes."""

    def __init__(self, cluster: Cluster, problem: Problem) -> None:
        self.cluster, self.problem, self.dtype = cluster, problem, cluster.dtype
        self.current = self.candidate = np.zeros((problem.n_planes, cluster.n_features + 1))

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
        return self.cluster.sum(_risks, self.problem, self.current, self.candidate, steps)

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Compute subgradient and offset of the cut at the fraction `mu` between current planes and candidate."""
        flat = self.cluster.sum(_cut, self.problem, self.current, self.candidate, mu)
        return flat[:-1].reshape(self.current.shape), float(flat[-1])


def _row_sums(partition: Partition, problem: Problem, current: np.ndarray, candidate: np.ndarray) -> RowSums:
    """Return the sums over the rows of a partition, for these planes."""
    data = partition.data
    if problem not in partition.cache:
        target = targets(data.y, problem.positive)
        sums = RowSums(data.X, target, data.training_weight, problem.n_planes, problem.bias_input, Team(1))
        partition.cache[problem] = sums, [np.nan, np.nan]
    sums, seen = partition.cache[problem]
    if not np.array_equal(seen[0], current):
        sums.set_current(current)
        seen[:] = current, current
    if not np.array_equal(seen[1], candidate):
        sums.set_candidate(candidate)
        seen[1] = candidate
    return sums


def _risks(
    partition: Partition, problem: Problem, current: np.ndarray, candidate: np.ndarray, steps: list[float]
) -> np.ndarray:
    return _row_sums(partition, problem, current, candidate).risks(steps)


def _cut(partition: Partition, problem: Problem, current: np.ndarray, candidate: np.ndarray, mu: float) -> np.ndarray:
    sums = _row_sums(partition, problem, current, candidate)
    sums.n_cuts = 0  # compute the sums again, so that the result does not depend on the history of this worker
    normal, offset = sums.cut(mu)
    return np.append(normal.ravel(), offset)


def exact(method: Any, cluster: Cluster) -> tuple[Method[Any], Data] | None:
    """Return the method with sums over all partitions, and placeholder rows; None if its steps are not sums."""
    if isinstance(method, CuttingPlane):
        if method.line_search in ("exact", "non-greedy"):
            raise ValueError(
                f"line_search={method.line_search!r} needs all rows in one place, which is not possible on "
                "a cluster; use 'three-point'."
            )
        row, zero = np.zeros((1, cluster.n_features), dtype=cluster.dtype), np.zeros(1, np.int64)
        stand_in = Data(row, zero, np.ones(1, cluster.dtype), zero, len(cluster.classes))
        return ClusterCuttingPlane(**vars(method), cluster=cluster), stand_in
    if not isinstance(method, Polyceptron | PolyhedralMixture):
        return None
    if method.n_init > 1:
        raise ValueError(f"n_init={method.n_init} is not supported on a cluster; set n_init=1.")
    if isinstance(method, PolyhedralMixture):
        return ClusterMixture(**vars(method), cluster=cluster), _stand_in(cluster, _rows_with_moments(cluster))
    if method.mode == "online":
        raise ValueError("mode='online' is not supported on a cluster; use mode='batch', which is exact.")
    return ClusterPolyceptron(**vars(method), cluster=cluster), _stand_in(cluster, np.zeros((2, cluster.n_features)))


def _stand_in(cluster: Cluster, rows: np.ndarray) -> Data:
    """Return two placeholder rows, one of each class."""
    X = rows.astype(cluster.dtype)
    return Data(X, np.arange(2), np.ones(2, X.dtype), np.arange(2), 2)


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


class OnCluster:
    """The functions of both methods that differ on a cluster."""

    cluster: Any
    n_planes: int

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
    scaling, inside = terms
    if inside not in partition.cache:
        partition.cache[inside] = StartRows.of(AffineRows(partition.data.X, scaling), partition.data, inside)
    return function(partition.cache[inside], *arguments)


# The mixture.


@dataclass(frozen=True)
class ClusterMixture(OnCluster, PolyhedralMixture):
    """The polyhedral mixture on a cluster."""

    cluster: Any = None

    def total_weight(self, data: Data) -> float:
        """Return the total weight of all rows."""
        return float(self.cluster.weight)

    def _likelihood(self, state: MixtureState, data: Data) -> Any:
        return ClusterLikelihood(self.cluster, state, self.ridge(state), self.gamma)


class ClusterPoint(NamedTuple):
    """Planes, their likelihood, and its gradient."""

    planes: np.ndarray
    value: float
    gradient: np.ndarray


class ClusterLikelihood:
    """The likelihood of all rows; value and gradient are computed in one pass over the partitions."""

    def __init__(self, cluster: Cluster, state: MixtureState, alpha: float, gamma: float | None) -> None:
        self.cluster, self.alpha = cluster, alpha
        self.terms = (state.scaling, state.inside, gamma)

    def at(self, planes: np.ndarray) -> ClusterPoint:
        """E-step: compute the likelihood of planes."""
        flat = self.cluster.sum(_likelihood, self.terms, planes) / self.cluster.weight
        ridge = 0.5 * self.alpha * np.square(planes[:, :-1]).sum()
        gradient = flat[1:].reshape(planes.shape)
        gradient[:, :-1] -= self.alpha * planes[:, :-1]
        return ClusterPoint(planes, float(flat[0] - ridge), gradient)

    def gradient(self, point: ClusterPoint) -> np.ndarray:
        """Return the gradient at the planes of `point`."""
        return point.gradient

    def curvature(self, point: ClusterPoint) -> np.ndarray:
        """Compute the negative Hessian of Q."""
        matrix = self.cluster.sum(_curvature, self.terms, point.planes) / self.cluster.weight
        n_planes, size = point.planes.shape
        ridge = np.tile(np.append(np.full(size - 1, self.alpha), 0.0), n_planes)
        matrix[np.diag_indices(len(matrix))] += ridge
        return matrix

    def separates(self, planes: np.ndarray) -> bool:
        """Whether all rows are classified correctly."""
        return all(self.cluster.map(_separates, self.terms, planes))


def _local(partition: Partition, terms: tuple[AffineScaling, int, float | None]) -> tuple[Likelihood, float]:
    """Compute the likelihood of the rows of a partition, and their total weight."""
    partition.cache.clear()
    scaling, inside, gamma = terms
    data, weight = partition.data, partition.data.training_weight
    sign = np.where(data.y == inside, 1.0, -1.0)
    return Likelihood(AffineRows(data.X, scaling), sign, weight, 0.0, gamma), float(weight.sum())


def _likelihood(partition: Partition, terms: Any, planes: np.ndarray) -> np.ndarray:
    likelihood, total = _local(partition, terms)
    point = likelihood.at(planes)
    return np.append(point.value, likelihood.gradient(point).ravel()) * total


def _curvature(partition: Partition, terms: Any, planes: np.ndarray) -> np.ndarray:
    likelihood, total = _local(partition, terms)
    return likelihood.curvature(likelihood.at(planes)) * total


def _separates(partition: Partition, terms: Any, planes: np.ndarray) -> bool:
    return _local(partition, terms)[0].separates(planes)


# The batch Polyceptron.


@dataclass(frozen=True)
class ClusterPolyceptron(OnCluster, Polyceptron):
    """The batch Polyceptron on a cluster."""

    cluster: Any = None

    def _evaluator(self, data: Data, inside: int) -> Evaluator:
        return ClusterEvaluator(self.cluster, inside)


class ClusterEvaluator(Evaluator):
    """Evaluates planes on all rows; returns the gradient instead of the weight of each row in the gradient."""

    def __init__(self, cluster: Cluster, inside: int) -> None:
        self.cluster, self.inside = cluster, inside
        self._last = None

    def _evaluate(self, planes: np.ndarray) -> Evaluation:
        flat = self.cluster.sum(_evaluate, self.inside, planes)
        error, criterion = flat[:2] / self.cluster.weight
        return Evaluation(planes, float(error), float(criterion), flat[2:].reshape(planes.shape))

    def gradient(self, evaluation: Evaluation) -> np.ndarray:
        """Return the gradient, which was computed with the evaluation."""
        gradient: np.ndarray = evaluation.gradient_weights
        return gradient


def _evaluate(partition: Partition, inside: int, planes: np.ndarray) -> np.ndarray:
    partition.cache.clear()
    evaluator = Evaluator(partition.data, inside)
    found = evaluator.at(planes)
    gradient = evaluator.gradient(found)
    return np.concatenate([np.array([found.error, found.criterion]) * float(evaluator.total), gradient.ravel()])
