"""What fitting costs beyond the data."""

import gc
import subprocess
import sys
import weakref

import pytest

from polyplane import TableClassifier
from polyplane.datasets import make_loans
from polyplane.tables.members import EncodedRows

FIT = """
import resource
import numpy as np
from scipy import sparse
from polyplane import {learner}

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

rng = np.random.default_rng(0)
n_rows, n_features, per_row = 250_000, 20_000, 100
indices = np.empty(n_rows * per_row, dtype=np.int32)
data = np.empty(n_rows * per_row, dtype=np.float32)
begin = np.arange(0, n_features, n_features // per_row)  # indices are sorted, each once: other rows are put in order
for first in range(0, len(indices), 1_000_000):
    drawn = rng.integers(0, n_features // per_row, (1_000_000 // per_row, per_row), dtype=np.int32)
    indices[first : first + 1_000_000] = (drawn + begin).ravel()
    data[first : first + 1_000_000] = rng.standard_normal(1_000_000, dtype=np.float32)
X = sparse.csr_array((data, indices, np.arange(0, len(indices) + 1, per_row)), shape=(n_rows, n_features))
y = np.arange(n_rows) % 2
machine = {learner}({params})
machine.fit(X[:200], y[:200])  # compile first: that is not part of the price
before = peak()
machine.fit(X, y)
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
model = machine.planes_.coef.nbytes
print((peak() - before - model) / size)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module, which tells the peak, is for Unix")
@pytest.mark.parametrize(
    ("learner", "params"),
    [("ConvexPolytopeClassifier", "4, max_iter=1, average=False"), ("PegasosSVC", "max_iter=1, average=False")],
)
def test_fitting_does_not_copy_the_data(learner, params):
    """200 MB of CSR: less than 30 % of it on top, the model aside."""
    code = FIT.format(learner=learner, params=params)
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(ran.stdout) < 0.30


def test_prepared_rows_of_candidates_are_freed_at_once(monkeypatch):
    """Without the garbage collector: in a reference cycle they would stay until it runs, hundreds of megabytes."""
    prepared = []
    data = EncodedRows.data

    def noted(self, preparation):
        found = data(self, preparation)
        prepared.append(weakref.ref(found.X))
        return found

    monkeypatch.setattr(EncodedRows, "data", noted)
    X, y = make_loans(200, random_state=0)
    gc.disable()
    try:
        model = TableClassifier(random_state=0).fit(X, y)
        alive = sum(reference() is not None for reference in prepared)
    finally:
        gc.enable()
    assert len(prepared) > 10
    assert alive <= len(model.members_)
