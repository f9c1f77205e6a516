"""What the experiments of the two papers on polyhedra share: data, nested cross-validation, results on disk."""

from __future__ import annotations

import argparse
import json
import platform
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import polyplane
from polyplane.datasets import load_local, make_polyceptron_1, make_polyceptron_2

#: Columns of Adult that hold codes of categories.
ADULT_CATEGORICAL = [1, 3, 5, 6, 7, 8, 9, 13]


def load(name: str) -> tuple[Any, np.ndarray]:
    """A set by name: those of the papers, Adult one-hot in CSR, Breast Cancer without its incomplete rows."""
    if name == "dataset_1":
        return make_polyceptron_1(random_state=0)
    if name == "dataset_2":
        return make_polyceptron_2(random_state=0)
    bunch = load_local(name)
    X, y = bunch.data.astype(np.float64), bunch.target
    if name == "breast_cancer_wisconsin":
        complete = np.isfinite(X).all(axis=1)
        return X[complete], y[complete]
    if name == "adult":
        numeric = [j for j in range(X.shape[1]) if j not in ADULT_CATEGORICAL]
        codes = OneHotEncoder().fit_transform(X[:, ADULT_CATEGORICAL])
        return sparse.csr_matrix(sparse.hstack([X[:, numeric], codes])), y
    return X, y


def prepared(X: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
    """The training and the test rows; dense ones imputed and standardised by what the training rows say."""
    if sparse.issparse(X):
        return X[train], X[test]
    steps = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(X[train])
    return steps.transform(X[train]), steps.transform(X[test])


def nested_cv(
    make: Callable[..., Any],
    grid: list[dict[str, Any]],
    X: Any,
    y: np.ndarray,
    repeats: int,
    inner_folds: int,
    inner_rows: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Repeated 10-fold cross-validation; within each training part an inner one chooses from the grid.

    The parameters are chosen one after the other, in the order of the grid, each by the mean inner accuracy over all
    settings that agree with what is chosen already. On a few hundred rows the single best of many settings is mostly
    the luckiest; means over settings are less noisy.
    """
    accuracy, seconds, chosen = [], [], Counter()
    outer = RepeatedStratifiedKFold(n_splits=10, n_repeats=repeats, random_state=seed)
    for train, test in outer.split(np.zeros(len(y)), y):
        best = _choose(make, grid, X, y, _part(train, y, inner_rows, seed), inner_folds, seed)
        X_train, X_test = prepared(X, train, test)
        began = time.perf_counter()
        model = _fit(make(**best), X_train, y[train])
        seconds.append(time.perf_counter() - began)
        accuracy.append(100 * float(np.mean(model.predict(X_test) == y[test])))
        chosen[json.dumps(best, default=str)] += 1
    by_repeat = np.mean(np.reshape(accuracy, (repeats, 10)), axis=1)
    return {
        "accuracy": round(float(by_repeat.mean()), 2),
        "std_over_repeats": round(float(by_repeat.std(ddof=1)), 2) if repeats > 1 else None,
        "accuracy_by_repeat": [round(float(a), 2) for a in by_repeat],
        "median_fit_seconds": round(float(np.median(seconds)), 4),
        "chosen": dict(chosen.most_common(5)),
        "protocol": {
            "outer": f"{repeats} x 10-fold, stratified, seed {seed}",
            "inner": f"{inner_folds}-fold, stratified" + (f", on {inner_rows} of the rows" if inner_rows else ""),
            "choice": "each parameter in turn, by the mean over the settings left",
            "grid": {name: sorted({setting[name] for setting in grid}, key=str) for name in grid[0]},
        },
    }


def _part(train, y, n_rows, seed):
    """A stratified part of the training rows, where fewer are enough to choose by."""
    if n_rows is None or n_rows >= len(train):
        return train
    return train_test_split(train, train_size=n_rows, stratify=y[train], random_state=seed)[0]


def _choose(make, grid, X, y, train, inner_folds, seed):
    """The setting that the inner cross-validation likes best, parameter by parameter; of equals the first."""
    if len(grid) == 1:
        return grid[0]
    folds = list(StratifiedKFold(inner_folds, shuffle=True, random_state=seed).split(train, y[train]))
    right = np.zeros(len(grid))
    for fit, check in folds:
        X_fit, X_check = prepared(X, train[fit], train[check])
        for i, setting in enumerate(grid):
            model = _fit(make(**setting), X_fit, y[train[fit]])
            right[i] += np.sum(model.predict(X_check) == y[train[check]])
    left = np.ones(len(grid), dtype=bool)
    for name in grid[0]:
        values = list(dict.fromkeys(setting[name] for setting in grid))
        has = np.array([[setting[name] == value for setting in grid] for value in values]) & left
        left = has[int(np.argmax([right[agree].mean() for agree in has]))]
    return grid[int(left.argmax())]


def _fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def unfinished(folder: Path, jobs: dict[str, Callable[[], dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the jobs whose result is not in the folder yet, write each when done, and yield the results of all."""
    folder.mkdir(exist_ok=True)
    for name, job in jobs.items():
        path = folder / f"{name}.json"
        if not path.exists():
            began = time.perf_counter()
            result = {**job(), "seconds": round(time.perf_counter() - began, 1), "versions": versions()}
            path.write_text(json.dumps(result, indent=1, default=str) + "\n")
        yield name, json.loads(path.read_text())


def show_table(script: str, sets: list[str], methods: list[str], cell: Callable[[str, str, int], dict]) -> None:
    """Fill the table of a paper, cell by cell, and print it beside the paper's figures (``expected.toml``).

    ``--sets``, ``--methods`` and ``--repeats`` ask for a part of it.
    """
    here = Path(script).parent
    parser = argparse.ArgumentParser(description=f"Fill the table of {here.name}.")
    parser.add_argument("--sets", nargs="+", default=sets)
    parser.add_argument("--methods", nargs="+", default=methods)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    paper = tomllib.loads((here / "expected.toml").read_text())
    jobs = {
        f"{name}_{method}": partial(cell, name, method, given.repeats)
        for method in given.methods
        for name in given.sets
    }
    for job, result in unfinished(here / "results", jobs):
        mean, deviation = paper[result["set"]][result["method"]]
        print(
            f"{job:32} {result['accuracy']:6.2f} +- {result['std_over_repeats'] or 0:.2f}   "
            f"paper {mean:.2f} +- {deviation:.2f}   fit {1e3 * result['median_fit_seconds']:.1f} ms",
            flush=True,
        )


def versions() -> dict[str, str]:
    """What the figures were made with."""
    modules = {module.__name__: module.__version__ for module in (polyplane, np, scipy, sklearn, numba)}
    return {"python": platform.python_version(), **modules}
