"""Figures 4 to 6: time, iterations and test error of OCA-E and OCA-T as C and tol vary.

Names of sets may be given as arguments. Runs over tol go on from each other (`warm_start`), so their times add up.
COVTYPE is swept on 100,000 of its rows and run on all of them at C = 1. RCV1 is a two-class stand-in. Needs
POLYPLANE_DATA.
"""

import sys
import tomllib
import warnings
from functools import cache, partial
from pathlib import Path

from benchmarks.papers.cutting_plane import sets
from benchmarks.results import Results

from polyplane import CuttingPlaneSVC

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
ALL_C = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2]
ALL_TOL = [0.5, 0.1, 0.05, 0.01, 0.005, 0.001]
MAX_ITER = 3000
SETS = {
    "rcv1": (sets.rcv1, ALL_C),
    "news20": (sets.news20, ALL_C[:5]),
    "mnist": (sets.mnist, ALL_C[:5]),
    "covtype, 100,000 rows": (partial(sets.covtype, 100_000), ALL_C[:5]),
    "covtype": (sets.covtype, [1.0]),
}


def over_tol(data, search):
    """Train to one tol after the other; each one's figures are those since the start."""
    X, y, X_test, y_test = data
    machine = CuttingPlaneSVC(line_search=sets.SEARCHES[search], max_iter=MAX_ITER, warm_start=True)
    time_s, iterations, outcome = 0.0, 0, {}
    for tol in ALL_TOL:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.set_params(tol=tol).fit(X, y)
        time_s += machine.history_["time"][-1]
        iterations += machine.n_iter_
        error = round(100 * (1 - machine.score(X_test, y_test)), 3)
        outcome[f"tol={tol:g}"] = {"time_s": round(time_s, 4), "iterations": iterations, "error": error}
    return outcome


def show(what, exact, three_point, paper):
    saved = 100 * (1 - three_point["time_s"] / exact["time_s"])
    print(
        f"{what:44} {exact['iterations']:6} {three_point['iterations']:6} {exact['time_s']:8.2f} "
        f"{three_point['time_s']:8.2f} {saved:7.1f} {three_point['error']:7.2f} {paper:7.2f}",
        flush=True,
    )


def sweep(results, name, load, all_c):
    load = cache(load)
    paper = name.split(",")[0]
    for i, C in enumerate(ALL_C):
        if C in all_c:
            both = [
                results.get(
                    f"{name}, C={C:g}, tol=0.01, {search}",
                    lambda C=C, search=search: sets.run(*load(), search, C=C, tol=0.01, max_iter=MAX_ITER),
                )
                for search in sets.SEARCHES
            ]
            show(f"{name}, C={C:g}, tol=0.01", *both, EXPECTED["error_over_C"][paper][i])
    if len(all_c) == 1:
        return
    both = [
        results.get(f"{name}, C=1, over tol, {search}", lambda search=search: over_tol(load(), search))
        for search in sets.SEARCHES
    ]
    for i, tol in enumerate(ALL_TOL):
        show(f"{name}, C=1, tol={tol:g}", *(b[f"tol={tol:g}"] for b in both), EXPECTED["error_over_tol"][paper][i])


if __name__ == "__main__":
    for search in sets.SEARCHES:
        sets.compiled(search)
    results = Results(__file__, max_iter=MAX_ITER, split_seed=0, n_jobs=1)
    print(
        f"{'':44} {'iterations':>13} {'seconds':>17} {'OCA-T':>7} {'test error, %':>15}\n"
        f"{'':44} {'OCA-E':>6} {'OCA-T':>6} {'OCA-E':>8} {'OCA-T':>8} {'saves %':>7} {'ours':>7} {'paper':>7}"
    )
    for name, (load, all_c) in SETS.items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            sweep(results, name, load, all_c)
