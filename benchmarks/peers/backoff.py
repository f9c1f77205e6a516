"""Does skipping rows cost accuracy? The same machines with and without back-off, over tables and three large sets.

    POLYPLANE_DATA=... python -m benchmarks.peers.backoff

Test errors after 1, 5, 20 and 100 passes, with and without averaging; each seed draws its own split of a table. The
differences in points are printed from the worst set on: their mean and standard error over the seeds, then the mean
after each number of passes, averaged planes and last ones.
"""

from dataclasses import replace

import numpy as np
from benchmarks.data.splits import one_class, pixels, rcv1, real_sparse
from benchmarks.data.tables import TABLES, splits
from benchmarks.harness.results import Results

from polyplane import ConvexPolytopeClassifier, PegasosSVC

PASSES = (1, 5, 20, 100)
SEEDS = 5
LONGEST = 31
#: NEWS20 has 62,061 features and 20 classes: with 4 planes, a quarter of the time.
MACHINES = {
    "Pegasos": lambda name: PegasosSVC(1e-4),
    "CPM": lambda name: ConvexPolytopeClassifier(4 if name == "NEWS20" else 16, enclosed="each", alpha=1e-4),
    "CPM, joint": lambda name: ConvexPolytopeClassifier(4 if name == "NEWS20" else 16, alpha=1e-4),
}
LARGE = {
    "MNIST-2": lambda: one_class(pixels(), 2),
    "RCV1": rcv1,
    "NEWS20": lambda: real_sparse("news20"),
}


def errors(machine, split):
    """Test errors in %: one row for each number of passes, averaged and last planes."""
    made, found = 0, []
    for passes in PASSES:
        machine.set_params(max_iter=passes - made).fit(split.X, split.y)
        made = passes
        last = machine._trained_by.planes(replace(machine._state, prefers_last=True))
        guesses = machine.predict(split.X_test), machine.classes_[last.predict(split.X_test)]
        found.append([100 * float(np.mean(guess != split.y_test)) for guess in guesses])
    return found


def compare(name, make):
    """Errors with and without back-off: shape (seeds, passes, averaged or last)."""
    chosen = splits(name, SEEDS) if name in TABLES else [LARGE[name]()] * SEEDS
    found = []
    for seed, split in enumerate(chosen):
        settings = {"warm_start": True, "random_state": seed}
        found.append([errors(make(name).set_params(backoff=b, **settings), split) for b in (LONGEST, 0)])
    found = np.round(np.array(found), 3)
    return {"with": found[:, 0].tolist(), "without": found[:, 1].tolist()}


def summary(figures):
    """By machine: the mean difference over all sets, and the sets by difference in standard errors."""
    for machine in MACHINES:
        rows = {}
        for name in [*TABLES, *LARGE]:
            both = figures[f"{machine}, {name}"]
            difference = np.array(both["with"]) - both["without"]
            by_seed = difference.mean(axis=(1, 2))
            rows[name] = by_seed.mean(), by_seed.std(ddof=1) / SEEDS**0.5, difference.mean(axis=0)
        worse, better = (sum(sign * mean > 2 * error > 0 for mean, error, _ in rows.values()) for sign in (1, -1))
        print(
            f"{machine}: mean difference {np.mean([mean for mean, *_ in rows.values()]):+.3f} points; beyond two "
            f"standard errors {worse} sets are worse and {better} better"
        )
        for name, (mean, error, cells) in sorted(rows.items(), key=lambda item: -item[1][0]):
            print(f"  {name:14} {mean:+.3f} +- {error:.3f}   " + "  ".join(f"{a:+.2f} {b:+.2f}" for a, b in cells))


def main():
    """Measure what is not measured yet and print the summary."""
    settings = {"passes": PASSES, "seeds": SEEDS, "backoff": LONGEST, "n_planes": 16, "alpha": 1e-4}
    results = Results(__file__, **settings)
    for machine, make in MACHINES.items():
        for name in [*TABLES, *LARGE]:
            results.get(f"{machine}, {name}", lambda name=name, make=make: compare(name, make))
    summary(results.figures)


if __name__ == "__main__":
    main()
