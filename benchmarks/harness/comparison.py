"""The page that compares `TableClassifier` with other classifiers.

``python -m benchmarks.harness.comparison`` writes it, from what `benchmarks.peers.table_classifier` has measured.
"""

import json
from typing import Any

import numpy as np
from benchmarks.harness.results import ROOT

RESULTS = ROOT / "benchmarks" / "peers" / "results"
PAGE = ROOT / "docs" / "comparison.md"
#: The models, as the page names them; one machine alone does not compete for ranks.
NAMES = {
    "TableClassifier": "`TableClassifier()`",
    "TableClassifier(1)": "`TableClassifier(1)`, one machine",
    "CatBoost": "CatBoost",
    "LightGBM": "LightGBM",
    "HistGB": "`HistGradientBoostingClassifier`",
    "RandomForest": "`RandomForestClassifier`",
    "EBM": "EBM (interpret)",
    "SVC": "`SVC`",
    "MLP": "`MLPClassifier`",
    "LogisticRegression": "`LogisticRegression`",
}
OURS, ONE = "TableClassifier", "TableClassifier(1)"
#: Differences of at least so many points are named.
CLEAR = 1.0

INTRODUCTION = """# Comparison

Where Polyplane wins and where it loses, measured. Written by `python -m benchmarks.harness.comparison`.

## Tables, default parameters

{n_tables} public tables, most of them small, five folds (`python -m benchmarks.peers.table_classifier`). Nothing \
is tuned. `TableClassifier` and EBM get the raw table; the other classifiers get it imputed, one-hot encoded and \
standardised. Ranks are by error, among all but the single machine. Times are CPU seconds of one thread, means over \
the tables.{partial}
"""
CHOSEN = """
How were our defaults chosen? On held-out training rows within each fit where possible. The set of preparations, \
and a few limits, were chosen by means over these tables with their folds in sight; [this \
list](reproduction_defaults.md) says which. On {n_other} other tables that no default was chosen on, one fold: \
error {other}.
"""
WORDS = """
## Which one to take

* **`TableClassifier`** for tables of up to a few hundred thousand rows where accuracy, calibrated probabilities and \
exact explanations matter. It is slower to train than LightGBM or a forest on small tables, and faster to predict \
than forests and SVMs.
* **Gradient boosting** (CatBoost, LightGBM) where interactions of many columns with sharp thresholds decide, and \
training time matters.
* **EBM** if an additive model is required; `TableClassifier(1)` with one plane per class is additive, too.
* **`SVC`** for small numeric data without missing values, if prediction time does not matter.
* **`LogisticRegression`** if it is as accurate: nothing is simpler.

## Other measurements

* Larger numeric data beside a tuned RBF-SVM: the table in the README, from \
`benchmarks/peers/multi_hyperplane.py`.
* Counterfactuals on adult beside DiCE: {dice_random:.0f} times faster than its random method, {dice_genetic:.0f} \
times faster than its genetic one; all of {found} feasible, {proven} proven to change the fewest columns \
(`benchmarks/peers/table_counterfactuals.py`).
* [The methods of the five papers](reproduction.md), beside the figures of the papers.
"""


def read(name: str) -> dict[str, Any]:
    """The figures of an experiment."""
    return json.loads((RESULTS / f"{name}.json").read_text())["figures"]


