"""Compressed models: planes within a memory budget, as tables of one-byte weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.compression.classifier import CompressedClassifier, compress
    from polyplane.compression.tables import CompressedTables

__all__ = ["CompressedClassifier", "CompressedTables", "compress"]

#: The module of each name, imported on first use: prediction from the tables needs NumPy only.
_MODULES = {"CompressedClassifier": "classifier", "CompressedTables": "tables", "compress": "classifier"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"polyplane.compression.{_MODULES[name]}"), name)
