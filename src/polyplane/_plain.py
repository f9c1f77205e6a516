"""Values in the types of JSON, and texts that are what they look like."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

#: Characters that change what is around them: control characters, line ends, overrides of the direction of writing, and
#: halves of characters, which cannot be encoded.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""A text in which characters that could break a line, or command a terminal, stand as escapes.

    Examples
    --------
    >>> print(visible("a\tb\x1b[2J \u202eabc"))
    a\tb\x1b[2J \u202eabc
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """The same for a JSON text, whose meaning stays the same."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
