"""Prediction from model files. Only NumPy is required; Numba, SciPy, scikit-learn and pandas are not imported."""

from polyplane.files.model import ModelFileError
from polyplane.serving._load import load
from polyplane.serving._predictor import Predictor

__all__ = ["ModelFileError", "Predictor", "load"]
