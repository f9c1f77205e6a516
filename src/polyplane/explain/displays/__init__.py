"""Displays of models, with the interface of scikit-learn's displays. They require Matplotlib (extra `plot`)."""

from polyplane.explain.displays._effects import EffectsDisplay
from polyplane.explain.displays._history import HistoryDisplay
from polyplane.explain.displays._importance import ImportanceDisplay
from polyplane.explain.displays._margin import MarginDisplay
from polyplane.explain.displays._reasons import ReasonsDisplay
from polyplane.explain.displays._regions import RegionsDisplay
from polyplane.explain.displays._usage import PlaneUsageDisplay
from polyplane.explain.displays._weights import PlaneWeightsDisplay

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
