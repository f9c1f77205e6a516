"""The pictures of the cutting-plane experiments; each function draws on a Matplotlib figure."""

from benchmarks.papers.cutting_plane.sets import COLOURS, EXPECTED, SEARCHES

MARKERS = {"OCA-E": "s", "OCA-T": "o", "paper": "D"}


def _axes(figure, n_rows, panels, size=(15, 8)):
    figure.set_size_inches(*size)
    axes = figure.subplots(n_rows, len(panels), squeeze=False)
    for column, (_, title) in zip(axes.T, panels, strict=True):
        column[0].set_title(title, fontsize=16)
        for axis in column:
            axis.tick_params(labelsize=13)
            axis.grid(color="0.9")
            axis.set_xscale("log")
    return axes


def _plain_log(axis):
    """Make the upward axis logarithmic, with ticks at 1, 2, 5, 10 and so on, written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_locator(NullLocator())


def _line(axis, points, name):
    """A line through (x, y, finished) triples; open marks where a run was cut off."""
    if not points:
        return
    axis.plot([p[0] for p in points], [p[1] for p in points], color=COLOURS[name], label=name, linewidth=2)
    for finished in (True, False):
        some = [p for p in points if p[2] == finished]
        axis.plot(
            [p[0] for p in some],
            [p[1] for p in some],
            MARKERS[name],
            color=COLOURS[name],
            markerfacecolor=COLOURS[name] if finished else "white",
            markersize=8,
            markeredgewidth=2,
        )


def _costs(axes, found_at, values):
    """Iterations above, seconds below, of both searches at some values."""
    for search in SEARCHES:
        found = [(value, found_at(value, search)) for value in values]
        found = [(value, f) for value, f in found if f is not None]
        for axis, key in zip(axes, ("iterations", "time_s"), strict=True):
            _line(axis, [(v, f[key], f.get("gap", 0) < 0.01) for v, f in found if key in f], search)
            _plain_log(axis)


def over_c(figure, figures, panels, all_c, at):
    axes = _axes(figure, 2, panels)
    for column, (name, _) in zip(axes.T, panels, strict=True):
        _costs(column, lambda C, search, name=name: at(figures, name, C, search), all_c)
        column[1].set_xlabel("C", fontsize=15)
    _finish(figure, axes, ("iterations", "seconds"), "Figures 4 and 5: iterations and processor time over C")


def over_tol(figure, figures, panels, all_tol, at):
    axes = _axes(figure, 2, panels)
    for column, (name, _) in zip(axes.T, panels, strict=True):
        _costs(column, lambda tol, search, name=name: at(figures, name, tol, search), all_tol)
        column[1].set_xlabel("tol", fontsize=15)
        for axis in column:
            axis.invert_xaxis()
    _finish(figure, axes, ("iterations", "seconds"), "Figures 4 and 5: iterations and processor time over tol")


def errors(figure, figures, panels, all_c, all_tol, at_c, at_tol):
    axes = _axes(figure, 2, panels)
    for column, (name, _) in zip(axes.T, panels, strict=True):
        kinds = ((all_c, at_c, "error_over_C"), (all_tol, at_tol, "error_over_tol"))
        for axis, (values, at, key) in zip(column, kinds, strict=True):
            paper = EXPECTED[key][name.split(",")[0]]
            _line(axis, [(v, e, True) for v, e in zip(values, paper, strict=False)], "paper")
            found = [(v, at(figures, name, v)) for v in values]
            _line(axis, [(v, f["error"], f.get("gap", 0) < 0.01) for v, f in found if f is not None], "OCA-T")
            axis.set_ylim(0, 1.15 * axis.get_ylim()[1])
        column[0].set_xlabel("C", fontsize=15)
        column[1].set_xlabel("tol", fontsize=15)
        column[1].invert_xaxis()
    _finish(figure, axes, ("test error in %",) * 2, "Figure 6: the error depends on C, hardly on tol")


def features(figure, curves):
    """Share of the exact search (above) and speed-up of OCA-T (below) over the number of features."""
    axes = _axes(figure, 2, [("mnist", "MNIST"), ("rcv1", "RCV1 (stand-in)")], size=(12, 8))
    labels = {"paper": ("paper", "D"), "frequent": ("OCA-T", "o"), "at random": ("at random", "^")}
    words = {"paper": "paper", "frequent": "ours, most frequent features", "at random": "ours, features at random"}
    for column, name in zip(axes.T, ("mnist", "rcv1"), strict=True):
        for kind, (colour, marker) in labels.items():
            points = curves.get((name, kind), [])
            for axis, value in zip(column, (1, 2), strict=True):
                style = {"color": COLOURS[colour], "linewidth": 2, "markersize": 9, "marker": marker}
                if points:
                    axis.plot([p[0] for p in points], [p[value] for p in points], label=words[kind], **style)
        for axis in column:
            axis.invert_xaxis()
            axis.set_xticks([p[0] for p in curves[name, "paper"]], [f"{p[0]:,}" for p in curves[name, "paper"]])
            axis.minorticks_off()
        column[1].axhline(1.0, color="0.5", linewidth=1)
        column[1].set_xlabel("features", fontsize=15)
    title = "Figure 7: fewer non-zeros, not fewer features, make the line search the larger share"
    _finish(figure, axes, ("line search, % of OCA-E's time", "speed-up by OCA-T"), title)
    axes[0, 0].get_legend().remove()
    axes[0, 1].legend(loc="lower right", fontsize=13)


def standing_still(figure, curves):
    """How far from the optimum a run is proven to be, after so many iterations."""
    figure.set_size_inches(9, 5.5)
    axis = figure.subplots()
    for search, (iterations, gaps) in curves.items():
        axis.plot(iterations, gaps, color=COLOURS[search], linewidth=3, label=search)
        axis.plot(iterations[-1], gaps[-1], MARKERS[search], color=COLOURS[search], markersize=9)
    axis.axhline(0.01, color="0.5", linewidth=1.5, linestyle="--", label="tol")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("iterations", fontsize=15)
    axis.set_ylabel("relative gap to the optimum", fontsize=15)
    axis.tick_params(labelsize=13)
    axis.grid(color="0.9")
    axis.legend(fontsize=14)
    ends = ", ".join(f"{search} {iterations[-1]:,}" for search, (iterations, _) in curves.items())
    axis.set_title(f"POKER, iterations: {ends}", fontsize=16)


def _finish(figure, axes, labels, title):
    for axis, label in zip(axes[:, 0], labels, strict=True):
        axis.set_ylabel(label, fontsize=15)
    named = [axis.get_legend_handles_labels() for axis in axes.ravel()]
    handles = {label: handle for some in named for handle, label in zip(*some, strict=True)}
    if handles:
        axes[0, 0].legend(handles.values(), handles.keys(), fontsize=13)
    figure.suptitle(title, fontsize=18)
