"""`polyplane.compress` at the sizes for which figures of ProtoNN and Bonsai are published, and over sizes.

Accuracy in percent on the test rows of each set's own split. 1 kB is 1,000 bytes, labels included: the tables as
constants in C. A `MultiHyperplaneClassifier` with its defaults is fitted to the training rows and compressed on them;
everything is chosen on held-out training rows, and the same settings are used for all sets. How the papers made
their sets of two classes, usps-2 and mnist-2, of ten digits could not be verified: both usual ways are measured, even
against odd digits, and 0 to 4 against 5 to 9.

Of the RBF-SVM (``SVC(C=10)``) the size counts its support vectors and dual coefficients, of the forest
(``RandomForestClassifier``) 8 bytes per node, in float32. ``--jobs 16`` measures in 16 processes; ``--picture FILE``
draws the curves. Needs POLYPLANE_DATA.
"""

import argparse
import re
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from benchmarks.data.splits import real
from benchmarks.harness.results import Results
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

import polyplane

SEEDS = range(3)
#: Published accuracies, the better one of ProtoNN and Bonsai: ICML 2017, by set and kB.
PUBLISHED = {
    ("letter-26", 63): 97.10,
    ("usps-10", 32): 94.37,
    ("usps-10", 64): 94.92,
    ("mnist-10", 63): 95.88,
    ("mnist-10", 84): 97.01,
    ("usps-2", 2): 94.42,
    ("usps-2", 16): 95.72,
    ("mnist-2", 2): 94.38,
    ("mnist-2", 16): 96.47,
}
#: How ten digits become two classes.
BINARY = {"even or odd": lambda y: y % 2, "0-4 or 5-9": lambda y: (y > 4).astype(int)}
#: The curves.
CURVES = ("letter-26", "usps-10", "mnist-10")
SIZES = (2, 8, 24)


def rows_of(task):
    """Training and test rows of a set, with integers as classes."""
    name, _, way = task.partition(", ")
    data = real(name.split("-")[0])
    classes = np.unique(data.y)
    y, y_test = (np.searchsorted(classes, labels) for labels in (data.y, data.y_test))
    return (data.X, BINARY[way](y), data.X_test, BINARY[way](y_test)) if way else (data.X, y, data.X_test, y_test)


def compressed(task, kilobytes, seed):
    """Accuracy and shape of a compressed model."""
    X, y, X_test, y_test = rows_of(task)
    model = polyplane.MultiHyperplaneClassifier(random_state=seed).fit(X, y)
    began = time.perf_counter()
    small = polyplane.compress(model, X, y, max_bytes=1000 * kilobytes, random_state=seed)
    seconds, fitted, trials = time.perf_counter() - began, small.model_, small.trials_
    last = [i for i, n_passes in enumerate(trials["passes"]) if n_passes == max(trials["passes"])]
    best = min(last, key=lambda i: trials["error"][i])
    return {
        "accuracy": 100 * small.score(X_test, y_test),
        "bytes": small.n_bytes_,
        "given": 100 * model.score(X_test, y_test),
        "given_bytes": 4 * (model.planes_.coef.size + model.planes_.n_planes),
        "features": fitted.features.n_features,
        "rank": fitted.projection.rank,
        "planes": fitted.planes.n_planes,
        "scaled": bool((fitted.features.factor != 1).any()),
        "noise": trials["noise"][best],
        "rate": trials["rate"][best],
        "held_out": 100 * (1 - trials["error"][best]),
        "fit": seconds,
    }


def support_vectors(task):
    """Accuracy and size of the RBF-SVM."""
    X, y, X_test, y_test = rows_of(task)
    machine = SVC(C=10, cache_size=2000).fit(X, y)
    n_bytes = 4 * (machine.support_vectors_.size + machine.dual_coef_.size)
    return {"accuracy": 100 * machine.score(X_test, y_test), "bytes": n_bytes}


