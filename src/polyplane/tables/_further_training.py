"""`FurtherTraining`: the machines of a fitted model learn from more rows, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.run import Run
from polyplane.learners._smooth_multi_hyperplane import SmoothState
from polyplane.tables._choice import EncodedRows
from polyplane.tables._model import Member, TableModel
from polyplane.tables._probabilities import best_temperature
from polyplane.tables._warm_start import warm_start

#: Rows that are kept to be visited again, a uniform sample of all that came.
MEMORY = 50_000
#: When as many rows have come as are kept, each new row is followed by so many old ones; after n times as many rows, by
#: an n-th of that: old rows are visited again a few times, and not more often the longer the stream is. (adult in parts
#: after the first 20,000 rows: log-loss 0.289, and 0.291 without old rows.)
REPLAY = 3.0
#: Steps fall to a third within so many parts, and planes are averaged from then on.
SETTLED_AFTER = 2
#: The temperature is that of the last rows, scored before they were learned from: so many at most, and at least.
MOST_SCORED, LEAST_SCORED = 2000, 500


@dataclass(frozen=True)
class Memory:
    """A uniform sample of the rows so far.

    Parameters
    ----------
    rows : EncodedRows
        The sample.
    n_seen : int
        The number of rows that it stands for.
    """

    rows: EncodedRows
    n_seen: int

    @classmethod
    def of(cls, rows: EncodedRows, rng: np.random.Generator) -> Memory:
        """A sample of some rows."""
        n_rows = len(rows.y)
        kept = rows if n_rows <= MEMORY else rows.take(rng.choice(n_rows, MEMORY, replace=False))
        return cls(kept, n_rows)

    def draw(self, n_new: int, rng: np.random.Generator) -> EncodedRows:
        """Old rows to visit beside so many new ones."""
        n_kept = len(self.rows.y)
        wanted = int(min(n_kept, n_new * REPLAY * n_kept / max(self.n_seen, n_kept)))
        return self.rows.take(rng.choice(n_kept, wanted, replace=False))

    def add(self, new: EncodedRows, rng: np.random.Generator) -> Memory:
        """The sample after some more rows: each has replaced an old one with the probability that keeps it uniform."""
        space = MEMORY - len(self.rows.y)
        rows = joined(self.rows, new.take(np.arange(min(space, len(new.y)))))
        rest = new.take(np.arange(min(space, len(new.y)), len(new.y)))
        place = rng.integers(0, self.n_seen + np.arange(len(new.y) - len(rest.y), len(new.y)) + 1)
        taken = np.flatnonzero(place < MEMORY)
        for old, young in zip((rows.Z, rows.y, rows.weight), (rest.Z, rest.y, rest.weight), strict=True):
            old[place[taken]] = young[taken]
        return Memory(rows, self.n_seen + len(new.y))


class Scored(NamedTuple):
    """The last rows, scored before they were learned from."""

    scores: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def add(self, scores: np.ndarray, rows: EncodedRows) -> Scored:
        """With some more."""
        pairs = zip(self, (scores, rows.y, rows.weight), strict=True)
        return Scored(*(np.concatenate(pair)[-MOST_SCORED:] for pair in pairs))


class FurtherTraining:
    """The machines of a model, and what they need to learn from more rows.

    Whatever ends a step, `model` is that of the last finished one.

    Parameters
    ----------
    model : TableModel
        What was learned so far.
    rows : EncodedRows
        The rows that it was learned from, or a sample of rows like them.
    seeds : sequence of int
        One for each machine.
    """

    def __init__(self, model: TableModel, rows: EncodedRows, seeds: Sequence[int]) -> None:
        self.model = model
        self._rng = np.random.default_rng(seeds[0])
        self._memory = Memory.of(rows, self._rng)
        begun = [warm_start(m, self._memory.rows, SETTLED_AFTER, s) for m, s in zip(model.members, seeds, strict=True)]
        self._methods = [method for method, _ in begun]
        self._states = [state for _, state in begun]
        self._scored = Scored(np.empty((0, model.n_classes)), np.empty(0, dtype=np.intp), np.empty(0))

    def step(self, rows: EncodedRows, n_jobs: int | None = None, is_new: bool = True) -> float:
        """Visit some rows, and old ones beside them if these are new; the error on them before that."""
        scores = self.model.class_scores(rows.Z, n_jobs)
        error = float(np.average(scores.argmax(axis=1) != rows.y, weights=rows.weight))
        visited = joined(rows, self._memory.draw(len(rows.y), self._rng)) if is_new else rows

        def train(number: int) -> SmoothState:
            data = replace(visited.data(self.model.members[number].preparation), stream=True)
            state: SmoothState = Run(self._methods[number], self._states[number]).go([data]).state.without_rows()
            return state

        states = in_threads(train, range(len(self._states)), n_jobs)
        memory = self._memory.add(rows, self._rng) if is_new else self._memory
        scored = self._scored.add(scores, rows) if is_new else self._scored
        model = self._model(states, scored)
        self._states, self._memory, self._scored, self.model = states, memory, scored, model
        return error

    def _model(self, states: list[SmoothState], scored: Scored) -> TableModel:
        members = tuple(
            Member(member.preparation, method.planes(state))
            for member, method, state in zip(self.model.members, self._methods, states, strict=True)
        )
        temperature = best_temperature(*scored) if len(scored.y) >= LEAST_SCORED else self.model.temperature
        return replace(self.model, members=members, temperature=temperature)


def joined(one: EncodedRows, other: EncodedRows) -> EncodedRows:
    """The rows of both, as a copy."""
    Z, y, weight = (
        np.concatenate(pair) for pair in zip((one.Z, one.y, one.weight), (other.Z, other.y, other.weight), strict=True)
    )
    return replace(one, Z=Z, y=y, weight=weight)
