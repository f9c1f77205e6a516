"""OC1's choice of one coefficient of a plane (Murthy, Kasif and Salzberg, JAIR 2, 1994), by trying every value."""

import numpy as np


def twoing(below, above):
    """The twoing value of the class counts of two sides; 0 if one is empty."""
    n_below, n_above = below.sum(), above.sum()
    if n_below == 0 or n_above == 0:
        return 0.0
    n = n_below + n_above
    return n_below / n * n_above / n * np.abs(below / n_below - above / n_above).sum() ** 2


def split_value(plane, X, y, n_classes):
    """The twoing value of a plane over rows that end in a 1."""
    is_above = X @ plane > 0
    return twoing(*(np.bincount(y[side], minlength=n_classes) for side in (~is_above, is_above)))


def best_value(plane, m, X, y, n_classes):
    """The largest value over coefficient `m`: the averages of neighbouring, different U_j = (a_m x_jm - V_j) / x_jm.

    V_j is the score of row j, and rows with x_jm = 0 stay on their side.
    """
    moved = X[:, m] != 0
    U = np.unique((plane[m] * X[moved, m] - X[moved] @ plane) / X[moved, m])
    found = 0.0
    for a_m in (U[1:] + U[:-1]) / 2:
        changed = plane.copy()
        changed[m] = a_m
        found = max(found, split_value(changed, X, y, n_classes))
    return found
