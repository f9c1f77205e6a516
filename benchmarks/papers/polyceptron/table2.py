"""Table 2 of the Polyceptron paper: batch and online Polyceptron, SPLA1 and PC-SLP, beside the paper's figures.

``python -m benchmarks.papers.polyceptron.table2``, with POLYPLANE_DATA set. Each cell is kept
in ``results``: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from benchmarks.papers.polyhedra import load, nested_cv, show_table

from polyplane import PolyceptronClassifier, PolyhedralMixtureClassifier, SuccessiveLPClassifier

#: Planes and online passes of each set, as in the paper.
SETS = {
    "dataset_1": (3, 300),
    "dataset_2": (4, 400),
    "ionosphere": (2, 500),
    "breast_cancer_wisconsin": (2, 500),
}
METHODS = ["batch", "online", "spla1", "pc_slp"]


def estimator(name: str, method: str) -> partial:
    n_planes, passes = SETS[name]
    n_init = 20 if name.startswith("dataset") else 5
    common = {"n_planes": n_planes, "random_state": 0}
    return {
        "batch": partial(PolyceptronClassifier, **common, eta0=0.1, n_init=n_init),
        "online": partial(PolyceptronClassifier, **common, mode="online", eta0=1.0, max_iter=passes),
        "spla1": partial(PolyhedralMixtureClassifier, **common, gating="hard", solver="bfgs", n_init=n_init),
        "pc_slp": partial(SuccessiveLPClassifier, **common),
    }[method]


def settings(name: str, y: np.ndarray, method: str) -> list[dict]:
    """The grid of the inner cross-validation.

    The synthetic sets say themselves which class is inside, and are separable: there is nothing to average.
    """
    synthetic = name.startswith("dataset")
    axes: dict[str, tuple] = {"inside": (1,) if synthetic else tuple(np.unique(y).tolist())}
    if method == "batch" and not synthetic:
        axes["average"] = (False, True)
    if method == "spla1":
        axes["alpha"] = (1e-4, 1e-3, 1e-2)
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def cell(name: str, method: str, repeats: int) -> dict:
    X, y = load(name)
    make = estimator(name, method)
    result = nested_cv(make, settings(name, y, method), X, y, repeats, inner_folds=3)
    return {"set": name, "method": method, "rows": len(y), "features": X.shape[1], "fixed": make.keywords, **result}


if __name__ == "__main__":
    show_table(__file__, list(SETS), METHODS, cell)
