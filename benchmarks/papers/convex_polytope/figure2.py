"""Figure 2 of the Convex Polytope Machine paper (Kantchelian et al., 2014): error against visits T and planes K."""

from functools import cache, partial
from itertools import pairwise

import numpy as np
from benchmarks.data.splits import one_class, pixels
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.convex_polytope.protocol import ALPHA_VISITS, PAPERS_LOOP, budgeted
from sklearn.model_selection import train_test_split

SEEDS = range(5)
PLANES = (1, 2, 4, 8, 16, 32, 64)
EPOCHS = (1, 4, 16, 64)
N_ROWS = 60_000
QUICK_PLANES = (1, 4, 16)
QUICK_EPOCHS = (1, 4, 16)


@cache
def rows():
    return one_class(pixels(), 2)


def chosen():
    """The regularisation, as a multiple of 1 / T, that 10,000 held-out training rows prefer at K = 16, T = 960,000."""
    split = rows()
    kept, held_out = train_test_split(np.arange(N_ROWS), test_size=10_000, random_state=0, stratify=split.y)
    errors = {}
    for alpha_visits in ALPHA_VISITS:
        machine = budgeted(16, 16 * N_ROWS, len(kept), alpha_visits, 0.0, PAPERS_LOOP).set_params(random_state=0)
        machine.fit(split.X[kept], split.y[kept])
        errors[alpha_visits] = round(100 * (1 - machine.score(split.X[held_out], split.y[held_out])), 3)
    return {"alpha_visits": min(errors, key=errors.get), "held_out": {str(a): e for a, e in errors.items()}}


def error(n_planes, epochs, alpha_visits, seed):
    split = rows()
    machine = budgeted(n_planes, epochs * N_ROWS, N_ROWS, alpha_visits, 0.0, PAPERS_LOOP).set_params(random_state=seed)
    return {"error": round(100 * (1 - machine.fit(split.X, split.y).score(split.X_test, split.y_test)), 4)}


def name_of(n_planes, epochs, seed):
    return f"K={n_planes}, {epochs * N_ROWS} visits, seed {seed}"


def measure(results):
    alpha_visits = results.get("choice of alpha", chosen)["alpha_visits"]
    for seed in SEEDS[:1] if results.quick else SEEDS:
        for epochs in QUICK_EPOCHS if results.quick else EPOCHS:
            for n_planes in QUICK_PLANES if results.quick else PLANES:
                results.get(name_of(n_planes, epochs, seed), partial(error, n_planes, epochs, alpha_visits, seed))


def mean_of(figures, n_planes, epochs):
    """Mean and deviation over the seeds at hand, or None."""
    names = [name_of(n_planes, epochs, seed) for seed in SEEDS]
    runs = [figures[name]["error"] for name in names if name in figures]
    return Figure(float(np.mean(runs)), float(np.std(runs))) if runs else None


def not_lower(figures):
    """In words: steps in T, for K > 1, and steps in K, at the largest T, after which the error is not lower."""
    more_visits = {
        f"K = {k} from T = {visits(fewer)} to {visits(more)}": ((k, fewer), (k, more))
        for k in PLANES[1:]
        for fewer, more in pairwise(EPOCHS)
    }
    more_planes = {f"K = {few} to {many}": ((few, EPOCHS[-1]), (many, EPOCHS[-1])) for few, many in pairwise(PLANES)}
    return (exceptions(figures, steps) for steps in (more_visits, more_planes))


def exceptions(figures, steps):
    """In words, the steps after which the mean error is not lower than before."""
    found = []
    for label, points in steps.items():
        before, after = (mean_of(figures, *point) for point in points)
        if after.value >= before.value:
            found.append(f"{label} ({before.value:.3f} and {after.value:.3f} %)")
    return f", except {', '.join(found)}" if found else ""


