"""What a search has found, as the table `cv_results_`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata

from polyplane.model_selection._candidates import Settings
from polyplane.model_selection._rungs import Rung


class Trial(NamedTuple):
    """A candidate on one rung: figures of each fold. The scores of fits that failed are NaN."""

    scores: list[float]
    fit_times: list[float]
    score_times: list[float]

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(np.mean(self.scores))


#: The trials of a search in the order in which they were made, by rung and candidate.
Trials = Mapping[tuple[int, int], Trial]


def best_of(trials: Trials, rung: int, candidates: Sequence[int]) -> list[int]:
    """Candidates by their score on a rung, the best first; ties in the order given, failures last."""
    worth = [trials[rung, candidate].mean for candidate in candidates]
    order = np.argsort(-np.nan_to_num(worth, nan=-np.inf), kind="stable")
    return [candidates[i] for i in order]


def results_table(candidates: Sequence[Settings], rungs: Sequence[Rung], trials: Trials) -> dict[str, Any]:
    """The keys of scikit-learn's `RandomizedSearchCV`, and "rung" and "n_resources"."""
    own = [candidates[candidate] for _, candidate in trials]
    rung = np.array([rung for rung, _ in trials])
    table: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        times = np.array([getattr(trial, f"{name}s") for trial in trials.values()])
        table |= {f"mean_{name}": times.mean(axis=1), f"std_{name}": times.std(axis=1)}
    for name in sorted({name for settings in own for name in settings}):
        table[f"param_{name}"] = _column([settings.get(name, _absent) for settings in own])
    table["params"] = own
    scores = np.array([trial.scores for trial in trials.values()])
    table |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
    table |= {"mean_test_score": scores.mean(axis=1), "std_test_score": scores.std(axis=1)}
    table["rank_test_score"] = _ranks(rung, scores.mean(axis=1))
    return table | {"rung": rung, "n_resources": np.array([rungs[r].n_visits for r in rung])}


def _ranks(rung: np.ndarray, score: np.ndarray) -> np.ndarray:
    """1 for the best on the last rung: whoever has come further stands before all who have not."""
    worth = rankdata(np.nan_to_num(score, nan=-np.inf), method="dense") + rung * (len(score) + 1)
    return rankdata(-worth, method="min").astype(np.int32)


_absent = object()


def _column(values: Sequence[Any]) -> MaskedArray:
    """The values of a parameter, as numbers where they are numbers; masked where a candidate does not name it."""
    present = [value for value in values if value is not _absent]
    numbers = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present)
    column = MaskedArray(np.empty(len(values), dtype=np.array(present).dtype if numbers else object), mask=True)
    for i, value in enumerate(values):
        if value is not _absent:
            column[i] = value
    return column
