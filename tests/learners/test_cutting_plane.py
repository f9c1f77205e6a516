import gc
import pickle
import tracemalloc
import warnings
from copy import copy, deepcopy
from dataclasses import replace
from itertools import repeat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import LinearSVC

from polyplane import CuttingPlaneSVC, load, save
from polyplane._array_api import ThreadPool
from polyplane.dask.methods import check_method, on_cluster
from polyplane.dask.partitions import Partition
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.kernels.cutting_plane import first_zero
from polyplane.learners.cuts import Bundle
from polyplane.learners.cutting_plane import CuttingPlane
from polyplane.learners.row_sums import RowSums
from tests.reference import cutting_plane as reference

SEARCHES = ["three-point", "exact", "non-greedy", "none"]
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def objective(coef, intercept, X, y, C, weight=None):
    """The objective by its definition; `y` holds signs for one plane, classes for more."""
    scores = np.asarray(X @ np.atleast_2d(coef).T + intercept, dtype=np.float64)
    rows = np.arange(len(y))
    if scores.shape[1] == 1:
        losses = np.maximum(0, 1 - y * scores[:, 0])
    else:
        losses = (scores - scores[rows, y][:, None] + (np.arange(scores.shape[1]) != y[:, None])).max(axis=1)
    coef, intercept = np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
    return ((coef**2).sum() + (intercept**2).sum()) / 2 + C * np.average(losses, weights=weight) * (
        len(y) if weight is None else weight.sum()
    )


def objective_of(machine, X, y, weight=None):
    if len(machine.classes_) == 2:
        sign = np.where(y == machine.classes_[1], 1, -1)
        return objective(machine.coef_, machine.intercept_, X, sign, machine.C, weight)
    codes = np.searchsorted(machine.classes_, y)
    return objective(machine.coef_, machine.intercept_, X, codes, machine.C, weight)


def noisy(n_rows=300, n_features=8, n_classes=2, seed=0):
    return make_classification(
        n_rows,
        n_features,
        n_informative=n_features - 2,
        n_classes=n_classes,
        flip_y=0.1,
        class_sep=0.8,
        random_state=seed,
    )


def hopeless(n_rows=300, seed=0):
    """Ten ranks, and labels that have nothing to do with them, in the shares of POKER: as a plane sees it."""
    rng = np.random.default_rng(seed)
    ranks, classes = rng.integers(1, 14, (n_rows, 10)).astype(float), np.arange(5)
    return ranks, np.r_[classes, rng.choice(classes, n_rows - 5, p=[0.5, 0.42, 0.05, 0.02, 0.01])]


def binary_sets():
    """Eight sets: dense and sparse, easy and noisy, wide and narrow."""
    digits, digit = load_digits(return_X_y=True)
    cancer, malignant = load_breast_cancer(return_X_y=True)
    wine, kind = load_wine(return_X_y=True)
    iris, species = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    words = normalize(sparse.csr_matrix(rng.random((400, 900)) * (rng.random((400, 900)) < 0.02)))
    topic = np.asarray(words @ rng.normal(size=900) > 0)
    return {
        "cancer": (StandardScaler().fit_transform(cancer), malignant),
        "wine": (StandardScaler().fit_transform(wine), kind == 1),
        "iris": (iris, species == 1),
        "digits": (digits / 16, digit % 2),
        "digits, sparse": (sparse.csr_matrix(digits / 16), digit == 8),
        "noisy": noisy(1000, 12),
        "noisy, sparse": (sparse.csr_array(np.where(np.abs(noisy()[0]) < 1, 0, noisy()[0])), noisy()[1]),
        "words": (words, topic),
    }


BINARY_SETS = binary_sets()


