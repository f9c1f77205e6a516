"""Data sets: those of the papers, real and made."""

from polyplane.datasets._boards import make_checkerboard, make_weights
from polyplane.datasets._digits import InfiniteDigits
from polyplane.datasets._local import load_local
from polyplane.datasets._polyhedra import make_polyceptron_1, make_polyceptron_2, make_polyhedron

__all__ = [
    "InfiniteDigits",
    "load_local",
    "make_checkerboard",
    "make_polyceptron_1",
    "make_polyceptron_2",
    "make_polyhedron",
    "make_weights",
]
