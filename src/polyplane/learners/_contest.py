"""How many planes? Small machines compete for it."""

from __future__ import annotations

import numpy as np

from polyplane._array_api import take_rows, to_numpy
from polyplane._validation import Data
from polyplane.learners._smooth import SmoothTraining
from polyplane.learners._tangent import tangent_start
from polyplane.learners._units import Units

#: A plane of a tangent start needs this many rows of its class.
ROWS_PER_PLANE = 8
#: Planes per class that compete; the last contender has as many as the rows allow.
LEVELS = (1, 4, 16)
#: Rows that they are trained and judged on.
ROWS = 6000
#: A loss within this factor of the best counts as a tie, which more planes win: widely so where the rows that are to be
#: learned are many more than those of the contest.
TIE, TIE_OF_A_SAMPLE = 1.02, 1.1


def choose_planes(
    data: Data, most: np.ndarray, units: Units, scale: float, training: SmoothTraining, seed: int
) -> np.ndarray:
    """Planes of each class, at most `most`, by the log-loss on held-out rows.

    Classes that overlap want one plane each, and would be over-fitted by more; a checkerboard wants dozens. On few rows
    the contest is held three times.
    """
    levels = [np.minimum(level, most) for level in LEVELS if level < most.max()]
    contenders = [*levels, most]
    if len(contenders) == 1:
        return most
    losses = np.zeros(len(contenders))
    for number in range(1 if len(data.train) > 2000 else 3):
        rng = np.random.default_rng([seed, number])
        rows = rng.permutation(data.train)[:ROWS]
        held_out, train = np.split(rows, [len(rows) // 4])
        counts = np.bincount(data.y[train], minlength=data.n_classes)
        for i, contender in enumerate(contenders):
            # A sample has fewer rows than the whole, and bears fewer planes.
            n_planes = np.clip(counts // ROWS_PER_PLANE, 1, contender)
            trial = Data(data.X, data.y, data.weight, np.sort(train), data.n_classes)
            losses[i] += _held_out_loss(trial, held_out, n_planes, units, scale, training, seed)
    tie = TIE_OF_A_SAMPLE if len(data.train) > ROWS else TIE
    return contenders[int(np.flatnonzero(losses <= tie * losses.min())[-1])]


def _held_out_loss(
    trial: Data,
    held_out: np.ndarray,
    n_planes: np.ndarray,
    units: Units,
    scale: float,
    training: SmoothTraining,
    seed: int,
) -> float:
    rng = np.random.default_rng(seed)
    tangents = tangent_start(trial.X, trial.y, trial.train, n_planes, units, scale, rng)
    state = training.start(tangents, units, seed)
    for _ in range(training.schedule.passes):
        state = training.epoch(state, trial)
    scores = to_numpy(training.planes(state).class_scores(take_rows(trial.X, held_out))).astype(float)
    scores -= scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(held_out)), trial.y[held_out]]
    return float(np.average(losses, weights=trial.weight[held_out]))
