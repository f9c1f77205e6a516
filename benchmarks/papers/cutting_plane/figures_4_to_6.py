"""Figures 4 to 6: time, iterations and test error of OCA-E and OCA-T as C and tol vary.

``python -m benchmarks.papers.cutting_plane.figures_4_to_6``, with POLYPLANE_DATA set.
"""

import warnings
from functools import cache, partial

from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.cutting_plane import pictures, sets
from benchmarks.papers.cutting_plane.checks import (
    ALL_C,
    ALL_TOL,
    AS_IT_COMES,
    FURTHER,
    OF_THE_FILE,
    PART,
    at_c,
    at_tol,
    checks,
    covtype_told,
    error_of,
)
from benchmarks.papers.cutting_plane.sets import EXPECTED, TITLES
from benchmarks.papers.cutting_plane.times import comparison

from polyplane import CuttingPlaneSVC

MAX_ITER = 3_000
#: Cuts at the most for large C, where runs take long or cuts much memory.
CAPS = {("mnist", 1e2): 1_000, ("news20", 1e1): 250, ("news20", 1e2): 250}
#: Runs that are cut off so, once more to the end: the most cuts.
TO_THE_END = {("mnist", 1e2): 20_000, ("news20", 1e2): 2_000}
#: What is run: rows, values of C, and whether tol is swept.
SETS = {
    "rcv1": (sets.rcv1, ALL_C, True),
    "news20": (sets.news20, ALL_C, True),
    "mnist": (sets.mnist, ALL_C, True),
    PART: (partial(sets.covtype, 100_000), ALL_C, True),
    "covtype": (sets.covtype, ALL_C[:5], False),
}
PROTOCOL = """\
C weighs the sum of the losses. The paper's equations (1) and (2) have the mean, but its figures belong to the sum: C =
1 on the mean is C = 1/15,935 on NEWS20 and C = 1/60,000 on MNIST, less than the smallest C below, where the errors are
95 and 12 %, not the printed 14.7 and 7.2 %. One thread; test error of OCA-T, and OCA-E's where they differ by more than
1 point. C varies with tol = 0.01, tol with C = 1; runs over tol continue from each other, so their times add up. Times
are processor times. COVTYPE: a random fifth is for testing (seed 0), since the paper's test rows are not known; tol, C
= 10 and C = 100 are run on 100,000 training rows, the other C on all 464,810; the checks train on all 581,012 rows.
RCV1 is a two-class stand-in for the paper's 53 classes. At most 3,000 cuts are made; 1,000 on MNIST with C = 100 and
250 on NEWS20 with C >= 10, where each cut takes 10 MB of memory; OCA-T with C = 100 is also run to the end. Quick: RCV1
up to C = 10, the other sets with C up to 0.01 and 20,000 rows of COVTYPE and MNIST, tol on RCV1 only."""


def over_tol(data, search):
    """Train to one tol after the other; each one's figures are those since the start."""
    X, y, X_test, y_test = data
    machine = CuttingPlaneSVC(line_search=sets.SEARCHES[search], max_iter=MAX_ITER, warm_start=True)
    time_s, iterations, outcome = 0.0, 0, {}
    for tol in ALL_TOL:
        with warnings.catch_warnings(), sets.processor_time():
            warnings.simplefilter("ignore")
            machine.set_params(tol=tol).fit(X, y)
        time_s += machine.history_["time"][-1]
        iterations += machine.n_iter_
        error = round(100 * (1 - machine.score(X_test, y_test)), 3)
        outcome[f"tol={tol:g}"] = {"time_s": round(time_s, 4), "iterations": iterations, "error": error}
    return outcome


def run_on(load, search, **params):
    return sets.run(*load(), search, **params)


def over_tol_on(load, search):
    return over_tol(load(), search)


def covtype_as_it_comes():
    """One run on features as the file has them, stopped after 1,000 cuts."""
    X, y, X_test, y_test = sets.covtype(20_000, scaled=False)
    return sets.run(X, y, X_test, y_test, "OCA-T", tol=0.01, max_iter=1_000)


