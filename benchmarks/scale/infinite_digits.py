"""The convex polytope machine on 8.1 million deformed digits, "2" against the rest, as a stream that is seen once.

The paper has 0.30 % and 4 minutes on MNIST8M itself. `--choose` compares settings on a stream of the first 50,000
training images, tested on the last 10,000; test rows are looked at once, with the settings in SETTINGS.

Run from the repository root: ``python -m benchmarks.scale.infinite_digits [--rows N] [--choose]``. Needs MNIST.
"""

import argparse
import time

import numpy as np
from benchmarks.data.infinite_digits import InfiniteDigits
from benchmarks.harness.results import Results
from benchmarks.scale.measuring import peak_memory

from polyplane import ConvexPolytopeClassifier
from polyplane.datasets import load_mnist

#: alpha times the number of rows, and min_entropy.
SETTINGS = (30, 0.9)
GRID = [(visits, entropy) for visits in (10, 30, 100) for entropy in (0.8, 0.9)]
BATCH = 5000


class Twos:
    """The stream, with the time that making it takes."""

    def __init__(self, digits, n_rows):
        self.digits, self.n_rows = digits, n_rows
        self.seconds = 0.0

    def batches(self, start=0):
        """Batches from a row on."""
        began = time.perf_counter()
        for X, y in self.digits.batches(BATCH, start, self.n_rows):
            self.seconds += time.perf_counter() - began
            yield X, y == 2
            began = time.perf_counter()


def pixels(images):
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def trained(stream, settings, seed=0, **options):
    """A machine that has seen the whole stream once."""
    visits, min_entropy = settings
    machine = ConvexPolytopeClassifier(
        48,
        enclosed="each",
        alpha=visits / stream.n_rows,
        min_entropy=min_entropy,
        random_state=seed,
        n_jobs=-1,
        verbose=1,
    )
    return machine.fit_stream(stream.batches, classes=[False, True], progressive=False, **options)


def error(machine, X, y):
    return round(100 * (1 - machine.score(X, y)), 4)


def measure(n_rows, seed):
    """Error on MNIST's test rows, memory, and the time of the parts."""
    data = load_mnist()
    stream = Twos(InfiniteDigits(data.data, data.target, n_jobs=-1), n_rows)
    X, y = pixels(data.data_test), data.target_test == 2
    began, before = time.perf_counter(), peak_memory()
    machine = trained(stream, SETTINGS, seed, validation=(X, y), validate_every=max(1, n_rows // BATCH // 20))
    seconds = time.perf_counter() - began
    return {
        "error": error(machine, X, y),
        "memory_mb": peak_memory(),
        "memory_before_mb": before,
        "seconds_images": round(stream.seconds, 2),
        "seconds_training": round(seconds - stream.seconds, 2),
        "rows": machine.history_["validation_rows"],
        "error_at_rows": [round(100 * value, 4) for value in machine.history_["validation_error"]],
    }


def choose(n_rows, settings):
    """Error on held-out training images."""
    data = load_mnist()
    stream = Twos(InfiniteDigits(data.data[:50_000], data.target[:50_000], n_jobs=-1), n_rows)
    return {"error": error(trained(stream, settings), pixels(data.data[50_000:]), data.target[50_000:] == 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=8_100_000)
    parser.add_argument("--choose", action="store_true", help="compare settings on held-out training images")
    arguments = parser.parse_args()
    results = Results(__file__, batch=BATCH, n_planes=48)
    if arguments.choose:
        for visits, entropy in GRID:
            name = f"{arguments.rows} rows, held out, alpha {visits} / rows, min_entropy {entropy}"
            print(f"{name}: {results.get(name, lambda s=(visits, entropy): choose(arguments.rows, s))['error']} %")
    else:
        figures = results.get(f"{arguments.rows} rows", lambda: measure(arguments.rows, seed=0))
        print(f"test error {figures['error']} %   peak memory {figures['memory_mb']:.0f} MB")
        print(f"images {figures['seconds_images']} s   training {figures['seconds_training']} s")
