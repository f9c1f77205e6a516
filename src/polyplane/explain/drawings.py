"""SVG drawings of a report: effects of columns, and the reliability of probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyplane.explain.confusion import wilson
from polyplane.explain.effects import ColumnEffect
from polyplane.explain.text import cut, distinct, escape

#: Width and height of a drawing of a curve, margins of its frame, and height of a level.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, ROW = 360, 190, 42, 8, 22, 19
#: Number of levels that are drawn, and of letters of their names.
LEVELS, LETTERS = 12, 25
#: Width of the names of levels, and of a small letter.
NAMES, LETTER = 160.0, 6.2
#: The colours of Okabe and Ito, for more than two classes.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


@dataclass(eq=False)
class Drawing:
    """An SVG element; texts are escaped.

    Parameters
    ----------
    height : float
        Height.
    name : str
        Description for screen readers.
    frame : tuple of float
        ``(left, top, right, bottom)`` of the area of the data.
    x, y : pair of float
        The values at the left and the right, and at the bottom and the top of this area.
    """

    height: float
    name: str
    frame: tuple[float, float, float, float]
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)
    _parts: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f'<svg viewBox="0 0 {WIDTH} {self.height:g}" role="img" aria-label="{escape(self.name)}">'
        return "".join([head, *self._parts, "</svg>"])

    def at(self, x: float, y: float = 0.0) -> tuple[float, float]:
        """Return where values are drawn."""
        left, top, right, bottom = self.frame
        across, up = ((v - low) / ((high - low) or 1.0) for v, (low, high) in ((x, self.x), (y, self.y)))
        return left + across * (right - left), bottom - up * (bottom - top)

    def grid(self, ticks: Sequence[float]) -> None:
        """Add horizontal lines and their values."""
        left, _, right, _ = self.frame
        for tick in ticks:
            y = self.at(self.x[0], tick)[1]
            self.line([(left, y), (right, y)], "zero" if tick == 0 else "grid")
            self.text(left - 4, y + 4, f"{tick:g}", "end")

    def line(self, points: Sequence[tuple[float, float]], css_class: str, colour: str | None = None) -> None:
        """Add a line through points."""
        self._shape("polyline", css_class, colour, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))

    def area(self, points: Sequence[tuple[float, float]], css_class: str) -> None:
        """Add a polygon."""
        self._shape("polygon", css_class, None, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))

    def bar(self, x: float, y: float, width: float, height: float, css_class: str) -> None:
        """Add a rectangle."""
        self._shape("rect", css_class, None, x=x, y=y, width=max(width, 0.0), height=height)

    def dot(self, x: float, y: float, css_class: str, colour: str | None = None) -> None:
        """Add a circle."""
        self._shape("circle", css_class, colour, cx=x, cy=y, r=4)

    def text(self, x: float, y: float, text: str, anchor: str = "start", css_class: str = "", room: float = 0) -> None:
        """Add text; `anchor` is "start", "middle" or "end". Letters are narrower if they do not fit into the `room`."""
        style = f' class="{css_class}"' if css_class else ""
        if room and LETTER * sum(1.0 + 0.6 * (not letter.islower()) for letter in text) > room:
            style += f' textLength="{room:g}" lengthAdjust="spacingAndGlyphs"'
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>')

    def _shape(self, tag: str, css_class: str, colour: str | None, **places: Any) -> None:
        style = "" if colour is None else f' style="--own:{colour}"'
        values = "".join(f' {k}="{v if isinstance(v, str) else f"{v:.1f}"}"' for k, v in places.items())
        self._parts.append(f'<{tag} class="{css_class}"{style}{values}/>')


def draw_effect(effect: ColumnEffect, classes: Sequence[int], sides: tuple[str, str] | None) -> str:
    """Return the markup of a drawing of an effect.

    Parameters
    ----------
    effect : ColumnEffect
        The effect.
    classes : sequence of int
        The classes to draw.
    sides : pair of str or None
        For two classes, the labels of the drawn class and of the other one.
    """
    return str(_curve(effect, classes, sides) if effect.is_curve else _levels(effect, classes, sides))


def _curve(effect: ColumnEffect, classes: Sequence[int], sides: tuple[str, str] | None) -> Drawing:
    x, (first, last) = np.array(effect.values, dtype=float), effect.drawn
    inside = np.flatnonzero((x >= first) & (x <= last))
    bands = None if sides is None or effect.bands is None else [band[inside][:, classes] for band in effect.bands]
    parts = [np.zeros((1, 1)), effect.effect[inside][:, classes], *(bands or [])]
    parts += [] if effect.missing is None else [effect.missing[None, list(classes)]]
    ticks = nice_ticks(min(float(p.min()) for p in parts), max(float(p.max()) for p in parts))
    frame, ends = (LEFT, TOP, WIDTH - 8, HEIGHT - BOTTOM), (ticks[0], ticks[-1])
    drawing = Drawing(HEIGHT, f"the effects of {effect.name}", frame, (first, last), ends)
    drawing.grid(ticks)
    if bands is not None:
        low, high = ([drawing.at(*point) for point in zip(x[inside], band[:, 0], strict=True)] for band in bands)
        drawing.area([*low, *high[::-1]], "band")
    for index, c in enumerate(classes):
        own = None if sides else COLOURS[index]
        drawing.line([drawing.at(x[i], effect.effect[i, c]) for i in inside], "curve", own)
        if effect.missing is not None:
            dot_x, dot_y = drawing.at(last, effect.missing[c])
            drawing.dot(dot_x, dot_y, "dot", own)
            if index == 0:
                drawing.text(dot_x - 7, dot_y - 5, "missing", "end")
    drawing.dot(*drawing.at(float(effect.reference or 0.0)), "reference")
    places = _places(effect)
    texts = distinct(places, effect.shown, 3)
    if LETTER * sum(map(len, texts)) > 0.8 * WIDTH:  # long numbers: only the ends
        places, texts = places[:: max(1, len(places) - 1)], texts[:: max(1, len(texts) - 1)]
    for value, text in zip(places, texts, strict=True):
        across, half = drawing.at(value)[0], 0.5 * LETTER * len(text)
        anchor = "start" if across < LEFT + 20 else "end" if across + half > WIDTH - 8 else "middle"
        drawing.text(across, HEIGHT - 6, text, anchor)
    if sides is not None:
        drawing.text(LEFT + 4, TOP + 10, f"\N{UPWARDS ARROW} {cut(sides[0], 20)}", css_class="for")
        drawing.text(LEFT + 4, HEIGHT - BOTTOM - 5, f"\N{DOWNWARDS ARROW} {cut(sides[1], 20)}", css_class="against")
    return drawing


def _levels(effect: ColumnEffect, classes: Sequence[int], sides: tuple[str, str] | None) -> Drawing:
    names, sizes, counts, bands = effect.levels(LEVELS)
    order = np.argsort(-sizes[:, classes[0]], kind="stable")
    parts = np.stack([sizes, *(() if bands is None or sides is None else bands)])[:, :, classes]
    height, ends = ROW * len(order) + 38, (min(0.0, float(parts.min())), max(0.0, float(parts.max())))
    frame = (NAMES + 36.0, 0.0, WIDTH - 42.0, 0.0)
    drawing = Drawing(height, f"the effects of {effect.name}", frame, ends)
    zero = drawing.at(0.0)[0]
    drawing.line([(zero, 2), (zero, ROW * len(order) + 4)], "zero")
    for row, i in enumerate(order):
        y = ROW * row + 6
        rows = f" ({counts[i]:,})" if counts[i] else ""
        drawing.text(NAMES, y + 11, cut(names[i], LETTERS - len(rows)) + rows, "end", room=NAMES)
        if sides is None:
            for index, c in enumerate(classes):
                drawing.dot(drawing.at(sizes[i, c])[0], y + 7, "dot", COLOURS[index])
            continue
        size = float(sizes[i, classes[0]])
        left, right = sorted([zero, drawing.at(size)[0]])
        drawing.bar(left, y, right - left, ROW - 6, "for" if size > 0 else "against")
        if bands is not None:
            drawing.line([(drawing.at(end[i, classes[0]])[0], y + 6) for end in bands], "whisker")
        if names[i] == effect.reference:
            drawing.dot(zero, y + 7, "reference")
        elif bands is None:
            x, anchor = (right + 3, "start") if size > 0 else (left - 3, "end")
            drawing.text(x, y + 11, f"{size:+.2f}", anchor)
    if sides is not None:
        drawing.text(4, height - 8, f"\N{LEFTWARDS ARROW} {cut(sides[1], 20)}", css_class="against")
        drawing.text(WIDTH - 4, height - 8, f"{cut(sides[0], 20)} \N{RIGHTWARDS ARROW}", "end", "for")
    return drawing


def nice_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return about `count` round numbers that enclose a range."""
    rough = ((high - low) or 1.0) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.floor(low / step)
    return [round(k * step, 10) for k in range(first, max(math.ceil(high / step), first + 1) + 1)]


