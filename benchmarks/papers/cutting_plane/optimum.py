"""Not in the paper: how far from the optimum CuttingPlaneSVC ends, against LIBLINEAR run to convergence.

``python -m benchmarks.papers.cutting_plane.optimum``, with POLYPLANE_DATA set.
"""

import time
import warnings
from functools import partial

import numpy as np
from benchmarks.harness.experiment import Experiment, Figure, Row, Table, main
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC

from polyplane import CuttingPlaneSVC
from polyplane.datasets import load_dataset

ALL_TOL = (1e-2, 1e-3, 1e-4)
PROTOCOL = """\
Eight sets with two classes beside LinearSVC(loss="hinge", tol=1e-8, max_iter=1_000_000) and four with more beside
LinearSVC(multi_class="crammer_singer", ...), with the same C and a penalised intercept in both. C is small enough for
LIBLINEAR to converge in about a minute. For each tol: the excess over LIBLINEAR's objective, which must not be larger
than the certified gap, which must be smaller than tol. Quick: the sets of a few hundred rows."""
#: Sets of a few hundred rows.
SMALL = 4


def small(name):
    data = load_dataset(name)
    complete = ~np.isnan(data.data.astype(np.float64)).any(axis=1)
    return StandardScaler().fit_transform(data.data[complete].astype(np.float64)), data.target[complete]


def as_is(name):
    data = load_dataset(name)
    return data.data.astype(np.float64), data.target


def mnist(n_rows=60_000):
    data = load_dataset("mnist")
    return sparse.csr_matrix(data.data[:n_rows].reshape(n_rows, -1) / 255.0), data.target[:n_rows]


def news20():
    data = load_dataset("news20")
    return normalize(data.data.astype(np.float64)), data.target


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


# name: (rows, C)
SETS = {
    "heart, dense": (partial(small, "heart"), 1.0),
    "ionosphere, dense": (partial(small, "ionosphere"), 1.0),
    "pima, dense": (partial(small, "pima"), 1.0),
    "breast_cancer_wisconsin, dense": (partial(small, "breast_cancer_wisconsin"), 1.0),
    "a9a, sparse": (partial(as_is, "a9a"), 0.01),
    "w8a, sparse": (partial(as_is, "w8a"), 0.1),
    "ijcnn1, sparse": (partial(as_is, "ijcnn1"), 0.1),
    "rcv1_subsets, sparse": (partial(as_is, "rcv1_subsets"), 1.0),
    "digits, 10 classes, dense": (digits, 1.0),
    "letter, 26 classes, dense": (partial(as_is, "letter"), 0.01),
    "mnist, 10 classes, sparse": (mnist, 0.001),
    "news20, 20 classes, sparse": (news20, 0.01),
}


def objective(coef, intercept, X, y, C):
    scores = np.asarray(X @ coef.T + intercept)
    if scores.shape[1] == 1:
        losses = np.maximum(0, 1 - (2 * y - 1) * scores[:, 0])
    else:
        rows = np.arange(len(y))
        losses = (scores - scores[rows, y][:, None] + (np.arange(scores.shape[1]) != y[:, None])).max(axis=1)
    return ((coef**2).sum() + (intercept**2).sum()) / 2 + C * losses.sum()


def compared(load, C):
    X, y = load()
    classes, y = np.unique(y, return_inverse=True)
    binary = len(classes) == 2
    kind = {"loss": "hinge", "dual": True} if binary else {"multi_class": "crammer_singer"}
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LinearSVC(C=C, tol=1e-8, max_iter=1_000_000, random_state=0, **kind).fit(X, y)
    outcome = {"C": C, "linear_svc_s": round(time.perf_counter() - began, 2)}
    optimum = outcome["linear_svc"] = objective(peer.coef_, peer.intercept_, X, y, C)
    for tol in ALL_TOL:
        began = time.perf_counter()
        machine = CuttingPlaneSVC(C=C, tol=tol).fit(X, y)
        seconds = time.perf_counter() - began
        reached = objective(machine.coef_, machine.intercept_, X, y, C)
        outcome[f"tol={tol:g}"] = {
            "gap": machine.gap_,
            "excess": 1 - optimum / reached,
            "cuts": machine.n_cuts_,
            "time_s": round(seconds, 3),
            "bound_holds": bool(machine.history_["dual"][-1] <= optimum * (1 + 1e-9)),
        }
    return outcome


def measure(results):
    for name, (load, C) in list(SETS.items())[: SMALL if results.quick else None]:
        results.get(name, partial(compared, load, C))


def tables(figures):
    for tol in ALL_TOL:
        rows = []
        for name in SETS:
            found = figures.get(name, {}).get(f"tol={tol:g}")
            ours, words = None, ""
            if found is not None:
                ours = Figure(100 * found["excess"])
                kept = found["bound_holds"] and found["excess"] <= found["gap"] < tol
                words = f"{found['cuts']} cuts, certified gap {100 * found['gap']:.4f} %{'' if kept else ': BROKEN'}."
            rows.append(Row(name, None, ours, words, name))
        yield Table(f"Excess over the optimal objective in %, tol = {tol:g}", rows, digits=4, kind="check")


EXPERIMENT = Experiment(
    __file__,
    "Not in the paper: the certificate of CuttingPlaneSVC against LIBLINEAR's optimum",
    PROTOCOL,
    measure,
    tables,
    settings={"all_tol": ALL_TOL},
    uses=("CuttingPlaneSVC",),
)

if __name__ == "__main__":
    main(EXPERIMENT)
