"""Explanations of models and predictions: text, displays and HTML reports."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from polyplane.explain.effects import ColumnEffect
    from polyplane.explain.model import ModelExplanation, explain_model
    from polyplane.explain.report import model_report
    from polyplane.explain.row import Flip, RowExplanation, explain_row
    from polyplane.explain.rules import PlaneRule

__all__ = [
    "ColumnEffect",
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
    "explain_model",
    "explain_row",
    "model_report",
]

#: The modules of the names other than displays, which are imported on first use: the command line starts quickly.
_MODULES = {
    "ColumnEffect": "effects",
    "Flip": "row",
    "ModelExplanation": "model",
    "PlaneRule": "rules",
    "RowExplanation": "row",
    "explain_model": "model",
    "explain_row": "row",
    "model_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"polyplane.explain.{_MODULES.get(name, 'displays')}"), name)
