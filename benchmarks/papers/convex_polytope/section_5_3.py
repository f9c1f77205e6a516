"""Section 5.3 of the Convex Polytope Machine paper (Kantchelian et al., 2014): ten digits."""

import time
from functools import partial
from math import sqrt

from benchmarks.baselines import baseline_errors
from benchmarks.data import digits, pixels
from benchmarks.experiment import Experiment, Figure, Row, Table, main
from benchmarks.papers.convex_polytope.protocol import EXPECTED, SEEDS, budgeted, errors, summary
from sklearn.base import clone
from sklearn.multiclass import OneVsOneClassifier

from polyplane import ConvexPolytopeClassifier

PAPER = EXPECTED["section_5_3"]
DIGITS_ROWS = 300_000
PAIRS = "MNIST, one against one, K=32"
PER_CLASS = "MNIST, one polytope per class, K=48, 8M visits"
DEFORMED = "deformed digits, one against one, K=32"
SVM = "MNIST: RBF-SVM"
QUICK_PAIRS = "MNIST, one against one, K=8, 20 passes"
QUICK_PER_CLASS = "MNIST, one polytope per class, K=16, 1M visits"


def _pair(n_planes, **settings):
    """The machine for a pair of digits: the paper's, double-sided."""
    return ConvexPolytopeClassifier(n_planes, enclosed="each", alpha=1e-3, **settings)


def one_against_one(split, pair, seeds):
    """45 machines, and the vote of all."""
    runs, seconds = [], []
    for seed in seeds:
        began = time.process_time()
        machine = OneVsOneClassifier(clone(pair).set_params(random_state=seed)).fit(split.X, split.y)
        runs.append(100 * (1 - machine.score(split.X_test, split.y_test)))
        seconds.append(time.process_time() - began)
    return summary(runs) | {"run_seconds": round(sum(seconds) / len(seconds), 2), "rows": len(split.y)}


def mnist_pairs():
    """With the settings that had the least error on 10,000 held-out training rows.

    Compared were n_planes 8, 12, 16, 24, 32 and 64, alpha 2e-4 to 2e-3, min_entropy 0.8 to 0.95, 100 to 500 passes, and
    planes averaged or not, in nineteen combinations; they differed little (1.5 to 1.8 %).
    """
    return one_against_one(pixels(), _pair(32, max_iter=300, min_entropy=0.9), SEEDS)


def deformed_pairs():
    """The same machine with as many visits: five times the rows, a fifth of the passes; one run."""
    pair = _pair(32, max_iter=60, min_entropy=0.9)
    return one_against_one(digits(DIGITS_ROWS), pair, range(1))


def mnist_per_class(n_planes, visits, seeds):
    split = pixels()
    return errors(budgeted(n_planes, visits, len(split.y), 1000, 0.8), split, seeds)


def quick_pairs():
    return one_against_one(pixels(), _pair(8, max_iter=20, min_entropy=0.8), range(1))


def svm():
    """C and gamma on held-out fifths of 4,000 training rows; scikit-learn's SVC has one machine per pair, too."""
    return baseline_errors("RBF-SVM", pixels(), 4_000)


def measure(results):
    if results.quick:
        results.get(QUICK_PAIRS, quick_pairs)
        results.get(QUICK_PER_CLASS, partial(mnist_per_class, 16, 1e6, range(1)))
        return
    results.get(PAIRS, mnist_pairs)
    results.get(PER_CLASS, partial(mnist_per_class, 48, 8e6, SEEDS))
    results.get(DEFORMED, deformed_pairs)
    results.get(SVM, svm)


STAND_IN = (
    f"stand-in: the first {DIGITS_ROWS:,} rows of `InfiniteDigits`, tested on MNIST's; one run; a twenty-seventh of "
    "the paper's rows, and the settings of MNIST; whether that explains the difference was not tried"
)
OTHER_FORM = (
    "averaged planes and back-off, which the paper does not have; it gives no K, T, lambda or h, and breaks ties of "
    "the vote at random, ours by the scores"
)
#: Label, our figure, task and machine of the paper, what is to be known, class.
ROWS = [
    ("MNIST, CPM, one against one", PAIRS, ("MNIST", "CPM"), OTHER_FORM, "stand-in"),
    ("MNIST, RBF-SVM", SVM, ("MNIST", "RBF-SVM"), "one run", "paper"),
    ("MNIST8m, CPM, one against one", DEFORMED, ("MNIST8m", "CPM"), f"{OTHER_FORM}; {STAND_IN}", "stand-in"),
    (
        "MNIST8m, RBF-SVM",
        "",
        ("MNIST8m", "RBF-SVM"),
        "the paper quotes another paper: eight days",
        "stand-in",
    ),
    ("MNIST, CPM, one polytope per class", PER_CLASS, None, "not in the paper", "beyond"),
]
NOT_YET = "not measured yet: `make reproduce PAPER=cpm` does"


def error_of(cell):
    """Its deviation is that over runs or, of one run, that of a share of 10,000 test rows."""
    share = cell["error"] / 100
    return Figure(cell["error"], cell["std"] if len(cell["runs"]) > 1 else 100 * sqrt(share * (1 - share) / 10_000))


def seconds_of(cell):
    if "fit_seconds" in cell:
        return Figure(cell["fit_seconds"] + cell["predict_seconds"])
    return Figure(cell.get("run_seconds", cell["seconds"] / len(cell["runs"])))


def tables(figures):
    errors_, seconds = [], []
    for label, name, paper, told, kind in ROWS:
        cell = figures.get(name)
        theirs = paper and PAPER[paper[0]][paper[1]]
        told = told if cell or not name else NOT_YET
        error = theirs and Figure(theirs["error"], theirs.get("std"))
        errors_.append(Row(label, error, cell and error_of(cell), told, name, kind))
        seconds.append(
            Row(label, theirs and Figure(theirs["seconds"]), cell and seconds_of(cell), "" if cell else told, name)
        )
    for name in (QUICK_PAIRS, QUICK_PER_CLASS):
        if name in figures:
            errors_.append(Row(name, None, error_of(figures[name]), "a quick run", name, "beyond"))
    yield Table("Test error on ten digits, %", errors_)
    note = "Other hardware than the paper's, shared with other work when it ran: compare orders of magnitude only."
    yield Table("Seconds to train and test once", seconds, None, digits=0, note=note, kind="time")


EXPERIMENT = Experiment(
    script=__file__,
    title="Section 5.3: ten digits, one machine per pair",
    protocol=(
        "45 classifiers, one per pair of digits, and a majority vote; planes averaged, with back-off: K = 32, alpha = "
        "1e-3, min_entropy 0.9, 300 passes, "
        "settings chosen on 10,000 held-out training rows, where nineteen combinations had 1.5 to 1.8 % error (the "
        "script of that choice was not kept); five orders of the rows, seeds 0 to 4. For comparison one "
        "classifier with a polytope per class, K = 48, 8 million visits."
    ),
    measure=measure,
    tables=tables,
    settings={"seeds": list(SEEDS)},
)

if __name__ == "__main__":
    main(EXPERIMENT)
