"""Explanation of a table row: contributions of its columns, and the smallest change that leads to another class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyplane.base import class_index
from polyplane.explain._table_row_explanation import ChangedRow, TableRowExplanation
from polyplane.explain._table_scores import TableScores
from polyplane.explain._table_values import TableRow
from polyplane.explain.geometry import table_counterfactual
from polyplane.tables._probabilities import softmax
from polyplane.tables.classifier import TableClassifier


def explain_table_row(
    estimator: TableClassifier,
    x: Any,
    *,
    reference: Any = None,
    target: Any = None,
    true_label: Any = None,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    increasing: Any = None,
    decreasing: Any = None,
    max_columns: int | None = None,
    search: bool = True,
) -> TableRowExplanation:
    """Explain the prediction for a table row; the parameters are those of `explain_row`."""
    encoding, owner = estimator.table_model_.encoding, type(estimator).__name__
    row = TableRow.read(encoding, x, owner)
    typical = TableRow.typical(encoding) if reference is None else TableRow.read(encoding, reference, owner)
    scores = TableScores(estimator.table_model_, typical.z)
    parts = scores.of_row(row.z)
    at_row, at_reference = (scores.classes(s) for s in (scores.at_reference + parts.sum(axis=0), scores.at_reference))
    c = int(at_row.argmax())
    goal = _goal(estimator, c, target, true_label)
    d = int(np.where(np.arange(len(at_row)) == c, -np.inf, at_row).argmax()) if goal in (None, c) else goal
    contributions = scores.contributions(parts[None])[0]
    flip = None
    if search:
        bounds = _bounds(lower, upper)
        rules = {"frozen": frozen or (), "increasing": increasing or (), "decreasing": decreasing or ()}
        flip = _flip(estimator, row.z, goal, {**rules, "bounds": bounds, "max_columns": max_columns})
    labels = estimator.classes_.tolist()
    return TableRowExplanation(
        label=labels[c],
        rival=labels[d],
        true_label=None if true_label is None else labels[class_index("true_label", true_label, estimator.classes_)],
        classes=labels,
        probabilities=softmax(at_row[None])[0],
        difference=float(at_row[c] - at_row[d]),
        base=float(at_reference[c] - at_reference[d]),
        contributions=contributions[:, c] - contributions[:, d],
        values=row.values,
        reference=typical.values,
        columns=encoding.columns,
        unseen=row.unseen,
        flip=flip,
        searched=search,
        machines=len(estimator.table_model_.members),
    )


def _goal(estimator: TableClassifier, predicted: int, target: Any, true_label: Any) -> int | None:
    """Return the target class: the given one, otherwise the true class if another is predicted."""
    if target is not None:
        return class_index("target", target, estimator.classes_)
    truth = predicted if true_label is None else class_index("true_label", true_label, estimator.classes_)
    return None if truth == predicted else truth


def _bounds(lower: Any, upper: Any) -> dict[str, tuple[Any, Any]]:
    for name, given in (("lower", lower), ("upper", upper)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"For a TableClassifier, {name} must be a dict of column name to bound, not {given!r}.")
    low, high = lower or {}, upper or {}
    return {name: (low.get(name), high.get(name)) for name in {**low, **high}}


def _flip(estimator: TableClassifier, z: np.ndarray, goal: int | None, allowed: dict[str, Any]) -> ChangedRow | None:
    found = table_counterfactual(estimator.table_model_, z, goal, **allowed)
    if found is None:
        return None
    return ChangedRow(estimator.classes_.tolist()[found.target], found.changes, found.distance, found.proven)
