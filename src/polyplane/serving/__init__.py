"""Prediction from model files with NumPy alone: neither Numba, SciPy, scikit-learn nor pandas is imported."""

from polyplane.model_files.model import ModelFileError
from polyplane.serving._load import load
from polyplane.serving._predictor import Predictor

__all__ = ["ModelFileError", "Predictor", "load"]
