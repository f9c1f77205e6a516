"""The choice of parameters."""

from polyplane.search._search import PlaneSearchCV

__all__ = ["PlaneSearchCV"]
