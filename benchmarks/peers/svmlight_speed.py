"""How fast svmlight files are read: `polyplane.readers.read` against scikit-learn's `load_svmlight_file`.

Three files are made in a temporary folder: binary features as in a9a, 75 values of 16 digits as in rcv1, dense rows.
Both readers take them in turns, in one thread; what counts is the ratio of the medians.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.data.rows_as_text import A9A, DENSE, RCV1, write_rows
from benchmarks.harness.results import Results
from sklearn.datasets import load_svmlight_file

from polyplane.readers import batches, read

FILES = {"a9a-like": (A9A, 200_000), "rcv1-like": (RCV1, 20_000), "dense": (DENSE, 20_000)}
REPEATS = 5


def timed(function):
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def compare(shape, n_rows):
    """Seconds of each reader on one file, and whether they agree."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.svm")
        write_rows(path, shape, n_rows)
        size = Path(path).stat().st_size / 1e6
        readers = {
            "load_svmlight_file": lambda: load_svmlight_file(path),
            "read": lambda: read(path),
            "batches": lambda: sum(part.X.nnz for part in batches(path)),
        }
        rows = read(path)  # compiles
        theirs, labels = load_svmlight_file(path)
        assert (theirs != rows.X).nnz == 0
        assert (rows.y == labels).all()
        seconds = {name: [] for name in readers}
        for _ in range(REPEATS):
            for name, reader in readers.items():
                seconds[name].append(timed(reader)[1])
    median = {name: float(np.median(times)) for name, times in seconds.items()}
    figures = {f"MB_per_second_{name}": round(size / value, 1) for name, value in median.items()}
    ratios = [theirs / ours for theirs, ours in zip(seconds["load_svmlight_file"], seconds["read"], strict=True)]
    return {
        "MB": round(size, 1),
        **figures,
        "times_faster": round(median["load_svmlight_file"] / median["read"], 2),
        "times_faster_least": round(min(ratios), 2),
    }


if __name__ == "__main__":
    # Times of different runs do not compare: measure anew each time.
    results = Results(__file__, repeats=REPEATS)
    results.content["figures"].clear()
    for name, (shape, n_rows) in FILES.items():
        print(f"\n{name}:")
        for figure, value in results.get(name, lambda shape=shape, n_rows=n_rows: compare(shape, n_rows)).items():
            print(f"  {figure:36} {value:10.2f}")
