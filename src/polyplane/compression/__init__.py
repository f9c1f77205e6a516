"""Compressed models: planes within a memory budget, as tables of one-byte weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.compression._compress import compress
    from polyplane.compression._tables import CompressedTables
    from polyplane.compression.classifier import CompressedClassifier

__all__ = ["CompressedClassifier", "CompressedTables", "compress"]

#: The module of each name, imported on first use: prediction from the tables needs NumPy only.
_MODULES = {"CompressedClassifier": "classifier", "CompressedTables": "_tables", "compress": "_compress"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"polyplane.compression.{_MODULES[name]}"), name)
