import numpy as np
import pytest
from benchmarks.data.synthetic import make_weights

from polyplane.datasets import make_checkerboard, make_loans


def test_checkerboards_alternate():
    X, y = make_checkerboard(5000, (3, 5), random_state=0)
    assert X.min() >= -1
    assert X.max() <= 1
    corner = (X[:, 0] < -1 / 3) & (X[:, 1] < -0.6)
    beside = (X[:, 0] < -1 / 3) & (X[:, 1] > -0.6) & (X[:, 1] < -0.2)
    assert set(y[corner]) == {0}
    assert set(y[beside]) == {1}


def test_flipped_labels_are_drawn_at_random():
    _, clean = make_checkerboard(20_000, random_state=0)
    _, noisy = make_checkerboard(20_000, flip_y=0.5, random_state=0)
    assert np.mean(clean != noisy) == pytest.approx(0.25, abs=0.02)


def test_weights_follow_their_planes():
    X, y, planes = make_weights(3000, n_features=4, n_planes=30, random_state=1)
    assert X.shape == (3000, 4)
    assert planes.n_planes == 30
    np.testing.assert_allclose((planes.coef**2).sum(axis=1) + planes.intercept**2, 1.0)
    np.testing.assert_array_equal(planes.predict(X), y)
    assert 0 < y.mean() < 1


def test_makers_refuse_what_cannot_be_made():
    with pytest.raises(ValueError, match="only one cell"):
        make_checkerboard(shape=(1, 1))
    with pytest.raises(ValueError, match="leaves a class without a plane"):
        make_weights(n_planes=1)
    with pytest.raises(ValueError, match=r"n_samples=.* must be 1 or more"):
        make_checkerboard(-1)
    with pytest.raises(ValueError, match=r"flip_y=.* must be a fraction"):
        make_checkerboard(flip_y=2.0)


def test_loans_are_a_table_as_people_have_them():
    pytest.importorskip("pandas", reason="pandas is a development dependency")
    frame, y = make_loans(4000, random_state=0)
    again, _ = make_loans(4000, random_state=0)
    assert frame.equals(again)
    assert [dtype.kind for dtype in frame.dtypes] == list("iffOOMb")
    assert 0.03 < frame["income"].isna().mean() < 0.07
    assert 0.05 < frame["employed since"].isna().mean() < 0.11
    default = y == "default"
    assert default[frame["purpose"] == "business"].mean() > default[frame["purpose"] == "car"].mean() + 0.1
    large = frame["debt"] > frame["income"]
    assert default[large & ~frame["guarantor"]].mean() > default[large & frame["guarantor"]].mean() + 0.2
