"""Explanation of a `TableClassifier`: importance of its columns, and effects of their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from polyplane.explain._table_effects import ColumnEffect, column_effects, has_rules, leads
from polyplane.explain._table_explanation import TableExplanation, TablePlane
from polyplane.explain._table_scores import TableScores
from polyplane.explain._table_values import TableRow
from polyplane.inputs.columns import BooleanColumn, CategoryColumn, Column, Range
from polyplane.tables.classifier import TableClassifier

#: Explanations use evenly spaced rows: largest number of rows, smallest number if this exceeds the limit of plane
#: scores, this limit, and the typical number of values of a column.
MOST_ROWS, LEAST_ROWS, MOST_SCORES, VALUES = 1000, 100, 1 << 22, 64
#: Quantiles of a normal distribution, which represent the values of a number of known spread.
QUANTILES = ndtri((np.arange(40) + 0.5) / 40)


def explain_table(estimator: TableClassifier, X: Any = None) -> TableExplanation:
    """Compute the importance of the columns of a table, and the effects of their values.

    Parameters
    ----------
    estimator : TableClassifier
        The fitted classifier.
    X : data frame or array-like of shape (n_rows, n_columns), default=None
        Rows to compute importance and effects on.
    """
    model = estimator.table_model_
    encoding = model.encoding
    scores = TableScores(model, encoding.reference)
    Z = None if X is None else _some(scores, model.encode(X, type(estimator).__name__))
    if Z is None:
        effects = [column_effects(scores, j) for j in range(len(encoding.columns))]
        by_class = np.array([_estimated(*pair) for pair in zip(encoding.columns, effects, strict=True)])
    else:
        parts = scores.columns(Z)
        total = scores.at_reference + parts.sum(axis=1)
        effects = [column_effects(scores, j, Z, total - parts[:, j]) for j in range(len(encoding.columns))]
        by_class = leads(scores.contributions(parts)).std(axis=0)
    typical = TableRow.typical(encoding)
    return TableExplanation(
        learner=type(estimator).__name__,
        classes=estimator.classes_.tolist(),
        columns=tuple(column.name for column in encoding.columns),
        machines=len(model.members),
        importance=np.sqrt(np.square(by_class).mean(axis=1)),
        by_class=by_class,
        effects=tuple(effect for of_column in effects for effect in of_column),
        base=leads(scores.classes(scores.at_reference)),
        reference=dict(zip((column.name for column in encoding.columns), typical.values, strict=True)),
        is_additive=scores.is_additive,
        planes=_planes(scores, estimator.classes_.tolist(), Z) if has_rules(scores) else (),
        dropped=dict(encoding.dropped),
        n_rows=None if Z is None else len(Z),
    )


def _some(scores: TableScores, Z: np.ndarray) -> np.ndarray:
    n_planes = int(scores.starts[-1])
    size = n_planes * (len(scores.model.encoding.columns) if scores.is_additive else VALUES)
    n_rows = min(len(Z), MOST_ROWS, max(LEAST_ROWS, MOST_SCORES // size))
    return Z[np.linspace(0, len(Z) - 1, n_rows).astype(np.intp)]


def _estimated(column: Column, effects: list[ColumnEffect]) -> np.ndarray:
    """Estimate the standard deviation of the effects of a column from the stored distribution of its values."""
    return np.sqrt(sum(_variance(column, effect) for effect in effects))


def _variance(column: Column, effect: ColumnEffect) -> np.ndarray:
    if isinstance(column, CategoryColumn):
        weights = np.array(column.counts, dtype=float)
    elif isinstance(column, BooleanColumn):
        weights = np.array([1.0 - column.neutral, column.neutral])
    else:
        weights = np.ones(len(effect.values))
    sizes, known = effect.effect, getattr(column, "range", None)
    if isinstance(known, Range) and effect.part in (None, "days"):
        middle, values = float(effect.reference or 0.0), np.array(effect.values, dtype=float)
        places = np.clip(middle + known.spread / (2 * ndtri(0.75)) * QUANTILES, known.low, known.high)
        sizes, weights = np.stack([np.interp(places, values, one) for one in sizes.T], axis=1), np.ones(len(places))
    if not weights.any():
        return np.zeros(sizes.shape[1])
    mean = np.average(sizes, axis=0, weights=weights)
    return np.average(np.square(sizes - mean), axis=0, weights=weights)


def _planes(scores: TableScores, labels: list[Any], Z: np.ndarray | None) -> tuple[TablePlane, ...]:
    [member] = scores.model.members
    planes, base = member.planes, scores.at_reference - scores.at_reference.mean()
    usage = None
    if Z is not None:
        own = scores.planes(Z)
        predicted = scores.classes(own).argmax(axis=1)
        winners = np.where(planes.owners == predicted[:, None], own, -np.inf).argmax(axis=1)
        usage = np.bincount(winners, minlength=planes.n_planes) / len(Z)
    return tuple(
        TablePlane(
            label=labels[c],
            number=p - int(planes.indptr[c]) + 1,
            base=float(base[p]),
            share=None if usage is None else float(usage[p]),
        )
        for p, c in enumerate(planes.owners.tolist())
    )
