"""A committee of machines on one or two preparations, and the temperature of its probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyplane.tables._choice import Candidate, EncodedRows
from polyplane.tables._members import Machine, train_members
from polyplane.tables._model import Member
from polyplane.tables._preparation import Preparation
from polyplane.tables._probabilities import best_temperature, log_losses, softmax

#: From so many machines on, one of them is on the second-best preparation, and from so many on one on the third-best.
#: (Five machines on 17 tables: 16.5 % error with one preparation, 16.3 with two, 16.1 with three.)
SECOND_FROM, THIRD_FROM = 3, 5
#: For the temperature a quarter of the rows is held out, and at most so many; of up to so many rows each quarter, one
#: after the other. (30 small tables: a log-loss of 0.278; 0.293 with one quarter, 0.297 without a temperature.)
HELD_OUT, FEW_ROWS = 2000, 2000
#: With more rows than this, it is that of a machine on the best preparation alone; and these numbers of planes are
#: tried on all of them. (Three folds of 6,400 and 4,800 rows: covtype 25.2 to 20.9 % and 28.6 to 22.6 % error, poker
#: 50.1 to 45.6, against trying them from 10,000 rows on; five tables of 3,200 to 4,000 rows gain nothing.)
MANY_ROWS, LEVELS = 4000, (4, 16, 64)
#: By so much the log-loss of a machine of several planes falls when five of them are averaged, at least; with one plane
#: of each class all of them are the same.
GAIN_OF_AVERAGING = 0.01
#: Passes over the rows, where they are not given: as many as visit so many rows, within bounds.
VISITS, PASSES = 500_000, (20, 60)


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


def n_passes(n_rows: int) -> int:
    """Passes over the rows, where they are not given: more rows need fewer."""
    return int(np.clip(VISITS // n_rows, *PASSES))


def mixed(ranking: Sequence[Candidate], n_estimators: int) -> list[Candidate]:
    """The preparation of each machine: the best one, and once the second-best and the third-best."""
    others = [
        candidate
        for candidate, least in zip(ranking[1:3], (SECOND_FROM, THIRD_FROM), strict=False)
        if n_estimators >= least
    ]
    return [ranking[0]] * (n_estimators - len(others)) + others


def train_committee(rows: EncodedRows, plan: Plan) -> tuple[list[Member], float, int]:
    """The members, trained on all rows, the temperature of their mean scores, and the passes made."""
    preparations = {candidate: rows.prepare(candidate) for candidate in dict.fromkeys(plan.candidates)}
    first = _first_machines(rows, plan, preparations)
    temperature, n_planes = _calibrate(rows, plan, {c: np.asarray(machine.n_planes) for c, machine in first.items()})
    settled = {c: replace(machine, n_planes=n_planes[c]) for c, machine in first.items()}
    pairs = [
        (c, settled[c].seed if settled[c].is_convex else seed)
        for c, seed in zip(plan.candidates, plan.seeds, strict=True)
    ]
    different = list(dict.fromkeys(pairs))  # one plane per class has one minimum, whatever the seed
    machines = [replace(settled[c], seed=seed) for c, seed in different]
    trained = dict(zip(different, train_members(machines, plan.n_jobs, plan.verbose), strict=True))
    members = [Member(preparations[c], trained[c, seed].planes) for c, seed in pairs]
    return members, temperature, max(each.n_iter for each in trained.values())


def _first_machines(
    rows: EncodedRows, plan: Plan, preparations: dict[Candidate, Preparation]
) -> dict[Candidate, Machine]:
    """A machine on each preparation; one with weighted features has as many planes as one without, or the reverse.

    Choosing the number of planes takes as long as training, and the better of the two has a say in it.
    """
    machines: dict[Candidate, Machine] = {}
    n_planes: dict[str, np.ndarray | int | None] = {}
    for candidate, preparation in preparations.items():
        known = n_planes.get(candidate.name, plan.n_planes)
        machine = Machine(rows.data(preparation), known, rows.noise(candidate.name), plan.max_iter, plan.seeds[0])
        machines[candidate] = machine.with_planes()
        n_planes[candidate.name] = machines[candidate].n_planes
    return machines


Planes = dict[Candidate, np.ndarray]
Part = tuple[EncodedRows, EncodedRows]


def _calibrate(rows: EncodedRows, plan: Plan, n_planes: Planes) -> tuple[float, Planes]:
    """The temperature on held-out rows, and planes of each class, which many rows may ask for more of.

    The number of planes was chosen on a sample, with a preference for one. Where there are many more rows, more planes
    are tried on them for as long as held-out rows gain: what over-fits a sample need not over-fit them all.
    """
    parts = _held_out_parts(rows, plan.seeds[0])
    if not parts:
        return 1.0, n_planes
    if len(rows.y) <= MANY_ROWS:
        return _judge(parts, plan, Counter(plan.candidates), n_planes)[0], n_planes
    best = Counter(plan.candidates[:1])
    temperature, loss = _judge(parts, plan, best, n_planes)
    for level in LEVELS if plan.n_planes is None else ():
        now = int(n_planes[plan.candidates[0]].max())
        if now >= level:
            continue
        more = {c: np.maximum(n, level) for c, n in n_planes.items()}
        hotter, lower = _judge(parts, plan, best, more)
        averaged = lower * (1.0 - GAIN_OF_AVERAGING) if now == 1 and len(plan.seeds) > 1 else lower
        if averaged >= loss:
            break
        temperature, loss, n_planes = hotter, lower, more
    return temperature, n_planes


def _held_out_parts(rows: EncodedRows, seed: int) -> list[Part]:
    """Rows to train on and rows held out, which have their share of each class; of few rows all are held out once."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    order = order[np.argsort(rows.y[order], kind="stable")]
    n_parts = max(4, len(order) // HELD_OUT)
    parts = []
    for number in range(n_parts if len(order) <= FEW_ROWS else 1):
        held_out, training = order[number::n_parts], np.delete(order, slice(number, None, n_parts))
        if len(held_out) and len(np.unique(rows.y[training])) > 1:
            parts.append((rows.take(training), rows.take(held_out)))
    return parts


def _judge(parts: list[Part], plan: Plan, shares: Counter[Candidate], n_planes: Planes) -> tuple[float, float]:
    """The temperature of one machine for each preparation, weighted as in the committee, and its log-loss."""
    prepared = [(training, c, training.prepare(c)) for training, _ in parts for c in shares]
    machines = [
        Machine(training.data(p), n_planes[c], training.noise(c.name), plan.max_iter, plan.seeds[0]).with_planes()
        for training, c, p in prepared
    ]
    members = [
        Member(p, each.planes) for (_, _, p), each in zip(prepared, train_members(machines, plan.n_jobs), strict=True)
    ]
    scores = []
    for number, (_, held_out) in enumerate(parts):
        own = [member.class_scores(held_out.Z) for member in members[number * len(shares) : (number + 1) * len(shares)]]
        scores.append(np.average(own, axis=0, weights=list(shares.values())))
    y = np.concatenate([held_out.y for _, held_out in parts])
    weight = np.concatenate([held_out.weight for _, held_out in parts])
    together = np.concatenate(scores)
    temperature = best_temperature(together, y, weight)
    losses = log_losses(softmax(together / temperature), y)
    return temperature, float(np.average(losses, weights=weight))
