"""Model files: a fitted estimator in a safetensors file, loaded without executing code from the file."""

from polyplane.files.estimator import LearnerForm as LearnerForm
from polyplane.files.model import ModelFile, ModelFileError
from polyplane.files.model import read_model as read_model
from polyplane.files.model import write_model as write_model
from polyplane.files.parts import Form as Form

__all__ = ["ModelFile", "ModelFileError"]
