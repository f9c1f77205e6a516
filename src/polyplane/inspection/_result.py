"""What explanations have in common: text, a dict, a data frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar


class Explanation(ABC):
    """What prints itself, in a notebook too."""

    #: Terms or features that are printed.
    _printed: ClassVar[int]

    @abstractmethod
    def to_text(self, top: int | None = None) -> str:
        """The explanation in words, with the `top` most important terms or features; None: with all."""

    def __str__(self) -> str:
        return self.to_text(self._printed)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def data_frame(columns: dict[str, Any]) -> Any:
    """A pandas DataFrame, or a sentence that says how to get one."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("A data frame needs pandas: pip install pandas.") from None
    return pd.DataFrame(columns)


def listed(rows: tuple[int, ...]) -> str:
    """Rows in a sentence: "row 4", "rows 4, 7 and 19"."""
    *before, last = map(str, rows)
    return f"rows {', '.join(before)} and {last}" if before else f"row {last}"
