"""Training in turns: machines go from partition to partition, each of which is at work on another machine."""

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
    """A machine on its way.

    Parameters
    ----------
    method : Method
        What it is trained by; its steps fall over all visits of all partitions.
    state : State
        How far it has come.
    cluster : Cluster
        Its prepared rows.
    """

    def __init__(self, method: Method[Any], state: Any, cluster: Cluster) -> None:
        self.method, self.state, self.cluster = method, state, cluster
        self.memories: list[Any] = [None] * len(cluster.partitions)  # futures of what it remembers of the rows

    @property
    def planes(self) -> PlaneSet:
        """Its planes now."""
        return self.method.planes(self.state)

    def submit(self, order: Sequence[int]) -> tuple[Any, list[Any]]:
        """Visit all partitions in some order: futures of the state after that and of what is remembered."""
        state, memories = self.state, list(self.memories)
        for number in order:
            arguments = self.cluster.partitions[number], self.method, state, memories[number], 1, self.state.seed
            result = self.cluster.submit(train_on_partition, *arguments)
            state, memories[number] = (self.cluster.submit(itemgetter(j), result) for j in (0, 1))
        return state, memories


def train_pass(runners: Sequence[Runner], number: int) -> None:
    """One pass of all machines over all partitions. They begin at different ones, so that all workers are at work.

    When it fails, the machines are where they were.
    """
    n_partitions = len(runners[0].cluster.partitions)
    order = np.random.default_rng([runners[0].state.seed, number]).permutation(n_partitions)
    first = np.arange(len(runners)) * n_partitions // len(runners)
    submitted = [runner.submit(np.roll(order, -shift).tolist()) for runner, shift in zip(runners, first, strict=True)]
    states = gather(runners[0].cluster.client, [state for state, _ in submitted])
    for runner, state, (_, memories) in zip(runners, states, submitted, strict=True):
        runner.state, runner.memories = state, memories
