"""Every estimator learns the model that it learned at an earlier revision.

``python -m benchmarks.harness.same_planes REVISION [WORD ...]`` prints the cases that differ; words select cases by
parts of their names, such as "stream" or "CPM". Each learner is trained by `fit`, `partial_fit`, `fit_stream` and on a
Dask cluster, on dense and CSR rows, in float32 and float64, on three data sets, and its planes are compared: they are
the same to the bit, or within 1e-9 of their largest value, or they differ. Of committees, tables and compressed models
the class scores and probabilities are compared, to 1e-6.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.harness.results import ROOT
from benchmarks.harness.worktree import checked_out, output
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import polyplane

BATCHES = 6
#: Largest differences that pass, relative to the largest value.
PLANES, SCORES = 1e-9, 1e-6
#: Cases whose scores are compared, since their fitted form may change.
BY_SCORES = ("committee", "compressed", "TableClassifier")
Rows = tuple[Any, np.ndarray]


def learners() -> dict[str, Callable[[], Any]]:
    """How each is made, by name."""
    cpm, mh = polyplane.ConvexPolytopeClassifier, polyplane.MultiHyperplaneClassifier
    adaptive, mixture = polyplane.AdaptiveMultiHyperplaneClassifier, polyplane.PolyhedralMixtureClassifier
    svc, polyceptron = polyplane.CuttingPlaneSVC, polyplane.PolyceptronClassifier
    seed: dict[str, Any] = {"random_state": 0}
    lbfgs = {"solver": "lbfgs", "inside": 1, "alpha": 1e-3, "max_iter": 30, **seed}
    article = {"radius": None, "alpha": 0.0, "class_weight": "balanced"}
    return {
        "CPM": partial(cpm, 4, max_iter=12, **seed),
        "CPM, defaults": partial(cpm, max_iter=12, **seed),
        "CPM, entropy, last planes": partial(cpm, 4, max_iter=12, min_entropy=0.8, average=False, backoff=0, **seed),
        "CPM, one side": partial(cpm, 4, max_iter=12, enclosed=1, **seed),
        "CPM, early stopping": partial(cpm, 4, max_iter=12, early_stopping=True, n_iter_no_change=3, **seed),
        "worst-case margin": partial(polyplane.WorstCasePolytopeClassifier, 4, max_iter=12, **seed),
        "Pegasos": partial(polyplane.PegasosSVC, max_iter=12, **seed),
        "multi-hyperplane": partial(mh, max_iter=6, **seed),
        "multi-hyperplane, 5 planes, decay": partial(mh, 5, alpha=0.1, max_iter=6, **seed),
        "multi-hyperplane, hinge": partial(mh, 5, loss="hinge", max_iter=6, **seed),
        "GAMM": partial(adaptive, max_iter=6, **seed),
        "AMM": partial(adaptive, growth=0.0, prune=10.0, max_iter=6, prune_every=500, **seed),
        "MM": partial(adaptive, n_planes=3, growth=0.0, assignment="epoch", average_fraction=0.0, max_iter=6, **seed),
        "PLUME": partial(mixture, 3, n_init=2, gamma=1.0, **lbfgs),
        "PLUME, Newton, either side": partial(mixture, 2, solver="newton", max_iter=10, **seed),
        "SPLA1": partial(mixture, 3, gating="hard", **lbfgs),
        "Polyceptron": partial(polyceptron, 3, n_init=2, average=True, inside=1, max_iter=60, **seed),
        "Polyceptron, online": partial(polyceptron, 3, mode="online", inside=1, average=False, max_iter=10, **seed),
        "PC-SLP": partial(polyplane.SuccessiveLPClassifier, 2, n_init=1, max_iter=4, inside=1, **article),
        "OCA-T": partial(svc, C=0.01, tol=1e-3, max_iter=60),
        "OCA-E": partial(svc, C=0.01, tol=1e-3, line_search="exact", max_iter=60),
        "CPA": partial(svc, C=0.01, tol=1e-2, line_search="none", max_iter=60),
        "OCA-T, one-vs-rest": partial(svc, C=0.01, tol=1e-3, multi_class="ovr", max_iter=40),
    }


def committee(**settings: Any) -> Any:
    """Five multi-hyperplane classifiers; an estimator of its own before `n_estimators`."""
    if "n_estimators" in signature(polyplane.MultiHyperplaneClassifier).parameters:
        return polyplane.MultiHyperplaneClassifier(n_estimators=5, random_state=0, **settings)
    return polyplane.CommitteeClassifier(5, random_state=0, **settings)


def data_sets() -> dict[str, Rows]:
    """Ten classes of images; two classes of measurements; two classes of a checkerboard."""
    digits, labels = load_digits(return_X_y=True)
    cells, ill = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    board = rng.uniform(-1, 1, size=(1500, 2))
    colour = (np.floor(2 * board) % 2).sum(axis=1) % 2
    return {
        "digits": (digits[:1000] / 16, labels[:1000]),
        "breast cancer": (StandardScaler().fit_transform(cells), ill),
        "checkerboard": (board, colour.astype(int)),
    }


def table() -> Rows:
    """Numbers, a category, a boolean and a date, with missing values; three classes."""
    rng = np.random.default_rng(0)
    n_rows = 900
    size, colour = rng.normal(size=n_rows), rng.choice(["red", "green", "blue"], n_rows)
    score = size**2 + (colour == "red") - rng.exponential(size=n_rows)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, size),
            "weight": rng.lognormal(size=n_rows),
            "colour": np.where(rng.random(n_rows) < 0.1, None, colour),
            "new": rng.random(n_rows) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n_rows), unit="D"),
        }
    )
    return frame, np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.7])]


def batches_of(X: Any, y: np.ndarray) -> list[Rows]:
    """The rows in a few batches."""
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    return [(take(part), y[part]) for part in np.array_split(np.arange(len(y)), BATCHES)]


def by_fit(estimator: Any, X: Any, y: np.ndarray) -> Any:
    return estimator.fit(X, y)


def by_partial_fit(estimator: Any, X: Any, y: np.ndarray) -> Any:
    for part in batches_of(X, y):
        estimator.partial_fit(*part, classes=np.unique(y))
    return estimator


def by_stream(estimator: Any, X: Any, y: np.ndarray) -> Any:
    return estimator.fit_stream(batches_of(X, y), classes=np.unique(y), passes=2)


def by_table_stream(estimator: Any, X: Any, y: np.ndarray) -> Any:
    return estimator.fit_stream(batches_of(X, y), classes=np.unique(y), first_rows=300)


def by_dask(estimator: Any, X: Any, y: np.ndarray) -> Any:
    import dask.array as da
    from dask import delayed

    from polyplane.dask import DaskPlaneClassifier

    if "n_init" in estimator.get_params():
        estimator.set_params(n_init=1)  # more starts would move rows
    if sparse.issparse(X):
        rows, labels = ([delayed(part[i]) for part in batches_of(X, y)[:3]] for i in range(2))
    else:
        rows, labels = da.from_array(X, chunks=(len(y) // 3 + 1, -1)), da.from_array(y, chunks=len(y) // 3 + 1)
    return DaskPlaneClassifier(estimator, rounds=3).fit(rows, labels).to_local()


def by_compression(estimator: Any, X: Any, y: np.ndarray) -> Any:
    return polyplane.compress(estimator.fit(X, y), X, y, max_bytes=2_000, max_iter=5, random_state=0)


def planes_of(estimator: Any, X: Any) -> np.ndarray:
    planes = estimator.planes_
    return np.concatenate([np.ravel(part) for part in (planes.coef, planes.intercept, planes.indptr)])


def scores_of(estimator: Any, X: Any) -> np.ndarray:
    """Class scores and, if it is not a compressed model, probabilities."""
    parts = [estimator.decision_function(X)]
    parts += [] if hasattr(estimator, "max_bytes") else [estimator.predict_proba(X)]
    return np.concatenate([np.ravel(part) for part in parts])


Case = tuple[str, Callable[[], np.ndarray]]


def cases() -> Iterator[Case]:
    """Each case by name, with the numbers that are compared."""
    ways = {"fit": by_fit, "partial_fit": by_partial_fit, "stream": by_stream, "dask": by_dask}
    for set_name, (X, y) in data_sets().items():
        for dtype in (np.float64, np.float32):
            for form, matrix in (("dense", np.asarray), ("CSR", sparse.csr_matrix)):
                where, rows = f"{set_name}, {dtype.__name__}, {form}", matrix(X.astype(dtype))
                for way, train in ways.items():
                    if way == "dask" and (dtype == np.float32 or set_name == "checkerboard"):
                        continue  # minutes, for nothing new
                    for name, make in learners().items():
                        if set_name == "digits" and name == "PC-SLP":
                            continue  # a linear program of minutes
                        two = name.startswith(("PLUME", "SPLA1", "Poly", "PC", "CPM, one", "worst"))
                        labels = (y == 1).astype(int) if two else y
                        yield f"{where}, {way}: {name}", partial(_found, planes_of, train, make, rows, labels)
                make = partial(committee, n_planes=4, max_iter=6)
                yield f"{where}, fit: committee", partial(_found, scores_of, by_fit, make, rows, y)
        make = partial(committee, max_iter=6)
        yield f"{set_name}, fit: committee, planes chosen", partial(_found, scores_of, by_fit, make, X, y)
        make = partial(polyplane.MultiHyperplaneClassifier, 4, max_iter=6, random_state=0)
        yield f"{set_name}, fit: compressed", partial(_found, scores_of, by_compression, make, X, y)
    ways = {"fit": by_fit, "partial_fit": by_partial_fit, "stream": by_table_stream}
    for way, train in ways.items():
        for n_estimators in (1, 3):
            make = partial(polyplane.TableClassifier, n_estimators, max_iter=6, random_state=0)
            name = f"mixed table, {way}: TableClassifier({n_estimators})"
            yield name, partial(_found, scores_of, train, make, *table())


def _found(numbers: Any, train: Any, make: Callable[[], Any], X: Any, y: np.ndarray) -> np.ndarray:
    """The numbers of a model; a text if the revision does not offer this way of training."""
    try:
        model = train(make(), X, y)
    except (ValueError, AttributeError, TypeError) as error:
        return np.array(f"refused, {type(error).__name__}")
    return numbers(model, X)


def probe(path: str, words: list[str]) -> None:
    """Write the numbers of the cases to a file."""
    warnings.simplefilter("ignore")
    from dask.distributed import Client

    found: dict[str, Any] = {}
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        for name, numbers in cases():
            if all(word in name for word in words):
                found[name] = numbers()
                if len(found) % 50 == 0:
                    print(f"{len(found)} cases: {name}", file=sys.stderr, flush=True)
    np.savez(path, **found)


def difference(before: np.ndarray, now: np.ndarray) -> float:
    """The largest difference, relative to the largest value; infinite if the one is refused or has another size."""
    if np.array_equal(before, now):
        return 0.0
    if before.shape != now.shape or "U" in (before.dtype.kind, now.dtype.kind):
        return np.inf
    return float(np.abs(before - now).max() / max(np.abs(before).max(), np.finfo(float).tiny))


def main(revision: str, words: list[str]) -> int:
    """Compare; return the number of cases that differ."""
    counts: Counter[str] = Counter()
    with checked_out(revision) as tree, tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.npz" for name in ("before", "now")]
        for file, where in zip(files, (tree, ROOT), strict=True):
            output(where, "-m", "benchmarks.harness.same_planes", "probe", str(file), *words)
        before, now = (dict(np.load(file)) for file in files)
    for name, found in now.items():
        gap = difference(before[name], found)
        allowed = SCORES if any(word in name for word in BY_SCORES) else PLANES
        verdict = "refused" if found.dtype.kind == "U" and not gap else _verdict(gap, allowed)
        counts[verdict] += 1
        if verdict not in ("same", "refused"):
            print(f"{verdict:8} {gap:8.1e}  {name}" + (f": {before[name]} -> {found}" if found.ndim == 0 else ""))
    print(f"{len(now)} cases: " + ", ".join(f"{counts[v]} {v}" for v in ("same", "close", "differs", "refused")))
    return counts["differs"]


def _verdict(gap: float, allowed: float) -> str:
    if gap == 0:
        return "same"
    return "close" if gap <= allowed else "differs"


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        probe(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(min(1, main(sys.argv[1] if len(sys.argv) > 1 else "HEAD~1", sys.argv[2:])))
