"""A committee of machines on one or two preparations, and the temperature of its probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.tables._choice import Candidate, EncodedRows
from polyplane.tables._members import Machine, train_members
from polyplane.tables._preparation import Preparation
from polyplane.tables._probabilities import best_temperature, class_probabilities

#: From so many machines on, one of them is on the second-best preparation, and from so many on one on the third-best.
#: (Five machines on 17 tables: 16.5 % error with one preparation, 16.3 with two, 16.1 with three.)
SECOND_FROM, THIRD_FROM = 3, 5
#: The temperature is that of machines trained on three quarters of at most so many rows.
CALIBRATION_ROWS = 4000


class Member(NamedTuple):
    """One machine of a committee: what it does with encoded rows, and its planes over the result."""

    preparation: Preparation
    planes: PlaneSet

    def probabilities(self, Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Probabilities of the classes for encoded rows."""
        return class_probabilities(self.planes, self.preparation.transform(Z), n_jobs)


class Plan(NamedTuple):
    """How to train a committee.

    Parameters
    ----------
    candidates : list of Candidate
        The preparation of each machine.
    n_planes : int or None
        Planes of each class; None: chosen on held-out rows, once for each preparation.
    max_iter : int
        Passes over the rows.
    seeds : list of int
        One for each machine.
    n_jobs : int or None
        Threads.
    verbose : int
        Show progress.
    """

    candidates: list[Candidate]
    n_planes: int | None
    max_iter: int
    seeds: list[int]
    n_jobs: int | None = None
    verbose: int = 0


def mixed(ranking: Sequence[Candidate], n_estimators: int) -> list[Candidate]:
    """The preparation of each machine: the best one, and once the second-best and the third-best."""
    others = [
        candidate
        for candidate, least in zip(ranking[1:3], (SECOND_FROM, THIRD_FROM), strict=False)
        if n_estimators >= least
    ]
    return [ranking[0]] * (n_estimators - len(others)) + others


def train_committee(rows: EncodedRows, plan: Plan) -> tuple[list[Member], float, int]:
    """The members, trained on all rows, the temperature of their mean probabilities, and the passes made."""
    preparations = {candidate: rows.prepare(candidate) for candidate in dict.fromkeys(plan.candidates)}
    first = {
        candidate: Machine(
            rows.data(preparation), plan.n_planes, rows.noise(candidate.name), plan.max_iter, plan.seeds[0]
        ).with_planes()
        for candidate, preparation in preparations.items()
    }
    pairs = list(zip(plan.candidates, plan.seeds, strict=True))
    trained = train_members([replace(first[c], seed=seed) for c, seed in pairs], plan.n_jobs, plan.verbose)
    members = [Member(preparations[c], each.planes) for (c, _), each in zip(pairs, trained, strict=True)]
    temperature = _temperature(rows, plan, {c: np.asarray(machine.n_planes) for c, machine in first.items()})
    return members, temperature, max(each.n_iter for each in trained)


def _temperature(rows: EncodedRows, plan: Plan, n_planes: dict[Candidate, np.ndarray]) -> float:
    """The temperature of one machine for each preparation, weighted as in the committee, on rows held out from them."""
    order = np.random.default_rng(plan.seeds[0]).permutation(len(rows.y))[:CALIBRATION_ROWS]
    order = order[np.argsort(rows.y[order], kind="stable")]
    held_out, training = rows.take(order[::4]), rows.take(np.delete(order, slice(0, None, 4)))
    if np.count_nonzero(np.bincount(training.y, minlength=rows.n_classes)) < 2:
        return 1.0
    shares = Counter(plan.candidates)
    preparations = [training.prepare(candidate) for candidate in shares]
    machines = [
        Machine(training.data(p), n_planes[c], rows.noise(c.name), plan.max_iter, plan.seeds[0]).with_planes()
        for c, p in zip(shares, preparations, strict=True)
    ]
    trained = train_members(machines, plan.n_jobs)
    parts = [Member(p, each.planes).probabilities(held_out.Z) for p, each in zip(preparations, trained, strict=True)]
    mean = np.average(parts, axis=0, weights=list(shares.values()))
    return best_temperature(mean, held_out.y, held_out.weight)
