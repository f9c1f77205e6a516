"""Selection of the number of planes and the regularisation by short trials, compared on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners._joint_start import mean_square

#: Numbers of planes per class to try, and the number for a stream, where no trials are possible.
LEVELS, IN_A_STREAM = (1, 4, 16, 48), 16
#: Minimum number of rows per plane, in a class of median size.
ROWS_PER_PLANE = 2
#: Weights of the start to try. With a small weight, planes move freely; with a large one, they stay near their initial
#: rows, which a checkerboard needs.
WEIGHTS = (3.0, 30.0)
#: Regularisation to try, first that of the first trials: alpha relative to the mean squared norm of a row divided by
#: the number of rows.
STRENGTHS = (0.3, 0.03, 0.1, 1.0, 3.0)
#: alpha in a stream, relative to the mean squared norm of a row.
STREAM_ALPHA = 1e-6
#: Maximum number of rows of a trial, minimum number of held-out rows of all splits, and passes of a trial.
ROWS, ROWS_TO_JUDGE, PASSES = 4000, 1000, 20


class Setting(NamedTuple):
    """The settings of a trial."""

    n_planes: int
    weight: float
    strength: float  # of the regularisation


def choose_settings(method: Any, data: Data, seed: int) -> Any:
    """Return the method with settings chosen for those that are None."""
    square = mean_square(data.X, data.train, 0.0) or 1.0
    if data.stream:
        n_planes, alpha = method.n_planes or IN_A_STREAM, method.alpha or STREAM_ALPHA * square
        return replace(method, n_planes=n_planes, alpha=alpha)
    trials = Trials(method, data, square, seed)
    return trials.method_with(trials.best(), len(data.train))


class Trials:
    """Short trainings on a part of the rows."""

    def __init__(self, method: Any, data: Data, square: float, seed: int) -> None:
        self.method, self.data, self.square, self.seed = method, data, square, seed
        self.splits = list(self._splits())
        self.errors: dict[Setting, float] = {}

    def _splits(self) -> Iterator[tuple[Data, np.ndarray]]:
        """Yield training data and held-out rows; several splits if there are few rows."""
        rng, n_rows = np.random.default_rng([self.seed, 1]), min(ROWS, len(self.data.train))
        n_held_out = n_rows // 4
        for _ in range(int(np.clip(ROWS_TO_JUDGE // max(n_held_out, 1), 1, 10))):
            rows = rng.permutation(self.data.train)[:n_rows]
            yield replace(self.data, train=np.sort(rows[n_held_out:])), rows[:n_held_out]

    def method_with(self, setting: Setting, n_rows: int) -> Any:
        """Return the method with a setting, for training on `n_rows` rows; a given alpha is kept."""
        alpha = self.method.alpha or setting.strength * self.square / n_rows
        return replace(self.method, n_planes=setting.n_planes, alpha=alpha, start_weight=setting.weight)

    def best(self) -> Setting:
        """Choose the planes per class and the weight of the start with the first strength, then the strength."""
        most = max(1, int(np.median(self.data.class_counts)) // ROWS_PER_PLANE)
        levels = (
            [level for level in LEVELS if level <= most] if self.method.n_planes is None else [self.method.n_planes]
        )
        first = [Setting(level, weight, STRENGTHS[0]) for level in levels for weight in WEIGHTS[: 1 + (level > 1)]]
        best = self._least(first)
        return best if self.method.alpha else self._least([best._replace(strength=strength) for strength in STRENGTHS])

    def _least(self, settings: list[Setting]) -> Setting:
        """Return the setting with the lowest error (the first one, in case of ties)."""
        jobs = [(setting, split) for setting in settings if setting not in self.errors for split in self.splits]
        found = in_threads(lambda job: self._error(job[0], *job[1]), jobs, self.method.n_jobs)
        for (setting, _), error in zip(jobs, found, strict=True):
            self.errors[setting] = self.errors.get(setting, 0.0) + error
        return min(settings, key=lambda setting: self.errors[setting])

    def _error(self, setting: Setting, data: Data, held_out: np.ndarray) -> float:
        """The error on held-out rows after a short training on the others."""
        trial = self.method_with(setting, len(data.train))
        run = Run(trial, trial.begin(data, self.seed)).go(repeat(data, PASSES))
        wrong = trial.predict(run.state, data.X[held_out]) != data.y[held_out]
        return float(np.average(wrong, weights=data.weight[held_out]))