def sweep(results, name, load, all_c, sweep_tol):
    load = cache(load)
    for C in all_c:
        for search in sets.SEARCHES:
            params = {"C": C, "tol": 0.01, "max_iter": CAPS.get((name, C), MAX_ITER)}
            results.get(f"{name}, C={C:g}, tol=0.01, {search}", partial(run_on, load, search, **params))
    if sweep_tol:
        for search in sets.SEARCHES:
            results.get(f"{name}, C=1, over tol, {search}", partial(over_tol_on, load, search))
    for (which, C), max_iter in TO_THE_END.items():
        if which == name and not results.quick:
            measured = partial(run_on, load, "OCA-T", C=C, tol=0.01, max_iter=max_iter)
            results.get(f"{name}, C={C:g}, tol=0.01, OCA-T, to the end", measured)
    for (which, _), (C, tol, _) in FURTHER.items():
        if which == name and not results.quick:
            measured = partial(run_on, load, "OCA-T", C=C, tol=tol, max_iter=MAX_ITER)
            results.get(f"{name}, C={C:g}, tol={tol:g}, OCA-T", measured)


def measure(results):
    results.first(sets.compiled)
    if not results.quick:
        results.get(AS_IT_COMES, covtype_as_it_comes)
        for name, (load, all_c, sweep_tol) in SETS.items():
            sweep(results, name, load, all_c, sweep_tol)
        covtype_check(results)
        return
    sweep(results, "rcv1", sets.rcv1, ALL_C[:6], True)
    for name, load in {PART: partial(sets.covtype, 20_000), "mnist": partial(sets.mnist, 20_000)}.items():
        sweep(results, name, load, ALL_C[:3], False)
    sweep(results, "news20", sets.news20, ALL_C[:3], False)


def covtype_check(results):
    """OCA-T over C and tol, and OCA-E where the paper tells its iterations."""
    load = cache(sets.covtype_of_the_file)
    for C in ALL_C:
        for search in sets.SEARCHES if C >= 100 else ("OCA-T",):
            measured = partial(run_on, load, search, C=C, tol=0.01, max_iter=MAX_ITER)
            results.get(f"{OF_THE_FILE}, C={C:g}, tol=0.01, {search}", measured)
    results.get(f"{OF_THE_FILE}, C=1, over tol, OCA-T", partial(over_tol_on, load, "OCA-T"))


def error_row(figures, name, C):
    """One row of Figure 6b, from all rows of COVTYPE where they were run, with its remark."""
    found, words, source = at_c(figures, name, C), [], name
    whole = figures.get(f"{name}, C={C:g}, tol=0.01, OCA-T, to the end")
    found, ending = (whole, ", to the end") if whole else (found, "")
    if found is None and name == "covtype":
        found, source = at_c(figures, PART, C), PART
        words = [f"On {found.get('rows', 100_000):,} training rows."] if found else []
    if found and found["gap"] >= 0.01:
        words.append(f"Stopped after {found['iterations']} cuts, within {100 * found['gap']:.0f} % of the optimum.")
    exact = at_c(figures, name, C, "OCA-E")
    if found and exact and abs(found["error"] - exact["error"]) > 1:
        words.append(f"OCA-E has {exact['error']:.2f}.")
    if (name, C) in FURTHER:
        other_c, tol, explanation = FURTHER[name, C]
        other = figures.get(f"{name}, C={other_c:g}, tol={tol:g}, OCA-T")
        words += [f"{explanation} {other['error']:.2f} (checks below)."] if other else []
    paper = EXPECTED["error_over_C"][name][ALL_C.index(C)]
    words += [covtype_told(figures, at_c(figures, OF_THE_FILE, C))] if name == "covtype" else []
    is_other = name in ("covtype", "rcv1") or (found and found["gap"] >= 0.01)
    return Row(
        f"{TITLES[name]}, C = {C:g}",
        Figure(paper),
        error_of(found, name),
        " ".join(words),
        f"{source}, C={C:g}, tol=0.01, OCA-T{ending}",
        "stand-in" if is_other else None,
        f"{name}, C = {C:g}, tol = 0.01",
    )


