"""Figure 7: with fewer features the exact line search takes a larger share of the time, and OCA-T saves more of it.

``python -m benchmarks.papers.cutting_plane.figure_7``, with POLYPLANE_DATA set.
"""

from functools import partial

import numpy as np
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.cutting_plane import pictures, sets

LOADERS = {"mnist": sets.mnist, "rcv1": sets.rcv1}
#: Runs of a cell, of which the median counts: on RCV1 one takes a fraction of a second.
RUNS = {"mnist": 1, "rcv1": 7}
#: How the features that stay are picked: those that are non-zero in most rows, or any.
PICKS = {"frequent": "most frequent features", "at random": "features at random"}
PROTOCOL = """\
C = 1, tol = 0.01, one thread, processor time. The paper does not say which features it keeps: here those that are
non-zero in most rows, and beside them random ones (seed 0) among those that are ever non-zero. RCV1 is a two-class
stand-in, with the median of seven runs. Quick: 5,000 rows of MNIST, one run each, tol = 0.1."""


def picked(X, n_features, pick):
    """The columns that stay, in their order."""
    filled = X.getnnz(axis=0)
    if pick == "frequent":
        return np.sort(np.argsort(-filled, kind="stable")[:n_features])
    return np.sort(np.random.default_rng(0).permutation(np.flatnonzero(filled))[:n_features])


def cell(name, n_features, pick, quick):
    """Both searches in turn, on the same rows."""
    X, y, X_test, y_test = sets.mnist(5_000) if quick and name == "mnist" else LOADERS[name]()
    stay = picked(X, n_features, pick)
    non_zeros = X[:, stay].nnz / X.nnz
    rounds = [
        {
            search: sets.run(X[:, stay], y, X_test[:, stay], y_test, search, tol=0.1 if quick else 0.01)
            for search in sets.SEARCHES
        }
        for _ in range(1 if quick else RUNS[name])
    ]
    exact = [one["OCA-E"] for one in rounds]
    return {
        "share": float(np.median([100 * one["line_search_s"] / one["time_s"] for one in exact])),
        "speedup": float(np.median([one["OCA-E"]["time_s"] / one["OCA-T"]["time_s"] for one in rounds])),
        "non_zeros": round(100 * non_zeros, 2),
        "iterations": {search: one["iterations"] for search, one in rounds[-1].items()},
        "last_run": rounds[-1],
    }


def numbers_of(name, pick):
    """How many features stay; all of them are the same however they are picked."""
    return sets.EXPECTED[f"features_{name}"]["features"][0 if pick == "frequent" else 1 :]


def cells():
    for name in LOADERS:
        for pick in PICKS:
            for n_features in numbers_of(name, pick):
                yield name, n_features, pick


def measure(results):
    results.first(sets.compiled)
    for name, n_features, pick in cells():
        results.get(f"{name}, {n_features} {pick}", partial(cell, name, n_features, pick, results.quick))


def paper_of(name, n_features, what):
    paper = sets.EXPECTED[f"features_{name}"]
    return Figure(paper[what][paper["features"].index(n_features)])


def tables(figures):
    for name in LOADERS:
        shares, speedups = [], []
        for pick, words in PICKS.items():
            for n_features in numbers_of(name, pick):
                found = figures.get(f"{name}, {n_features} {pick}")
                label = f"{n_features} {words}"
                why = _why(figures, name, n_features, pick)
                ours = (None, None) if found is None else (Figure(found["share"]), Figure(found["speedup"]))
                source = f"{name}, {n_features} {pick}"
                shares.append(Row(label, paper_of(name, n_features, "search_share"), ours[0], why, source))
                speedups.append(Row(label, paper_of(name, n_features, "speedup"), ours[1], why, source))
        title = sets.TITLES[name]
        words = f"{title}: share of OCA-E's time spent on the line search, in %"
        yield Table(words, shares, None, 1, _note(name), kind="time")
        yield Table(f"{title}: speed-up of OCA-T over OCA-E", speedups, None, 2, _note(name), kind="time")


def _why(figures, name, n_features, pick):
    """How many non-zeros are left, and what the same number of features gives that takes more of them away."""
    found, other = (figures.get(f"{name}, {n_features} {p}") for p in (pick, "at random"))
    if found is None:
        return ""
    words = f"{found['non_zeros']:.1f} % of all non-zeros are in these features."
    if pick == "at random" or other is None:
        return words
    return (
        f"{words} At random: {other['non_zeros']:.1f} %, share {other['share']:.1f} %, speed-up {other['speedup']:.2f}."
    )


def _note(name):
    if name == "rcv1":
        return "The stand-in has 12,343 rows and two classes, the paper's set 518,571 rows and 53 classes."
    return (
        "The time outside the search depends on the number of non-zeros, not of features. The most frequent pixels "
        "hold nearly all of them, so that the share hardly changes until few pixels are left; with random pixels it "
        "rises at once."
    )


def plots(figures):
    curves = {}
    for name in LOADERS:
        paper = sets.EXPECTED[f"features_{name}"]
        curves[name, "paper"] = list(zip(paper["features"], paper["search_share"], paper["speedup"], strict=True))
        for pick in PICKS:
            # All features are the same however they are picked: both curves begin there.
            names = [f"{name}, {n} {pick if n in numbers_of(name, pick) else 'frequent'}" for n in paper["features"]]
            found = [(n, figures.get(key)) for n, key in zip(paper["features"], names, strict=True)]
            curves[name, pick] = [(n, f["share"], f["speedup"]) for n, f in found if f is not None]
    caption = (
        "Share of the exact line search in OCA-E's time, and speed-up by OCA-T, with fewer and fewer features. As in "
        "the paper both grow with fewer features, faster where non-zeros go with them (random features); only the "
        "speed-up with the fewest features of the RCV1 stand-in does not."
    )
    return [Plot("cutting-plane-figure-7", caption, partial(pictures.features, curves=curves))]


EXPERIMENT = Experiment(
    __file__,
    "Figure 7 of the cutting-plane paper: the line search with fewer features",
    PROTOCOL,
    measure,
    tables,
    plots,
    {"C": 1.0, "tol": 0.01, "clock": "processor"},
    uses=("CuttingPlaneSVC",),
)

if __name__ == "__main__":
    main(EXPERIMENT)
