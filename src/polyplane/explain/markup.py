"""The page of a report: HTML markup and SVG drawings; all text from data is escaped."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape as escape_markup
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from polyplane._plain import visible
from polyplane.explain.confusion import wilson
from polyplane.explain.effects import ColumnEffect
from polyplane.explain.text import cut, distinct

#: The scripts of a page, in order, and those of the section "Try it".
SCRIPTS, LIVE_SCRIPTS = ("parts.js", "rows.js"), ("reasons.js", "live.js")
#: Width and height of a drawing of a curve, margins of its frame, and height of a level.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, ROW = 360, 190, 42, 8, 22, 19
#: Number of levels that are drawn, and of letters of their names.
LEVELS, LETTERS = 12, 25
#: Width of the names of levels, and of a small letter.
NAMES, LETTER = 160.0, 6.2
#: The colours of Okabe and Ito, for more than two classes.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


def escape(text: str) -> str:
    """Escape text for markup."""
    return escape_markup(visible(text))


class Markup:
    """A page, built element by element."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def __str__(self) -> str:
        return "\n".join(self._parts)

    def add(self, tag: str, text: str, css_class: str = "") -> None:
        """Add an element with text."""
        self._parts.append(f"<{tag}{_class(css_class)}>{escape(text)}</{tag}>")

    @contextmanager
    def group(self, css_class: str) -> Iterator[None]:
        """Group the elements added in this context in one block."""
        self._parts.append(f"<div{_class(css_class)}>")
        yield
        self._parts.append("</div>")

    @contextmanager
    def folded(self, title: str) -> Iterator[None]:
        """Hide the elements added in this context until they are unfolded."""
        self._parts.append(f"<details><summary>{escape(title)}</summary>")
        yield
        self._parts.append("</details>")

    def block(self, name: str, css_class: str) -> None:
        """Add an empty block that a script fills."""
        self._parts.append(f'<div id="{name}"{_class(css_class)}></div>')

    def figure(self, drawing: str, caption: str) -> None:
        """Add a drawing, which is markup, with its caption."""
        self._parts.append(f"<figure><figcaption>{escape(caption)}</figcaption>{drawing}</figure>")

    def legend(self, names: Sequence[tuple[str, str]]) -> None:
        """Add a legend of names and colours."""
        items = "".join(f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in names)
        self._parts.append(f'<p class="legend">{items}</p>')

    def bars(self, heads: tuple[str, str] | list[str], rows: Sequence[tuple[str, float]]) -> None:
        """Add a table of names and numbers, with a bar for each number."""
        largest = max((size for _, size in rows), default=0.0) or 1.0
        names, sizes = heads
        self._parts.append('<div class="scroll"><table class="bars"><thead><tr>')
        self._parts.append(f'<th scope="col" class="name">{escape(names)}</th><th scope="col">{escape(sizes)}</th>')
        self._parts.append('<th class="track"></th></tr></thead><tbody>')
        for name, size in rows:
            bar = f'<span class="bar" style="width:{100 * size / largest:.1f}%"></span>'
            self._parts.append(
                f'<tr><td class="name">{escape(name)}</td><td>{size:.2f}</td><td class="track">{bar}</td></tr>'
            )
        self._parts.append("</tbody></table></div>")

    def picker(self, reference: str) -> None:
        """Add the section in which a script explains one row at a time; `reference` describes the reference row."""
        self.add("h2", "Rows explained")
        self.add("p", reference, "quiet")
        self._parts.append(_page_file("picker.html"))

    def live(self) -> None:
        """Add the section in which the values of a row can be changed."""
        self._parts.append(_page_file("live.html"))

    def table(
        self,
        title: str,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        css_classes: Sequence[Sequence[str]] | None = None,
        *,
        rule_column: int | None = None,
        links: Sequence[int | None] | None = None,
    ) -> None:
        """Add a table; the first column contains names, the `rule_column` long text.

        `css_classes` are the classes of the cells; `links` are the positions in the picker to which the names link.
        """
        self._parts.append('<div class="scroll"><table>')
        if title:
            self._parts.append(f"<caption>{escape(title)}</caption>")
        of_column = {0: "name", rule_column: "rule"}
        cells = "".join(f'<th scope="col"{_class(of_column.get(j, ""))}>{escape(h)}</th>' for j, h in enumerate(heads))
        self._parts.append(f"<thead><tr>{cells}</tr></thead><tbody>")
        for i, row in enumerate(rows):
            line = []
            for j, text in enumerate(row):
                css_class = (css_classes[i][j] if css_classes else "") or of_column.get(j, "")
                inner = escape(text)
                if j == 0 and links and links[i] is not None:
                    inner = f'<a href="#why" data-row="{links[i]}">{inner}</a>'
                line.append(f"<td{_class(css_class)}>{inner}</td>")
            self._parts.append(f"<tr>{''.join(line)}</tr>")
        self._parts.append("</tbody></table></div>")


