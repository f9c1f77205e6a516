"""Classifiers made of hyperplanes."""

from typing import TYPE_CHECKING

from polyplane._public import imported_on_use
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

#: The module of each public name.
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
__getattr__ = imported_on_use(__name__, _HOMES)

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


def __dir__() -> list[str]:
    return sorted(__all__)
