"""Small fitted machines, for the tests of what is done with them."""

import inspect

import numpy as np
import pandas as pd
from scipy import sparse

import polyplane

LABELS = {
    "int64": np.array([-3, 0, 7]),
    "uint8": np.array([0, 1, 255], dtype=np.uint8),
    "float64": np.array([-1.0, 0.0, 1.0]),
    "float32": np.array([-1.0, 3.0, 7.0], dtype=np.float32),
    "float16": np.array([-1.0, 3.0, 7.0], dtype=np.float16),
    "text": np.array(["", "naïve", "zebra\x00s"]),
    "object": np.array(["a", "bb", "long \ud800 one"], dtype=object),
    "bool": np.array([False, True]),
}


def make(name, params):
    learner = getattr(polyplane, name)
    known = inspect.signature(learner).parameters
    given = {"max_iter": 4, "random_state": 0} | params
    return learner(**{key: value for key, value in given.items() if key in known})


def some_rows(machine, seed, dtype=np.float64, labels="int64", as_sparse=False):
    """Rows of overlapping classes, as many as the learner and the labels allow."""
    rng = np.random.default_rng(seed)
    names = LABELS[labels]
    n_classes = len(names) if machine.__sklearn_tags__().classifier_tags.multi_class else 2
    codes = np.arange(60) % n_classes
    X = (rng.normal(size=(60, 3)) + 1.5 * np.eye(3)[codes]).astype(dtype)
    return sparse.csr_array(X) if as_sparse else X, names[codes]


def machine_with_everything():
    """A fitted machine with all that a model file can hold."""
    machine = polyplane.ConvexPolytopeClassifier(
        2,
        enclosed="each",
        max_iter=3,
        class_weight={"no": 2.0, "yes": np.float32(0.5)},
        random_state=np.random.RandomState(3),
    )
    X, y = some_rows(machine, 0)
    return machine.fit(pd.DataFrame(X, columns=["width", "höhe", 'a "b"']), np.where(y == -3, "no", "yes"))


METADATA = {"note": "a", "n": 3, "rate": 0.5, "centre": np.arange(3.0)}
