"""What successive halving costs: `PlaneSearchCV` with and without it, the same settings and folds, over many tables.

Without halving it gives the scores of scikit-learn's `RandomizedSearchCV`, which a test asserts. Seconds are those of
the processor. `python -m benchmarks.peers.search_tables pima digits` measures these tables alone. Needs POLYPLANE_DATA.
"""

import sys
import time
import warnings

import numpy as np
from benchmarks.data.tables import TABLES, encoded
from benchmarks.harness.results import Results
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import FunctionTransformer

from polyplane import MultiHyperplaneClassifier, PlaneSearchCV

N_SETTINGS = 27
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def measure(name):
    """The best mean score in the folds, in per cent of error, by both searches."""
    X, y = TABLES[name]()
    X = np.ascontiguousarray(encoded(FunctionTransformer()).fit_transform(X), dtype=np.float32)
    figures = {}
    for label, factor in (("halving", 3), ("full", None)):
        search = PlaneSearchCV(
            MultiHyperplaneClassifier(random_state=0),
            n_iter=N_SETTINGS, cv=FOLDS, refit=False, factor=factor, random_state=0,
        )  # fmt: skip
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search.fit(X, y)
        figures[f"{label}_seconds"] = round(time.process_time() - began, 2)
        figures[f"{label}_rungs"] = int(search.cv_results_["rung"].max()) + 1
        figures[f"{label}_error"] = round(100 * (1 - search.best_score_), 3)
    table, best = search.cv_results_, search.best_index_
    noise = 100 * table["std_test_score"][best] / search.n_splits_**0.5
    default, median = (
        100 * (1 - score) for score in (table["mean_test_score"][0], np.median(table["mean_test_score"]))
    )
    return figures | {"default_error": round(default, 3), "median_error": round(median, 3), "noise": round(noise, 3)}


def main():
    results = Results(__file__, settings=N_SETTINGS)
    rows = {
        name: results.get(name, lambda name=name: measure(name))
        for name in TABLES
        if name in sys.argv[1:] or len(sys.argv) == 1
    }
    labels = " ".join(f"{label:>8}" for label in ("default", "median", "full", "halving"))
    print(f"{'error, %':12} {labels} {'noise':>6} {'rungs':>6} {'time, full / halving':>21}")
    for name, row in rows.items():
        errors = " ".join(f"{row[key + '_error']:8.2f}" for key in ("default", "median", "full", "halving"))
        ratio = row["full_seconds"] / row["halving_seconds"]
        print(f"{name:12} {errors} {row['noise']:6.2f} {row['halving_rungs']:6} {ratio:21.1f}")
    # On small tables there is a single rung, and both searches are the same.
    loss = [row["halving_error"] - row["full_error"] for row in rows.values() if row["halving_rungs"] > 1]
    if loss:
        print(
            f"Halving is {np.mean(loss):.2f} points worse on average over {len(loss)} tables, {max(loss):.2f} at most."
        )


if __name__ == "__main__":
    main()
