"""The data of the experiments, prepared as in the paper, and how one run is measured."""

import time
import tomllib
import warnings
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from polyplane import CuttingPlaneSVC
from polyplane.datasets import load_dataset

SEARCHES = {"OCA-E": "exact", "OCA-T": "three-point"}
EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
#: Colours that the colour-blind tell apart (Okabe and Ito).
COLOURS = {"paper": "#D55E00", "OCA-E": "#E69F00", "OCA-T": "#0072B2", "at random": "#009E73"}
TITLES = {"covtype": "COVTYPE", "mnist": "MNIST", "rcv1": "RCV1 (stand-in)", "news20": "NEWS20"}


def covtype(n_rows=464_810, scaled=True):
    """Seven classes, features scaled to [0, 1], a random fifth for testing; the paper's test rows are not known."""
    data = load_dataset("covtype")
    low, high = (data.data.min(axis=0), data.data.max(axis=0)) if scaled else (0, 1)
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = order[:n_rows], order[464_810:]
    X, X_test = (((data.data[rows] - low) / (high - low)).astype(np.float32) for rows in (train, test))
    return X, data.target[train], X_test, data.target[test]


def covtype_of_the_file():
    """All 581,012 rows with features as the file has them, as the paper says, and the last 115,826 to test on."""
    data = load_dataset("covtype")
    X = data.data.astype(np.float32)
    return X, data.target, X[-115_826:], data.target[-115_826:]


def mnist(n_rows=60_000):
    data = load_dataset("mnist")
    X, X_test = (sparse.csr_matrix(x.reshape(len(x), -1) / np.float32(255)) for x in (data.data, data.data_test))
    return X[:n_rows], data.target[:n_rows], X_test, data.target_test


def rcv1():
    """Two classes and unit rows: a stand-in for the 53 classes of the paper."""
    data = load_dataset("rcv1_subsets")
    return data.data.astype(np.float32), data.target, data.data_test.astype(np.float32), data.target_test


def news20():
    data = load_dataset("news20")
    X, X_test = (normalize(x.astype(np.float32)) for x in (data.data, data.data_test))
    return X, data.target, X_test, data.target_test


def poker():
    """Ranks and suits as they are; of the test file, its head."""
    data = load_dataset("poker")
    return data.data.astype(np.float32), data.target, data.data_test.astype(np.float32), data.target_test


def compiled():
    """Compile for all kinds of rows, so that no run pays for it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    for search in SEARCHES:
        for matrix in (X, sparse.csr_matrix(X)):
            for n_classes in (2, 3):
                run(matrix, np.arange(60) % n_classes, matrix, np.arange(60) % n_classes, search, tol=0.5)


@contextmanager
def processor_time():
    """Let the clocks of the machines in training count the time of this process alone, not that of others beside it."""
    with mock.patch("time.perf_counter", time.process_time):
        yield


def trained(X, y, search, **params):
    machine = CuttingPlaneSVC(line_search=SEARCHES.get(search, search), **params)
    with warnings.catch_warnings(), processor_time():
        warnings.simplefilter("ignore")
        return machine.fit(X, y)


def run(X, y, X_test, y_test, search, **params):
    """Train; return time, its parts, iterations and test error."""
    machine = trained(X, y, search, **params)
    return figures(machine) | {"rows": len(y), "error": round(100 * (1 - machine.score(X_test, y_test)), 3)}


def figures(machine):
    history = machine.history_
    parts = {f"{part}_s": round(sum(history[part]), 4) for part in ("outputs", "line_search", "cut", "qp")}
    return parts | {
        "time_s": round(history["time"][-1], 4),
        "clock": "processor",
        "iterations": machine.n_iter_,
        "gap": machine.gap_,
        "primal": history["primal"][-1],
        # Iterations that left the best objective as it was: for the exact search, those that ended at mu = 0.
        "stood_still": int(np.sum(np.diff(history["primal"]) >= 0)),
    }
