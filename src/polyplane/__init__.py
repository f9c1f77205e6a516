"""Classifiers made of hyperplanes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polyplane._version import __version__
from polyplane.learners import LEARNERS

if TYPE_CHECKING:
    from polyplane.compression import compress
    from polyplane.exports.file import export
    from polyplane.learners import *  # noqa: F403
    from polyplane.loading import load, save
    from polyplane.model import Model
    from polyplane.planes import PlaneCommittee, PlaneSet
    from polyplane.search import PlaneSearchCV
    from polyplane.tables.classifier import TableClassifier
    from polyplane.tables.encoder import TableEncoder

#: The module of each public name. They are imported on first use, so that the command line starts quickly.
_HOMES = {
    **{name: f"learners.{module}" for name, module in LEARNERS.items()},
    "Model": "model",
    "PlaneCommittee": "planes",
    "PlaneSearchCV": "search",
    "PlaneSet": "planes",
    "TableClassifier": "tables.classifier",
    "TableEncoder": "tables.encoder",
    "compress": "compression.classifier",
    "export": "exports.file",
    "load": "loading",
    "save": "loading",
}

__all__ = [
    "Model",
    "PlaneCommittee",
    "PlaneSearchCV",
    "PlaneSet",
    "TableClassifier",
    "TableEncoder",
    "__version__",
    "compress",
    "export",
    "load",
    "save",
]
__all__ += LEARNERS


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"polyplane.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
