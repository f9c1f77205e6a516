"""Selection of the number of planes: small models are trained with several numbers and compared on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polyplane._array_api import take_rows, to_numpy
from polyplane.engine.data import Data
from polyplane.learners.tangents import most_planes, run_from_tangents
from polyplane.scaling import AffineScaling

#: Minimum number of rows of a class per plane of a tangent start.
ROWS_PER_PLANE = 4
#: Numbers of planes per class to try; the last candidate is the maximum that the rows allow, up to 64, or 192 in total.
LEVELS = (1, 2, 4, 16)
#: Maximum number of rows of a trial, including held-out rows.
ROWS = 4500
#: Minimum and maximum number of passes of a trial, and the number of row visits that determines it in between; the
#: minimum if there are more features than rows. With few passes over few rows, several planes are not yet trained well
#: enough to compare them with a single plane, which is trained to the minimum.
PASSES, VISITS = (7, 60), 40_000
#: A quarter of the rows is held out; with up to FEW rows, three quarters in turn.
QUARTERS, FEW = 3, 2000
#: A number of planes worse than the best by this many standard errors is not tried on the next quarter.
OUT_OF_THE_RACE = 2.0
#: More than one plane is chosen only if a single one is worse by this many standard errors; more if trials use a
#: sample, because the number of planes is then multiplied.
WORSE, WORSE_IN_A_SAMPLE = 1.0, 1.5


def select_n_planes(data: Data, scaling: AffineScaling, trial: Any, seed: int) -> np.ndarray:
    """Number of planes of each class, chosen by the losses of the method `trial` on held-out rows.

    Overlapping classes need one plane each, and more planes overfit; a checkerboard needs dozens, and a few are no
    better than one. Therefore all levels are tried, and a single plane is preferred (the one-standard-error rule). If
    the trials use a sample, the number of planes beyond the first grows in proportion to the number of rows.
    """
    most = _limit(data, min(max(64, 192 // data.n_classes), most_planes(data)))
    rows = np.random.default_rng(seed).permutation(data.train)[:ROWS]
    rows = rows[np.argsort(data.y[rows], kind="stable")]  # so that quarters are stratified by class
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
    """The difference of the mean loss to the lowest, in standard errors of the differences per row."""
    difference = losses - min(all_losses.values(), key=np.mean)
    return float(difference.mean() / (difference.std() / len(difference) ** 0.5 + 1e-12))


def _losses(planes: Any, data: Data, rows: np.ndarray) -> np.ndarray:
    """The loss of each row: its error, 0 or 1, plus its Brier score.

    The error is the quantity of interest, and Brier scores are more precise on few rows; log-losses are dominated by a
    few rows. After short training, scores are too large or too small, which longer training corrects. Scores are
    therefore multiplied by the factor with the lowest log-loss, which is convex in this factor.
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
