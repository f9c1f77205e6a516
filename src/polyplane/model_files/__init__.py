"""Model files: a fitted estimator in a safetensors file, loaded without executing code from the file."""

from polyplane.model_files.estimator import LearnerForm
from polyplane.model_files.model import ModelFile, ModelFileError, read_model, write_model
from polyplane.model_files.parts import Form

__all__ = ["Form", "LearnerForm", "ModelFile", "ModelFileError", "read_model", "write_model"]
