"""What the selection of members costs in a fit of `TableClassifier`: seconds of the processor, and part of the fit.

    python -m benchmarks.peers.race_cost                    # ten tables, a fold of each
    python -m benchmarks.peers.race_cost tae covtype-8k

Needs POLYPLANE_DATA for tables that lie in files; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

import argparse
import time
import warnings

import numpy as np
from benchmarks.data.tables import OTHER_TABLES, TABLES, folds

from polyplane import TableClassifier
from polyplane.tables import classifier

NAMES = ("tae", "hayes-roth", "heart", "pima", "wdbc", "moons", "hastie", "adult-5k", "poker-6k", "covtype-8k")


def measure(name):
    """Seconds of the selection and of the whole fit, and the error on the fold."""
    split, seconds, select = next(iter(folds(name))), [], classifier.select

    def timed(*args):
        began = time.process_time()
        team = select(*args)
        seconds.append(time.process_time() - began)
        return team

    classifier.select = timed
    try:
        began = time.process_time()
        model = TableClassifier(random_state=0).fit(split.X, split.y)
        whole = time.process_time() - began
    finally:
        classifier.select = select
    return seconds[0], whole, 100 * (1 - model.score(split.X_test, split.y_test))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=NAMES, help=", ".join(TABLES | OTHER_TABLES))
    warnings.simplefilter("ignore")
    TableClassifier(max_iter=1, random_state=0).fit(np.eye(40, 3), np.arange(40) % 2)  # compiles the kernels
    print(f"{'table':<20}{'selection, s':>14}{'fit, s':>10}{'share':>8}{'error, %':>10}")
    shares = []
    for name in parser.parse_args().tables:
        race, whole, error = measure(name)
        shares.append(race / whole)
        print(f"{name:<20}{race:>14.2f}{whole:>10.2f}{shares[-1]:>8.2f}{error:>10.2f}", flush=True)
    print(f"mean share {np.mean(shares):.2f}, largest {max(shares):.2f}")


if __name__ == "__main__":
    main()
