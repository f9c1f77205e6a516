"""Fitting and scoring of candidates on the folds of a search."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from polyplane._array_api import in_threads, is_foreign, take_rows
from polyplane._prediction import check_matrix
from polyplane.base import takes_matrix
from polyplane.learners.many import fit_many
from polyplane.search._candidates import Settings, machine_of
from polyplane.search._results import Trial
from polyplane.search._rungs import Rung, sample_rows

Score = Callable[[Any, Any, Any], float]


@dataclass(frozen=True)
class Failure:
    """A failed fit and its error."""

    error: Exception


@dataclass
class Evaluation:
    """Fits candidates on the training rows of each fold and scores them on its test rows.

    Parameters
    ----------
    estimator : estimator
        The estimator whose parameters are searched.
    X, y : array-like
        Rows and labels.
    codes : ndarray
        Class indices.
    sample_weight : ndarray or None
        Sample weights for training.
    folds : list of (train, test)
        Row indices.
    score : function of (estimator, X, y)
        The score to maximise.
    seed : int
        Seed of the random rows of rungs that use a part of the rows.
    n_jobs : int or None
        Number of threads.
    """

    estimator: Any
    X: Any
    y: np.ndarray
    codes: np.ndarray
    sample_weight: np.ndarray | None
    folds: list[tuple[np.ndarray, np.ndarray]]
    score: Score
    seed: int
    n_jobs: int | None

    def __post_init__(self) -> None:
        #: The first failed fit.
        self.failure: Failure | None = None
        self.n_failures = 0
        self._rows_of_share: dict[float, list[np.ndarray]] = {}
        self._memory: dict[Any, Any] = {}

    @property
    def n_columns(self) -> int:
        """Number of columns; 1 if X is one-dimensional."""
        return int(self.X.shape[1]) if len(self.X.shape) > 1 else 1

    def trials(self, candidates: Sequence[Settings], rung: Rung) -> list[Trial]:
        """Return the trial of each candidate on a rung; all fits run together."""
        n_folds = rung.n_folds(len(self.folds))
        rows = self._rows(rung.row_share)[:n_folds]
        machines = [self._machine(settings, rung) for settings in candidates for _ in rows]
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the refit repeats warnings about the rows
            fitted = self._fit(machines, rows * len(candidates))
            fit_time = (time.perf_counter() - began) / len(machines)
            self._note(machine for machine in fitted if isinstance(machine, Failure))
            scored = in_threads(lambda k: self._scored(fitted[k], k % n_folds), range(len(machines)), self.n_jobs)
        parts = [scored[i : i + n_folds] for i in range(0, len(scored), n_folds)]
        return [Trial([score for score, _ in part], [fit_time] * n_folds, [t for _, t in part]) for part in parts]

    def _rows(self, share: float) -> list[np.ndarray]:
        """Return the training rows of each fold: the same arrays in each call, so that fits can share work."""
        if share not in self._rows_of_share:
            self._rows_of_share[share] = [sample_rows(train, self.codes, share, self.seed) for train, _ in self.folds]
        return self._rows_of_share[share]

    def _note(self, failures: Iterable[Failure]) -> None:
        for failure in failures:
            self.failure, self.n_failures = self.failure or failure, self.n_failures + 1

    def _machine(self, settings: Settings, rung: Rung) -> Any:
        machine = clone(self.estimator).set_params(**clone(settings, safe=False))
        prefix, last = machine_of(machine)
        if rung.passes is not None:
            machine.set_params(**{f"{prefix}max_iter": rung.passes})
        if rung.row_share < 1 and takes_matrix(last) and "C" in last.get_params():
            last.set_params(C=last.C / rung.row_share)  # type: ignore[attr-defined]  # it weighs a sum over rows
        return machine

    def _scored(self, machine: Any, fold: int) -> tuple[float, float]:
        """Return the score on the test rows of a fold, and the time in seconds."""
        if isinstance(machine, Failure):
            return float("nan"), 0.0
        began, test = time.perf_counter(), self.folds[fold][1]
        score = float(self.score(machine, rows_of(self.X, test), self.y[test]))
        return score, time.perf_counter() - began

    # Fits of learners, of pipelines that end in a learner, and of other estimators.

    def _fit(self, machines: Sequence[Any], rows: Sequence[np.ndarray]) -> list[Any]:
        first = machines[0]
        if takes_matrix(first):
            return _fitted(machines, self.X, self.y, rows, self.sample_weight, self.n_jobs, self._memory)
        if isinstance(first, Pipeline) and len(first) > 1 and takes_matrix(first[-1]):
            return self._fit_pipelines(machines, rows)
        return in_threads(lambda k: self._fit_any(machines[k], rows[k]), range(len(machines)), self.n_jobs)

    def _fit_pipelines(self, pipelines: Sequence[Pipeline], rows: Sequence[np.ndarray]) -> list[Any]:
        """Fit pipelines together if their first steps and rows are the same, and these steps once."""
        fitted: dict[int, Any] = {}
        for alike in _grouped(pipelines, rows):
            own = rows[alike[0]]
            y, weight = self.y[own], None if self.sample_weight is None else self.sample_weight[own]
            try:
                head = clone(pipelines[alike[0]][:-1])
                Z = head.fit_transform(rows_of(self.X, own), y)
                Z = check_matrix(clone(pipelines[alike[0]][-1]), Z, reset=True)
            except Exception as error:
                fitted |= dict.fromkeys(alike, Failure(error))
                continue
            last = [pipelines[k][-1] for k in alike]
            machines = _fitted(last, Z, y, [np.arange(len(own))] * len(last), weight, self.n_jobs)
            fitted |= {k: _joined(head, pipelines[k], machine) for k, machine in zip(alike, machines, strict=True)}
        return [fitted[k] for k in range(len(pipelines))]

    def weights(self, estimator: Any, rows: Any = slice(None)) -> dict[str, Any]:
        """Return the sample weights of some rows as an argument of `fit`; in a pipeline, of its last step."""
        if self.sample_weight is None:
            return {}
        return {f"{machine_of(estimator)[0]}sample_weight": self.sample_weight[rows]}

    def _fit_any(self, estimator: Any, rows: np.ndarray) -> Any:
        try:
            return estimator.fit(rows_of(self.X, rows), self.y[rows], **self.weights(estimator, rows))
        except Exception as error:
            return Failure(error)


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame."""
    return take_rows(X, rows) if is_foreign(X) else _safe_indexing(X, rows)


