"""Training from a file larger than memory: `polyplane train --stream` in a process that may have 1 GB, against memory.

A file of sparse rows is made in a temporary folder. One process streams it with its data limited (RLIMIT_DATA: heap and
private memory; the code of the libraries does not count), another reads all of it. Both train a linear SVM for the same
number of passes and are tested on the same rows, which neither saw.

With alpha=1e-5 three passes are few, and the stream, which averages its planes batch by batch instead of pass by pass,
is ahead; with alpha=1e-4 both have settled. Results of both are kept.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.data.rows_as_text import Shape, write_rows
from benchmarks.harness.results import Results

SHAPE = Shape(n_features=20_000, n_values=40, digits=4)
PASSES = 3
TEST_ROWS = 50_000
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run(arguments, limit=None):
    """The report of `polyplane train`, with its peak memory in MB and its time."""

    def confine():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    began = time.perf_counter()
    command = [sys.executable, "-m", "polyplane", "train", *map(str, arguments), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD, preexec_fn=confine, text=True
    ) as process:
        text = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"polyplane train ended with {process.returncode}.")
    return json.loads(text) | {"peak_MB": used.ru_maxrss / 1024, "wall": time.perf_counter() - began}


def compare(size, limit, alpha, folder):
    path, test = folder / "rows.svm", folder / "test.svm"
    began = time.perf_counter()
    n_rows = write_rows(path, SHAPE, n_bytes=size * 1e9)
    write_rows(test, SHAPE, TEST_ROWS, seed=1)
    figures = {"GB": round(path.stat().st_size / 1e9, 3), "rows": n_rows}
    figures["seconds_making"] = round(time.perf_counter() - began, 1)
    common = [path, "--learner", "pegasos", "--test", test, "--set", f"alpha={alpha}", "--out", folder / "model"]
    # The kernels are compiled before anything is limited: the compiler needs memory of its own.
    run([test, "--learner", "pegasos", "--out", folder / "model", "--stream"])
    for name, options, most in (
        ("stream", ["--stream", "--passes", PASSES], limit),
        ("memory", ["--set", f"max_iter={PASSES}"], None),
    ):
        report = run([*common, *options], most)
        figures |= {
            f"{name}_error_percent": round(report["test_error_percent"], 3),
            f"{name}_peak_MB": round(report["peak_MB"]),
            f"{name}_seconds": round(report["wall"], 1),
        }
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=3.0, help="GB of text")
    parser.add_argument("--limit", type=float, default=1.0, help="GB of data that the stream's process may have")
    parser.add_argument("--alpha", type=float, default=1e-4, help="strength of the regularisation")
    parser.add_argument("--folder", default=None, help="where to make the temporary folder")
    options = parser.parse_args()
    # Times of different runs do not compare: measure anew each time.
    results = Results(__file__, passes=PASSES, limit=options.limit)
    key, limit = f"{options.size:g} GB, alpha {options.alpha:g}", int(options.limit * 2**30)
    results.content["figures"].pop(key, None)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        found = results.get(key, lambda: compare(options.size, limit, options.alpha, Path(name)))
    for figure, value in found.items():
        print(f"  {figure:30} {value:12.3f}")
