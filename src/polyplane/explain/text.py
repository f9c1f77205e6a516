"""Numbers, names and values as text, and the base class of explanations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from html import escape as escape_markup
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import visible

#: Feature names that need no quotes in a sum of terms.
PLAIN_NAME = re.compile(r"[^\W\d](?:[\w .,:%/()²³°µ-]*[\w.%)²³°])?")


class Explanation(ABC):
    """Base class of explanations, which are printed as text, also in notebooks."""

    #: Number of terms or columns that are printed.
    _printed: ClassVar[int]

    @abstractmethod
    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` most important terms or columns; if None, with all."""

    def __str__(self) -> str:
        return self.to_text(self._printed)

    def _repr_html_(self) -> str:
        return f"<pre>{escape_markup(str(self))}</pre>"


def data_frame(columns: dict[str, Any]) -> Any:
    """Return a pandas DataFrame, or raise an error if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame requires pandas: pip install pandas.") from None
    return pd.DataFrame(columns)


def escape(text: str) -> str:
    """Escape text for markup."""
    return escape_markup(visible(text))


def number(value: float, digits: int = 4) -> str:
    """Format a number with some significant digits, and without an exponent unless it is very small or large."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-5 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-", unique=True)


def whole_number(value: float, is_whole: bool, digits: int = 6) -> str:
    """Format a number of a column; integers of a column of integers have all their digits."""
    return str(int(value)) if is_whole and value.is_integer() and abs(value) < 1e21 else number(value, digits)


def distinct(values: Sequence[Any], form: Callable[[Any, int], str], digits: int) -> list[str]:
    """Format values with the fewest digits, but at least `digits`, that tell different ones apart."""
    for n in range(digits, 18):
        texts = [form(value, n) for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts


def signed(value: float) -> str:
    """Format log-odds with their sign."""
    return "0" if abs(value) < 0.005 else f"{value:+.2f}"


def signed_number(value: float) -> str:
    """Format a number of any size with its sign."""
    return ("+" if value >= 0 else "") + number(float(value))


def date_text(days: float) -> str:
    """Format a date, with its time unless this is midnight."""
    moment = np.datetime64(0, "us") + np.timedelta64(round(days * 86_400e6), "us")
    day, _, time = str(moment.astype("datetime64[s]")).partition("T")
    return day if time == "00:00:00" else f"{day} {time}"


def quoted(name: str) -> str:
    """Return the name of a column, in quotes if it could be misread in a sum of terms."""
    return name if PLAIN_NAME.fullmatch(name) else repr(name)


def listed(rows: Sequence[int]) -> str:
    """Format a list of rows: "row 4", "rows 4, 7 and 19"."""
    *before, last = map(str, rows)
    return f"rows {', '.join(before)} and {last}" if before else f"row {last}"


def cut(text: str, length: int) -> str:
    """Shorten a long text in its middle: long names often differ only at their ends."""
    if len(text) <= length:
        return text
    end = (length - 1) // 2
    return text[: length - 1 - end] + "\N{HORIZONTAL ELLIPSIS}" + text[len(text) - end :]


def sum_of_terms(
    coef: np.ndarray, names: Sequence[str], influence: np.ndarray, digits: int, top: int | None = None
) -> str:
    """Format a weighted sum, the most influential terms first."""
    order = [j for j in np.argsort(-np.abs(coef * influence), kind="stable") if coef[j] != 0]
    shown = order if top is None else order[:top]
    text = ""
    for j in shown:
        sign = ("-" if coef[j] < 0 else "") if not text else (" - " if coef[j] < 0 else " + ")
        size = number(abs(float(coef[j])), digits)
        text += sign + (quoted(names[j]) if size == "1" else f"{size} x {quoted(names[j])}")
    left = len(order) - len(shown)
    return (text or "0") + (f" + {left} smaller terms" if left else "")