class TestPaper:
    """The learner makes the iterations of the paper, one by one."""

    @pytest.mark.parametrize("line_search", SEARCHES)
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize(
        ("container", "cut_point"), [(np.asarray, 0.1), (sparse.csr_matrix, 0.1), (np.asarray, 0.6)]
    )
    def test_bounds_are_those_of_the_reference(self, line_search, n_classes, container, cut_point):
        X, y = noisy(120, 5, n_classes)
        C_paper, n_iter = 40.0, 12
        constant = np.column_stack([X, np.ones(len(y))])
        problem = reference.TwoClasses(constant, 2 * y - 1) if n_classes == 2 else reference.ManyClasses(constant, y)
        search = getattr(reference, line_search.replace("-", "_"))
        expected, best = reference.optimise(problem, C_paper, search, n_iter + 1, cut_point)
        machine = CuttingPlaneSVC(
            C=C_paper / len(y), line_search=line_search, cut_point=cut_point, tol=1e-12, max_iter=n_iter
        )
        with pytest.warns(ConvergenceWarning):
            machine.fit(container(X), y)
        # The paper's first iteration, before there is a cut, has no counterpart.
        np.testing.assert_allclose(machine.history_["primal"], expected[1:, 0], rtol=1e-9)
        np.testing.assert_allclose(machine.history_["dual"], expected[1:, 1], rtol=1e-9)
        planes = np.column_stack([machine.coef_, machine.intercept_])
        np.testing.assert_allclose(planes, np.atleast_2d(best), atol=1e-5)

    def test_searches_differ_before_they_agree(self):
        """The comparison above would be void if all searches took the same steps."""
        X, y = noisy(120, 5)
        first = [
            CuttingPlaneSVC(C=1 / 3, line_search=s, tol=None, max_iter=4).fit(X, y).history_["primal"][-1]
            for s in ("three-point", "exact", "none")
        ]
        assert len({round(value, 4) for value in first}) == 3

    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    def test_the_non_greedy_search_moves_on_where_the_exact_one_stands_still(self, container):
        """Section 4.2 in small: labels without a rule. The planes are at first the zero planes, which are best."""
        X, y = hopeless()
        constant = np.column_stack([X, np.ones(len(y))])
        problem, C_paper, n_iter = reference.ManyClasses(constant, y), 40.0, 12
        expected, _ = reference.optimise(problem, C_paper, reference.non_greedy, n_iter + 1)
        machine = CuttingPlaneSVC(C=C_paper / len(y), line_search="non-greedy", tol=None, max_iter=n_iter)
        machine.fit(container(X), y)
        np.testing.assert_allclose(machine.history_["primal"], expected[1:, 0], rtol=1e-9)
        np.testing.assert_allclose(machine.history_["dual"], expected[1:, 1], rtol=1e-9)
        greedy = CuttingPlaneSVC(C=C_paper / len(y), line_search="exact", tol=None, max_iter=n_iter).fit(X, y)
        assert greedy.history_["dual"] != machine.history_["dual"]

    def test_standing_still_costs_cuts(self):
        X, y = hopeless(1500)
        machines = {s: CuttingPlaneSVC(line_search=s).fit(X, y) for s in ("exact", "non-greedy")}
        assert all(machine.gap_ < 0.01 for machine in machines.values())
        assert machines["non-greedy"].n_iter_ < 0.3 * machines["exact"].n_iter_

    def test_cuts_elsewhere_take_another_way_to_the_same_optimum(self):
        X, y = noisy(300, 6)
        machines = [CuttingPlaneSVC(C=0.1, cut_point=at, tol=1e-5).fit(X, y) for at in (0.02, 0.1, 1.0)]
        assert len({machine.n_iter_ for machine in machines}) == 3
        for machine in machines[1:]:
            np.testing.assert_allclose(machine.coef_, machines[0].coef_, atol=1e-2)


@pytest.mark.parametrize("name", BINARY_SETS)
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_two_classes_reach_the_optimum_within_tol(name, tol):
    X, y = BINARY_SETS[name]
    sign = 2 * np.asarray(y, dtype=int) - 1
    C = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = LinearSVC(loss="hinge", C=C, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)
    optimum = objective(peer.coef_, peer.intercept_, X, sign, C)
    machine = CuttingPlaneSVC(C=C, tol=tol).fit(X, y)
    reached = objective_of(machine, X, y)
    assert 1 - optimum / reached < tol
    assert machine.gap_ < tol
    assert reached == pytest.approx(machine.history_["primal"][-1], rel=1e-9)
    # The certificate holds for any planes, so for those of the peer.
    assert machine.history_["dual"][-1] <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", ["digits", "iris"])
