"""Choices on held-out rows: the preparations, the numbers of planes and the temperature of a committee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyplane._array_api import softmax
from polyplane.engine.race import Race
from polyplane.model import best_temperature
from polyplane.planes import PlaneSet
from polyplane.tables.members import (
    Candidate,
    EncodedRows,
    Member,
    MemberTask,
    TableCommittee,
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


def choose_preparation(
    rows: EncodedRows, names: Sequence[str], seed: int, n_jobs: int | None = None, n_errors: float = OUT_OF_THE_RACE
) -> Choice:
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
    final = race.run(plain, quarters, lambda left, _: race.near_best(left, n_errors), until_one=True)
    for candidate in sorted(final, key=lambda candidate: race.losses(candidate).mean())[:WEIGHTED]:
        weighted, found = _weigh(candidate.name, trials[candidate], parts, seed, n_jobs)
        race.trials["weighted", weighted] = found
        final.append(weighted)
    means = {candidate: float(race.losses(candidate).mean()) for _, candidate in race.trials}
    order = sorted(means, key=lambda candidate: (candidate not in final, means[candidate]))
    near = race.near_best(final, n_errors)
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
#: With more rows than this, preparations and numbers of planes are compared on growing samples.
MANY_ROWS = 4000
#: Preparations that are worse by this many standard errors on the first rows are not compared on more of them: those
#: with many features profit most from more rows.
OUT_OF_THE_FIRST_ROWS = 5.0
#: Numbers of rows of the samples to train on, the number of passes over all but the last of them, and the largest
#: number of held-out rows, which all samples share.
SAMPLES, SAMPLE_PASSES, MOST_JUDGED = (8_000, 32_000, 50_000), 20, 5_000
#: Numbers of planes per class to compare, the one to begin with, and the smallest number of rows of a sample per plane.
LEVELS, FIRST_LEVEL, ROWS_PER_PLANE = (1, 4, 16, 64, 256), 16, 4
#: Largest number of candidates that stay after each sample but the last; the first number is that of the preparations
#: for which more and fewer planes are tried on the first sample.
STAYING = (3, 3, 2)
#: Smallest relative decrease of the log-loss for which four times as many planes are worth their time.
GAIN_OF_PLANES = 0.01
#: Default number of passes: as many as give this number of row visits, within bounds.
VISITS, PASSES = 500_000, (20, 60)


class Plan(NamedTuple):
    """Settings of the training of a committee.

    Parameters
    ----------
    ranking : list of Candidate
        The preparations to choose from, the best one first.
    n_planes : int or None
        Number of planes per class. If None, chosen on held-out rows.
    max_iter : int
        Number of passes over the rows.
    seeds : list of int
        One seed per member.
    n_jobs : int or None
        Number of threads.
    """

    ranking: list[Candidate]
    n_planes: int | None
    max_iter: int
    seeds: list[int]
    n_jobs: int | None = None


class Settled(NamedTuple):
    """What was chosen for the members of a committee.

    Parameters
    ----------
    candidates : list of Candidate
        The preparation of each member.
    n_planes : dict of Candidate to ndarray
        The number of planes of each class for each preparation.
    temperature : float
        The temperature of the probabilities.
    losses : dict of str to float
        Mean log-losses of what was compared, the best first; empty if nothing was compared.
    """

    candidates: list[Candidate]
    n_planes: dict[Candidate, np.ndarray]
    temperature: float
    losses: dict[str, float]


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


def settle(rows: EncodedRows, plan: Plan) -> Settled:
    """Choose the preparations of the members, the numbers of planes and the temperature on held-out rows."""
    return _settle_on_samples(rows, plan) if len(rows.y) > MANY_ROWS else _settle_few(rows, plan)


def committee_to_train(rows: EncodedRows, plan: Plan, settled: Settled) -> TableCommittee:
    """Return the committee to train on all rows, with what was chosen."""
    preparations = {candidate: rows.prepare(candidate) for candidate in dict.fromkeys(settled.candidates)}
    tasks = {
        c: MemberTask(rows.data(p), settled.n_planes[c], rows.noise(c.name), plan.max_iter, plan.seeds[0])
        for c, p in preparations.items()
    }
    pairs = [
        (c, tasks[c].seed if tasks[c].is_convex else seed)
        for c, seed in zip(settled.candidates, plan.seeds, strict=True)
    ]
    different = list(dict.fromkeys(pairs))  # with one plane per class, the minimum does not depend on the seed
    to_train = tuple(replace(tasks[c], seed=seed).with_planes() for c, seed in different)
    owners = tuple((preparations[c], different.index((c, seed))) for c, seed in pairs)
    return TableCommittee(to_train, owners, settled.temperature, plan.n_jobs)


Part = tuple[EncodedRows, EncodedRows]


def _settle_few(rows: EncodedRows, plan: Plan) -> Settled:
    """Choose the number of planes of each preparation on its own, and the temperature of the mixed committee.

    With and without weighted features, the number of planes is equal: choosing it takes as long as training, so it is
    done once, for the better of the two.
    """
    candidates = mixed(plan.ranking, len(plan.seeds))
    n_planes: dict[Candidate, np.ndarray] = {}
    by_name: dict[str, np.ndarray | int | None] = {}
    for candidate in dict.fromkeys(candidates):
        data, known = rows.data(rows.prepare(candidate)), by_name.get(candidate.name, plan.n_planes)
        task = MemberTask(data, known, rows.noise(candidate.name), plan.max_iter, plan.seeds[0]).with_planes()
        by_name[candidate.name] = n_planes[candidate] = np.asarray(task.n_planes)
    parts = _held_out_parts(rows, plan.seeds[0])
    temperature = _temperature(parts, plan, Counter(candidates), n_planes) if parts else 1.0
    return Settled(candidates, n_planes, temperature, {})


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


def _temperature(
    parts: list[Part], plan: Plan, shares: Counter[Candidate], n_planes: dict[Candidate, np.ndarray]
) -> float:
    """Return the temperature of an ensemble of one member per preparation, weighted as in the committee."""
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
    return best_temperature(np.concatenate(scores), y, weight)


class Entrant(NamedTuple):
    """A preparation, and a number of planes per class."""

    candidate: Candidate
    n_planes: int

    @property
    def label(self) -> str:
        """Name for display."""
        return f"{self.candidate.label}, {self.n_planes} plane{'s' * (self.n_planes > 1)}"


class Sample(NamedTuple):
    """A rung of the race: the number of rows to train on, and of passes over them."""

    n_rows: int
    max_iter: int


def samples_of(n_rows: int, max_iter: int) -> list[Sample]:
    """Return the growing samples of a number of rows to train on; the last one is as large as possible."""
    last = Sample(min(n_rows, SAMPLES[-1]), max_iter)
    sizes = [size for size in SAMPLES[1:-1] if 1.5 * size <= last.n_rows]
    return [Sample(size, min(SAMPLE_PASSES, max_iter)) for size in (min(SAMPLES[0], n_rows), *sizes)] + [last]


def _settle_on_samples(rows: EncodedRows, plan: Plan) -> Settled:
    """Choose preparations and numbers of planes on growing samples, with the same held-out rows.

    A small sample cannot show that many planes or many features are better, and a large one is too expensive for all
    candidates. On the first sample, all preparations are compared, and more and fewer planes for the best ones; those
    that are not significantly worse are compared on the next sample, along with four times as many planes.
    """
    n_held_out = min(len(rows.y) // 4, MOST_JUDGED)
    order = np.random.default_rng(plan.seeds[0]).permutation(len(rows.y))
    held_out, order = rows.take(order[:n_held_out]), order[n_held_out:]
    weight = held_out.weight / held_out.weight.mean()
    temperatures: dict[tuple[Sample, Entrant], float] = {}
    parts: dict[int, EncodedRows] = {}

    def losses(entrants: Sequence[Entrant], sample: Sample) -> list[np.ndarray]:
        if sample.n_rows not in parts:
            parts.clear()
            parts[sample.n_rows] = rows.take(order[: sample.n_rows])
        training = parts[sample.n_rows]
        prepared = {c: training.prepare(c) for c in dict.fromkeys(each.candidate for each in entrants)}
        data = {c: training.data(p) for c, p in prepared.items()}
        tasks = [
            MemberTask(data[c], n_planes, training.noise(c.name), sample.max_iter, plan.seeds[0])
            for c, n_planes in entrants
        ]
        found = []
        for entrant, planes in zip(entrants, train_members(tasks, plan.n_jobs), strict=True):
            scores = class_scores([Member(prepared[entrant.candidate], planes)], held_out.Z)
            temperatures[sample, entrant] = temperature = best_temperature(scores, held_out.y, held_out.weight)
            found.append(weight * log_losses(softmax(scores / temperature), held_out.y))
        return found

    def ranked(entrants: Sequence[Entrant], sample: Sample) -> list[Entrant]:
        """The best first, where more planes are not better if this is not worth their time."""
        free = 1 if len(plan.seeds) > 1 else 0  # members with one plane per class are equal

        def penalised(own: Entrant) -> float:
            levels = np.log2(own.n_planes) / 2 - free
            return race.mean(own, sample) * (1.0 + GAIN_OF_PLANES * max(levels, 0.0))

        return sorted(entrants, key=penalised)

    def levels_of(n_rows: int) -> list[int]:
        return [level for level in LEVELS if level * rows.n_classes * ROWS_PER_PLANE <= n_rows] or [1]

    race: Race[Entrant] = Race(losses)
    samples = samples_of(len(order), plan.max_iter)
    if len(plan.ranking) == 1 and plan.n_planes is not None:  # only the temperature is to be chosen
        samples = samples[-1:]
    first_level = min(FIRST_LEVEL, levels_of(samples[0].n_rows)[-1]) if plan.n_planes is None else plan.n_planes
    entrants = [Entrant(candidate, first_level) for candidate in plan.ranking]
    for number, sample in enumerate(samples):
        race.run(entrants, [sample])
        if number == 0 and plan.n_planes is None:
            entrants = _with_other_planes(race, entrants, sample, levels_of(sample.n_rows), ranked)
        entrants = ranked(entrants, sample)
        if number + 1 < len(samples):
            near = race.near_best(entrants, OUT_OF_THE_RACE, sample)
            by_candidate = {own.candidate: own for own in reversed([entrants[0], *near])}
            entrants = ranked(list(by_candidate.values()), sample)[: STAYING[number]]
            best = entrants[0]
            following = samples[number + 1].n_rows
            if plan.n_planes is None and following > sample.n_rows and 4 * best.n_planes in levels_of(following):
                entrants = list(dict.fromkeys([*entrants, Entrant(best.candidate, 4 * best.n_planes)]))
    near = ranked(race.near_best(entrants, OUT_OF_THE_RACE, samples[-1]), samples[-1])
    n_planes: dict[Candidate, np.ndarray] = {}
    for candidate, own in (entrants[0], *near):
        n_planes.setdefault(candidate, np.minimum(np.maximum(np.bincount(rows.y, minlength=rows.n_classes), 1), own))
    furthest = {entrant: sample for sample, entrant in race.trials}
    shown = sorted(furthest, key=lambda own: (-samples.index(furthest[own]), race.mean(own, furthest[own])))
    return Settled(
        mixed(list(n_planes), len(plan.seeds)), n_planes, temperatures[samples[-1], entrants[0]],
        {own.label: race.mean(own, furthest[own]) for own in shown},
    )  # fmt: skip


def _with_other_planes(
    race: Race[Entrant],
    entrants: list[Entrant],
    sample: Sample,
    levels: list[int],
    ranked: Callable[[Sequence[Entrant], Sample], list[Entrant]],
) -> list[Entrant]:
    """Compare more and fewer planes for the best preparations, as long as this improves the best of all."""
    tried = list(entrants)
    names = [own.candidate for own in ranked(race.near_best(tried, OUT_OF_THE_RACE, sample), sample)[: STAYING[0]]]
    while True:
        best = [ranked([own for own in tried if own.candidate == name], sample)[0] for name in names]
        steps = [(own.candidate, levels.index(own.n_planes) + step) for own in best for step in (1, -1)]
        next_to = [Entrant(name, levels[number]) for name, number in steps if 0 <= number < len(levels)]
        new = [own for own in next_to if own not in tried]
        if not new:
            return tried
        race.run(new, [sample])
        tried += new
        names = [ranked(tried, sample)[0].candidate]
