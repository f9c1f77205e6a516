"""Displays of models, with the interface of scikit-learn's displays. They require Matplotlib (extra `plot`)."""

from polyplane.explain.displays.columns import EffectsDisplay, ImportanceDisplay, ReasonsDisplay
from polyplane.explain.displays.planes import (
    HistoryDisplay,
    MarginDisplay,
    PlaneUsageDisplay,
    PlaneWeightsDisplay,
    RegionsDisplay,
)

__all__ = [
    "EffectsDisplay",
    "HistoryDisplay",
    "ImportanceDisplay",
    "MarginDisplay",
    "PlaneUsageDisplay",
    "PlaneWeightsDisplay",
    "ReasonsDisplay",
    "RegionsDisplay",
]
