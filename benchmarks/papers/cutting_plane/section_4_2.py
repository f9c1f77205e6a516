"""Section 4.2: on POKER the exact line search stays at 0 for most of its iterations, the three-point search does not.

``python -m benchmarks.papers.cutting_plane.section_4_2``, with POLYPLANE_DATA set.
"""

from functools import partial
from unittest import mock

import numpy as np
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.cutting_plane import pictures, sets

from polyplane.learners import cuts

MAX_ITER = 20_000
PAPER = {"OCA-T": "three_point", "OCA-E": "exact"}
NON_GREEDY = "non-greedy"
#: Without the removal of cuts that the solutions of the reduced problem have not used for a while.
ALL_CUTS = ", all cuts kept"
#: Where the next cut is made, between the best point (0) and the minimiser of the cuts (1): lambda in the paper.
CUT_POINTS = {"": 0.1, ", cuts at the minimiser": 1.0}
#: Sets on which the exact search does not stand still, and cut points to compare on all of them.
OTHERS = {"COVTYPE, 2 against the rest": partial(sets.covtype, 100_000), "MNIST, 2 against the rest": sets.mnist}
MORE_CUT_POINTS = [0.03, 0.1, 0.3]
PROTOCOL = """\
POKER, C = 1, tol = 0.01, 25,010 rows, features not scaled; of the test file only the first 18,488 rows are at hand. The
paper prints the point of the next cut as (1 - lambda) w_b + w_t, which lacks a factor lambda = 0.1 before the minimiser
of the cuts, w_t. On POKER w_b stays near 0, so that the printed formula cuts at the minimiser, the corrected one a
tenth of the way to it. Both are run. "non-greedy" (ours) is the exact search, but it takes a step of 0.02 where it
would otherwise choose 0 twice in a row; it and other cut points are also run on two sets without this difficulty
(COVTYPE: 100,000 rows). Cuts that 25 consecutive solutions of the reduced problem do not use are removed; "all cuts
kept" is without that. Quick: the three-point search in full, the exact one for 600 iterations."""


def run(search, cut_point, max_iter):
    X, y, X_test, y_test = sets.poker()
    machine = sets.trained(X, y, search, cut_point=cut_point, tol=0.01, max_iter=max_iter)
    kept = np.unique(np.geomspace(1, machine.n_iter_, 80).astype(int))
    gaps = np.asarray(machine.history_["gap"])[kept - 1]
    curve = {"iteration": kept.tolist(), "gap_then": np.round(gaps, 5).tolist()}
    error = round(100 * (1 - machine.score(X_test, y_test)), 3)
    return sets.figures(machine) | {"error": error} | curve


def run_with_all_cuts(search, cut_point, max_iter):
    with mock.patch.object(cuts, "IDLE", max_iter):
        return run(search, cut_point, max_iter)


def measure(results):
    results.first(sets.compiled)
    max_iter = 600 if results.quick else MAX_ITER
    for words, cut_point in CUT_POINTS.items():
        for search in (*PAPER, NON_GREEDY):
            results.get(f"{search}{words}", partial(run, search, cut_point, max_iter))
        for search in PAPER if words else ["OCA-T"]:  # the other would keep thousands of cuts
            results.get(f"{search}{words}{ALL_CUTS}", partial(run_with_all_cuts, search, cut_point, max_iter))
    for name, search, cut_point in elsewhere():
        if not results.quick or name == "POKER":
            results.get(f"{name}, {search}, {cut_point:g}", partial(run_elsewhere, name, search, cut_point))


def elsewhere():
    """What is compared on other sets and with other cut points."""
    for name in ("POKER", *OTHERS):
        for search in ("OCA-T", "OCA-E", NON_GREEDY):
            for cut_point in MORE_CUT_POINTS:
                if not (name == "POKER" and (search == "OCA-E" or cut_point == 0.1)):  # measured above, or too long
                    yield name, search, cut_point


def run_elsewhere(name, search, cut_point):
    X, y, *_ = sets.poker() if name == "POKER" else OTHERS[name]()
    y = y if name == "POKER" else y == 2
    return sets.figures(sets.trained(X, y, search, cut_point=cut_point, tol=0.01, max_iter=MAX_ITER))


def tables(figures):
    expected = sets.EXPECTED["poker"]
    iterations, seconds = [], []
    for words in CUT_POINTS:
        for search, name in (PAPER | {NON_GREEDY: None}).items():
            found = figures.get(f"{search}{words}")
            ours = (None, None) if found is None else (Figure(found["iterations"]), Figure(found["time_s"]))
            papers = [name and Figure(expected[f"{what}_{name}"]) for what in ("iterations", "seconds")]
            label, kind = f"{search}{words}", "beyond" if name is None else "check" if words else None
            iterations.append(Row(label, papers[0], ours[0], _why(search, words, figures), label, kind))
            seconds.append(Row(label, papers[1], ours[1], "", label))
            if name and (found := figures.get(label + ALL_CUTS)):
                label += ALL_CUTS
                why = f"{found['stood_still']} of them did not lower the objective."
                iterations.append(Row(label, papers[0], Figure(found["iterations"]), why, label, "check"))
                seconds.append(Row(label, papers[1], Figure(found["time_s"]), "", label))
    yield Table("POKER: iterations until the gap is below 0.01", iterations, digits=0)
    note = "Processor time, on other hardware than the paper's."
    yield Table("POKER: seconds until the gap is below 0.01", seconds, None, note=note, kind="time")
    rows = []
    for name, search, cut_point in elsewhere():
        found = figures.get(f"{name}, {search}, {cut_point:g}")
        if found is not None:
            label = f"{name}, {search}, cut_point={cut_point:g}"
            source = f"{name}, {search}, {cut_point:g}"
            rows.append(Row(label, None, Figure(found["iterations"]), f"{found['time_s']:.2f} s.", source))
    yield Table("Not in the paper: iterations on other sets and with other cut points", rows, digits=0, kind="beyond")


def _why(search, words, figures):
    found = figures.get(f"{search}{words}")
    if found is None:
        return ""
    still = f"{found['stood_still']} of them did not lower the objective"
    if search == "OCA-E":
        still += "; in the paper the first 1,451 of 1,454"
    others = [figures.get(f"{other}{list(CUT_POINTS)[1]}") for other in PAPER]
    if search not in PAPER or words or None in others:
        return f"{still}."
    three_point, exact = (other["iterations"] for other in others)
    return (
        f"{still}. It depends on where cuts are made: at the minimiser, as printed, OCA-E takes {exact:,} iterations "
        f"(paper: 1,454), but OCA-T {three_point:,} (paper: 258), see below. Neither reading gives both figures."
    )


def plots(figures):
    curves = {
        search: (figures[search]["iteration"], figures[search]["gap_then"]) for search in PAPER if search in figures
    }
    caption = (
        "The certified gap on POKER. The best planes are nearly zero, and the exact search stays at them for most of "
        "its iterations. The small steps of the three-point search do not lower the objective either, but give better "
        "cuts: it converges in a fraction of the iterations, as in the paper."
    )
    return [Plot("cutting-plane-poker", caption, partial(pictures.standing_still, curves=curves))] if curves else []


EXPERIMENT = Experiment(
    __file__,
    "Section 4.2 of the cutting-plane paper: the exact search stands still on POKER",
    PROTOCOL,
    measure,
    tables,
    plots,
    {"C": 1.0, "tol": 0.01, "max_iter": MAX_ITER, "kept": "gap"},
    uses=("CuttingPlaneSVC",),
)

if __name__ == "__main__":
    main(EXPERIMENT)