def test_many_classes_reach_the_optimum_within_tol(name, container, tol):
    X, y = load_digits(return_X_y=True) if name == "digits" else load_iris(return_X_y=True)
    X = container(X / 16)
    C = 0.02
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the peer's own: 1e-8 is a lot to ask of it
        peer = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    optimum = objective(peer.coef_, peer.intercept_, X, y, C)
    machine = CuttingPlaneSVC(C=C, tol=tol).fit(X, y)
    assert 1 - optimum / objective_of(machine, X, y) < tol
    assert machine.history_["dual"][-1] <= optimum * (1 + 1e-9)


def test_one_against_the_rest_is_one_svm_per_class():
    X, y = load_iris(return_X_y=True)
    machine = CuttingPlaneSVC(C=0.5, multi_class="ovr", tol=1e-3).fit(X, y)
    total = 0.0
    for c in range(3):
        alone = CuttingPlaneSVC(C=0.5, tol=1e-3).fit(X, y == c)
        np.testing.assert_array_equal(machine.coef_[c], alone.coef_[0])
        np.testing.assert_array_equal(machine.intercept_[c], alone.intercept_[0])
        total += alone.history_["primal"][-1]
    assert machine.history_["primal"][-1] == pytest.approx(total)
    assert machine.gap_ < 1e-3
    joint = CuttingPlaneSVC(C=0.5, multi_class="crammer_singer").fit(X, y)
    assert not np.allclose(joint.coef_, machine.coef_, atol=1e-2)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_line_searches_agree_within_tol(n_classes):
    X, y = noisy(500, 10, n_classes)
    machines = [CuttingPlaneSVC(C=0.1, line_search=s, tol=1e-3).fit(X, y) for s in SEARCHES]
    values = [objective_of(machine, X, y) for machine in machines]
    assert max(values) * (1 - 1e-3) < min(values)
    *searched, none = (machine.n_iter_ for machine in machines)
    assert max(searched) < none


class TestCertificate:
    @QUICK
    @given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 12), st.sampled_from(SEARCHES))
    def test_no_planes_are_better_than_the_bound(self, seed, n_classes, n_iter, line_search):
        rng = np.random.default_rng(seed)
        n_rows, n_features = rng.integers(12, 60), rng.integers(1, 6)
        X = rng.normal(size=(n_rows, n_features)) * 10 ** rng.uniform(-1, 1)
        y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)]
        weight, C = rng.uniform(0.1, 2, n_rows), 10 ** rng.uniform(-3, 1)
        machine = CuttingPlaneSVC(C=C, line_search=line_search, tol=None, max_iter=n_iter).fit(X, y, weight)
        bound = (1 - machine.gap_) * objective_of(machine, X, y, weight)
        assert bound == pytest.approx(machine.history_["dual"][-1], rel=1e-6, abs=1e-9)
        # Planes near the optimum are the hardest to stay below: those of a long run, and points about them.
        best = CuttingPlaneSVC(C=C, tol=None, max_iter=120).fit(X, y, weight)
        codes = 2 * y - 1 if n_classes == 2 else y
        planes = [np.column_stack([m.coef_, m.intercept_]) for m in (best, machine)]
        for share in np.linspace(-0.5, 1.5, 9):
            other = (1 - share) * planes[0] + share * planes[1]
            assert objective(other[:, :-1], other[:, -1], X, codes, C, weight) >= bound * (1 - 1e-9)

    @pytest.mark.parametrize("line_search", SEARCHES)
    def test_bounds_close_in(self, line_search):
        X, y = noisy(400, 10)
        history = CuttingPlaneSVC(C=1.0, line_search=line_search, tol=1e-4).fit(X, y).history_
        primal, dual = np.array(history["primal"]), np.array(history["dual"])
        assert (np.diff(primal) <= 1e-9 * primal[:-1]).all()
        assert (np.diff(dual) >= 0).all()  # also where idle cuts are dropped
        np.testing.assert_allclose(1 - dual / primal, history["gap"])
        made = np.arange(len(dual)) + 2
        if line_search == "none":
            assert (np.array(history["cuts"]) < made).any()

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_float32_rows_are_certified_as_stored(self, n_classes):
        X, y = noisy(3000, 12, n_classes)
        X = X.astype(np.float32)
        machine = CuttingPlaneSVC(C=1.0, tol=1e-5).fit(X, y)
        assert machine.coef_.dtype == np.float32
        exact = objective_of(machine, X.astype(np.float64), y)
        assert machine.history_["primal"][-1] == pytest.approx(exact, rel=1e-7)
        double = CuttingPlaneSVC(C=1.0, tol=1e-7).fit(X.astype(np.float64), y)
        assert 1 - objective_of(double, X, y) / exact < 1e-5


