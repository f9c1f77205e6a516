"""`polyplane predict` on a million sparse rows, against a script with a pickled SGDClassifier.

Both are processes of their own, from the start of the interpreter to the last label written, on one thread. The script
reads the file with `load_svmlight_file`, predicts, and writes one label per line: what a user would write.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.data.rows_as_text import Shape, write_rows
from benchmarks.harness.results import Results
from sklearn.linear_model import SGDClassifier

import polyplane
from polyplane.readers import read

SHAPE = Shape(n_features=10_000, n_values=25, digits=4)
REPEATS = 3
PEER = """
import pickle, sys
from sklearn.datasets import load_svmlight_file
model_path, data, out = sys.argv[1:]
with open(model_path, "rb") as file:
    model = pickle.load(file)
X, _ = load_svmlight_file(data, n_features=model.n_features_in_)
with open(out, "w") as file:
    file.write("".join(f"{label}\\n" for label in model.predict(X).tolist()))
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def seconds_of(command):
    began = time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def models(folder):
    """The peer's model and ours, of one plane and of many, all trained on the same rows."""
    write_rows(folder / "train.svm", SHAPE, 20_000, seed=1)
    rows = read(folder / "train.svm", n_features=SHAPE.n_features)
    with open(folder / "sgd.pickle", "wb") as file:
        pickle.dump(SGDClassifier(random_state=0).fit(rows.X, rows.y), file)
    one = polyplane.PegasosSVC(random_state=0, max_iter=10).fit(rows.X, rows.y)
    many = polyplane.ConvexPolytopeClassifier(16, random_state=0, max_iter=10).fit(rows.X, rows.y)
    polyplane.save(one, folder / "one.safetensors", metadata={"zero_based": False})
    polyplane.save(many, folder / "many.safetensors", metadata={"zero_based": False})


def compare(n_rows):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models(folder)
        data = folder / "rows.svm"
        write_rows(data, SHAPE, n_rows)
        predict = [sys.executable, "-m", "polyplane", "predict"]
        commands = {
            "SGDClassifier": [sys.executable, "-c", PEER, str(folder / "sgd.pickle"), str(data), str(folder / "sgd")],
            "polyplane_1_plane": [*predict, str(folder / "one.safetensors"), str(data), "-o", str(folder / "one")],
            "polyplane_32_planes": [*predict, str(folder / "many.safetensors"), str(data), "-o", str(folder / "many")],
        }
        seconds = {name: [] for name in commands}
        for _ in range(REPEATS):
            for name, command in commands.items():
                seconds[name].append(seconds_of(command))
        counts = {name: len((folder / name).read_text().split()) for name in ("sgd", "one", "many")}
        assert set(counts.values()) == {n_rows}
        size = data.stat().st_size / 1e6
    median = {name: float(np.median(times)) for name, times in seconds.items()}
    return {
        "MB": round(size, 1),
        **{f"seconds_{name}": round(value, 2) for name, value in median.items()},
        "times_faster_1_plane": round(median["SGDClassifier"] / median["polyplane_1_plane"], 2),
        "times_faster_32_planes": round(median["SGDClassifier"] / median["polyplane_32_planes"], 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    # Times of different runs do not compare: measure anew each time.
    results = Results(__file__, rows=rows, repeats=REPEATS)
    results.content["figures"].clear()
    for figure, value in results.get(f"{rows} rows", lambda: compare(rows)).items():
        print(f"  {figure:36} {value:10.2f}")
