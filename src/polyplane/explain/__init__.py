"""Explanations of models and predictions: text, displays and HTML reports."""

from polyplane._public import imported_on_use, names_in_stub

_HOMES = names_in_stub(__name__, __file__)
__all__ = list(_HOMES)
__getattr__, __dir__ = imported_on_use(__name__, _HOMES)