class TestExactSearch:
    @QUICK
    @given(st.integers(0, 10_000), st.sampled_from([1, 2, 3, 6]), st.booleans())
    def test_the_subgradient_contains_zero(self, seed, n_columns, from_zero):
        from polyplane.learners.cuts import Line, _exact

        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(40, 3)), 1)
        target = rng.choice([-1, 1], 40) if n_columns == 1 else rng.integers(0, n_columns, 40)
        weight, C = rng.uniform(0, 2, 40), 10 ** rng.uniform(-3, 1)
        sums = RowSums(X, target.astype(np.int32), weight, n_columns, 1.0, ThreadPool(1))
        current, candidate = rng.normal(size=(2, n_columns, 4))
        current *= not from_zero  # all losses have a kink at 0
        sums.set_current(current)
        sums.set_candidate(candidate)
        line = Line(current, candidate, C, sums)
        mu, value = _exact(line, 1.0)
        pieces = np.concatenate([sums.current[:, :, None], (sums.candidate - sums.current)[:, :, None]], axis=2)
        pieces = np.concatenate([pieces, np.zeros((40, 1, 2))], axis=1)
        heights = pieces[:, :, 0] + mu * pieces[:, :, 1]
        largest = heights >= heights.max(axis=1, keepdims=True) - 1e-9
        right = np.where(largest, pieces[:, :, 1], -np.inf).max(axis=1)
        left = np.where(largest, pieces[:, :, 1], np.inf).min(axis=1)
        smooth = line.slope + mu * line.curvature
        assert smooth + C * (weight @ right) >= -1e-9
        assert mu == 0 or smooth + C * (weight @ left) <= 1e-9
        assert value == pytest.approx(line.objectives(mu)[0])
        assert value <= min(line.objectives(*(mu * np.linspace(0, 2, 21)))) + 1e-9

    def test_the_zero_of_a_slope_is_found(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            at, rise = np.sort(rng.uniform(0, 2, 7)), rng.uniform(0, 1, 7)
            slope, curvature = -rng.uniform(0, 4), rng.uniform(0.1, 2)
            mu = first_zero(at, rise, slope, curvature)
            before, after = (slope + curvature * mu + rise[passed].sum() for passed in (at < mu, at <= mu))
            assert before <= 1e-12 <= after + 2e-12

    def test_a_slope_that_rises_from_the_start_has_its_zero_there(self):
        assert first_zero(np.array([0.5]), np.array([1.0]), 0.0, 1.0) == 0.0


class TestBundle:
    @QUICK
    @given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 30))
    def test_solutions_are_optimal(self, seed, n_features, n_cuts):
        """Also with repeated cuts and more cuts than dimensions, where the Gram matrix is singular."""
        rng = np.random.default_rng(seed)
        bundle, C = Bundle.empty((1, n_features)), 10 ** rng.uniform(-2, 2)
        cuts = []
        for _ in range(n_cuts):
            cut = (
                cuts[rng.integers(len(cuts))]
                if cuts and rng.random() < 0.2
                else (rng.normal(size=n_features), rng.random())
            )
            cuts.append(cut)
            bundle, planes, bound = bundle.with_cut(cut[0][None], cut[1]).solve(C, 1e-12)
        w = planes[0]
        value = w @ w / 2 + C * max(0.0, max(a @ w + b for a, b in cuts))
        # No duality gap between the planes and the bound: both are optimal.
        assert bound == pytest.approx(value, rel=1e-8, abs=1e-9)

    def test_agrees_with_the_reference(self):
        rng = np.random.default_rng(0)
        cuts = [(rng.normal(size=(1, 6)), float(rng.random())) for _ in range(12)]
        bundle = Bundle.empty((1, 6))
        for cut in cuts:
            bundle = bundle.with_cut(*cut)
        _, planes, bound = bundle.solve(2.0, 1e-13)
        expected, value = reference.reduced_problem(cuts, 2.0, (1, 6))
        np.testing.assert_allclose(planes, expected, atol=1e-6)
        assert bound == pytest.approx(value, rel=1e-10)

    def test_dropping_idle_cuts_keeps_the_bound(self):
        rng = np.random.default_rng(1)
        bundle = Bundle.empty((1, 5))
        for _ in range(20):
            bundle = bundle.with_cut(rng.normal(size=(1, 5)), float(rng.random()))
        bundle, first_planes, first_bound = bundle.solve(1.0, 1e-12)
        for _ in range(60):
            bundle, planes, bound = bundle.solve(1.0, 1e-12)
        assert bundle.n_cuts < 20
        assert bound == pytest.approx(first_bound, rel=1e-12)
        np.testing.assert_allclose(planes, first_planes, atol=1e-9)

    def test_a_bundle_is_a_value(self):
        """What is made of a bundle, growing and dropping included, leaves it as it is."""
        rng = np.random.default_rng(2)
        bundle, seen = Bundle.empty((2, 3)), []
        for _ in range(70):
            seen.append((bundle, deepcopy(bundle)))
            bundle, _, _ = bundle.with_cut(rng.normal(size=(2, 3)), float(rng.random())).solve(0.5, 1e-12)
        assert bundle.n_cuts < bundle.solved
        assert bundle.capacity > 8
        for now, then in seen:
            for name in ("normals", "offsets", "gram", "x", "idle", "support", "factor"):
                np.testing.assert_array_equal(getattr(now, name), getattr(then, name))

    @pytest.mark.parametrize(
        "damage",
        [
            {"support": np.array([], dtype=np.int64), "factor": np.zeros((0, 0))},
            {"support": np.array([1, 1]), "factor": np.eye(2)},
            {"support": np.array([-1]), "factor": np.eye(1)},
            {"x": np.zeros(4), "idle": np.zeros(4, dtype=np.int64)},
            {"capacity": 2},
        ],
    )
    def test_a_bundle_that_cannot_be_is_known(self, damage):
        bundle = Bundle.empty((1, 2)).with_cut(np.ones((1, 2)), 1.0).with_cut(np.eye(1, 2), 1.0)
        assert bundle.check({})
        assert not replace(bundle, **damage).check({})

    @QUICK
    @given(st.integers(0, 10_000))
    def test_numbers_without_sense_do_no_harm(self, seed):
        """A file may hold any: the kernels write where there is room."""
        rng = np.random.default_rng(seed)
        n, used = 6, int(rng.integers(1, 7))
        cuts = [(rng.normal(size=(1, 3)), float(rng.normal())) for _ in range(n - 1)]
        bundle = Bundle.empty((1, 3))
        for cut in cuts:
            bundle = bundle.with_cut(*cut)
        x, factor = rng.choice([0.0, 1.0, -1.0, np.nan, 1e300], n), rng.choice([0.0, 1.0, -2.0, np.nan], (used, used))
        support, idle = rng.permutation(n)[:used], np.zeros(n, dtype=np.int64)
        damaged = replace(bundle, x=x, idle=idle, support=support, factor=factor, solved=int(rng.integers(2)))
        with np.errstate(all="ignore"):
            solved, _, _ = damaged.solve(1.0, 1e-9)
        assert len(solved.support) <= n

    def test_ways_that_part_do_not_meet(self):
        cuts = [(np.full((1, 2), value), 1.0) for value in (1.0, 2.0, 3.0)]
        common = Bundle.empty((1, 2)).with_cut(*cuts[0])
        one, other = common.in_new_arrays().with_cut(*cuts[1]), common.in_new_arrays().with_cut(*cuts[2])
        assert one.normals[2, 0, 0] == 2.0
        assert other.normals[2, 0, 0] == 3.0


