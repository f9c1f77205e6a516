"""Results of a search: the table `cv_results_`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata

from polyplane.search._candidates import Settings
from polyplane.search._rungs import Rung


class Trial(NamedTuple):
    """Scores and times of a candidate on one rung, one per fold; the scores of failed fits are NaN."""

    scores: list[float]
    fit_times: list[float]
    score_times: list[float]

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(np.mean(self.scores))


#: The trials of a search by rung and candidate, in chronological order.
Trials = Mapping[tuple[int, int], Trial]


def best_of(trials: Trials, rung: int, candidates: Sequence[int]) -> list[int]:
    """Sort candidates by their score on a rung, the best first; ties keep their order, failures are last."""
    worth = [trials[rung, candidate].mean for candidate in candidates]
    order = np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")
    return [candidates[i] for i in order]


def results_table(
    candidates: Sequence[Settings], rungs: Sequence[Rung], trials: Trials, n_splits: int
) -> dict[str, Any]:
    """Return a table with the keys of scikit-learn's `RandomizedSearchCV`, and "rung" and "n_resources".

    Folds that a rung does not use have the score NaN and are not part of the mean.
    """
    own = [candidates[candidate] for _, candidate in trials]
    rung = np.array([rung for rung, _ in trials])
    table: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        table |= _mean_and_spread(name, [getattr(trial, f"{name}s") for trial in trials.values()])
    for name in sorted({name for settings in own for name in settings}):
        table[f"param_{name}"] = _column([settings.get(name, _absent) for settings in own])
    table["params"] = own
    scores = [trial.scores for trial in trials.values()]
    for fold in range(n_splits):
        table[f"split{fold}_test_score"] = np.array([own[fold] if fold < len(own) else np.nan for own in scores])
    table |= _mean_and_spread("test_score", scores)
    table["rank_test_score"] = _ranks(rung, table["mean_test_score"])
    return table | {"rung": rung, "n_resources": np.array([rungs[r].n_visits for r in rung])}


def _mean_and_spread(name: str, figures: Sequence[Sequence[float]]) -> dict[str, np.ndarray]:
    return {
        f"mean_{name}": np.array([np.mean(own) for own in figures]),
        f"std_{name}": np.array([np.std(own) for own in figures]),
    }


def _ranks(rung: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Rank trials by rung, then by score; the best trial of the last rung has rank 1."""
    worth = rankdata(np.nan_to_num(score, nan=-np.inf), method="dense") + rung * (len(score) + 1)
    return rankdata(-worth, method="min").astype(np.int32)


_absent = object()


def _column(values: Sequence[Any]) -> MaskedArray:
    """Return the values of a parameter, numeric if possible; masked for candidates that do not set it."""
    present = [value for value in values if value is not _absent]
    numbers = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present)
    column = MaskedArray(np.empty(len(values), dtype=np.array(present).dtype if numbers else object), mask=True)
    for i, value in enumerate(values):
        if value is not _absent:
            column[i] = value
    return column
