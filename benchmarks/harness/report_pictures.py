"""The pictures of the report: for each paper its figures against ours, and those of the experiments."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from benchmarks.harness.experiment import Plot

#: Colours that the colour-blind tell apart (Okabe and Ito), and markers, by class of row.
LOOKS = {
    "paper": ("#0072B2", "o", "the paper's protocol"),
    "stand-in": ("#E69F00", "s", "other data, or a variant"),
    "time": ("#999999", "^", "times"),
    "beyond": ("#009E73", "D", "not in the paper"),
    "check": ("#CC79A7", "v", "checks"),
}
CAPTION = (
    "Each dot is a figure of a paper and ours: on the line they are the same. Accuracies are shown as errors. Blue "
    "dots, the paper's method by the "
    "paper's protocol, are those that the table counts; hollow ones are not current."
)


def name_of(chapter: str) -> str:
    """The name of the picture of a paper."""
    return "diagonal-" + chapter.lower().replace(" ", "-")


def diagonal(points: Sequence[dict[str, Any]], title: str) -> bytes:
    """The paper's figures against ours, as SVG."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context({"svg.hashsalt": title, "svg.fonttype": "none", "font.size": 11}):
        canvas = Canvas(figsize=(9.0, 4.9), layout="constrained")
        draw_diagonal(canvas, points, title)
        buffer = BytesIO()
        FigureCanvasSVG(canvas).print_svg(buffer, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def draw_diagonal(canvas: Any, points: Sequence[dict[str, Any]], title: str) -> None:
    """Draw errors on the left, all other figures on the right: those that are not positive do not fit on its scales."""
    axes = canvas.subplots(1, 2)
    for axis, is_error in zip(axes, (True, False), strict=True):
        shown = [p for p in points if p["is_error"] == is_error and p["paper"] > 0 and p["ours"] > 0]
        _draw_dots(axis, shown)
        axis.set(xlabel="the paper's figure", title="errors, %" if is_error else "times, sizes, iterations")
    axes[0].set_ylabel("ours")
    handles = {}
    for kind, (colour, marker, label) in LOOKS.items():
        n = sum(point["kind"] == kind for point in points)
        if n:
            handles[f"{label} ({n})"] = axes[0].scatter([], [], s=34, color=colour, marker=marker)
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    canvas.suptitle(title)


def _draw_dots(axis: Any, shown: Sequence[dict[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    for kind, (colour, marker, _) in reversed(LOOKS.items()):
        for current in (False, True):
            chosen = [(p["paper"], p["ours"]) for p in shown if p["kind"] == kind and p["current"] == current]
            style = {"facecolors": colour if current else "none", "edgecolors": colour, "marker": marker}
            size = 34 if kind == "paper" else 18
            axis.scatter(*zip(*chosen, strict=True) if chosen else ([], []), s=size, linewidths=1.1, **style)
    if shown:
        ends = [point[key] for point in shown for key in ("paper", "ours")]
        low, high = min(ends) / 1.3, max(ends) * 1.3
        axis.plot([low, high], [low, high], color="0.5", linewidth=1, zorder=0)
        axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(LogLocator(subs=(1.0, 3.0) if high / low < 3e3 else (1.0,)))
            side.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_aspect("equal")
    axis.minorticks_off()
    axis.grid(color="0.92")
    axis.set_axisbelow(True)


def picture(plot: Plot) -> bytes:
    """A plot as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9.0, 4.8), layout="constrained", dpi=110)
    plot.draw(canvas)
    buffer = BytesIO()
    FigureCanvasAgg(canvas).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()