class TestRowSums:
    @pytest.mark.parametrize("n_planes", [1, 4])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, "csr64"])
    def test_cuts_are_subgradients(self, n_planes, dtype, container):
        """Also after many steps, as each is made from the one before, and from blocks of rows."""
        rng = np.random.default_rng(0)
        X = (rng.normal(size=(9000, 7)) * (rng.random((9000, 7)) < 0.5)).astype(dtype)
        target = (rng.choice([-1, 1], 9000) if n_planes == 1 else rng.integers(0, n_planes, 9000)).astype(np.int32)
        weight = rng.uniform(0, 1, 9000)
        matrix = X
        if container == "csr64":
            matrix = sparse.csr_array(X)
            matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        elif container is not np.asarray:
            matrix = container(X)
        sums = RowSums(matrix, target, weight, n_planes, 1.0, ThreadPool(2))
        assert len(sums.blocks) > 1
        for _ in range(4):
            planes = rng.normal(size=(n_planes, 8))
            sums.set_current(planes)
            normal, offset = sums.cut(0.0)
            risk = float(sums.risks([0.0])[0])
            assert (normal * planes).sum() + offset == pytest.approx(risk, rel=1e-5 if dtype == np.float32 else 1e-10)
        # The last one against the definition.
        scores = X @ planes[:, :-1].T + planes[:, -1]
        G = np.zeros((9000, n_planes))
        if n_planes == 1:
            G[:, 0] = -target * weight * (target * scores[:, 0] <= 1)
        else:
            every = np.arange(9000)
            gaps = scores - scores[every, target][:, None] + 1
            gaps[every, target] = -np.inf
            violated = gaps.max(axis=1) >= 0
            G[every, gaps.argmax(axis=1)] += weight * violated
            G[every, target] -= weight * violated
        expected = np.column_stack([G.T @ X.astype(np.float64), G.sum(axis=0)])
        np.testing.assert_allclose(normal, expected, atol=1e-3 if dtype == np.float32 else 1e-9)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_threads_do_not_change_the_planes(self, n_classes):
        X, y = noisy(20_000, 6, n_classes)
        for multi_class in ("crammer_singer", "ovr"):
            one, two = (CuttingPlaneSVC(C=1e-3, multi_class=multi_class, n_jobs=n).fit(X, y) for n in (1, 2))
            assert one.planes_ == two.planes_
            assert one.history_["dual"] == two.history_["dual"]

    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_rows_are_not_copied(self, container, n_classes):
        rng = np.random.default_rng(0)
        X = container(rng.normal(size=(20_000, 200)).astype(np.float32))
        y = rng.integers(0, n_classes, 20_000)
        size = X.nbytes if n_classes and isinstance(X, np.ndarray) else X.data.nbytes
        machine = CuttingPlaneSVC(C=1e-4, tol=None, max_iter=10)
        machine.fit(X[:100], y[:100])  # compile first
        gc.collect()
        tracemalloc.start()
        machine.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        vectors = 20_000 * (2 * n_classes * 4 + 64)
        assert peak < vectors + 1e6 < size


