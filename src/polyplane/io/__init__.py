"""What goes in and out: model files."""

from polyplane.io._model import ModelFile, ModelFileError, load, read_model, save

__all__ = ["ModelFile", "ModelFileError", "load", "read_model", "save"]