def assemble(body: Markup, title: str, data: str, model: str = "") -> str:
    """Assemble the whole page.

    Its content security policy forbids all external resources and all scripts other than its own.

    Parameters
    ----------
    body : Markup
        Body of the page.
    title : str
        Title of the window.
    data : str
        JSON for the script.
    model : str
        Script of the model, which must not contain a closing tag; empty if there is none.
    """
    scripts = [model] if model else []
    scripts.append("\n".join([*map(_page_file, SCRIPTS), live_scripts() if model else ""]))
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return Template(_page_file("page.html")).substitute(
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}",
        title=escape(title),
        style=_page_file("style.css"),
        body=body,
        # Escaped, so that JSON cannot close its script element.
        data=data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def live_scripts() -> str:
    """Return the scripts of the section "Try it"."""
    return "\n".join(map(_page_file, LIVE_SCRIPTS))


def _page_file(name: str) -> str:
    return (files("polyplane.explain") / "page" / name).read_text(encoding="utf-8")


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


class Drawing:
    """An SVG element; texts are escaped.

    Parameters
    ----------
    height : float
        Height.
    name : str
        Description for screen readers.
    """

    def __init__(self, height: float, name: str) -> None:
        self._parts = [f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(name)}">']

    def __str__(self) -> str:
        return "".join([*self._parts, "</svg>"])

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
    drawing = Drawing(HEIGHT, f"the effects of {effect.name}")
    x, (first, last) = np.array(effect.values, dtype=float), effect.drawn
    inside = np.flatnonzero((x >= first) & (x <= last))
    parts = [effect.effect[inside][:, classes], np.zeros((1, 1))]
    if sides is not None and effect.low is not None and effect.high is not None:
        parts += [effect.low[inside][:, classes], effect.high[inside][:, classes]]
    parts += [] if effect.missing is None else [effect.missing[None, list(classes)]]
    ticks = nice_ticks(min(float(p.min()) for p in parts), max(float(p.max()) for p in parts))
    low, high = ticks[0], ticks[-1]

    def at(value: float, size: float) -> tuple[float, float]:
        across = (value - first) / ((last - first) or 1.0)
        up = (size - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - 8), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP)

    for tick in ticks:
        y = at(first, tick)[1]
        drawing.line([(LEFT, y), (WIDTH - 8, y)], "zero" if tick == 0 else "grid")
        drawing.text(LEFT - 4, y + 4, f"{tick:g}", "end")
    if len(parts) >= 4 and effect.low is not None and effect.high is not None and sides is not None:
        [c] = classes
        edge = [at(x[i], effect.low[i, c]) for i in inside] + [at(x[i], effect.high[i, c]) for i in inside[::-1]]
        drawing.area(edge, "band")
    for index, c in enumerate(classes):
        own = None if sides else COLOURS[index]
        drawing.line([at(x[i], effect.effect[i, c]) for i in inside], "curve", own)
        if effect.missing is not None:
            dot_x, dot_y = at(last, effect.missing[c])
            drawing.dot(dot_x, dot_y, "dot", own)
            if index == 0:
                drawing.text(dot_x - 7, dot_y - 5, "missing", "end")
    drawing.dot(*at(float(effect.reference or 0.0), 0.0), "reference")
    places = _places(effect)
    texts = distinct(places, effect.shown, 3)
    if LETTER * sum(map(len, texts)) > 0.8 * WIDTH:  # long numbers: only the ends
        places, texts = places[:: max(1, len(places) - 1)], texts[:: max(1, len(texts) - 1)]
    for value, text in zip(places, texts, strict=True):
        across, half = at(value, 0.0)[0], 0.5 * LETTER * len(text)
        anchor = "start" if across < LEFT + 20 else "end" if across + half > WIDTH - 8 else "middle"
        drawing.text(across, HEIGHT - 6, text, anchor)
    if sides is not None:
        drawing.text(LEFT + 4, TOP + 10, f"\N{UPWARDS ARROW} {cut(sides[0], 20)}", css_class="for")
        drawing.text(LEFT + 4, HEIGHT - BOTTOM - 5, f"\N{DOWNWARDS ARROW} {cut(sides[1], 20)}", css_class="against")
    return drawing


