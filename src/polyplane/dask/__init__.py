"""Training on the partitions of a Dask cluster."""

from polyplane.dask._classifier import DaskPlaneClassifier
from polyplane.dask._table_classifier import DaskTableClassifier

__all__ = ["DaskPlaneClassifier", "DaskTableClassifier"]
