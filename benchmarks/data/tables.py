"""Twenty-five public tables, most of them small, over which defaults are chosen: by means, never by a single table.

`OTHER_TABLES` are for what was chosen on these: other rows of the large sets, small samples of them, the tables that
scikit-learn brings along, and made ones of other families and seeds. No table of the first kind shares a row with them.

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
from benchmarks.data.splits import Split
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import (
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_friedman2,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)
from sklearn.impute import SimpleImputer
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

Table = tuple[pd.DataFrame, np.ndarray]


def csv_rows(name: str, n_rows: int | None = None, first: int = 0) -> Table:
    stop = None if n_rows is None else first + n_rows
    frame = pd.read_csv(Path(os.environ["POLYPLANE_DATA"]) / f"{name}.csv.xz", nrows=stop)[first:]
    return frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).to_numpy()


def npz_rows(name: str, n_rows: int | None = None, first: int = 0) -> Table:
    """A set of the local folder, or a random part of its training rows; another `first` is another part."""
    with np.load(Path(os.environ["POLYPLANE_DATA"]) / f"{name}.npz") as file:
        parts = {
            key.removesuffix("_train").replace("_train_", "_"): file[key] for key in file.files if "test" not in key
        }
    if "X" not in parts:
        csr = (parts["X_data"], parts["X_indices"], parts["X_indptr"])
        parts["X"] = sparse.csr_matrix(csr, shape=tuple(parts["X_shape"])).toarray()
    stop = None if n_rows is None else first + n_rows
    rows = np.random.default_rng(0).permutation(len(parts["y"]))[first:stop]
    return made((parts["X"][rows].astype(float), parts["y"][rows]))


def made(rows: tuple[np.ndarray, np.ndarray]) -> Table:
    return pd.DataFrame(rows[0]).rename(columns=str), np.asarray(rows[1]).astype(str)


def friedman(n_rows: int = 4000, seed: int = 0) -> Table:
    """Friedman's first function in three classes, over columns with long tails."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 10))
    smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    values = smooth + rng.normal(size=n_rows)
    return made((np.exp(2 * X), np.digitize(values, np.quantile(values, [0.33, 0.66]))))


def _impedance(n_rows: int = 1500) -> Table:
    """Friedman's second function in two classes: columns of very different scales."""
    X, values = make_friedman2(n_rows, noise=50.0, random_state=1)
    return made((X, values > np.median(values)))


def _waveform(n_rows: int = 1500) -> Table:
    """Breiman's waveforms: mixtures of two of three triangles, with noise, and as many columns of noise alone."""
    rng = np.random.default_rng(1)
    base = np.stack([np.maximum(6 - np.abs(np.arange(1, 22) - peak), 0) for peak in (11, 15, 7)])
    y, share = rng.integers(0, 3, n_rows), rng.random((n_rows, 1))
    signal = share * base[y] + (1 - share) * base[(y + 1) % 3]
    return made((np.hstack([signal, np.zeros((n_rows, 19))]) + rng.normal(size=(n_rows, 40)), y))


def _ringnorm(n_rows: int = 1500) -> Table:
    """Breiman's ringnorm: a normal distribution inside a wider one, in twenty dimensions."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, 20)) * np.where(y == 0, 2.0, 1.0)[:, None] + np.where(y == 0, 0.0, 20**-0.5)[:, None]
    return made((X, y))


def _board(n_rows: int = 1000) -> Table:
    """The sign of a product of two columns, among twenty others."""
    X = np.random.default_rng(1).normal(size=(n_rows, 22))
    return made((X, X[:, 0] * X[:, 1] > 0))


def _rings(n_rows: int = 1000) -> Table:
    X = np.random.default_rng(2).normal(size=(n_rows, 2))
    return made((X, np.floor(2 * np.linalg.norm(X, axis=1)).astype(int) % 2))


def _orders(n_rows: int = 1200) -> Table:
    """Text, prices with a long tail, counts and gaps; what counts depends on the region."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "price": np.exp(rng.normal(3, 1, n_rows)),
            "region": rng.choice(["north", "south", "east", "west"], n_rows, p=[0.4, 0.3, 0.2, 0.1]),
            "age": rng.integers(18, 80, n_rows),
            "orders": rng.poisson(0.5, n_rows),
            "channel": rng.choice(["web", "shop", "phone"], n_rows),
        }
    )
    young = (frame["age"] < 35).to_numpy()
    score = np.where(frame["region"] == "north", np.log(frame["price"]) - 3, young * 2.0 - 1) + (frame["orders"] > 1)
    y = np.where(score + 0.5 * rng.normal(size=n_rows) > 0, "kept", "returned")
    frame.loc[rng.random(n_rows) < 0.1, "price"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "channel"] = None
    return frame, y


