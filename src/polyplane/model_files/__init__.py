"""Model files: a fitted estimator in a safetensors file, read without running any code of it."""

from polyplane.model_files.model import ModelFile, ModelFileError, read_model, write_model

__all__ = ["ModelFile", "ModelFileError", "read_model", "write_model"]
