"""Data sets."""

from polyplane.datasets._local import load_local

__all__ = ["load_local"]
