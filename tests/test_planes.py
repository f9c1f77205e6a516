import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import polyplane.planes
from polyplane import PlaneSet


@st.composite
def plane_sets(draw, n_features=3, dtype=np.float64):
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    numbers = st.integers(-8, 8).map(float)  # exact in any order of summation, and ties are frequent
    coef = draw(hnp.arrays(dtype, (sum(sizes), n_features), elements=numbers))
    intercept = draw(hnp.arrays(dtype, sum(sizes), elements=numbers))
    return PlaneSet(coef, intercept, np.cumsum([0, *sizes]))


rows = hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(-8, 8).map(float))


@given(plane_sets(), rows)
def test_scores_winners_and_margins_agree_with_their_definition(planes, X):
    scores = np.array([[w @ x + b for w, b in zip(planes.coef, planes.intercept, strict=True)] for x in X])
    by_class = np.column_stack([scores[:, planes.owners == c].max(axis=1) for c in range(planes.n_classes)])
    np.testing.assert_array_equal(planes.scores(X), scores)
    np.testing.assert_array_equal(planes.class_scores(X), by_class)
    np.testing.assert_array_equal(planes.predict(X), by_class.argmax(axis=1))
    np.testing.assert_array_equal(planes.winners(X), scores.argmax(axis=1))
    ordered = np.sort(by_class, axis=1)
    np.testing.assert_array_equal(planes.margins(X), ordered[:, -1] - ordered[:, -2])


@given(plane_sets(), rows)
def test_margins_are_negative_for_errors(planes, X):
    y = np.zeros(len(X), dtype=int)
    wrong = planes.class_scores(X)[:, 1:].max(axis=1) > planes.class_scores(X)[:, 0]
    np.testing.assert_array_equal(planes.margins(X, y) < 0, wrong)


@given(plane_sets(), rows, st.integers(1, 7), st.sampled_from([None, 1, 2]))
@settings(max_examples=40, deadline=None)
def test_blocks_threads_and_sparsity_change_nothing(planes, X, block, n_jobs):
    whole = planes.class_scores(X), planes.winners(X)
    before = polyplane.planes.BLOCK_SCORES
    polyplane.planes.BLOCK_SCORES = block * planes.n_planes
    try:
        for matrix in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
            np.testing.assert_array_equal(planes.class_scores(matrix, n_jobs), whole[0])
            np.testing.assert_array_equal(planes.winners(matrix, n_jobs), whole[1])
    finally:
        polyplane.planes.BLOCK_SCORES = before


@given(plane_sets(), rows)
def test_pruning_planes_that_never_win_changes_no_prediction(planes, X):
    keep = np.isin(np.arange(planes.n_planes), planes.winners(X))
    keep[planes.indptr[:-1]] = True
    np.testing.assert_array_equal(planes.prune(keep).predict(X), planes.predict(X))


def test_pruning_refuses_the_last_plane_of_a_class():
    planes = PlaneSet(np.eye(3), np.zeros(3), [0, 1, 3])
    with pytest.raises(ValueError, match="keep removes all planes of class 0"):
        planes.prune(np.array([False, True, True]))
    with pytest.raises(ValueError, match="booleans, one per plane"):
        planes.prune(np.array([0, 1, 1]))


def test_planes_of_a_class():
    planes = PlaneSet(np.arange(6.0).reshape(3, 2), np.arange(3.0), [0, 1, 3])
    coef, intercept = planes.of(1)
    np.testing.assert_array_equal(coef, [[2, 3], [4, 5]])
    np.testing.assert_array_equal(intercept, [1, 2])
    with pytest.raises(ValueError, match="c=2 is not a class"):
        planes.of(2)


def test_equality_looks_at_values_dtype_and_pooling():
    planes = PlaneSet(np.eye(2), np.zeros(2), [0, 1, 2])
    assert planes == PlaneSet(np.eye(2), np.zeros(2), [0, 1, 2])
    assert planes != PlaneSet(np.eye(2), np.ones(2), [0, 1, 2])
    assert planes != PlaneSet(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32), [0, 1, 2])
    assert planes != planes.replace(pooling="logsumexp")
    assert planes != "planes"


def test_arrays_are_read_only_even_after_pickling():
    planes = PlaneSet(np.eye(2), np.zeros(2), [0, 1, 2])
    again = pickle.loads(pickle.dumps(planes))
    assert again == planes
    for array in (planes.coef, planes.intercept, planes.indptr, again.coef):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("coef", "intercept", "indptr", "message"),
    [
        (np.eye(2, dtype=int), np.zeros(2), [0, 1, 2], "float32 or float64"),
        (np.ones(2), np.zeros(2), [0, 1, 2], "matrix"),
        (np.eye(2), np.zeros(3), [0, 1, 2], "dtype float64, one per plane"),
        (np.eye(2), np.zeros(2, dtype=np.float32), [0, 1, 2], "dtype float64, one per plane"),
        (np.full((2, 2), np.inf), np.zeros(2), [0, 1, 2], "finite"),
        (np.eye(2), np.array([0, np.nan]), [0, 1, 2], "finite"),
        (np.eye(2), np.zeros(2), [0, 1, 3], "from 0 to the number of planes"),
        (np.eye(2), np.zeros(2), [0, 2, 2], "Class 1 owns no plane"),
        (np.eye(2), np.zeros(2), [2], "from 0"),
    ],
)
def test_broken_sets_are_refused(coef, intercept, indptr, message):
    with pytest.raises(ValueError, match=message):
        PlaneSet(coef, intercept, indptr)