def _noisy() -> Table:
    noise = {"n_informative": 8, "flip_y": 0.1, "n_clusters_per_class": 3}
    return made(make_classification(3000, 30, **noise, random_state=0))


_CSV = ("bands", "breast", "hayes-roth", "housevotes", "monk-2", "tae", "wdbc")
_PARTS = {"letter": 5, "usps": 3, "ijcnn1": 8, "covtype": 8, "a9a": 4, "mnist": 3, "poker": 6}  # thousands of rows
#: The tables by name.
TABLES: dict[str, Callable[[], Table]] = {
    **{name: partial(csv_rows, f"tables/{name}") for name in _CSV},
    **{f"{name}-{n}k": partial(npz_rows, name, 1000 * n) for name, n in _PARTS.items()},
    **{name: partial(npz_rows, name) for name in ("heart", "ilpd", "ionosphere", "pima")},
    "adult-5k": partial(csv_rows, "adult.train", 5000),
    "digits": lambda: made(load_digits(return_X_y=True)),
    "moons": lambda: made(make_moons(2000, noise=0.25, random_state=0)),
    "quantiles": lambda: made(make_gaussian_quantiles(n_samples=3000, n_features=8, n_classes=3, random_state=0)),
    "hastie": lambda: made(make_hastie_10_2(4000, random_state=0)),
    "noisy": _noisy,
    "friedman": friedman,
}
#: Those of `TABLES` that are not real.
GENERATED = ("moons", "quantiles", "hastie", "noisy", "friedman")


def _classes(seed: int, **settings: Any) -> Table:
    return made(make_classification(random_state=seed, **settings))


#: Thousands of rows of other parts of the large sets, and where these begin.
_OTHER_PARTS = {"letter": (4, 5), "usps": (2, 3), "ijcnn1": (5, 8), "covtype": (5, 8), "a9a": (4, 4), "mnist": (2, 3)}
_OTHER_PARTS |= {"poker": (4, 6), "w8a": (4, 0)}
#: Small samples: thousands of rows to begin at, and the number of rows.
_SAMPLES = {"covtype": (20, 600), "a9a": (20, 400), "letter": (12, 1000), "usps": (6, 500), "ijcnn1": (20, 800)}
#: Tables that no default was chosen on.
OTHER_TABLES: dict[str, Callable[[], Table]] = {
    **{f"{name}-other-{n}k": partial(npz_rows, name, 1000 * n, 1000 * k) for name, (n, k) in _OTHER_PARTS.items()},
    **{f"{name}-{n}": partial(npz_rows, name, n, 1000 * k) for name, (k, n) in _SAMPLES.items()},
    "adult-other-5k": partial(csv_rows, "adult.train", 5000, 5000),
    "adult-400": partial(csv_rows, "adult.train", 400, 20_000),
    "breast-wisconsin": partial(npz_rows, "breast_cancer_wisconsin"),
    "wine": lambda: made(load_wine(return_X_y=True)),
    "iris": lambda: made(load_iris(return_X_y=True)),
    "circles": lambda: made(make_circles(800, noise=0.15, factor=0.6, random_state=1)),
    "moons-400": lambda: made(make_moons(400, noise=0.35, random_state=1)),
    "quantiles-4": lambda: made(make_gaussian_quantiles(n_samples=1500, n_features=4, n_classes=4, random_state=1)),
    "hastie-800": lambda: made(make_hastie_10_2(800, random_state=1)),
    "friedman-1000": partial(friedman, 1000, 1),
    "impedance": _impedance,
    "waveform": _waveform,
    "ringnorm": _ringnorm,
    "board": _board,
    "rings": _rings,
    "orders": _orders,
    "classes-4": partial(_classes, 1, n_samples=1500, n_features=20, n_informative=6, n_classes=4, flip_y=0.05),
    "classes-rare": partial(_classes, 2, n_samples=1500, n_features=12, n_informative=5, weights=[0.9]),
    "classes-wide": partial(_classes, 3, n_samples=300, n_features=60, n_informative=10),
}


