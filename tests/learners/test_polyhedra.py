"""The makers of sets with a class inside a polyhedron."""

import numpy as np
import pytest
from benchmarks.data.synthetic import make_polyceptron_1, make_polyceptron_2
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.datasets import make_polyhedron


def test_dataset_1_is_that_of_the_paper():
    X, y = make_polyceptron_1(3000, random_state=1)
    assert X.shape == (3000, 10)
    assert -1 <= X.min() < -0.99
    assert 0.99 < X.max() <= 1
    odd, even = X[:, ::2].sum(axis=1), X[:, 1::2].sum(axis=1)  # x1, x3, ... and x2, x4, ...
    inside = (odd + even + 1 >= 0) & (odd - even + 1 >= 0) & (odd + 0.5 >= 0)
    np.testing.assert_array_equal(y, inside)


def test_dataset_2_is_that_of_the_paper():
    X, y = make_polyceptron_2(3000, random_state=1)
    assert X.shape == (3000, 20)
    x = np.concatenate([np.zeros((3000, 1)), X], axis=1).T  # x[1] is the paper's x_1
    a = sum(c * x[j] for j, c in enumerate([1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 20, 8, 7, 6, 5, 4, 3, 2, 1, 1], 1)) + 20
    b = sum((-1) ** j * j * x[j] for j in range(1, 10)) + 15 * x[10] - 11 * x[11]
    b += sum((-1) ** j * (22 - j) * x[j] for j in range(12, 21)) + 15
    c = x[1] + x[3] + x[5] + x[7] + 2 * x[8] + 8 * x[10] + 2 * x[12] + 3 * x[13] + 3 * x[15] + 3 * x[16]
    c = c + 4 * x[18] + 4 * x[20] + 8
    d = x[1] - x[2] + 2 * x[5] - 2 * x[6] + 6 * x[9] - 3 * x[10] + 4 * x[13] - 4 * x[14] + 5 * x[17] - 5 * x[18] + 6
    np.testing.assert_array_equal(y, (a >= 0) & (b >= 0) & (c >= 0) & (d >= 0))
    assert 0.4 < y.mean() < 0.6


@given(st.integers(0, 100), st.integers(1, 5), st.integers(1, 8), st.floats(0.1, 0.9))
@settings(max_examples=30, deadline=None)
def test_a_polyhedron_holds_the_share_asked_for(seed, n_features, n_planes, inside):
    X, y, planes = make_polyhedron(200, n_features, n_planes, inside=inside, random_state=seed, return_planes=True)
    assert X.shape == (200, n_features)
    assert abs(y.mean() - inside) <= 0.01
    assert planes.n_planes == n_planes + 1
    margin = planes.margins(X, y)
    assert (margin > -1e-9).all()


def test_noise_draws_labels_anew():
    """Half of the labels drawn anew come out as they were."""
    clean, noisy = (make_polyhedron(20_000, flip_y=share, random_state=0) for share in (0.0, 0.5))
    np.testing.assert_array_equal(clean[0], noisy[0])
    assert np.mean(clean[1] != noisy[1]) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("maker", [make_polyceptron_1, make_polyceptron_2, make_polyhedron])
def test_a_seed_repeats_the_rows(maker):
    one, two, other = (maker(50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_samples": 0}, "n_samples=0 must be 1 or more"),
        ({"n_features": 0}, "n_features=0 must be 1"),
        ({"n_planes": 0}, "n_planes=0 must be 1"),
        ({"inside": 1.5}, "inside=1.5 must be a fraction"),
        ({"flip_y": -0.1}, "flip_y=-0.1 must be a fraction"),
    ],
)
def test_impossible_polyhedra_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        make_polyhedron(**params)
