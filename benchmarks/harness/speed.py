"""No slower than an earlier revision: both are timed in turn, in one run.

``python -m benchmarks.harness.speed REVISION [WORD ...]`` prints, for each case or those with one of the words in their
names, the seconds of both and their ratio: the median over nine pairs of neighbouring measurements, processor time.
Without words it also writes results/speed.json.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.harness.results import ROOT
from benchmarks.harness.same_planes import committee, table
from benchmarks.harness.worktree import checked_out, output, process
from scipy import sparse
from sklearn.datasets import make_classification

import polyplane

PAIRS = 9


@cache
def rows(n_rows: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Made rows in float32."""
    X, y = make_classification(
        n_rows, n_features, n_informative=min(10, n_features), n_redundant=0, n_classes=n_classes, random_state=0
    )
    return (X / X.std(axis=0)).astype(np.float32), y


@cache
def sparse_rows(n_rows: int, n_features: int, per_row: int) -> tuple[Any, np.ndarray]:
    """Made CSR rows, of which the first feature tells the class."""
    rng = np.random.default_rng(0)
    indices = rng.integers(0, n_features, (n_rows, per_row)).astype(np.int32)
    values = rng.normal(size=n_rows * per_row).astype(np.float32)
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sparse.csr_matrix((values, indices.ravel(), indptr), shape=(n_rows, n_features))
    return X, (indices[:, 0] % 2).astype(int)


def fits(machine: Callable[[], Any], data: Callable[[], tuple[Any, np.ndarray]]) -> Callable[[], None]:
    return lambda: machine().fit(*data())


def predicts(machine: Callable[[], Any], data: Callable[[], tuple[Any, Any]], n_rows: int, repeats: int = 1) -> Any:
    """`predict` of the first rows; the model is fitted once."""
    model = cache(lambda: machine().fit(*data()))

    def run() -> None:
        for _ in range(repeats):
            model().predict(data()[0][:n_rows])

    return run


def steps(machine: Callable[[], Any], n_steps: int = 200) -> Callable[[], None]:
    """`partial_fit` on 100 rows again and again."""

    def run() -> None:
        X, y = rows(20_000, 50, 2)
        one = machine()
        for i in range(n_steps):
            one.partial_fit(X[100 * i % 20_000 :][:100], y[100 * i % 20_000 :][:100], classes=[0, 1])

    return run


def streams(machine: Callable[[], Any]) -> Callable[[], None]:
    """Batches of very sparse rows in a million features."""

    def run() -> None:
        X, y = sparse_rows(20_000, 1_000_000, 100)
        machine().fit_stream(((X[i : i + 1000], y[i : i + 1000]) for i in range(0, 20_000, 1000)), progressive=False)

    return run


def cases() -> dict[str, Callable[[], None]]:
    """What is timed."""
    cpm, pegasos = polyplane.ConvexPolytopeClassifier, polyplane.PegasosSVC
    mh, svc = polyplane.MultiHyperplaneClassifier, polyplane.CuttingPlaneSVC
    mixture, polyceptron = polyplane.PolyhedralMixtureClassifier, polyplane.PolyceptronClassifier
    two, ten = (lambda: rows(20_000, 50, 2)), (lambda: rows(20_000, 50, 10))
    wide = lambda: sparse_rows(20_000, 20_000, 60)  # noqa: E731
    seed: dict[str, Any] = {"random_state": 0}
    adaptive = polyplane.AdaptiveMultiHyperplaneClassifier
    mixed, small = cache(table), (lambda: rows(300, 10, 2))
    one_table = lambda: polyplane.TableClassifier(max_iter=20, **seed)  # noqa: E731
    return {
        "CPM, dense": fits(lambda: cpm(16, max_iter=20, **seed), two),
        "CPM, ten classes": fits(lambda: cpm(8, max_iter=5, **seed), ten),
        "CPM, CSR": fits(lambda: cpm(16, max_iter=5, **seed), wide),
        "CPM, defaults, 300 rows": fits(lambda: cpm(**seed), small),
        "Pegasos, dense": fits(lambda: pegasos(max_iter=100, **seed), two),
        "Pegasos, CSR": fits(lambda: pegasos(max_iter=40, **seed), wide),
        "multi-hyperplane": fits(lambda: mh(16, max_iter=5, **seed), ten),
        "multi-hyperplane, planes chosen": fits(lambda: mh(max_iter=3, **seed), lambda: rows(4_000, 20, 4)),
        "multi-hyperplane, hinge": fits(lambda: mh(16, loss="hinge", max_iter=5, **seed), ten),
        "committee of 5": fits(lambda: committee(n_planes=8, max_iter=5), ten),
        "table": fits(one_table, mixed),
        "GAMM": fits(lambda: adaptive(max_iter=5, **seed), two),
        "PLUME": fits(lambda: mixture(4, max_iter=40, tol=None, **seed), two),
        "SPLA1": fits(lambda: mixture(4, gating="hard", max_iter=40, tol=None, **seed), two),
        "Polyceptron": fits(lambda: polyceptron(4, max_iter=60, tol=None, **seed), two),
        "Polyceptron, online": fits(lambda: polyceptron(4, mode="online", max_iter=10, tol=None, **seed), two),
        "PC-SLP": fits(lambda: polyplane.SuccessiveLPClassifier(2, max_iter=3, tol=None), lambda: rows(400, 8, 2)),
        "OCA-T, dense": fits(lambda: svc(C=1e-3, max_iter=60, tol=1e-4), lambda: rows(40_000, 200, 2)),
        "OCA-E, dense": fits(lambda: svc(C=1e-3, max_iter=40, tol=1e-4, line_search="exact"), two),
        "OCA-T, CSR": fits(lambda: svc(C=1e-2, max_iter=60, tol=1e-4), wide),
        "OCA-T, ten classes": fits(lambda: svc(C=1e-3, max_iter=40, tol=1e-4), ten),
        "predict, multi-hyperplane, 20,000 rows": predicts(lambda: mh(16, max_iter=2, **seed), ten, 20_000, 5),
        "predict, CPM, one row": predicts(lambda: cpm(4, max_iter=2, **seed), small, 1, 300),
        "predict, table, 900 rows": predicts(one_table, mixed, 900, 5),
        "predict, table, one row": predicts(one_table, mixed, 1, 50),
        "partial_fit, CPM": steps(lambda: cpm(8, **seed)),
        "partial_fit, Pegasos": steps(lambda: pegasos(**seed)),
        "partial_fit, multi-hyperplane": steps(lambda: mh(4, **seed)),
        "partial_fit, multi-hyperplane, hinge": steps(lambda: mh(4, loss="hinge", **seed)),
        "partial_fit, GAMM": steps(lambda: adaptive(**seed)),
        "partial_fit, PLUME": steps(lambda: mixture(3, **seed)),
        "partial_fit, Polyceptron": steps(lambda: polyceptron(3, **seed)),
        "fit_stream, Pegasos, a million features": streams(lambda: pegasos(average=False, **seed)),
        "fit_stream, CPM, a million features": streams(lambda: cpm(8, **seed)),
    }


