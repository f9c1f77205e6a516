"""The made stream, the machines that learn from it, and what may happen to them."""

import json
from dataclasses import asdict, dataclass, field

import numpy as np
from scipy import sparse

import polyplane

N_ROWS, N_FEATURES, LABELS = 24, 5, ["a", "b"]

#: The learners that take streams, each with how often it goes through the stream and whether rows are sparse.
MACHINES = [
    ("ConvexPolytopeClassifier", {"n_planes": 3, "alpha": 1e-3}, 2, False),
    ("MultiHyperplaneClassifier", {"n_planes": 3}, 1, False),
    ("PegasosSVC", {}, 1, True),
    ("AdaptiveMultiHyperplaneClassifier", {}, 1, False),
    ("ConvexPolytopeClassifier", {"n_planes": 2, "alpha": 1e-3, "enclosed": "each"}, 1, True),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "loss": "hinge"}, 2, True),
    ("PolyceptronClassifier", {"inside": "a", "mode": "online"}, 1, False),
    ("PolyhedralMixtureClassifier", {"inside": "a", "n_planes": 2}, 1, False),
    ("WorstCasePolytopeClassifier", {"n_planes": 2}, 1, False),
]


@dataclass
class Plan:
    """One life of the process that trains."""

    machine: int
    checkpoint: str
    n_batches: int
    seed: int
    left_out: list[int] = field(default_factory=list)  # batches that the stream no longer has
    bad: str | None = None  # what is wrong with the batch `bad_at`
    bad_at: int = -1
    again: bool = False  # after a bad batch, go on in the same process
    seek: bool = True
    prefetch: int = 0
    every: float = 1e9  # seconds between checkpoints
    time_limit: float | None = None
    clock: float = 0.0  # seconds that the clocks jump
    largest_file: int | None = None
    pause: float = 0.0  # before each batch

    def to_json(self):
        return json.dumps(asdict(self))

    @property
    def passes(self):
        return MACHINES[self.machine][2]

    @property
    def total(self):
        """Batches to learn from, over all passes."""
        return self.passes * (self.n_batches - len(self.left_out))

    def estimator(self):
        name, params, _, _ = MACHINES[self.machine]
        return getattr(polyplane, name)(**params, random_state=0)

    def batch(self, number):
        """Rows inside and outside a square, always the same for a number."""
        rng = np.random.default_rng([self.seed, number])
        X = rng.normal(size=(N_ROWS, N_FEATURES))
        y = np.where(np.abs(X[:, :2]).max(axis=1) + 0.1 * X[:, 2] < 0.8, "a", "b")
        return (sparse.csr_array(np.where(X > 1.0, 0.0, X)) if MACHINES[self.machine][3] else X), y


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X.copy()


def _with(value):
    def spoil(X, y):
        X = _dense(X)
        X[3, 1] = value
        return X, y

    return spoil


def _broken_source(X, y):
    raise OSError("the line is dead")


#: Bad batches, and what is said of them.
BAD = {
    "NaN": (_with(np.nan), "NaN"),
    "infinity": (_with(np.inf), "infinity"),
    "overflow": (_with(1e200), "overflow"),
    "columns": (lambda X, y: (_dense(X)[:, :-1], y), "features"),
    "label": (lambda X, y: (X, np.where(np.arange(len(y)) == 5, "c", y)), "known classes"),
    "length": (lambda X, y: (X, y[:-1]), "inconsistent"),
    "weights": (lambda X, y: (X, y, -np.ones(len(y))), "Negative"),
    "no batch": (lambda X, y: X, "is not"),
    "source": (_broken_source, "the line is dead"),
}
