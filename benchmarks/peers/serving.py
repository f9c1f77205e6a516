"""Import and first prediction from a saved model in a fresh process: `polyplane.serving` beside `load` and onnxruntime.

    python -m benchmarks.peers.serving

The model is a `TableClassifier` of adult; the row is that of a request, a dict of columns, or what onnxruntime takes
in its place. Each way has processes of its own, which take turns; of the repetitions the smallest time counts, as
others may use the machine. "process" is from the start of Python to its end, "wall" and "CPU" are from the first import
to the first prediction, "next" is the time of one more prediction of one row, "memory" is the most that the process
held.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.harness.results import Results

import polyplane
from polyplane import serving
from polyplane.exports.onnx import to_onnx

N_TRAIN, N_TEST, REPEATS = 2000, 10_000, 9
SOURCES = Path(polyplane.__file__).parents[1]

CHILD = """
import json, re, sys, time
wall, cpu = time.perf_counter(), time.process_time()
folder, row = sys.argv[1], json.loads(sys.argv[2])
{first}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
again = []
for _ in range(200):
    began = time.perf_counter()
    {again}
    again.append(time.perf_counter() - began)
heavy = sorted({{name.partition(".")[0] for name in sys.modules}} & {{
    "numba", "scipy", "sklearn", "joblib", "pandas", "onnxruntime"}})
with open("/proc/self/status") as status:  # the peak that getrusage tells is that of the parent where this was larger
    peak = int(re.search(r"VmHWM:\\s*(\\d+)", status.read())[1]) / 1024
print(json.dumps([wall, cpu, again, peak, found.tolist(), heavy]))
"""
#: The first prediction, and one more.
WAYS = {
    "NumPy alone, no prediction": ("import numpy; found = numpy.zeros((1, 2))", "pass"),
    "polyplane.serving": (
        "from polyplane import serving; model = serving.load(f'{folder}/model.safetensors'); "
        "found = model.predict_proba([row])",
        "model.predict_proba([row])",
    ),
    "polyplane.load": (
        "import polyplane; model = polyplane.load(f'{folder}/model.safetensors'); found = model.predict_proba([row])",
        "model.predict_proba([row])",
    ),
    "polyplane.load, a frame of pandas": (
        "import pandas, polyplane; model = polyplane.load(f'{folder}/model.safetensors'); "
        "found = model.predict_proba(pandas.DataFrame([row]))",
        "model.predict_proba(pandas.DataFrame([row]))",
    ),
    "onnxruntime": (
        "import numpy, onnxruntime; model = onnxruntime.InferenceSession(f'{folder}/model.onnx'); "
        "inputs = lambda: {name: numpy.array([[value]], dtype=object if isinstance(value, str) else float) "
        "for name, value in row.items()}; found = model.run(['probabilities'], inputs())[0]",
        "model.run(['probabilities'], inputs())",
    ),
}


def first_prediction(ways, folder, row, expected):
    """The figures of each way."""
    best = {}
    # Installed packages are compiled to bytecode; so are these sources, at the first repetition.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    environment = os.environ | {"PYTHONPATH": str(SOURCES)} | compiled
    for _ in range(REPEATS):
        for name, (first, again) in ways.items():
            code = CHILD.format(first=first, again=again)
            began = time.perf_counter()
            command = [sys.executable, "-c", code, str(folder), json.dumps(row)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            process = time.perf_counter() - began
            wall, cpu, later, memory, found, heavy = json.loads(done.stdout)
            process -= sum(later)
            assert again == "pass" or np.allclose(found, expected, atol=1e-6), name
            figures = {"process": process, "wall": wall, "CPU": cpu, "next, ms": 1e3 * min(later), "memory, MB": memory}
            best[name] = np.minimum(best.get(name, np.inf), list(figures.values()))
            if name == "polyplane.serving":
                assert not heavy
    return {name: {k: round(float(v), 3) for k, v in zip(figures, best[name], strict=True)} for name in ways}


def needed(names):
    """Packages, and those that they need in turn."""
    found, waiting = set(), list(names)
    while waiting:
        name = re.match(r"[\w.-]+", waiting.pop())[0].lower()
        if name in found:
            continue
        try:
            wanted = distribution(name).requires or []
        except PackageNotFoundError:  # on other systems, or for other versions of Python
            continue
        found.add(name)
        waiting += [requirement for requirement in wanted if "extra ==" not in requirement]
    return found


def installed(names):
    """Megabytes of installed packages, with all that they need."""
    names = needed(names)
    files = [distribution(name).locate_file(file) for name in names for file in distribution(name).files or ()]
    return round(sum(file.stat().st_size for file in files if file.exists()) / 1e6, 1)


def agreement(model, path, table):
    predictor = serving.load(path)
    return {
        "rows": len(table),
        "labels that differ": int(np.sum(predictor.predict(table) != model.predict(table))),
        "largest difference of a probability": float(
            np.abs(predictor.predict_proba(table.to_dict("records")) - model.predict_proba(table)).max()
        ),
    }


def measure():
    folder = Path(os.environ["POLYPLANE_DATA"])
    train = pd.read_csv(folder / "adult.train.csv.xz", nrows=N_TRAIN)
    test = pd.read_csv(folder / "adult.test.csv.xz", nrows=N_TEST).iloc[:, :-1]
    model = polyplane.TableClassifier(random_state=0).fit(train.iloc[:, :-1], train.iloc[:, -1].astype(str))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.safetensors"
        polyplane.save(model, path)
        (Path(name) / "model.onnx").write_bytes(to_onnx(model).SerializeToString())
        kept = [column.name for column in model.model_.inputs.columns]
        row = json.loads(test[kept].iloc[:1].to_json(orient="records"))[0]
        figures = first_prediction(WAYS, name, row, model.predict_proba(test[:1]))
        figures["agreement"] = agreement(model, path, test)
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = {"polyplane.serving": ["numpy"], "polyplane": project["dependencies"], "onnxruntime": ["onnxruntime"]}
    figures["installed beside Polyplane, MB"] = {name: installed(wanted) for name, wanted in packages.items()}
    return figures


if __name__ == "__main__":
    results = Results(__file__, n_train=N_TRAIN, n_test=N_TEST, repeats=REPEATS)
    for name, figures in results.get("adult", measure).items():
        print(name, figures)
