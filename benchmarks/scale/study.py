"""How time and memory grow: with rows, features, planes, threads and workers; and what a larger cluster would do.

Each point is a training of its own process. Made-up rows throughout, so that one thing varies at a time: CSR float32,
100 of the features of a row are not 0, two classes, one pass of the convex polytope machine as a stream; for workers,
epochs of it on a `LocalCluster`. Run from the repository root: ``python -m benchmarks.scale.study``; about ten minutes
on two idle cores.
"""

import os
import time
from pathlib import Path

import numpy as np
from benchmarks.harness.results import Results
from benchmarks.scale.measuring import in_a_fresh_process, peak_memory
from scipy import sparse

from polyplane import ConvexPolytopeClassifier

#: What a point has where nothing else is said.
USUAL = {"rows": 200_000, "features": 10_000, "planes": 16, "threads": 1}
SERIES = {
    "rows": [50_000, 100_000, 200_000, 400_000, 800_000],
    "features": [1_000, 10_000, 100_000, 1_000_000],
    "planes": [1, 4, 16, 64],
    "threads": [1, 2],
    "workers": [1, 2],
}
BATCH, ENTRIES = 10_000, 100


def batch(number, n_rows, n_features):
    """Rows whose class is the sign of what a few hundred hidden weights say of them."""
    rng = np.random.default_rng(number)
    indices = np.sort((n_features * rng.random((n_rows, ENTRIES), dtype=np.float32) ** 2).astype(np.int32), axis=1)
    values = rng.random((n_rows, ENTRIES), dtype=np.float32)
    weights = np.random.default_rng(1).normal(size=997).astype(np.float32)
    X = sparse.csr_matrix((values.ravel(), indices.ravel(), np.arange(0, values.size + 1, ENTRIES)))
    X.resize(n_rows, n_features)
    return X, (values * weights[indices % 997]).sum(axis=1) > 0


def stream(rows, features, planes, threads):
    """Seconds of training, without those of making the rows, and memory."""
    machine = ConvexPolytopeClassifier(planes, enclosed="each", alpha=1e-5, random_state=0, n_jobs=threads)
    machine.fit_stream([batch(0, 100, features)], classes=[False, True])  # compiles

    def batches():
        for number in range(rows // BATCH):
            yield batch(number, BATCH, features)

    before = peak_memory()
    began = time.perf_counter()
    machine.fit_stream(batches, classes=[False, True], progressive=False)
    seconds = time.perf_counter() - began - sum(machine.history_["reading"])
    return {"training": round(seconds, 3), "memory_mb": peak_memory(), "memory_before_mb": before}


def cluster(workers, features=10_000, planes=16, epochs=20):
    """Seconds of rounds of one epoch each on the usual rows, and of a round that has next to no rows to work on."""
    import dask
    from distributed import Client, LocalCluster

    from polyplane.dask import DaskPlaneClassifier

    machine = ConvexPolytopeClassifier(planes, enclosed="each", alpha=1e-5, max_iter=epochs, random_state=0)
    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0)
    with local, Client(local):

        def seconds(rows):
            parts = dask.persist(*[dask.delayed(batch, nout=2)(i, rows // workers, features) for i in range(workers)])
            X, y = ([part[i] for part in parts] for i in (0, 1))
            began = time.perf_counter()
            DaskPlaneClassifier(machine, rounds=epochs).fit(X, y)
            return time.perf_counter() - began

        seconds(500)  # compiles
        return {"training": round(seconds(USUAL["rows"]), 3), "round": round(seconds(500) / epochs, 4)}


def project(figures, rows=10**9, epochs=10):
    """Hours for many rows on N workers, by the formula in README.md, and where more of them no longer help."""
    per_row = figures["rows = 800000"]["training"] / 800_000
    one, two = (figures[f"workers = {n}"]["round"] for n in (1, 2))
    model = max(two - one, 1e-3)
    work = per_row * rows
    hours = {n: epochs * (work / n + one + n * model) / 3600 for n in (1, 2, 4, 8, 16, 64, 256, 1024, 4096)}
    return {
        "microseconds_per_row": round(1e6 * per_row, 3),
        "seconds_per_model": round(model, 4),
        "hours_by_workers": {str(n): round(value, 3) for n, value in hours.items()},
        "workers_that_help": int(np.sqrt(work / model)),
    }


#: Okabe and Ito's blue and vermilion.
TIME, MEMORY = "#0072B2", "#D55E00"
TITLES = {
    "rows": "Time grows with rows, memory does not",
    "features": "A million features cost their planes",
    "planes": "64 planes cost four times one",
    "threads": "Two threads",
    "workers": "Two Dask workers",
}


def draw(results, path):
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    figures = results.content["figures"]
    for ax, (name, values) in zip(axes.flat, SERIES.items(), strict=False):
        points = [figures[f"{name} = {value}"] for value in values]
        ax.plot(values, [point["training"] for point in points], "o-", color=TIME)
        ax.set_xscale("log" if max(values) > 2 else "linear")
        ax.set_xticks(values, [f"{value:,}" for value in values], fontsize=9)
        ax.minorticks_off()
        ax.set(xlabel=name, ylim=(0, None))
        ax.set_ylabel("training, s", color=TIME)
        ax.set_title(TITLES[name], loc="left", fontsize=12)
        if "memory_mb" in points[0]:
            twin = ax.twinx()
            twin.plot(values, [point["memory_mb"] for point in points], "s--", color=MEMORY)
            twin.set_ylim(0, 1.3 * max(point["memory_mb"] for point in points))
            twin.set_ylabel("memory, MB", color=MEMORY)
    projected, last = figures["10^9 rows"], axes.flat[-1]
    hours = sorted((int(n), value) for n, value in projected["hours_by_workers"].items())
    last.loglog(*zip(*hours, strict=True), "o-", color=TIME)
    last.set(xlabel="workers", ylabel="hours for ten epochs")
    last.set_title(
        f"10$^9$ rows: up to {figures['10^9 rows']['workers_that_help']} workers help", loc="left", fontsize=12
    )
    fig.savefig(path, dpi=100)


def main():
    results = Results(__file__, usual=USUAL, batch=BATCH, entries=ENTRIES, cores=os.cpu_count())
    for name, values in SERIES.items():
        for value in values:
            if name == "workers":
                found = results.get(f"{name} = {value}", lambda v=value: in_a_fresh_process(cluster, v))
            else:
                point = tuple((USUAL | {name: value}).values())
                found = results.get(f"{name} = {value}", lambda p=point: in_a_fresh_process(stream, *p))
            print(f"{name:9} {value:9} " + "  ".join(f"{key} {number}" for key, number in found.items()))
    results.content["figures"].pop("10^9 rows", None)
    print("10^9 rows:", results.get("10^9 rows", lambda: project(results.content["figures"])))
    draw(results, Path(__file__).parent / "results" / "study.png")


if __name__ == "__main__":
    main()
