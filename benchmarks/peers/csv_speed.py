"""How fast CSV files are read: `polyplane.readers.read` against Arrow's reader, `pyarrow.csv`.

Three large files are made in a temporary folder: numbers of 6 digits, numbers of 17 digits as pandas writes them, and
pixels; and a small one, whose reader is timed in a fresh process, where Polyplane is imported already. Arrow is told
the types of the columns, and its table is made the matrix that a learner needs. All take the files in turns; the best
time of each counts.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.harness.results import Results
from pyarrow import csv

from polyplane.readers import read

REPEATS = 7
FILES = {"6 digits": (100_000, 100), "17 digits": (50_000, 100), "pixels": (20_000, 784)}
SMALL = 150, 4
FRESH = """
import sys, time, polyplane.readers, polyplane.base
began = time.perf_counter()
{}
print(time.perf_counter() - began)
"""
SMALL_READERS = {
    "read": "polyplane.readers.read(sys.argv[1])",
    "arrow": "import pyarrow.csv; pyarrow.csv.read_csv(sys.argv[1])",
}


def write_table(path, name, n_rows, n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    if name == "pixels":
        X = np.where(rng.random(X.shape) < 0.2, rng.integers(0, 256, X.shape), 0)
    digits = "{:.6g}" if name == "6 digits" else "{!r}"
    with open(path, "w") as file:
        file.write(",".join(f"x{j}" for j in range(n_features)) + ",label\n")
        for row, label in zip(X.tolist(), rng.integers(0, 3, n_rows), strict=True):
            file.write(",".join(map(digits.format, row)) + f",class {label}\n")


def read_by_arrow(path, use_threads):
    with open(path) as file:
        names = file.readline().strip().split(",")
    types = dict.fromkeys(names[:-1], pa.float64()) | {"label": pa.string()}
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=use_threads),
        convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
    )
    X = np.empty((table.num_rows, len(names) - 1))
    for j in range(X.shape[1]):
        X[:, j] = table.column(j).to_numpy()
    assert np.isfinite(X).all()
    return X, np.array(table.column("label").to_pylist())


def timed(function):
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def best_of_all(readers):
    seconds = {name: [] for name in readers}
    for _ in range(REPEATS):
        for name, reader in readers.items():
            seconds[name].append(reader())
    return {name: min(times) for name, times in seconds.items()}


def compare(name, n_rows, n_features):
    """MB per second of each reader on one file; both must agree."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.csv")
        write_table(path, name, n_rows, n_features)
        size = Path(path).stat().st_size / 1e6
        rows, (X, y) = read(path), read_by_arrow(path, False)
        assert (rows.X == X).all()
        assert (rows.y == y).all()
        del rows, X
        found = best_of_all(
            {
                "read": lambda: timed(lambda: read(path)),
                "arrow_1_thread": lambda: timed(lambda: read_by_arrow(path, False)),
                "arrow_all_threads": lambda: timed(lambda: read_by_arrow(path, True)),
            }
        )
    figures = {f"MB_per_second_{reader}": round(size / value, 1) for reader, value in found.items()}
    return {"MB": round(size, 1), **figures, "times_faster": round(found["arrow_1_thread"] / found["read"], 2)}


def compare_small():
    """Seconds from the call to the rows of a small file in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.csv")
        write_table(path, "6 digits", *SMALL)

        def fresh(code):
            command = [sys.executable, "-c", FRESH.format(code), path]
            return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        found = best_of_all({name: lambda code=code: fresh(code) for name, code in SMALL_READERS.items()})
    return {f"seconds_{name}": round(value, 4) for name, value in found.items()}


if __name__ == "__main__":
    # Times of different runs do not compare: measure anew each time.
    results = Results(__file__, repeats=REPEATS)
    results.content["figures"].clear()
    for name, shape in FILES.items():
        print(f"\n{name}:")
        for figure, value in results.get(name, lambda name=name, shape=shape: compare(name, *shape)).items():
            print(f"  {figure:36} {value:10.2f}")
    print("\nsmall:")
    for figure, value in results.get("small", compare_small).items():
        print(f"  {figure:36} {value:10.4f}")
