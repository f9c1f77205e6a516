"""`FurtherTraining`: incremental training of the members of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.run import Run
from polyplane.learners.multi_hyperplane import SmoothState
from polyplane.tables._choice import EncodedRows
from polyplane.tables._model import Member, TableModel
from polyplane.tables._probabilities import best_temperature
from polyplane.tables._warm_start import warm_start

#: Size of the uniform sample of earlier rows that are visited again.
MEMORY = 50_000
#: Number of earlier rows visited per new row when the number of rows so far equals the size of the sample; after n
#: times as many rows, it is divided by n, so that the number of repeated visits does not grow with the stream. (adult
#: in batches after the first 20,000 rows: log-loss 0.289; 0.291 without earlier rows.)
REPLAY = 3.0
#: Number of batches in which the step size falls to a third; from then on, planes are averaged.
SETTLED_AFTER = 2
#: Largest and smallest number of the last rows, scored before training on them, that determine the temperature.
MOST_SCORED, LEAST_SCORED = 2000, 500


@dataclass(frozen=True)
class Memory:
    """A uniform sample of the rows so far.

    Parameters
    ----------
    rows : EncodedRows
        The sample.
    n_seen : int
        The number of rows that the sample was drawn from.
    """

    rows: EncodedRows
    n_seen: int

    @classmethod
    def of(cls, rows: EncodedRows, rng: np.random.Generator) -> Memory:
        """Draw a sample of rows."""
        n_rows = len(rows.y)
        kept = rows if n_rows <= MEMORY else rows.take(rng.choice(n_rows, MEMORY, replace=False))
        return cls(kept, n_rows)

    def draw(self, n_new: int, rng: np.random.Generator) -> EncodedRows:
        """Draw earlier rows to visit along with new ones."""
        n_kept = len(self.rows.y)
        wanted = int(min(n_kept, n_new * REPLAY * n_kept / max(self.n_seen, n_kept)))
        return self.rows.take(rng.choice(n_kept, wanted, replace=False))

    def add(self, new: EncodedRows, rng: np.random.Generator) -> Memory:
        """Return the sample after adding rows, by reservoir sampling."""
        space = MEMORY - len(self.rows.y)
        rows = joined(self.rows, new.take(np.arange(min(space, len(new.y)))))
        rest = new.take(np.arange(min(space, len(new.y)), len(new.y)))
        place = rng.integers(0, self.n_seen + np.arange(len(new.y) - len(rest.y), len(new.y)) + 1)
        taken = np.flatnonzero(place < MEMORY)
        for old, young in zip((rows.Z, rows.y, rows.weight), (rest.Z, rest.y, rest.weight), strict=True):
            old[place[taken]] = young[taken]
        return Memory(rows, self.n_seen + len(new.y))


class Scored(NamedTuple):
    """The last rows, with their scores before training on them."""

    scores: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def add(self, scores: np.ndarray, rows: EncodedRows) -> Scored:
        """Return the last rows after adding some."""
        pairs = zip(self, (scores, rows.y, rows.weight), strict=True)
        return Scored(*(np.concatenate(pair)[-MOST_SCORED:] for pair in pairs))


class FurtherTraining:
    """Incremental training of the members of a model.

    If a step fails, `model` remains that of the last finished step.

    Parameters
    ----------
    model : TableModel
        The fitted model.
    rows : EncodedRows
        The training rows so far, or a sample of them.
    seeds : sequence of int
        One seed per member.
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
        """Train on rows, along with earlier ones if these are new; return the error on the rows before training."""
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
    """Concatenate rows, as a copy."""
    Z, y, weight = (
        np.concatenate(pair) for pair in zip((one.Z, one.y, one.weight), (other.Z, other.y, other.weight), strict=True)
    )
    return replace(one, Z=Z, y=y, weight=weight)
