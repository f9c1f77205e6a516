"""What explanations have in common: text, a dict, a data frame."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A value in the types of JSON; what is not finite is None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def data_frame(columns: dict[str, Any]) -> Any:
    """A pandas DataFrame, or a sentence that says how to get one."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("A data frame needs pandas: pip install pandas.") from None
    return pd.DataFrame(columns)


def as_html(text: str) -> str:
    """Text for notebooks, whatever is in it."""
    return f"<pre>{escape(text)}</pre>"
