"""How many planes, and how much regularisation? Short trainings with several settings, compared on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners._joint_start import mean_square

#: Planes per class that are tried, and the number in a stream, whose rows are not known.
LEVELS, IN_A_STREAM = (1, 4, 16, 48), 16
#: A class of the middle size has this many rows for each plane.
ROWS_PER_PLANE = 2
#: Regularisation that is tried, the one of the first trials first: alpha in units of the mean square length of a row
#: over the number of rows.
STRENGTHS = (0.3, 0.03, 0.1, 1.0, 3.0)
#: alpha in a stream, in units of the mean square length of a row.
STREAM_ALPHA = 1e-6
#: Rows that trials are trained and judged on, rows judged at least, and passes of a trial.
ROWS, ROWS_TO_JUDGE, PASSES = 4000, 1000, 20


def choose_settings(method: Any, data: Data, seed: int) -> Any:
    """The method with the `n_planes` and `alpha` that it leaves open."""
    square = mean_square(data.X, data.train, 0.0)
    square = square if square > 0 else 1.0
    if data.stream:
        n_planes, alpha = IN_A_STREAM, STREAM_ALPHA * square
    else:
        n_planes, alpha = Trials(method, data, square, seed).best()
    return replace(method, n_planes=method.n_planes or n_planes, alpha=method.alpha or alpha)


class Trials:
    """Short trainings on parts of the rows."""

    def __init__(self, method: Any, data: Data, square: float, seed: int) -> None:
        self.method, self.data, self.square, self.seed = method, data, square, seed
        self.splits = list(self._splits())
        self.errors: dict[tuple[int, float], float] = {}

    def _splits(self) -> Iterator[tuple[Data, np.ndarray]]:
        """Rows to train on and rows to judge on; several times where they are few."""
        rng, n_rows = np.random.default_rng([self.seed, 1]), min(ROWS, len(self.data.train))
        n_held_out = n_rows // 4
        for _ in range(int(np.clip(ROWS_TO_JUDGE // max(n_held_out, 1), 1, 10))):
            rows = rng.permutation(self.data.train)[:n_rows]
            train = np.sort(rows[n_held_out:])
            yield replace(self.data, train=train), rows[:n_held_out]

    def best(self) -> tuple[int, float]:
        """The planes per class by the first strength, then the strength; and the alpha that it is."""
        most = max(1, int(np.median(self.data.class_counts)) // ROWS_PER_PLANE)
        level = self.method.n_planes
        if level is None:
            level = self._least([(level, STRENGTHS[0]) for level in LEVELS if level <= most])[0]
        strength = 0.0
        if self.method.alpha is None:
            strength = self._least([(level, strength) for strength in STRENGTHS])[1]
        return level, strength * self.square / len(self.data.train)

    def _least(self, candidates: list[tuple[int, float]]) -> tuple[int, float]:
        """The first of the candidates that err least."""
        if len(candidates) == 1:
            return candidates[0]
        new = [candidate for candidate in candidates if candidate not in self.errors]
        jobs = [(candidate, split) for candidate in new for split in self.splits]
        found = in_threads(lambda job: self._error(*job[0], *job[1]), jobs, self.method.n_jobs)
        for (candidate, _), error in zip(jobs, found, strict=True):
            self.errors[candidate] = self.errors.get(candidate, 0.0) + error / len(self.splits)
        return min(candidates, key=lambda candidate: self.errors[candidate])

    def _error(self, n_planes: int, strength: float, data: Data, held_out: np.ndarray) -> float:
        """The error on held-out rows after a short training on the others."""
        alpha = self.method.alpha or strength * self.square / len(data.train)
        trial = replace(self.method, n_planes=n_planes, alpha=alpha)
        run = Run(trial, trial.begin(data, self.seed)).go(repeat(data, PASSES))
        wrong = trial.predict(run.state, data.X[held_out]) != data.y[held_out]
        return float(np.average(wrong, weights=data.weight[held_out]))
