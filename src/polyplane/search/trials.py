"""The trials of a search: candidates fitted and scored on folds, the table of their results, and checkpoints."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import hash as digest_of
from numpy.ma import MaskedArray
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from polyplane._array_api import in_threads, is_foreign, take_rows, to_numpy
from polyplane._plain import plain
from polyplane._prediction import check_matrix
from polyplane.base import takes_matrix
from polyplane.engine.run import Race
from polyplane.files import replace_file
from polyplane.learners.many import fit_many
from polyplane.search.candidates import ParameterValues, Rung, learner_of, plain_numbers, sample_rows, settings_key

TRIALS_FORMAT = "PlaneSearchCV 1"
#: Largest batch of fits, which takes some seconds: number of rows x features x classes, and number of candidates.
BATCH_WORK, LARGEST_BATCH = 6e8, 10


class Trial(NamedTuple):
    """Scores and times of a candidate on one rung, one per fold; the scores of failed fits are NaN."""

    scores: list[float]
    fit_times: list[float]
    score_times: list[float]

    @property
    def losses(self) -> np.ndarray:
        """The losses of a race."""
        return -np.array(self.scores)


@dataclass
class Trials:
    """The trials of a search: candidates are fitted on the training rows of folds and scored on their test rows.

    Parameters
    ----------
    estimator : estimator
        The estimator whose parameters are searched.
    X, y : array-like
        Rows and labels.
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
    candidates : list of dict
        The parameter settings to compare.
    rungs : list of Rung
        The resources of each rung.

    Attributes
    ----------
    finished : dict of (int, int) to Trial
        Finished trials by rung and candidate, in chronological order.
    failures : list of Exception
        The errors of failed fits.
    """

    estimator: Any
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    folds: list[tuple[np.ndarray, np.ndarray]]
    score: Callable[[Any, Any, Any], float]
    seed: int
    n_jobs: int | None
    candidates: list[ParameterValues]
    rungs: list[Rung]
    finished: dict[tuple[int, int], Trial] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)
    _memory: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: The training rows by rung and fold: the same arrays for the same rows, so that fits can share work.
        by_share = {
            share: [sample_rows(train, self.y, share, self.seed) for train, _ in self.folds]
            for share in {rung.row_share for rung in self.rungs}
        }
        self._rows = [by_share[rung.row_share][: rung.n_folds] for rung in self.rungs]

    def losses(self, candidates: Sequence[int], number: int) -> list[np.ndarray]:
        """Try candidates on a rung, both given by index; return their losses. All fits run together."""
        rung, before, began = self.rungs[number], self._before(number), time.perf_counter()
        n_known = 0 if before is None else self.rungs[before].n_folds
        rows = self._rows[number][n_known:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the refit repeats warnings about the rows
            settings = [self.candidates[candidate] for candidate in candidates for _ in rows]
            fitted = self._fit(settings, rows * len(candidates), rung)
            fit_time = (time.perf_counter() - began) / len(fitted)
            scored = in_threads(
                lambda k: self._scored(fitted[k], n_known + k % len(rows)), range(len(fitted)), self.n_jobs
            )
        self.failures += [estimator for estimator in fitted if isinstance(estimator, Exception)]
        for i, candidate in enumerate(candidates):
            scores, times = zip(*scored[i * len(rows) : (i + 1) * len(rows)], strict=True)
            known = Trial([], [], []) if before is None else self.finished[before, candidate]
            new = Trial([*scores], [fit_time] * len(rows), [*times])
            self.finished[number, candidate] = Trial(*(old + more for old, more in zip(known, new, strict=True)))
        return [self.finished[number, candidate].losses for candidate in candidates]

    def _before(self, number: int) -> int | None:
        """Return the rung before this one if its fits were of the same passes and rows, on the first of its folds."""
        same = number > 0 and self.rungs[number - 1][:2] == self.rungs[number][:2]
        return number - 1 if same else None

    def batch_size(self, number: int) -> int:
        """Return the number of candidates in a batch on a rung; independent of timing, so results are reproducible."""
        rung, n_columns = self.rungs[number], self.X.shape[1] if len(self.X.shape) > 1 else 1
        work = rung.n_visits * rung.n_folds * len(np.unique(self.y)) * n_columns
        return max(1, min(LARGEST_BATCH, int(BATCH_WORK / work)))

    @property
    def percent_done(self) -> int:
        """Percentage of the row visits that are done."""
        total = sum(rung.n_candidates * rung.n_visits * rung.n_folds for rung in self.rungs)
        done = sum(self.rungs[number].n_visits * self.rungs[number].n_folds for number, _ in self.finished)
        return 100 * done // total

    def ranked(self, race: Race[int], candidates: Sequence[int], number: int) -> list[int]:
        """Sort candidates by their score on a rung, the best first; an error if all of them failed."""
        ranked = race.ranked(candidates, number)
        if math.isnan(race.mean(ranked[0], number)):
            if not self.failures:
                raise ValueError("The scores of all candidates are NaN; check the scoring function.")
            raise self.failures[0]
        return ranked

    def _scored(self, estimator: Any, fold: int) -> tuple[float, float]:
        """Return the score on the test rows of a fold, and the time in seconds."""
        if isinstance(estimator, Exception):
            return float("nan"), 0.0
        began, test = time.perf_counter(), self.folds[fold][1]
        score = float(self.score(estimator, rows_of(self.X, test), self.y[test]))
        return score, time.perf_counter() - began

    def weights(self, rows: Any = slice(None)) -> dict[str, Any]:
        """Return the sample weights of some rows as an argument of `fit`; in a pipeline, of its last step."""
        if self.sample_weight is None:
            return {}
        return {f"{learner_of(self.estimator)[0]}sample_weight": self.sample_weight[rows]}

    def _fit(self, settings: Sequence[ParameterValues], rows: Sequence[np.ndarray], rung: Rung) -> list[Any]:
        """Return an estimator, or the error of its fit, for each setting; learners are fitted together."""
        estimators = [self._estimator_of(each, rung) for each in settings]
        prefix, last = learner_of(self.estimator)
        if not takes_matrix(last) or (prefix and len(self.estimator) == 1):
            return in_threads(
                lambda k: _attempt(self._fit_alone, estimators[k], rows[k]), range(len(rows)), self.n_jobs
            )
        if not prefix:
            return self._fit_together(estimators, self.X, self.y, rows, self.sample_weight, self._memory)
        alike = defaultdict(list)  # pipelines with the same rows that differ only in their last step
        for k, each in enumerate(settings):
            others = {name: value for name, value in each.items() if not name.startswith(prefix)}
            alike[settings_key(others), id(rows[k])].append(k)
        fitted: dict[int, Any] = {}
        for group in alike.values():
            found = _attempt(self._fit_pipelines, [estimators[k] for k in group], rows[group[0]])
            failed = isinstance(found, Exception)
            fitted |= zip(group, [found] * len(group) if failed else found, strict=True)
        return [fitted[k] for k in range(len(estimators))]

    def _estimator_of(self, settings: ParameterValues, rung: Rung) -> Any:
        estimator = clone(self.estimator).set_params(**clone(settings, safe=False))
        prefix, last = learner_of(estimator)
        if rung.passes is not None:
            estimator.set_params(**{f"{prefix}max_iter": rung.passes})
        if rung.row_share < 1 and takes_matrix(last) and "C" in last.get_params():
            last.set_params(C=last.C / rung.row_share)  # it weighs a sum over rows
        return estimator

    def _fit_alone(self, estimator: Any, rows: np.ndarray) -> Any:
        return estimator.fit(rows_of(self.X, rows), self.y[rows], **self.weights(rows))

    def _fit_pipelines(self, pipelines: Sequence[Pipeline], rows: np.ndarray) -> list[Any]:
        """Fit pipelines that differ only in their last step: the other steps once."""
        head, y = clone(pipelines[0][:-1]), self.y[rows]
        Z = check_matrix(clone(pipelines[0][-1]), head.fit_transform(rows_of(self.X, rows), y), reset=True)
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        last = [pipeline[-1] for pipeline in pipelines]
        estimators = self._fit_together(last, Z, y, [np.arange(len(rows))] * len(last), weight)
        name = pipelines[0].steps[-1][0]
        return [each if isinstance(each, Exception) else Pipeline([*head.steps, (name, each)]) for each in estimators]

    def _fit_together(
        self, learners: Sequence[Any], X: Any, y: Any, rows: Sequence[np.ndarray], weight: Any, memory: Any = None
    ) -> list[Any]:
        """Fit learners together; if this fails, fit them one by one to find the ones that fail."""
        how = {"sample_weight": weight, "n_jobs": self.n_jobs}
        found = _attempt(fit_many, learners, X, y, rows, memory=memory, **how)
        if not isinstance(found, Exception):
            return list(found)
        alone = [_attempt(fit_many, [m], X, y, [own], **how) for m, own in zip(learners, rows, strict=True)]
        return [each if isinstance(each, Exception) else each[0] for each in alone]


def _attempt(fit: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a fit, or its error."""
    try:
        return fit(*arguments, **options)
    except Exception as error:
        return error


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame."""
    return take_rows(X, rows) if is_foreign(X) else _safe_indexing(X, rows)


# Results and checkpoints.


def results_table(trials: Trials) -> dict[str, Any]:
    """Return a table with the keys of scikit-learn's `RandomizedSearchCV`, and "rung" and "n_resources".

    Folds that a rung does not use have the score NaN and are not part of the mean.
    """
    settings = [trials.candidates[candidate] for _, candidate in trials.finished]
    rung, found = np.array([rung for rung, _ in trials.finished]), trials.finished.values()
    table: dict[str, Any] = {}
    figures = {"fit_time": [trial.fit_times for trial in found], "score_time": [trial.score_times for trial in found]}
    figures["test_score"] = [trial.scores for trial in found]
    for name, by_trial in figures.items():
        table[f"mean_{name}"] = np.array([np.mean(own) for own in by_trial])
        table[f"std_{name}"] = np.array([np.std(own) for own in by_trial])
    for name in sorted({name for own in settings for name in own}):
        table[f"param_{name}"] = _column(name, settings)
    scores = zip_longest(*figures["test_score"], repeat(np.nan, len(trials.folds)), fillvalue=np.nan)
    table |= {f"split{fold}_test_score": np.array(own[:-1]) for fold, own in enumerate(scores)}
    # The best trial of the last rung has rank 1.
    worth = rankdata(np.nan_to_num(table["mean_test_score"], nan=-np.inf), method="dense") + rung * (len(rung) + 1)
    table["rank_test_score"] = rankdata(-worth, method="min").astype(np.int32)
    return table | {"params": settings, "rung": rung, "n_resources": np.array([trials.rungs[r].n_visits for r in rung])}


def _column(name: str, candidates: Sequence[ParameterValues]) -> MaskedArray:
    """Return the values of a parameter, numeric if possible; masked for candidates that do not set it."""
    present = [settings[name] for settings in candidates if name in settings]
    numbers = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present)
    column = MaskedArray(np.empty(len(candidates), dtype=np.array(present).dtype if numbers else object), mask=True)
    for i, settings in enumerate(candidates):
        if name in settings:
            column[i] = settings[name]
    return column


class Checkpoint:
    """A JSON file with the finished trials of a search, from which the search resumes.

    Parameters
    ----------
    path : path-like
        The file.
    trials : Trials
        The trials.
    scoring : str
        The name of the score.
    """

    def __init__(self, path: Any, trials: Trials, scoring: str) -> None:
        self.path, self.trials = os.fspath(path), trials
        parameters = trials.estimator.get_params().items()
        #: What determines the search; the file of a different search is rejected.
        self._header = {
            "format": TRIALS_FORMAT,
            "rows": _fingerprint(trials.X, trials.y, trials.sample_weight),
            "folds": _fingerprint(*(rows for fold in trials.folds for rows in fold)),
            "estimator": repr(sorted((name, repr(value)) for name, value in parameters)),
            "scoring": scoring,
            "rungs": repr([tuple(rung) for rung in trials.rungs]),
            "candidates": [_plain(settings) for settings in trials.candidates],
        }

    def write(self) -> None:
        """Replace the file."""
        rows = [
            {"rung": rung, "candidate": candidate, **plain(trial._asdict())}
            for (rung, candidate), trial in self.trials.finished.items()
        ]
        with replace_file(self.path) as file:
            file.write(json.dumps({**self._header, "trials": rows}, indent=1, allow_nan=False).encode())

    def read(self) -> None:
        """Add the finished trials in the file, if it exists."""
        if not Path(self.path).exists():
            return
        try:
            content = json.loads(Path(self.path).read_text(encoding="utf-8"))
            is_ours, found = content["format"] == TRIALS_FORMAT, dict(map(_read_trial, content["trials"]))
        except (ValueError, KeyError, TypeError):
            is_ours = False
        if not is_ours:
            raise ValueError(f"resume: {self.path} is not a checkpoint of PlaneSearchCV; use another file.")
        other = [name for name, value in self._header.items() if content.get(name) != value]
        if other:
            raise ValueError(
                f"resume: {self.path} belongs to a search with different {' and '.join(other)}; use another file, "
                "or start again with resume=False."
            )
        self.trials.finished |= found


def _read_trial(row: Mapping[str, Any]) -> tuple[tuple[int, int], Trial]:
    lists = ([math.nan if v is None else float(v) for v in row[name]] for name in Trial._fields)
    return (int(row["rung"]), int(row["candidate"])), Trial(*lists)


def _plain(settings: ParameterValues) -> ParameterValues:
    """Convert settings to JSON values."""
    values = plain_numbers(settings)
    for name, value in values.items():
        is_plain = value is None or isinstance(value, bool | int | str)
        if not is_plain and not (isinstance(value, float) and math.isfinite(value)):
            raise ValueError(
                f"checkpoint: {name}={value!r} is not a number or a string, which checkpoints cannot store; search "
                "over plain values, or omit checkpoint."
            )
    return values


def _fingerprint(*arrays: Any) -> str:
    """Return a string that identifies the content of arrays."""
    found: list[Any] = []
    for array in arrays:
        if sparse.issparse(array):
            found += [array.shape, *sparse.find(array)]
        else:
            found.append(to_numpy(array) if is_foreign(array) else np.asarray(array))
    return str(digest_of(found))
