"""Explanations, pictures and a page: what a model does, and why."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.inspection._committee_explanation import CommitteeExplanation
    from polyplane.inspection._model_explanation import ModelExplanation, PlaneRule
    from polyplane.inspection._row_explanation import Flip, RowExplanation
    from polyplane.inspection.displays import (
        HistoryDisplay,
        MarginDisplay,
        PlaneUsageDisplay,
        PlaneWeightsDisplay,
        RegionsDisplay,
    )
    from polyplane.inspection.model import explain_model
    from polyplane.inspection.report import model_report
    from polyplane.inspection.row import explain_row
    from polyplane.inspection.unscaled import UnscaledModel, unwrap

#: Where each name lives; they are imported when first used, so that the command line answers at once.
_HOMES = {
    "CommitteeExplanation": "_committee_explanation",
    "Flip": "_row_explanation",
    "HistoryDisplay": "displays",
    "MarginDisplay": "displays",
    "ModelExplanation": "_model_explanation",
    "PlaneRule": "_model_explanation",
    "PlaneUsageDisplay": "displays",
    "PlaneWeightsDisplay": "displays",
    "RegionsDisplay": "displays",
    "RowExplanation": "_row_explanation",
    "UnscaledModel": "unscaled",
    "explain_model": "model",
    "explain_row": "row",
    "model_report": "report",
    "unwrap": "unscaled",
}

__all__ = [
    "CommitteeExplanation",
    "Flip",
    "HistoryDisplay",
    "MarginDisplay",
    "ModelExplanation",
    "PlaneRule",
    "PlaneUsageDisplay",
    "PlaneWeightsDisplay",
    "RegionsDisplay",
    "RowExplanation",
    "UnscaledModel",
    "explain_model",
    "explain_row",
    "model_report",
    "unwrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"polyplane.inspection.{_HOMES[name]}"), name)
