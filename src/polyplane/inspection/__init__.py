"""See it and explain it: what a model does, and why."""

from polyplane.inspection.displays import (
    HistoryDisplay,
    MarginDisplay,
    PlaneUsageDisplay,
    PlaneWeightsDisplay,
)

__all__ = ["HistoryDisplay", "MarginDisplay", "PlaneUsageDisplay", "PlaneWeightsDisplay"]
