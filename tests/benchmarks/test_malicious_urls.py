import numpy as np
import pytest
from benchmarks.data.malicious_urls import make_url_stream
from sklearn.linear_model import SGDClassifier


@pytest.fixture(scope="module")
def stream():
    return make_url_stream(n_days=70, rows_per_day=1000, n_features=150_000)


def seen(days):
    return np.unique(np.concatenate([X.indices for X, _ in days]))


def test_a_day_is_always_the_same(stream):
    """Whatever was made before it, and by which object; another seed gives another."""
    X, y = stream[41]
    again, labels = make_url_stream(n_days=70, rows_per_day=1000, n_features=150_000, random_state=0)[41]
    assert (again != X).nnz == 0
    np.testing.assert_array_equal(y, labels)
    other, _ = make_url_stream(n_days=70, rows_per_day=1000, n_features=150_000, random_state=1)[41]
    assert (other != X).nnz > X.nnz / 2
    last, _ = stream[-1]
    assert (last != stream[69][0]).nnz == 0


def test_the_days_have_the_shape_of_the_malicious_url_data():
    X, y = make_url_stream()[100]
    assert X.shape == (20_000, 3_200_000)
    assert X.format == "csr"
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.has_canonical_format
    assert set(X.data) == {1.0}
    assert X.nnz / 20_000 == pytest.approx(115, abs=2)
    lengths = np.diff(X.indptr)
    assert lengths.std() > 10
    assert set(y) == {-1, 1}
    assert np.mean(y == 1) == pytest.approx(1 / 3, abs=0.015)


def test_frequencies_have_a_heavy_tail(stream):
    """A few features are everywhere; half of those of a day come once or twice."""
    X, _ = stream[10]
    frequency = np.bincount(X.indices)
    assert (frequency > 500).sum() >= 6
    assert np.median(frequency[frequency > 0]) <= 2
    assert frequency[:1].item() == 1000


def test_new_features_appear_day_by_day(stream):
    known = seen(stream[day] for day in range(20))
    for day in (20, 40, 69):
        fresh = np.setdiff1d(seen([stream[day]]), known)
        assert len(fresh) > 500
        assert fresh.max() > known.max()
    assert seen([stream[69]]).max() < 150_000


def test_old_models_decay(stream):
    """Trained on days 0 to 9: 2 % wrong on the next day, 10 % fifty days on; one that goes on learning has 3 %."""
    machine = SGDClassifier(loss="log_loss", alpha=1e-7, learning_rate="constant", eta0=0.03, random_state=0)
    progressive = []
    for day in range(61):
        X, y = stream[day]
        if day >= 10:
            progressive.append(1 - machine.score(X, y))
        machine.partial_fit(X, y, classes=[-1, 1])
        if day == 9:
            old = {later: 1 - machine.score(*stream[later]) for later in (10, 60)}
    assert old[10] < 0.05
    assert old[60] > 2 * old[10]
    assert old[60] > 0.06
    assert 0.01 < np.mean(progressive) < 0.05
    assert progressive[-1] < old[60] / 2


def test_what_cannot_be_made_is_refused(stream):
    with pytest.raises(ValueError, match="n_features=5000 is too few for 120 days; give 13000 or more"):
        make_url_stream(n_features=5000)
    with pytest.raises(ValueError, match="n_features=3000000000 is more than"):
        make_url_stream(n_features=3_000_000_000)
    with pytest.raises(ValueError, match=r"malicious=.* must be a fraction"):
        make_url_stream(malicious=2)
    with pytest.raises(ValueError, match=r"n_days=.* must be 1 or more"):
        make_url_stream(0)
    with pytest.raises(IndexError, match="There is no day 70 in a stream of 70"):
        stream[70]
    assert len(stream) == 70


def test_the_smallest_stream():
    """Every feature stays within its range, on the first day and the last."""
    stream = make_url_stream(n_days=3, rows_per_day=50, n_features=1300)
    for X, y in stream:
        assert X.shape == (50, 1300)
        assert X.has_canonical_format
        assert X.indices.max() < 1300
        assert len(y) == 50
