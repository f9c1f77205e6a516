"""The same learners over the partitions of a Dask cluster."""

from polyplane.dask._classifier import DaskPlaneClassifier

__all__ = ["DaskPlaneClassifier"]
