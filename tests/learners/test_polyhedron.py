"""What the learners of a single polyhedron have in common."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs, make_classification
from sklearn.multiclass import OneVsRestClassifier

from polyplane import PolyceptronClassifier, PolyhedralMixtureClassifier, SuccessiveLPClassifier
from polyplane.engine.data import AffineScaling
from polyplane.learners.polyhedron import AffineRows, StartRows, random_start, split_start

LEARNERS = [PolyceptronClassifier, PolyhedralMixtureClassifier, SuccessiveLPClassifier]
of_each = pytest.mark.parametrize("learner", LEARNERS)


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(80, 3, n_informative=3, n_redundant=0, random_state=0)
    return X, np.where(y == 1, "yes", "no")


@of_each
def test_the_class_outside_owns_the_planes(learner, problem):
    X, y = problem
    for inside, outside in (("yes", "no"), ("no", "yes")):
        fitted = learner(3, inside=inside, random_state=0).fit(X, y)
        owner = list(fitted.classes_).index(outside)
        assert fitted.inside_ == inside
        assert len(fitted.planes_.of(owner)[0]) == 3
        np.testing.assert_array_equal(fitted.planes_.of(1 - owner)[0], np.zeros((1, 3)))
        lowest = -fitted.planes_.scores(X)[:, fitted.planes_.owners == owner].max(axis=1)
        np.testing.assert_array_equal(fitted.predict(X) == inside, lowest > 0)
    assert not hasattr(learner(), "inside_")


@of_each
def test_inside_must_be_a_label(learner, problem):
    for wrong in ("maybe", 1, "both"):
        with pytest.raises(ValueError, match=r"inside=.* is not one of the labels"):
            learner(inside=wrong).fit(*problem)


@of_each
def test_three_classes_need_a_meta_estimator(learner):
    X, y = make_blobs(90, centers=3, random_state=0)
    with pytest.raises(ValueError, match=rf"Only binary.*OneVsRestClassifier\({learner.__name__}"):
        learner().fit(X, y)
    assert OneVsRestClassifier(learner(1)).fit(X, y).score(X, y) > 0.8


@of_each
def test_a_single_row_is_no_region(learner, problem):
    X, _ = problem
    y = np.array(["yes"] + ["no"] * 79)
    with pytest.raises(ValueError, match="inside class 'yes' has a single row"):
        learner(inside="yes").fit(X, y)
    weight, halves = np.r_[1, np.zeros(39), np.ones(40)], np.repeat(["yes", "no"], 40)
    with pytest.raises(ValueError, match="inside class 'yes' has a single row"):
        learner(inside="yes").fit(X, halves, sample_weight=weight)
    assert learner(inside="no").fit(X, y).inside_ == "no"


@of_each
def test_the_class_inside_is_found_whatever_its_name(learner):
    """Rows of a ball and of what is around it: the other way round, planes would have to bend."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    is_ball = np.square(X).sum(axis=1) < 1.2
    for ball, around in (("a", "b"), ("b", "a")):
        fitted = learner(4, random_state=0).fit(X, np.where(is_ball, ball, around))
        assert fitted.inside_ == ball
        assert fitted.score(X, np.where(is_ball, ball, around)) > 0.9


@of_each
def test_rows_of_one_class_say_nothing_about_the_class_inside(learner):
    if not hasattr(learner(), "partial_fit"):
        pytest.skip("no streams")
    X = np.random.default_rng(0).normal(size=(20, 2))
    for label in ("a", "b"):
        assert learner().partial_fit(X, np.full(20, label), classes=["a", "b"]).inside_ == "b"


@of_each
def test_more_planes_than_rows_are_refused(learner, problem):
    X, y = problem
    with pytest.raises(ValueError, match="n_planes=81 is more than the 80 rows"):
        learner(81).fit(X, y)
    with pytest.raises(ValueError, match="'n_planes' parameter"):
        learner(0).fit(X, y)


@of_each
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((80, 3), np.nan), "NaN"),
        (np.full((80, 3), np.inf), "infinity"),
        (np.ones(80), "1D array"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((79, 3)), "inconsistent numbers of samples"),
        (np.full((80, 3), "text"), "convert string to float"),
        (np.ones((80, 3), dtype=np.float16), "float16, which is not precise enough"),
    ],
)
def test_bad_rows_are_named_and_the_model_survives(learner, problem, X, message):
    good, y = problem
    fitted = learner(random_state=0).fit(good, y)
    before = fitted.predict(good)
    with pytest.raises(ValueError, match=message):
        fitted.fit(X, y)
    np.testing.assert_array_equal(fitted.predict(good), before)