def means(figures: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """By table and model the mean over the folds of each figure, and the errors of the folds."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key, values in figures.items():
        table, _, model = key.partition(": ")
        if model in NAMES:
            row = {name: float(np.mean(each)) for name, each in values.items() if isinstance(each, list)}
            found.setdefault(table, {})[model] = row | {"errors": values["error"]}
    return found


def ranks(tables: dict[str, Any], models: list[str]) -> dict[str, float]:
    """The mean rank of each model by its error; equal errors share their ranks."""
    places = []
    for table in tables.values():
        errors = np.array([table[model]["error"] for model in models])
        places.append([(errors < e).sum() + ((errors == e).sum() + 1) / 2 for e in errors])
    return dict(zip(models, np.mean(places, axis=0), strict=True))


def summary(tables: dict[str, Any], models: list[str]) -> list[str]:
    """The table of means, the best rank first."""
    place = ranks(tables, [model for model in models if model != ONE])
    lines = ["| | mean rank | error | log-loss | fit, s | predict, s |", "|---|---:|---:|---:|---:|---:|"]
    for model in sorted(models, key=lambda m: place.get(m, place[OURS] + 0.001)):
        columns = {
            name: [t[model][name] for t in tables.values() if name in t[model]]
            for name in ("error", "loss", "fit", "predict")
        }
        rank = f"{place[model]:.2f}" if model in place else ""
        loss = f"{np.mean(columns['loss']):.3f}" if columns["loss"] else ""
        error, fit, predict = (np.mean(columns[name]) for name in ("error", "fit", "predict"))
        lines.append(f"| {NAMES[model]} | {rank} | {error:.2f} % | {loss} | {fit:.2f} | {predict:.3f} |")
    return lines


def by_table(tables: dict[str, Any], models: list[str]) -> list[str]:
    """The errors of each table, the least in bold."""
    lines = ["| error, % | " + " | ".join(models) + " |"]
    lines.append("|---|" + "---:|" * len(models))
    for name, table in tables.items():
        least = min(table[model]["error"] for model in models)
        cells = [f"**{e:.1f}**" if (e := table[model]["error"]) <= least + 0.05 else f"{e:.1f}" for model in models]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def unfinished(tables: dict[str, Any], models: list[str]) -> str:
    """How models compare that were not measured on all tables, which takes them hours."""
    lines = []
    for model in (m for m in NAMES if m not in models):
        both = [(t[OURS], t[model]) for t in tables.values() if model in t]
        if both:
            theirs = [other["error"] for _, other in both]
            ours = [np.mean(own["errors"][: len(other["errors"])]) for own, other in both]  # the same folds
            better, worse = (
                sum(a < b for a, b in zip(*pair, strict=True)) for pair in ((ours, theirs), (theirs, ours))
            )
            fit = [np.mean([each[i]["fit"] for each in both]) for i in (0, 1)]
            lines.append(
                f"* {NAMES[model]}, on {len(both)} tables: error {np.mean(theirs):.2f} %, ours {np.mean(ours):.2f} %; "
                f"ours is better on {better} and worse on {worse}; fit {fit[1]:.1f} s, ours {fit[0]:.1f} s."
            )
    return "\n" + "\n".join(["Not measured on all tables, as fits take minutes:", "", *lines]) + "\n" if lines else ""


def named(tables: dict[str, Any], models: list[str]) -> str:
    """Where we are clearly behind the best of the others, and where clearly ahead."""
    difference = {
        name: table[OURS]["error"] - min(table[m]["error"] for m in models if m not in (OURS, ONE))
        for name, table in tables.items()
    }
    behind = [f"{name} ({d:.1f})" for name, d in sorted(difference.items(), key=lambda item: -item[1]) if d >= CLEAR]
    ahead = [f"{name} ({-d:.1f})" for name, d in sorted(difference.items(), key=lambda item: item[1]) if d <= -CLEAR]
    return (
        f"\nAgainst the *best* of the others on each table, {len(ahead)} tables are better by a point or more: "
        f"{', '.join(ahead)}; {len(behind)} are worse by as much: {', '.join(behind)}.\n"
    )


def markdown() -> str:
    """The page."""
    from benchmarks.data.tables import OTHER_TABLES, TABLES

    figures = means(read("table_classifier"))
    models = [m for m in NAMES if all(m in figures.get(t, {}) for t in TABLES)]
    tables = {name: figures[name] for name in TABLES}
    few = sorted({NAMES[m] for t in tables.values() for m in models if len(t[m]["errors"]) < 5})
    partial = f" {' and '.join(few)} ran fewer folds of some tables, where a fit takes minutes." if few else ""
    others = {name: figures[name] for name in OTHER_TABLES if name in figures}
    common = [m for m in NAMES if all(m in table for table in others.values())] if others else []
    other = ", ".join(f"{NAMES[m]} {np.mean([t[m]['error'] for t in others.values()]):.2f} %" for m in common)
    found = read("table_counterfactuals")
    words = WORDS.format(
        dice_random=found["dice"]["random"]["times_slower"],
        dice_genetic=found["dice"]["genetic"]["times_slower"],
        found=found["ours"]["found"],
        proven=found["ours"]["proven"],
    )
    parts = [
        INTRODUCTION.format(n_tables=len(tables), partial=partial),
        "\n".join(summary(tables, models)),
        unfinished(tables, models),
        named(tables, models),
        "\n".join(by_table(tables, models)),
        CHOSEN.format(n_other=len(others), other=other) if others else "",
        words,
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    print(f"Written: {PAGE.relative_to(ROOT)}")
