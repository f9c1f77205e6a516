"""Figure 3a of Djuric, Wang and Vucetic (2020): label noise on the 4x4 checkerboard.

A share of the 15,000 training rows, from none to all, gets a label at random; the 5,000 test rows are clean. At each
level every machine has its settings chosen on held-out training rows, as noisy as the others, of a board of its own;
"tangent start, as it comes" has none to choose. The RBF-SVM is trained on 3,000 of the rows, for its time. Five fresh
boards per level. Writes `results/figure3a.json` and `results/figure3a.png`.
"""

from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.choosing import choose, grid
from benchmarks.data import board
from benchmarks.results import Results
from sklearn.svm import SVC

from polyplane import MultiHyperplaneClassifier

SEEDS = range(5)
LEVELS = [round(0.1 * i, 1) for i in range(11)]
SVM_ROWS = 3_000
PICTURE = Path(__file__).parent / "results" / "figure3a.png"


def zero(seed, **settings):
    return MultiHyperplaneClassifier(init="zero", max_iter=15, average=1 / 3, random_state=seed, **settings)


def tangent(seed, **settings):
    return MultiHyperplaneClassifier(random_state=seed, **settings)


def svm(seed, **settings):
    return SVC(random_state=seed, **settings)


ALPHAS = [1e-5, 1e-4, 1e-3]
MACHINES = {
    "AMM": (partial(zero, growth=0.0, prune=10.0), grid(alpha=ALPHAS)),
    "GAMM": (zero, grid(alpha=ALPHAS)),
    "tangent start, as it comes": (tangent, [{}]),
    "tangent start, log-loss": (
        tangent,
        [{}, *grid(n_planes=[16, 64], eta0=[0.03, 0.3], alpha=[0.0, 0.2])],
    ),
    "tangent start, hinge": (tangent, grid(loss=["hinge"], n_planes=[16, 64], eta0=[0.03, 0.3])),
    "RBF-SVM": (svm, grid(C=[1, 10, 100], gamma=[5, 15])),
}


def rows_for(name, level, seed):
    split = board((4, 4), seed, flip_y=level)
    n_rows = SVM_ROWS if name == "RBF-SVM" else len(split.y)
    return split._replace(X=split.X[:n_rows], y=split.y[:n_rows])


def accuracy(name, level):
    make, candidates = MACHINES[name]
    settings = candidates[0]
    if len(candidates) > 1:
        split = rows_for(name, level, 5_000)
        settings = choose(partial(make, 0), candidates, split.X, split.y, n_splits=2)["settings"]
    runs = []
    for seed in SEEDS:
        split = rows_for(name, level, seed)
        runs.append(100 * make(seed, **settings).fit(split.X, split.y).score(split.X_test, split.y_test))
    return {
        "accuracy": round(float(np.mean(runs)), 3),
        "std": round(float(np.std(runs)), 3),
        "settings": settings,
        "runs": np.round(runs, 3).tolist(),
    }


#: Okabe and Ito's colours, which the colour-blind tell apart, and markers for those who see none.
LOOKS = {
    "AMM": ("#999999", "v", "-"),
    "GAMM": ("#E69F00", "s", "-"),
    "tangent start, as it comes": ("#56B4E9", "o", ":"),
    "tangent start, log-loss": ("#0072B2", "o", "-"),
    "tangent start, hinge": ("#009E73", "D", "-"),
    "RBF-SVM": ("#D55E00", "^", "--"),
}
LABELS = {
    "tangent start, as it comes": "tangent start,\nas it comes",
    "RBF-SVM": "RBF-SVM,\na fifth of the rows",
}


def draw(figures):
    """The picture, with the bands of the paper."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(9.5, 4.8), layout="constrained")
    for name, (colour, marker, dashes) in LOOKS.items():
        mean, std = (np.array([figures[name, level][key] for level in LEVELS]) for key in ("accuracy", "std"))
        ax.plot(LEVELS, mean, color=colour, marker=marker, linestyle=dashes, markersize=5, label=LABELS.get(name, name))
        ax.fill_between(LEVELS, mean - 2 * std, mean + 2 * std, color=colour, alpha=0.15, linewidth=0)
    ax.axhline(50, color="black", linewidth=0.8, linestyle=(0, (1, 3)))
    ax.text(0.01, 49, "a guess", va="top", fontsize=9)
    ax.set(
        xlabel="share of training rows with a random label",
        ylabel="accuracy on clean rows, %",
        xlim=(0, 1),
        ylim=(38, 101),
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), title="bands: two deviations")
    ax.set_title("Tuned, a tangent start reads the 4x4 checkerboard through more label noise than GAMM", loc="left")
    fig.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    results = Results(__file__, seeds=list(SEEDS), svm_rows=SVM_ROWS)
    print(" ".join([f"{'accuracy, %':27}", *(f"{level:6.1f}" for level in LEVELS)]))
    figures = {}
    for name in MACHINES:
        for level in LEVELS:
            figures[name, level] = results.get(f"{name}, noise {level}", partial(accuracy, name, level))
        print(f"{name:27}", *(f"{figures[name, level]['accuracy']:6.2f}" for level in LEVELS), flush=True)
    draw(figures)
