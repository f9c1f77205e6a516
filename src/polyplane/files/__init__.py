"""Model files: a `Model` and its estimator in a safetensors file, loaded without executing code from the file."""

from polyplane.files.container import replace_file as replace_file
from polyplane.files.file import ModelFile, ModelFileError
from polyplane.files.file import read_for_prediction as read_for_prediction
from polyplane.files.file import read_model as read_model
from polyplane.files.file import write_model as write_model

__all__ = ["ModelFile", "ModelFileError"]
