"""The choice of parameters."""

from polyplane.search.plane_search import PlaneSearchCV

__all__ = ["PlaneSearchCV"]
