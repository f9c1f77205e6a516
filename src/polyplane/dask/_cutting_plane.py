"""The cutting-plane SVM on a cluster: the same method, with sums over the rows of all partitions.

The loop, the line searches and the small quadratic programs run in the client; only planes, their subgradients and a
few numbers are transferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane._threads import Team
from polyplane.dask._partitions import Cluster, Partition
from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.learners.cuts import Workspace
from polyplane.learners.cutting_plane import CuttingPlane
from polyplane.learners.row_sums import RowSums, targets


def on_cluster(method: CuttingPlane, cluster: Cluster) -> tuple[Method[Any], Data]:
    """Return the method for the rows of a cluster, and a placeholder row for the run."""
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
