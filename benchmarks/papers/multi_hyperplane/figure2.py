"""Figure 2 of Djuric, Wang and Vucetic (2020): the 4x4 checkerboard as AMM and GAMM see it."""

from functools import partial

import numpy as np
from benchmarks.data.splits import board
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main, printed
from benchmarks.papers.multi_hyperplane.expected import EXPECTED, REPETITIONS
from benchmarks.papers.multi_hyperplane.looks import FIELDS, POINTS

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier
from polyplane.planes import PlaneSet

SEED = 0
#: The alphas of Table 1, chosen there on held-out rows of other boards.
ADAPTIVE = {"max_iter": 15, "average_fraction": 0.0, "alpha": 1e-4, "random_state": SEED}
MACHINES = {
    "AMM": AdaptiveMultiHyperplaneClassifier(growth=0.0, prune=10.0, **ADAPTIVE),
    "GAMM": AdaptiveMultiHyperplaneClassifier(growth=0.2, prune=50.0, **ADAPTIVE),
    "tangent start": MultiHyperplaneClassifier(random_state=SEED),
}


def trained(name):
    """The planes of a machine on the 4x4 board, and its error."""
    split = board((4, 4), SEED)
    machine = MACHINES[name].fit(split.X, split.y)
    planes = machine.planes_
    return {
        "error": round(100 * (1 - machine.score(split.X_test, split.y_test)), 3),
        "coef": np.round(planes.coef.astype(float), 4).tolist(),
        "intercept": np.round(planes.intercept.astype(float), 4).tolist(),
        "indptr": planes.indptr.tolist(),
    }


def measure(results):
    for name in MACHINES:
        results.get(name, partial(trained, name))


def tables(figures):
    rows = []
    for name in MACHINES:
        paper = EXPECTED["table1"]["4x4"].get(name)
        ours = figures.get(name)
        why = "one run; the paper's figure is the mean of Table 1" if paper else "not in the paper"
        kind = "check" if paper else "beyond"
        theirs = paper and printed(paper, REPETITIONS)
        rows.append(Row(f"4x4, {name}", theirs, ours and Figure(ours["error"]), why, name, kind))
    yield Table("Error of the classifiers shown, %", rows)


def draw(figures, fig):
    names = [name for name in MACHINES if name in figures]
    fig.set_size_inches(3.1 * (len(names) + 1), 3.4)
    axes = fig.subplots(1, len(names) + 1, sharey=True)
    X, y = board((4, 4), SEED)[2:]
    axes[0].scatter(*X[:2000].T, c=np.array(POINTS)[y[:2000]], s=2, linewidths=0)
    axes[0].set_title("(a) test rows")
    side = np.linspace(-1, 1, 400, dtype=np.float32)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for letter, ax, name in zip("bcd", axes[1:], names, strict=False):
        cell = figures[name]
        arrays = (np.array(cell[key], dtype=np.float32) for key in ("coef", "intercept"))
        region = PlaneSet(*arrays, np.array(cell["indptr"])).predict(grid).reshape(400, 400)
        ax.contourf(side, side, region, levels=[-0.5, 0.5, 1.5], colors=FIELDS)
        for line in (-0.5, 0.0, 0.5):
            ax.axhline(line, color="black", linewidth=0.6, linestyle=(0, (2, 2)))
            ax.axvline(line, color="black", linewidth=0.6, linestyle=(0, (2, 2)))
        ax.set_title(f"({letter}) {name}: {cell['error']:.1f} % error")
    for ax in axes:
        ax.set(xticks=[], yticks=[], aspect="equal", xlim=(-1, 1), ylim=(-1, 1))


def plots(figures):
    if figures:
        counts = ", ".join(f"{name} with {cell['indptr'][-1]} planes" for name, cell in figures.items())
        caption = f"The 4x4 checkerboard (dashed) and the predicted classes of {counts}."
        yield Plot("figure2", caption, partial(draw, figures))


EXPERIMENT = Experiment(
    script=__file__,
    title="Figure 2: the regions of AMM and GAMM on the 4x4 checkerboard",
    protocol=(
        "15,000 training rows, 15 epochs, the settings of Table 1 with lambda = 1e-4, chosen there for GAMM; the "
        "tangent start with default parameters. One run each, seed 0."
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    settings={"seed": SEED, "adaptive": ADAPTIVE},
    uses=("AdaptiveMultiHyperplaneClassifier", "MultiHyperplaneClassifier", "make_checkerboard"),
)

if __name__ == "__main__":
    main(EXPERIMENT)
