"""What a second thread brings: fits with n_jobs 1 and 2 in turn, beside what the machine can give to two threads.

    POLYPLANE_DATA=... python -m benchmarks.peers.threads --repeats 7 --write

Others may use the machine, so each fit takes turns with two probes of the same length: one that only calculates, which
two threads finish up to twice as fast where there are two free cores, and one that only reads memory (the sum of an
array larger than the caches, as in STREAM), which they finish no faster where memory is the limit. Of all repetitions
the smallest time counts. "possible" is what free cores would give by the shares of the work alone: the CPU time of the
fit on one thread over that of the busier of two. For each fit the bytes of the rows that a second of it reads are
printed beside the probe's, and the planes are compared: they may not depend on the number of threads.

Seen so far only on two cores that others kept busy, where the probe that calculates gained 0.9 to 1.04 and no fit could
gain more (0.5 to 1.1): that says nothing about free cores. There "possible" was 1.6 to 2.0 for the polytopes of CPM and
1.2 to 1.5 for cutting planes, whose small quadratic problem and steps in Python stay on one thread. Memory was not the
limit: fits read 0.3 to 6 GB/s of rows, the probe 15 to 20.
"""

import argparse
import threading
import time
import warnings

import numpy as np
from benchmarks.data import one_class, pixels
from benchmarks.results import Results
from numba import njit
from scipy import sparse

from polyplane import ConvexPolytopeClassifier, CuttingPlaneSVC, PegasosSVC
from polyplane._threads import Team
from polyplane.datasets import load_dataset

MEGABYTE = 1e6


@njit(nogil=True)
def calculate(n):
    """Registers only."""
    x = 0.5
    for _ in range(n):
        x = x * 0.999 + 0.001
    return x


@njit(nogil=True, fastmath=True)
def total(values):
    """Memory only."""
    found = 0.0
    for i in range(values.shape[0]):
        found += values[i]
    return found


