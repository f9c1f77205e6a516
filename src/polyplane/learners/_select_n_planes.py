"""How many planes? Small machines are trained with several numbers and compared on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from polyplane._array_api import take_rows, to_numpy
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners._tangent import tangent_start
from polyplane.scaling import AffineScaling

#: A plane of a tangent start needs this many rows of its class.
ROWS_PER_PLANE = 8
#: Planes per class that are tried; the last candidate has as many as the rows allow.
LEVELS = (1, 4, 16)
#: Rows that they are trained and judged on.
ROWS = 6000
#: A loss within this factor of the best counts as a tie, which more planes win: widely so where the rows that are to be
#: learned are many more than those of the trials.
TIE, TIE_OF_A_SAMPLE = 1.02, 1.1


def select_n_planes(data: Data, scaling: AffineScaling, trial: Any, seed: int) -> np.ndarray:
    """Planes of each class, by the log-loss of the method `trial` on held-out rows.

    Classes that overlap want one plane each, and would be over-fitted by more; a checkerboard wants dozens. On few rows
    the trials are made three times.
    """
    most = np.clip(data.class_counts // ROWS_PER_PLANE, 1, max(64, 192 // data.n_classes))
    candidates = [*(np.minimum(level, most) for level in LEVELS if level < most.max()), most]
    if len(candidates) == 1:
        return most
    losses = np.zeros(len(candidates))
    for number in range(1 if len(data.train) > 2000 else 3):
        rows = np.random.default_rng([seed, number]).permutation(data.train)[:ROWS]
        held_out, train = np.split(rows, [len(rows) // 4])
        sample = replace(data, train=np.sort(train), stream=False)
        for i, candidate in enumerate(candidates):
            # A sample has fewer rows than the whole, enough for fewer planes.
            n_planes = np.clip(sample.class_counts // ROWS_PER_PLANE, 1, candidate)
            tangents = tangent_start(sample, n_planes, scaling, trial.scale, seed)
            run = Run(trial, trial.begin(tangents, scaling, seed)).go(repeat(sample, trial.max_iter))
            losses[i] += _held_out_loss(trial.planes(run.state), data, held_out)
    tie = TIE_OF_A_SAMPLE if len(data.train) > ROWS else TIE
    return candidates[int(np.flatnonzero(losses <= tie * losses.min())[-1])]


def _held_out_loss(planes: Any, data: Data, rows: np.ndarray) -> float:
    """The log-loss on some rows, where a class scores its best plane."""
    scores = to_numpy(planes.class_scores(take_rows(data.X, rows))).astype(float)
    scores -= scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(rows)), data.y[rows]]
    return float(np.average(losses, weights=data.weight[rows]))
