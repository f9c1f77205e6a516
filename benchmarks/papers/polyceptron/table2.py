"""Table 2 of the Polyceptron paper: batch and online Polyceptron, SPLA1 and PC-SLP, beside the paper's figures.

``python benchmarks/papers/polyceptron/table2.py``, with POLYPLANE_DATA set. Each cell is kept
in ``results``: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from polyplane import PolyceptronClassifier, PolyhedralMixtureClassifier, SuccessiveLPClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))
from polyhedra import load, nested_cv, unfinished

HERE = Path(__file__).parent
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    paper = tomllib.loads((HERE / "expected.toml").read_text())
    jobs = {
        f"{name}_{method}": partial(cell, name, method, given.repeats)
        for method in given.methods
        for name in given.sets
    }
    for job, result in unfinished(HERE / "results", jobs):
        mean, deviation = paper[result["set"]][result["method"]]
        print(
            f"{job:32} {result['accuracy']:6.2f} +- {result['std_over_repeats'] or 0:.2f}   "
            f"paper {mean:.2f} +- {deviation:.2f}   fit {1e3 * result['median_fit_seconds']:.1f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
