"""Does skipping cost accuracy? The same machines with and without back-off, over families of made rows.

    python -m benchmarks.peers.backoff [--jobs 2]

Families have noisy labels, weights, rare classes, duplicates, few rows, outliers and so on; a seed draws other rows.
The differences in points of test error are printed from the worst on: their mean and standard error over the seeds, the
share of updates that was missed according to `history_` (with the log-loss, of the gradient), and the ratio of the
times. Of so many sets a few are worse by chance: those worse by two standard errors and 0.2 points are measured again
with three times as many other seeds, and these are the result.
"""

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from benchmarks.data.splits import Split
from benchmarks.harness.results import Results
from scipy import sparse
from sklearn.datasets import make_classification, make_hastie_10_2

from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier, PegasosSVC

SEEDS = 20
#: Other seeds for sets that are worse with the first ones.
MORE_SEEDS = range(100, 160)
LONGEST = 31
N_TRAIN, N_TEST = 1500, 3000
MACHINES = {
    "Pegasos": lambda: PegasosSVC(1e-4),
    "CPM": lambda: ConvexPolytopeClassifier(16, enclosed="each", alpha=1e-4),
    "CPM, joint": lambda: ConvexPolytopeClassifier(16, alpha=1e-4),
    "hinge, 8 planes": lambda: MultiHyperplaneClassifier(8, loss="hinge"),
    "log-loss, 32 planes": lambda: MultiHyperplaneClassifier(32),
    "defaults": MultiHyperplaneClassifier,
}


def board(cells, rng, n):
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.floor((X + 1) / 2 * cells).sum(axis=1).astype(int) % 2


def linear(rng, n, n_features=30):
    X = rng.normal(size=(n, n_features))
    return X, (X @ rng.normal(size=n_features) > 0).astype(int)


def clusters(rng, n, n_classes=2, **settings):
    settings = {"n_informative": 10, "n_redundant": 0, "class_sep": 1.0, "flip_y": 0.0} | settings
    seed = int(rng.integers(2**31))
    return make_classification(n, 20, n_classes=n_classes, random_state=seed, **settings)


def corners(rng, n):
    X = rng.uniform(-1, 1, (n, 2))
    return X, (((X > 0.5).all(axis=1)) ^ ((X < -0.6).all(axis=1))).astype(int)


def words(rng, n):
    X = sparse.random_array((n, 500), density=0.03, rng=rng, format="csr")
    return X, (X @ rng.normal(size=500) > 0).astype(int)


def hastie(rng, n):
    X, y = make_hastie_10_2(n, random_state=int(rng.integers(2**31)))
    return X, (y > 0).astype(int)


def flipped(share, rng, split):
    hit = rng.random(len(split.y)) < share
    return split._replace(y=np.where(hit, 1 - split.y, split.y))


def at_random(share, rng, split):
    hit = rng.random(len(split.y)) < share
    return split._replace(y=np.where(hit, rng.integers(0, 2, len(hit)), split.y))


def repeated(rng, split):
    rows = rng.integers(0, len(split.y) // 10, len(split.y))
    return split._replace(X=split.X[rows], y=split.y[rows])


def ordered(rng, split):
    rows = np.lexsort((split.X[:, 0], split.y))
    return split._replace(X=split.X[rows], y=split.y[rows])


def with_outliers(rng, split):
    far = rng.random(len(split.y)) < 0.01
    return split._replace(X=split.X * np.where(far, 50.0, 1.0)[:, None])


def rare(rng, split):
    kept = (split.y == 0) | (rng.random(len(split.y)) < 0.04)
    return split._replace(X=split.X[kept], y=split.y[kept])


#: The made rows, a change of the training rows, their weights, and their number.
HEAVY = lambda rng, n: np.where(rng.random(n) < 0.01, 200.0, 1.0)  # noqa: E731
UNEVEN = lambda rng, n: rng.lognormal(0, 2, n)  # noqa: E731
FAMILIES = {
    "3x3 board": (partial(board, 3), None),
    "3x3 board, 10 % flipped": (partial(board, 3), partial(flipped, 0.1)),
    "3x3 board, 20 % flipped": (partial(board, 3), partial(flipped, 0.2)),
    "3x3 board, 40 % flipped": (partial(board, 3), partial(flipped, 0.4)),
    "4x4 board, 40 % random": (partial(board, 4), partial(at_random, 0.4)),
    "4x4 board, 10 % random": (partial(board, 4), partial(at_random, 0.1)),
    "separable, 30 features": (linear, None),
    "separable, 30 features, 20 % flipped": (linear, partial(flipped, 0.2)),
    "clusters": (clusters, None),
    "clusters, far apart": (partial(clusters, class_sep=2.0), None),
    "clusters, 30 % flipped": (clusters, partial(flipped, 0.3)),
    "clusters, ten classes": (partial(clusters, n_classes=10, n_clusters_per_class=1), None),
    "clusters, 1 % of weight 200": (clusters, None, HEAVY),
    "clusters, 5 % flipped, 1 % of weight 200": (clusters, partial(flipped, 0.05), HEAVY),
    "clusters, uneven weights": (clusters, None, UNEVEN),
    "two corners": (corners, None),
    "two corners, 10 % flipped": (corners, partial(flipped, 0.1)),
    "rare class": (clusters, rare),
    "rare class, 1 % of weight 200": (clusters, rare, HEAVY),
    "repeated rows": (clusters, repeated),
    "ordered rows": (clusters, ordered),
    "30 rows": (clusters, None, None, 30),
    "100 rows, 10 % flipped": (clusters, partial(flipped, 0.1), None, 100),
    "outliers": (clusters, with_outliers),
    "sparse rows": (words, None),
    "sparse rows, 20 % flipped": (words, partial(flipped, 0.2)),
    "ten Gaussians squared": (hastie, None),
}
#: A family for the default machine only, which chooses its number of planes.
LARGE = {"4x4 board, 40 % random, 15,000 rows": (*FAMILIES["4x4 board, 40 % random"], None, 15_000)}


def drawn(seed, rows, change=None, weight=None, n_train=N_TRAIN):
    """The split of a seed, and the weights of its training rows."""
    rng = np.random.default_rng(seed)
    X, y = rows(rng=rng, n=n_train + N_TEST)
    split = Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])
    if change is not None:
        split = change(rng, split)
    return split, None if weight is None else weight(rng, len(split.y))


