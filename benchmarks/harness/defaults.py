"""Where each default of each estimator comes from, and on which rows it was chosen: a page of the documentation."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.harness import defaults_study
from benchmarks.harness.report import markdown_table

import polyplane

DECLARED: dict[str, dict[str, dict[str, str]]] = tomllib.loads((Path(__file__).parent / "defaults.toml").read_text())
KINDS = {
    "paper": "the paper's value, or that of its authors' program",
    "data": "chosen in each fit from its training rows: on held-out ones, unless said otherwise",
    "training": "chosen on training rows alone",
    "seen": "chosen with knowledge of errors on rows that are tested on here: test rows, or cross-validation folds",
    "convention": "nothing to choose: a convention of scikit-learn or of a file format",
    "not known": "how it was chosen was not recorded",
}
#: What all estimators share with scikit-learn, and what only bounds the work: nothing to choose.
SHARED = {
    "class_weight",
    "early_stopping",
    "fit_intercept",
    "monotonic_cst",
    "n_iter_no_change",
    "n_jobs",
    "probability",
    "random_state",
    "tol",
    "verbose",
    "warm_start",
}
INTRODUCTION = (
    "How each default of each estimator was chosen, and on which rows. This matters for the rows of the "
    "[report](reproduction.md) that say *as it comes*, that is with default parameters: such a figure is optimistic "
    "where a default was chosen with knowledge of errors on the same test rows. In the rows of the papers' own methods "
    "settings are the paper's or chosen within the training rows, except those that a protocol names. `tol`, "
    "`random_state` and other parameters shared with scikit-learn are left out. The list is in "
    "`benchmarks/harness/defaults.toml`; a test compares it with the code."
)
STUDY = (
    "The last column is from `python -m benchmarks.harness.defaults_study`, which compares the defaults of the fourth "
    "and of the last kind with other values, on training rows that no other experiment tests on: {n_sets} sets, ten of "
    "them parts of real ones (for TableClassifier {n_mixed}, two of them with text), each split at random twice, 70 % "
    "to train on and 30 % to measure the error on. A difference is the error with the other value minus that with the "
    "default, in percentage points: the mean over the sets and its standard error. Times are relative to the default. "
    "A default *stands* if no other value is better by more than two standard errors; with so few sets, differences of "
    "half a point often go unnoticed. Of these {n_due} defaults, {stands} stand, another value is better for {better}, "
    "and {rest} were not compared. No default was changed as a result."
)


def of_code(name: str) -> dict[str, Any]:
    """The defaults that the code has."""
    parameters = inspect.signature(getattr(polyplane, name)).parameters
    return {key: repr(found.default) for key, found in parameters.items() if key not in SHARED}


#: The kinds of defaults that are compared with other values.
DUE = ("seen", "not known")
STANDS, BETTER, REST = "stands", "better", "not compared"


def markdown() -> str:
    """The page."""
    counts = Counter(found["kind"] for parameters in DECLARED.values() for found in parameters.values())
    lines = ["# How the defaults were chosen", "", INTRODUCTION, ""]
    lines += markdown_table(["chosen", "defaults"], [[words, str(counts[kind])] for kind, words in KINDS.items()])
    lines += ["", _study()]
    heads = ["parameter", "default", "chosen", "how", "compared with other values"]
    for name, parameters in DECLARED.items():
        rows = [
            [f"`{parameter}`", f"`{found['value']}`", *_origin(found), compared(name, parameter)[1]]
            for parameter, found in parameters.items()
        ]
        lines += ["", f"## {name}", "", *_left(markdown_table(heads, rows))]
    return "\n".join(lines) + "\n"


def _origin(found: dict[str, str]) -> list[str]:
    return [KINDS[found["kind"]].split(":")[0], found["how"]]


def _study() -> str:
    due = [(n, p) for n, parameters in DECLARED.items() for p, found in parameters.items() if found["kind"] in DUE]
    outcomes = Counter(compared(name, parameter)[0] for name, parameter in due)
    numbers = {"stands": outcomes[STANDS], "better": outcomes[BETTER], "rest": outcomes[REST]}
    sizes = {"n_sets": len(defaults_study.SETS), "n_mixed": len(defaults_study.MIXED), "n_due": len(due)}
    return STUDY.format(**sizes, **numbers)


def compared(name: str, parameter: str) -> tuple[str, str]:
    """Whether a default stands beside other values on rows that no experiment tests on, and the words for it."""
    found = DECLARED[name][parameter]
    if found["kind"] not in DUE:
        return "", ""
    studied = found.get("studied", name)
    others = defaults_study.comparisons(studied, parameter)
    if not others:
        return REST, "not compared"
    words = "; ".join(map(str, others))
    words = f"as for {studied}" if studied != name else words
    better = any(other.verdict == "better" for other in others)
    return (BETTER, f"**another value is better**: {words}") if better else (STANDS, f"stands: {words}")


def _left(table: list[str]) -> list[str]:
    """The same table with all columns of words."""
    return [table[0], table[1].replace("---:", "---"), *table[2:]]
