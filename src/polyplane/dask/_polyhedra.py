"""The mixture and the batch Polyceptron on a cluster: the same methods, with sums over the rows of all partitions.

The loops, line searches and small linear systems run in the client, with placeholder rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.dask._partitions import Cluster, Partition
from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.learners.polyceptron import Evaluation, Evaluator, Polyceptron
from polyplane.learners.polyhedral_mixture import Likelihood, MixtureState, PolyhedralMixture
from polyplane.learners.polyhedron import AffineRows, StartRows, split_start
from polyplane.scaling import AffineScaling, moments


def on_cluster(method: Polyceptron | PolyhedralMixture, cluster: Cluster) -> tuple[Method[Any], Data]:
    """Return the method for the rows of a cluster, and placeholder rows for the run."""
    if method.n_init > 1:
        raise ValueError(f"n_init={method.n_init} is not supported on a cluster; set n_init=1.")
    if isinstance(method, PolyhedralMixture):
        return ClusterMixture.of(method, cluster=cluster), _stand_in(cluster, _rows_with_moments(cluster))
    if method.mode == "online":
        raise ValueError("mode='online' is not supported on a cluster; use mode='batch', which is exact.")
    return ClusterPolyceptron.of(method, cluster=cluster), _stand_in(cluster, np.zeros((2, cluster.n_features)))


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
