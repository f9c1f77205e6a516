"""`--tune`: a small search over the parameters that matter, by successive halving, within a time."""

from __future__ import annotations

import itertools
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError
from polyplane.cli._fitting import limited

if TYPE_CHECKING:
    import numpy as np

#: What is tried, learner by learner; the first values are the defaults.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "convex-polytope": {"alpha": [1e-4, 1e-5, 1e-3, 1e-2], "n_planes": [16, 4, 48]},
    "multi-hyperplane": {"scale": [2.5, 1.0, 6.0], "eta0": [0.3, 0.1, 1.0]},
    "mixture": {"n_planes": [2, 1, 4, 8], "alpha": [1e-3, 1e-5]},
    "polyceptron": {"n_planes": [2, 3, 5, 8], "mode": ["batch", "online"]},
    "svm": {"C": [1.0, 1e-3, 1e-2, 0.1, 10.0, 100.0]},
    "pegasos": {"alpha": [1e-4, 1e-6, 1e-5, 1e-3, 1e-2, 0.1]},
    "successive-lp": {"n_planes": [2, 3, 5, 8]},
}
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
        Their error on the rows held out, in per cent.
    n_tried : int
        Candidates that were tried.
    seconds : float
        Time that it took.
    """

    settings: dict[str, Any]
    error: float
    n_tried: int
    seconds: float


def tune(model: Any, learner: str, X: Any, y: np.ndarray, fixed: set[str], budget: float, seed: int) -> Tuned:
    """Search for the best parameters but for those that are `fixed`; each round keeps a third on thrice the rows."""
    from sklearn.model_selection import train_test_split

    began = time.perf_counter()
    candidates = _candidates(learner, fixed)
    try:
        split = train_test_split(X, y, test_size=HELD_OUT, random_state=seed, stratify=y)
    except ValueError as reason:
        raise UserError(f"--tune needs more rows of each class: {reason}") from None
    X_train, X_test, y_train, y_test = split
    sizes = _sizes(X_train.shape[0], len(candidates))
    best, n_tried = (float("inf"), candidates[0]), 0
    for size in sizes:
        results = []
        for candidate in candidates:
            left = budget - (time.perf_counter() - began)
            if left <= 0 and n_tried:
                break
            trained = _trained(model, candidate, X_train[:size], y_train[:size], len(y_train) / size, max(left, 0.1))
            error = 1.0 if trained is None else float((trained.predict(X_test) != y_test).mean())
            results.append((error, candidate))
            n_tried += 1
        # A round that was cut short is not compared with itself alone: the leaders of the one before stay in the race.
        if len(results) == len(candidates) or best[0] == float("inf"):
            best = min(results, key=lambda result: result[0])
        if len(results) < len(candidates):
            break
        ranked = sorted(results, key=lambda result: result[0])
        candidates = [candidate for _, candidate in ranked[: max(1, len(ranked) // KEEP)]]
    return Tuned(best[1], 100 * best[0], n_tried, time.perf_counter() - began)


def _candidates(learner: str, fixed: set[str]) -> list[dict[str, Any]]:
    """All combinations of what is to be searched, the defaults first."""
    grid = {name: values for name, values in GRIDS[learner].items() if name not in fixed}
    if not grid:
        raise UserError(f"--tune: --set leaves nothing to search of {', '.join(GRIDS[learner])}.")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _sizes(n_rows: int, n_candidates: int) -> list[int]:
    """Rows of each round: the last one has all."""
    n_rounds = 1
    while KEEP**n_rounds <= n_candidates and n_rows // KEEP**n_rounds >= FEWEST_ROWS:
        n_rounds += 1
    return [n_rows // KEEP**k for k in reversed(range(n_rounds))]


def _trained(model: Any, candidate: dict[str, Any], X: Any, y: np.ndarray, share: float, seconds: float) -> Any | None:
    """A machine with the parameters of a candidate; none where it cannot be trained on these rows.

    C weighs a sum over rows: on one row out of `share` it counts so many times more.
    """
    from sklearn.base import clone

    machine = clone(model).set_params(**candidate)
    if "C" in candidate:
        machine.set_params(C=candidate["C"] * share)
    if "verbose" in machine.get_params():
        machine.set_params(verbose=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with limited(machine, seconds):
                machine.fit(X, y)
        except ValueError:
            return None
    if any(str(warning.message).startswith("Interrupted") for warning in said):
        raise KeyboardInterrupt
    return machine
