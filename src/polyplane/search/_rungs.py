"""Rungs of a search: the passes, rows and folds that each candidate uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.base import takes_matrix

#: Smallest fraction of the passes and of the rows on the first rung.
LEAST_SHARE = 1 / 9
#: Smallest number of passes, of row visits and of training rows that are enough to compare candidates.
LEAST_PASSES, LEAST_VISITS, LEAST_ROWS = 5, 20_000, 500
#: A rung is omitted if its cost exceeds this fraction of the cost of the next one.
WORTH_A_RUNG = 0.7
#: Where passes are reduced by a factor, rows are reduced by its square root, but not below this number: short training
#: ranks settings much like long training, but few rows favour few planes. `benchmarks/peers/search_tables.py` compares
#: halving with a full search.
MANY_ROWS = 10_000
#: Largest batch of fits, which takes some seconds: number of rows x features x classes, and number of candidates.
BATCH_WORK, LARGEST_BATCH = 6e8, 10


class Rung(NamedTuple):
    """The resources of a fit.

    Parameters
    ----------
    passes : int or None
        The `max_iter` of the fit. If None, that of the estimator.
    row_share : float
        Fraction of the training rows of a fold.
    n_visits : int
        Row visits of a fit: training rows times passes, or training rows if the number of passes is unknown.
    fold_share : float
        Fraction of the folds that are used, at least two of them.
    """

    passes: int | None
    row_share: float
    n_visits: int
    fold_share: float = 1.0

    def n_folds(self, n_splits: int) -> int:
        """Return the number of folds that are used; these are the first ones."""
        return min(n_splits, max(2, math.ceil(self.fold_share * n_splits - 1e-9)))


def full_passes(machine: Any, searched: bool) -> int | None:
    """Return the number of passes of an estimator; None if a stopping rule or the search determines it."""
    if searched or not takes_matrix(machine):
        return None
    known = machine.get_params()
    return None if known.get("tol") is not None else known.get("max_iter")


def plan(passes: int | None, n_rows: int, n_candidates: int, factor: float | None) -> list[Rung]:
    """Plan the rungs of a search: each has more passes, rows and folds than the one before, and the last has all.

    The number of rungs is such that at least about `factor` candidates reach the last one.
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
    """Draw a stratified fraction of the rows; with the same seed, a smaller sample is a subset of a larger one."""
    if share == 1.0:
        return rows
    rng, place = np.random.default_rng(seed), np.empty(len(rows))
    for code in np.unique(codes[rows]):
        own = np.flatnonzero(codes[rows] == code)
        place[own] = rng.permutation(len(own)) / len(own)
    return np.sort(rows[np.argsort(place, kind="stable")[: math.ceil(share * len(rows))]])


def batches(candidates: Sequence[int], work: float) -> list[Sequence[int]]:
    """Divide candidates into batches, given the work of one; independent of timing, so results are reproducible."""
    size = max(1, min(LARGEST_BATCH, int(BATCH_WORK / work)))
    return [candidates[i : i + size] for i in range(0, len(candidates), size)]