@of_each
def test_a_failed_refit_leaves_the_model(learner, problem):
    X, y = problem
    fitted = learner(random_state=0).fit(X, y)
    before = fitted.predict(X)
    for bad in (np.arange(80) % 3, np.full(80, "yes")):
        with pytest.raises(ValueError, match="class"):
            fitted.fit(X, bad)
    with pytest.raises(ValueError, match="sample_weight"):
        fitted.fit(X, y, sample_weight=np.ones(7))
    np.testing.assert_array_equal(fitted.predict(X), before)


@of_each
def test_constant_and_repeated_features_are_harmless(learner, problem):
    X, y = problem
    odd = np.column_stack([X, X[:, 0], np.full(len(X), 7.0), np.zeros(len(X))])
    for matrix in (odd, sparse.csr_matrix(odd)):
        fitted = learner(random_state=0).fit(matrix, y)
        assert np.isfinite(fitted.coef_).all()
        assert fitted.score(matrix, y) > 0.75


@of_each
def test_the_same_seed_gives_the_same_planes(learner, problem):
    X, y = problem
    one, two = (learner(3, n_init=3, random_state=7).fit(X, y) for _ in range(2))
    assert one.planes_ == two.planes_


@given(st.integers(0, 1000), st.integers(1, 5), st.sampled_from([np.asarray, sparse.csr_matrix]))
@settings(max_examples=30, deadline=None)
def test_products_in_standard_units_need_no_standardised_copy(seed, n_planes, container):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3)) * [1, 100, 0.01] + [5, 0, 1]
    weight = rng.uniform(0, 2, 20)
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    Z = np.column_stack([(X - mean) / scale, np.ones(20)])
    rows = AffineRows(container(X), AffineScaling.standard(container(X), weight))
    planes, shares = rng.normal(size=(n_planes, 4)), rng.normal(size=(n_planes, 20))
    np.testing.assert_allclose(rows.scores(planes), planes @ Z.T, atol=1e-9)
    np.testing.assert_allclose(rows.sums(shares), shares @ Z, atol=1e-7)
    np.testing.assert_allclose(rows.scaling.take(rows.X, np.array([3, 1])), Z[[3, 1], :-1], atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_feature_has_no_variance(dtype):
    """Its mean is rounded: of some, what that left was taken for variance, and their weights grew to 1e14."""
    X = np.tile(np.random.default_rng(0).normal(size=500), (700, 1)).astype(dtype)
    scaling = AffineScaling.standard(X, np.ones(700))
    np.testing.assert_array_equal(scaling.factor, np.ones(500))


def test_the_start_puts_a_plane_before_each_group_outside():
    centres = np.array([[0, 0], [9, 0], [-9, 0], [0, 6]])
    X, group = make_blobs(200, centers=centres, cluster_std=0.5, random_state=0)
    rows = AffineRows(X, AffineScaling.identity(2))
    start_rows = StartRows(rows, group == 0, np.ones(200))
    for planes in (split_start(start_rows, 3), random_start(start_rows, 3, np.random.default_rng(1))):
        scores = rows.scores(planes)
        assert ((scores.min(axis=0) > 0) == (group == 0)).all()
    owner = rows.scores(split_start(start_rows, 3)).argmin(axis=0)
    assert [len(set(owner[group == g])) for g in (1, 2, 3)] == [1, 1, 1]
    assert len(set(owner[group > 0])) == 3


class Partitions:
    """Rows in parts; a part that is lost is made again."""

    is_partitioned = True

    def __init__(self, X, y, weight, scaling, lose_each=None):
        self.n_features, self.lose_each, self.calls = X.shape[1], lose_each, 0
        at = [slice(0, 30), slice(30, 35), slice(35, len(y))]
        self.make = [lambda s=s: StartRows(AffineRows(X[s], scaling), y[s] == 1, weight[s]) for s in at]
        self.parts = [make() for make in self.make]

    def map(self, function, *arguments):
        self.calls += 1
        if self.lose_each and self.calls % self.lose_each == 0:
            self.parts = [make() for make in self.make]
        return [function(part, *arguments) for part in self.parts]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_the_start_is_the_same_over_partitions(container):
    X, y = make_classification(200, 5, n_informative=5, n_redundant=0, random_state=0)
    weight = np.random.default_rng(0).integers(0, 4, 200).astype(float)
    X = container(X)
    scaling = AffineScaling.standard(X, weight)
    expected = split_start(StartRows(AffineRows(X, scaling), y == 1, weight), 6)
    found = split_start(Partitions(X, y, weight, scaling), 6)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    for lose_each in (1, 7):
        np.testing.assert_array_equal(split_start(Partitions(X, y, weight, scaling, lose_each), 6), found)


def test_the_start_copes_with_identical_rows_outside():
    X = np.r_[np.zeros((5, 2)), np.ones((5, 2))]
    rows = AffineRows(X, AffineScaling.identity(2))
    planes = split_start(StartRows(rows, np.arange(10) < 5, np.ones(10)), 4)
    assert planes.shape == (4, 3)
    assert np.isfinite(planes).all()
