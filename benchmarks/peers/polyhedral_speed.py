"""Time to fit the polyhedral mixture beside logistic regression on the same rows, both warm, in one run.

``python -m benchmarks.peers.polyhedral_speed``, with POLYPLANE_DATA set. To be kept: with the
BFGS solver and two planes at most 5 times as long on each small UCI set, and less than 10 times on Adult one-hot.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from benchmarks.harness.results import Results
from benchmarks.papers.polyhedra import load
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from polyplane import PolyhedralMixtureClassifier

BARS = {"ionosphere": 5, "heart": 5, "ilpd": 5, "pima": 5, "adult": 10}


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


def compared(name: str, bar: float) -> dict[str, float]:
    """Milliseconds of each fit, the median of the rounds, and how many times logistic regression's that is."""
    X, y = load(name)
    if name == "adult":
        X = MaxAbsScaler().fit_transform(X)
    else:
        X = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit_transform(X)
    peer = LogisticRegression(max_iter=1000)
    mixtures = {gating: PolyhedralMixtureClassifier(2, gating=gating) for gating in ("soft", "hard")}
    fits = [partial(model.fit, X, y) for model in (peer, *mixtures.values())]
    seconds = np.median(rounds(fits, 7 if name == "adult" else 31), axis=0).tolist()
    return {
        "rows": len(y),
        "features": X.shape[1],
        "logistic_regression_ms": round(1e3 * seconds[0], 2),
        **{f"{gating}_ms": round(1e3 * s, 2) for gating, s in zip(mixtures, seconds[1:], strict=True)},
        **{f"{gating}_ratio": round(s / seconds[0], 2) for gating, s in zip(mixtures, seconds[1:], strict=True)},
        "bar": bar,
    }


if __name__ == "__main__":
    # Times of different runs do not compare: measure anew each time.
    results = Results(__file__)
    results.content["figures"].clear()
    print(f"{'':12} {'PLUME':>7} {'SPLA1':>7} {'bar':>5}   times logistic regression")
    for name, bar in BARS.items():
        figures = results.get(name, partial(compared, name, bar))
        print(f"{name:12} {figures['soft_ratio']:7.2f} {figures['hard_ratio']:7.2f} {bar:5}", flush=True)
