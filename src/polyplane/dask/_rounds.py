"""Stochastic learners on a cluster: each partition trains the common model separately, and the models are averaged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np

from polyplane.dask._partitions import Cluster, Partition
from polyplane.engine.data import Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.run import Run
from polyplane.engine.state import State, mix, workspace
from polyplane.planes import PlaneSet


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

    traits = Traits(RoundsState)

    def start(self, data: Data, seed: int) -> RoundsState:
        """Return the common initial state, from the largest partition that has rows of all classes."""
        infos = self.cluster.infos
        complete = [i for i, info in enumerate(infos) if (info.class_counts > 0).all()]
        if not complete:
            raise ValueError("No partition has rows of all classes; shuffle the rows.")
        first = self.cluster.partitions[max(complete, key=lambda i: infos[i].n_rows)]
        [model] = self.cluster.gather([self.cluster.submit(_start, first, self.method, seed)])
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


def in_rounds(method: Method[Any], cluster: Cluster, n_rounds: int, n_epochs: int) -> tuple[Rounds, Data]:
    """Return rounds that divide the epochs of `method`, with one thread per partition, and empty rows for the run."""
    if "n_jobs" in (part.name for part in fields(method)):
        method = replace(method, n_jobs=1)  # type: ignore[call-arg]
    shares = np.array_split(np.arange(n_epochs), min(n_rounds, n_epochs))
    X, none = np.empty((0, cluster.n_features), dtype=cluster.dtype), np.empty(0, dtype=np.intp)
    data = Data(X, none, X[:, 0], none, len(cluster.classes))
    return Rounds(method, cluster, tuple(len(share) for share in shares)), data


def _start(partition: Partition, method: Method[Any], seed: int) -> Any:
    data = partition.data
    run = Run(method, method.start(data, seed)).go(repeat(data, method.traits.steps_before_mixing))
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
