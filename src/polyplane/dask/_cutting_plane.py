"""The cutting-plane SVM on a cluster: the same method, with sums over the rows of all partitions.

Its loop, its line searches and its small problems run where `fit` was called; what moves is planes, their
sub-gradients and a few numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane._threads import Team
from polyplane.dask._partitions import Cluster, Partition
from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.learners._row_sums import RowSums, targets
from polyplane.learners.cutting_plane import CuttingPlane, Workspace


def on_cluster(method: CuttingPlane, cluster: Cluster) -> tuple[Method[Any], Data]:
    """The method over the rows of a cluster, and a row that stands in for them in a run."""
    if method.line_search in ("exact", "non-greedy"):
        raise ValueError(
            f"line_search={method.line_search!r} needs all rows in one place, which is not possible on "
            "a cluster; use 'three-point'."
        )
    row, zero = np.zeros((1, cluster.n_features), dtype=cluster.dtype), np.zeros(1, np.int64)
    stand_in = Data(row, zero, np.ones(1, cluster.dtype), zero, len(cluster.classes))
    return ClusterCuttingPlane.of(method, cluster=cluster), stand_in


@dataclass(frozen=True)
class ClusterCuttingPlane(CuttingPlane):
    """The cutting plane."""

    cluster: Any = None

    def _workspace(self, data: Data) -> Workspace:
        n_planes, bias_input = self._planes_of_problem(data.n_classes), float(self.fit_intercept)
        problems = [Problem(positive, n_planes, bias_input) for positive in self._positives(data.n_classes)]
        return Workspace([ClusterRowSums(self.cluster, problem) for problem in problems], Team(1))


class Problem(NamedTuple):
    """One SVM."""

    positive: int | None  # the class that is told from the rest; None: all classes at once
    n_planes: int
    bias_input: float  # value of the constant feature


class ClusterRowSums:
    """The sums of `RowSums` over all partitions, which keep the violations until other planes are asked for."""

    def __init__(self, cluster: Cluster, problem: Problem) -> None:
        self.cluster, self.problem, self.dtype = cluster, problem, cluster.dtype
        self.current = self.candidate = np.zeros((problem.n_planes, cluster.n_features + 1))

    def set_current(self, planes: np.ndarray) -> None:
        """Let `planes` be the current ones, and the candidate."""
        self.current = self.candidate = planes

    def set_candidate(self, planes: np.ndarray) -> None:
        """Let `planes` be the candidate."""
        self.candidate = planes

    def move(self, mu: float) -> None:
        """Let a point of the way to the candidate be the current planes."""
        self.current = self.current + mu * (self.candidate - self.current)

    def risks(self, steps: list[float]) -> np.ndarray:
        """The weighted sum of the losses at each of `steps` of the way from the current planes to the candidate."""
        return self.cluster.sum(_risks, self.problem, self.current, self.candidate, steps)

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Sub-gradient and offset of the cut at a point of the way from the current planes to the candidate."""
        flat = self.cluster.sum(_cut, self.problem, self.current, self.candidate, mu)
        return flat[:-1].reshape(self.current.shape), float(flat[-1])


def _row_sums(partition: Partition, problem: Problem, current: np.ndarray, candidate: np.ndarray) -> RowSums:
    """The sums over the rows of a partition, between these planes."""
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
    sums.n_cuts = 0  # sum afresh: the outcome does not depend on what this worker did before
    normal, offset = sums.cut(mu)
    return np.append(normal.ravel(), offset)
