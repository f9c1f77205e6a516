"""Time to fit the polyhedral mixture beside logistic regression on the same rows, both warm, in one run.

``python -m benchmarks.peers.polyhedral_speed``, with POLYPLANE_DATA set. To be kept: with the
BFGS solver and two planes at most 5 times as long on each small UCI set, and less than 10 times on Adult one-hot.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.papers.polyhedra import load, versions
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from polyplane import PolyhedralMixtureClassifier

BARS = {"ionosphere": 5, "heart": 5, "ilpd": 5, "pima": 5, "adult": 10}
RESULTS = Path(__file__).parent / "results" / "polyhedral_speed.json"


def rounds(fits: list[Callable[[], object]], n_rounds: int) -> np.ndarray:
    """Seconds of each fit in each round; they take turns, so that a busy machine is as busy for all."""
    for fit in fits:
        fit()
    seconds = np.empty((n_rounds, len(fits)))
    for at in np.ndindex(*seconds.shape):
        began = time.perf_counter()
        fits[at[1]]()
        seconds[at] = time.perf_counter() - began
    return seconds


def main() -> None:
    table = {}
    for name, bar in BARS.items():
        X, y = load(name)
        if name == "adult":
            X = MaxAbsScaler().fit_transform(X)
        else:
            X = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit_transform(X)
        peer = LogisticRegression(max_iter=1000)
        mixtures = {gating: PolyhedralMixtureClassifier(2, gating=gating) for gating in ("soft", "hard")}
        models = [peer, *mixtures.values()]
        fits = [partial(model.fit, X, y) for model in models]
        seconds = np.median(rounds(fits, 7 if name == "adult" else 31), axis=0).tolist()
        table[name] = {
            "rows": len(y),
            "features": X.shape[1],
            "logistic_regression_ms": round(1e3 * seconds[0], 2),
            **{f"{gating}_ms": round(1e3 * s, 2) for gating, s in zip(mixtures, seconds[1:], strict=True)},
            **{f"{gating}_ratio": round(s / seconds[0], 2) for gating, s in zip(mixtures, seconds[1:], strict=True)},
            "bar": bar,
        }
        print(name, table[name], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"sets": table, "versions": versions()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
