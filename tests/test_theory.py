"""The papers' theorems on fitted machines: against plain loops, and by what the theorems imply."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.preprocessing import StandardScaler

from polyplane import (
    ConvexPolytopeClassifier,
    MultiHyperplaneClassifier,
    PlaneSet,
    PolyhedralMixtureClassifier,
    WorstCasePolytopeClassifier,
)
from polyplane.theory import (
    growth_regret,
    mixture_bound,
    multi_hyperplane_bound,
    polytope_bound,
    polytope_margins,
    tangent_planes,
)
from tests.reference.mixture_bound import theorem_5

INSIDE = (np.zeros((1, 2)), np.zeros(1))
AROUND = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([-1.0, -1.0, -1.0, -1.0]))
SQUARE = PlaneSet.of_classes([INSIDE, AROUND])


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :8], y


@pytest.fixture(scope="module")
def polytope(rows):
    return ConvexPolytopeClassifier(4, enclosed=1, alpha=1e-2, max_iter=20, random_state=0).fit(*rows).planes_


@pytest.fixture(scope="module")
def mixture(rows):
    return PolyhedralMixtureClassifier(3, gamma=2.0, random_state=0).fit(*rows).planes_


def scaled(planes, factors):
    factors = np.broadcast_to(factors, planes.n_planes)
    return PlaneSet(planes.coef * factors[:, None], planes.intercept * factors, planes.indptr)


class TestPolytopeMargins:
    def test_against_the_definition(self, rows, polytope):
        X, y = rows
        W = np.column_stack(polytope.of(0))
        W /= np.sqrt((W**2).sum(axis=1))[:, None]
        by_plane = {}
        for x, sign in zip(np.column_stack([X, np.ones(len(X))]), np.where(y == 0, 1, -1), strict=True):
            z = max(range(len(W)), key=lambda k: W[k] @ x)
            by_plane.setdefault(z, []).append(sign * (W[z] @ x))
        margins = polytope_margins(polytope, X, y)
        assert margins.worst_case == pytest.approx(min(min(values) for values in by_plane.values()))
        assert margins.total == pytest.approx(sum(min(values) for values in by_plane.values()))
        assert dict(enumerate(margins.counts)) == {k: len(by_plane.get(k, [])) for k in range(4)}

    def test_lengths_of_planes_do_not_matter(self, rows, polytope):
        expected = polytope_margins(polytope, *rows)
        for factors in (0.01, np.array([3.0, 7.0, 0.5, 11.0, 2.0])):
            margins = polytope_margins(scaled(polytope, factors), *rows)
            assert margins.worst_case == pytest.approx(expected.worst_case)
            np.testing.assert_allclose(margins.by_plane, expected.by_plane)

    def test_a_separable_square_has_positive_margins(self):
        X, y = [[0.0, 0.0], [3.0, 0.0], [0.0, -2.0]], [0, 1, 1]
        margins = polytope_margins(SQUARE, X, y)
        root = math.sqrt(2)  # a plane of length 1 with an offset of 1
        assert margins.worst_case == pytest.approx(1 / root)
        # The row inside is assigned to the first plane of equal scores; no row is above the fourth.
        np.testing.assert_allclose(margins.by_plane * root, [1.0, 2.0, 1.0, np.inf])
        assert margins.total * root == pytest.approx(4.0)
        assert margins.counts.tolist() == [1, 1, 1, 0]

    def test_one_plane_has_one_margin(self, rows):
        """For K = 1 both are the SVM's margin, and negative where rows overlap."""
        X, y = rows
        line = PlaneSet(np.array([np.zeros(8), -np.ones(8)]), np.array([0.0, 0.5]), np.arange(3))
        margins = polytope_margins(line, X, y)
        distances = np.where(y, 1, -1) * (0.5 - X.sum(axis=1)) / math.sqrt(8.25)
        assert margins.worst_case == margins.total == pytest.approx(distances.min())
        assert margins.worst_case < 0

    def test_each_side_of_a_double_sided_machine_has_its_own(self, rows):
        X, y = rows
        planes = WorstCasePolytopeClassifier(3, max_iter=5, random_state=0).fit(X, y).planes_
        with pytest.raises(ValueError, match="with outer="):
            polytope_margins(planes, X, y)
        alone = PlaneSet.of_classes([planes.of(0), (np.zeros((1, 8)), np.zeros(1))])
        assert polytope_margins(planes, X, y, outer=0).total == polytope_margins(alone, X, y).total

    def test_a_zero_plane_has_none(self):
        with_zero = PlaneSet.of_classes([INSIDE, (np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros(2))])
        with pytest.raises(ValueError, match="Plane 1 of class 1 is zero"):
            polytope_margins(with_zero, [[1.0, 2.0]], [1])


