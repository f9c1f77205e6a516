"""Texts about rows that all reports share."""

from __future__ import annotations

from typing import Any

from polyplane._plain import visible
from polyplane.explain._report_body import Predictions


def as_text(label: Any) -> str:
    """Convert a label to text for the page."""
    return visible(str(label))


def named_row(predictions: Predictions, i: int) -> dict[str, Any]:
    """Return the number, the name and the classes of a row."""
    truth, label = (as_text(predictions.labels[codes[i]]) for codes in (predictions.truth, predictions.predicted))
    name = f"row {i}: {label}" + ("" if label == truth else f" (true: {truth})")
    return {"number": i, "name": name, "label": label, "truth": truth}


def flip_title(smallest: str, label: Any) -> str:
    """Return the title of a change."""
    return (
        f"{smallest} that leads to class \N{LEFT DOUBLE QUOTATION MARK}{as_text(label)}\N{RIGHT DOUBLE QUOTATION MARK}"
    )
