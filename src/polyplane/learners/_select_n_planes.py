"""Selection of the number of planes: small models are trained with several numbers and compared on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polyplane._array_api import take_rows, to_numpy
from polyplane.engine.data import Data
from polyplane.learners._tangent import most_planes
from polyplane.learners._tangent_run import run_from_tangents
from polyplane.scaling import AffineScaling

#: A plane of a tangent start needs this many rows of its class.
ROWS_PER_PLANE = 4
#: Planes per class that are tried; the last candidate has as many as the rows allow, and at most 64, or 192 in all.
LEVELS = (1, 2, 4, 16)
#: Rows that they are trained and judged on.
ROWS = 4500
#: Passes of a trial: at least and at most so many, in between as many as visit so many rows; the least where rows are
#: wider than many. With few passes over few rows several planes have not yet learned what a single one, whose minimum
#: is found, has.
PASSES, VISITS = (7, 60), 40_000
#: A quarter of the rows is held out; up to FEW rows it is done with three of the quarters, one after the other.
QUARTERS, FEW = 3, 2000
#: A number of planes that is worse than the best by so many standard errors is not tried on the next quarter.
OUT_OF_THE_RACE = 2.0
#: A single plane is given up only if it is worse by so many standard errors; more in a sample, as its planes multiply.
WORSE, WORSE_IN_A_SAMPLE = 1.0, 1.5


def select_n_planes(data: Data, scaling: AffineScaling, trial: Any, seed: int) -> np.ndarray:
    """Planes of each class, by the losses of the method `trial` on held-out rows.

    Classes that overlap want one plane each, and would be over-fitted by more; a checkerboard wants dozens, and a few
    are no better than one. So all levels are tried, and a single plane is preferred (the one-standard-error rule).
    Where the trials see only a sample, planes beyond the first are as many per row as the sample wants.
    """
    most = _limit(data, min(max(64, 192 // data.n_classes), most_planes(data)))
    rows = np.random.default_rng(seed).permutation(data.train)[:ROWS]
    rows = rows[np.argsort(data.y[rows], kind="stable")]  # so that each quarter has its share of each class
    levels = [*(level for level in LEVELS if level < most.max()), int(most.max())]
    if len(levels) == 1:
        return most
    passes = np.clip(VISITS // len(rows), *PASSES) if data.X.shape[1] <= len(rows) else PASSES[0]
    trial = replace(trial, max_iter=int(passes))
    losses: dict[int, np.ndarray] = dict.fromkeys(levels, np.empty(0))
    for quarter in range(QUARTERS if len(rows) <= FEW else 1):
        held_out = rows[quarter::4]
        sample = replace(data, train=np.setdiff1d(rows, held_out), stream=False)
        for level in losses:
            run = run_from_tangents(trial, sample, _limit(sample, level), scaling, seed)
            losses[level] = np.append(losses[level], _losses(trial.planes(run.state), data, held_out))
        losses = {level: each for level, each in losses.items() if _excess(each, losses) <= OUT_OF_THE_RACE}
        if len(losses) == 1:
            break
    one, best = losses.get(1), min(losses, key=lambda level: losses[level].mean())
    worse = WORSE if len(rows) == len(data.train) else WORSE_IN_A_SAMPLE
    level = 1 if one is not None and _excess(one, losses) <= worse else best
    return np.minimum(most, 1 + (level - 1) * len(data.train) // len(rows))


def _limit(data: Data, n_planes: int) -> np.ndarray:
    """Planes of each class, at most `n_planes`: classes of few rows get fewer."""
    return np.clip(data.class_counts // ROWS_PER_PLANE, 1, n_planes)


def _excess(losses: np.ndarray, all_losses: dict[int, np.ndarray]) -> float:
    """By how many standard errors the mean of some losses is more than the least: of differences row by row."""
    difference = losses - min(all_losses.values(), key=np.mean)
    return float(difference.mean() / (difference.std() / len(difference) ** 0.5 + 1e-12))


def _losses(planes: Any, data: Data, rows: np.ndarray) -> np.ndarray:
    """Of each row, whether it is wrong plus its Brier score: the squared distance of the probabilities from the truth.

    Errors are what counts, and Brier scores are more precise on few rows; log-losses are dominated by a few rows. Short
    training leaves scores too large or too small, which longer training mends, so their common factor is not held
    against a model: it is the one with the smallest log-loss, which is convex in it.
    """
    scores = to_numpy(planes.class_scores(take_rows(data.X, rows))).astype(float)
    scores -= scores.max(axis=1, keepdims=True)
    scores /= max(-scores.mean(), 1e-300)
    index, y = np.arange(len(rows)), data.y[rows]
    own, weight = scores[index, y], data.weight[rows] / data.weight[rows].mean()
    power, step = 0.0, 4.0
    for _ in range(9):
        probability = np.exp(2**power * scores)
        probability /= probability.sum(axis=1, keepdims=True)
        slope = weight @ ((probability * scores).sum(axis=1) - own)
        power, step = power - np.sign(slope) * step, step / 2
    wrong, truth = scores.argmax(axis=1) != y, probability[index, y]
    return weight * (wrong + (probability**2).sum(axis=1) - 2 * truth + 1)
