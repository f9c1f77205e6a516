"""What candidates are given on each rung of a search: passes, rows and folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.base import PlaneClassifier

#: The first rung has no less than this share of the passes and of the rows.
LEAST_SHARE = 1 / 9
#: Fewer passes, fewer row visits in all of them, and fewer training rows say too little about a candidate.
LEAST_PASSES, LEAST_VISITS, LEAST_ROWS = 5, 20_000, 500
#: A rung that costs more of the next one is left out.
WORTH_A_RUNG = 0.7
#: Where passes are cut, rows are cut by the root of it, and not below this number: short trainings rank settings much
#: as long ones do, few rows favour few planes. `benchmarks/peers/search_tables.py` compares halving with a full search.
MANY_ROWS = 10_000
#: A batch of fits takes some seconds: so many products of a row, a feature and a class, and so many candidates at most.
BATCH_WORK, LARGEST_BATCH = 6e8, 10


class Rung(NamedTuple):
    """What a fit is given.

    Parameters
    ----------
    passes : int or None
        Its `max_iter`; None: that of the estimator.
    row_share : float
        The share of the training rows of a fold.
    n_visits : int
        Row visits of a fit: training rows times passes, or training rows where passes are not counted.
    fold_share : float
        The share of the folds that are looked at, at least two of them.
    """

    passes: int | None
    row_share: float
    n_visits: int
    fold_share: float = 1.0

    def n_folds(self, n_splits: int) -> int:
        """How many of the folds are looked at, the first ones."""
        return min(n_splits, max(2, math.ceil(self.fold_share * n_splits - 1e-9)))


def full_passes(machine: Any, searched: bool) -> int | None:
    """The passes that a machine is known to make; None where it stops by itself, or where their number is searched."""
    if searched or not isinstance(machine, PlaneClassifier):
        return None
    known = machine.get_params()
    return None if known.get("tol") is not None else known.get("max_iter")


def plan(passes: int | None, n_rows: int, n_candidates: int, factor: float | None) -> list[Rung]:
    """The rungs of a search: each has more passes, rows and folds than the one before, and the last one all.

    There are no more than let about `factor` candidates come to the last one.
    """
    rungs = [_rung(passes, n_rows, 1.0)]
    if factor is None or n_candidates <= factor:
        return rungs
    n_cuts = int(min(math.log(n_candidates / factor, factor), math.log(1 / LEAST_SHARE, factor)) + 1e-9)
    for k in range(1, n_cuts + 1):
        rung = _rung(passes, n_rows, factor**-k)
        if rung.n_visits < WORTH_A_RUNG * rungs[0].n_visits:
            rungs.insert(0, rung._replace(fold_share=factor ** (-k / 2)))
    return rungs


def _rung(passes: int | None, n_rows: int, share: float) -> Rung:
    if passes is None:
        rows = min(n_rows, max(LEAST_ROWS, math.ceil(share * n_rows)))
        return Rung(None, rows / n_rows, rows)
    rows = min(n_rows, max(MANY_ROWS, math.ceil(share**0.5 * n_rows)))
    granted = min(passes, max(LEAST_PASSES, -(-LEAST_VISITS // rows), math.ceil(share * passes)))
    return Rung(None if granted == passes else granted, rows / n_rows, granted * rows)


def sample_rows(rows: np.ndarray, codes: np.ndarray, share: float, seed: int) -> np.ndarray:
    """A share of the rows with as much of each class; a smaller share is a part of a larger one."""
    if share == 1.0:
        return rows
    rng, place = np.random.default_rng(seed), np.empty(len(rows))
    for code in np.unique(codes[rows]):
        own = np.flatnonzero(codes[rows] == code)
        place[own] = rng.permutation(len(own)) / len(own)
    return np.sort(rows[np.argsort(place, kind="stable")[: math.ceil(share * len(rows))]])


def batches(candidates: Sequence[int], work: float) -> list[Sequence[int]]:
    """Candidates to be fitted together, given the work of one; no clock decides, so that results can be repeated."""
    size = max(1, min(LARGEST_BATCH, int(BATCH_WORK / work)))
    return [candidates[i : i + size] for i in range(0, len(candidates), size)]