class TestWarmStart:
    def test_goes_on_where_it_stopped(self):
        X, y = noisy(500, 10)
        whole = CuttingPlaneSVC(C=1.0, tol=1e-4).fit(X, y)
        parts = CuttingPlaneSVC(C=1.0, tol=1e-2, warm_start=True).fit(X, y)
        first = parts.n_iter_
        parts.set_params(tol=1e-4).fit(X, y)
        assert parts.gap_ < 1e-4
        assert first + parts.n_iter_ < 1.5 * whole.n_iter_
        assert parts.n_iter_ < whole.n_iter_

    def test_cuts_serve_another_c(self):
        X, y = noisy(500, 10)
        path = CuttingPlaneSVC(C=1.0, tol=1e-3, warm_start=True).fit(X, y)
        path.set_params(C=0.5).fit(X, y)
        cold = CuttingPlaneSVC(C=0.5, tol=1e-3).fit(X, y)
        assert path.n_iter_ < cold.n_iter_
        assert path.gap_ < 1e-3
        assert objective_of(path, X, y) * (1 - 1e-3) <= objective_of(cold, X, y)

    def test_cuts_about_other_rows_are_forgotten(self):
        X, y = noisy(500, 10)
        machine = CuttingPlaneSVC(C=1.0, tol=1e-3, warm_start=True).fit(X, y)
        for other in ((-X, y, None), (X, 1 - y, None), (X, y, np.linspace(0.1, 1, 500))):
            machine.fit(*other)
            best = CuttingPlaneSVC(C=1.0, tol=1e-6).fit(*other)
            assert objective_of(machine, *other) * (1 - 1e-3) <= objective_of(best, *other)

    def test_cuts_about_another_problem_are_forgotten(self):
        X, y = noisy(500, 10, 3)
        machine = CuttingPlaneSVC(C=0.1, tol=1e-3, warm_start=True).fit(X + 0.3, y)
        for change in ({"multi_class": "ovr"}, {"fit_intercept": False}, {"multi_class": "crammer_singer"}):
            machine.set_params(**change).fit(X + 0.3, y)
            cold = CuttingPlaneSVC(**machine.get_params()).set_params(tol=1e-5).fit(X + 0.3, y)
            assert machine.history_["dual"][-1] <= cold.history_["primal"][-1]
            assert machine.history_["primal"][-1] * (1 - 1e-3) <= cold.history_["primal"][-1]
            np.testing.assert_allclose(machine.coef_, cold.coef_, atol=0.05)
        assert (machine.intercept_ == 0).all()

    def test_copies_go_their_own_ways(self):
        X, y = noisy(500, 10)
        first = CuttingPlaneSVC(C=1.0, tol=None, max_iter=5, warm_start=True).fit(X, y)
        twin, second = deepcopy(first), copy(first).set_params(C=0.1)
        second.fit(X, y)
        assert first.fit(X, y).planes_ == twin.fit(X, y).planes_
        assert first.history_["dual"] == twin.history_["dual"]

    def test_the_cuts_go_to_a_file_and_back(self, tmp_path):
        X, y = noisy(500, 10)
        machine = CuttingPlaneSVC(C=1.0, line_search="none", tol=None, max_iter=60, warm_start=True).fit(X, y)
        save(machine, tmp_path / "svm")
        again = load(tmp_path / "svm")
        assert again.n_cuts_ == machine.n_cuts_ == 61
        assert again.gap_ == machine.gap_
        for svm in (machine, again):
            svm.set_params(max_iter=30).fit(X, y)
        assert again.planes_ == machine.planes_
        assert again.history_["dual"] == machine.history_["dual"]

    def test_without_it_no_cuts_are_kept(self):
        X, y = noisy(300, 60)
        cold, warm = (CuttingPlaneSVC(C=1.0, warm_start=w).fit(X, y) for w in (False, True))
        assert len(pickle.dumps(cold)) < 0.5 * len(pickle.dumps(warm))


