"""Ties, equalities and guarantees of the kernels that random rows rarely meet."""

import numpy as np
import pytest
from numba import njit
from scipy import sparse

from polyplane.engine.data import AffineScaling, Data
from polyplane.kernels import convex_polytope, cutting_plane, multi_hyperplane
from polyplane.kernels.polyceptron import polyceptron_epoch
from polyplane.kernels.rows import DenseRows, PlaneSums, SparseRows
from polyplane.kernels.skipping import Checks
from polyplane.learners.log_loss import N_CANDIDATES, Adam, CandidatePass, CandidatePlanes, StepSettings
from tests.reference.multi_hyperplane import candidates

# Only compiled code can call parts of kernels that call others.


@njit
def assign(score, i, natural, memory, min_entropy):
    return convex_polytope._assign(score, i, natural, memory, min_entropy)


@njit
def passes_to_skip(score, z, is_outer, margin, length, movement, longest):
    return convex_polytope._passes_to_skip(score, z, is_outer, margin, length, movement, longest)


def candidates_of(scores, y, n_classes):
    """The candidates that the kernel finds for rows with these scores."""
    n_rows, n_planes = scores.shape
    W = np.zeros((n_classes, n_planes // n_classes, n_rows + 1), dtype=scores.dtype)
    W.reshape(n_planes, -1)[:, :-1] = scores.T  # row i is the i-th unit vector
    X, weight = np.eye(n_rows, dtype=W.dtype), np.ones(n_rows, dtype=W.dtype)
    data = Data(X, y, weight, np.arange(n_rows), n_classes)
    rows = CandidatePlanes(data, shuffle=False, noise=False, n_planes=n_planes)
    adam = Adam(np.zeros_like(W), np.zeros_like(W))
    scaling = AffineScaling(np.zeros(n_rows, dtype=W.dtype), 1.0)
    one = CandidatePass(X, y, weight, scaling, W, adam, None, None, (0.9, 0.99), planes=rows, turn=0, renew=True)
    one.run([np.arange(n_rows)], n_rows, [StepSettings(0.0, 0.0, 1.0)], averaged_from=1)
    return rows.candidates


def test_the_best_planes_of_many_blocks_are_candidates():
    """Each block of 16 planes has one of the best: the lowest of these is the bound itself."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 16 * N_CANDIDATES))
    best = np.arange(N_CANDIDATES) * 16 + rng.integers(0, 16, (40, N_CANDIDATES))
    np.put_along_axis(scores, best, 10.0 + rng.normal(size=best.shape), axis=1)
    found = candidates_of(scores, np.arange(40) % 2, 2)
    np.testing.assert_array_equal(np.sort(found), np.sort(best))


@pytest.mark.parametrize("low", [0, 1, 2])
def test_candidates_include_a_plane_of_the_class_and_of_another(low):
    """The scores of a class are far below all others, or far above."""
    rng = np.random.default_rng(low)
    for shift in (-50.0, 50.0):
        scores = rng.normal(size=(30, 60))
        scores[:, 20 * low : 20 * (low + 1)] += shift
        y = np.arange(30) % 3
        found = candidates_of(scores, y, 3)
        for i, (row, label) in enumerate(zip(scores, y, strict=True)):
            assert len({k // 20 == label for k in found[i]}) == 2
            expected = candidates(row.reshape(3, 20, 1), np.ones(1), label, N_CANDIDATES)
            np.testing.assert_array_equal(np.sort(found[i]), np.sort([20 * c + k for c, k in expected]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_planes", [40, 64, 150, 1300])
def test_candidates_have_the_highest_scores_whatever_their_range(n_planes, dtype):
    """Half of the planes are padding; scores of 1e-2 to 1e3; whole blocks of planes and the rest."""
    rng = np.random.default_rng(n_planes)
    scores = (rng.normal(size=(60, n_planes)) * 10 ** rng.uniform(-2, 3, (60, 1))).astype(dtype)
    scores[:, rng.permutation(n_planes)[: n_planes // 2]] = -1e30
    best = np.sort(np.argsort(-scores, axis=1)[:, :N_CANDIDATES], axis=1)
    y = best[:, 0] // (n_planes // 2)
    both = (best // (n_planes // 2) != y[:, None]).any(axis=1)  # rows whose candidates are of both classes
    assert both.sum() > 40
    np.testing.assert_array_equal(np.sort(candidates_of(scores, y, 2), axis=1)[both], best[both])


def test_of_equal_scores_as_many_are_candidates_as_fit():
    """Three planes are better, all others are equal: these, and others, each once."""
    for n_planes in (40, 300):
        scores = np.zeros((20, n_planes))
        better = n_planes - 1 - np.array([0, 1, n_planes // 2])
        scores[:, better] = 1.0, 2.0, 1e-6
        for found in candidates_of(scores, np.arange(20) % 2, 2):
            assert set(better) <= set(found)
            assert len(set(found)) == N_CANDIDATES


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [None, np.int32, np.int64])
@pytest.mark.parametrize("n_planes", [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 95, 96, 97, 150])
def test_scores_of_any_number_of_planes(n_planes, index, dtype):
    """Blocks of 48, 32 and 16 planes, which may overlap; rows of 0 to 11 values; sums of whole numbers are exact."""
    rng = np.random.default_rng(n_planes)
    X = sparse.csr_array(rng.integers(-3, 4, (12, 11)) * np.tri(12, 11, -1, dtype=dtype), dtype=dtype)
    coef, intercept = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((11, n_planes), n_planes))
    rows = DenseRows(X.toarray())
    if index is not None:
        rows = SparseRows(X.data, X.indices.astype(index), X.indptr.astype(index))
    order = rng.permutation(12)
    found = np.empty((12, n_planes), dtype=dtype)
    convex_polytope.polytope_scores(rows, order, PlaneSums(coef, intercept, 1.0), found)
    np.testing.assert_array_equal(found, X.toarray()[order] @ coef + intercept)


def test_online_polyceptron_updates_on_a_score_of_zero():
    """Zero planes: each row has the score 0 and counts as a mistake, as in the paper (y h(x) <= 0)."""
    planes = PlaneSums(np.zeros((2, 2)), np.zeros(2), 1.0)
    row = DenseRows(np.array([[1.0, 2.0]]))
    mistakes = polyceptron_epoch(row, np.zeros(1, int), np.ones(1), np.full(1, 0.5), planes, np.empty(2))
    assert mistakes == 1
    np.testing.assert_array_equal(planes.coef, [[0.5, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("best", "rival"),
    [
        ([0.0, -3.0, -1.0, -2.0], 2),  # all others have unused zero planes: the one with the best real plane
        ([0.0, -1.0, -1.0, -2.0], 1),
        ([0.0, -1.0, 0.5, -2.0], 2),
        ([9.0, -5.0, -4.0, 0.25], 3),
    ],
)
def test_among_classes_that_answer_with_zero_the_closest_is_the_rival(best, rival):
    counts = np.ones(4, dtype=np.int64)
    found = multi_hyperplane._rival_of.py_func(0, np.array(best), np.arange(4), counts, 1 << 30)
    assert found == rival


def test_a_class_without_unused_planes_answers_with_its_best():
    best, counts = np.array([0.0, -1.0, -2.0]), np.array([1, 5, 5])
    assert multi_hyperplane._rival_of.py_func(0, best, np.arange(3), counts, 5) == 1
    best[1] = -3.0
    assert multi_hyperplane._rival_of.py_func(0, best, np.arange(3), counts, 5) == 2
    assert multi_hyperplane._rival_of.py_func(0, best, np.arange(3), np.array([1, 4, 5]), 5) == 1


def test_an_inner_row_is_skipped_as_long_as_each_plane_allows():
    """The first plane would allow 31 passes, the last one none."""
    score, movement = np.array([-90.0, -30.0, -11.0]), np.full(3, 1.0)
    skip = passes_to_skip
    assert skip(score, 2, False, 10.0, 1.0, movement, 31) == 0
    assert skip(score[:2], 1, False, 10.0, 1.0, movement[:2], 31) == 31
    assert skip(score, 2, False, 10.0, 1.0, np.array([1.0, 1.0, 0.01]), 31) == 31
    assert skip(score, 2, False, 10.0, 1.0, np.array([1e3, 1.0, 0.01]), 31) == 0
    assert skip(np.array([5.0, 30.0]), 1, True, 10.0, 1.0, np.array([1e3, 1.0]), 31) == 31


def test_recording_a_row_keeps_the_sum_of_n_log_n():
    rng, counts, sums = np.random.default_rng(0), np.zeros(4, dtype=np.int64), np.zeros(2)
    memory = convex_polytope.Memory(np.full(60, -1, dtype=np.int32), counts, sums)
    for _ in range(300):
        assign(rng.normal(size=4), rng.integers(60), rng.integers(4), memory, 1.2)
    np.testing.assert_array_equal(counts, np.bincount(memory.recorded[memory.recorded >= 0], minlength=4))
    assert sums[0] == counts.sum()
    assert sums[1] == pytest.approx(sum(n * np.log(n) for n in counts if n))


def test_a_row_is_skipped_as_long_as_its_margin_outlasts_its_reach():
    """The third row keeps its margin for 26 visits, the others with a reach below 0.2 for more than the maximum."""
    x, reach = np.array([1.0, 3.0, 6.0, 6.0, 2.0]), np.array([0.25, 0.25, 0.1875, 0.125, 0.0])
    skip, planes = np.zeros(5, dtype=np.uint8), PlaneSums(np.array([[1.0, 0.0]]), np.zeros(2), 1.0)
    targets = multi_hyperplane.Targets(np.zeros(5, dtype=int), np.ones(5))
    clocks = multi_hyperplane.Clocks(skip, reach, 31, 0, Checks(0.1, np.zeros(2)))
    steps, rows = multi_hyperplane.StepSize(0.1, 0.0), DenseRows(x[:, None])
    multi_hyperplane.margin_epoch(rows, np.arange(5), planes, np.arange(2), targets, clocks, steps, np.empty(2))
    assert skip.tolist() == [0, 8, 26, 31, 31]


@pytest.mark.parametrize("slopes", [[1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [2.0, 4.0, 1.0]])
def test_lines_through_one_point_make_one_kink(slopes):
    """The slope of the risk jumps once at 0.5, to that of the steepest line of the first row, and once at 1."""
    change, at, rise = np.array([slopes, [1.0, 0.0, -1.0]]), np.empty(4), np.empty(4)
    current = np.array([[-0.5], [-1.0]]) * np.abs(change)
    n = cutting_plane.kinks(current, current + change, np.array([3.0, 2.0]), 2.0, at, rise)
    np.testing.assert_array_equal(at[:n], [0.5, 1.0])
    np.testing.assert_array_equal(rise[:n], [12.0, 2.0])
