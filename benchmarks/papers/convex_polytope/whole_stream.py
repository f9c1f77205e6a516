"""MNIST8m-2 in full: all 8.1 million rows of the stand-in for MNIST8m, each visited once, by the paper's loop."""

import time

from benchmarks.data.infinite_digits import InfiniteDigits
from benchmarks.papers.convex_polytope.protocol import PAPERS_LOOP, summary
from benchmarks.scale.infinite_digits import Twos, pixels

from polyplane import ConvexPolytopeClassifier
from polyplane.datasets import load_mnist

ROWS = 8_100_000


def one_pass(n_planes, alpha_visits, min_entropy, n_rows=ROWS, seed=0):
    """Test error of the last planes after one pass over the stream; images are made on the way."""
    data = load_mnist()
    stream = Twos(InfiniteDigits(data.data, data.target), n_rows)
    machine = ConvexPolytopeClassifier(
        n_planes,
        enclosed="each",
        alpha=alpha_visits / n_rows,
        min_entropy=min_entropy,
        backoff=PAPERS_LOOP,
        average=False,
        random_state=seed,
    )
    began = time.process_time()
    machine.fit_stream(stream.batches, classes=[False, True], progressive=False)
    error = 100 * (1 - machine.score(pixels(data.data_test), data.target_test == 2))
    seconds = time.process_time() - began
    told = {"rows": n_rows, "run_seconds": round(seconds, 2), "seconds_images": round(stream.seconds, 2)}
    return summary([error]) | told
