"""The methods of Table 1 and the settings that each may choose from."""

from __future__ import annotations

import tomllib
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.harness.baselines import baseline
from benchmarks.harness.choosing import grid
from benchmarks.papers.polyhedra import load, nested_cv
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from polyplane import ConvexPolytopeClassifier, PolyhedralMixtureClassifier

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
GATINGS = {"soft": "PLUME", "hard": "SPLA1"}
SOLVERS = {"gradient": "gradient", "newton": "Newton", "bfgs": "BFGS"}
#: Algorithm 1 as printed: no ridge, the features in their own units.
PRINTED = {f"{g}_{s}_printed": f"{GATINGS[g]} ({SOLVERS[s]})" for g, s in product(GATINGS, SOLVERS)}
#: With a ridge that is chosen, standardised features, and L-BFGS for BFGS.
VARIANTS = {name.removesuffix("_printed"): f"{title}, ridge, standardised" for name, title in PRINTED.items()}
#: The sharpness of the gates, which the paper does not give, and the most steps of the algorithm as printed.
PRINTED_GAMMA, MAX_ITER = 2.0, 500
#: The other methods: title, how one is made (a name of `benchmarks.harness.baselines`), and its settings.
OTHERS: dict[str, tuple[str, Any, list[dict[str, Any]]]] = {
    "cpm": (
        "CPM",
        partial(ConvexPolytopeClassifier, enclosed="each", max_iter=100, random_state=0),
        grid(n_planes=[2, 4, 8], alpha=[1e-3, 1e-2]),
    ),
    "cart": ("CART", "CART", grid(ccp_alpha=[0.0, 3e-3, 1e-2, 3e-2])),
    "rbf_svm": ("RBF-SVM", "RBF-SVM", grid(C=[0.3, 1, 3, 10], gamma=["scale", 0.01])),
    "linear_svm": ("linear SVM", "linear SVM", grid(C=[0.01, 0.1, 1, 10])),
    "lvq": ("LVQ2.1", "LVQ2.1", grid(n_prototypes=[2, 10], eta0=[0.02, 0.1])),
    "mlp": ("MLP", "MLP", grid(hidden_layer_sizes=[(16,)], solver=["lbfgs"], alpha=[1.0, 10.0])),
    "boosting": ("gradient boosting", "gradient boosting", grid(learning_rate=[0.05], max_leaf_nodes=[4, 15])),
    "forest": ("random forest", "random forest", grid(n_estimators=[100])),
}
METHODS = PRINTED | VARIANTS | {method: title for method, (title, _, _) in OTHERS.items()}
#: Methods whose cross-validation is repeated less often.
SLOW = {"cpm", "lvq", "mlp", "boosting", "forest"}
#: Adult is large: what is chosen is chosen on so many of its rows, and the kernel machine learns from no more than so.
CHOICE_ROWS, KERNEL_ROWS = 3_000, 6_000
LARGE = 10_000


def mixture_settings(y: np.ndarray, gating: str, solver: str, quick: bool) -> list[dict[str, Any]]:
    """The grid of the inner cross-validation: the full one for the fastest solver, a part where fits take long.

    The lowest plane predicts; gates much softer than that (gamma < 1) fit a mixture that the prediction does not use.
    """
    axes = {"inside": np.unique(y).tolist(), "alpha": [1e-3, 1e-2, 1e-1], "n_planes": [2, 3], "gamma": [4.0]}
    if quick:
        axes |= {"alpha": [1e-2], "n_planes": [2]}
    elif len(y) > LARGE:
        axes |= {"alpha": [1e-3], "gamma": [1.0]}
    elif solver == "bfgs":
        axes |= {"gamma": [2.0, 8.0]}
    if gating == "hard":
        del axes["gamma"]
    return grid(**axes)


