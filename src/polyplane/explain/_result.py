"""Base class of explanations: text, dict and data frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar


class Explanation(ABC):
    """Base class of explanations, which are printed as text, also in notebooks."""

    #: Number of terms or features that are printed.
    _printed: ClassVar[int]

    @abstractmethod
    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` most important terms or features; if None, with all."""

    def __str__(self) -> str:
        return self.to_text(self._printed)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def data_frame(columns: dict[str, Any]) -> Any:
    """Return a pandas DataFrame, or raise an error if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame requires pandas: pip install pandas.") from None
    return pd.DataFrame(columns)


def listed(rows: tuple[int, ...]) -> str:
    """Format a list of rows: "row 4", "rows 4, 7 and 19"."""
    *before, last = map(str, rows)
    return f"rows {', '.join(before)} and {last}" if before else f"row {last}"
