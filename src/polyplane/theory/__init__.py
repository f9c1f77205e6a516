"""Margins, capacities and error bounds of the papers, evaluated on fitted planes."""

from polyplane.theory._mixture import MixtureBound, mixture_bound
from polyplane.theory._multi_hyperplane import (
    GrowthRegret,
    MultiHyperplaneBound,
    growth_regret,
    multi_hyperplane_bound,
    tangent_planes,
)
from polyplane.theory._polytope import PolytopeBound, PolytopeMargins, polytope_bound, polytope_margins

__all__ = [
    "GrowthRegret",
    "MixtureBound",
    "MultiHyperplaneBound",
    "PolytopeBound",
    "PolytopeMargins",
    "growth_regret",
    "mixture_bound",
    "multi_hyperplane_bound",
    "polytope_bound",
    "polytope_margins",
    "tangent_planes",
]
