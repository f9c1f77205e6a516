"""Conversion of values to JSON types, and escapes for unsafe characters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Unsafe characters: control characters, line separators, bidirectional overrides, and surrogates, which cannot be
#: encoded.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" with the most similar known word, or an empty string if none is similar.

    Examples
    --------
    >>> did_you_mean("alhpa", ["alpha", "beta"])
    " Did you mean 'alpha'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def visible(text: str) -> str:
    r"""Escape characters that could break a line or control a terminal.

    Examples
    --------
    >>> print(visible("a\tb\x1b[2J \u202eabc"))
    a\tb\x1b[2J \u202eabc
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Escape such characters in a JSON text, without changing its meaning."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: Any) -> Any:
    """Convert a value to None, bool, int, float, str, list or dict.

    Parameters
    ----------
    value : object
        Python scalars, NumPy scalars and arrays, and lists, tuples and mappings of them.

    Returns
    -------
    plain : None, bool, int, float, str, list or dict
        The keys of mappings become strings. Floats that are not finite become None, because JSON does not support them.
        Other objects become the name of their type.

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
