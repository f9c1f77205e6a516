"""Choice of the preparation: small classifiers are compared on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from polyplane.engine.data import Data
from polyplane.planes import PlaneSet
from polyplane.tables._members import Machine, train_members
from polyplane.tables._preparation import RECIPES, Preparation
from polyplane.tables._probabilities import best_temperature, log_losses, soft_class_scores, softmax

#: Number of rows that the small classifiers are trained and evaluated on.
ROWS = 2000
#: Planes per class of the small classifiers, and row visits, which determine the number of passes within bounds.
N_PLANES, VISITS, PASSES = 4, 20_000, (5, 40)
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


@dataclass(frozen=True)
class EncodedRows:
    """Encoded rows, their class indices and sample weights, and which features are indicators."""

    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    is_indicator: np.ndarray
    n_classes: int
    _plain: dict[str, Preparation] = field(default_factory=dict, init=False, repr=False, compare=False)

    def take(self, rows: np.ndarray) -> EncodedRows:
        """Return some of the rows."""
        return EncodedRows(self.Z[rows], self.y[rows], self.weight[rows], self.is_indicator, self.n_classes)

    def prepare(self, candidate: Candidate) -> Preparation:
        """Fit a preparation on the rows, once for candidates that differ only in their gains."""
        plain = self._plain.get(candidate.name)
        if plain is None:
            plain = Preparation.fit(candidate.name, self.Z, self.y, self.is_indicator, self.weight)
            self._plain[candidate.name] = plain
        return plain if candidate.gain is None else plain.weighted(np.array(candidate.gain))

    def data(self, preparation: Preparation) -> Data:
        """Return the prepared rows as training data."""
        weight = self.weight.astype(np.float32)
        return Data(preparation.transform(self.Z), self.y, weight, np.flatnonzero(weight > 0), self.n_classes)

    def noise(self, name: str) -> float | None:
        """Return the noise of training: 0 if most features are indicators or bins, which noise would blur."""
        return self.noise_of(name, self.is_indicator)

    @staticmethod
    def noise_of(name: str, is_indicator: np.ndarray) -> float | None:
        """Return the noise of training with a preparation."""
        return 0.0 if RECIPES[name].has_bins or is_indicator.mean() > 0.5 else None


class Candidate(NamedTuple):
    """A preparation, and the factor of each feature; None for no factors."""

    name: str
    gain: tuple[float, ...] | None = None

    @property
    def label(self) -> str:
        """Name for display."""
        return self.name if self.gain is None else f"{self.name}, weighted"


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
    trials: dict[str, list[Trial]] = {name: [] for name in names}
    racing = list(names)
    for training, held_out in parts:
        prepared = [training.prepare(Candidate(name)) for name in racing]
        for name, trial in zip(racing, _try(training, held_out, prepared, seed, n_jobs), strict=True):
            trials[name].append(trial)
        racing = _near_best({name: _losses(trials[name]) for name in racing}, OUT_OF_THE_RACE)
        if len(racing) == 1:
            break
    losses = {Candidate(name): _losses(trials[name]) for name in names}
    final = {Candidate(name): losses[Candidate(name)] for name in racing}
    for candidate in sorted(final, key=lambda candidate: final[candidate].mean())[:WEIGHTED]:
        weighted, found = _weigh(candidate.name, trials[candidate.name], parts, seed, n_jobs)
        final[weighted] = losses[weighted] = found
    means = {candidate: float(each.mean()) for candidate, each in losses.items()}
    order = sorted(means, key=lambda candidate: (candidate not in final, means[candidate]))
    near = _near_best(final, OUT_OF_THE_RACE)
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
    passes = int(np.clip(VISITS // len(training.y), *PASSES))
    machines = [Machine(training.data(p), N_PLANES, training.noise(p.name), passes, seed) for p in prepared]
    weight, trials = held_out.weight / held_out.weight.mean(), []
    for p, machine, planes in zip(prepared, machines, train_members(machines, n_jobs), strict=True):
        scores = soft_class_scores(planes, p.transform(held_out.Z))
        probability = softmax(scores / best_temperature(scores, held_out.y, held_out.weight))
        trials.append(Trial(p, machine.data.X, planes, weight * log_losses(probability, held_out.y)))
    return trials


def _losses(trials: Sequence[Trial]) -> np.ndarray:
    return np.concatenate([trial.losses for trial in trials])


Key = TypeVar("Key")


def _near_best(losses: Mapping[Key, np.ndarray], n_errors: float) -> list[Key]:
    """Return the keys whose mean loss exceeds the best by at most `n_errors` standard errors of paired differences."""
    best = min(losses.values(), key=np.mean)

    def excess(each: np.ndarray) -> float:
        difference = each - best
        return float(difference.mean() / (difference.std() / len(difference) ** 0.5 + 1e-12))

    return [key for key, each in losses.items() if excess(each) <= n_errors]
