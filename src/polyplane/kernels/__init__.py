"""Numba kernels: the inner loops of the learners, one file each. Imported only before one is run."""
