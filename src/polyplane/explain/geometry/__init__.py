"""Geometry of planes: distances, counterfactuals, Chebyshev balls, cells and removal of planes."""

from polyplane._public import imported_on_use, names_in_stub

_HOMES = names_in_stub(__name__, __file__)
__all__ = list(_HOMES)
__getattr__, __dir__ = imported_on_use(__name__, _HOMES)
