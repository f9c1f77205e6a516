"""Exported models: agreement with Python, bytes, and rows per second, beside m2cgen's forest and SVC.

All are trained on the same rows of adult. A `TableClassifier` takes the columns as they come, text and gaps included;
the learners, the forest and the SVC take the features that `TableEncoder` makes of them, standardised, as m2cgen has no
encoder: its times are without the encoding that ours have. Needs gcc, node, Chromium, playwright, duckdb and m2cgen.

"agreement": labels that differ from Python's in 10,000 test rows, and the largest difference of a class score, relative
to the largest score of the row (or 1). Weights of float32 are rounded by up to 2^-24 = 6e-8 of their size, so that a
score differs by up to 6e-8 of the sum of |weight * feature|: of that sum, too, the largest difference is given.

"speed": bytes of the object file (code and constants, `size`), of the source, and rows per second in one thread; those
of databases are from the query to the last row, planning included. C is compiled with -O2, and for "-O3" with that.

"int8": the accuracy of `TableClassifier` as C with weights of float32 and of one byte, over the rows of five folds of
ten of the 25 tables that its defaults were chosen on: those with the most rows, without pictures; and their means.
"""

import ctypes
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.data.tables import folds
from benchmarks.harness.results import Results
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import polyplane
from polyplane.exports import to_c, to_javascript, to_sql
from polyplane.learners import LEARNERS
from tests.models import make
from tests.programs import opened_chromium, rows_in_c, run_c, run_chromium, run_duckdb, run_node, run_sqlite


def in_chromium(model, X):
    """Predictions of a page in Chromium."""
    with opened_chromium() as browser:
        return run_chromium(browser, model, X)


N_TRAIN, N_TEST, REPEATS = 2000, 10_000, 3
N_SVC = 400
RUNS = {
    "c float64": lambda *given: run_c(*given, "float64"),
    "c float32": lambda *given: run_c(*given, "float32"),
    "c int8": lambda *given: run_c(*given, "int8"),
    "node": run_node,
    "chromium": lambda model, X, folder: in_chromium(model, X),
    "sqlite": lambda model, X, folder: run_sqlite(model, X),
    "duckdb": lambda model, X, folder: run_duckdb(model, X),
}
#: Tables on which weights of one byte are tried.
ONE_BYTE = (
    "a9a-4k",
    "adult-5k",
    "covtype-8k",
    "friedman",
    "hastie",
    "ijcnn1-8k",
    "letter-5k",
    "noisy",
    "poker-6k",
    "quantiles",
)
#: What calls a program for all rows.
LOOP = """
#include "model.c"
void run(const ROW *rows, int n, int d, int *labels)
{
    int i;
    for (i = 0; i < n; i++)
        labels[i] = CALL;
}
"""
PEERS = {
    RandomForestClassifier: "(score((double *)rows + (size_t)i * d, out), out[1] > out[0])",
    SVC: "score((double *)rows + (size_t)i * d) > 0.0",
}


class Data:
    """Rows of adult, as they come and as numbers."""

    def __init__(self):
        folder = Path(os.environ["POLYPLANE_DATA"])
        train = pd.read_csv(folder / "adult.train.csv.xz", nrows=N_TRAIN)
        test = pd.read_csv(folder / "adult.test.csv.xz", nrows=N_TEST)
        self.table, self.y = train.iloc[:, :-1], train.iloc[:, -1].to_numpy(dtype=object).astype(str)
        self.test_table, self.y_test = test.iloc[:, :-1], test.iloc[:, -1].to_numpy(dtype=object).astype(str)
        encoder = polyplane.TableEncoder().fit(self.table)
        scaler = StandardScaler().fit(encoder.transform(self.table))
        self.X, self.X_test = (
            # Numbers of float32: those are what a program of floats is given.
            scaler.transform(encoder.transform(table)).astype(np.float32).astype(np.float64)
            for table in (self.table, self.test_table)
        )


def learners(data):
    """What fits each learner, and a table, and the test rows of each."""
    for name in sorted(LEARNERS):
        yield name, lambda name=name: make(name, {"max_iter": 20, "n_planes": 4}).fit(data.X, data.y), data.X_test
    yield "TableClassifier", lambda: polyplane.TableClassifier(random_state=0).fit(data.table, data.y), data.test_table


