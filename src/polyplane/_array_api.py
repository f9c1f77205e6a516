"""The array namespace of the inputs: NumPy, PyTorch, CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def namespace(array: Any) -> Any:
    """The module whose functions take `array`: NumPy itself for its arrays, else what the array says of itself."""
    if isinstance(array, np.ndarray):
        return np
    return array.__array_namespace__()
