"""Figure 3a of Djuric, Wang and Vucetic (2020): label noise on the 4x4 checkerboard."""

from functools import partial

import numpy as np
from benchmarks.data.splits import board
from benchmarks.harness.choosing import choose, grid
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.multi_hyperplane.expected import method_of
from benchmarks.papers.multi_hyperplane.looks import LOOKS, plain
from sklearn.svm import SVC

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier

SEEDS, SVM_SEEDS = range(10), range(5)
LEVELS = [round(0.05 * i, 2) for i in range(21)]
QUICK_LEVELS = [0.0, 0.4, 0.8]
SVM_ROWS = 3_000


def adaptive(seed, **settings):
    return AdaptiveMultiHyperplaneClassifier(max_iter=15, average_fraction=1 / 3, random_state=seed, **settings)


def tangent(seed, **settings):
    return MultiHyperplaneClassifier(random_state=seed, **settings)


def svm(seed, **settings):
    return SVC(random_state=seed, **settings)


ALPHAS = [1e-5, 1e-4, 1e-3]
MACHINES = {
    "AMM": (partial(adaptive, growth=0.0, prune=10.0), grid(alpha=ALPHAS)),
    "GAMM": (adaptive, grid(alpha=ALPHAS)),
    "tangent start, as it comes": (tangent, [{}]),
    "tangent start, log-loss": (
        tangent,
        [{}, *grid(n_planes=[16, 64], eta0=[0.03, 0.3], alpha=[0.0, 0.2])],
    ),
    "tangent start, hinge": (tangent, grid(loss=["hinge"], n_planes=[16, 64], eta0=[0.03, 0.3])),
    "RBF-SVM": (svm, grid(C=[1, 10, 100], gamma=[5, 15])),
}
LABELS = {
    "tangent start, as it comes": "tangent start,\nas it comes",
    "RBF-SVM": "RBF-SVM,\na fifth of the rows",
}


def rows_for(name, level, seed):
    split = board((4, 4), seed, flip_y=level)
    n_rows = SVM_ROWS if name == "RBF-SVM" else len(split.y)
    return split._replace(X=split.X[:n_rows], y=split.y[:n_rows])


def accuracy(name, level, seeds):
    make, candidates = MACHINES[name]
    settings = candidates[0]
    if len(candidates) > 1:
        split = rows_for(name, level, 5_000)
        settings = choose(partial(make, 0), candidates, split.X, split.y, n_splits=2)["settings"]
    runs = []
    for seed in seeds:
        split = rows_for(name, level, seed)
        runs.append(100 * make(seed, **settings).fit(split.X, split.y).score(split.X_test, split.y_test))
    return {
        "accuracy": round(float(np.mean(runs)), 3),
        "std": round(float(np.std(runs)), 3),
        "settings": settings,
        "runs": np.round(runs, 3).tolist(),
    }


def measure(results):
    for name in MACHINES:
        levels = LEVELS[::2] if name.startswith("tangent") else LEVELS
        for level in QUICK_LEVELS if results.quick else levels:
            seeds = SEEDS[:2] if results.quick else SVM_SEEDS if name == "RBF-SVM" else SEEDS
            results.get(
                f"{name}, noise {level}", partial(accuracy, name, level, seeds), [*method_of(name), "make_checkerboard"]
            )


def tables(figures):
    rows = []
    for name in MACHINES:
        for level in LEVELS[::4]:
            cell = figures.get(f"{name}, noise {level}")
            ours = None if cell is None else Figure(cell["accuracy"], cell["std"])
            label, kind = (
                f"{name}, {level:.0%} of the labels at random",
                "beyond" if name.startswith("tangent") else None,
            )
            rows.append(Row(label, None, ours, source=f"{name}, noise {level}", kind=kind))
    note = f"The paper shows a figure, without numbers; its planes are not averaged. {in_words(figures)}".strip()
    yield Table("Accuracy on clean rows, %", rows, better="higher", note=note, kind="stand-in")


def in_words(figures):
    """What the paper says of GAMM and AMM, beside our figures."""
    cells = {level: [figures.get(f"{name}, noise {level}") for name in ("GAMM", "AMM")] for level in LEVELS}
    if not all(all(pair) for pair in cells.values()):
        return ""
    close = [
        f"{level:.0%}"
        for level, (gamm, amm) in cells.items()
        if gamm["accuracy"] - amm["accuracy"] <= 2 * max(gamm["std"], amm["std"])
    ]
    return (
        "It says that GAMM is more accurate than AMM until there is very much noise: here by more than two standard "
        f"deviations at all levels but {', '.join(close)}."
    )


def draw(figures, fig):
    ax = fig.subplots()
    fig.set_size_inches(9.5, 4.8)
    for name in MACHINES:
        colour, marker, dashes = LOOKS[name]
        levels = [level for level in LEVELS if f"{name}, noise {level}" in figures]
        cells = [figures[f"{name}, noise {level}"] for level in levels]
        mean, std = (np.array([cell[key] for cell in cells]) for key in ("accuracy", "std"))
        ax.plot(levels, mean, color=colour, marker=marker, linestyle=dashes, markersize=5, label=LABELS.get(name, name))
        ax.fill_between(levels, mean - 2 * std, mean + 2 * std, color=colour, alpha=0.15, linewidth=0)
    ax.axhline(50, color="black", linewidth=0.8, linestyle=(0, (1, 3)))
    ax.text(0.01, 49, "a guess", va="top", fontsize=9)
    ax.set(
        xlabel="share of training rows with a random label",
        ylabel="accuracy on clean rows, %",
        xlim=(0, 1),
        ylim=(38, 101),
    )
    plain(ax)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), title="bands: two deviations")
    ax.set_title("Label noise on the 4x4 checkerboard", loc="left")


def plots(figures):
    caption = "Label noise on the 4x4 checkerboard: accuracy on clean rows; bands: two standard deviations."
    yield Plot("figure3a", caption, partial(draw, figures))


EXPERIMENT = Experiment(
    script=__file__,
    title="Figure 3a: label noise on the 4x4 checkerboard",
    protocol=(
        "A share of the 15,000 training rows, from 0 to 1 in steps of 0.05, as in the paper, gets a random label (the "
        "tangent start: steps of 0.1); the 5,000 test rows are clean. Settings are chosen for each method and level "
        "on held-out training rows, with the same noise, of another board; the tangent start *as it comes* has "
        "default parameters. The RBF-SVM is trained on 3,000 of the rows of five boards, to save time. Ten fresh "
        "boards per level for the others, seeds 0 to 9, as many runs as in the paper. The planes of AMM and GAMM in "
        "the last third of the epochs are averaged, which the paper does not do."
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    settings={"seeds": SEEDS, "svm_rows": SVM_ROWS, "machines": MACHINES},
)

if __name__ == "__main__":
    main(EXPERIMENT)
