"""Names of features, as the exports write them."""

from __future__ import annotations

from collections import Counter
from typing import Any


def feature_names(estimator: Any, n_features: int) -> list[str]:
    """A name for each feature that an estimator was fitted on, no two of them the same."""
    given = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"x{j}" for j in range(n_features)]
    return different_names([str(name) for name in given])


def different_names(names: list[str]) -> list[str]:
    """The names; those that are there several times get their numbers."""
    times = Counter(names)
    return [f"{name}#{j}" if times[name] > 1 else name for j, name in enumerate(names)]
