"""How fast the Convex Polytope Machine is: back-off against none, and epochs against SGDClassifier's.

Needs POLYPLANE_DATA. All on one thread; times of one run are compared as ratios, since machines differ.
"""

import time

import numpy as np
from benchmarks.harness.results import Results
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from polyplane import ConvexPolytopeClassifier, PegasosSVC
from polyplane.datasets import load_dataset


def timed(function):
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def backoff():
    """MNIST-2, K=48, 8M visits: seconds and errors with and without back-off, over five seeds."""
    data = load_dataset("mnist")
    X, X_test = (sparse.csr_matrix(x.reshape(len(x), -1) / np.float32(255)) for x in (data.data, data.data_test))
    figures = {}
    for name, longest in (("with", 31), ("without", 0)):
        runs = []
        for seed in range(5):
            machine = ConvexPolytopeClassifier(
                48,
                enclosed="each",
                alpha=1000 / 8e6,
                max_iter=133,
                min_entropy=0.8,
                average=False,
                backoff=longest,
                random_state=seed,
            )
            _, seconds = timed(lambda machine=machine: machine.fit(X, data.target == 2))
            runs.append((seconds, 100 * (1 - machine.score(X_test, data.target_test == 2))))
        figures[f"seconds_{name}"], figures[f"error_{name}"] = np.round(np.mean(runs, axis=0), 4).tolist()
        figures[f"error_std_{name}"] = round(float(np.std([error for _, error in runs])), 4)
    figures["speedup"] = round(figures["seconds_without"] / figures["seconds_with"], 2)
    return figures


def epochs(n_epochs):
    """Median time of a fit of some epochs on RCV1, relative to SGDClassifier's."""
    data = load_dataset("rcv1_subsets")
    X, y = data.data.astype(np.float32), data.target
    settings = {"max_iter": n_epochs, "tol": None, "random_state": 0}
    machines = {
        "SGDClassifier": SGDClassifier(loss="hinge", **settings),
        "PegasosSVC": PegasosSVC(average=False, **settings),
        "K=16, one polytope": ConvexPolytopeClassifier(16, enclosed=1, average=False, **settings),
        "K=16, two polytopes": ConvexPolytopeClassifier(16, enclosed="each", average=False, **settings),
    }
    seconds = {name: [] for name in machines}
    for _ in range(25):
        for name, machine in machines.items():
            seconds[name].append(timed(lambda machine=machine: machine.fit(X, y))[1])
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    ratios = {name: round(median / medians["SGDClassifier"], 3) for name, median in medians.items()}
    return ratios | {"SGDClassifier_ms_per_epoch": round(1000 * medians["SGDClassifier"] / n_epochs, 3)}


if __name__ == "__main__":
    # Times of different runs do not compare: measure anew each time.
    results = Results(__file__, seeds=list(range(5)))
    results.content["figures"].clear()
    for n in (1, 20):
        print(f"\nFit of {n} epoch(s) on rcv1_subsets (CSR float32), times SGDClassifier's:")
        for name, value in results.get(f"rcv1_subsets, {n} epochs", lambda n=n: epochs(n)).items():
            print(f"  {name:30} {value:8.3f}")
    print("\nMNIST-2, K=48, 8M visits, min_entropy 0.8, mean of 5 seeds:")
    for name, value in results.get("MNIST-2 back-off", backoff).items():
        print(f"  {name:30} {value:8.3f}")
