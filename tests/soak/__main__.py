"""The command: ``python -m tests.soak --minutes 30``."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.soak.life import Training, small_disk
from tests.soak.stream import MACHINES


def main(arguments=None):
    """Train one machine after the other until the time is up, and list what has happened to them."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--batches", type=int, default=4000, help="length of each stream")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that each batch takes at least")
    parser.add_argument(
        "--lives", help="what is to happen, in this order, as in 'SIGKILL; full disk'; default: anything"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    options = parser.parse_args(arguments)
    print(f"Seed {options.seed}.", flush=True)
    chance, counts, n_trainings = random.Random(options.seed), Counter(), 0
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="polyplane-soak-") as folder, small_disk(Path(folder)) as disk:
        while not n_trainings or time.monotonic() < end:
            machine = n_trainings % len(MACHINES)
            training = Training(machine, disk, options.batches, chance, counts, options.pause)
            kinds = None if options.lives is None else options.lives.split("; ")
            n_lives = training.run(end, kinds)
            n_trainings += 1
            print(f"{MACHINES[machine][0]}: {n_lives} lives, {training.plan.total} batches, as its twin", flush=True)
    print("\n".join(f"{kind:24s}{n:6d}" for kind, n in sorted(counts.items())))
    print(f"{n_trainings} trainings, each with the model of its undisturbed twin.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
