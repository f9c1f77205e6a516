"""Twenty-five public tables, most of them small, over which defaults are chosen: by means, never by a single table.

`folds` gives tables as they come, with text and gaps; `encoded` puts in front of a machine what it needs to train on
them: imputation, one-hot codes and standardisation. Tables that lie in files need POLYPLANE_DATA.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.data import Split
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits, make_classification, make_gaussian_quantiles, make_hastie_10_2, make_moons
from sklearn.impute import SimpleImputer
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

Table = tuple[pd.DataFrame, np.ndarray]


def _csv(name: str, n_rows: int | None = None) -> Table:
    frame = pd.read_csv(Path(os.environ["POLYPLANE_DATA"]) / f"{name}.csv.xz", nrows=n_rows)
    return frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).to_numpy()


def _npz(name: str, n_rows: int | None = None) -> Table:
    """A set of the local folder, or a random part of its training rows."""
    with np.load(Path(os.environ["POLYPLANE_DATA"]) / f"{name}.npz") as file:
        parts = {
            key.removesuffix("_train").replace("_train_", "_"): file[key] for key in file.files if "test" not in key
        }
    if "X" not in parts:
        csr = (parts["X_data"], parts["X_indices"], parts["X_indptr"])
        parts["X"] = sparse.csr_matrix(csr, shape=tuple(parts["X_shape"])).toarray()
    rows = np.random.default_rng(0).permutation(len(parts["y"]))[:n_rows]
    return _made((parts["X"][rows].astype(float), parts["y"][rows]))


def _made(rows: tuple[np.ndarray, np.ndarray]) -> Table:
    return pd.DataFrame(rows[0]).rename(columns=str), np.asarray(rows[1]).astype(str)


def _friedman() -> Table:
    """Friedman's first function in three classes, over columns with long tails."""
    rng = np.random.default_rng(0)
    X = rng.random((4000, 10))
    smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    values = smooth + rng.normal(size=4000)
    return _made((np.exp(2 * X), np.digitize(values, np.quantile(values, [0.33, 0.66]))))


def _noisy() -> Table:
    noise = {"n_informative": 8, "flip_y": 0.1, "n_clusters_per_class": 3}
    return _made(make_classification(3000, 30, **noise, random_state=0))


_CSV = ("bands", "breast", "hayes-roth", "housevotes", "monk-2", "tae", "wdbc")
_PARTS = {"letter": 5, "usps": 3, "ijcnn1": 8, "covtype": 8, "a9a": 4, "mnist": 3, "poker": 6}  # thousands of rows
#: The tables by name.
TABLES: dict[str, Callable[[], Table]] = {
    **{name: partial(_csv, f"tables/{name}") for name in _CSV},
    **{f"{name}-{n}k": partial(_npz, name, 1000 * n) for name, n in _PARTS.items()},
    **{name: partial(_npz, name) for name in ("heart", "ilpd", "ionosphere", "pima")},
    "adult-5k": partial(_csv, "adult.train", 5000),
    "digits": lambda: _made(load_digits(return_X_y=True)),
    "moons": lambda: _made(make_moons(2000, noise=0.25, random_state=0)),
    "quantiles": lambda: _made(make_gaussian_quantiles(n_samples=3000, n_features=8, n_classes=3, random_state=0)),
    "hastie": lambda: _made(make_hastie_10_2(4000, random_state=0)),
    "noisy": _noisy,
    "friedman": _friedman,
}


def folds(name: str, n_folds: int = 5) -> Iterator[Split]:
    """The rows of each fold, as they come."""
    return _parts(name, StratifiedKFold(n_folds, shuffle=True, random_state=1))


def splits(name: str, n_splits: int = 5, test_size: float = 0.3) -> Iterator[Split]:
    """The rows of random splits, encoded."""
    for split in _parts(name, ShuffleSplit(n_splits, test_size=test_size, random_state=1)):
        encoder = encoded(FunctionTransformer())
        yield split._replace(X=encoder.fit_transform(split.X), X_test=encoder.transform(split.X_test))


def _parts(name: str, splitter: Any) -> Iterator[Split]:
    X, y = TABLES[name]()
    for train, test in splitter.split(X, y):
        yield Split(X.iloc[train], y[train], X.iloc[test], y[test])


def encoded(machine: Any) -> Pipeline:
    """The machine behind what a table needs: gaps filled, text one-hot encoded, numbers standardised."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), levels)
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (texts, make_column_selector(dtype_exclude=np.number)),
    )
    return make_pipeline(columns, machine)
