"""See it and explain it: what a model does, and why."""

from polyplane.inspection.displays import (
    HistoryDisplay,
    MarginDisplay,
    PlaneUsageDisplay,
    PlaneWeightsDisplay,
)
from polyplane.inspection.model import ModelExplanation, PlaneRule, explain_model
from polyplane.inspection.row import Flip, RowExplanation, explain_row
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
    "RowExplanation",
    "explain_model",
    "explain_row",
    "unwrap",
]