class TestPolytopeBound:
    def test_against_the_formula(self, rows, polytope):
        X, y = rows
        W, sign = np.column_stack(polytope.of(0)), np.where(y == 0, 1, -1)
        f = (np.column_stack([X, np.ones(len(X))]) @ W.T).max(axis=1)
        bound = polytope_bound(polytope, X, y, delta=0.1, constant=3.0)
        assert bound.hinge == pytest.approx(np.mean([max(0, 1 - s * v) for s, v in zip(sign, f, strict=True)]))
        assert bound.capacity == pytest.approx(sum(np.sqrt(w @ w) for w in W) / np.sqrt(len(y)))
        assert bound.confidence == pytest.approx(np.sqrt(np.log(20) / (2 * len(y))))
        assert bound.bound == pytest.approx(bound.hinge + 3 * bound.capacity + bound.confidence)
        assert math.isnan(polytope_bound(polytope, X, y).bound)

    def test_the_hinge_bounds_the_error(self, rows, polytope):
        assert polytope_bound(polytope, *rows).hinge >= (polytope.predict(rows[0]) != rows[1]).mean()

    def test_the_papers_remark_on_the_norm(self, rows, polytope):
        """Sum of the norms <= sqrt(K) |W|."""
        W = np.column_stack(polytope.of(0))
        capacity = polytope_bound(polytope, *rows).capacity
        assert capacity <= math.sqrt(4 * (W**2).sum() / len(rows[1])) + 1e-12

    def test_falls_with_rows_and_scales_with_planes(self, rows, polytope):
        X, y = rows
        once, often = polytope_bound(polytope, X, y), polytope_bound(polytope, np.tile(X, (4, 1)), np.tile(y, 4))
        assert often.hinge == pytest.approx(once.hinge)
        assert often.capacity == pytest.approx(once.capacity / 2)
        assert often.confidence == pytest.approx(once.confidence / 2)
        assert polytope_bound(scaled(polytope, 5.0), X, y).capacity == pytest.approx(5 * once.capacity)

    def test_it_holds_on_new_rows(self):
        """With A = 2 R of the notes; rows lie within R."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(100_000, 2))
        y = (np.abs(X) > 0.6).any(axis=1).astype(int)
        machine = ConvexPolytopeClassifier(4, enclosed=0, alpha=1e-3, max_iter=2, random_state=0).fit(
            X[:90_000], y[:90_000]
        )
        bound = polytope_bound(machine.planes_, X[:90_000], y[:90_000], constant=2 * math.sqrt(3)).bound
        assert 1 - machine.score(X[90_000:], y[90_000:]) < bound < 1


class TestMultiHyperplanes:
    def test_theorem_1(self):
        X, y = make_moons(300, noise=0.4, random_state=0)
        planes = tangent_planes(1000 + X, y)
        assert planes.n_planes == 300
        assert (planes.predict(1000 + X) == y).all()
        new = make_moons(200, noise=0.4, random_state=1)[0]
        nearest = y[((new[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)]
        np.testing.assert_array_equal(tangent_planes(X, y).predict(new), nearest)

    def test_theorem_1_needs_rows_that_can_be_told_apart(self):
        with pytest.raises(ValueError, match="Rows 0 and 2 are identical but have different classes"):
            tangent_planes([[1.0], [2.0], [1.0]], [0, 1, 1])
        with pytest.raises(ValueError, match="each at least once"):
            tangent_planes([[1.0], [2.0]], [0, 2])

    def test_theorem_2_against_the_formula(self):
        lam, T, p, beta, c = 0.01, 5000, 0.3, 0.9, 7.0
        first = (2 + c) ** 2 * (2 + p / (1 - beta)) / lam
        second = (2 + c) ** 2 * (2 + p / (1 - beta)) ** 2 / (2 * T * lam)
        second *= p * (2 * beta + 3) / (1 - beta) ** 2 + np.log(T) + 1
        regret = growth_regret(lam, T, growth=p, growth_decay=beta, prune=c)
        assert regret.lasting == pytest.approx(first)
        assert regret.vanishing == pytest.approx(second)
        assert regret.bound == pytest.approx(first + second)
        # Beside the theorem: "an additional constant regret of (2 + c)^2 p / ((1 - beta) lambda)".
        assert regret.growth == pytest.approx(first - growth_regret(lam, T, growth=0, prune=c).lasting)

    def test_theorem_2_is_monotone(self):
        bounds = [growth_regret(1e-3, T).bound for T in (10, 1000, 10**6, 10**12)]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[-1] == pytest.approx(growth_regret(1e-3, 10).lasting, rel=1e-3)
        bounds = [growth_regret(1e-3, 1000, growth=p).bound for p in (0.0, 0.1, 0.2)]
        assert bounds == sorted(bounds)
        with pytest.raises(ValueError, match=r"growth_decay=1\.0 between"):
            growth_regret(1e-3, 10, growth_decay=1.0)

    def test_theorem_3_against_the_formula(self, rows):
        X, y = rows[0], np.digitize(rows[0][:, 0], [-0.5, 0.5])
        planes = MultiHyperplaneClassifier(3, loss="hinge", max_iter=5, random_state=0).fit(X, y).planes_
        sizes, N = np.diff(planes.indptr), len(y)
        K = sum(sizes[i] * sizes[j] for i in range(3) for j in range(3) if i != j)
        R = max(math.sqrt(x @ x + 1) for x in X)
        norm = R * math.sqrt((planes.coef**2).sum() + (planes.intercept**2).sum())
        bound = multi_hyperplane_bound(planes, X, y, delta=0.2)
        assert (bound.n_pairs, bound.norm) == (K, pytest.approx(norm))
        rest = (4 + 4 * K * norm) / math.sqrt(N) + (norm + 1) * math.sqrt(math.log(5) / (2 * N))
        assert bound.bound == pytest.approx((planes.predict(X) != y).mean() + rest)
        assert bound.hinge_bound == pytest.approx(np.maximum(0, 1 - planes.margins(X, y)).mean() + rest)
        assert bound.hinge >= bound.error

    def test_theorem_3_does_not_depend_on_the_unit_of_length(self, rows):
        X, y = rows
        planes = MultiHyperplaneClassifier(2, loss="hinge", max_iter=5, random_state=0).fit(X, y).planes_
        once = multi_hyperplane_bound(PlaneSet(planes.coef, 0 * planes.intercept, planes.indptr), X, y, radius=10.0)
        halved = PlaneSet(planes.coef / 2, 0 * planes.intercept, planes.indptr)
        assert multi_hyperplane_bound(halved, 2 * X, y, radius=20.0) == once
        assert multi_hyperplane_bound(planes, X, y, delta=0.01).bound > multi_hyperplane_bound(planes, X, y).bound
        fewer = planes.prune(np.arange(planes.n_planes) != 1)
        assert multi_hyperplane_bound(fewer, X, y).capacity < multi_hyperplane_bound(planes, X, y).capacity


class TestMixtureBound:
    @pytest.mark.parametrize(("gamma", "delta"), [(0.5, 0.05), (2.0, 0.1)])
    def test_against_the_theorem(self, rows, mixture, gamma, delta):
        X, y = rows[0] / 100, rows[1]  # short rows: the constants are exponential
        W, b = (-part for part in mixture.of(0))
        printed, proven = theorem_5(W, b, X, np.where(y == 1, 1, -1), gamma, delta)
        bound = mixture_bound(mixture, X, y, gamma=gamma, delta=delta)
        assert (bound.bound, bound.proof_bound) == (pytest.approx(printed), pytest.approx(proven))
        assert bound.bound == pytest.approx(bound.loss + bound.capacity + bound.confidence)
        factor = bound.confidence / (3 * math.sqrt(math.log(2 / delta) / (2 * len(y))))
        assert bound.log_factor == pytest.approx(math.log(factor))

    def test_the_loss_is_that_of_the_classifier(self, rows):
        X, y = rows
        machine = PolyhedralMixtureClassifier(3, gamma=2.0, random_state=0).fit(X, y)
        posterior = machine.mixture_proba(X)
        expected = -np.log(posterior[np.arange(len(y)), y]).mean()
        assert mixture_bound(machine.planes_, X, y, gamma=2.0).loss == pytest.approx(expected)

    def test_long_rows_give_infinite_constants_and_a_finite_logarithm(self, rows, mixture):
        bound = mixture_bound(mixture, 1000 * rows[0], rows[1])
        assert bound.bound == math.inf
        assert 700 < bound.log_factor < math.inf
        assert math.isfinite(bound.loss)

    def test_falls_with_rows_and_rises_with_the_radius(self, rows, mixture):
        X, y = rows[0] / 100, rows[1]
        once, often = mixture_bound(mixture, X, y), mixture_bound(mixture, np.tile(X, (4, 1)), np.tile(y, 4))
        assert often.capacity == pytest.approx(once.capacity / 2)
        assert mixture_bound(mixture, X, y, radius=1.0).bound > once.bound
        assert mixture_bound(mixture, X, y, gamma=0.5).log_factor < once.log_factor

    def test_needs_a_class_inside(self, rows):
        planes = tangent_planes(*rows)
        with pytest.raises(ValueError, match="own only the zero plane"):
            mixture_bound(planes, *rows)


BOUNDS = [polytope_margins, polytope_bound, multi_hyperplane_bound, mixture_bound]


@pytest.mark.parametrize("function", BOUNDS)
def test_sparse_and_float32_rows_give_the_same(function, rows, polytope):
    X, y = rows
    single = PlaneSet(polytope.coef.astype(np.float32), polytope.intercept.astype(np.float32), polytope.indptr)
    expected = vars(function(polytope, X / 50, y))
    for planes, matrix in ((polytope, sparse.csr_array(X / 50)), (single, (X / 50).astype(np.float32))):
        found = vars(function(planes, matrix, y))
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("function", BOUNDS)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, 2.0]], [0, 1], "one class for each of the 1 rows"),
        ([[1.0, 2.0, 3.0]], [0], "the planes have 2 features"),
        ([[1.0, 2.0]], [2], "class indices from 0 to 1"),
        ([[1.0, 2.0]], ["in"], "np.searchsorted"),
    ],
)
def test_bad_rows_get_a_sentence(function, X, y, message):
    with pytest.raises(ValueError, match=message):
        function(SQUARE, X, y)


@pytest.mark.parametrize("function", BOUNDS[1:])
def test_delta_is_a_probability(function):
    with pytest.raises(ValueError, match=r"delta=1\.0 must be between 0 and 1"):
        function(SQUARE, [[0.0, 0.0], [2.0, 0.0]], [0, 1], delta=1.0)
