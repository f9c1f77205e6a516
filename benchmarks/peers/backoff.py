"""Does skipping rows cost accuracy? The same machines with and without back-off, over tables and three large sets.

    POLYPLANE_DATA=... python -m benchmarks.peers.backoff

Test errors after 1, 5, 20 and 100 passes, with and without averaging; each seed draws its own split of a table.
"""

from dataclasses import replace

import numpy as np
from benchmarks.data import one_class, pixels, rcv1, real_sparse
from benchmarks.results import Results
from benchmarks.tables import TABLES, splits

from polyplane import ConvexPolytopeClassifier, PegasosSVC

PASSES = (1, 5, 20, 100)
SEEDS = 5
LONGEST = 31
MACHINES = {
    "CPM": lambda backoff, seed: ConvexPolytopeClassifier(16, alpha=1e-4, backoff=backoff, random_state=seed),
    "Pegasos": lambda backoff, seed: PegasosSVC(alpha=1e-4, backoff=backoff, random_state=seed),
}
LARGE = {
    "MNIST-2": lambda: one_class(pixels(), 2),
    "RCV1": rcv1,
    "NEWS20": lambda: real_sparse("news20"),
}


def errors(machine, split):
    """Test errors in %: one row for each number of passes, averaged and last planes."""
    machine.set_params(warm_start=True)
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
    pairs = [[errors(make(b, seed), split) for b in (LONGEST, 0)] for seed, split in enumerate(chosen)]
    found = np.round(np.array(pairs), 3)
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
        print(f"{machine}: mean difference {np.mean([mean for mean, *_ in rows.values()]):+.3f} points")
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