def seconds(function):
    """How long a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def cpu_times(function):
    """CPU time of each thread that takes part in a call, of those that start and stay included."""

    def read():
        alive = [thread.ident for thread in threading.enumerate() if thread.ident is not None]
        return {ident: time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in alive}

    before = read()
    kept = function()  # with its threads
    after = read()
    del kept
    return [seconds - before.get(ident, 0.0) for ident, seconds in after.items()]


def binary(name):
    """A set of two classes, float64 or float32 as it comes, features scaled where they are dense."""
    data = load_dataset(name)
    y = data.target == (2 if name == "covtype" else np.unique(data.target)[1])
    if name == "a9a":
        return sparse.csr_matrix(data.data, dtype=np.float64), y
    X = data.data.toarray() if sparse.issparse(data.data) else np.asarray(data.data)
    X = np.ascontiguousarray(X[:100_000], dtype=np.float32)
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-6), y[:100_000]


def cases():
    """The machines and their rows."""
    digits = one_class(pixels(), 2)
    mnist, ten = (digits.X[:30_000], digits.y[:30_000]), (digits.X[:30_000], pixels().y[:30_000])
    a9a, covtype = binary("a9a"), binary("covtype")
    polytopes = {"enclosed": "each", "alpha": 1e-4, "random_state": 0}
    yield "CPM, K=48, MNIST-2", ConvexPolytopeClassifier(48, max_iter=5, **polytopes), mnist
    yield "CPM, K=48, MNIST-2, no back-off", ConvexPolytopeClassifier(48, max_iter=5, backoff=0, **polytopes), mnist
    yield "CPM, K=16, a9a", ConvexPolytopeClassifier(16, max_iter=10, **polytopes), a9a
    yield "CPM, K=16, covtype", ConvexPolytopeClassifier(16, max_iter=5, **polytopes), covtype
    yield "Pegasos, 10 classes, MNIST", PegasosSVC(max_iter=5, random_state=0), ten
    yield "Cutting planes, a9a", CuttingPlaneSVC(1.0, max_iter=100), a9a
    yield "Cutting planes, covtype", CuttingPlaneSVC(0.01, max_iter=60), covtype
    yield "Cutting planes, MNIST-2", CuttingPlaneSVC(0.1, max_iter=60), mnist
    yield "Cutting planes, 10 classes, MNIST", CuttingPlaneSVC(1e-3, max_iter=15), ten


def probes(length):
    """Two probes that take about `length` seconds on one thread: functions of a team."""
    count = int(1e7 * length / max(min(seconds(lambda: calculate(10_000_000)) for _ in range(3)), 1e-9))
    values = np.ones(16_000_000)  # 128 MB
    passes = max(1, round(length / min(seconds(lambda: total(values)) for _ in range(3)) / 2))
    halves = np.split(values, 2)

    def arithmetic(team):
        team.map(lambda _: calculate(count // 2), range(2))

    def memory(team):
        team.map(lambda half: [total(half) for _ in range(2 * passes)], halves)

    return {"arithmetic": arithmetic, "memory": memory}, 2 * passes * values.nbytes


def passes_over(machine):
    """How often a fit reads its rows, skipped visits not counted."""
    if isinstance(machine, CuttingPlaneSVC):
        return machine.n_iter_ + 1
    polytopes = len(machine._state.polytopes)
    return polytopes * machine.n_iter_


def measure(machine, rows, repeats):
    """Smallest seconds of the fit and of the probes on one thread and on two, and whether the planes are the same."""
    X, y = rows
    nbytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
    warnings.simplefilter("ignore")  # about scales and cuts that do not suffice
    planes = [machine.set_params(n_jobs=n).fit(X, y).planes_ for n in (1, 2)]
    teams = {n: Team(n) for n in (1, 2)}
    length = seconds(lambda: machine.set_params(n_jobs=1).fit(X, y))
    others, read = probes(min(length, 0.5))
    found = {(name, n): [] for name in ("fit", *others) for n in (1, 2)}
    for _ in range(repeats):
        for n, team in teams.items():
            found["fit", n].append(seconds(lambda n=n: machine.set_params(n_jobs=n).fit(X, y)))
            for name, probe in others.items():
                found[name, n].append(seconds(lambda probe=probe, team=team: probe(team)))
    shares = [
        min(max(cpu_times(lambda n=n: machine.set_params(n_jobs=n).fit(X, y)._state)) for _ in range(repeats))
        for n in (1, 2)
    ]
    best = {key: min(times) for key, times in found.items()}
    gain = {f"gain_{name}": round(best[name, 1] / best[name, 2], 2) for name in ("fit", *others)}
    gain["gain_possible"] = round(shares[0] / shares[1], 2)
    rates = {
        f"{what}_{n}": round(size / best[name, n] / MEGABYTE)
        for n in (1, 2)
        for what, name, size in (("fit_MB_s", "fit", nbytes * passes_over(machine)), ("memory_MB_s", "memory", read))
    }
    return {"fit_1": round(best["fit", 1], 4), "fit_2": round(best["fit", 2], 4), **gain, **rates} | {
        "same_planes": planes[0] == planes[1]
    }


def line(name, got):
    """A line of the table."""
    gains = f"{got['gain_fit']:6.2f}{got['gain_possible']:10.2f}{got['gain_arithmetic']:12.2f}{got['gain_memory']:8.2f}"
    rates = f"{got['fit_MB_s_1']} {got['fit_MB_s_2']}, {got['memory_MB_s_1']} {got['memory_MB_s_2']}"
    same = "" if got["same_planes"] else "  OTHER PLANES"
    return f"{name:36}{got['fit_1']:9.3f}{got['fit_2']:8.3f}{gains}  {rates}{same}"


def main():
    """Measure, print, and where asked for write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="keep the figures in results/threads.json")
    options = parser.parse_args()
    results = Results(__file__, repeats=options.repeats)
    results.content["figures"].clear()  # times of different runs do not compare
    print(
        f"{'':36}{'1 thread':>9}{'2':>8}{'gain':>6}{'possible':>10}{'arithmetic':>12}{'memory':>8}  MB/s: fit, memory"
    )
    for name, machine, rows in cases():
        if options.write:
            got = results.get(name, lambda m=machine, r=rows: measure(m, r, options.repeats))
        else:
            got = measure(machine, rows, options.repeats)
        print(line(name, got), flush=True)


if __name__ == "__main__":
    main()
