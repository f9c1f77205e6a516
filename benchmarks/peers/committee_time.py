"""Wall-clock time of a committee of five beside that of one machine, on tables.

Run ``python -m benchmarks.peers.committee_time``. Two threads for the committee, one for the machine; the number of
planes is chosen once in both. The minimum of three fits to the training rows of the first fold. Needs POLYPLANE_DATA;
set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

import time

import numpy as np
from benchmarks.results import Results
from benchmarks.tables import encoded, folds
from sklearn.preprocessing import FunctionTransformer

from polyplane import CommitteeClassifier, MultiHyperplaneClassifier

TABLES = ("letter-5k", "usps-3k", "digits", "adult-5k", "friedman")
REPEATS, N_JOBS = 3, 2


def seconds(machine, X, y):
    """The shortest of some fits."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        machine.fit(X, y)
        times.append(time.perf_counter() - began)
    return min(times)


def measure(name):
    """Seconds of one machine and of five, and their errors on the test rows of the fold."""
    fold, encoder = next(iter(folds(name))), encoded(FunctionTransformer())
    X, X_test = (
        np.asarray(part, dtype=np.float32) for part in (encoder.fit_transform(fold.X), encoder.transform(fold.X_test))
    )
    one, five = MultiHyperplaneClassifier(random_state=0), CommitteeClassifier(random_state=0, n_jobs=N_JOBS)
    alone, together = (seconds(machine, X, fold.y) for machine in (one, five))
    errors = [100 * float(np.mean(machine.predict(X_test) != fold.y_test)) for machine in (one, five)]
    return {
        "one": round(alone, 3), "five": round(together, 3), "ratio": round(together / alone, 2),
        "members": five.planes_.n_members, "errors": [round(error, 2) for error in errors],
    }  # fmt: skip


if __name__ == "__main__":
    results = Results(__file__, tables=TABLES, n_jobs=N_JOBS, repeats=REPEATS)
    MultiHyperplaneClassifier(12, max_iter=2).fit(
        np.random.default_rng(0).normal(size=(300, 4)).astype("f"), np.arange(300) % 2
    )
    for name in TABLES:
        print(name, results.get(name, lambda name=name: measure(name)), flush=True)
