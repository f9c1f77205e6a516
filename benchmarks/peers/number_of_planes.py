"""How many planes `MultiHyperplaneClassifier` chooses, what that costs, and what other numbers would have given.

Test errors in percent, planes per class, and seconds of the processor to fit and to choose, on one thread, means over
seeds or folds: real sets with test rows of their own, made sets whose best number of planes is far from one or just
one, and the folds of 25 tables. ``python -m benchmarks.peers.number_of_planes REVISION`` measures the choice of an
earlier revision, too. Needs POLYPLANE_DATA.
"""

import json
import sys
import time
import warnings
from functools import partial

import numpy as np
from benchmarks.data import tables
from benchmarks.data.splits import STANDARDISED, real
from benchmarks.harness.results import Results
from benchmarks.harness.worktree import checked_out, output
from sklearn.datasets import make_gaussian_quantiles, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polyplane import MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.engine.run import Race

SEEDS = range(5)
#: Numbers of planes that the choice is compared with, where that is quick.
NUMBERS = (1, 2, 4, 8, 16, 32, 64, 96, 128)


def rings(n_rows, seed):
    """Points of the plane in rings of two classes: a few planes are no better than one."""
    X = np.random.default_rng(seed).normal(size=(n_rows, 2))
    return X, np.floor(2 * np.linalg.norm(X, axis=1)).astype(int) % 2


def xor(n_rows, seed):
    """Quadrants of two features, and 20 features that mean nothing."""
    X = np.random.default_rng(seed).normal(size=(n_rows, 22))
    return X, (X[:, 0] > 0) ^ (X[:, 1] > 0)


