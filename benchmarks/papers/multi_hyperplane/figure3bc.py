"""Figures 3b and 3c of Djuric, Wang and Vucetic (2020): weights data of growing dimension and complexity."""

from functools import partial
from typing import NamedTuple

import numpy as np
from benchmarks.data.splits import weights
from benchmarks.harness.baselines import baseline
from benchmarks.harness.choosing import choose, grid
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.multi_hyperplane.expected import method_of
from benchmarks.papers.multi_hyperplane.looks import LOOKS, plain

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier

SVM_ROWS = 3_000
CHOICE_SEED = 5_000
DIMENSIONS = [(d, 50) for d in (5, 10, 20, 30, 40, 50)]
COMPLEXITIES = [(20, n) for n in (10, 20, 50, 100, 150, 200)]
#: Where the machines that the paper leaves out are shown as well.
CORNERS = [(5, 50), (20, 50), (50, 50), (20, 10), (20, 200)]


class Machine(NamedTuple):
    """How a machine is made, ``make(seed, D, **settings)``, the settings to choose from, and how often it is run."""

    make: object
    settings: list
    seeds: range
    n_rows: int | None = None
    points: list | None = None


def adaptive(seed, n_features, **settings):
    return AdaptiveMultiHyperplaneClassifier(max_iter=15, average_fraction=0.0, random_state=seed, **settings)


def tangent(seed, n_features):
    return MultiHyperplaneClassifier(random_state=seed)


def network(seed, n_features):
    """One hidden layer of 2.5 D units, as in the paper."""
    return baseline("MLP", seed, hidden_layer_sizes=(round(2.5 * n_features),))


def other(name, seed, n_features, **settings):
    return baseline(name, seed, **settings)


def svm(seed, n_features, gamma, **settings):
    """Uniform features have variance 1/12; gamma is relative to scikit-learn's "scale"."""
    return baseline("RBF-SVM", seed, gamma=gamma * 12 / n_features, **settings)


ALPHAS = grid(alpha=[1e-6, 1e-5, 1e-4])
MACHINES = {
    "AMM": Machine(partial(adaptive, growth=0.0, prune=10.0, prune_every=1_000), ALPHAS, range(3)),
    "GAMM": Machine(partial(adaptive, growth=0.2, prune=50.0), ALPHAS, range(3)),
    "tangent start": Machine(tangent, [{}], range(3)),
    "linear SVM": Machine(partial(other, "linear SVM"), grid(C=[0.1, 10]), range(3)),
    "RBF-SVM": Machine(svm, grid(C=[10, 100], gamma=[0.3, 1]), range(3), SVM_ROWS),
    "MLP": Machine(network, [{}], range(1)),
    "gradient boosting": Machine(partial(other, "gradient boosting"), [{}], range(1), points=CORNERS),
    "random forest": Machine(partial(other, "random forest"), [{}], range(1), points=CORNERS),
    "LVQ2.1": Machine(partial(other, "LVQ2.1"), grid(n_prototypes=[10, 40]), range(1), points=CORNERS),
}


def accuracy(name, point, seeds):
    """Accuracies on fresh weights data; settings are chosen on held-out rows of data of their own."""
    machine = MACHINES[name]
    settings = machine.settings[0]
    if len(machine.settings) > 1:
        split = weights(*point, CHOICE_SEED)
        make = partial(machine.make, 0, point[0])
        n_rows = machine.n_rows
        settings = choose(make, machine.settings, split.X[:n_rows], split.y[:n_rows], n_splits=1)["settings"]
    runs, guesses = [], []
    for seed in seeds:
        split = weights(*point, seed)
        trained = machine.make(seed, point[0], **settings).fit(split.X[: machine.n_rows], split.y[: machine.n_rows])
        runs.append(100 * trained.score(split.X_test, split.y_test))
        guesses.append(100 * max(split.y_test.mean(), 1 - split.y_test.mean()))
    figures = {"accuracy": np.mean(runs), "std": np.std(runs), "largest_class": np.mean(guesses)}
    told = {"settings": settings, "runs": np.round(runs, 3).tolist()}
    return {key: round(float(value), 3) for key, value in figures.items()} | told


def name_of(name, point):
    return f"{name}, D={point[0]}, {point[1]} weights"


def measure(results):
    """A quick run has two corners alone, one set each, and no network."""
    for point in dict.fromkeys(CORNERS[::4] if results.quick else CORNERS + DIMENSIONS + COMPLEXITIES):
        for name, machine in MACHINES.items():
            left_out = name == "MLP" if results.quick else point not in (machine.points or [point])
            if not left_out:
                seeds = machine.seeds[:1] if results.quick else machine.seeds
                results.get(
                    name_of(name, point), partial(accuracy, name, point, seeds), [*method_of(name), "make_weights"]
                )


def tables(figures):
    rows = []
    for point in CORNERS:
        for name in MACHINES:
            cell = figures.get(name_of(name, point))
            ours = None if cell is None else Figure(cell["accuracy"], cell["std"] if len(cell["runs"]) > 1 else None)
            kind = "beyond" if name == "tangent start" else "paper" if name in ("GAMM", "MLP") else None
            rows.append(Row(name_of(name, point), None, ours, source=name_of(name, point), kind=kind))
        guess = figures.get(name_of("GAMM", point))
        label = f"the larger class, D={point[0]}, {point[1]} weights"
        source = name_of("GAMM", point)
        rows.append(Row(label, None, guess and Figure(guess["largest_class"]), source=source, kind="check"))
    yield Table(
        "Accuracy, %, at the corners of the figures",
        rows,
        better="higher",
        note=" ".join(filter(None, ("The paper shows figures, without numbers.", in_words(figures), BASELINES))),
        kind="stand-in",
    )


