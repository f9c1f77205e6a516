"""Classifiers made of hyperplanes."""

from polyplane._public import imported_on_use, names_in_stub
from polyplane.learners import LEARNERS

#: The module of each public name.
_HOMES = names_in_stub(__name__, __file__) | {name: f"learners.{module}" for name, module in LEARNERS.items()}
__all__ = list(_HOMES)
__getattr__, __dir__ = imported_on_use(__name__, _HOMES)
