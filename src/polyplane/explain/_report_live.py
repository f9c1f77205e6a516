"""The section "Try it" of the report: the model as a script, and inputs to change the values of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._plain import plain, visible
from polyplane.explain._markup import Markup, live_scripts
from polyplane.explain._table_row_explanation import TableRowExplanation
from polyplane.explain._table_values import Value
from polyplane.explain.unscaled import UnscaledModel
from polyplane.exports._javascript import write_javascript
from polyplane.exports._program import Program, learner_program
from polyplane.exports._table_program import table_program
from polyplane.inputs.columns import Column, DateColumn, NumberColumn
from polyplane.tables._model import TableModel
from polyplane.tables.classifier import TableClassifier

#: Name of the model in the page, and the largest script and number of features for which it is included.
NAME, MOST_BYTES, MOST_FEATURES = "polyplaneModel", 2_000_000, 1000
#: Number of inputs that are visible initially, and in total.
SHOWN_INPUTS, MOST_INPUTS = 12, 60


@dataclass(frozen=True)
class Live:
    """A model within the page.

    Parameters
    ----------
    script : str
        The model in JavaScript; empty if it is omitted.
    data : dict
        Data of inputs and rows for the script of the page.
    note : str
        Note to the reader, or the reason why the model is omitted.
    """

    script: str
    data: dict[str, Any]
    note: str

    @classmethod
    def left_out(cls, why: str) -> Live:
        """Return the section of a page without the model."""
        return cls("", {}, f"Values cannot be changed on this page: {why}.")

    def add(self, page: Markup) -> None:
        """Add the section."""
        page.add("h2", "Try it")
        page.add("p", self.note, "quiet")
        if self.script:
            page.live()


def live_table(
    estimator: TableClassifier, order: Sequence[int], explained: Sequence[TableRowExplanation], labels: Sequence[str]
) -> Live:
    """Return the section of a `TableClassifier`; `order` lists its columns, the most important first."""
    model, rows = estimator.table_model_, [why.values for why in explained]
    columns = model.encoding.columns
    if len(columns) > MOST_FEATURES:
        return Live.left_out(f"the model has {len(columns):,} columns, more than {MOST_FEATURES:,}")
    inputs = [_column_input(j, columns[j], [row[j] for row in rows]) for j in order[:MOST_INPUTS]]
    reference = explained[0].reference
    data = {
        "inputs": inputs,
        "rows": [_by_position(model, values) for values in rows],
        "reference": _by_position(model, reference),
        "unit": model.temperature,
        "labels": list(labels),
    }
    seen = "Sliders of numbers cover the range of the training rows." + _calibrated(model.temperature)
    return _live(table_program(estimator), data, f"{seen} {_unshown(len(order), 'columns')}")


def live_planes(model: UnscaledModel, X: Any, explained: Sequence[Any], labels: Sequence[str]) -> Live:
    """Return the section of planes; the inputs are the features with the largest mean contributions in the rows."""
    n_features = model.planes.n_features
    if n_features > MOST_FEATURES:
        return Live.left_out(f"the model has {n_features:,} features, more than {MOST_FEATURES:,}")
    shares = np.abs([why.shares for why in explained]).mean(axis=0)
    order = np.argsort(-shares, kind="stable").tolist()
    low, high, is_whole = _seen(model.rows(X))
    spread = np.broadcast_to(explained[0].scale, n_features)
    inputs = [_number_input(j, low[j], high[j], bool(is_whole[j]), spread[j]) for j in order[:MOST_INPUTS]]
    data = {
        "inputs": inputs,
        "rows": [why.values for why in explained],
        "reference": explained[0].reference,
        "unit": 1.0,
        "labels": list(labels),
    }
    seen = "Each slider covers the range of the feature in the rows of this page."
    program = learner_program(model.learner, model.planes.to_numpy(), model.feature_names)
    return _live(program, data, f"{seen} {_unshown(len(order), 'features')}")


def _live(program: Program, data: dict[str, Any], note: str) -> Live:
    try:
        script = write_javascript(program, NAME)
    except ValueError as error:  # a name or a label that cannot be written in JavaScript
        return Live.left_out(visible(str(error)).rstrip("."))
    size = len(script.encode())
    if size > MOST_BYTES:
        return Live.left_out(f"the model needs {size / 1e6:.1f} MB in JavaScript, more than {MOST_BYTES / 1e6:g} MB")
    data = plain({**data, "shown": SHOWN_INPUTS, "soft": program.is_soft})
    grown = size + len(live_scripts().encode()) + len(json.dumps(data))
    what = (
        "Change the values of a row: the model is part of this page and predicts as you type. "
        f"This section has {grown / 1000:,.0f} kB, of which {size / 1000:,.0f} kB are the model."
    )
    return Live(script, data, f"{what} {note}".strip())


def _calibrated(temperature: float) -> str:
    if abs(temperature - 1.0) < 0.005:
        return ""
    return f" Log-odds are differences of scores divided by {temperature:.2f}, the calibration temperature."


def _unshown(count: int, what: str) -> str:
    if count <= MOST_INPUTS:
        return ""
    return (
        f"The {MOST_INPUTS} most important of {count} {what} can be changed; the others keep their values of the row."
    )


def _by_position(model: TableModel, values: Sequence[Value]) -> list[Value]:
    """Return values of the encoded columns as a row of the whole table."""
    encoding = model.encoding
    row: list[Value] = [None] * len(encoding.names)
    for column, value in zip(encoding.columns, values, strict=True):
        row[encoding.names.index(column.name)] = value
    return row


def _seen(rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each feature of dense or sparse rows, and if all are integers."""
    if not sparse.issparse(rows):
        return rows.min(axis=0), rows.max(axis=0), (rows == np.round(rows)).all(axis=0)
    is_whole = np.ones(rows.shape[1], dtype=bool)
    is_whole[rows.indices[rows.data != np.round(rows.data)]] = False
    return rows.min(axis=0).toarray().ravel(), rows.max(axis=0).toarray().ravel(), is_whole


def _column_input(j: int, column: Column, values: Sequence[Value]) -> dict[str, Any]:
    """Return the input of a column; "missing" is offered if the training rows or one of the rows had missing values."""
    missing = {"missing": column.has_gaps or None in values}
    if isinstance(column, NumberColumn):
        return {**_number_input(j, *column.range[:2], column.is_whole, column.range.spread), **missing}
    if isinstance(column, DateColumn):
        low, high, spread = column.range
        return {"column": j, "low": low, "high": high, "spread": spread, "timed": "hour" in column.parts, **missing}
    return {"column": j, **missing}


def _number_input(j: int, low: float, high: float, whole: bool, spread: float) -> dict[str, Any]:
    return {"column": j, "low": low, "high": high, "whole": whole, "spread": spread, "missing": False}
