"""The section "Try it" of the report: the model as a script, and inputs to change the values of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from polyplane._plain import plain, visible
from polyplane.explain.columns import ModelColumns
from polyplane.explain.markup import live_scripts
from polyplane.explain.model import ModelExplanation
from polyplane.explain.row import RowExplanation
from polyplane.exports import to_javascript

#: Name of the model in the page, and the largest script and number of columns for which it is included.
NAME, MAX_BYTES, MAX_COLUMNS = "polyplaneModel", 2_000_000, 1000
#: Number of inputs that are visible initially, and in total.
SHOWN_INPUTS, MAX_INPUTS = 12, 60


def left_out(why: str) -> tuple[str, dict[str, Any], str]:
    """Return the section of a page without the model, as `live_section` does."""
    return "", {}, f"Values cannot be changed on this page: {why}."


def live_section(
    columns: ModelColumns, told: ModelExplanation, explained: Sequence[RowExplanation]
) -> tuple[str, dict[str, Any], str]:
    """Return the section with inputs for the most important columns.

    Returns
    -------
    script : str
        The model in JavaScript; empty if it is omitted.
    data : dict
        Data of inputs and rows for the script of the page.
    note : str
        Note to the reader, or the reason why the model is omitted.
    """
    model, n_columns = columns.model, len(columns.names)
    if n_columns > MAX_COLUMNS:
        return left_out(f"the model has {n_columns:,} columns, more than {MAX_COLUMNS:,}")
    inputs: Any = model.inputs
    try:
        if not inputs.is_table:
            model = replace(model.flat(), inputs=replace(inputs, given_names=tuple(columns.names)))
        script = to_javascript(model, name=NAME)
    except ValueError as error:  # a name or a label that cannot be written in JavaScript
        return left_out(visible(str(error)).rstrip("."))
    size = len(script.encode())
    if size > MAX_BYTES:
        return left_out(f"the model needs {size / 1e6:.1f} MB in JavaScript, more than {MAX_BYTES / 1e6:g} MB")
    names = list(inputs.names if inputs.is_table else columns.names)
    positions = [names.index(name) for name in columns.names] if inputs.is_table else range(n_columns)

    def cells(values: Sequence[Any]) -> list[Any]:
        row: list[Any] = [None] * len(names)
        for position, value in zip(positions, values, strict=True):
            row[position] = value
        return row

    data = plain(
        {
            "inputs": [_input(columns, j, explained) for j in told.by_importance()[:MAX_INPUTS]],
            "rows": [cells(why.values) for why in explained],
            "reference": cells(columns.reference.values),
            "unit": model.unit,
            "labels": [visible(str(label)) for label in model.classes.tolist()],
            "shown": SHOWN_INPUTS,
            "soft": model.planes.pooling == "logsumexp" and not model.is_additive,
            "weights": model.planes.member_weight,
        }
    )
    grown = size + len(live_scripts().encode()) + len(json.dumps(data))
    note = (
        "Change the values of a row: the model is part of this page and predicts as you type. "
        f"This section has {grown / 1000:,.0f} kB, of which {size / 1000:,.0f} kB are the model. "
        f"Sliders cover the range of the {'training rows' if inputs.is_table else 'rows of this page'}."
    )
    if abs(model.unit - 1.0) >= 0.005:
        note += f" Log-odds are differences of scores divided by {model.unit:.2f}, the calibration temperature."
    if n_columns > MAX_INPUTS:
        note += f" The {MAX_INPUTS} most important of {n_columns} columns can be changed; the others keep their values."
    return script, data, note


def _input(columns: ModelColumns, j: int, explained: Sequence[RowExplanation]) -> dict[str, Any]:
    """Return the input of a column; "missing" is offered if the training rows or one of the rows had missing values."""
    column: Any = columns.column(j)
    told: dict[str, Any] = {"column": j, "missing": column.has_gaps or any(why.values[j] is None for why in explained)}
    known = getattr(column, "range", None)
    if known is not None:
        told |= {"low": known.low, "high": known.high, "spread": known.spread}
        told |= {"timed": "hour" in column.parts} if column.kind == "date" else {"whole": column.is_whole}
    return told
