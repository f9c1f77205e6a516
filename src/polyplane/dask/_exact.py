"""Learners whose steps are sums over rows, trained on all partitions as on one machine.

Each is the learner itself, with other sums: its loop, its line searches and its small problems run where `fit` was
called, on rows that only stand in for the real ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from polyplane._threads import Team
from polyplane._validation import Data
from polyplane.base import PlaneClassifier
from polyplane.dask._partitions import Cluster
from polyplane.dask._sums import (
    ClusterBench,
    ClusterLikelihood,
    ClusterRowSums,
    largest_values,
    moments_of,
    split_start,
)
from polyplane.learners._mixture import Ascent
from polyplane.learners.cutting_plane import CuttingPlaneSVC, Memory
from polyplane.learners.polyceptron import PolyceptronClassifier
from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier


class OnCluster(PlaneClassifier):
    """A learner whose rows are on a cluster."""

    _cluster: Cluster

    @abstractmethod
    def _stand_in(self) -> Data:
        """Rows that show the learner what it asks of them directly."""

    def _check_cluster(self) -> None:
        """Refuse what would move the rows."""

    def train_on(self, cluster: Cluster) -> None:
        """Train."""
        self._cluster, self.classes_ = cluster, cluster.classes
        self.n_features_in_ = cluster.n_features
        self._check_cluster()
        data = self._stand_in()
        self._train(self._start(data, self._seed()), data, None)


def _data(rows: np.ndarray, n_classes: int) -> Data:
    n_rows = len(rows)
    return Data(rows, np.arange(n_rows) % n_classes, np.ones(n_rows, rows.dtype), np.arange(n_rows), n_classes)


class ClusterCuts(OnCluster, CuttingPlaneSVC):
    """The cutting plane."""

    def _check_cluster(self) -> None:
        if self.line_search == "exact":
            raise ValueError("line_search='exact' sorts all rows, which would move them; use 'three-point'.")
        if self.warm_start:
            raise ValueError("warm_start keeps cuts about rows that it knows again; on a cluster it must be False.")

    def _stand_in(self) -> Data:
        return _data(largest_values(self._cluster).astype(self._cluster.dtype)[None], len(self.classes_))

    def _remember(self, data: Data) -> Memory:
        n_searches, n_planes = self._layout(data.n_classes)
        bias_input = 1.0 if self.fit_intercept else 0.0
        problems: list[int | None] = [None] if n_planes > 1 else [1] if n_searches == 1 else list(range(n_searches))
        rows: list[Any] = [ClusterRowSums(self._cluster, positive, n_planes, bias_input) for positive in problems]
        return Memory(rows, Team(1))


class _Polyhedron(OnCluster):
    """What the learners of a single polyhedron have in common."""

    def _check_cluster(self) -> None:
        if self.n_init > 1:
            raise ValueError(f"n_init={self.n_init} picks rows at random, which would move them; on a cluster it is 1.")

    def _start_planes(self, rows: Any, data: Data, inside: int, seed: int) -> Iterator[np.ndarray]:
        yield split_start(self._cluster, rows.units, inside, self.n_planes)

    def _check_rows(self, data: Data, inside: int) -> None:
        counts = self._cluster.counts
        if counts[inside] < 2:
            label = self.classes_.tolist()[inside]
            raise ValueError(f"The inside class {label!r} has a single row: a region needs two or more points.")
        if self.n_planes > counts.sum():
            raise ValueError(f"n_planes={self.n_planes} is more than the {counts.sum()} rows to learn from.")


class ClusterMixture(_Polyhedron, PolyhedralMixtureClassifier):
    """The mixture."""

    def _stand_in(self) -> Data:
        """Two rows with the mean and the variance of all."""
        mean, variance = moments_of(self._cluster)
        rows = mean + np.sqrt(variance) * np.array([[1.0], [-1.0]])
        return _data(rows.astype(self._cluster.dtype), 2)

    def _ascent(self, state: Any, data: Data) -> Ascent:
        by_inside: dict[int, Ascent] = data.recall(dict)
        if state.inside not in by_inside:
            gamma = self.gamma if self.gating == "soft" else None
            likelihood: Any = ClusterLikelihood(self._cluster, state.units, state.inside, self.alpha, gamma)
            by_inside[state.inside] = Ascent(likelihood, self.solver)
        return by_inside[state.inside]

    def _separated(self, state: Any, data: Data) -> bool:
        likelihood: Any = self._ascent(state, data).likelihood
        separated: bool = likelihood.separated(state.planes)
        return separated


class ClusterPolyceptron(_Polyhedron, PolyceptronClassifier):
    """The batch Polyceptron."""

    def _stand_in(self) -> Data:
        data = _data(np.zeros((2, self._cluster.n_features), dtype=self._cluster.dtype), 2)
        data._memory.append(ClusterBench(self._cluster, self._inside_class()))
        return data
