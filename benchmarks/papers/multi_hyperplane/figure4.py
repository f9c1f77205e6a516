"""Figure 4 of Djuric, Wang and Vucetic (2020): examples of the weights data in two dimensions."""

from functools import partial

import numpy as np
from benchmarks.data.synthetic import make_weights
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.multi_hyperplane.looks import FIELDS, POINTS

#: Planes of the example and its seed: the paper's complexities are lost, these show few and many regions.
EXAMPLES = {"10 weights": (10, 1), "50 weights": (50, 1)}


def example(name):
    """How an example looks in numbers: planes with the highest score at some point, share of class 1."""
    n_planes, seed = EXAMPLES[name]
    X, y, planes = make_weights(15_000, 2, n_planes, random_state=seed)
    winners = (X @ planes.coef.T + planes.intercept).argmax(axis=1)
    return {"active": len(np.unique(winners)), "share": round(100 * float(y.mean()), 2)}


def measure(results):
    for name in EXAMPLES:
        results.get(name, partial(example, name))


def tables(figures):
    for key, title in (("active", "Planes with the highest score at some point"), ("share", "Share of class 1, %")):
        rows = [Row(name, None, figures.get(name) and Figure(figures[name][key]), source=name) for name in EXAMPLES]
        yield Table(title, rows, better=None, digits=0)


def draw(fig):
    fig.set_size_inches(7.5, 4)
    side = np.linspace(0, 1, 400)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for ax, (name, (n_planes, seed)) in zip(fig.subplots(1, 2), EXAMPLES.items(), strict=True):
        X, y, planes = make_weights(1_500, 2, n_planes, random_state=seed)
        ax.contourf(
            side, side, planes.predict(grid).reshape(400, 400), levels=[-0.5, 0.5, 1.5], colors=FIELDS, alpha=0.5
        )
        ax.scatter(*X.T, c=np.array(POINTS)[y], s=3, linewidths=0)
        active = len(np.unique((grid @ planes.coef.T + planes.intercept).argmax(axis=1)))
        ax.set(
            title=f"{name}, {active} with a region",
            xticks=[0, 1],
            yticks=[0, 1],
            aspect="equal",
        )


def plots(figures):
    caption = "Weights data in two dimensions: each point has the class of the plane with the highest score."
    yield Plot("figure4", caption, draw)


EXPERIMENT = Experiment(
    script=__file__,
    title="Figure 4: examples of weights data",
    protocol=(
        "Data generated as in the paper, D = 2, 10 and 50 weights (the text of the paper does not give its numbers), "
        "seed 1."
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    settings={"examples": EXAMPLES},
    uses=("make_weights",),
)

if __name__ == "__main__":
    main(EXPERIMENT)
