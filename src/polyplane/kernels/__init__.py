"""Numba kernels: the hot loops of the learners, one file each. Imported only when one is about to run."""
