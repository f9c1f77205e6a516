"""Every learner finds the planes that it found at an earlier revision, to the last bit.

Run ``python -m benchmarks.harness.same_planes REVISION``; it prints what differs. Each learner is trained by `fit`,
`partial_fit`, `fit_stream` and on a Dask cluster, on dense and CSR rows, in float32 and float64, on three data sets.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.harness.worktree import ROOT, checked_out, run_in
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import polyplane

#: Whether this is the package with one engine: some parameters have other names since.
NEW = hasattr(polyplane, "AdaptiveMultiHyperplaneClassifier")
BATCHES = 6


def adaptive(**parameters: Any) -> Any:
    """The papers' multi-hyperplane machines."""
    if NEW:
        return polyplane.AdaptiveMultiHyperplaneClassifier(**parameters, random_state=0)
    average = {"average": parameters.pop("average_fraction")} if "average_fraction" in parameters else {}
    return polyplane.MultiHyperplaneClassifier(init="zero", **average, **parameters, random_state=0)


def machines() -> dict[str, Any]:
    """What is trained, by name."""
    cpm, mh = polyplane.ConvexPolytopeClassifier, polyplane.MultiHyperplaneClassifier
    mixture, svc = polyplane.PolyhedralMixtureClassifier, polyplane.CuttingPlaneSVC
    either_side = {} if NEW else {"inside": "auto"}
    # Parameters whose defaults have changed since, where both revisions have them.
    has_lbfgs = hasattr(mixture, "standardize")
    climb = {"solver": "lbfgs" if has_lbfgs else "bfgs", "inside": 1, "alpha": 1e-3, "random_state": 0}
    article = {"radius": None, "alpha": 0.0, "class_weight": "balanced"} if has_lbfgs else {}
    last_planes = {"inside": 1, "average": False, "random_state": 0}
    return {
        "CPM": cpm(4, max_iter=12, random_state=0),
        "CPM, entropy, last planes": cpm(4, max_iter=12, min_entropy=0.8, average=False, backoff=0, random_state=0),
        "CPM, one side": cpm(4, max_iter=12, **{"enclosed" if NEW else "sides": 1}, random_state=0),
        "CPM, early stopping": cpm(4, max_iter=12, early_stopping=True, n_iter_no_change=3, random_state=0),
        "Pegasos": polyplane.PegasosSVC(max_iter=12, random_state=0),
        "multi-hyperplane": mh(max_iter=6, random_state=0),
        "multi-hyperplane, 5 planes, decay": mh(5, alpha=0.1, max_iter=6, random_state=0),
        "multi-hyperplane, hinge": mh(5, loss="hinge", max_iter=6, random_state=0),
        "GAMM": adaptive(max_iter=6),
        "AMM": adaptive(growth=0.0, prune=10.0, max_iter=6, prune_every=500),
        "MM": adaptive(n_planes=3, growth=0.0, assignment="epoch", average_fraction=0.0, max_iter=6),
        "PLUME": mixture(3, n_init=2, gamma=1.0, max_iter=30, **climb),
        "PLUME, Newton, either side": mixture(2, solver="newton", **either_side, max_iter=10, random_state=0),
        "SPLA1": mixture(3, gating="hard", max_iter=30, **climb),
        "Polyceptron": polyplane.PolyceptronClassifier(
            3, n_init=2, average=True, inside=1, max_iter=60, random_state=0
        ),
        "Polyceptron, online": polyplane.PolyceptronClassifier(3, mode="online", max_iter=10, **last_planes),
        "PC-SLP": polyplane.SuccessiveLPClassifier(2, n_init=1, max_iter=4, inside=1, **article),
        "OCA-T": svc(C=0.01, tol=1e-3, max_iter=60),
        "OCA-E": svc(C=0.01, tol=1e-3, line_search="exact", max_iter=60),
        "CPA": svc(C=0.01, tol=1e-2, line_search="none", max_iter=60),
        "OCA-T, one-vs-rest": svc(C=0.01, tol=1e-3, multi_class="ovr", max_iter=40),
    }


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
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