def figures(name, seeds):
    """Errors, times and missed shares with and without back-off, by seed."""
    warnings.simplefilter("ignore")
    machine_name, family = name.split(": ")
    found = {"with": [], "without": [], "missed": [], "seconds_with": 0.0, "seconds_without": 0.0}
    for seed in seeds:
        split, weight = drawn(seed, *(FAMILIES | LARGE)[family])
        for which, longest in (("with", LONGEST), ("without", 0)):
            machine = MACHINES[machine_name]().set_params(backoff=longest, random_state=seed)
            began = time.process_time()
            machine.fit(split.X, split.y, sample_weight=weight)
            found[f"seconds_{which}"] += time.process_time() - began
            found[which].append(round(100 * float(np.mean(machine.predict(split.X_test) != split.y_test)), 3))
            if longest:
                found["missed"].append(round(float(np.mean(machine.history_["missed"])), 5))
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in found.items()}


def difference(found):
    """The mean difference in points and its standard error, and whether that is worse."""
    change = np.array(found["with"]) - found["without"]
    mean, error = float(change.mean()), float(change.std(ddof=1) / len(change) ** 0.5)
    return mean, error, mean > max(2 * error, 0.2)


def summary(results):
    """The sets of each machine by difference, and how many are worse than two standard errors and 0.2 points."""
    for machine in MACHINES:
        rows = []
        for name, first in results.items():
            if name.startswith(f"{machine}: "):
                found = first.get("again", first)
                times = found["seconds_with"] / found["seconds_without"]
                rows.append((*difference(found), np.mean(found["missed"]), times, np.mean(found["without"]), name))
        if not rows:
            continue
        print(
            f"\n{machine}: {len(rows)} sets, mean difference {np.mean([row[0] for row in rows]):+.3f} points, "
            f"{sum(row[2] for row in rows)} worse by two standard errors and 0.2 points"
        )
        for mean, error, _, missed, times, without, name in sorted(rows, reverse=True):
            print(
                f"  {mean:+6.2f} +- {error:4.2f} of {without:5.2f} %  missed {missed:.4f}  time x {times:4.2f}  {name}"
                + (", other seeds" if "again" in results[name] else "")
            )


def main():
    """Measure what is not measured yet and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="sets at a time")
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="TEXT", help="measure only sets with these in their names"
    )
    given = parser.parse_args()
    results = Results(__file__, seeds=SEEDS, backoff=LONGEST, rows=N_TRAIN, n_planes=[16, 8, 32])
    names = [f"{machine}: {family}" for machine in MACHINES for family in FAMILIES]
    names = [*(f"defaults: {family}" for family in LARGE), *names]
    names = [name for name in names if any(text in name for text in given.only)]
    with ProcessPoolExecutor(given.jobs) as pool:
        first = {name: pool.submit(figures, name, range(SEEDS)) for name in names if name not in results.figures}
        for name, found in first.items():
            results.get(name, found.result)
        worse = [n for n in names if difference(results.figures[n])[2] and "again" not in results.figures[n]]
        again = {name: pool.submit(figures, name, MORE_SEEDS) for name in worse}
        for name, found in again.items():
            results.figures[name]["again"] = found.result()
            results.write()
    summary(results.figures)


if __name__ == "__main__":
    main()
