"""A committee of machines on one or two preparations, and the temperature of its probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.tables._choice import EncodedRows
from polyplane.tables._members import Machine, train_members
from polyplane.tables._preparation import Preparation
from polyplane.tables._probabilities import best_temperature, class_probabilities, mean_probabilities

#: From so many machines on, one of them is on the second-best preparation.
MIXED_FROM = 3
#: The temperature is that of a committee of so many machines, trained on three quarters of at most so many rows.
CALIBRATION_MACHINES, CALIBRATION_ROWS = 2, 4000


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
    names : list of str
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

    names: list[str]
    n_planes: int | None
    max_iter: int
    seeds: list[int]
    n_jobs: int | None = None
    verbose: int = 0


def mixed(names: Sequence[str], n_estimators: int) -> list[str]:
    """The preparation of each machine: the best one, and once the second-best."""
    if len(names) == 1 or n_estimators < MIXED_FROM:
        return [names[0]] * n_estimators
    return [names[0]] * (n_estimators - 1) + [names[1]]


def train_committee(rows: EncodedRows, plan: Plan) -> tuple[list[Member], float, int]:
    """The members, trained on all rows, the temperature of their mean probabilities, and the passes made."""
    preparations = {name: rows.prepare(name) for name in dict.fromkeys(plan.names)}
    first = {
        name: Machine(rows.data(p), plan.n_planes, rows.noise(name), plan.max_iter, plan.seeds[0]).with_planes()
        for name, p in preparations.items()
    }
    machines = [replace(first[name], seed=seed) for name, seed in zip(plan.names, plan.seeds, strict=True)]
    trained = train_members(machines, plan.n_jobs, plan.verbose)
    members = [Member(preparations[name], each.planes) for name, each in zip(plan.names, trained, strict=True)]
    temperature = _temperature(rows, plan, {name: np.asarray(m.n_planes) for name, m in first.items()})
    return members, temperature, max(each.n_iter for each in trained)


def _temperature(rows: EncodedRows, plan: Plan, n_planes: dict[str, np.ndarray]) -> float:
    """The temperature of a smaller committee on rows that were held out from it."""
    order = np.random.default_rng(plan.seeds[0]).permutation(len(rows.y))[:CALIBRATION_ROWS]
    order = order[np.argsort(rows.y[order], kind="stable")]
    held_out, training = rows.take(order[::4]), rows.take(np.delete(order, slice(0, None, 4)))
    if np.count_nonzero(np.bincount(training.y, minlength=rows.n_classes)) < 2:
        return 1.0
    some = list(zip(plan.names, plan.seeds, strict=True))[-CALIBRATION_MACHINES:]
    preparations = {name: training.prepare(name) for name, _ in some}
    machines = [
        Machine(training.data(preparations[name]), n_planes[name], rows.noise(name), plan.max_iter, seed).with_planes()
        for name, seed in some
    ]
    trained = train_members(machines, plan.n_jobs)
    parts = [
        Member(preparations[name], each.planes).probabilities(held_out.Z)
        for (name, _), each in zip(some, trained, strict=True)
    ]
    return best_temperature(mean_probabilities(parts), held_out.y, held_out.weight)
