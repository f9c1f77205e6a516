"""Geometry of planes: distances, counterfactuals, Chebyshev balls, cells and removal of planes."""

from polyplane.explain.geometry._balls import Ball, chebyshev_ball, redundant_planes
from polyplane.explain.geometry._cells import Cell, cells, plane_slice
from polyplane.explain.geometry._committee import committee_counterfactual
from polyplane.explain.geometry._counterfactual import Counterfactual, counterfactual
from polyplane.explain.geometry._distance import signed_distance
from polyplane.explain.geometry._simplify import simplify
from polyplane.explain.geometry._table_counterfactual import TableCounterfactual, table_counterfactual

__all__ = [
    "Ball",
    "Cell",
    "Counterfactual",
    "TableCounterfactual",
    "cells",
    "chebyshev_ball",
    "committee_counterfactual",
    "counterfactual",
    "plane_slice",
    "redundant_planes",
    "signed_distance",
    "simplify",
    "table_counterfactual",
]
