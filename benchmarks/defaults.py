"""Where each default of each estimator comes from, and on which rows it was chosen: a page of the documentation."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.report import markdown_table

import polyplane

DECLARED: dict[str, dict[str, dict[str, str]]] = tomllib.loads((Path(__file__).parent / "defaults.toml").read_text())
KINDS = {
    "paper": "the paper's value, or that of its authors' program",
    "data": "chosen at each fit, on held-out rows of the training rows that it is given",
    "training": "chosen on training rows alone",
    "seen": "chosen with rows in sight that also judge here: test rows, or the folds of a cross-validation",
    "convention": "nothing to choose: what scikit-learn or a file format does",
    "not known": "how it was chosen was not kept",
}
#: What all estimators share with scikit-learn, and what only bounds the work: nothing to choose.
SHARED = {
    "class_weight",
    "early_stopping",
    "fit_intercept",
    "n_iter_no_change",
    "n_jobs",
    "random_state",
    "tol",
    "verbose",
    "warm_start",
}
INTRODUCTION = (
    "Where each default of each estimator was chosen, and on which rows. It matters to whoever reads *as it comes* in "
    "the "
    "[report](reproduction.md): a figure of a machine with its defaults is no figure of unseen rows where these "
    "defaults "
    "were chosen with the same rows in sight. The rows of the papers' own methods do not depend on it: there all "
    "settings "
    "are the paper's, or chosen within the training rows. `tol`, `random_state` and what else scikit-learn has are "
    "left "
    "out. `benchmarks/defaults.toml` holds this list; a test compares it with the code."
)


def of_code(name: str) -> dict[str, Any]:
    """The defaults that the code has."""
    parameters = inspect.signature(getattr(polyplane, name)).parameters
    return {key: repr(found.default) for key, found in parameters.items() if key not in SHARED}


def markdown() -> str:
    """The page."""
    counts = Counter(found["kind"] for parameters in DECLARED.values() for found in parameters.values())
    lines = ["# How the defaults were chosen", "", INTRODUCTION, ""]
    lines += markdown_table(["chosen", "defaults"], [[words, str(counts[kind])] for kind, words in KINDS.items()])
    for name, parameters in DECLARED.items():
        rows = [
            [f"`{parameter}`", f"`{found['value']}`", KINDS[found["kind"]].split(":")[0], found["how"]]
            for parameter, found in parameters.items()
        ]
        lines += ["", f"## {name}", "", *_left(markdown_table(["parameter", "default", "chosen", "where"], rows))]
    return "\n".join(lines) + "\n"


def _left(table: list[str]) -> list[str]:
    """The same table with all columns of words."""
    return [table[0], table[1].replace("---:", "---"), *table[2:]]
