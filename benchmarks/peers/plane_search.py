"""`PlaneSearchCV` beside scikit-learn's `RandomizedSearchCV`: the same machine, the same settings, the same folds.

Letter, 40 settings of the learner's own space in 5 folds, two threads against two processes; then the error of both
winners on the test rows. `--settings N` and `--rows N` make it smaller. Needs POLYPLANE_DATA; set OMP_NUM_THREADS=1
and OPENBLAS_NUM_THREADS=1.
"""

import argparse
import time
import warnings

import numpy as np
from benchmarks.data.splits import real
from benchmarks.harness.results import Results
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from polyplane import MultiHyperplaneClassifier, PlaneSearchCV
from polyplane.search.candidates import declared_space, draw_candidates

NAME, N_JOBS = "letter", 2
MACHINE = MultiHyperplaneClassifier(random_state=0)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def rows(n_rows):
    """Training and test rows, standardised beforehand: both searches see the same matrix."""
    split, scaler = real(NAME), StandardScaler()
    X = scaler.fit_transform(split.X[:n_rows])
    return X, split.y[:n_rows], scaler.transform(split.X_test), split.y_test


def figures(search, split):
    """Seconds of the search without the last fit, the best score, and the error of the best on test rows."""
    X, y, X_test, y_test = split
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some settings have more planes than a class has rows
        search.fit(X, y)
    seconds = time.perf_counter() - began - search.refit_time_
    error = 100 * (1 - search.score(X_test, y_test))
    # What chance does to a score of this size: its standard error over the folds.
    noise = search.cv_results_["std_test_score"][search.best_index_] / search.n_splits_**0.5
    return {
        "search_seconds": round(seconds, 2),
        "best_score": round(float(search.best_score_), 5),
        "standard_error": round(float(noise), 5),
        "test_error": round(error, 3),
        "fits": int(np.isfinite([search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)]).sum()),
        "best": search.best_params_,
    }


def ours(n_settings, n_rows):
    search = PlaneSearchCV(MACHINE, n_iter=n_settings, cv=FOLDS, random_state=0, n_jobs=N_JOBS)
    return figures(search, rows(n_rows))


def theirs(n_settings, n_rows):
    """The settings that `PlaneSearchCV` draws, each of them once."""
    split = rows(n_rows)
    drawn = draw_candidates(MACHINE, declared_space(MACHINE, np.unique(split[1])), n_settings, 0)
    settings = [{name: [value] for name, value in each.items()} for each in drawn]
    search = RandomizedSearchCV(MACHINE, settings, n_iter=len(settings), cv=FOLDS, random_state=0, n_jobs=N_JOBS)
    return figures(search, split)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=40)
    parser.add_argument("--rows", type=int)
    given = parser.parse_args()
    quick = given.settings != 40 or given.rows is not None
    results = Results(__file__, quick=quick, set=NAME, n_jobs=N_JOBS, settings=given.settings, rows=given.rows)
    found = {
        "PlaneSearchCV": results.get("PlaneSearchCV", lambda: ours(given.settings, given.rows)),
        "RandomizedSearchCV": results.get("RandomizedSearchCV", lambda: theirs(given.settings, given.rows)),
    }
    print(f"{'':20} {'fits':>5} {'search, s':>10} {'best score':>11} {'+-':>7} {'test error, %':>14}")
    for name, row in found.items():
        figure = f"{row['fits']:5} {row['search_seconds']:10.1f} {row['best_score']:11.4f} {row['standard_error']:7.4f}"
        print(f"{name:20} {figure} {row['test_error']:14.2f}   {row['best']}")
    times = [row["search_seconds"] for row in found.values()]
    print(f"PlaneSearchCV is {times[1] / times[0]:.1f} times as fast.")


if __name__ == "__main__":
    main()
