"""Small models: planes within a budget of bytes, as tables of one-byte weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.compression._compress import compress
    from polyplane.compression._tables import CompressedTables
    from polyplane.compression.classifier import CompressedClassifier

__all__ = ["CompressedClassifier", "CompressedTables", "compress"]

#: Where each name lives: prediction from the tables needs NumPy only, and imports nothing else.
_HOMES = {"CompressedClassifier": "classifier", "CompressedTables": "_tables", "compress": "_compress"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"polyplane.compression.{_HOMES[name]}"), name)
