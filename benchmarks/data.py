"""The data of the experiments, as every machine in them gets it: dense, float32, with a test set of its own."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane.datasets import load_local, make_checkerboard

#: Sets whose features are of different kinds; boards and pixels are taken as they are.
STANDARDISED = {"ijcnn1", "letter"}


class Split(NamedTuple):
    """Training and test rows of a set."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def board(shape, seed, flip_y=0.0):
    """A fresh checkerboard: 15,000 rows to train on, with label noise `flip_y`, and 5,000 clean ones to test on."""
    X, y = make_checkerboard(15_000, shape, flip_y=flip_y, random_state=seed)
    X_test, y_test = make_checkerboard(5_000, shape, random_state=10_000 + seed)
    return Split(X.astype(np.float32), y, X_test.astype(np.float32), y_test)


def real(name):
    """A set from the local folder, with its own split; bytes become fractions of 255."""
    data = load_local(name)
    return Split(_dense(data.data), data.target, _dense(data.data_test), data.target_test)


def _dense(X):
    X = X.toarray() if sparse.issparse(X) else X
    divisor = 255 if X.dtype == np.uint8 else 1
    return np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float32) / np.float32(divisor)


def prepared(name, machine):
    """The machine behind the preprocessing of a set, which is learned from training rows alone."""
    return make_pipeline(StandardScaler(), machine) if name in STANDARDISED else machine
