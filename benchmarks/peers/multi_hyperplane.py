"""The multi-hyperplane machine beside scikit-learn's classifiers: test error, time to fit, time to predict.

All in one run, on one thread, so that times compare; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. Seconds are
those of the processor, which other programs disturb less than those of the clock. Kernels are compiled beforehand.
`--mnist` adds mnist, whose RBF-SVM takes minutes; `--choose` chooses settings again, on held-out training rows, and
prints them. Needs POLYPLANE_DATA.
"""

import sys
import time
import warnings
from functools import partial

import numpy as np
from benchmarks.data.splits import prepared, real
from benchmarks.harness.choosing import choose, grid
from benchmarks.harness.results import Results
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier

#: What `--choose` chose: C and gamma of the RBF-SVM out of SVM_GRID, with the least error on held-out fifths of the
#: training rows (two splits, the second for the best three). Those of mnist are customary and have not been chosen so.
SVM = {
    "ijcnn1": {"C": 10, "gamma": 0.1},
    "letter": {"C": 30, "gamma": 0.2},
    "usps": {"C": 3, "gamma": 0.01},
    "mnist": {"C": 10, "gamma": 0.02},
}
SVM_GRID = {
    "ijcnn1": grid(C=[3, 10, 30], gamma=[0.05, 0.1, 0.2]),
    "letter": grid(C=[3, 10, 30], gamma=[0.1, 0.2, 0.4]),
    "usps": grid(C=[3, 10, 30], gamma=[0.005, 0.01, 0.02]),
    "mnist": grid(C=[3, 10], gamma=[0.01, 0.02, 0.04]),
}

#: Settings of the tangent start with the least held-out error: the choice of `papers/multi_hyperplane/errors.py`.
TUNED = {
    "ijcnn1": {"n_planes": 128, "eta0": 0.15, "max_iter": 60},
    "letter": {"n_planes": 64, "max_iter": 60},
    "usps": {"n_planes": 64},
    "mnist": {},
}

#: What `--choose` chose out of QUICK_GRID: the least held-out error (two splits) among those that train in a tenth of
#: the time that the RBF-SVM takes for the same rows; where none does, the quickest.
QUICK = {
    "ijcnn1": {"loss": "hinge", "n_planes": 64, "eta0": 0.15, "max_iter": 60},
    "letter": {"loss": "hinge", "n_planes": 24, "eta0": 0.3, "max_iter": 15},
    "usps": {"loss": "hinge", "n_planes": 16, "eta0": 0.3, "max_iter": 15},
}
QUICK_GRID = [
    *grid(loss=["hinge"], n_planes=[16, 24, 64], eta0=[0.15, 0.3], max_iter=[15, 60]),
    *grid(n_planes=[16, 32, 64], eta0=[0.15, 0.3], max_iter=[20]),
]


def machines(name):
    """The machines of a set, by the name they get in the table."""
    planes = partial(MultiHyperplaneClassifier, random_state=0)
    return {
        "SVC(rbf), tuned": SVC(**SVM[name]),
        "tangent start, defaults": planes(),
        "committee of five": MultiHyperplaneClassifier(n_estimators=5, random_state=0),
        "tangent start, hinge": planes(loss="hinge"),
        "tangent start, tuned": planes(**TUNED[name]),
        **({"tangent start, quick": planes(**QUICK[name])} if name in QUICK else {}),
        "GAMM": AdaptiveMultiHyperplaneClassifier(average_fraction=1 / 3, random_state=0),
        "LinearSVC": LinearSVC(random_state=0),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "MLP": MLPClassifier(early_stopping=True, random_state=0),
        "RandomForest": RandomForestClassifier(random_state=0),
    }


def warm_up():
    """Compile the kernels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)).astype(np.float32), np.arange(400) % 3
    for settings in ({}, {"loss": "hinge"}):
        MultiHyperplaneClassifier(max_iter=1, **settings).fit(X, y).predict(X)
    AdaptiveMultiHyperplaneClassifier(max_iter=1).fit(X, y).predict(X)


def seconds(work, repeat=3):
    """Processor time of `work`: the median of a few calls, unless one takes seconds; and its last answer."""
    times = []
    while len(times) < repeat and sum(times) < 2:
        began = time.process_time()
        answer = work()
        times.append(time.process_time() - began)
    return float(np.median(times)), answer


def figures(machine, split):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit, machine = seconds(lambda: machine.fit(split.X, split.y))
    predict, answers = seconds(lambda: machine.predict(split.X_test))
    error = 100 * float(np.mean(answers != split.y_test))
    return {"error": round(error, 3), "fit": round(fit, 4), "predict": round(predict, 5)}


def measure(name):
    warm_up()
    split = real(name)
    return {label: figures(prepared(name, machine), split) for label, machine in machines(name).items()}


def show(name, table):
    print(
        f"\n{name:24} {'error, %':>9} {'fit, s':>9} {'predict, s':>11} {'faster than SVC(rbf): fit':>27} {'predict':>9}"
    )
    svm = table["SVC(rbf), tuned"]
    for label, row in table.items():
        ratios = f"{svm['fit'] / row['fit']:26.1f}x {svm['predict'] / row['predict']:8.1f}x"
        print(f"{label:24} {row['error']:9.2f} {row['fit']:9.2f} {row['predict']:11.4f} {ratios}", flush=True)


def choose_svm(name):
    """C and gamma by held-out training rows."""
    split = real(name)
    rows = np.random.default_rng(0).permutation(len(split.y))[: 10_000 if name == "mnist" else None]
    return choose(
        lambda **how: prepared(name, SVC(**how)), SVM_GRID[name], split.X[rows], split.y[rows], n_splits=2, rungs={1: 3}
    )


def choose_quick(name, svm):
    """Settings of the tangent start that train in a tenth of the time of an RBF-SVM with the settings `svm`."""
    warm_up()
    split = real(name)
    rows = [train_test_split(np.arange(len(split.y)), test_size=0.2, random_state=i, stratify=split.y) for i in (0, 1)]

    def trial(machine, train, held_out):
        fit, fitted = seconds(lambda: machine.fit(split.X[train], split.y[train]), 1)
        return 100 * (1 - fitted.score(split.X[held_out], split.y[held_out])), fit

    limit = trial(prepared(name, SVC(**svm)), *rows[0])[1] / 10
    machines = [prepared(name, MultiHyperplaneClassifier(random_state=0, **how)) for how in QUICK_GRID]
    trials = [np.mean([trial(machine, *each) for each in rows], axis=0) for machine in machines]
    best = min(range(len(trials)), key=lambda i: (max(trials[i][1], limit), trials[i][0]))
    for how, (error, fit) in zip(QUICK_GRID, trials, strict=True):
        print(f"{error:6.2f} % {fit:6.2f} s  {how}")
    return {"settings": QUICK_GRID[best], "error": trials[best][0], "fit": trials[best][1], "limit": limit}


if __name__ == "__main__":
    names = [a for a in sys.argv[1:] if a in SVM] or ["ijcnn1", "letter", "usps"] + ["mnist"] * ("--mnist" in sys.argv)
    results = Results(__file__, svm=SVM, tuned=TUNED, fast=QUICK)
    for name in names:
        if "--choose" in sys.argv:
            svm = choose_svm(name)
            print(name, svm, flush=True)
            if name in QUICK:
                print(name, choose_quick(name, svm["settings"]), flush=True)
        else:
            show(name, results.get(name, lambda: {"machines": measure(name)})["machines"])  # noqa: B023
