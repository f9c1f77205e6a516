"""Two worker processes on one machine against the plain fit: errors, and times.

For each set and learner the plain estimator, on one thread, and `DaskPlaneClassifier` on a `LocalCluster` of two
workers with one thread each, which hold the rows; times without the start of the cluster and without compiling.

Run from the repository root: ``python -m benchmarks.scale.dask_workers``. Needs POLYPLANE_DATA.
"""

import time

import dask
import dask.array as da
import numpy as np
from benchmarks.data.splits import Split, real
from benchmarks.harness.results import Results
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from polyplane import (
    ConvexPolytopeClassifier,
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    PolyceptronClassifier,
    PolyhedralMixtureClassifier,
)
from polyplane.dask import DaskPlaneClassifier

ROUNDS = {
    "CPM": ConvexPolytopeClassifier(16, enclosed="each", alpha=1e-4, max_iter=60, random_state=0),
    "multi-hyperplane": MultiHyperplaneClassifier(16, max_iter=30, random_state=0),
}
EXACT = {
    "cutting plane": CuttingPlaneSVC(C=1e-3),
    "mixture": PolyhedralMixtureClassifier(4, max_iter=30),
    "batch Polyceptron": PolyceptronClassifier(4, max_iter=50),
}


def prepared_set(name):
    """Training and test rows; the kinds of features of ijcnn1 are standardised. Rows in a random order."""
    split = real(name)
    order = np.random.default_rng(0).permutation(len(split.y))
    X, y = split.X[order], split.y[order]
    if name == "mnist":
        return Split(X, y, split.X_test, split.y_test)
    scaler = StandardScaler().fit(X)
    return Split(scaler.transform(X), y, scaler.transform(split.X_test), split.y_test)


def on_workers(client, X, y):
    """Half of the rows in each worker, as arrays of Dask."""
    half = -(-len(y) // 2)
    blocks = [(X[:half], y[:half]), (X[half:], y[half:])]
    parts = [[dask.delayed(future) for future in client.scatter([block[i] for block in blocks])] for i in (0, 1)]
    arrays = [
        [da.from_delayed(part, block[i].shape, block[i].dtype) for part, block in zip(parts[i], blocks, strict=True)]
        for i in (0, 1)
    ]
    return da.concatenate(arrays[0]), da.concatenate(arrays[1])


def timed(function):
    began = time.perf_counter()
    return function(), time.perf_counter() - began


def compare(client, machine, split, repeats):
    """Errors, least times, and the largest difference between the planes."""
    DaskPlaneClassifier(machine).fit(*on_workers(client, split.X[:2000], split.y[:2000]))  # compiles in the workers
    rows = on_workers(client, split.X, split.y)
    clone(machine).fit(split.X[:2000], split.y[:2000])
    seconds = [np.inf, np.inf]
    for _ in range(repeats):
        local, plain = timed(lambda: clone(machine).fit(split.X, split.y))
        distributed, on_cluster = timed(lambda: DaskPlaneClassifier(machine).fit(*rows))
        seconds = [min(seconds[0], plain), min(seconds[1], on_cluster)]
    found = distributed.to_local()
    same = found.coef_.shape == local.coef_.shape
    return {
        "error_local": round(100 * (1 - local.score(split.X_test, split.y_test)), 3),
        "error_dask": round(100 * (1 - found.score(split.X_test, split.y_test)), 3),
        "seconds_local": round(seconds[0], 2),
        "seconds_dask": round(seconds[1], 2),
        "largest_difference": float(np.abs(found.coef_ - local.coef_).max()) if same else None,
    }


#: Dask's workers return freed memory to the system at once, which halves the speed of matrix products in small batches:
#: the same temporary arrays are allocated at every step.
KEEP_MEMORY = {f"distributed.nanny.pre-spawn-environ.MALLOC_{name}_THRESHOLD_": 1 << 28 for name in ("TRIM", "MMAP")}


def main(repeats=3):
    results = Results(__file__, workers=2, threads=1, rounds=DaskPlaneClassifier(CuttingPlaneSVC()).rounds)
    results.content["figures"].clear()  # times of different runs do not compare
    dask.config.set(KEEP_MEMORY)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0)
    with cluster, Client(cluster) as client:
        tasks = [(set_name, name, machine) for set_name in ("mnist", "ijcnn1") for name, machine in ROUNDS.items()]
        tasks += [("ijcnn1", name, machine) for name, machine in EXACT.items()]
        for set_name, name, machine in tasks:
            split = prepared_set(set_name)
            if name in EXACT:  # float64: what differs then is the order of sums alone
                split = Split(split.X.astype(np.float64), split.y, split.X_test.astype(np.float64), split.y_test)
            found = results.get(f"{name}, {set_name}", lambda m=machine, s=split: compare(client, m, s, repeats))
            print(
                f"{name + ', ' + set_name:26} error {found['error_local']:6.2f} -> {found['error_dask']:6.2f} %  time "
                f"{found['seconds_local']:6.2f} -> {found['seconds_dask']:6.2f} s  "
                f"largest difference {found['largest_difference']:.2g}"
            )


if __name__ == "__main__":
    main()