def noisy_line(n_rows, seed):
    """Two classes on either side of a plane, and every seventh label wrong: one plane is right."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 20))
    return X, (X @ np.linspace(-1, 1, 20) > 0) ^ (rng.random(n_rows) < 1 / 7)


def board(n_rows, seed):
    """A checkerboard of 16 squares."""
    return make_checkerboard(n_rows, (4, 4), random_state=seed)


def moons(n_rows, seed):
    """Two moons that overlap."""
    return make_moons(n_rows, noise=0.25, random_state=seed)


def quantiles(n_rows, seed):
    """Three shells around the centre of eight features."""
    return make_gaussian_quantiles(n_samples=n_rows, n_features=8, n_classes=3, random_state=seed)


#: What makes the rows, and how many to train on.
MADE = {
    "rings": (rings, 1000),
    "rings, few rows": (rings, 300),
    "noisy line": (noisy_line, 2000),
    "xor": (xor, 2000),
    "board": (board, 3000),
    "moons": (moons, 1000),
    "quantiles": (quantiles, 3000),
}
REAL = ("a9a", "a9a, standardised", "letter", "usps", "ijcnn1")
FIXED = {f"n_planes={n}": MultiHyperplaneClassifier(n, random_state=0) for n in (1, 4, 16, 64)}
PEERS = {**FIXED, "LogisticRegression": LogisticRegression(max_iter=1000), "SVC": SVC()}


def outcome(machine, X, y, X_test, y_test):
    """Error, planes per class and seconds of one machine that chooses."""
    choose, seconds = Race.run, []

    def timed(*arguments, **options):
        began = time.process_time()
        chosen = choose(*arguments, **options)
        seconds.append(time.process_time() - began)
        return chosen

    Race.run = timed
    try:
        began = time.process_time()
        machine.fit(X, y)
        fit = time.process_time() - began
    finally:
        Race.run = choose
    planes = (machine[-1] if hasattr(machine, "steps") else machine).planes_
    error = 100 * float(np.mean(machine.predict(X_test) != y_test))
    return {"error": error, "planes": planes.n_planes / planes.n_classes, "fit": fit, "choice": sum(seconds)}


def mean(rows):
    return {key: round(float(np.mean([row[key] for row in rows])), 4) for key in rows[0]}


def of_real(name):
    split, standardised = real(name.split(",")[0]), name in STANDARDISED or "," in name
    machines = (MultiHyperplaneClassifier(random_state=seed) for seed in SEEDS)
    machines = (make_pipeline(StandardScaler(), machine) if standardised else machine for machine in machines)
    rows = [outcome(machine, *split) for machine in machines]
    return mean(rows) | {"errors": [round(row["error"], 2) for row in rows]}


def of_made(name):
    make, n_rows = MADE[name]
    tests = [make(10_000, 10_000 + seed) for seed in SEEDS]
    rows = [outcome(MultiHyperplaneClassifier(random_state=seed), *make(n_rows, seed), *tests[seed]) for seed in SEEDS]
    return mean(rows) | {"errors": [round(row["error"], 2) for row in rows]}


def of_table(name):
    rows = [outcome(tables.encoded(MultiHyperplaneClassifier(random_state=0)), *rows) for rows in tables.folds(name)]
    return mean(rows)


def of_numbers(name):
    """Mean errors with given numbers of planes, of a made set."""
    make, n_rows = MADE[name]
    tests = [make(10_000, 10_000 + seed) for seed in SEEDS]

    def error(n, seed):
        machine = MultiHyperplaneClassifier(n, random_state=seed).fit(*make(n_rows, seed))
        return 100 * (1 - machine.score(*tests[seed]))

    return {str(n): round(float(np.mean([error(n, seed) for seed in SEEDS])), 3) for n in NUMBERS}


def of_peers(name):
    """Mean errors of other machines, of a table."""

    def error(machine, X, y, X_test, y_test):
        return 100 * (1 - tables.encoded(machine).fit(X, y).score(X_test, y_test))

    return {
        label: round(float(np.mean([error(machine, *rows) for rows in tables.folds(name)])), 3)
        for label, machine in PEERS.items()
    }


CHOICES = {name: partial(of_real, name) for name in REAL}
CHOICES |= {name: partial(of_made, name) for name in MADE}
CHOICES |= {f"table {name}": partial(of_table, name) for name in tables.TABLES}
OTHERS = {name: partial(of_numbers, name) for name in MADE}
OTHERS |= {f"table {name}": partial(of_peers, name) for name in tables.TABLES}


def show(name, revisions, others):
    """A line for each revision: what the choice led to."""
    for revision, row in revisions.items():
        share = f"{row['choice']:7.3f} s = {100 * row['choice'] / row['fit']:3.0f} % of the fit"
        print(f"{name:20} {revision:8} error {row['error']:6.2f} %, {row['planes']:5.1f} planes, choice {share}")
    if others:
        print(" " * 29 + ", ".join(f"{label}: {error:.2f}" for label, error in others.items()), flush=True)


def show_tables(figures, revisions):
    """Mean error over the tables, mean rank among the others, and seconds."""
    errors = {label: [figures[f"table {t}, others"][label] for t in tables.TABLES] for label in PEERS}
    for revision in revisions:
        rows = [figures[f"table {t}, {revision}"] for t in tables.TABLES]
        own, rest = np.array([row["error"] for row in rows]), np.array(list(errors.values()))
        rank = 1 + ((rest < own).sum(axis=0) + (rest == own).sum(axis=0) / 2).mean()
        seconds = ", ".join(f"{key} {np.mean([row[key] for row in rows]):.3f} s" for key in ("fit", "choice"))
        print(f"tables, {revision}: mean error {own.mean():.3f} %, rank {rank:.2f} of {len(rest) + 1}, {seconds}")
    print("tables, others: " + ", ".join(f"{label} {np.mean(each):.3f} %" for label, each in errors.items()))


def main(before):
    results = Results(__file__, seeds=list(SEEDS), numbers=list(NUMBERS))
    for name, measure in CHOICES.items():
        row = {}
        if before:
            probe = partial(output, before, "-m", "benchmarks.peers.number_of_planes", "probe", name)
            row["before"] = results.get(f"{name}, before", lambda probe=probe: json.loads(probe()))
        row["now"] = results.get(f"{name}, now", measure)
        others = results.get(f"{name}, others", OTHERS[name]) if name in OTHERS else {}
        show(name, row, {label: error for label, error in others.items() if label != "seconds"})
    show_tables(results.figures, row)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["probe"]:
        print(json.dumps(CHOICES[sys.argv[2]]()))
    elif sys.argv[1:]:
        with checked_out(sys.argv[1]) as tree:
            main(tree)
    else:
        main(None)