def _levels(effect: ColumnEffect, classes: Sequence[int], sides: tuple[str, str] | None) -> Drawing:
    names, sizes, counts, bands = effect.levels(LEVELS)
    order = np.argsort(-sizes[:, classes[0]], kind="stable")
    height = ROW * len(order) + 38
    drawing = Drawing(height, f"the effects of {effect.name}")
    ends = [sizes, *bands] if bands is not None and sides is not None else [sizes]
    low = min(0.0, *(float(end[:, classes].min()) for end in ends))
    high = max(0.0, *(float(end[:, classes].max()) for end in ends))
    start, stop = NAMES + 36.0, WIDTH - 42.0

    def at(size: float) -> float:
        return start + (size - low) / ((high - low) or 1.0) * (stop - start)

    drawing.line([(at(0.0), 2), (at(0.0), ROW * len(order) + 4)], "zero")
    for row, i in enumerate(order):
        y = ROW * row + 6
        rows = f" ({counts[i]:,})" if counts[i] else ""
        drawing.text(NAMES, y + 11, cut(names[i], LETTERS - len(rows)) + rows, "end", room=NAMES)
        if sides is None:
            for index, c in enumerate(classes):
                drawing.dot(at(sizes[i, c]), y + 7, "dot", COLOURS[index])
            continue
        size = float(sizes[i, classes[0]])
        left, right = min(at(0.0), at(size)), max(at(0.0), at(size))
        drawing.bar(left, y, right - left, ROW - 6, "for" if size > 0 else "against")
        if bands is not None:
            drawing.line([(at(end[i, classes[0]]), y + 6) for end in bands], "whisker")
        if names[i] == effect.reference:
            drawing.dot(at(0.0), y + 7, "reference")
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
    top, bottom, foot, right = 8.0, 216.0, 282.0, WIDTH - 12.0
    drawing = Drawing(foot + 8, "reliability curve")

    def at(across: float, up: float) -> tuple[float, float]:
        return LEFT + across * (right - LEFT), bottom - up * (bottom - top)

    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(tick, tick)
        drawing.line([(LEFT, y), (right, y)], "grid")
        drawing.text(LEFT - 4, y + 4, f"{tick:g}", "end")
        drawing.text(x, bottom + 15, f"{tick:g}", "middle")
    drawing.line([at(0, 0), at(1, 1)], "zero")
    drawing.line([at(*point) for point in zip(predicted, observed, strict=True)], "curve")
    for x, y, count in zip(predicted, observed, counts[counts > 0].tolist(), strict=True):
        low, high = wilson(float(y), count)
        drawing.line([at(x, low), at(x, high)], "whisker")
        drawing.dot(*at(x, y), "dot")
    width, most = (right - LEFT) / len(counts), max(1, int(counts.max()))
    for i, count in enumerate(counts.tolist()):
        height = 28.0 * count / most
        drawing.bar(LEFT + i * width + 2, foot - height, width - 4, height, "for")
        text = f"{count / 1000:.3g}k" if count >= 10_000 else str(count)
        drawing.text(LEFT + (i + 0.5) * width, foot - height - 3, text, "middle")
    drawing.text(LEFT - 4, foot, "rows", "end")
    return str(drawing)