def mixture(method: str) -> dict[str, Any]:
    """Parameters of PLUME or SPLA1 that are not chosen; the BFGS of the figures is L-BFGS."""
    gating, solver = method.split("_")
    solver = "lbfgs" if solver == "bfgs" else solver
    return {"gating": gating, "solver": solver, "max_iter": 30 if solver == "newton" else 200, "random_state": 0}


def repeats_of(name: str, method: str, quick: bool) -> int:
    """How often the cross-validation is repeated: ten times, less where fits take long."""
    if quick:
        return 1
    if name == "adult":
        return {"bfgs": 10, "gradient": 3, "newton": 2}.get(method.split("_")[-1], 1)
    return 3 if method in SLOW else 10


def printed_cell(name: str, method: str, n_planes: int, repeats: int) -> dict[str, Any]:
    """One cell of the algorithm as printed, with the paper's number of planes; the likelier class is inside."""
    X, y = load(name)
    gating, solver, _ = method.split("_")
    fixed = {"gating": gating, "solver": solver, "n_planes": n_planes, "max_iter": MAX_ITER, "random_state": 0}
    fixed |= {"alpha": 0.0, "standardize": False, "gamma": PRINTED_GAMMA if gating == "soft" else None}
    make = partial(PolyhedralMixtureClassifier, **fixed)
    found = nested_cv(make, [{}], X, y, repeats, inner_folds=3, scaler=FunctionTransformer)
    return {"rows": len(y), "features": X.shape[1], "fixed": fixed, **found}


def cell_of(name: str, method: str, quick: bool) -> partial[dict[str, Any]]:
    """What measures a cell."""
    if method not in PRINTED:
        return partial(cell, name, method, quick)
    n_planes = EXPECTED["planes"][name][method.removesuffix("_printed")]
    return partial(printed_cell, name, method, n_planes, 1 if quick else 10)


def cell(name: str, method: str, quick: bool) -> dict[str, Any]:
    """One cell of the table."""
    X, y = load(name)
    if quick and len(y) > LARGE:
        part = train_test_split(np.arange(len(y)), train_size=2_000, stratify=y, random_state=0)[0]
        X, y = X[part], y[part]
    repeats = repeats_of(name, method, quick)
    return {"rows": len(y), "features": X.shape[1]} | (
        _mixture_cell(X, y, method, repeats, quick) if method in VARIANTS else _other(X, y, method, repeats, quick)
    )


def _mixture_cell(X, y, method, repeats, quick):
    fixed = mixture(method)
    # Ten inner folds, as in the paper, where fits are quick: on a few hundred rows three choose by luck.
    inner_folds = 10 if fixed["solver"] == "lbfgs" and len(y) < LARGE and not quick else 3
    inner_rows = CHOICE_ROWS if len(y) > LARGE else None
    make = partial(PolyhedralMixtureClassifier, **fixed)
    settings = mixture_settings(y, fixed["gating"], fixed["solver"], quick)
    return {"fixed": fixed, **nested_cv(make, settings, X, y, repeats, inner_folds, inner_rows)}


def _other(X, y, method, repeats, quick):
    _, kind, settings = OTHERS[method]
    make = (lambda **settings: baseline(kind, **settings).machine) if isinstance(kind, str) else kind
    large = len(y) > LARGE
    if method == "cpm" and large:
        make = partial(make, max_iter=10)
    if method == "mlp" and large:
        settings = grid(hidden_layer_sizes=[(16,)], early_stopping=[True], alpha=[1e-4])
    if sparse.issparse(X):
        make = partial(_dense, make)
    rows = {"inner_rows": CHOICE_ROWS, "outer_rows": KERNEL_ROWS if method == "rbf_svm" else None} if large else {}
    return nested_cv(make, settings[:1] if quick else settings, X, y, repeats, inner_folds=3, **rows)


def _dense(make, **settings):
    """The machine behind what makes one-hot rows its food: features in [0, 1], no zeros left out."""
    as_array = FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
    return make_pipeline(MaxAbsScaler(), as_array, make(**settings))
