"""What candidates are given on each rung of a search: passes, and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

#: The first rung has no less than this share of the passes and of the rows.
LEAST_SHARE = 1 / 9
#: Fewer passes, and fewer training rows, say too little about a candidate.
LEAST_PASSES, LEAST_ROWS = 5, 500


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
    """

    passes: int | None
    row_share: float
    n_visits: int


def full_passes(machine: Any, searched: bool) -> int | None:
    """The passes that a machine is known to make; None where it stops by itself, or where their number is searched."""
    known = machine.get_params()
    makes_all = "max_iter" in known and known.get("tol") is None
    return None if searched or not makes_all else int(known["max_iter"])


def plan(passes: int | None, n_rows: int, n_candidates: int, factor: float | None) -> list[Rung]:
    """The rungs of a search: each has `factor` times the passes, or rows, of the one before, and the last one all."""
    n_rungs = 1
    if factor is not None:
        n_rungs += int(min(math.log(n_candidates, factor), math.log(1 / LEAST_SHARE, factor)) + 1e-9)
    rungs: list[Rung] = []
    for k in reversed(range(n_rungs)):
        share = 1.0 if factor is None else factor**-k
        rung = _rung(passes, n_rows, share)
        if not rungs or rung != rungs[-1]:
            rungs.append(rung)
    return rungs


def _rung(passes: int | None, n_rows: int, share: float) -> Rung:
    if passes is not None:
        granted = min(passes, max(LEAST_PASSES, math.ceil(share * passes)))
        return Rung(None if granted == passes else granted, 1.0, granted * n_rows)
    granted = min(n_rows, max(LEAST_ROWS, math.ceil(share * n_rows)))
    return Rung(None, granted / n_rows, granted)


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
    size = max(LEAST_BATCH, int(BATCH_WORK / work))
    return [candidates[i : i + size] for i in range(0, len(candidates), size)]


#: A batch of fits takes a few seconds: so many products of a row, a feature and a class, but no fewer candidates.
BATCH_WORK, LEAST_BATCH = 4e8, 2
