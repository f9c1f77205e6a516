"""Values in the types of JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """A value as None, bool, int, float, str, list or dict.

    Parameters
    ----------
    value : object
        Scalars, arrays and scalars of NumPy, and lists, tuples and mappings of them.

    Returns
    -------
    plain : None, bool, int, float, str, list or dict
        Mappings have texts as keys. Floats that are not finite are None, as JSON has no name for them. Anything else
        stands by the name of its type.

    Examples
    --------
    >>> import numpy as np
    >>> plain({1: np.float32(0.5), "scores": np.array([1.0, np.nan]), "generator": np.random.RandomState(0)})
    {'1': 0.5, 'scores': [1.0, None], 'generator': 'RandomState'}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else type(value).__name__