def _places(effect: ColumnEffect) -> list[float]:
    """Return the tick labels of a curve: dates at the ends and in the middle, otherwise round numbers."""
    low, high = effect.drawn
    if effect.part == "days":
        return [float(round(day)) for day in (low, 0.5 * (low + high), high)]
    ticks = [tick for tick in nice_ticks(low, high) if low <= tick <= high]
    return [tick for tick in ticks if not effect.is_whole or tick == round(tick)]


def draw_reliability(counts: np.ndarray, predicted: np.ndarray, observed: np.ndarray) -> str:
    """Return the markup of a reliability curve, with the number of rows in each bin below it.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Number of rows in each bin.
    predicted, observed : ndarray
        Mean predicted probability and observed frequency in each bin that is not empty.
    """
    bottom, foot, ticks = 216.0, 282.0, (0.0, 0.25, 0.5, 0.75, 1.0)
    drawing = Drawing(foot + 8, "reliability curve", (LEFT, TOP, WIDTH - 12.0, bottom), (0.0, 1.0))
    drawing.grid(ticks)
    for tick in ticks:
        drawing.text(drawing.at(tick)[0], bottom + 15, f"{tick:g}", "middle")
    drawing.line([drawing.at(0, 0), drawing.at(1, 1)], "zero")
    drawing.line([drawing.at(*point) for point in zip(predicted, observed, strict=True)], "curve")
    for x, y, count in zip(predicted, observed, counts[counts > 0].tolist(), strict=True):
        drawing.line([drawing.at(x, end) for end in wilson(float(y), count)], "whisker")
        drawing.dot(*drawing.at(x, y), "dot")
    most = max(1, int(counts.max()))
    for i, count in enumerate(counts.tolist()):
        (left, _), (right, _), height = (
            drawing.at(i / len(counts)),
            drawing.at((i + 1) / len(counts)),
            28.0 * count / most,
        )
        drawing.bar(left + 2, foot - height, right - left - 4, height, "for")
        text = f"{count / 1000:.3g}k" if count >= 10_000 else str(count)
        drawing.text(0.5 * (left + right), foot - height - 3, text, "middle")
    drawing.text(LEFT - 4, foot, "rows", "end")
    return str(drawing)
