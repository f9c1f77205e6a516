"""Explanations of models and predictions: text, displays and HTML reports."""

from typing import TYPE_CHECKING

from polyplane._public import imported_on_use

if TYPE_CHECKING:
    from polyplane.explain.displays.columns import EffectsDisplay, ImportanceDisplay, ReasonsDisplay
    from polyplane.explain.displays.planes import (
        HistoryDisplay,
        MarginDisplay,
        PlaneUsageDisplay,
        PlaneWeightsDisplay,
        RegionsDisplay,
    )
    from polyplane.explain.effects import ColumnEffect
    from polyplane.explain.model import ModelExplanation, explain_model
    from polyplane.explain.report import model_report
    from polyplane.explain.robustness import (
        RobustnessDisplay,
        certified_radius,
        nearest_adversarial,
        robust_error,
    )
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
    "RobustnessDisplay",
    "RowExplanation",
    "certified_radius",
    "explain_model",
    "explain_row",
    "model_report",
    "nearest_adversarial",
    "robust_error",
]

_MODULES = {
    "displays.columns": ("EffectsDisplay", "ImportanceDisplay", "ReasonsDisplay"),
    "displays.planes": (
        "HistoryDisplay", "MarginDisplay", "PlaneUsageDisplay", "PlaneWeightsDisplay", "RegionsDisplay",
    ),
    "effects": ("ColumnEffect",),
    "model": ("ModelExplanation", "explain_model"),
    "report": ("model_report",),
    "robustness": ("RobustnessDisplay", "certified_radius", "nearest_adversarial", "robust_error"),
    "row": ("Flip", "RowExplanation", "explain_row"),
    "rules": ("PlaneRule",),
}  # fmt: skip
__getattr__ = imported_on_use(__name__, {name: module for module, names in _MODULES.items() for name in names})
