"""Monotone columns: with them grow the probabilities of some classes, or fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def ranks_of(estimator: Any) -> np.ndarray | None:
    """Return the ranks of `class_ranks` by the constraints of an estimator of a matrix; None without constraints."""
    constraints = getattr(estimator, "monotonic_cst", None)
    if constraints is None:
        return None
    names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    return class_ranks(constraints, [*map(str, names)], estimator.classes_)


def class_ranks(monotonic_cst: Any, names: Sequence[str], classes: np.ndarray) -> np.ndarray | None:
    r"""Return the order of the classes that the constraints of each column ask for; None if all are 0.

    The score of a class grows at least as fast with a column as that of another one if no plane of the former has a
    smaller weight for it than any plane of the latter. If this holds for the class and all others, all differences of
    its score to those of other classes are non-decreasing, for maxima, for log-sum-exps and for means of such scores
    over members, and so is its probability.

    Parameters
    ----------
    monotonic_cst : dict or array-like of shape (n_columns,)
        For each column 1, -1 or 0; a dict of classes to 1, -1 or 0; or "ordered".
    names : sequence of str
        Names of the columns; in a dict, indices are allowed as well.
    classes : ndarray of shape (n_classes,)
        The labels.

    Returns
    -------
    ranks : ndarray of shape (n_columns, n_classes) or None
        Ranks of the classes: weights of planes of a higher rank are at least those of a lower one. Classes of equal
        rank are not compared.
    """
    if isinstance(monotonic_cst, Mapping):
        given = dict(monotonic_cst)
    else:
        values = np.asarray(monotonic_cst)
        if values.shape != (len(names),):
            raise ValueError(f"monotonic_cst has shape {values.shape}, but there are {len(names)} columns.")
        given = dict(enumerate(values.tolist()))
    ranks = np.zeros((len(names), len(classes)), dtype=np.int64)
    for column, direction in given.items():
        is_index = isinstance(column, int | np.integer) and 0 <= column < len(names)
        if not is_index and column not in names:
            raise ValueError(f"monotonic_cst names {column!r}, which is not a column.")
        j = column if is_index else list(names).index(column)
        if ranks[j].any():
            raise ValueError(
                f"monotonic_cst has two constraints of one column: its name, {names[j]!r}, and its index, {j}."
            )
        ranks[j] = _ranks_of(column, direction, classes)
    return ranks if ranks.any() else None


def _ranks_of(column: Any, direction: Any, classes: np.ndarray) -> np.ndarray:
    """Return the ranks of the classes for one column."""
    where, labels = f"monotonic_cst of {column!r}", classes.tolist()
    if isinstance(direction, str) and direction == "ordered":
        return np.arange(len(labels))
    if not isinstance(direction, Mapping):
        if direction not in (-1, 0, 1):
            raise ValueError(f"{where} must be 1, -1, 0, 'ordered' or a dict of classes, not {direction!r}.")
        if direction and len(labels) > 2:
            raise ValueError(
                f"{where} is {direction}, but there are {len(labels)} classes: name the class, {{{labels[-1]!r}: "
                f"{direction}}}, or use 'ordered'."
            )
        direction = {labels[-1]: direction}
    ranks = np.zeros(len(labels), dtype=np.int64)
    for label, sign in direction.items():
        if label not in labels or sign not in (-1, 0, 1):
            raise ValueError(f"{where} maps {label!r} to {sign!r}: expected 1, -1 or 0 for one of {labels}.")
        ranks[labels.index(label)] = sign
    for sign, verb in ((1, "grow"), (-1, "fall")):
        if np.count_nonzero(ranks == sign) > 1:
            raise ValueError(f"{where} is contradictory: the probabilities of two classes cannot both {verb} always.")
    return ranks
