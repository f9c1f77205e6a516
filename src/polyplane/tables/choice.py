"""Selection of the members of a committee on held-out rows: their features, numbers of planes and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import softmax, to_numpy
from polyplane.engine.data import Data
from polyplane.engine.run import Race
from polyplane.model import best_temperature
from polyplane.tables.members import (
    ETA0,
    EncodedRows,
    MemberTask,
    TableCommittee,
    log_losses,
    parts_of_tasks,
    smooth_scores,
    train_members,
)
from polyplane.tables.preparation import RECIPES, Preparation, level_knots

#: Numbers of planes per class to compare; if the largest ones are the best, four times as many follow.
N_PLANES_COMPARED = (1, 2, 4, 8, 16, 32)
#: Smallest number of rows per plane of all classes together, and largest number of planes per class: with 2,048 planes,
#: a pass over 100,000 rows of covtype takes minutes.
ROWS_PER_PLANE, MOST_PLANES = 2, 512
#: Largest number of numeric features for which bins, which multiply the features, are tried, and largest number of
#: levels of all numbers.
MOST_BINNED, MOST_LEVELS = 200, 512
#: A candidate that is worse than the best by this many standard errors is not trained again.
OUT_OF_THE_RACE = 4.0
#: Number of rows that all candidates are first trained on, and the largest numbers of candidates that stay
#: after each sample. (With 10, 10, 8 and 8 of them on four folds, fits of up to 2,000 rows take 0.77 of the time, and
#: errors change by +0.12 +- 0.12 points over 22 sets.)
SCREENED_ROWS, STAYING = 3000, (16, 6, 4)
#: Number of best preparations that are also tried with weighted features, number of planes of the classifiers that the
#: weights are computed from, number of rounds, and the power of its relevance by which each feature is multiplied.
#: (Levels, too: 85 indicators of cards are many for 4,800 rows of poker, but less than half of them matter. Error 49 %;
#: weighted 37 %, weighted twice 24 %.)
WEIGHTED, WEIGHING_PLANES, ROUNDS, POWER = 3, 4, 2, 0.5
#: Number of preparations that stay after each sample of many rows, with more planes each if these are better: few rows
#: cannot show which preparation many rows ask for.
LEADERS = (5, 5, 3)
#: Largest number of rows that weights are computed from.
MOST_WEIGHED = 20_000
#: Up to these numbers of rows, four or two of four folds are held out.
FOLDS = ((2000, 4), (4000, 2))
#: With more rows, candidates are compared on growing samples, each of them a quarter of the next; the last has the
#: first number of rows, or half of all rows. They share the held-out rows, at most the third number.
LAST_SAMPLE, GROWTH, MOST_HELD_OUT = 25_000, 4, 8000
#: Smallest relative decrease of the log-loss for which four times as many planes are worth their time.
GAIN_OF_PLANES = 0.01
#: Number of training rows from which smaller steps are compared. (covtype, bins, a third of the step size, error on
#: held-out training rows: 60,000 rows and 64 planes 12.9 instead of 12.6 %, 265,000 rows and 256 planes 6.5 instead of
#: 8.2 %.)
STEPS_COMPARED = 100_000
#: Default number of passes: as many as give this number of row visits, within bounds; and the number of passes over all
#: samples but the last.
VISITS, PASSES, SHORT = 150_000, (20, 60), 20
#: Smallest default number of passes on a device. (covtype, 256 planes: 6.8 % error after 20 passes, 6.4 % after 40.)
DEVICE_PASSES = 30


def n_passes(n_rows: int, on_device: bool = False) -> int:
    """Return the default number of passes, which decreases with the number of rows."""
    return int(np.clip(VISITS // n_rows, DEVICE_PASSES if on_device else PASSES[0], PASSES[1]))


class Candidate(NamedTuple):
    """A kind of member: a preparation, how often its features are weighted by relevance, planes, step size."""

    name: str
    weightings: int
    n_planes: int
    eta0: float = ETA0

    @property
    def features(self) -> str:
        """Name of the features for display."""
        return self.name + ("", ", weighted", ", weighted twice")[self.weightings]

    @property
    def label(self) -> str:
        """Name for display."""
        steps = f", steps {self.eta0:.2g}" if self.eta0 != ETA0 else ""
        return f"{self.features}, {self.n_planes} plane{'s' * (self.n_planes > 1)}{steps}"


class Plan(NamedTuple):
    """What a committee is selected from, and how it is trained.

    Parameters
    ----------
    names : tuple of str
        The preparations to compare; if there are several, the best ones are also tried with weighted features.
    n_planes : int or None
        Number of planes per class. None: several are compared.
    max_iter : int
        Number of passes over the rows.
    seeds : tuple of int
        One seed per member.
    n_jobs : int or None
        Number of threads.
    verbose : int
        Whether to show progress.
    """

    names: tuple[str, ...]
    n_planes: int | None
    max_iter: int
    seeds: tuple[int, ...]
    n_jobs: int | None = None
    verbose: int = 0

    @property
    def candidates(self) -> list[Candidate]:
        """All candidates with plain features."""
        levels = N_PLANES_COMPARED if self.n_planes is None else (self.n_planes,)
        return [Candidate(name, 0, level) for name in self.names for level in levels]

    def show(self, text: str) -> None:
        """Show the progress of the selection."""
        if self.verbose:
            print(f"TableClassifier  selection: {text}", flush=True)


class RowSplit:
    """Rows to train candidates on, and rows to evaluate them on.

    Parameters
    ----------
    training, held_out : EncodedRows
        The rows.
    max_iter : int
        Number of passes over the training rows.
    plan : Plan
        The seed and the number of threads.
    """

    def __init__(self, training: EncodedRows, held_out: EncodedRows, max_iter: int, plan: Plan) -> None:
        self.training, self.held_out, self.max_iter, self.plan = training, held_out, max_iter, plan
        self.scores: dict[Candidate, np.ndarray] = {}  # of the held-out rows
        self._gains: dict[tuple[str, int], np.ndarray] = {}

    @cached_property
    def weight(self) -> np.ndarray:
        """Weights of the held-out rows, whose mean is 1."""
        return np.asarray(self.held_out.weight / self.held_out.weight.mean())

    def losses(self, candidates: Sequence[Candidate]) -> list[np.ndarray]:
        """Train candidates, keep their scores and return the log-losses of the held-out rows.

        Scores after short training are too large or too small, which longer training corrects; they are therefore
        divided by the best temperature.
        """
        found, y = {}, self.held_out.y
        for (name, weightings), group in groupby(sorted(candidates), key=lambda own: own[:2]):
            own, preparation = list(group), self.training.prepare(name)
            if weightings:
                preparation = preparation.weighted(self.gain(name, weightings))
            data, X = self.training.data(preparation), self.held_out.prepared(preparation)
            tasks = [self._task(data, name, each.n_planes, self.max_iter, each.eta0) for each in own]
            for candidate, planes in zip(own, train_members(tasks, self.plan.n_jobs), strict=True):
                self.scores[candidate] = scores = smooth_scores(planes, X)
                probability = softmax(scores / best_temperature(scores, y, self.held_out.weight))
                found[candidate] = self.weight * log_losses(probability, y)
        return [found[candidate] for candidate in candidates]

    def gain(self, name: str, weightings: int) -> np.ndarray:
        """Return weights of the features by which small classifiers use relevant ones more.

        Features that are relevant in one of them get larger weights in the next one. This reduces the influence of
        irrelevant columns on distances.
        """
        if (name, weightings) not in self._gains:
            rows, preparation = self.training, self.training.prepare(name)
            if weightings > 1:
                preparation = preparation.weighted(self.gain(name, weightings - 1))
            if len(rows.y) > MOST_WEIGHED:
                rows = rows.take(np.arange(MOST_WEIGHED))
            for _ in range(ROUNDS):
                data = rows.data(preparation)
                passes = min(self.plan.max_iter, SHORT)
                planes = train_members([self._task(data, name, WEIGHING_PLANES, passes)])[0]
                preparation = preparation.weighted(preparation.relevance(planes, to_numpy(data.X)) ** POWER)
            self._gains[name, weightings] = preparation.gain
        return self._gains[name, weightings]

    def _task(self, data: Data, name: str, n_planes: int, max_iter: int, eta0: float = ETA0) -> MemberTask:
        noise, penalty = self.training.noise(name), RECIPES[name].penalty
        return MemberTask(data, n_planes, noise, max_iter, self.plan.seeds[0], eta0, penalty)


class Team(NamedTuple):
    """The selected members.

    Parameters
    ----------
    candidates : list of Candidate
        The members; equal ones are trained from different seeds.
    weights : list of float
        Their weights in the mean of the scores.
    gains : dict of str to ndarray
        The weights of the features, by the name of the features, where these are weighted.
    temperature : float
        The temperature of the probabilities.
    losses : dict of str to float
        Mean log-losses of all candidates, those of the last rungs first, the best first; empty for a single candidate.
    """

    candidates: list[Candidate]
    weights: list[float]
    gains: dict[str, np.ndarray]
    temperature: float
    losses: dict[str, float]


def preparations_of(rows: EncodedRows) -> tuple[str, ...]:
    """Return the preparations that differ on these rows and are affordable."""
    numbers = np.flatnonzero(~rows.is_indicator)
    if len(numbers) == 0:
        return ("standard",)
    n_levels = sum(len(level_knots(rows.Z[:, j])) for j in numbers)
    excluded = ["has_bins"] * (len(numbers) > MOST_BINNED)
    excluded += ["has_squares", "has_norm", "has_levels"] * (rows.ranks is not None)
    excluded += ["has_levels"] * (not 0 < n_levels <= MOST_LEVELS)
    excluded.append("has_steps")  # for scorecards
    return tuple(name for name, recipe in RECIPES.items() if not any(getattr(recipe, part) for part in excluded))


def parts_of(rows: EncodedRows, plan: Plan) -> tuple[list[RowSplit], list[RowSplit]]:
    """Return the rungs of the race: growing samples, and the parts by which the members are selected.

    Few rows are divided into stratified folds, and all candidates are first trained with fewer passes on one of them.
    The samples of many rows share their held-out rows.
    """
    n_rows, rng, short = len(rows.y), np.random.default_rng(plan.seeds[0]), min(plan.max_iter, SHORT)
    order = rng.permutation(n_rows)
    if n_rows > FOLDS[-1][0]:
        n_held_out = min(n_rows // 4, MOST_HELD_OUT)
        held_out, rest = rows.take(order[:n_held_out]), order[n_held_out:]
        sizes = [min(len(rest), max(LAST_SAMPLE, n_rows // 2))]
        while len(sizes) == 1 or sizes[0] > 2.5 * SCREENED_ROWS:
            sizes.insert(0, max(sizes[0] // GROWTH, SCREENED_ROWS))
        passes = [short] * (len(sizes) - 1) + [plan.max_iter]
        parts = [RowSplit(rows.take(rest[:size]), held_out, n, plan) for size, n in zip(sizes, passes, strict=True)]
        return parts[:-1], parts[-1:]
    order = order[np.argsort(rows.y[order], kind="stable")]
    n_folds = next(n_folds for most, n_folds in FOLDS if n_rows <= most)
    folds = [(np.delete(order, slice(q, None, 4)), order[q::4]) for q in range(n_folds)]
    parts = [
        RowSplit(rows.take(training), rows.take(held_out), plan.max_iter, plan)
        for training, held_out in folds
        if len(held_out) and len(np.unique(rows.y[training])) > 1
    ]
    if len(plan.candidates) == 1 or not parts:
        return [], parts
    return [RowSplit(parts[0].training, parts[0].held_out, short, plan)], parts


def select(rows: EncodedRows, plan: Plan) -> Team:
    """Select members on held-out rows.

    Candidates that are significantly worse leave the race early. From the others, members are selected one by one, with
    replacement, such that the log-loss of the mean of their scores, each divided by the temperature of its candidate,
    is as small as possible (Caruana et al., 2004).
    """
    samples, parts = parts_of(rows, plan)
    race: Race[Candidate] = Race(lambda candidates, part: part.losses(candidates))
    left = plan.candidates
    if not parts:
        return Team(left[:1], [1.0], {}, 1.0, {})
    if len(left) == 1:
        samples = []
    for number, part in enumerate(samples):
        tried = race.run(left, [part])
        if number == 0 and len(plan.names) > 1:
            best = list(dict.fromkeys(own.name for own in race.ranked(tried, part)))[:WEIGHTED]
            tried += race.run([own._replace(weightings=1) for own in tried if own.name in {*best, "levels"}], [part])
            tried += _weighted_twice(race, tried, part)
        elif len(plan.names) > 1:
            tried += _weighted_later(race, _leaders(race, tried, part, LEADERS[-1]), part)
        # Different features are compared fairly only at the number of planes that each of them asks for.
        n_leaders = LEADERS[min(number, len(LEADERS) - 1)] if len(parts) == 1 else 1
        new = _more_planes(race, _leaders(race, tried, part, n_leaders), part)
        tried = list(dict.fromkeys(tried + new))
        near = race.near_best(tried, OUT_OF_THE_RACE, [part])
        left = race.ranked(near, part)[: STAYING[min(number, len(STAYING) - 1)]]
        left = list(dict.fromkeys([*_leaders(race, tried, part, n_leaders), *left]))
        plan.show(f"{len(tried)} candidates on {len(part.training.y)} rows, {len(left)} left")
    for number in range(len(parts)):
        left = race.run(left, [parts[number]])
        if len(parts) == 1:
            if samples and len(plan.names) > 1:
                near = race.near_best(left, OUT_OF_THE_RACE, parts)
                left += _weighted_later(race, _leaders(race, near, parts[0], LEADERS[-1]), parts[0])
            left += _smaller_steps(race, left, parts[number])
            new = _more_planes(race, _leaders(race, left, parts[number], LEADERS[-1]), parts[number])
            left = list(dict.fromkeys(left + new))
        left = race.near_best(left, OUT_OF_THE_RACE, parts[: number + 1])
        plan.show(f"part {number + 1} of {len(parts)}, {len(left)} left")
    scores = {own: np.concatenate([part.scores[own] for part in parts]) for own in left}
    y, weight = (np.concatenate([getattr(part.held_out, name) for part in parts]) for name in ("y", "weight"))
    temperatures = {own: best_temperature(scores[own], y, weight) for own in left}
    chosen = _greedy({own: scores[own] / temperatures[own] for own in left}, y, weight, len(plan.seeds))
    team = [own for own, count in chosen.items() for _ in range(1 if own.n_planes == 1 else count)]
    weights = [(chosen[own] if own.n_planes == 1 else 1) / temperatures[own] for own in team]
    temperature = best_temperature(np.average([scores[own] for own in team], axis=0, weights=weights), y, weight)
    kinds = {own.features: own[:2] for own in team if own.weightings}
    gains = {name: np.exp(np.mean([np.log(part.gain(*kinds[name])) for part in parts], axis=0)) for name in kinds}
    return Team(team, weights, gains, temperature, {} if len(race.trials) == len(parts) else _losses(race, parts))


def _leaders(race: Race[Candidate], tried: list[Candidate], part: RowSplit, most: int) -> list[Candidate]:
    """Return the best candidate of each preparation, for the best preparations."""
    leaders: dict[str, Candidate] = {}
    for own in race.ranked(tried, part):
        leaders.setdefault(own.name, own)
    return list(leaders.values())[:most]


def _weighted_twice(race: Race[Candidate], tried: list[Candidate], part: RowSplit) -> list[Candidate]:
    """Weight features again where this was better than not to weight them, with about as many planes."""
    numbers = {own.n_planes for own in tried}
    again = [
        own._replace(weightings=2, n_planes=n_planes)
        for own in _leaders(race, tried, part, len(tried))
        for n_planes in (own.n_planes // 2, own.n_planes, 2 * own.n_planes)
        if own.weightings and n_planes in numbers
    ]
    return race.run(again, [part])


def _weighted_later(race: Race[Candidate], leaders: list[Candidate], part: RowSplit) -> list[Candidate]:
    """Weight features of leaders that are not weighted on these rows, as long as this is better.

    Weights from few rows lose where those from many win: covtype, 100,000 rows, 8.0 % error with them, otherwise 8.8 %.
    """
    known, new = {own.name for rows, own in race.trials if own.weightings and rows is part}, []
    for leader in leaders:
        weighted = [leader._replace(weightings=number) for number in (0, 1, 2)]
        for before, more in pairwise(weighted if leader.name not in known else []):
            new += race.run([more], [part])
            if race.mean(more, part) > race.mean(before, part):
                break
    return new


def _smaller_steps(race: Race[Candidate], tried: list[Candidate], part: RowSplit) -> list[Candidate]:
    """Compare the leaders of many rows with a third of the step size, as long as this is better."""
    new: list[Candidate] = []
    near = race.near_best(tried, OUT_OF_THE_RACE, [part]) if len(part.training.y) > STEPS_COMPARED else []
    for best in _leaders(race, near, part, LEADERS[-1]):
        while best.n_planes > 1:
            less = best._replace(eta0=best.eta0 / 3)
            new += race.run([less], [part])
            if race.mean(less, part) > race.mean(best, part):
                break
            best = less
    return new


def _more_planes(race: Race[Candidate], leaders: list[Candidate], part: RowSplit) -> list[Candidate]:
    """Compare candidates with four times as many planes, as long as this is worth their time."""
    new: list[Candidate] = []
    most = min(MOST_PLANES, len(part.training.y) // (ROWS_PER_PLANE * part.training.n_classes))
    for best in leaders:
        while (
            part.plan.n_planes is None
            and (len(part.training.y) > SCREENED_ROWS or N_PLANES_COMPARED[-1] // 2 <= best.n_planes)
            and best.n_planes <= most // 4
        ):
            more = best._replace(n_planes=4 * best.n_planes)
            new += race.run([more], [part])
            if race.mean(more, part) > (1 - GAIN_OF_PLANES) * race.mean(best, part):
                break
            best = more
    return list(dict.fromkeys(new))


def _greedy(
    scores: dict[Candidate, np.ndarray], y: np.ndarray, weight: np.ndarray, n_members: int
) -> Counter[Candidate]:
    """Select members one by one, such that the log-loss of the mean of their scores falls most."""
    chosen: Counter[Candidate] = Counter()
    total: Any = 0.0
    for number in range(n_members):
        losses = {own: weight @ log_losses(softmax((total + scores[own]) / (number + 1)), y) for own in scores}
        best = min(losses, key=losses.__getitem__)
        chosen[best] += 1
        total = total + scores[best]
    return chosen


def _losses(race: Race[Candidate], parts: list[RowSplit]) -> dict[str, float]:
    """Return the mean loss of each candidate on the last rungs it was trained on."""
    rungs: dict[Candidate, list[RowSplit]] = {}
    for part, own in race.trials:
        rungs[own] = [*rungs[own], part] if part in parts and own in rungs and rungs[own][0] in parts else [part]
    order = list(dict.fromkeys(part for part, _ in race.trials))
    means = {own: float(np.concatenate([race.trials[part, own] for part in rungs[own]]).mean()) for own in rungs}
    ranked = sorted(means, key=lambda own: (-order.index(rungs[own][-1]), means[own]))
    return {own.label: means[own] for own in ranked}


def committee_to_train(rows: EncodedRows, plan: Plan, team: Team) -> TableCommittee:
    """Return the committee to train on all rows."""
    preparations: dict[str, Preparation] = {}
    data = {}
    for own in team.candidates:
        if own.features not in preparations:
            preparation = rows.prepare(own.name)
            if own.weightings:
                preparation = preparation.weighted(team.gains[own.features])
            preparations[own.features] = preparation
            data[own.features] = rows.data(preparations[own.features])
    tasks = [
        MemberTask(
            data[own.features],
            own.n_planes,
            rows.noise(own.name),
            plan.max_iter,
            seed,
            own.eta0,
            RECIPES[own.name].penalty,
        )
        for own, seed in zip(team.candidates, plan.seeds, strict=False)
    ]
    used = tuple(preparations[own.features] for own in team.candidates)
    parts = parts_of_tasks(tasks, plan.n_jobs)
    return TableCommittee(tuple(parts), used, tuple(team.weights), team.temperature, plan.n_jobs)
