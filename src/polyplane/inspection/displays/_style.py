"""What the displays share: colours and axes."""

from __future__ import annotations

from typing import Any

#: Okabe and Ito's colours, told apart by the colour-blind. Black is for lines.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
RIGHT, WRONG = "#0072B2", "#D55E00"
#: Markers, for those who see no colours; a class has the same place in both.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def colour(i: int) -> str:
    """The colour of class or line `i`."""
    return COLOURS[i % len(COLOURS)]


def axes(ax: Any, figsize: tuple[float, float] = (7.0, 4.4)) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=figsize, layout="constrained")[1]


def pyplot() -> Any:
    """Matplotlib's pyplot, or a sentence that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Displays need Matplotlib: pip install "polyplane[plot]".') from None
    return plt


def bare(ax: Any) -> None:
    """Take away the lines that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def short(name: str, length: int = 28) -> str:
    """A name, cut where it is too long."""
    return name if len(name) <= length else name[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"
