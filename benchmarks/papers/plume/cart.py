"""Not in the paper: CART without pruning, which explains the paper's figures of it.

``python -m benchmarks.papers.plume.cart``, with POLYPLANE_DATA set.
"""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path

from benchmarks.harness.experiment import Experiment, Row, Table, main, printed, repeated
from benchmarks.papers.polyhedra import NOT_YET, REPETITIONS, TITLES, load, nested_cv
from sklearn.tree import DecisionTreeClassifier

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["accuracy"]
SETS = ("ionosphere", "heart", "ilpd", "pima", "adult")
PROTOCOL = """\
scikit-learn's DecisionTreeClassifier as it comes, without pruning, by the cross-validation of Table 1; Adult, one-hot
encoded, with one repetition. Quick: one repetition, without Adult."""


def unpruned(name, repeats):
    """Accuracy of trees that are grown to the end: there is nothing to choose."""
    X, y = load(name)
    return nested_cv(DecisionTreeClassifier, [{"random_state": 0}], X, y, repeats, inner_folds=3)


def measure(results):
    for name in SETS[:-1] if results.quick else SETS:
        results.get(name, partial(unpruned, name, 1 if results.quick or name == "adult" else 10))


def tables(figures):
    rows = []
    for name in SETS:
        found = figures.get(name)
        ours = None if found is None else repeated(found["accuracy"], found["accuracy_by_repeat"])
        paper = printed(EXPECTED[name]["cart"], REPETITIONS)
        rows.append(Row(TITLES[name], paper, ours, "" if found else NOT_YET, name))
    yield Table("CART without pruning: accuracy in %", rows, "higher", kind="check")


def remarks():
    """Words on CART's cells of Table 1, from the figures kept here."""
    figures = EXPERIMENT.results(quick=False).figures
    return {
        f"{name}, cart": f"Ours is pruned; without pruning {found['accuracy']:.2f} (*CART without pruning*)."
        for name, found in figures.items()
    }


EXPERIMENT = Experiment(
    __file__,
    "Not in the paper: CART without pruning",
    PROTOCOL,
    measure,
    tables,
    settings={"outer_folds": 10, "seed": 0},
)

if __name__ == "__main__":
    main(EXPERIMENT)
