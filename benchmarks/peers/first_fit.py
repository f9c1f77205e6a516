"""How long the first fit of each learner takes: a new process, nothing compiled before.

    python -m benchmarks.peers.first_fit
    python -m benchmarks.peers.first_fit --against OLD/src --repeats 3 --write

Each fit, of 300 made rows, has a process and an empty cache (NUMBA_CACHE_DIR) of its own. Of several repetitions the
smallest time counts: others may use the machine. "process" counts from the start of the process to the fitted model, so
that the imports of NumPy, SciPy and scikit-learn are in it, "fit" from the call of `fit`; "CPU" is the CPU time of that
fit, which is what it takes on a machine that nobody else uses; "again" is the fit of another new process that finds the
compiled kernels, and "compiled" tells how many of them that were. With ``--against``, the sources of another version
take turns with these. ``--write`` keeps the figures in results/first_fit.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.results import Results

import polyplane

HERE = Path(polyplane.__file__).parents[1]

#: What users fit: the default settings, and those that have kernels of their own.
FITS = {
    "AdaptiveMultiHyperplaneClassifier": "AdaptiveMultiHyperplaneClassifier()",
    "ConvexPolytopeClassifier": "ConvexPolytopeClassifier()",
    "ConvexPolytopeClassifier, each": "ConvexPolytopeClassifier(enclosed='each')",
    "CuttingPlaneSVC": "CuttingPlaneSVC()",
    "CuttingPlaneSVC, 3 classes": "CuttingPlaneSVC()",
    "CuttingPlaneSVC, exact": "CuttingPlaneSVC(line_search='exact')",
    "MultiHyperplaneClassifier": "MultiHyperplaneClassifier()",
    "MultiHyperplaneClassifier, hinge": "MultiHyperplaneClassifier(loss='hinge')",
    "PegasosSVC": "PegasosSVC()",
    "PolyceptronClassifier": "PolyceptronClassifier()",
    "PolyhedralMixtureClassifier": "PolyhedralMixtureClassifier()",
    "SuccessiveLPClassifier": "SuccessiveLPClassifier()",
    "WorstCasePolytopeClassifier": "WorstCasePolytopeClassifier()",
}
ROWS = {
    "dense float64": "X",
    "dense float32": "X.astype(np.float32)",
    "CSR float64": "sparse.csr_matrix(X)",
    "CSR float32": "sparse.csr_matrix(X, dtype=np.float32)",
}

CHILD = """
import json, time, warnings
import numpy as np
from scipy import sparse
from polyplane import {learner}
X = np.random.default_rng(0).normal(size=(300, 8))
y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
y, X = y + (X[:, 2] > 0.3) * {third}, {rows}
warnings.simplefilter("ignore")
began, cpu = time.perf_counter(), time.process_time()
{fit}.fit(X, y)
print(json.dumps([time.perf_counter() - began, time.process_time() - cpu]))
"""


def fit_once(name, rows, sources, cache):
    """Seconds from the start of a process, and from `fit`, to the fitted model, and CPU time of `fit`."""
    call = FITS[name]
    code = CHILD.format(learner=call.partition("(")[0], third=int("3 classes" in name), rows=ROWS[rows], fit=call)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(sources)}
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, *json.loads(done.stdout)


def first_fit(name, rows, sources):
    """The figures of one learner on one kind of rows."""
    with tempfile.TemporaryDirectory() as cache:
        process, fit, cpu = fit_once(name, rows, sources, cache)
        compiled = len(list(Path(cache).rglob("*.nbc")))
        again = fit_once(name, rows, sources, cache)[1] if compiled else fit
    return {"process": process, "fit": fit, "CPU": cpu, "again": again, "compiled": compiled}


def measure(name, rows, versions, repeats):
    """The smallest figures of each version, which take turns."""
    found = {version: [] for version in versions}
    for _ in range(repeats):
        for version, sources in versions.items():
            found[version].append(first_fit(name, rows, sources))
    return {
        version: {figure: round(min(run[figure] for run in runs), 2) for figure in runs[0]}
        for version, runs in found.items()
    }


def line(name, rows, figures):
    """A line of the table."""
    cells = [
        f"{of['process']:8.2f}{of['fit']:8.2f}{of['CPU']:8.2f}{of['again']:8.2f}{of['compiled']:6d}" for of in figures
    ]
    return f"{name:36}{rows:15}" + " |".join(cells)


def main():
    """Measure, print, and where asked for write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="folder of the sources of another version")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rows", choices=ROWS, action="append", help="kinds of rows; all when not given")
    parser.add_argument("--fit", choices=FITS, action="append", help="learners; all when not given")
    parser.add_argument("--write", action="store_true", help="keep the figures in results/first_fit.json")
    options = parser.parse_args()
    versions = {"before": options.against.resolve()} if options.against else {}
    versions["now"] = HERE
    results = Results(__file__, repeats=options.repeats, versions=list(versions))
    print("seconds to the first fit: of the process, of fit, CPU of fit, fit again; compiled  " + " | ".join(versions))
    for name in options.fit or FITS:
        for rows in options.rows or ROWS:
            if options.write:
                results.figures.pop(f"{name}, {rows}", None)  # times of different runs do not compare
                found = results.get(f"{name}, {rows}", lambda n=name, r=rows: measure(n, r, versions, options.repeats))
            else:
                found = measure(name, rows, versions, options.repeats)
            print(line(name, rows, [found[version] for version in versions]), flush=True)


if __name__ == "__main__":
    main()