def agreement(model, X, y, folder):
    if isinstance(model, polyplane.TableClassifier):
        scores = model.model_.class_scores(model.model_.encode(X))
    else:
        scores = np.asarray(model.planes_.class_scores(X), dtype=float)
    labels, size = model.predict(X), np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1.0)
    figures = {"rows": len(X), "accuracy": round(float(np.mean(labels == y)), 4)}
    for name, run in RUNS.items():
        outcome = run(model, X, folder)
        found = np.array(outcome.labels)
        figures[f"{name}: labels that differ"] = int(np.sum(found != labels))
        figures[f"{name}: largest difference of a score"] = float(
            f"{np.abs((outcome.scores - scores) / size).max():.2g}"
        )
        if name == "c int8":
            figures["c int8: accuracy"] = round(float(np.mean(found == y)), 4)
        if name == "c float32" and not isinstance(model, polyplane.TableClassifier):
            planes = getattr(model.planes_, "together", model.planes_)
            terms = (np.abs(X) @ np.abs(planes.coef).T + np.abs(planes.intercept)).max(axis=1, keepdims=True)
            share = np.abs((outcome.scores - scores) / terms).max()
            figures["c float32: largest difference, of the sum of |weight * feature|"] = float(f"{share:.2g}")
    return figures


def one_byte(table, folder):
    """Accuracy, in %, of C with weights of float32 and of one byte over all rows of a table."""
    right = {"float32": [], "int8": []}
    different = 0
    for split in folds(table):
        model = polyplane.TableClassifier(random_state=0).fit(split.X, split.y)
        labels = {dtype: np.array(run_c(model, split.X_test, folder, dtype).labels) for dtype in right}
        different += int(np.sum(labels["float32"] != labels["int8"]))
        for dtype, own in labels.items():
            right[dtype] += (own == split.y_test).tolist()
    figures = {f"{dtype}: accuracy": round(100 * float(np.mean(own)), 3) for dtype, own in right.items()}
    return {"rows": len(right["int8"]), **figures, "labels that differ": different}


def mean_loss(results):
    """The means over the tables."""
    found = [figures for name, figures in results.figures.items() if name.startswith("int8, table")]
    means = {
        f"{d}: accuracy": round(float(np.mean([each[f"{d}: accuracy"] for each in found])), 3)
        for d in ("float32", "int8")
    }
    lost = [each["float32: accuracy"] - each["int8: accuracy"] for each in found]
    return {"tables": len(found), **means, "points lost": round(float(np.mean(lost)), 3), "most": round(max(lost), 3)}


