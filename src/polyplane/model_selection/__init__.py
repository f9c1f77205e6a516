"""The choice of parameters."""

from polyplane.model_selection._search import PlaneSearchCV

__all__ = ["PlaneSearchCV"]
