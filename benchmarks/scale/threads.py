"""Two threads against one, for all that runs in threads: the ratio of the least times of several runs, in turns.

A busy machine spoils such ratios: the cores that two threads had in use tell how far to trust them.

Run from the repository root: ``python -m benchmarks.scale.threads [--repeats N]``. Needs POLYPLANE_DATA.
"""

import argparse
import time

import numpy as np
from benchmarks.harness.results import Results
from benchmarks.scale.measuring import least_seconds
from joblib import parallel_config
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsOneClassifier

from polyplane import ConvexPolytopeClassifier, CuttingPlaneSVC, MultiHyperplaneClassifier
from polyplane.datasets import load_covtype, load_mnist


def mnist(n_rows=60_000):
    data = load_mnist()
    return data.data[:n_rows].reshape(n_rows, -1).astype(np.float32) / np.float32(255), data.target[:n_rows]


def covtype():
    data = load_covtype()
    X = data.data.toarray() if sparse.issparse(data.data) else data.data
    X = X.astype(np.float32)
    largest = np.abs(X).max(axis=0)
    X /= np.where(largest > 0, largest, 1)
    y = data.target
    return X, y if len(np.unique(y)) == 2 else y == 2


def both_sides(dense):
    """The convex polytope machine on "2" against the rest, K=48."""
    X, y = mnist()
    X = X if dense else sparse.csr_matrix(X)

    def call(n_jobs):
        machine = ConvexPolytopeClassifier(
            48, enclosed="each", alpha=1e-4, max_iter=60, min_entropy=0.8, random_state=0, n_jobs=n_jobs
        )
        return lambda: machine.fit(X, y == 2).planes_

    return call


def one_against_one():
    """45 pairs of digits; scikit-learn is told to use threads."""
    X, y = mnist(20_000)

    def call(n_jobs):
        pair = ConvexPolytopeClassifier(16, enclosed="each", alpha=1e-3, max_iter=30, random_state=0)
        machine = OneVsOneClassifier(pair)

        def fit():
            with parallel_config(backend="threading", n_jobs=n_jobs):
                return [pair.planes_ for pair in machine.fit(X, y).estimators_]

        return fit

    return call


def folds():
    """Cross-validation, in threads."""
    X, y = mnist(20_000)

    def call(n_jobs):
        def validate():
            machine = ConvexPolytopeClassifier(16, enclosed="each", alpha=1e-3, max_iter=30, random_state=0)
            with parallel_config(backend="threading", n_jobs=n_jobs):
                return cross_val_score(machine, X, y == 2, cv=4).tolist()

        return validate

    return call


def cuts():
    """The cutting plane on covtype, to a gap of 1 %."""
    X, y = covtype()
    return lambda n_jobs: lambda: CuttingPlaneSVC(C=1e-3, n_jobs=n_jobs).fit(X, y).planes_


def prediction(n_planes):
    """Labels of 60,000 dense rows."""
    X, y = mnist()
    machine = MultiHyperplaneClassifier(n_planes, max_iter=1, random_state=0).fit(X[:5000], y[:5000])

    def call(n_jobs):
        def predict():
            return machine.planes_.predict(X, n_jobs=n_jobs).tolist()

        return predict

    return call


TASKS = {
    "CPM, both sides, CSR": lambda: both_sides(dense=False),
    "CPM, both sides, dense": lambda: both_sides(dense=True),
    "one against one": one_against_one,
    "cross-validation": folds,
    "cutting plane, covtype": cuts,
    "prediction, 640 planes": lambda: prediction(64),
}


def measure(task, repeats):
    """Least times with one and with two threads, their ratio, and the share of the cores that two threads used."""
    call = task()
    one, two = call(1), call(2)
    same = one() == two()
    seconds = least_seconds(one, two, repeats=repeats)
    began, used = time.perf_counter(), time.process_time()
    two()
    cores = (time.process_time() - used) / (time.perf_counter() - began)
    return {
        "one": round(seconds[0], 3),
        "two": round(seconds[1], 3),
        "ratio": round(seconds[0] / seconds[1], 2),
        "cores_in_use": round(cores, 2),
        "same_result": same,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results = Results(__file__, repeats=arguments.repeats)
    results.content["figures"].clear()  # times of different runs do not compare
    for name, task in TASKS.items():
        found = results.get(name, lambda task=task: measure(task, arguments.repeats))
        print(
            f"{name:26} one {found['one']:7.3f} s  two {found['two']:7.3f} s  ratio {found['ratio']:.2f}  "
            f"cores in use {found['cores_in_use']:.2f}  same result {found['same_result']}"
        )
