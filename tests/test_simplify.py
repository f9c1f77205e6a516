"""Fewer planes, the same predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import polyplane.planes
from polyplane import PlaneSet
from polyplane.explain.geometry import simplify
from tests.test_geometry import AROUND, INSIDE, SQUARE, random_planes


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.1, 0.5]), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=60, deadline=None)
def test_simplifying_keeps_what_it_promises(seed, tolerance, dtype):
    planes, rng = random_planes(seed, 3, dtype, most=12), np.random.default_rng(seed)
    X = rng.normal(size=(300, 3)).astype(dtype)
    y = rng.integers(planes.n_classes, size=300)
    before = polyplane.planes.BLOCK_SCORES
    polyplane.planes.BLOCK_SCORES = 64 * planes.n_planes
    try:
        fewer, keeping_error = simplify(planes, X, tolerance), simplify(planes, X, tolerance, y=y)
    finally:
        polyplane.planes.BLOCK_SCORES = before
    assert np.mean(fewer.predict(X) != planes.predict(X)) <= tolerance + 1e-12
    assert np.mean(keeping_error.predict(X) != y) <= np.mean(planes.predict(X) != y) + tolerance + 1e-12
    # No single plane of what is left may go.
    aim, sizes = planes.predict(X), np.diff(fewer.indptr)
    for p in range(fewer.n_planes):
        if sizes[fewer.owners[p]] > 1:
            without = fewer.prune(np.arange(fewer.n_planes) != p)
            assert np.mean(without.predict(X) != aim) > tolerance


def test_simplifying_finds_the_planes_that_matter():
    """A hundred copies of the square's planes, moved outwards, say nothing."""
    rng = np.random.default_rng(0)
    coef, intercept = np.tile(AROUND[0], (26, 1)), np.tile(AROUND[1], 26)
    intercept[4:] -= rng.random(100)
    planes = PlaneSet.of_classes([INSIDE, (coef, intercept)])
    X = sparse.csr_array(rng.uniform(-1, 2, size=(2000, 2)))
    fewer = simplify(planes, X)
    assert fewer == SQUARE
    assert simplify(fewer, X) == SQUARE


def test_simplifying_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="tolerance=2"):
        simplify(SQUARE, np.zeros((3, 2)), 2)
    with pytest.raises(ValueError, match="one class for each of the 3 rows"):
        simplify(SQUARE, np.zeros((3, 2)), y=[0])


def test_simplifying_a_grown_machine_halves_it(local_data):
    """GAMM on ijcnn1, on fewer rows and passes than in the benchmark; there, 0.1 point of error is the limit."""
    from sklearn.preprocessing import StandardScaler

    from polyplane import AdaptiveMultiHyperplaneClassifier

    data = local_data("ijcnn1")
    scaler = StandardScaler(with_mean=False).fit(data.data)
    X, X_test = scaler.transform(data.data)[:10_000], scaler.transform(data.data_test)[:10_000]
    y, y_test = data.target[:10_000], data.target_test[:10_000]
    machine = AdaptiveMultiHyperplaneClassifier(max_iter=3, average_fraction=1 / 3, random_state=0).fit(X, y)
    fewer = simplify(machine.planes_, X)
    assert fewer.n_planes <= machine.planes_.n_planes / 2
    error, error_of_fewer = (
        np.mean(machine.classes_[planes.predict(X_test)] != y_test) for planes in (machine.planes_, fewer)
    )
    assert error_of_fewer < error + 0.001
