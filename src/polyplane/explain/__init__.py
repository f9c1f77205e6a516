"""Explanations of models and predictions: text, displays and HTML reports."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.explain._committee_explanation import CommitteeExplanation
    from polyplane.explain._model_explanation import ModelExplanation, PlaneRule
    from polyplane.explain._row_explanation import Flip, RowExplanation
    from polyplane.explain._table_effects import ColumnEffect
    from polyplane.explain._table_explanation import TableExplanation, TablePlane
    from polyplane.explain._table_row_explanation import ChangedRow, TableRowExplanation
    from polyplane.explain.displays import (
        EffectsDisplay,
        HistoryDisplay,
        ImportanceDisplay,
        MarginDisplay,
        PlaneUsageDisplay,
        PlaneWeightsDisplay,
        ReasonsDisplay,
        RegionsDisplay,
    )
    from polyplane.explain.model import explain_model
    from polyplane.explain.report import model_report
    from polyplane.explain.row import explain_row
    from polyplane.explain.unscaled import UnscaledModel, unwrap

#: The module of each name. Modules are imported on first use, so that the command line starts quickly.
_HOMES = {
    "ChangedRow": "_table_row_explanation",
    "ColumnEffect": "_table_effects",
    "CommitteeExplanation": "_committee_explanation",
    "EffectsDisplay": "displays",
    "Flip": "_row_explanation",
    "HistoryDisplay": "displays",
    "ImportanceDisplay": "displays",
    "MarginDisplay": "displays",
    "ModelExplanation": "_model_explanation",
    "PlaneRule": "_model_explanation",
    "PlaneUsageDisplay": "displays",
    "PlaneWeightsDisplay": "displays",
    "ReasonsDisplay": "displays",
    "RegionsDisplay": "displays",
    "RowExplanation": "_row_explanation",
    "TableExplanation": "_table_explanation",
    "TablePlane": "_table_explanation",
    "TableRowExplanation": "_table_row_explanation",
    "UnscaledModel": "unscaled",
    "explain_model": "model",
    "explain_row": "row",
    "model_report": "report",
    "unwrap": "unscaled",
}

__all__ = [
    "ChangedRow",
    "ColumnEffect",
    "CommitteeExplanation",
    "EffectsDisplay",
    "Flip",
    "HistoryDisplay",
    "ImportanceDisplay",
    "MarginDisplay",
    "ModelExplanation",
    "PlaneRule",
    "PlaneUsageDisplay",
    "PlaneWeightsDisplay",
    "ReasonsDisplay",
    "RegionsDisplay",
    "RowExplanation",
    "TableExplanation",
    "TablePlane",
    "TableRowExplanation",
    "UnscaledModel",
    "explain_model",
    "explain_row",
    "model_report",
    "unwrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"polyplane.explain.{_HOMES[name]}"), name)
