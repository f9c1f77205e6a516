"""The versions of the methods, and tiny fits that tell when one of them finds other planes.

``python -m benchmarks.methods`` prints what `methods.toml` should hold.

Versions are declared by hand in `methods.toml`, since a change of code need not be one of planes. So that none is
forgotten, each method has probes there: its training error and the mean size of its planes on a few made rows.
"""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import polyplane

DECLARED: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "methods.toml").read_text())
VERSIONS: dict[str, int] = {name: found["version"] for name, found in DECLARED.items()}
#: How each method is tried: settings with few steps, so that rounding has no time to grow.
TRIALS: dict[str, list[dict[str, Any]]] = {
    "ConvexPolytopeClassifier": [
        {"n_planes": 4, "enclosed": "each", "alpha": 1e-2, "max_iter": 5, "min_entropy": 0.8, "average": False},
        {"n_planes": 4, "enclosed": "each", "alpha": 1e-2, "max_iter": 5, "average": False, "backoff": 0},
    ],
    "WorstCasePolytopeClassifier": [{"n_planes": 4, "max_iter": 5}],
    "AdaptiveMultiHyperplaneClassifier": [
        {"alpha": 1e-3, "max_iter": 5, "average_fraction": 0.0},
        {"alpha": 1e-3, "max_iter": 5, "growth": 0.0, "prune": 10.0, "average_fraction": 1 / 3},
    ],
    "MultiHyperplaneClassifier": [{"n_planes": 4, "max_iter": 5}, {"n_planes": 4, "max_iter": 5, "loss": "hinge"}],
    "PolyhedralMixtureClassifier": [
        {"gating": gating, "solver": solver, "max_iter": 5, "gamma": 4.0 if gating == "soft" else None}
        for gating in ("soft", "hard")
        for solver in ("gradient", "newton", "lbfgs")
    ],
    "PolyceptronClassifier": [{"max_iter": 20}, {"max_iter": 5, "mode": "online", "eta0": 1.0, "average": False}],
    "SuccessiveLPClassifier": [{"max_iter": 3}, {"max_iter": 3, "radius": None, "alpha": 0.0}],
    "CuttingPlaneSVC": [{"C": 0.1, "max_iter": 10, "line_search": search} for search in ("exact", "three-point")],
    "PegasosSVC": [{"alpha": 1e-2, "max_iter": 5}],
}


def probes(name: str) -> list[list[float]]:
    """For each trial of a method the share of wrong training rows and the mean absolute weight of the planes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 3))
    y = (np.abs(X).sum(axis=1) < 1.4).astype(int)
    figures = []
    for settings in TRIALS[name]:
        given = {key: value for key, value in settings.items() if value is not None}
        machine: BaseEstimator = getattr(polyplane, name)(**given)
        if "random_state" in machine.get_params():
            machine.set_params(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(X, y)
        figures.append([round(1 - machine.score(X, y), 4), float(f"{np.abs(machine.planes_.coef).mean():.5g}")])
    return figures


def main() -> None:
    """Print what `methods.toml` should hold."""
    for name in TRIALS:
        print(f"\n[{name}]\nversion = {VERSIONS.get(name, 1)}\nprobe = {probes(name)}")


if __name__ == "__main__":
    main()