BASELINES = (
    "Boosting is scikit-learn's HistGradientBoostingClassifier, where the paper has LogitBoost. LVQ2.1 is our own, "
    "starts at k-means centres, and is no evidence about the paper's: the paper names scikit-learn's, but scikit-learn "
    "has none, and neither have `sklvq` and `sklearn-lvq`."
)
COMPARED = ("GAMM", "MLP", "RBF-SVM", "linear SVM", "gradient boosting", "random forest")


def in_words(figures):
    """What the paper says of the methods, beside our figures of seed 0, the one data set that all were trained on."""
    points = [(5, 50), (50, 50), (20, 10), (20, 200)]
    if any(name_of(name, point) not in figures for name in COMPARED for point in points):
        return ""

    def told(point, *names):
        return ", ".join(f"{name} {figures[name_of(name, point)]['runs'][0]:.1f} %" for name in names)

    few, many, simple, rich = (told(point, "GAMM", "MLP", "RBF-SVM") for point in points)
    wide, complex_ = (
        f"{told(point, *COMPARED[3:])}, larger class {figures[name_of('MLP', point)]['largest_class']:.1f} %"
        for point in (points[1], points[3])
    )
    return (
        "On the data of seed 0, on which all methods were trained: (1) The paper says that GAMM's accuracy is stable "
        "as features are added, while the network's and the RBF-SVM's fall. Here: with 5 features "
        f"{few}; with 50 {many}. (2) It says that GAMM is more accurate than network and SVM for all numbers of "
        f"weights. Here: with 10 weights {simple}; with 200 {rich}. (3) It says that boosting, random forests and "
        "LVQ2.1 are only slightly better than a random guess for many features and weights. Here: with 50 features "
        f"{wide}; with 200 weights {complex_}."
    )


def draw_axis(ax, figures, points, which):
    """One curve per machine over the points at hand, with bars of two deviations."""
    guess = []
    for name in MACHINES:
        colour, marker, dashes = LOOKS[name]
        at_hand = [point for point in points if name_of(name, point) in figures]
        cells = [figures[name_of(name, point)] for point in at_hand]
        mean, std = (np.array([cell[key] for cell in cells]) for key in ("accuracy", "std"))
        x = [point[which] for point in at_hand]
        style = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 5, "capsize": 2}
        if MACHINES[name].points:
            style |= {"markersize": 8, "markeredgecolor": "black", "markeredgewidth": 0.6, "zorder": 3}
        ax.errorbar(x, mean, 2 * std, elinewidth=0.8, label=name, **style)
        if name == "GAMM":
            guess = [cell["largest_class"] for cell in cells]
            ax.fill_between(x, 0, guess, color="#000000", alpha=0.07, linewidth=0)
    if guess:
        ax.text(x_of(points, which), min(guess) - 1.5, "the larger class", va="top", ha="right", fontsize=9)
    ax.set(xlim=(0, 1.04 * x_of(points, which)), ylim=(45, 101))
    plain(ax)


def x_of(points, which):
    return max(point[which] for point in points)


def draw(figures, fig):
    fig.set_size_inches(11, 4.8)
    left, right = fig.subplots(1, 2, sharey=True)
    draw_axis(left, figures, DIMENSIONS, 0)
    draw_axis(right, figures, COMPLEXITIES, 1)
    left.set(xlabel="features D (50 weights)", ylabel="accuracy, %")
    right.set(xlabel="weights (20 features)")
    left.set_title("(3b) more features", loc="left")
    right.set_title("(3c) more weights", loc="left")
    fig.suptitle("Accuracy on weights data")
    right.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), title="bars: two deviations")


def plots(figures):
    if figures:
        caption = (
            "Accuracy on weights data; the RBF-SVM has a fifth of the training rows. Single markers with a black edge: "
            "methods that the paper left out of its figure."
        )
        yield Plot("figure3bc", caption, partial(draw, figures))


EXPERIMENT = Experiment(
    script=__file__,
    title="Figures 3b and 3c: accuracy against dimension and complexity of weights data",
    protocol=(
        "15,000 training and 5,000 test rows. AMM (pruned every 1,000 visits, see Table 1) and GAMM as in Table 1; a "
        "network (MLP) with one hidden layer of 2.5 D units, as in the paper; the linear SVM is LinearSVC, where the "
        "paper has Pegasos. lambda, C and gamma are chosen at each point on held-out rows of other data (seed 5000). "
        "Fresh data per run: three runs (seeds 0 to 2), and one run (seed 0) of the network and of the methods that "
        "the paper leaves out; the paper has ten. The RBF-SVM is trained on 3,000 rows, to save time. Six numbers of "
        "features and six of weights; the paper has ten and twenty. *The larger class* is the mean over the three "
        "data sets."
    ),
    measure=measure,
    tables=tables,
    plots=plots,
    settings={"choice_seed": CHOICE_SEED, "machines": MACHINES},
)

if __name__ == "__main__":
    main(EXPERIMENT)
