"""Loaders of the papers' data sets, and generators of synthetic data."""

from polyplane.datasets import _loaders
from polyplane.datasets._digits import InfiniteDigits
from polyplane.datasets._loaders import *  # noqa: F403
from polyplane.datasets._loans import make_loans
from polyplane.datasets._synthetic import make_checkerboard, make_polyhedron

__all__ = ["InfiniteDigits", "make_checkerboard", "make_loans", "make_polyhedron"]
__all__ += _loaders.__all__