def best(function):
    """The least seconds of some calls, and the last result."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def c_speed(text, row_type, call, rows, n_features, folder, optimise="-O2"):
    """Bytes of the object file, and rows per second."""
    (folder / "model.c").write_text(text, encoding="utf-8")
    (folder / "loop.c").write_text(LOOP.replace("ROW", row_type).replace("CALL", call))
    subprocess.run(["gcc", "-std=c99", optimise, "-c", "model.c"], cwd=folder, check=True)
    sizes = subprocess.run(["size", "model.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
    library = folder / f"loop{time.monotonic_ns()}.so"
    subprocess.run(
        ["gcc", "-std=c99", optimise, "-shared", "-fPIC", "-o", library, "loop.c", "-lm"], cwd=folder, check=True
    )
    labels = (ctypes.c_int * N_TEST)()
    seconds, _ = best(lambda: ctypes.CDLL(str(library)).run(rows, N_TEST, n_features, labels))
    return {
        "bytes compiled": int(sizes.splitlines()[1].split()[3]),
        "bytes of source": len(text.encode()),
        "rows per second": round(N_TEST / seconds),
    }, np.array(labels)


NODE = """
import {readFileSync} from "node:fs";
CODE
const rows = JSON.parse(readFileSync("rows.json", "utf8"));
let least = Infinity;
for (let turn = 0; turn < REPEATS; turn++) {
  const began = performance.now();
  for (const row of rows) CALL;
  least = Math.min(least, performance.now() - began);
}
console.log(rows.length / least * 1000);
"""


def js_speed(text, call, rows, folder):
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    code = NODE.replace("REPEATS", str(REPEATS)).replace("CODE", text).replace("CALL", call)
    (folder / "speed.mjs").write_text(code, encoding="utf-8")
    command = ["node", "--stack-size=8000", "speed.mjs"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return {"bytes of source": len(text.encode()), "rows per second": round(float(done.stdout))}


def own_speed(model, X, dtype, folder, optimise="-O2"):
    text = to_c(model, dtype)
    real = ctypes.c_float if dtype != "float64" else ctypes.c_double
    has_probabilities = "*probabilities" in text
    call = (
        f"model_predict(rows + i{'' if isinstance(X, pd.DataFrame) else ' * d'}, 0{', 0' if has_probabilities else ''})"
    )
    if isinstance(X, pd.DataFrame):
        fields = re.findall(r"^    (double |const char \*)(\w+); ", text, flags=re.MULTILINE)
        each = [row._obj for row in rows_in_c(X, fields, real)]
        rows, row_type = (type(each[0]) * len(each))(*each), "struct model_row"
    else:
        rows = np.ascontiguousarray(X, dtype=np.float32 if real is ctypes.c_float else np.float64)
        rows, row_type = rows.ctypes.data_as(ctypes.c_void_p), "float" if real is ctypes.c_float else "double"
    return c_speed(
        text, row_type, f"(void)d, {call}".replace("(void)d, ", "d < 0 ? d : "), rows, X.shape[1], folder, optimise
    )


def own_speeds(model, X, y, folder):
    """C in all types, node and databases."""
    figures = {"accuracy": round(float(np.mean(model.predict(X) == y)), 4)}
    for dtype in ("float64", "float32", "int8"):
        found, winners = own_speed(model, X, dtype, folder)
        figures |= {f"c {dtype}: {name}": value for name, value in found.items()}
        figures[f"c {dtype}: accuracy"] = round(float(np.mean(model.classes_[winners] == y)), 4)
        figures[f"c {dtype}, -O3: rows per second"] = own_speed(model, X, dtype, folder, "-O3")[0]["rows per second"]
    is_table = isinstance(X, pd.DataFrame)
    rows = json.loads(X.to_json(orient="records")) if is_table else X.tolist()
    text = to_javascript(model, "float32").replace("export {", "const unused = {")
    figures |= {f"node: {name}": value for name, value in js_speed(text, "predict(row)", rows, folder).items()}
    for name, run in (("sqlite", run_sqlite), ("duckdb", run_duckdb)):
        seconds, _ = best(lambda run=run: run(model, X))
        figures[f"{name}: bytes of source"] = len(to_sql(model, dialect=name).encode())
        figures[f"{name}: rows per second"] = round(N_TEST / seconds)
    return figures


def peer_speeds(model, n_rows, data, folder):
    import m2cgen

    sys.setrecursionlimit(100_000)
    model.fit(data.X[:n_rows], data.y[:n_rows])
    figures = {"accuracy": round(model.score(data.X_test, data.y_test), 4)}
    text = "#include <stddef.h>\n#include <math.h>\n" + m2cgen.export_to_c(model)
    text = text.replace("void score(", "static double out[2];\nvoid score(", 1)
    # Megabytes of nested conditions: -O2 would take minutes.
    rows = np.ascontiguousarray(data.X_test)
    pointer = rows.ctypes.data_as(ctypes.c_void_p)
    found, winners = c_speed(text, "double", PEERS[type(model)], pointer, rows.shape[1], folder, "-O1")
    figures |= {f"c float64: {name}": value for name, value in found.items()}
    figures["c float64: labels that differ"] = int(np.sum(model.classes_[winners] != model.predict(data.X_test)))
    if isinstance(model, SVC):  # in JavaScript it did not end within two minutes
        return figures
    found = js_speed(m2cgen.export_to_javascript(model), "score(row)", data.X_test.tolist(), folder)
    return figures | {f"node: {name}": value for name, value in found.items()}


if __name__ == "__main__":
    results = Results(__file__, n_train=N_TRAIN, n_test=N_TEST, repeats=REPEATS, sqlite=sqlite3.sqlite_version)
    data = Data()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for learner, fit, X in learners(data):
            results.get(f"agreement, {learner}", lambda fit=fit, X=X: agreement(fit(), X, data.y_test, folder))
            if learner in ("TableClassifier", "MultiHyperplaneClassifier"):
                results.get(f"speed, {learner}", lambda fit=fit, X=X: own_speeds(fit(), X, data.y_test, folder))
        # Ten trees are megabytes of C already, which compilers take long for; and m2cgen takes long for an SVC.
        peers = {
            "forest of 10 trees": (RandomForestClassifier(10, random_state=0), N_TRAIN),
            f"SVC of {N_SVC} rows": (SVC(), N_SVC),
        }
        for peer, given in peers.items():
            results.get(f"speed, m2cgen's {peer}", lambda given=given: peer_speeds(*given, data, folder))
        for table in ONE_BYTE:
            results.get(f"int8, table {table}", lambda table=table: one_byte(table, folder))
        results.get("int8, mean", lambda: mean_loss(results))
    for name, figures in results.figures.items():
        print(f"\n{name}")
        for figure, value in figures.items():
            print(f"  {figure:44} {value:>14}")
