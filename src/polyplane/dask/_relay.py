"""Training of several committee members in turn: each visits all partitions, and different partitions at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from polyplane.dask._partitions import Cluster, gather
from polyplane.dask._rounds import train_on_partition
from polyplane.engine.method import Method
from polyplane.planes import PlaneSet


class Runner:
    """A committee member in training.

    Parameters
    ----------
    method : Method
        The training method; its step size decreases over all visits of all partitions.
    state : State
        The current state.
    cluster : Cluster
        The prepared rows.
    """

    def __init__(self, method: Method[Any], state: Any, cluster: Cluster) -> None:
        self.method, self.state, self.cluster = method, state, cluster
        self.memories: list[Any] = [None] * len(cluster.partitions)  # futures of its memory of the rows

    @property
    def planes(self) -> PlaneSet:
        """The current planes."""
        return self.method.planes(self.state)

    def submit(self, order: Sequence[int]) -> tuple[Any, list[Any]]:
        """Visit all partitions in the given order; return futures of the new state and of the memory of the rows."""
        state, memories = self.state, list(self.memories)
        for number in order:
            arguments = self.cluster.partitions[number], self.method, state, memories[number], 1, ()
            result = self.cluster.submit(train_on_partition, *arguments)
            state, memories[number] = (self.cluster.submit(itemgetter(j), result) for j in (0, 1))
        return state, memories


def train_pass(runners: Sequence[Runner], number: int) -> None:
    """Train all members in one pass over all partitions. They start at different ones, so that all workers are busy.

    If the pass fails, the members do not change.
    """
    n_partitions = len(runners[0].cluster.partitions)
    order = np.random.default_rng([runners[0].state.seed, number]).permutation(n_partitions)
    first = np.arange(len(runners)) * n_partitions // len(runners)
    submitted = [runner.submit(np.roll(order, -shift).tolist()) for runner, shift in zip(runners, first, strict=True)]
    states = gather(runners[0].cluster.client, [state for state, _ in submitted])
    for runner, state, (_, memories) in zip(runners, states, submitted, strict=True):
        runner.state, runner.memories = state, memories
