"""The data of the experiments, as every machine in them gets it: float32, with a test set of its own."""

from typing import Any, NamedTuple

import numpy as np
from benchmarks.data.infinite_digits import InfiniteDigits
from benchmarks.data.malicious_urls import make_url_stream
from benchmarks.data.synthetic import make_weights
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane.datasets import load_dataset, make_checkerboard

#: Sets whose features are of different kinds; boards and pixels are taken as they are.
STANDARDISED = {"ijcnn1", "letter"}


class Split(NamedTuple):
    """Training and test rows of a set."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def board(shape, seed, flip_y=0.0):
    """A fresh checkerboard: 15,000 rows to train on, with label noise `flip_y`, and 5,000 clean ones to test on."""
    X, y = make_checkerboard(15_000, shape, flip_y=flip_y, random_state=seed)
    X_test, y_test = make_checkerboard(5_000, shape, random_state=10_000 + seed)
    return Split(X.astype(np.float32), y, X_test.astype(np.float32), y_test)


def weights(n_features, n_planes, seed):
    """Fresh weights data: 15,000 rows to train on and 5,000 to test on, of the same planes."""
    X, y, _ = make_weights(20_000, n_features, n_planes, random_state=seed)
    X = X.astype(np.float32)
    return Split(X[:15_000], y[:15_000], X[15_000:], y[15_000:])


def real(name):
    """A set from the local folder, with its own split; bytes become fractions of 255."""
    data = load_dataset(name)
    return Split(_dense(data.data), data.target, _dense(data.data_test), data.target_test)


def real_sparse(name):
    """A sparse set from the local folder as it is, with its own split."""
    data = load_dataset(name)
    return Split(data.data.astype(np.float32), data.target, data.data_test.astype(np.float32), data.target_test)


def pixels(name="mnist"):
    """The images of a set as sparse rows of fractions of 255: most pixels are empty."""
    data = load_dataset(name)
    X, X_test = (sparse.csr_matrix(x.reshape(len(x), -1) / np.float32(255)) for x in (data.data, data.data_test))
    return Split(X, data.target, X_test, data.target_test)


def digits(n_rows):
    """The first rows of `InfiniteDigits`, which stand in for MNIST8M, as sparse rows; tested on MNIST's own rows."""
    mnist = pixels()
    data = load_dataset("mnist")
    batches = InfiniteDigits(data.data, data.target).batches(20_000, stop=n_rows)
    parts, labels = zip(*((sparse.csr_matrix(X), y) for X, y in batches), strict=True)
    return mnist._replace(X=sparse.vstack(parts, format="csr"), y=np.concatenate(labels))


def rcv1():
    """The topic subsets of RCV1-v2, which stand in for LIBSVM's RCV1-bin: the same two pairs of topics, fewer rows."""
    return real_sparse("rcv1_subsets")


def url(rows_per_day=1_000):
    """The stream of `make_url_stream`, which stands in for the malicious-URL data: half of each of 120 days to test."""
    X, y = zip(*make_url_stream(rows_per_day=rows_per_day), strict=True)
    half = rows_per_day // 2
    train, test = (sparse.vstack([x[part] for x in X], format="csr") for part in (slice(half), slice(half, None)))
    return Split(train, np.concatenate([t[:half] for t in y]), test, np.concatenate([t[half:] for t in y]))


def one_class(split, *labels):
    """The set of two classes that tells `labels` from the rest."""
    return split._replace(y=np.isin(split.y, labels), y_test=np.isin(split.y_test, labels))


def _dense(X):
    X = X.toarray() if sparse.issparse(X) else X
    divisor = 255 if X.dtype == np.uint8 else 1
    return np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float32) / np.float32(divisor)


def prepared(name, machine):
    """The machine behind the preprocessing of a set, which is learned from training rows alone."""
    return make_pipeline(StandardScaler(), machine) if name in STANDARDISED else machine
