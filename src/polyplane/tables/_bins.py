"""Piecewise-linear bins of a number, at the splits of a small decision tree."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Largest number of leaves of the tree of a column. The smallest number of rows of a leaf is the maximum of the second
#: number and the third times the square root of the number of rows. (Mean error on 17 tables: 15.7 % with 8 leaves of a
#: hundredth of the rows, 15.4 % with 16 leaves; on adult 14.1 and 13.4 %.)
LEAVES, LEAST_ROWS, LEAST_ROOTS = 16, 5, 0.3
#: Number of rows that a tree is fitted on.
SAMPLE = 20_000


def tree_knots(values: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the ends of the bins of a column: the splits of a small classification tree, and the range of the column.

    Quantiles fail for a column that is 0 in nine of ten rows, since nearly all of them are 0; a tree splits at 0 and
    between the other values.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = np.linspace(0, len(values) - 1, min(len(values), SAMPLE)).astype(int)
    tree = DecisionTreeClassifier(
        criterion="entropy",
        max_leaf_nodes=LEAVES,
        min_samples_leaf=max(LEAST_ROWS, int(LEAST_ROOTS * len(rows) ** 0.5)),
        random_state=0,
    )
    # Trees use float32, in which large numbers with small differences are equal; their ranks are distinct.
    different, rank = np.unique(values[rows], return_inverse=True)
    column = rank[:, None].astype(np.float32)
    tree.fit(column, y[rows], None if weight is None else weight[rows], check_input=False)
    below = tree.tree_.threshold[tree.tree_.children_left >= 0].astype(int)
    if not len(below):
        return np.empty(0)
    splits = 0.5 * (different[below] + different[below + 1])
    return np.unique(np.concatenate([[values.min()], splits, [values.max()]]))


def bin_values(values: Any, knots: np.ndarray) -> np.ndarray:
    """Return the part of each bin below a value: 1 for lower bins, 0 for higher bins, a fraction for its own bin."""
    low, width = knots[:-1], np.diff(knots)
    return np.clip((values[:, None] - low) / width, 0.0, 1.0)
