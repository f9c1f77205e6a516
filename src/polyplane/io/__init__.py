"""Reading of data files, model files and exports."""

from polyplane.io._json import to_json
from polyplane.io._model import load, read_model, save
from polyplane.io._read import Batches, batches, read
from polyplane.io._rows import Rows
from polyplane.io._tables import TableBatches, read_table, table_batches
from polyplane.io.exports import to_c, to_javascript, to_sql
from polyplane.model_files import ModelFile, ModelFileError

__all__ = [
    "Batches",
    "ModelFile",
    "ModelFileError",
    "Rows",
    "TableBatches",
    "batches",
    "load",
    "read",
    "read_model",
    "read_table",
    "save",
    "table_batches",
    "to_c",
    "to_javascript",
    "to_json",
    "to_sql",
]
