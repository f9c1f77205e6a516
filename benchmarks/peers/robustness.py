"""Clean and certified errors of `RobustPlaneClassifier` beside published figures of provably robust models.

The figures of boosted trees and stumps are those of Andriushchenko and Hein (NeurIPS 2019), with the infinity norm.
Settings are chosen by the certified error on held-out training rows (tables: five folds, four times); the few for
images were chosen so on 2,000 rows of the ten digits. Images have the test rows of MNIST; those of ten digits are
trained with two copies of each training image that are shifted by at most a pixel. Figures are means of three seeds.
Tables are split as in the code of the paper: the last fifth of the rows of the file is for testing. Their columns are
scaled to [0, 1] by the training rows. "held_out" is the smallest mean of the certified errors on held-out training
rows; "least" is a lower bound of the certified error of any model: of two rows of different classes within twice the
largest change, one cannot be certain. Needs POLYPLANE_DATA.

    python -m benchmarks.peers.robustness [--sets NAME ...] [--picture FILE]

``--picture`` draws what has been measured, without measuring again unless sets are named.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial.distance import cdist
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from polyplane import RobustPlaneClassifier
from polyplane.datasets import load_dataset
from polyplane.explain import robust_error

RESULTS = Path(__file__).parent / "results" / "robustness.json"
SEEDS = range(3)
#: Classes of images or name of a table, the largest change, and the published test and robust error, %.
SETS = {
    "mnist 1-5": ((1, 5), 0.3, (0.2, 1.3)),
    "mnist 2-6": ((2, 6), 0.3, (0.7, 3.8)),
    "mnist": (tuple(range(10)), 0.3, (2.68, 12.46)),
    "breast-cancer": ("breast_cancer_wisconsin", 0.3, (0.7, 6.6)),
    "diabetes": ("pima", 0.05, (23.4, 30.5)),
}
PAIR_SETTINGS = {"n_planes": 64, "max_iter": 30}
DIGIT_SETTINGS = {"n_planes": 64, "clean": 0.1, "alpha": 1e-4, "eta0": 0.8, "max_iter": 20}
TABLE_SETTINGS = {
    "n_planes": [1, 8], "n_bins": [1, 8], "clean": [0.05, 0.2], "alpha": [3e-3, 3e-2], "eta0": [0.1],
    "max_iter": [100],
}  # fmt: skip


def grid(values):
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def images(digits):
    data = load_dataset("mnist")
    parts = []
    for X, y in ((data.data, data.target), (data.data_test, data.target_test)):
        own = np.isin(y, digits)
        parts += [(X[own] / 255).astype(np.float32), y[own]]
    return parts


def shifted(X, y, seed):
    """The images, and two copies of each that are shifted by at most a pixel."""
    rng, padded = np.random.default_rng(seed), np.pad(X.reshape(-1, 28, 28), ((0, 0), (1, 1), (1, 1)))
    parts = [X]
    for _ in range(2):
        down, right = rng.integers(0, 3, (2, len(X)))
        rows, columns = (start[:, None] + np.arange(28) for start in (down, right))
        parts.append(padded[np.arange(len(X))[:, None, None], rows[:, :, None], columns[:, None]].reshape(X.shape))
    return np.concatenate(parts), np.tile(y, 3)


def table(name):
    data = load_dataset(name)
    X, y = np.asarray(data.data, dtype=np.float64), data.target
    whole = np.isfinite(X).all(axis=1)
    X, X_test, y, y_test = train_test_split(X[whole], y[whole], train_size=int(0.8 * whole.sum()), shuffle=False)
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / (high - low), y, np.clip((X_test - low) / (high - low), 0, 1), y_test


def least(X, y, eps):
    """The share of rows in a largest matching of rows of two classes that have changed rows in common."""
    is_first = y == y[0]
    meets = csr_matrix(cdist(X[is_first], X[~is_first], "chebyshev") <= 2 * eps)
    return 100 * np.mean(maximum_bipartite_matching(meets, perm_type="column") >= 0) * np.mean(is_first)


def errors(settings, eps, rows, seed):
    """Clean and certified error on the last rows, and the seconds of CPU time of `fit`."""
    X, y, X_test, y_test = rows
    began = time.process_time()
    model = RobustPlaneClassifier(eps, random_state=seed, **settings).fit(X, y)
    seconds = time.process_time() - began
    return [*(100 * robust_error(model, X_test, y_test, [0.0, eps], norm="inf")), seconds]


def chosen(eps, X, y):
    """The settings with the smallest mean of the certified errors on held-out rows, and this mean."""
    folds = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0).split(X, y))
    settings = grid(TABLE_SETTINGS)
    means = [
        np.mean([errors(each, eps, (X[fit], y[fit], X[held], y[held]), 0)[1] for fit, held in folds])
        for each in settings
    ]
    print(*zip(means, settings, strict=True), sep="\n", flush=True)
    return settings[int(np.argmin(means))], round(float(min(means)), 2)


def measured(name):
    what, eps, published = SETS[name]
    is_table, is_wide = isinstance(what, str), len(what) == 10
    X, y, X_test, y_test = table(what) if is_table else images(what)
    settings, held_out = chosen(eps, X, y) if is_table else (DIGIT_SETTINGS if is_wide else PAIR_SETTINGS, None)
    found = []
    for seed in SEEDS:
        rows = shifted(X, y, seed) if is_wide else (X, y)
        found.append(errors(settings, eps, (*rows, X_test, y_test), seed))
        print(name, seed, found[-1], flush=True)
    clean, certified, seconds = np.mean(found, axis=0).round(2).tolist()
    own = {"clean": clean, "certified": certified, "fit_seconds": seconds, "each": np.round(found, 2).tolist()}
    if is_table:
        own["held_out"] = held_out
        own["least"] = round(float(least(X_test, y_test, eps)), 2)
    return own | {
        "eps": eps, "settings": settings, "published": dict(zip(("clean", "robust"), published, strict=True))
    }  # fmt: skip


def picture(figures, path):
    """Clean and certified errors of each set on a line, ours above those published."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    ax, looks = figure.subplots(), {"RobustPlaneClassifier": ("#0072B2", "o"), "boosted trees or stumps": ("0.35", "D")}
    for place, own in enumerate(figures.values()):
        pairs = (max(own["clean"], 0.03), own["certified"]), tuple(own["published"].values())
        for (label, (colour, marker)), pair, height in zip(
            looks.items(), pairs, (place - 0.14, place + 0.14), strict=True
        ):
            ax.plot(pair, [height, height], color=colour, linewidth=1.5, zorder=1)
            ax.plot(pair[0], height, marker, color=colour, markerfacecolor="white", markersize=7)
            ax.plot(pair[1], height, marker, color=colour, markersize=7, label=label if not place else None)
            for value, side in zip(pair, ("right", "left"), strict=True):
                gap = 1 / 1.1 if side == "right" else 1.1
                ax.text(value * gap, height, f"{value:g}", ha=side, va="center", fontsize=9, color=colour)
    ax.set_yticks(range(len(figures)), [f"{name}\neps {own['eps']:g}" for name, own in figures.items()])
    ax.set(
        xscale="log",
        ylim=(len(figures) - 0.5, -0.5),
        xlim=(0.02, 60),
        xlabel="test error, % (open: clean, filled: certified)",
    )
    ax.set_xticks([0.05, 0.2, 0.5, 1, 2, 5, 10, 30], ["0.05", "0.2", "0.5", "1", "2", "5", "10", "30"])
    ax.minorticks_off()
    ax.grid(axis="x", alpha=0.25)
    ax.spines[["right", "top", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "robustness"}):
        figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--picture")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in (() if options.picture else SETS) if options.sets is None else options.sets:
        kept[name] = measured(name)
        print(name, json.dumps(kept[name]), flush=True)
        RESULTS.write_text(json.dumps({each: kept[each] for each in SETS if each in kept}, indent=1) + "\n")
    if options.picture:
        picture(kept, options.picture)


if __name__ == "__main__":
    main()
