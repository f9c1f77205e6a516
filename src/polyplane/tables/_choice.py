"""Which preparation? Small machines on each are compared on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyplane.engine.data import Data
from polyplane.tables._members import Machine, train_members
from polyplane.tables._preparation import RECIPES, Preparation
from polyplane.tables._probabilities import at_temperature, best_temperature, class_probabilities, log_losses

#: Rows that the small machines are trained and judged on.
ROWS = 2000
#: Their planes of each class, and the rows that they visit in all, by which their passes are found, within bounds.
N_PLANES, VISITS, PASSES = 4, 20_000, (5, 40)
#: A quarter of the rows is held out, one after the other, up to so many.
QUARTERS = 3
#: A preparation that is worse than the best by so many standard errors is not tried on the next quarter.
OUT_OF_THE_RACE = 3.0
#: Bins multiply features: with more numbers than this they are not tried.
MOST_BINNED = 200


@dataclass(frozen=True)
class EncodedRows:
    """Encoded rows with their classes (as integers) and weights, and which features are indicators."""

    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    is_indicator: np.ndarray
    n_classes: int

    def take(self, rows: np.ndarray) -> EncodedRows:
        """Some of the rows."""
        return EncodedRows(self.Z[rows], self.y[rows], self.weight[rows], self.is_indicator, self.n_classes)

    def prepare(self, name: str) -> Preparation:
        """A preparation learned from them."""
        return Preparation.fit(name, self.Z, self.y, self.is_indicator, self.weight)

    def data(self, preparation: Preparation) -> Data:
        """Prepared, to train on."""
        weight = self.weight.astype(np.float32)
        return Data(preparation.transform(self.Z), self.y, weight, np.flatnonzero(weight > 0), self.n_classes)

    def noise(self, name: str) -> float | None:
        """Noise in training: none where most features are indicators or bins, which it would blur."""
        return 0.0 if RECIPES[name].has_bins or self.is_indicator.mean() > 0.5 else None


def candidates(rows: EncodedRows) -> list[str]:
    """The preparations that can be told apart, and paid for, on these rows."""
    n_numbers = int((~rows.is_indicator).sum())
    if n_numbers == 0:
        return ["standard"]
    return [name for name, recipe in RECIPES.items() if not recipe.has_bins or n_numbers <= MOST_BINNED]


def choose_preparation(
    rows: EncodedRows, names: Sequence[str], seed: int, n_jobs: int | None = None
) -> dict[str, float]:
    """The mean log-losses of small machines on held-out rows, each at its best temperature, the best first.

    Short training leaves scores too large or too small, which longer training mends: the temperature is not held
    against a preparation.
    """
    order = np.random.default_rng(seed).permutation(len(rows.y))[:ROWS]
    order = order[np.argsort(rows.y[order], kind="stable")]  # so that each quarter has its share of each class
    losses = {name: np.empty(0) for name in names}
    result: dict[str, float] = {}
    for quarter in range(QUARTERS):
        held_out = rows.take(order[quarter::4])
        training = rows.take(np.delete(order, slice(quarter, None, 4)))
        found = trial_losses(training, held_out, list(losses), seed, n_jobs)
        losses = {name: np.append(losses[name], found[name]) for name in losses}
        result |= {name: float(each.mean()) for name, each in losses.items()}
        best = min(losses.values(), key=np.mean)
        losses = {name: each for name, each in losses.items() if _excess(each - best) <= OUT_OF_THE_RACE}
        if len(losses) == 1:
            break
    return dict(sorted(result.items(), key=lambda item: (item[0] not in losses, item[1])))


def trial_losses(
    training: EncodedRows, held_out: EncodedRows, names: Sequence[str], seed: int, n_jobs: int | None
) -> dict[str, np.ndarray]:
    """The log-losses of the held-out rows, by preparation."""
    passes = int(np.clip(VISITS // len(training.y), *PASSES))
    prepared = [training.prepare(name) for name in names]
    machines = [Machine(training.data(p), N_PLANES, training.noise(p.name), passes, seed) for p in prepared]
    losses = {}
    for p, (planes, _) in zip(prepared, train_members(machines, n_jobs), strict=True):
        probability = class_probabilities(planes, p.transform(held_out.Z))
        temperature = best_temperature(probability, held_out.y, held_out.weight)
        losses[p.name] = log_losses(at_temperature(probability, temperature), held_out.y) * (
            held_out.weight / held_out.weight.mean()
        )
    return losses


def _excess(difference: np.ndarray) -> float:
    """By how many standard errors a mean difference is more than 0."""
    return float(difference.mean() / (difference.std() / len(difference) ** 0.5 + 1e-12))