def test_weights_are_repetitions():
    X, y = noisy(200, 6, 3)
    times = np.random.default_rng(0).integers(0, 4, 200)
    weighted = CuttingPlaneSVC(C=0.05, tol=1e-6).fit(X, y, sample_weight=times)
    repeated = CuttingPlaneSVC(C=0.05, tol=1e-6).fit(X.repeat(times, axis=0), y.repeat(times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_no_intercept_means_none():
    X, y = noisy(300, 6)
    machine = CuttingPlaneSVC(C=0.1, fit_intercept=False, tol=1e-4).fit(X + 0.5, y)
    assert (machine.intercept_ == 0).all()
    peer = LinearSVC(loss="hinge", C=0.1, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X + 0.5, y)
    optimum = objective(peer.coef_, 0.0, X + 0.5, 2 * y - 1, 0.1)
    assert 1 - optimum / objective_of(machine, X + 0.5, y) < 1e-4


def test_the_history_says_where_the_time_went():
    X, y = noisy(2000, 20)
    machine = CuttingPlaneSVC(C=1.0).fit(X, y)
    parts = {"outputs", "line_search", "cut", "qp"}
    assert {"time", "primal", "dual", "gap", "cuts"} | parts == set(machine.history_)
    assert 0 < sum(sum(machine.history_[part]) for part in parts) <= machine.history_["time"][-1]
    assert machine.n_cuts_ == machine.n_iter_ + 1


def test_it_does_not_pretend_to_learn_from_streams():
    """Cuts bound the losses of their own rows: one step on other rows was worse than those rows alone."""
    machine = CuttingPlaneSVC().fit(*noisy())
    assert not hasattr(machine, "partial_fit")
    assert not hasattr(machine, "fit_stream")


class Partitions:
    """A cluster in this process."""

    def __init__(self, X, y, n_partitions):
        self.classes, codes = np.unique(y, return_inverse=True)
        self.n_features, self.dtype = X.shape[1], X.dtype
        self.partitions = []
        for rows in np.array_split(np.arange(len(y)), n_partitions):
            data = Data(X[rows], codes[rows], np.ones(len(rows)), np.arange(len(rows)), len(self.classes))
            self.partitions.append(Partition(data, None, len(self.partitions)))

    def map(self, function, *arguments):
        return [function(partition, *arguments) for partition in self.partitions]

    def sum(self, function, *arguments):
        return [sum(parts) for parts in zip(*self.map(function, *arguments), strict=True)]


class TestOnCluster:
    @pytest.mark.parametrize("line_search", ["three-point", "none"])
    @pytest.mark.parametrize(("n_classes", "multi_class"), [(2, "crammer_singer"), (3, "crammer_singer"), (3, "ovr")])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    def test_the_sums_of_partitions_are_those_of_all_rows(self, line_search, n_classes, multi_class, container):
        X, y = noisy(300, 6, n_classes)
        machine = CuttingPlaneSVC(C=0.05, multi_class=multi_class, line_search=line_search, tol=1e-3)
        method = machine._method(np.unique(y))
        on_partitions, stand_in, n_steps = on_cluster(method, Partitions(container(X), y, 3), 1, machine.max_iter, None)
        run = Run(on_partitions).go(repeat(stand_in, n_steps))
        assert run.reason == "converged"
        machine.fit(container(X), y)
        assert run.n_steps == machine.n_iter_
        found = method.planes(run.state)
        np.testing.assert_allclose(found.coef, machine.planes_.coef, atol=1e-9)
        np.testing.assert_allclose(found.intercept, machine.planes_.intercept, atol=1e-9)
        np.testing.assert_allclose(run.history["dual"], machine.history_["dual"], rtol=1e-9)

    @pytest.mark.parametrize("line_search", ["exact", "non-greedy"])
    def test_sorting_rows_is_refused(self, line_search):
        with pytest.raises(
            ValueError, match="needs all rows in one place, which is not possible on a cluster; use 'three-point'"
        ):
            check_method(CuttingPlaneSVC(), CuttingPlane(line_search=line_search))


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"C": 0.0}, "'C' parameter"),
            ({"C": -1.0}, "'C' parameter"),
            ({"tol": 0.0}, "'tol' parameter"),
            ({"tol": 1.0}, "'tol' parameter"),
            ({"line_search": "wolfe"}, "'line_search' parameter"),
            ({"cut_point": 0.0}, "'cut_point' parameter"),
            ({"cut_point": 1.1}, "'cut_point' parameter"),
            ({"multi_class": "ovo"}, "'multi_class' parameter"),
            ({"max_iter": 0}, "'max_iter' parameter"),
        ],
    )
    def test_bad_parameters_are_named(self, params, message):
        with pytest.raises(ValueError, match=message):
            CuttingPlaneSVC(**params).fit(*noisy())

    def test_running_out_of_cuts_says_how_far_it_got(self):
        X, y = noisy()
        machine = CuttingPlaneSVC(C=1.0, tol=1e-3, max_iter=5)
        with pytest.warns(
            ConvergenceWarning, match=r"max_iter=5 cuts .* within 0\.\d+ of the optimum, not .* tol=0.001"
        ):
            machine.fit(X, y)
        assert 1e-3 < machine.gap_ < 1
        assert machine.score(X, y) > 0.6

    def test_one_label_and_no_rows_are_refused(self):
        X, y = noisy()
        with pytest.raises(ValueError, match="only one class, "):
            CuttingPlaneSVC().fit(X, np.zeros(len(y)))
        with pytest.raises(ValueError, match="0 sample"):
            CuttingPlaneSVC().fit(X[:0], y[:0])

    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_rows_of_zeros_are_rows(self, container, n_classes):
        y = np.arange(30) % n_classes
        machine = CuttingPlaneSVC().fit(container(np.zeros((30, 4))), y)
        assert machine.gap_ < 0.01
        np.testing.assert_array_equal(machine.coef_, 0)