def in_words(figures):
    """What the paper says of its figure, beside ours."""
    told = "The paper shows a figure, without numbers: the error falls with T for all K > 1, and with K if T is large."
    if any(mean_of(figures, n_planes, epochs) is None for n_planes in PLANES for epochs in EPOCHS):
        return told
    with_visits, with_planes = not_lower(figures)
    return (
        f"{told} Here, with lambda = {figures['choice of alpha']['alpha_visits']}/T, the mean error falls with each "
        f"step in T for all K > 1{with_visits}. At T = {visits(EPOCHS[-1])} it falls with each step in K{with_planes}."
    )


def tables(figures):
    rows = [
        Row(
            f"K={n_planes}, T={epochs * N_ROWS:,}",
            None,
            mean_of(figures, n_planes, epochs),
            source=tuple(name_of(n_planes, epochs, seed) for seed in SEEDS),
        )
        for epochs in EPOCHS
        for n_planes in PLANES
    ]
    yield Table("Test error on MNIST-2, %", rows, note=in_words(figures), kind="stand-in")


def draw(figures, fig):
    from matplotlib import colormaps
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    fig.set_size_inches(10, 4.4)
    left, right = fig.subplots(1, 2, sharey=True)
    series = {
        left: ([(k, [(e * N_ROWS, mean_of(figures, k, e)) for e in EPOCHS]) for k in PLANES], "K = {}".format),
        right: ([(e, [(k, mean_of(figures, k, e)) for k in PLANES]) for e in EPOCHS], lambda e: f"T = {visits(e)}"),
    }
    for ax, (lines, label) in series.items():
        for index, (value, points) in enumerate(lines):
            at_hand = [(x, mean.value, mean.std) for x, mean in points if mean is not None]
            colour = colormaps["viridis"](0.85 * index / (len(lines) - 1))
            if at_hand:
                x, mean, std = zip(*at_hand, strict=True)
                ax.errorbar(x, mean, std, color=colour, marker="o", markersize=4, capsize=2, label=label(value))
        ax.set(xscale="log", yscale="log", ylim=(0.38, 6))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9, ncols=2, loc="upper right")
    left.xaxis.set_major_locator(FixedLocator([e * N_ROWS for e in EPOCHS]))
    left.xaxis.set_major_formatter(FuncFormatter(lambda x, _: visits(round(x / N_ROWS))))
    right.xaxis.set_major_locator(FixedLocator(PLANES))
    right.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
    left.yaxis.set_major_locator(FixedLocator([0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5]))
    left.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    for ax in (left, right):
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_minor_locator(NullLocator())
    left.set(xlabel="visits T", ylabel="test error, %", title="Error against visits")
    right.set(xlabel="planes K of each polytope", title="Error against planes")


def visits(epochs):
    number = epochs * N_ROWS
    return f"{number / 1e6:.3g} M" if number >= 1e6 else f"{number / 1e3:.0f} k"


def plots(figures):
    if any(name.startswith("K=") for name in figures):
        caption = "Test error of the CPM on MNIST-2 with free entropy; bars: one standard deviation."
        yield Plot("figure2", caption, partial(draw, figures))


EXPERIMENT = Experiment(
    script=__file__,
    title="Figure 2: error against the number of visits T and of planes K",
    protocol=(
        "As in the paper, every visit is processed (no back-off), the entropy is free, and lambda = 1 / (C T) with "
        "the same C for all K and T, here the one with the smallest error on 10,000 held-out training rows at K = 16 "
        "and T = 960,000. Five orders of the rows, seeds 0 to 4, as many runs as in the paper. The paper uses "
        "MNIST8m-2, here it is MNIST-2. The text of the paper does not give its values of K and T; here T is a number "
        "of complete passes."
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    settings={"n_rows": N_ROWS, "alpha_visits": ALPHA_VISITS},
    uses=("ConvexPolytopeClassifier",),
)

if __name__ == "__main__":
    main(EXPERIMENT)
