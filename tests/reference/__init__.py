"""The papers' algorithm boxes in plain NumPy: oracles for the kernels, and their documentation."""
