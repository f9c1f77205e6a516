"""Versions of the methods and of the synthetic data that kept figures depend on.

``python -m benchmarks.harness.versions`` prints what `versions.toml` should hold.

A version is a number in `versions.toml`, raised by hand when a method finds other planes, or a generator makes other
rows. Figures that were measured with another version are stale. So that no change is overlooked, the file also holds
values of small fits (`TRIALS`) and of a few generated rows (`GENERATORS`), and a test compares them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.data.infinite_digits import InfiniteDigits
from benchmarks.data.malicious_urls import make_url_stream
from benchmarks.data.synthetic import make_polyceptron_1, make_polyceptron_2, make_weights
from benchmarks.harness.results import VERSIONS
from scipy import sparse

import polyplane
from polyplane.datasets import make_checkerboard

#: ConvexPolytopeClassifier where it skips rows, which the paper's algorithm does not.
BACK_OFF = "ConvexPolytopeClassifier, back-off"
#: Settings with few steps, so that differences in rounding have no time to grow.
TRIALS: dict[str, list[dict[str, Any]]] = {
    "ConvexPolytopeClassifier": [
        {"n_planes": 4, "enclosed": "each", "alpha": 1e-2, "max_iter": 5, "average": False, "backoff": 0}
        | {"min_entropy": min_entropy}
        for min_entropy in (0.8, 0.0)
    ],
    BACK_OFF: [
        {"n_planes": 4, "enclosed": "each", "alpha": 1e-2, "max_iter": 5, "min_entropy": 0.8, "average": False},
        {"max_iter": 5},
    ],
    "WorstCasePolytopeClassifier": [{"n_planes": 4, "max_iter": 5}],
    "AdaptiveMultiHyperplaneClassifier": [
        {"alpha": 1e-3, "max_iter": 5, "average_fraction": 0.0},
        {"alpha": 1e-3, "max_iter": 5, "growth": 0.0, "prune": 10.0, "average_fraction": 1 / 3},
    ],
    "MultiHyperplaneClassifier": [
        {"n_planes": 4, "max_iter": 5},
        {"n_planes": 4, "max_iter": 5, "loss": "hinge"},
        {"max_iter": 5},
    ],
    "PolyhedralMixtureClassifier": [
        {"gating": gating, "solver": solver, "max_iter": 5} | ({"gamma": 4.0} if gating == "soft" else {})
        for gating in ("soft", "hard")
        for solver in ("gradient", "newton", "lbfgs")
    ],
    "PolyceptronClassifier": [{"max_iter": 20}, {"max_iter": 5, "mode": "online", "eta0": 1.0, "average": False}],
    "SuccessiveLPClassifier": [{"max_iter": 3}, {"max_iter": 3, "radius": None, "alpha": 0.0}],
    "CuttingPlaneSVC": [{"C": 0.1, "max_iter": 10, "line_search": search} for search in ("exact", "three-point")],
    "PegasosSVC": [{"alpha": 1e-2, "max_iter": 5}],
    "TableClassifier": [{"n_estimators": 2, "max_iter": 3}],
}


def _infinite_digits() -> tuple[np.ndarray, np.ndarray]:
    images = np.random.default_rng(0).integers(0, 256, size=(5, 28, 28), dtype=np.uint8)
    digits = InfiniteDigits(images, np.arange(5))
    return next(digits.batches(10, 5, 15, np.uint8))


#: A few rows of each generator of data.
GENERATORS: dict[str, Callable[[], Any]] = {
    "InfiniteDigits": _infinite_digits,
    "make_checkerboard": partial(make_checkerboard, 50, (4, 4), flip_y=0.1, random_state=0),
    "make_polyceptron_1": partial(make_polyceptron_1, random_state=0),
    "make_polyceptron_2": partial(make_polyceptron_2, random_state=0),
    "make_url_stream": lambda: make_url_stream(n_days=3, rows_per_day=20, n_features=20_000)[2],
    "make_weights": partial(make_weights, 50, 5, 10, random_state=0),
}


def values(name: str) -> list[list[float]]:
    """What a version is recognised by: sums over the planes of each trial, or over the generated rows."""
    if name in GENERATORS:
        X, y, *_ = GENERATORS[name]()
        return [_sums(X.toarray() if sparse.issparse(X) else X, y)]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1000 if name == BACK_OFF else 200, 3))  # of 200 rows, none is skipped
    y = (np.abs(X).sum(axis=1) < 1.4).astype(int)
    return [_trial(name, settings, X, y) for settings in TRIALS[name]]


def _trial(name: str, settings: dict[str, Any], X: np.ndarray, y: np.ndarray) -> list[float]:
    estimator = getattr(polyplane, name.split(",")[0])(**settings)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    if name == "TableClassifier":  # its planes are over features of its own
        return _sums(estimator.decision_function(X))
    return _sums(estimator.planes_.coef, estimator.planes_.intercept)


def _sums(*arrays: Any) -> list[float]:
    """Norm and weighted sum of each array; the weights tell the order of its entries."""
    found = []
    for array in arrays:
        flat = np.asarray(array, dtype=float).ravel()
        found += [np.linalg.norm(flat), np.cos(np.arange(flat.size)) @ flat]
    return [float(f"{value:.12g}") for value in found]


def main() -> None:
    """Print what `versions.toml` should hold."""
    for name in (*TRIALS, *GENERATORS):
        key = name if name.isidentifier() else json.dumps(name)
        print(f"\n[{key}]\nversion = {VERSIONS.get(name, 1)}\nvalues = {values(name)}")


if __name__ == "__main__":
    main()
