"""Geometry of planes: distances, counterfactuals, Chebyshev balls, cells and removal of planes."""

from polyplane.explain.geometry.column_search import TableCounterfactual, table_counterfactual
from polyplane.explain.geometry.point_search import (
    Counterfactual,
    counterfactual,
    signed_distance,
)
from polyplane.explain.geometry.regions import (
    Ball,
    Cell,
    cells,
    chebyshev_ball,
    plane_slice,
    redundant_planes,
    simplify,
)

__all__ = [
    "Ball",
    "Cell",
    "Counterfactual",
    "TableCounterfactual",
    "cells",
    "chebyshev_ball",
    "counterfactual",
    "plane_slice",
    "redundant_planes",
    "signed_distance",
    "simplify",
    "table_counterfactual",
]
