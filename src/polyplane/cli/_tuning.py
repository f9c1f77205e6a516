"""`--tune`: a small search over the parameters that matter, by successive halving, within a time."""

from __future__ import annotations

import itertools
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError

if TYPE_CHECKING:
    from polyplane.io import Rows
    from polyplane.scaling import AffineScaling

#: The share of the candidates that goes on, with that many times the rows.
KEEP = 3
#: Fewer rows than these say little.
FEWEST_ROWS = 500
HELD_OUT = 0.2


class Tuned(NamedTuple):
    """The outcome of a search.

    Parameters
    ----------
    settings : dict
        The best parameters.
    error : float
        Their error on the held-out rows, in per cent.
    n_tried : int
        Candidates that were tried.
    seconds : float
        Time that it took.
    """

    settings: dict[str, Any]
    error: float
    n_tried: int
    seconds: float


def tune(model: Any, rows: Rows, scaling: AffineScaling | None, fixed: set[str], seconds: float, seed: int) -> Tuned:
    """Search for the best parameters but for those that are `fixed`; each round keeps a third on thrice the rows."""
    from sklearn.model_selection import train_test_split

    began = time.perf_counter()
    candidates = _candidates(model._declaration.tuning, fixed)
    try:
        split = train_test_split(rows.X, rows.y, test_size=HELD_OUT, random_state=seed, stratify=rows.y)
    except ValueError as reason:
        raise UserError(f"--tune needs more rows of each class: {reason}") from None
    X_train, X_test, y_train, y_test = split
    best, n_tried = (float("inf"), candidates[0]), 0
    for size in _sizes(len(y_train), len(candidates)):
        results = []
        for candidate in candidates:
            left = seconds - (time.perf_counter() - began)
            if left <= 0 and n_tried:
                break
            trial = _trial(model, candidate, len(y_train) / size)
            fitted = _fitted(trial, X_train[:size], y_train[:size], scaling, max(left, 0.1))
            results.append((float((trial.predict(X_test) != y_test).mean()) if fitted else 1.0, candidate))
            n_tried += 1
        # A round that was cut short is not compared with itself alone: the leaders of the one before stay in the race.
        if len(results) == len(candidates) or best[0] == float("inf"):
            best = min(results, key=lambda result: result[0])
        if len(results) < len(candidates):
            break
        ranked = sorted(results, key=lambda result: result[0])
        candidates = [candidate for _, candidate in ranked[: max(1, len(ranked) // KEEP)]]
    return Tuned(best[1], 100 * best[0], n_tried, time.perf_counter() - began)


def _candidates(tuning: dict[str, list[Any]], fixed: set[str]) -> list[dict[str, Any]]:
    """All combinations of what is to be searched, the defaults first."""
    grid = {name: values for name, values in tuning.items() if name not in fixed}
    if not grid:
        raise UserError(f"--tune: --set leaves nothing to search of {', '.join(tuning)}.")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _sizes(n_rows: int, n_candidates: int) -> list[int]:
    """Rows of each round: the last one has all."""
    n_rounds = 1
    while KEEP**n_rounds <= n_candidates and n_rows // KEEP**n_rounds >= FEWEST_ROWS:
        n_rounds += 1
    return [n_rows // KEEP**k for k in reversed(range(n_rounds))]


def _trial(model: Any, candidate: dict[str, Any], share: float) -> Any:
    """An estimator with the parameters of a candidate, for one row out of `share`."""
    from sklearn.base import clone

    from polyplane.cli._learners import set_known

    trial = clone(model).set_params(**candidate)
    set_known(trial, verbose=0)
    if "C" in candidate:  # it weighs a sum over rows
        trial.set_params(C=candidate["C"] * share)
    return trial


def _fitted(trial: Any, X: Any, y: Any, scaling: AffineScaling | None, seconds: float) -> bool:
    """Train an estimator; False where it cannot be trained on these rows."""
    from polyplane.engine.run import Limits

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trial._fit(X, y, None, Limits(seconds), scaling)
        except ValueError:
            return False
    return True
