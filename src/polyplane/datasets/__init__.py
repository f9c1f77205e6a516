"""Data sets: those of the papers, real and made."""

from polyplane.datasets._boards import make_checkerboard, make_weights
from polyplane.datasets._local import load_local

__all__ = ["load_local", "make_checkerboard", "make_weights"]
