"""Errors by the number of training rows, on six real sets: `TableClassifier` beside others at their defaults.

    python -m benchmarks.peers.learning_curves                              # all that is left to measure
    python -m benchmarks.peers.learning_curves covtype --rows 100000        # one point of the curve of one set
    python -m benchmarks.peers.learning_curves adult --models TableClassifier --again
    python -m benchmarks.peers.learning_curves --show                       # what was measured so far, nothing else

The training rows of a set are put in the order of ``np.random.default_rng(0).permutation``; a point of the curve trains
on the first of them. All points of a set share its test rows: those of its own split, or the last 50,000 rows of the
permutation of covtype. Each fit has a process of its own, so that the peak of memory is that of this fit, in MB over
what the process holds with the data; "fit" are seconds of the clock on two threads, and "cpu" those of the processor.
Needs POLYPLANE_DATA, and LightGBM and CatBoost for their curves. Results of each set are in a file of its own.
"""

import argparse
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.data.splits import real
from benchmarks.data.tables import adult_rows, made, npz_rows
from benchmarks.harness.results import Results
from benchmarks.peers.table_classifier import LEAST, MODELS, is_installed, log_loss, made_with
from benchmarks.scale.measuring import in_a_fresh_process, peak_memory
from sklearn.pipeline import Pipeline

#: Test rows of covtype, which has no split of its own.
COVTYPE_TEST = 50_000
#: Models whose curves are measured, and the name of the parameter of those that can use two threads.
THREADS = {
    "TableClassifier": "n_jobs",
    "RandomForest": "n_jobs",
    "HistGB": None,
    "LightGBM": "n_jobs",
    "CatBoost": "thread_count",
}


def covtype():
    X, y = npz_rows("covtype")
    return (X[:-COVTYPE_TEST], y[:-COVTYPE_TEST]), (X[-COVTYPE_TEST:], y[-COVTYPE_TEST:])


def own_split(name):
    split = real(name)
    rows = np.random.default_rng(0).permutation(len(split.y))
    return made((split.X[rows], split.y[rows])), made((split.X_test, split.y_test))


def adult():
    (X, y), test = adult_rows()
    rows = np.random.default_rng(0).permutation(len(y))
    return (X.iloc[rows], y[rows]), test


#: The sets, and the numbers of rows of their curves.
SETS = {
    "covtype": (covtype, (5_000, 20_000, 50_000, 100_000, 250_000, 531_012)),
    "adult": (adult, (500, 2_000, 8_000, 32_561)),
    "ijcnn1": (partial(own_split, "ijcnn1"), (500, 2_000, 8_000, 20_000, 49_990)),
    "letter": (partial(own_split, "letter"), (500, 2_000, 5_000, 15_000)),
    "mnist": (partial(own_split, "mnist"), (500, 2_000, 8_000, 20_000, 60_000)),
    "poker": (partial(own_split, "poker"), (500, 2_000, 8_000, 25_010)),
}


def model_of(name):
    """A model at its defaults, on two threads."""
    model = MODELS[name][0]()
    if THREADS[name]:
        prefix = model.steps[-1][0] + "__" if isinstance(model, Pipeline) else ""
        model.set_params(**{prefix + THREADS[name]: 2})
    return model


def measure(name, n_rows, model_name):
    """The figures of one fit."""
    (X, y), (X_test, y_test) = SETS[name][0]()
    classes, X, y, model = np.unique(y), X[:n_rows].copy(), y[:n_rows].copy(), model_of(model_name)
    held, began, cpu_began = peak_memory(), time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu, most = time.perf_counter() - began, time.process_time() - cpu_began, peak_memory()
    probability = model.predict_proba(X_test)
    answers = np.asarray(model.classes_)[probability.argmax(axis=1)].astype(str)
    figures = {
        "error": 100 * float((answers != y_test).mean()),
        "loss": log_loss(model, probability, y_test, classes),
        "fit": seconds,
        "cpu": cpu,
        "memory": most - held,
    }
    return {key: round(value, 4) for key, value in figures.items()} | {"version": made_with(model_name)}


def results_of(name):
    return Results(str(Path(__file__).with_name(f"learning_curves_{name}.py")), seed=0, least_probability=LEAST)


def key_of(n_rows, model_name):
    return f"{n_rows}: {model_name}"


def show(name):
    """Errors of all models by the number of rows, and the time and the memory of each fit."""
    figures = results_of(name).figures
    kept = [(int(key.split(": ")[0]), key.split(": ")[1], own) for key, own in figures.items()]
    if not kept:
        return
    frame = pd.DataFrame([{"rows": n, "model": model, **own} for n, model, own in kept])
    models = [model for model in MODELS if model in set(frame["model"])]
    for field in ("error", "loss", "fit", "cpu", "memory"):
        print(f"\n{name}: {field}")
        print(frame.pivot_table(index="rows", columns="model", values=field)[models].round(3).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help=", ".join(SETS))
    parser.add_argument("--rows", type=int, nargs="*", help="only these numbers of rows")
    parser.add_argument("--models", nargs="*", default=[name for name in THREADS if is_installed(name)])
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    options = parser.parse_args()
    # OpenMP threads that wait for others sleep: on a busy machine, waiting would count as time of LightGBM.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for name in options.sets or SETS:
        for n_rows in () if options.show else SETS[name][1]:
            for model_name in options.models:
                if options.rows is not None and n_rows not in options.rows:
                    continue
                results, key = results_of(name), key_of(n_rows, model_name)  # read anew: others may run beside
                if options.again:
                    results.figures.pop(key, None)
                figures = results.get(key, partial(in_a_fresh_process, measure, name, n_rows, model_name))
                print(name, key, figures, flush=True)
        show(name)


if __name__ == "__main__":
    main()
