"""Loaders of the papers' data sets, and generators of synthetic data."""

from polyplane.datasets import loaders
from polyplane.datasets.loaders import *  # noqa: F403
from polyplane.datasets.synthetic import make_checkerboard, make_loans, make_polyhedron

__all__ = ["make_checkerboard", "make_loans", "make_polyhedron"]
__all__ += loaders.__all__
