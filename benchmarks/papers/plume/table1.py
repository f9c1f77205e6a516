"""Table 1 of the PLUME paper: both gatings, three solvers, five sets, beside the paper's figures.

``python -m benchmarks.papers.plume.table1``, with POLYPLANE_DATA set. Each cell is kept in
``results``: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from benchmarks.papers.polyhedra import load, nested_cv, show_table

from polyplane import PolyhedralMixtureClassifier

SETS = ["ionosphere", "heart", "ilpd", "pima", "adult"]
METHODS = [f"{gating}_{solver}" for solver in ("bfgs", "gradient", "newton") for gating in ("soft", "hard")]


def settings(y: np.ndarray, gating: str, solver: str) -> list[dict]:
    """The grid of the inner cross-validation: the full one for the fastest solver, a part where fits take long.

    The lowest plane predicts; gates much softer than that (gamma < 1) fit a mixture that the prediction does not use.
    """
    large = len(y) > 10_000
    gammas = (2.0, 8.0) if gating == "soft" and solver == "bfgs" and not large else (4.0,)
    if large:
        gammas = (1.0,)
    alphas = (1e-3,) if large else (1e-3, 1e-2, 1e-1)
    names = ("inside", "alpha", "n_planes", "gamma")
    return [dict(zip(names, values, strict=True)) for values in product(np.unique(y).tolist(), alphas, (2, 3), gammas)]


def cell(name: str, method: str, repeats: int) -> dict:
    gating, solver = method.split("_")
    X, y = load(name)
    fixed = {"gating": gating, "solver": solver, "max_iter": 30 if solver == "newton" else 200, "random_state": 0}
    result = nested_cv(
        partial(PolyhedralMixtureClassifier, **fixed),
        settings(y, gating, solver),
        X,
        y,
        repeats,
        # Ten inner folds, as in the paper, where fits are quick: on a few hundred rows three choose by luck.
        inner_folds=10 if solver == "bfgs" and len(y) < 10_000 else 3,
        inner_rows=3000 if len(y) > 10_000 else None,
    )
    return {"set": name, "method": method, "rows": len(y), "features": X.shape[1], "fixed": fixed, **result}


if __name__ == "__main__":
    show_table(__file__, SETS, METHODS, cell)
