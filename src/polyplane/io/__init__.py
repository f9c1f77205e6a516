"""What goes in and out: data files and model files."""

from polyplane.io._read import Batches, batches, read
from polyplane.io._rows import Rows

__all__ = ["Batches", "Rows", "batches", "read"]
