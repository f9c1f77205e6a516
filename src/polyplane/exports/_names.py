"""Feature names in exports."""

from __future__ import annotations

from collections import Counter
from typing import Any


def feature_names(estimator: Any, n_features: int) -> list[str]:
    """Return a unique name for each feature of a fitted estimator; "x0", "x1", ... if it was fitted without names."""
    given = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"x{j}" for j in range(n_features)]
    return unique_names([str(name) for name in given])


def unique_names(names: list[str]) -> list[str]:
    """Return the names; duplicates get their index as a suffix."""
    times = Counter(names)
    return [f"{name}#{j}" if times[name] > 1 else name for j, name in enumerate(names)]
