"""Does skipping cost accuracy? The same machines with and without back-off, over families of made rows and tables.

    POLYPLANE_DATA=... python -m benchmarks.peers.backoff

Families have noisy labels, weights, rare classes, duplicates, few rows, outliers and so on; a seed draws other rows, or
another split of a table. The differences in points of test error are printed from the worst on: their mean and standard
error over the seeds, the share of updates that was missed according to `history_`, and the ratio of the times.
"""

import sys
import time
import warnings
from functools import partial

import numpy as np
from benchmarks.data.splits import Split
from benchmarks.data.tables import TABLES, splits
from benchmarks.harness.results import Results
from scipy import sparse
from sklearn.datasets import make_classification, make_hastie_10_2

from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier, PegasosSVC

SEEDS, SPLITS = 20, 5
LONGEST = 31
N_TRAIN, N_TEST = 1500, 3000
MACHINES = {
    "Pegasos": lambda: PegasosSVC(1e-4),
    "CPM": lambda: ConvexPolytopeClassifier(16, enclosed="each", alpha=1e-4),
    "CPM, joint": lambda: ConvexPolytopeClassifier(16, alpha=1e-4),
    "hinge, 8 planes": lambda: MultiHyperplaneClassifier(8, loss="hinge"),
    "log-loss, 32 planes": lambda: MultiHyperplaneClassifier(32),
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
#: The default machine, which chooses its number of planes, on more rows.
DEFAULT, DEFAULT_ROWS = "defaults, 4x4 board, 15,000 rows, 40 % random", 15_000


def drawn(seed, rows, change=None, weight=None, n_train=N_TRAIN):
    """The split of a seed, and the weights of its training rows."""
    rng = np.random.default_rng(seed)
    X, y = rows(rng=rng, n=n_train + N_TEST)
    split = Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])
    if change is not None:
        split = change(rng, split)
    return split, None if weight is None else weight(rng, len(split.y))


def figures(make, drawings):
    """Errors, times and missed shares with and without back-off, by seed."""
    found = {"with": [], "without": [], "missed": [], "seconds_with": 0.0, "seconds_without": 0.0}
    for seed, (split, weight) in enumerate(drawings):
        for name, longest in (("with", LONGEST), ("without", 0)):
            machine = make().set_params(backoff=longest, random_state=seed)
            began = time.process_time()
            machine.fit(split.X, split.y, sample_weight=weight)
            found[f"seconds_{name}"] += time.process_time() - began
            found[name].append(round(100 * float(np.mean(machine.predict(split.X_test) != split.y_test)), 3))
            if longest:
                found["missed"].append(round(float(np.mean(machine.history_["missed"])), 5))
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in found.items()}


def cells(names):
    """What is measured, by name."""
    for machine, make in MACHINES.items():
        for family, parts in FAMILIES.items():
            yield f"{machine}: {family}", make, (drawn(seed, *parts) for seed in range(SEEDS))
        for table in TABLES if "tables" in names else ():
            yield f"{machine}: {table}", make, ((split, None) for split in splits(table, SPLITS))
    rows = FAMILIES["4x4 board, 40 % random"]
    yield DEFAULT, MultiHyperplaneClassifier, (drawn(s, *rows, n_train=DEFAULT_ROWS) for s in range(SEEDS))


def summary(results):
    """The sets of each machine by difference, and how many are worse than two standard errors and 0.2 points."""
    machines = [*MACHINES, "defaults"]
    for machine in machines:
        rows = []
        for name, found in results.items():
            if name.startswith((machine + ":", machine + ", ")) and name.split(":")[0] in (*MACHINES, DEFAULT):
                if machine in MACHINES and name.split(":")[0] != machine:
                    continue
                change = np.array(found["with"]) - found["without"]
                error = change.std(ddof=1) / len(change) ** 0.5
                times = found["seconds_with"] / found["seconds_without"]
                rows.append((change.mean(), error, np.mean(found["missed"]), times, np.mean(found["without"]), name))
        worse = sum(mean > max(2 * error, 0.2) for mean, error, *_ in rows)
        print(
            f"\n{machine}: {len(rows)} sets, mean difference {np.mean([row[0] for row in rows]):+.3f} points, "
            f"{worse} worse by two standard errors and 0.2 points"
        )
        for mean, error, missed, times, without, name in sorted(rows, reverse=True):
            print(
                f"  {mean:+6.2f} +- {error:4.2f} of {without:5.2f} %  missed {missed:.4f}  time x {times:4.2f}  {name}"
            )


def main(names):
    """Measure what is not measured yet and print the summary."""
    warnings.simplefilter("ignore")
    results = Results(__file__, seeds=SEEDS, splits=SPLITS, backoff=LONGEST, rows=N_TRAIN, n_planes=[16, 8, 32])
    for name, make, drawings in cells(names):
        results.get(name, lambda make=make, drawings=drawings: figures(make, drawings))
    summary(results.figures)


if __name__ == "__main__":
    main(sys.argv[1:])
