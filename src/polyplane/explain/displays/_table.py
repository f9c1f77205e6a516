"""Explanations for the displays of tables."""

from __future__ import annotations

from typing import Any

from polyplane.explain._estimators import table_classifier
from polyplane.explain._explain_table import explain_table
from polyplane.explain._table_explanation import TableExplanation


def table_explanation(estimator: Any, X: Any) -> TableExplanation:
    """Return the explanation of a `TableClassifier`."""
    if isinstance(estimator, TableExplanation):
        return estimator
    table = table_classifier(estimator)
    if table is None:
        raise TypeError(f"This display requires a TableClassifier, not a {type(estimator).__name__}.")
    return explain_table(table, X)
