"""Figure 1b of Djuric, Wang and Vucetic (2020): the planes of GAMM on a 1x7 board form a convex envelope."""

from functools import partial

import numpy as np
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.multi_hyperplane.looks import FIELDS, POINTS, plain

from polyplane import AdaptiveMultiHyperplaneClassifier

N_FIELDS = 7
SEED = 0


def rows(seed, n_rows):
    """Points on a line of seven fields, whose classes alternate."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, 1)).astype(np.float32)
    return X, field_of(X[:, 0]) % 2


def field_of(x):
    return np.clip(((x + 1) / 2 * N_FIELDS).astype(int), 0, N_FIELDS - 1)


def trained():
    """GAMM's planes as (slope, intercept, class), and which of them win points."""
    X, y = rows(SEED, 15_000)
    X_test, y_test = rows(10_000 + SEED, 5_000)
    machine = AdaptiveMultiHyperplaneClassifier(max_iter=15, average_fraction=1 / 3, alpha=1e-5, random_state=SEED)
    machine.fit(X, y)
    slopes, intercepts = machine.planes_.coef[:, 0], machine.planes_.intercept
    owner = np.repeat([0, 1], np.diff(machine.planes_.indptr))
    where = np.linspace(-1, 1, 4001)
    active = np.unique((where[:, None] * slopes + intercepts).argmax(axis=1))
    lowest = where[(where[:, None] * slopes + intercepts).max(axis=1).argmin()]
    return {
        "error": round(100 * (1 - machine.score(X_test, y_test)), 3),
        "planes": np.round(np.column_stack([slopes, intercepts, owner]).astype(float), 4).tolist(),
        "active": active.tolist(),
        "lowest": round(float(lowest), 4),
    }


def measure(results):
    results.get("GAMM on 1x7", trained)


def tables(figures):
    cell = figures.get("GAMM on 1x7")
    values = {
        "error on 5,000 test rows, %": cell and cell["error"],
        "lowest point of the envelope": cell and cell["lowest"],
    }
    note = (
        f"The data are from -1 to 1, the central field from {-1 / N_FIELDS:.3f} to {1 / N_FIELDS:.3f}; the paper says "
        "that the lowest point is close to the central field."
    )
    yield Table("GAMM on a 1x7 board", rows_of(values), better=None, digits=3, note=note, kind="stand-in")
    counts = {
        "all planes": cell and len(cell["planes"]),
        "planes of the envelope": cell and len(cell["active"]),
    }
    yield Table("GAMM on a 1x7 board: planes", rows_of(counts), better=None, digits=0, kind="stand-in")


def rows_of(values):
    return [
        Row(label, None, None if value is None else Figure(value), source="GAMM on 1x7")
        for label, value in values.items()
    ]


def draw(figures, fig):
    fig.set_size_inches(8, 4.5)
    ax = fig.subplots()
    cell = figures["GAMM on 1x7"]
    where = np.linspace(-1, 1, 2001)
    scores = np.array([a * where + b for a, b, _ in cell["planes"]])
    envelope = scores.max(axis=0)
    low, high = envelope.min(), envelope.max()
    for left in range(N_FIELDS):
        edges = (2 * left / N_FIELDS - 1, 2 * (left + 1) / N_FIELDS - 1)
        ax.axvspan(*edges, color=FIELDS[left % 2], alpha=0.18, linewidth=0)
    for index, (_, _, owner) in enumerate(cell["planes"]):
        on_top = index in cell["active"]
        width, alpha = (1.6, 1.0) if on_top else (0.5, 0.25)
        ax.plot(where, scores[index], color=POINTS[int(owner)], linewidth=width, alpha=alpha)
    ax.plot(where, envelope, color="black", linewidth=3, alpha=0.35, label="envelope")
    for owner, colour in enumerate(POINTS):
        ax.plot([], [], color=colour, label=f"planes of class {owner}")
    margin = 0.15 * (high - low)
    ax.set(xlim=(-1, 1), ylim=(low - 2.5 * margin, high + margin), xlabel="x", ylabel="score")
    ax.set_title(
        f"GAMM on a 1x7 board: {len(cell['active'])} of {len(cell['planes'])} planes form a convex envelope", loc="left"
    )
    ax.legend(frameon=False, loc="upper center")
    plain(ax)


def plots(figures):
    if "GAMM on 1x7" in figures:
        caption = "Shaded: the class of each field. Thick lines: planes of the envelope; thin lines: planes below it."
        yield Plot("figure1b", caption, partial(draw, figures))


EXPERIMENT = Experiment(
    script=__file__,
    title="Figure 1b: the envelope of GAMM's planes on 1x7 XOR-like data",
    protocol=(
        "15,000 points on a line of seven fields with alternating classes, 15 epochs, p = 0.2, beta = 0.99, c = 50, "
        "lambda = 1e-5 (the paper does not give it). The planes of the last third of the epochs are averaged, which "
        "the paper does not do. One run, seed 0."
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    settings={"seed": SEED},
    uses=("AdaptiveMultiHyperplaneClassifier", "make_checkerboard"),
)

if __name__ == "__main__":
    main(EXPERIMENT)
