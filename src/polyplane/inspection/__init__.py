"""See it and explain it: what a model does, and why."""

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
from polyplane.inspection.units import OwnUnits, unwrap

__all__ = [
    "Flip",
    "HistoryDisplay",
    "MarginDisplay",
    "ModelExplanation",
    "OwnUnits",
    "PlaneRule",
    "PlaneUsageDisplay",
    "PlaneWeightsDisplay",
    "RegionsDisplay",
    "RowExplanation",
    "explain_model",
    "explain_row",
    "model_report",
    "unwrap",
]
