"""Displays of models, with the interface of scikit-learn's displays. They require Matplotlib (extra `plot`)."""

from polyplane.inspection.displays._effects import EffectsDisplay
from polyplane.inspection.displays._history import HistoryDisplay
from polyplane.inspection.displays._importance import ImportanceDisplay
from polyplane.inspection.displays._margin import MarginDisplay
from polyplane.inspection.displays._reasons import ReasonsDisplay
from polyplane.inspection.displays._regions import RegionsDisplay
from polyplane.inspection.displays._usage import PlaneUsageDisplay
from polyplane.inspection.displays._weights import PlaneWeightsDisplay

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