def tol_row(figures, name, tol):
    part = PART if name == "covtype" else name
    paper = EXPECTED["error_over_tol"][name][ALL_TOL.index(tol)]
    found = at_tol(figures, part, tol)
    told = "" if found else "Not measured yet; `make reproduce` measures it."
    if found and name == "covtype":
        told = f"On 100,000 training rows. {covtype_told(figures, at_tol(figures, OF_THE_FILE, tol))}"
    kind = "stand-in" if name in ("covtype", "rcv1") else None
    source = f"{part}, C=1, over tol, OCA-T"
    cell = f"{name}, C = 1, tol = {tol:g}"
    return Row(f"{TITLES[name]}, tol = {tol:g}", Figure(paper), error_of(found, name), told, source, kind, cell)


def tables(figures):
    note = "The deviation is that of a binomial share of the test rows. COVTYPE's test rows are not the paper's."
    stand_in = "RCV1 here has two classes and 12,343 rows, in the paper 53 classes and 518,571 rows: not comparable."
    for names, words, more in ((("covtype", "mnist", "news20"), note, f" {apart(figures)}"), (("rcv1",), stand_in, "")):
        over_c = [error_row(figures, name, C) for name in names for C in ALL_C]
        yield Table("Figure 6b: test error in % as C varies, tol = 0.01", over_c, note=words + more)
        rows = [tol_row(figures, name, tol) for name in names for tol in ALL_TOL]
        yield Table("Figure 6a: test error in % as tol varies, C = 1", rows, note=words)
    yield from comparison(figures)
    yield from checks(figures)


def apart(figures):
    """Where the errors of OCA-E and OCA-T are further apart than the paper says."""
    found = []
    for name in SETS:
        for C in ALL_C:
            pair = [at_c(figures, name, C, search) for search in sets.SEARCHES]
            if all(pair) and abs(pair[0]["error"] - pair[1]["error"]) > 0.25:
                title = TITLES.get(name, PART.replace("covtype", TITLES["covtype"]))
                found.append(f"{title}, C = {C:g} ({pair[0]['error']:.2f} and {pair[1]['error']:.2f} %)")
    if not found:
        return "The errors of OCA-E and OCA-T are within 0.25 points of each other, as in the paper."
    return (
        "The paper says that the errors of OCA-E and OCA-T are within 0.25 points of each other; here they are further "
        f"apart for {'; '.join(found)}. Both are within tol of the optimum, with different planes."
    )


def plots(figures):
    part = {PART: "COVTYPE, 100,000 rows"}
    panels = list((part | {name: title for name, title in TITLES.items() if name != "covtype"}).items())
    return [
        Plot(
            "cutting-plane-figures-4-5",
            "Iterations and processor time of OCA-E and OCA-T as C varies (tol = 0.01). Runs that were stopped early "
            "have open marks.",
            partial(pictures.over_c, figures=figures, panels=panels, all_c=ALL_C, at=at_c),
        ),
        Plot(
            "cutting-plane-figures-4-5-tol",
            "Iterations and processor time of OCA-E and OCA-T as tol varies (C = 1).",
            partial(pictures.over_tol, figures=figures, panels=panels, all_tol=ALL_TOL, at=at_tol),
        ),
        Plot(
            "cutting-plane-figure-6",
            "Test error as C (above) and tol (below) vary. It depends on C, hardly on tol, as in the paper. RCV1 is "
            "another task here; on COVTYPE the test rows differ.",
            partial(
                pictures.errors, figures=figures, panels=panels, all_c=ALL_C, all_tol=ALL_TOL, at_c=at_c, at_tol=at_tol
            ),
        ),
    ]


EXPERIMENT = Experiment(
    __file__,
    "Figures 4 to 6 of the cutting-plane paper: time, iterations and test error over C and tol",
    PROTOCOL,
    measure,
    tables,
    plots,
    {"max_iter": MAX_ITER, "split_seed": 0, "n_jobs": 1},
    uses=("CuttingPlaneSVC",),
)

if __name__ == "__main__":
    main(EXPERIMENT)