def forest(task, n_trees):
    """Accuracy and size of a forest."""
    X, y, X_test, y_test = rows_of(task)
    machine = RandomForestClassifier(n_trees, random_state=0).fit(X, y)
    n_bytes = 8 * sum(tree.tree_.node_count for tree in machine.estimators_)
    return {"accuracy": 100 * machine.score(X_test, y_test), "bytes": n_bytes}


def tasks_of(name):
    """The ways in which a set is measured."""
    return [f"{name}, {way}" for way in BINARY] if name.endswith("-2") else [name]


def measures():
    """All figures by name, those that take longest first."""
    found = {f"SVC {task}": partial(support_vectors, task) for task in reversed(CURVES)}
    cells = [(task, size) for name, size in PUBLISHED for task in tasks_of(name)]
    for task, size in sorted(cells, key=lambda cell: ("mnist" not in cell[0], -cell[1])):
        found |= {f"{task} in {size} kB, seed {seed}": partial(compressed, task, size, seed) for seed in SEEDS}
    for size in reversed(SIZES):
        found |= {f"{task} in {size} kB, seed 0": partial(compressed, task, size, 0) for task in reversed(CURVES)}
    return found | {f"forest of {n} {task}": partial(forest, task, n) for task in CURVES for n in (1, 10, 100)}


def show(figures):
    """The table beside the published figures."""
    print(f"{'set':22} {'kB':>4} {'published':>9} {'ours':>6} {'each seed':>20} {'bytes':>6} {'given':>6}  first shape")
    for (name, size), published in PUBLISHED.items():
        for task in tasks_of(name):
            rows = [figures.get(f"{task} in {size} kB, seed {seed}") for seed in SEEDS]
            rows = [row for row in rows if row]
            if not rows:
                continue
            each = [row["accuracy"] for row in rows]
            first = rows[0]
            shape = f"{first['features']} features, rank {first['rank']}, {first['planes']} planes"
            line = f"{task:22} {size:4} {published:9.2f} {np.mean(each):6.2f} {' '.join(f'{a:6.2f}' for a in each):>20}"
            print(f"{line} {max(row['bytes'] for row in rows):6} {first['given']:6.2f}  {shape}")


def picture(figures, path):
    """Error against bytes: ours, the published ones, the RBF-SVM and forests."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(CURVES), figsize=(11, 3.6), layout="constrained")
    for ax, task in zip(axes, CURVES, strict=True):
        ours = [row for name, row in figures.items() if re.fullmatch(rf"{task} in \d+ kB, seed 0", name)]
        ours.sort(key=lambda row: row["bytes"])
        trees = [row for name, row in figures.items() if name.startswith("forest") and name.endswith(task)]
        trees.sort(key=lambda row: row["bytes"])
        vectors = [row for name, row in figures.items() if name == f"SVC {task}"]
        cells = [{"bytes": 1000 * size, "accuracy": best} for (name, size), best in PUBLISHED.items() if name == task]
        given = [{"bytes": row["given_bytes"], "accuracy": row["given"]} for row in ours[:1]]
        points = {
            "compress": (ours, "o-"),
            "ProtoNN, Bonsai (published)": (cells, "s"),
            "the given model, float32": (given, "x"),
            "random forest: 1, 10, 100 trees": (trees, "^:"),
            "RBF-SVM": (vectors, "D"),
        }
        for label, (rows, marker) in points.items():
            ax.plot([row["bytes"] for row in rows], [100 - row["accuracy"] for row in rows], marker, label=label)
        ax.set(xscale="log", yscale="log", title=task, xlabel="bytes of the tables", ylabel="test error, %")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.tick_params(axis="y", which="both", labelsize=8)
        ax.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="measure only figures with this in their names")
    parser.add_argument("--picture")
    options = parser.parse_args()
    results = Results(__file__, seeds=list(SEEDS))
    wanted = {n: m for n, m in measures().items() if options.only in n and n not in results.figures}
    with ProcessPoolExecutor(options.jobs) as pool:
        running = {name: pool.submit(measure) for name, measure in wanted.items()}
        for name, future in running.items():
            results.get(name, future.result)
    show(results.figures)
    if options.picture:
        picture(results.figures, options.picture)


if __name__ == "__main__":
    main()
