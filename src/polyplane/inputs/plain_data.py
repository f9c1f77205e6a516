"""Validation of plain data from JSON: each entry must exist and have the right type, and there are no other entries."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any


class Entries:
    """Entries of a dict from a file; missing, invalid and unknown entries raise a ValueError.

    Parameters
    ----------
    what : str
        Description of the dict for messages, such as "Column 'age'".
    value : object
        The dict to validate.
    """

    def __init__(self, what: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{what} must be a dict, not a {type(value).__name__}.")
        self.what = what
        self._left = dict(value)

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise ValueError(f"{self.what} has no {name!r}.")
        return self._left.pop(name)

    def _refuse(self, name: str, wanted: str) -> ValueError:
        return ValueError(f"{self.what} has an invalid {name!r}: it must be {wanted}.")

    def text(self, name: str, among: Collection[str] | None = None) -> str:
        """Return a string, which must be one of `among` if given."""
        value = self._take(name)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise self._refuse(name, "a string" if among is None else f"one of {', '.join(sorted(among))}")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._refuse(name, "true or false")
        return value

    def number(self, name: str) -> float:
        """Return a finite number."""
        value = self._take(name)
        if not _is_number(value):
            raise self._refuse(name, "a finite number")
        return float(value)

    def texts(self, name: str, among: Collection[str] | None = None) -> tuple[str, ...]:
        """Return a list of distinct strings, which must be in `among` if given."""
        value = self._take(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._refuse(name, "a list of strings")
        if len(set(value)) < len(value):
            raise self._refuse(name, "a list of distinct strings")
        if among is not None and not set(value) <= set(among):
            raise self._refuse(name, f"a subset of {', '.join(among)}")
        return tuple(value)

    def numbers(self, name: str, length: int | None = None) -> list[float]:
        """Return a list of finite numbers."""
        value = self._take(name)
        if not isinstance(value, list) or not all(map(_is_number, value)):
            raise self._refuse(name, "a list of finite numbers")
        if length is not None and len(value) != length:
            raise self._refuse(name, f"a list of {length} numbers, not {len(value)}")
        return [float(item) for item in value]

    def counts(self, name: str, length: int) -> tuple[int, ...]:
        """Return a list of non-negative integers."""
        value = self.numbers(name, length)
        if any(item < 0 or not item.is_integer() for item in value):
            raise self._refuse(name, "a list of non-negative integers")
        return tuple(map(int, value))

    def items(self, name: str) -> list[Any]:
        """Return a list of any values."""
        value = self._take(name)
        if not isinstance(value, list):
            raise self._refuse(name, "a list")
        return value

    def text_by_text(self, name: str) -> dict[str, str]:
        """Return a dict of strings."""
        value = self._take(name)
        if not isinstance(value, dict) or not all(isinstance(t, str) for pair in value.items() for t in pair):
            raise self._refuse(name, "a dict of strings")
        return dict(value)

    def end(self) -> None:
        """Raise an error if there are unknown entries."""
        if self._left:
            raise ValueError(f"{self.what} has an unknown entry, {next(iter(self._left))!r}.")


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for float
        return False
