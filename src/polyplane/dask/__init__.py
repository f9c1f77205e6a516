"""Training on the partitions of a Dask cluster."""

from polyplane.dask.classifiers import DaskPlaneClassifier, DaskTableClassifier

__all__ = ["DaskPlaneClassifier", "DaskTableClassifier"]
