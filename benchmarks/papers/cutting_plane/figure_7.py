"""Figure 7: with fewer features the exact line search takes a larger share of the time, and OCA-T saves more of it.

C = 1, tol = 0.01. Kept are the features that are non-zero in most rows. RCV1 is a two-class stand-in. Needs
POLYPLANE_DATA.
"""

import tomllib
from pathlib import Path

import numpy as np
from benchmarks.papers.cutting_plane import sets
from benchmarks.results import Results

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())


def reduced(load, n_features):
    X, y, X_test, y_test = load()
    often = np.argsort(-X.getnnz(axis=0), kind="stable")[:n_features]
    return X[:, often], y, X_test[:, often], y_test


if __name__ == "__main__":
    for search in sets.SEARCHES:
        sets.compiled(search)
    results = Results(__file__, C=1.0, tol=0.01)
    print(f"{'':22} {'search, %':>9} {'paper':>6} {'speed-up':>9} {'paper':>6}")
    for name, load in {"mnist": sets.mnist, "rcv1": sets.rcv1}.items():
        paper = EXPECTED[f"features_{name}"]
        for i, n_features in enumerate(paper["features"]):
            exact, three_point = (
                results.get(
                    f"{name}, {n_features} features, {search}",
                    lambda load=load, n=n_features, search=search: sets.run(*reduced(load, n), search, C=1.0),
                )
                for search in sets.SEARCHES
            )
            share = 100 * exact["line_search_s"] / exact["time_s"]
            speedup = exact["time_s"] / three_point["time_s"]
            print(
                f"{name:6} {n_features:6} features {share:9.1f} {paper['search_share'][i]:6.1f} {speedup:9.2f} "
                f"{paper['speedup'][i]:6.2f}",
                flush=True,
            )