def adult_rows() -> tuple[Table, Table]:
    """All training and test rows of adult, as they come."""
    return csv_rows("adult.train"), csv_rows("adult.test")


def covtype_rows(n_rows: int = 50_000) -> tuple[Table, Table]:
    """So many rows of covtype to train on, and as many others to test on."""
    return npz_rows("covtype", n_rows), npz_rows("covtype", n_rows, n_rows)


def folds(name: str, n_folds: int = 5) -> Iterator[Split]:
    """The rows of each fold, as they come."""
    return _parts(name, StratifiedKFold(n_folds, shuffle=True, random_state=1))


def splits(name: str, n_splits: int = 5, test_size: float = 0.3) -> Iterator[Split]:
    """The rows of random splits, encoded."""
    for split in _parts(name, ShuffleSplit(n_splits, test_size=test_size, random_state=1)):
        encoder = encoded(FunctionTransformer())
        yield split._replace(X=encoder.fit_transform(split.X), X_test=encoder.transform(split.X_test))


def _parts(name: str, splitter: Any) -> Iterator[Split]:
    X, y = (TABLES | OTHER_TABLES)[name]()
    for train, test in splitter.split(X, y):
        yield Split(X.iloc[train], y[train], X.iloc[test], y[test])


class Columns(TransformerMixin, BaseEstimator):
    """Columns as most classifiers want them: dates and booleans as numbers, text as it is or as pandas categories.

    Parameters
    ----------
    categories : bool, default=False
        Text becomes categories, those of the training rows.
    max_categories : int or None, default=None
        So many of the most frequent ones in each column; others are missing.
    """

    def __init__(self, categories=False, max_categories=None):
        self.categories = categories
        self.max_categories = max_categories

    def fit(self, X, y=None):
        """Learn the categories."""
        X = self._numbers(X)
        texts = X.select_dtypes(exclude="number")
        self.levels_ = {
            name: column.astype(str).where(column.notna()).value_counts().index[: self.max_categories]
            for name, column in texts.items()
            if self.categories
        }
        return self

    def transform(self, X):
        """The columns as numbers and categories, or text."""
        X = self._numbers(X)
        known = {name: X[name].astype(str) for name in self.levels_}
        return X.assign(
            **{
                name: pd.Categorical(known[name].where(X[name].notna() & known[name].isin(levels)), levels)
                for name, levels in self.levels_.items()
            }
        )

    @staticmethod
    def _numbers(X):
        parts = []
        for name, column in X.items():
            if pd.api.types.is_datetime64_any_dtype(column):
                days = (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
                parts += [days.rename(name), column.dt.month.rename(f"{name} month")]
                parts += [column.dt.day_of_week.rename(f"{name} weekday")]
            else:
                parts.append(column.astype(float) if column.dtype == bool else column)
        return pd.concat(parts, axis=1)


def encoded(machine: Any) -> Pipeline:
    """The machine behind what a table needs: gaps filled, text one-hot encoded, numbers standardised."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=100, sparse_output=False)
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), levels)
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (texts, make_column_selector(dtype_exclude=np.number)),
    )
    return make_pipeline(Columns(), columns, machine)