def test_a_matrix_of_other_width_is_refused():
    with pytest.raises(ValueError, match="the planes have 2 features"):
        PlaneSet(np.eye(2), np.zeros(2), [0, 1, 2]).scores(np.ones((4, 3)))


def test_numbers_too_large_are_one_sentence():
    planes = PlaneSet(np.array([[3.0, -3.0], [0.0, 1.0]]), np.zeros(2), [0, 1, 2])
    X = np.ones((5000, 2))
    X[4321] = 1.7e308
    for predict in (planes.predict, planes.class_scores, planes.winners):
        with pytest.raises(ValueError, match=r"The scores of row 4321 overflow float64: its numbers are too large\."):
            predict(X)
    narrow = planes.replace(coef=planes.coef.astype("f4"), intercept=planes.intercept.astype("f4"))
    with pytest.raises(ValueError, match="row 0 overflow float32"):
        narrow.scores(np.array([[3e38, -3e38]], dtype=np.float32))
    assert np.isfinite(planes.scores(X / 4)).all()


def test_float32_stays_float32():
    planes = PlaneSet(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32), [0, 1, 2])
    X = np.ones((3, 2), dtype=np.float32)
    assert planes.scores(X).dtype == planes.class_scores(sparse.csr_array(X)).dtype == np.float32


def test_notebooks_show_the_planes_of_each_class():
    rng = np.random.default_rng(0)
    planes = PlaneSet(rng.normal(size=(5, 2)), rng.normal(size=5), np.array([0, 2, 5]))
    shown = planes._repr_html_()
    assert shown.count("<tr>") == 3
    assert "<td>1</td><td>3</td>" in shown
    assert "PlaneSet(n_classes=2" in shown


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("part", "place", "value"),
    [("indices", 0, 10**8), ("indices", 1, -(10**8)), ("indptr", -1, 10**8), ("indptr", 1, 10**8), ("indptr", 0, 1)],
)
def test_sparse_rows_with_wrong_indices_are_refused(form, part, place, value):
    """They led into foreign memory."""
    planes = PlaneSet(np.ones((2, 3)), np.zeros(2), np.array([0, 1, 2]))
    X = form(np.array([[1.0, 0, 2], [0, 3, 4]]))
    assert planes.predict(X).tolist() == [0, 0]
    getattr(X, part)[place] = value
    for method in (planes.predict, planes.scores, planes.class_scores, planes.winners, planes.margins):
        with pytest.raises(ValueError, match=r"ind(ex|ices|ptr)|pointer"):
            method(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_prediction_by_log_sum_exp_is_the_class_with_the_largest_score(dtype):
    """Only rows where another class comes near are computed in full; equal and almost equal scores are among them."""
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 30.0):
        coef, X = rng.normal(size=(12, 3)), rng.normal(size=(3000, 3))
        coef[6:8] = coef[:2]
        planes = PlaneSet((scale * coef).astype(dtype), np.zeros(12, dtype), [0, 1, 6, 12], pooling="logsumexp")
        X = np.concatenate([X, np.zeros((2, 3))]).astype(dtype)
        expected = np.log([np.exp(X.astype(float) @ planes.of(c)[0].T.astype(float)).sum(axis=1) for c in range(3)])
        np.testing.assert_allclose(
            planes.class_scores(X), expected.T, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-5
        )
        np.testing.assert_array_equal(planes.predict(X), planes.class_scores(X).argmax(axis=1))
        assert (planes.predict(X) != planes.replace(pooling="max").predict(X)).any() or scale == 30.0


def test_scores_that_are_far_apart_stay_apart():
    far = PlaneSet(np.array([[-1e3], [-2e3], [0.0]]), np.zeros(3), [0, 2, 3], pooling="logsumexp")
    np.testing.assert_allclose(far.class_scores(np.ones((1, 1))), [[-1e3, 0.0]])
    both = PlaneSet.of_members([far, far])
    np.testing.assert_allclose(both.class_scores(np.ones((1, 1))), [[-1e3, 0.0]])


def test_one_plane_decides_where_scores_are_maxima():
    line = PlaneSet(np.array([[0.0], [1.0]]), np.zeros(2), [0, 1, 2], pooling="logsumexp")
    assert line.has_winners  # of one plane, the log-sum-exp is its score
    assert not PlaneSet.of_members([line, line]).has_winners
    bent = PlaneSet(np.array([[0.0], [1.0], [2.0]]), np.zeros(3), [0, 1, 3], pooling="logsumexp")
    assert not bent.has_winners
    assert bent.replace(pooling="max").has_winners