def batches_of(X: Any, y: np.ndarray) -> list[tuple[Any, np.ndarray]]:
    """The rows in a few batches."""
    return [(X[part], y[part]) for part in np.array_split(np.arange(len(y)), BATCHES)]


def by_fit(machine: Any, X: Any, y: np.ndarray) -> Any:
    return machine.fit(X, y)


def by_partial_fit(machine: Any, X: Any, y: np.ndarray) -> Any:
    for part in batches_of(X, y):
        machine.partial_fit(*part, classes=np.unique(y))
    return machine


def by_stream(machine: Any, X: Any, y: np.ndarray) -> Any:
    return machine.fit_stream(batches_of(X, y), classes=np.unique(y), passes=2)


def by_dask(machine: Any, X: Any, y: np.ndarray) -> Any:
    import dask.array as da
    from dask import delayed

    from polyplane.dask import DaskPlaneClassifier

    if "n_init" in machine.get_params():
        machine.set_params(n_init=1)  # more starts would move rows
    parts = batches_of(X, y)[:3] if sparse.issparse(X) else None
    if parts is None:
        rows, labels = da.from_array(X, chunks=(len(y) // 3 + 1, -1)), da.from_array(y, chunks=len(y) // 3 + 1)
    else:
        rows, labels = ([delayed(part[i]) for part in parts] for i in range(2))
    return DaskPlaneClassifier(machine, rounds=3).fit(rows, labels).to_local()


WAYS = {"fit": by_fit, "partial_fit": by_partial_fit, "stream": by_stream, "dask": by_dask}
#: What cannot be done: the attempt is refused in both revisions.
REFUSED = (ValueError, AttributeError, TypeError)


def cases() -> Iterator[tuple[str, Any]]:
    """Each case by name, with the planes that it finds."""
    for set_name, (X, y) in data_sets().items():
        for dtype in (np.float64, np.float32):
            for form, matrix in (("dense", np.asarray), ("CSR", sparse.csr_matrix)):
                rows = matrix(X.astype(dtype))
                for way, train in WAYS.items():
                    if way == "dask" and (dtype == np.float32 or set_name == "checkerboard"):
                        continue  # minutes, for nothing new
                    for name, machine in machines().items():
                        two = name.startswith(("PLUME", "SPLA1", "Poly", "PC", "CPM, one"))
                        if set_name == "digits" and name == "PC-SLP":
                            continue  # a linear program of minutes
                        labels = (y == 1).astype(int) if two else y
                        key = f"{set_name}, {dtype.__name__}, {form}, {way}: {name}"
                        yield key, _planes(train, machine, rows, labels)


def _planes(train: Any, machine: Any, X: Any, y: np.ndarray) -> Any:
    try:
        return train(machine, X, y).planes_
    except REFUSED:
        return None


def digest(planes: Any) -> str:
    """The planes in a few letters."""
    if planes is None:
        return "refused"
    parts = (planes.coef, planes.intercept, planes.indptr)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]


def probe() -> None:
    """Print the digests of all cases as JSON."""
    warnings.simplefilter("ignore")
    from dask.distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        print(json.dumps({name: digest(planes) for name, planes in cases()}))


def main(revision: str) -> int:
    """Compare; return the number of cases that differ."""
    with checked_out(revision) as tree:
        before, now = (run_in(where, "benchmarks.harness.same_planes", "probe") for where in (tree, ROOT))
    differing = sorted(name for name in before if before[name] != now[name])
    for name in differing:
        print(f"differs  {name}: {before[name]} -> {now[name]}")
    refused = sum(value == "refused" for value in now.values())
    print(
        f"{len(now)} cases: {len(now) - len(differing) - refused} the same, {len(differing)} differ, {refused} refused"
    )
    return len(differing)


if __name__ == "__main__":
    if sys.argv[1:] == ["probe"]:
        probe()
    else:
        sys.exit(min(1, main(sys.argv[1] if len(sys.argv) > 1 else "HEAD~1")))
