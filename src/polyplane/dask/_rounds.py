"""Stochastic learners on a cluster: rounds of local epochs from a common model, mixed plane by plane."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from polyplane._loop import record
from polyplane._validation import Data
from polyplane.dask._partitions import Cluster, Held
from polyplane.learners._margin import MarginState
from polyplane.learners._polytopes import PolytopeState, PolytopeTrainer
from polyplane.learners._smooth import SmoothState

#: Epochs on one partition before the first round: polytopes begin with planes that are all the same, and those of
#: different partitions could be mixed only by chance.
WARM_UP = 2


def train_in_rounds(machine: Any, cluster: Cluster, rounds: int) -> None:
    """Train `machine`, whose `max_iter` passes are shared among the rounds."""
    machine.classes_, machine.n_features_in_ = cluster.classes, cluster.n_features
    worker = _for_workers(machine)
    seed, shares = machine._seed(), [fact.n_rows for fact in cluster.facts]
    state = cluster.submit(_begin, cluster.parts[_first(cluster)], worker, seed).result()
    memories: list[Any] = [None] * len(cluster.parts)
    history: dict[str, list[float]] = {}
    began = time.perf_counter()
    for number, epochs in enumerate(np.array_split(np.arange(machine.max_iter), min(rounds, machine.max_iter))):
        done = [
            cluster.submit(_go_on, part, worker, state, memory, len(epochs), _seed_of(seed, number, i))
            for i, (part, memory) in enumerate(zip(cluster.parts, memories, strict=True))
        ]
        states = cluster.client.gather([cluster.submit(itemgetter(0), result) for result in done])
        memories = [cluster.submit(itemgetter(1), result) for result in done]  # these stay where they are
        state = mix(states, shares)._replace(seed=seed)
        record(history, {"time": time.perf_counter() - began, "epochs": epochs[-1] + 1, **machine._figures(state)})
    machine._state, machine.planes_ = state, machine._planes(state)
    machine.n_iter_, machine.history_ = machine.max_iter, history
    nothing, none = np.empty((0, cluster.n_features), dtype=cluster.dtype), np.empty(0, dtype=np.intp)
    weight = np.empty(0, dtype=cluster.dtype)
    machine._finish(state, Data(nothing, none, weight, none, len(cluster.classes), stream=True))


def _for_workers(machine: Any) -> Any:
    worker = copy.copy(machine)
    worker.n_jobs, worker.verbose = 1, 0
    return worker


def _first(cluster: Cluster) -> int:
    """The largest partition that has rows of all classes."""
    whole = [i for i, fact in enumerate(cluster.facts) if (fact.counts > 0).all()]
    if not whole:
        raise ValueError("Each partition misses a class: shuffle the rows, so that one has rows of all of them.")
    return max(whole, key=lambda i: cluster.facts[i].n_rows)


def _seed_of(seed: int, number: int, partition: int) -> int:
    return int(np.random.default_rng([seed, number, partition]).integers(2**31))


def _begin(held: Held, machine: Any, seed: int) -> Any:
    """The common start."""
    data = replace(held.data, _memory=[])
    state = machine._start(data, seed)
    for _ in range(WARM_UP if isinstance(machine, PolytopeTrainer) else 0):
        state = machine._step(state, data)
    return state


def _go_on(held: Held, machine: Any, state: Any, memory: Any, n_epochs: int, seed: int) -> tuple[Any, Any]:
    """Local epochs from the common model: the model after them, and what was remembered of the rows.

    Learners write into their arrays. The ones that came may be used again, should this work be lost: copy them first.
    """
    data = replace(held.data, _memory=[] if memory is None else [copy.deepcopy(memory)])
    state = copy.deepcopy(state)._replace(seed=seed)
    for _ in range(n_epochs):
        state = machine._step(state, data)
    memory = data._memory[0]
    return state, None if hasattr(memory, "X") else memory  # rows are not to be kept twice


def mix(states: Sequence[Any], weights: Sequence[float]) -> Any:
    """The average of states that come from a common one, plane by plane, by the given weights."""
    share = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    if isinstance(states[0], PolytopeState):
        return _mix_polytopes(states, share)
    fields = {
        SmoothState: ("W", "adam", "mean", "loss"),
        MarginState: ("coef", "intercept", "shift", "mean", "loss"),
    }[type(states[0])]
    return states[0]._replace(**{name: _average([getattr(s, name) for s in states], share) for name in fields})


def _average(values: Sequence[Any], share: np.ndarray) -> Any:
    """The average of arrays or numbers, or of tuples of them."""
    first = values[0]
    if first is None or any(value is None for value in values):
        return None
    if isinstance(first, tuple):
        parts = [_average(part, share) for part in zip(*values, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    total = sum(s * np.asarray(value, dtype=np.float64) for s, value in zip(share, values, strict=True))
    if isinstance(first, np.ndarray):
        return (np.rint(total) if first.dtype.kind == "i" else total).astype(first.dtype)
    return round(float(total)) if isinstance(first, int) else float(total)


def _mix_polytopes(states: Sequence[PolytopeState], share: np.ndarray) -> PolytopeState:
    """Polytopes are stored times their margins, which differ with the sizes of the partitions."""
    margin = _average([state.margin for state in states], share)
    polytopes = []
    for same in zip(*(state.polytopes for state in states), strict=True):
        planes = [
            (polytope.coef / state.margin, polytope.intercept / state.margin)
            for polytope, state in zip(same, states, strict=True)
        ]
        coef, intercept = _average(planes, share)
        polytopes.append(
            same[0]._replace(
                coef=coef * coef.dtype.type(margin),
                intercept=intercept * intercept.dtype.type(margin),
                counts=_average([polytope.counts for polytope in same], share),
                mean=_average([polytope.mean for polytope in same], share),
            )
        )
    numbers = {name: _average([getattr(s, name) for s in states], share) for name in ("t", "loss", "updates", "step")}
    return states[0]._replace(polytopes=polytopes, margin=margin, **numbers)
