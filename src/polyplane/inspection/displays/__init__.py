"""Pictures of models, after scikit-learn's Display protocol. They need Matplotlib (extra `plot`)."""

from polyplane.inspection.displays._history import HistoryDisplay
from polyplane.inspection.displays._margin import MarginDisplay
from polyplane.inspection.displays._regions import RegionsDisplay
from polyplane.inspection.displays._usage import PlaneUsageDisplay
from polyplane.inspection.displays._weights import PlaneWeightsDisplay

__all__ = ["HistoryDisplay", "MarginDisplay", "PlaneUsageDisplay", "PlaneWeightsDisplay", "RegionsDisplay"]