#: Code whose time counts in a process of its own.
PROCESSES = {
    "import polyplane": """
import sklearn.base, time
t = time.perf_counter()
import polyplane
print(time.perf_counter() - t)
""",
    "first fit of CPM in a process": """
import time, numpy as np
X = np.random.default_rng(0).normal(size=(200, 5)); y = X[:, 0] > 0
t = time.perf_counter()
from polyplane import ConvexPolytopeClassifier
ConvexPolytopeClassifier(2, max_iter=3, random_state=0).fit(X, y).predict(X)
print(time.perf_counter() - t)
""",
    "first fit of multi-hyperplane in a process": """
import time, numpy as np
X = np.random.default_rng(0).normal(size=(200, 5)); y = X[:, 0] > 0
t = time.perf_counter()
from polyplane import MultiHyperplaneClassifier
MultiHyperplaneClassifier(2, max_iter=3, random_state=0).fit(X, y).predict(X)
print(time.perf_counter() - t)
""",
}  # fmt: skip


def worker() -> None:
    """Time the cases whose names come in, one line each."""
    warnings.simplefilter("ignore")
    known = cases()
    for line in sys.stdin:
        began = time.process_time()
        known[line.strip()]()
        print(json.dumps(time.process_time() - began), flush=True)


@contextlib.contextmanager
def working(tree: Path) -> Any:
    """A function that times a case, or code in a process of its own, with the package of `tree`."""
    with process(tree, "-m", "benchmarks.harness.speed", "worker", stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None

        def timed(name: str) -> float:
            if name in PROCESSES:
                return float(output(tree, "-c", PROCESSES[name]))
            print(name, file=running.stdin, flush=True)
            return float(json.loads(running.stdout.readline()))

        yield timed
        running.stdin.close()


def main(revision: str, wanted: list[str]) -> None:
    """Time both in turn."""
    results = {}
    names = [name for name in (*cases(), *PROCESSES) if not wanted or any(word in name for word in wanted)]
    with checked_out(revision) as tree, working(tree) as before, working(ROOT) as now:
        for name in names:
            before(name), now(name)  # compiled, and in the caches
            pairs = [(before(name), now(name)) for _ in range(PAIRS)]
            old, new = (statistics.median(times) for times in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            results[name] = {"before": round(old, 4), "now": round(new, 4), "ratio": round(ratio, 3)}
            print(f"{name:<45} {old:8.4f} s {new:8.4f} s   {ratio:.3f}", flush=True)
    if not wanted:
        about = {"revision": revision, "numpy": np.__version__, "pairs": PAIRS, "clock": "processor time"}
        path = Path(__file__).parent / "results" / "speed.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"about": about, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        worker()
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "HEAD~1", sys.argv[2:])
