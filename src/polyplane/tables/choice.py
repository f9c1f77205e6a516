"""Choices on held-out rows: the preparation, the number of planes and the temperature of a committee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyplane._array_api import softmax
from polyplane.engine.race import Race
from polyplane.planes import PlaneSet
from polyplane.tables.members import (
    Candidate,
    EncodedRows,
    Member,
    MemberTask,
    TableCommittee,
    best_temperature,
    class_scores,
    log_losses,
    smooth_scores,
    train_members,
)
from polyplane.tables.preparation import RECIPES, Preparation

#: Number of rows that the small classifiers are trained and evaluated on.
ROWS = 2000
#: Planes per class of the small classifiers, and row visits, which determine the number of passes within bounds.
TRIAL_PLANES, TRIAL_VISITS, TRIAL_PASSES = 4, 20_000, (5, 40)
#: Number of splits; each holds out another quarter of the rows.
QUARTERS = 3
#: A preparation that is worse than the best by this many standard errors is not evaluated on the next split, and not
#: used in a committee. (Mean error of five members on 17 tables: 15.7 %; 15.8 % with 2 standard errors.)
OUT_OF_THE_RACE = 3.0
#: Largest number of numeric features for which bins, which multiply the features, are tried.
MOST_BINNED = 200
#: Number of best preparations that are also tried with weighted features, number of rounds, and the power of its
#: relevance by which each feature is multiplied in a round.
WEIGHTED, ROUNDS, POWER = 2, 2, 0.5
#: Penalty for weighted features in standard errors of their gain: weights are noise if all features matter equally.
CAUTION = 1.0


class Trial(NamedTuple):
    """A small classifier with a preparation, and the log-losses of the held-out rows."""

    preparation: Preparation
    X: np.ndarray
    planes: PlaneSet
    losses: np.ndarray


def candidates(rows: EncodedRows) -> list[str]:
    """Return the preparations that differ on these rows and are affordable."""
    n_numbers = int((~rows.is_indicator).sum())
    if n_numbers == 0:
        return ["standard"]
    return [name for name, recipe in RECIPES.items() if not recipe.has_bins or n_numbers <= MOST_BINNED]


class Choice(NamedTuple):
    """Result of a comparison of preparations.

    Parameters
    ----------
    losses : dict of str to float
        Mean log-losses on held-out rows, the best first.
    ranking : list of Candidate
        The best preparation, and those that are not significantly worse, the best first.
    """

    losses: dict[str, float]
    ranking: list[Candidate]


def choose_preparation(rows: EncodedRows, names: Sequence[str], seed: int, n_jobs: int | None = None) -> Choice:
    """Compare preparations by the log-losses of small classifiers on held-out rows.

    The best preparations are compared again with weighted features: features that are relevant in a small classifier
    get larger weights in the next one. This reduces the influence of irrelevant columns on distances.
    """
    parts = _quarters(rows, seed)
    trials: dict[Candidate, list[Trial]] = {}

    def losses(candidates: Sequence[Candidate], quarter: int) -> list[np.ndarray]:
        training, held_out = parts[quarter]
        found = _try(training, held_out, [training.prepare(candidate) for candidate in candidates], seed, n_jobs)
        for candidate, trial in zip(candidates, found, strict=True):
            trials.setdefault(candidate, []).append(trial)
        return [trial.losses for trial in found]

    race: Race[Candidate] = Race(losses)
    plain, quarters = [Candidate(name) for name in names], range(len(parts))
    final = race.run(plain, quarters, lambda left, _: race.near_best(left, OUT_OF_THE_RACE), until_one=True)
    for candidate in sorted(final, key=lambda candidate: race.losses(candidate).mean())[:WEIGHTED]:
        weighted, found = _weigh(candidate.name, trials[candidate], parts, seed, n_jobs)
        race.trials["weighted", weighted] = found
        final.append(weighted)
    means = {candidate: float(race.losses(candidate).mean()) for _, candidate in race.trials}
    order = sorted(means, key=lambda candidate: (candidate not in final, means[candidate]))
    near = race.near_best(final, OUT_OF_THE_RACE)
    return Choice({c.label: means[c] for c in order}, [c for c in order if c in near])


def _weigh(
    name: str, trials: list[Trial], parts: list[tuple[EncodedRows, EncodedRows]], seed: int, n_jobs: int | None
) -> tuple[Candidate, np.ndarray]:
    """Return a preparation with weighted features, the mean over the splits, and its penalised log-losses."""
    plain = _losses(trials)
    for _ in range(ROUNDS):
        weighted = [
            trial.preparation.weighted(trial.preparation.relevance(trial.planes, trial.X) ** POWER) for trial in trials
        ]
        trials = [
            _try(*part, [preparation], seed, n_jobs)[0] for preparation, part in zip(weighted, parts, strict=False)
        ]
    gain = np.exp(np.mean([np.log(trial.preparation.gain) for trial in trials], axis=0))
    losses = _losses(trials)
    return Candidate(name, tuple(gain.tolist())), losses + CAUTION * (losses - plain).std() / len(plain) ** 0.5


def _quarters(rows: EncodedRows, seed: int) -> list[tuple[EncodedRows, EncodedRows]]:
    """Return stratified splits into training rows and held-out rows."""
    order = np.random.default_rng(seed).permutation(len(rows.y))[:ROWS]
    order = order[np.argsort(rows.y[order], kind="stable")]
    return [(rows.take(np.delete(order, slice(q, None, 4))), rows.take(order[q::4])) for q in range(QUARTERS)]


def _try(
    training: EncodedRows,
    held_out: EncodedRows,
    prepared: Sequence[Preparation],
    seed: int,
    n_jobs: int | None,
) -> list[Trial]:
    """Train a small classifier on each preparation, and compute its log-losses at the best temperature.

    Scores after short training are too large or too small, which longer training corrects; the temperature removes this
    effect from the comparison.
    """
    passes = int(np.clip(TRIAL_VISITS // len(training.y), *TRIAL_PASSES))
    tasks = [MemberTask(training.data(p), TRIAL_PLANES, training.noise(p.name), passes, seed) for p in prepared]
    weight, trials = held_out.weight / held_out.weight.mean(), []
    for p, task, planes in zip(prepared, tasks, train_members(tasks, n_jobs), strict=True):
        scores = smooth_scores(planes, p.transform(held_out.Z))
        probability = softmax(scores / best_temperature(scores, held_out.y, held_out.weight))
        trials.append(Trial(p, task.data.X, planes, weight * log_losses(probability, held_out.y)))
    return trials


def _losses(trials: Sequence[Trial]) -> np.ndarray:
    return np.concatenate([trial.losses for trial in trials])


#: Smallest number of members for which one of them uses the second-best preparation, and one the third-best.
#: (Mean error of five members on 17 tables: 16.5 % with one preparation, 16.3 % with two, 16.1 % with three.)
SECOND_FROM, THIRD_FROM = 3, 5
#: The temperature is fitted on a held-out quarter of the rows, at most the first number; up to the second number of
#: rows, all four quarters are held out in turn. (Mean log-loss on 30 small tables: 0.278; 0.293 with one quarter, 0.297
#: without a temperature.)
HELD_OUT, FEW_ROWS = 2000, 2000
#: With more rows than this, only a member with the best preparation determines the temperature, and these numbers of
#: planes are tried on all rows. (On three folds of 6,400 and 4,800 rows, compared with a limit of 10,000 rows: error
#: from 25.2 to 20.9 % and from 28.6 to 22.6 % on covtype, from 50.1 to 45.6 % on poker; no gain on five tables of 3,200
#: to 4,000 rows.)
MANY_ROWS, LEVELS = 4000, (4, 16, 64)
#: Smallest relative decrease of the log-loss by averaging five members of several planes per class. Members with one
#: plane per class are identical, so averaging has no effect.
GAIN_OF_AVERAGING = 0.01
#: Default number of passes: as many as give this number of row visits, within bounds.
VISITS, PASSES = 500_000, (20, 60)


class Plan(NamedTuple):
    """Settings of the training of a committee.

    Parameters
    ----------
    candidates : list of Candidate
        The preparation of each member.
    n_planes : int or None
        Number of planes per class. If None, chosen on held-out rows, once for each preparation.
    max_iter : int
        Number of passes over the rows.
    seeds : list of int
        One seed per member.
    n_jobs : int or None
        Number of threads.
    """

    candidates: list[Candidate]
    n_planes: int | None
    max_iter: int
    seeds: list[int]
    n_jobs: int | None = None


def n_passes(n_rows: int) -> int:
    """Return the default number of passes, which decreases with the number of rows."""
    return int(np.clip(VISITS // n_rows, *PASSES))


def mixed(ranking: Sequence[Candidate], n_estimators: int) -> list[Candidate]:
    """Return the preparation of each member: the best one, and once each the second-best and the third-best."""
    others = [
        candidate
        for candidate, least in zip(ranking[1:3], (SECOND_FROM, THIRD_FROM), strict=False)
        if n_estimators >= least
    ]
    return [ranking[0]] * (n_estimators - len(others)) + others


def committee_to_train(rows: EncodedRows, plan: Plan) -> TableCommittee:
    """Choose the number of planes and the temperature on held-out rows; return the committee to train on all rows."""
    preparations = {candidate: rows.prepare(candidate) for candidate in dict.fromkeys(plan.candidates)}
    first = _first_tasks(rows, plan, preparations)
    temperature, n_planes = _calibrate(rows, plan, {c: np.asarray(task.n_planes) for c, task in first.items()})
    settled = {c: replace(task, n_planes=n_planes[c]) for c, task in first.items()}
    pairs = [
        (c, settled[c].seed if settled[c].is_convex else seed)
        for c, seed in zip(plan.candidates, plan.seeds, strict=True)
    ]
    different = list(dict.fromkeys(pairs))  # with one plane per class, the minimum does not depend on the seed
    tasks = tuple(replace(settled[c], seed=seed).with_planes() for c, seed in different)
    owners = tuple((preparations[c], different.index((c, seed))) for c, seed in pairs)
    return TableCommittee(tasks, owners, temperature, plan.n_jobs)


def _first_tasks(
    rows: EncodedRows, plan: Plan, preparations: dict[Candidate, Preparation]
) -> dict[Candidate, MemberTask]:
    """Return a member to train for each preparation; with and without weighted features, the number of planes is equal.

    Choosing the number of planes takes as long as training, so it is done once, for the better of the two.
    """
    tasks: dict[Candidate, MemberTask] = {}
    n_planes: dict[str, np.ndarray | int | None] = {}
    for candidate, preparation in preparations.items():
        known = n_planes.get(candidate.name, plan.n_planes)
        task = MemberTask(rows.data(preparation), known, rows.noise(candidate.name), plan.max_iter, plan.seeds[0])
        tasks[candidate] = task.with_planes()
        n_planes[candidate.name] = tasks[candidate].n_planes
    return tasks


Planes = dict[Candidate, np.ndarray]
Part = tuple[EncodedRows, EncodedRows]


def _calibrate(rows: EncodedRows, plan: Plan, n_planes: Planes) -> tuple[float, Planes]:
    """Fit the temperature on held-out rows, and increase the number of planes if there are many rows.

    The number of planes was chosen on a sample, with a preference for one. With many more rows, more planes are tried
    on all rows as long as the held-out loss decreases: planes that overfit a sample may not overfit all rows.
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
    """Return stratified splits into training rows and held-out rows; with few rows, each row is held out once."""
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
    """Return temperature and log-loss of an ensemble of one member per preparation, weighted as in the committee."""
    prepared = [(training, c, training.prepare(c)) for training, _ in parts for c in shares]
    tasks = [
        MemberTask(training.data(p), n_planes[c], training.noise(c.name), plan.max_iter, plan.seeds[0]).with_planes()
        for training, c, p in prepared
    ]
    members = [Member(p, each) for (_, _, p), each in zip(prepared, train_members(tasks, plan.n_jobs), strict=True)]
    scores = []
    for number, (_, held_out) in enumerate(parts):
        own = members[number * len(shares) : (number + 1) * len(shares)]
        each = [class_scores([member], held_out.Z) for member in own]
        scores.append(np.average(each, axis=0, weights=list(shares.values())))
    y = np.concatenate([held_out.y for _, held_out in parts])
    weight = np.concatenate([held_out.weight for _, held_out in parts])
    together = np.concatenate(scores)
    temperature = best_temperature(together, y, weight)
    losses = log_losses(softmax(together / temperature), y)
    return temperature, float(np.average(losses, weights=weight))