def _fitted(
    machines: Sequence[Any], X: Any, y: Any, rows: Any, weight: Any, n_jobs: int | None, memory: Any = None
) -> list[Any]:
    """Fit estimators together; if this fails, fit them one by one to find the ones that fail."""
    try:
        return list(fit_many(machines, X, y, rows, sample_weight=weight, n_jobs=n_jobs, memory=memory))
    except Exception as error:
        if len(machines) == 1:
            return [Failure(error)]
    alone = (_fitted([m], X, y, [own], weight, n_jobs) for m, own in zip(machines, rows, strict=True))
    return [fitted for (fitted,) in alone]


def _grouped(pipelines: Sequence[Pipeline], rows: Sequence[np.ndarray]) -> Iterator[list[int]]:
    """Yield the indices of pipelines that differ only in their last step and have the same rows."""
    groups = defaultdict(list)
    for k, pipeline in enumerate(pipelines):
        steps = pipeline[:-1].get_params()
        texts = sorted((name, repr(value)) for name, value in steps.items() if not hasattr(value, "get_params"))
        kinds = [type(step).__name__ for _, step in pipeline.steps[:-1]]
        groups[repr((texts, kinds)), id(rows[k])].append(k)
    yield from groups.values()


def _joined(head: Pipeline, pipeline: Pipeline, machine: Any) -> Any:
    """Return a fitted pipeline of fitted steps."""
    if isinstance(machine, Failure):
        return machine
    return Pipeline([*head.steps, (pipeline.steps[-1][0], machine)])
