"""Hyper-parameters by held-out training rows. Nothing here ever sees a test row."""

import numpy as np
from sklearn.model_selection import train_test_split

#: After this many splits, so many candidates go on.
RUNGS = {1: 12, 2: 5}


def grid(**choices):
    """All combinations, as a list of dicts."""
    combinations = [{}]
    for name, values in choices.items():
        combinations = [c | {name: value} for c in combinations for value in values]
    return combinations


def choose(make, candidates, X, y, n_splits=5, rungs=RUNGS):
    """The candidate with the least mean error on held-out fifths of the rows, by successive halving.

    All candidates are trained on the first split; by default the best twelve meet on the second, and the best five on
    the rest.

    Parameters
    ----------
    make : callable
        Makes the machine from a candidate's settings.
    candidates : list of dict
        The settings that compete.
    X, y : arrays
        Training rows.
    n_splits : int, default=5
        Random splits, the same for all candidates.
    rungs : dict, default=RUNGS
        How many candidates are left after how many splits.
    """
    errors = [[] for _ in candidates]
    alive = list(range(len(candidates)))
    for split in range(n_splits):
        rows, held_out = train_test_split(np.arange(len(y)), test_size=0.2, random_state=split, stratify=y)
        for i in alive:
            machine = make(**candidates[i]).fit(X[rows], y[rows])
            errors[i].append(100 * (1 - machine.score(X[held_out], y[held_out])))
        alive.sort(key=lambda i: np.mean(errors[i]))
        alive = alive[: rungs.get(split + 1)]
    finalists = [{"settings": candidates[i], "error": round(float(np.mean(errors[i])), 3)} for i in alive]
    return {"settings": candidates[alive[0]], "finalists": finalists, "candidates": len(candidates)}
