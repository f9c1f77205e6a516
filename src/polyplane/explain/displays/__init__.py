"""Displays of models, with the interface of scikit-learn's displays. They require Matplotlib (extra `plot`)."""

from __future__ import annotations

from typing import Any

#: The colours of Okabe and Ito, which are safe for colour-blind readers. Black is reserved for lines.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
RIGHT, WRONG = "#0072B2", "#D55E00"
#: Markers, which distinguish classes without colours; in the same order.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def colour(i: int) -> str:
    """Return the colour of class or line `i`."""
    return COLOURS[i % len(COLOURS)]


def axes(ax: Any, figsize: tuple[float, float] = (7.0, 4.4)) -> Any:
    """Return the given axes, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=figsize, layout="constrained")[1]


def pyplot() -> Any:
    """Return Matplotlib's pyplot, or raise an error if Matplotlib is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Displays require Matplotlib: pip install "polyplane[plot]".') from None
    return plt


def panels(n_panels: int, n_columns: int, figsize: tuple[float, float], **how: Any) -> tuple[Any, Any]:
    """Return a new figure and its panels, row by row; those that are not needed are empty."""
    n_rows = -(-n_panels // n_columns)
    figure, grid = pyplot().subplots(n_rows, n_columns, figsize=figsize, layout="constrained", squeeze=False, **how)
    for ax in grid.ravel()[n_panels:]:
        ax.axis("off")
    return figure, grid.ravel()


def bare(ax: Any) -> None:
    """Remove the top and right spines."""
    ax.spines[["top", "right"]].set_visible(False)
