"""Compressed models: planes within a memory budget, as tables of one-byte weights."""

from typing import TYPE_CHECKING

from polyplane._public import imported_on_use

if TYPE_CHECKING:
    from polyplane.compression.classifier import CompressedClassifier, compress
    from polyplane.compression.tables import CompressedTables

__all__ = ["CompressedClassifier", "CompressedTables", "compress"]

__getattr__ = imported_on_use(
    __name__, {"CompressedClassifier": "classifier", "CompressedTables": "tables", "compress": "classifier"}
)
