"""`Preparation`: numbers of any scale as the features that planes are good at."""

import numpy as np
import pandas as pd
import pytest

from polyplane import TableClassifier
from polyplane.planes import PlaneSet
from polyplane.tables.preparation import (
    CLIP,
    LEAST_GAIN,
    LEAST_SPREAD,
    RECIPES,
    Preparation,
    bin_values,
    level_knots,
    level_values,
    tree_knots,
)

every_recipe = pytest.mark.parametrize("name", RECIPES)
INDICATOR = np.array([False, False, True, False])


def rows(n_rows=400):
    """A normal column, a spike with a long tail, an indicator and a number of two values."""
    rng = np.random.default_rng(0)
    spike = np.where(rng.random(n_rows) < 0.9, 0.0, rng.exponential(5000, n_rows))
    two = np.where(rng.random(n_rows) < 0.5, 7.0, 9.0)
    Z = np.column_stack([1e3 + 5 * rng.normal(size=n_rows), spike, rng.random(n_rows) < 0.3, two])
    return Z, (spike > 3000).astype(int)


def fit(name, Z=None):
    X, y = rows()
    return Preparation.fit(name, X if Z is None else Z, y, INDICATOR)


class TestScales:
    def test_standard(self):
        Z, _ = rows()
        X = fit("standard").transform(Z)
        assert X.dtype == np.float32
        np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(X.std(axis=0)[:2], 1, atol=1e-4)
        np.testing.assert_allclose(X[:, 2], (Z[:, 2] - Z[:, 2].mean()) / LEAST_SPREAD, atol=1e-5)
        assert np.ptp(X[:, 3]) == pytest.approx(1 / LEAST_SPREAD)

    def test_robust(self):
        """By hand, from the definition: the clip, and the fall-back of a column whose quartiles are the same."""
        Z, _ = rows()
        X = fit("robust").transform(Z)
        low, middle, high = np.quantile(Z[:, 0], [0.25, 0.5, 0.75])
        z = (Z[:, 0] - middle) / (high - low)
        np.testing.assert_allclose(X[:, 0], z / np.sqrt(1 + (z / 3) ** 2), atol=1e-5)
        z = Z[:, 1] / Z[:, 1].std()
        np.testing.assert_allclose(X[:, 1], z / np.sqrt(1 + (z / 3) ** 2), atol=1e-5)
        assert np.abs(fit("robust").transform(1e60 * Z)[:, :2]).max() <= CLIP

    def test_a_rare_indicator_is_not_blown_up(self):
        Z, y = rows()
        Z[:, 2] = 0
        Z[0, 2] = 1
        X = Preparation.fit("standard", Z, y, INDICATOR).transform(Z)
        assert X[0, 2] == pytest.approx((1 - 1 / 400) / LEAST_SPREAD)

    @every_recipe
    def test_units_do_not_matter(self, name):
        Z, y = rows()
        other = Z * [1e-3, 40.0, 1.0, 1.0] + [5.0, -3.0, 0.0, 0.0]
        first, second = (Preparation.fit(name, each, y, INDICATOR).transform(each) for each in (Z, other))
        np.testing.assert_allclose(first, second, atol=1e-3)

    @every_recipe
    def test_extremes_stay_finite(self, name):
        Z, _ = rows()
        assert np.isfinite(fit(name).transform(Z * 1e60)).all()


class TestMoreFeatures:
    def test_squares_and_norm(self):
        Z, _ = rows()
        squares, norm = fit("squares"), fit("robust+norm")
        assert [how for _, how in squares.sources[4:]] == ["square", "square"]
        assert norm.sources[4:] == [(-1, "norm")]
        X = squares.transform(Z)
        square = np.square(X[:, 0])
        np.testing.assert_allclose(X[:, 4], (square - square.mean()) / square.std(), atol=1e-3)
        X = norm.transform(Z)
        total = (X[:, :2] ** 2).sum(axis=1)
        np.testing.assert_allclose(X[:, 4], (total - total.mean()) / total.std(), atol=1e-4)

    def test_bins_are_placed_by_the_target_where_quantiles_are_all_the_same(self):
        Z, y = rows()
        knots = tree_knots(Z[:, 1], y)
        assert knots[0] == 0
        assert knots[-1] == Z[:, 1].max()
        assert np.abs(knots - 3000).min() < 300
        assert len(knots) <= 9

    def test_large_numbers_that_differ_little_are_told_apart(self):
        values = 1e9 + np.arange(200.0)
        knots = tree_knots(values, (values > 1e9 + 77).astype(int))
        assert knots.tolist() == [1e9, 1e9 + 77.5, 1e9 + 199]

    def test_a_column_without_a_split_has_no_bins(self):
        assert len(tree_knots(np.arange(50.0), np.zeros(50, dtype=int))) == 0

    def test_how_much_of_each_bin_lies_below(self):
        values = np.array([-1.0, 0.5, 1.0, 3.0, 9.0])
        expected = [[0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1]]
        assert bin_values(values, np.array([0.0, 1.0, 5.0])).tolist() == expected

    def test_levels_are_the_values_of_enough_rows_if_there_are_few(self):
        values = np.repeat([3.0, 1.0, 2.0, 7.0], [5, 9, 4, 8])
        assert level_knots(values).tolist() == [1, 3, 7]
        assert len(level_knots(values[values != 7])) == 0  # two levels: a line through them says as much
        assert len(level_knots(np.repeat(np.arange(33.0), 9))) == 0
        assert len(level_knots(np.repeat(np.arange(33.0), [9] * 20 + [1] * 13))) == 0

    def test_a_value_between_two_levels_belongs_to_both_in_part(self):
        values = np.array([1.0, 3.0, 7.0, 4.0, -5.0, 9.0])
        expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.75, 0.25], [1, 0, 0], [0, 0, 1]]
        assert level_values(values, np.array([1.0, 3.0, 7.0])).tolist() == expected

    @every_recipe
    def test_planes_over_the_features_of_the_model_are_the_same(self, name):
        """Weighted features, of columns with levels, bins and neither: folded into features of the columns."""
        Z, y = rows()
        Z[:, 3] = np.random.default_rng(1).integers(0, 5, len(Z))
        preparation = Preparation.fit(name, Z, y, INDICATOR).weighted(np.array([1.0, 0.3, 2.0, 0.7]))
        coef = np.random.default_rng(2).normal(size=(3, preparation.n_prepared))
        planes = PlaneSet(coef, np.array([0.5, -1.0, 2.0]), np.arange(4))
        features, folded, intercept = preparation.fold(planes, INDICATOR)
        Z[:40, 3] += 0.3  # between the levels
        expected = preparation.transform(Z) @ coef.T + planes.intercept
        np.testing.assert_allclose(features.transform(Z) @ folded.T + intercept, expected, atol=1e-4)

    @every_recipe
    def test_sources_name_every_feature(self, name):
        Z, _ = rows()
        preparation = fit(name)
        assert len(preparation.sources) == preparation.transform(Z).shape[1]
        assert {j for j, _ in preparation.sources} <= {-1, 0, 1, 2, 3}


class TestRelevance:
    def test_it_is_the_spread_of_weights_times_that_of_the_feature(self):
        Z, _ = rows()
        preparation = fit("standard")
        coef = np.array([[1.0, 5.0, 0.0, 2.0], [-1.0, 5.0, 0.0, 2.5]], dtype=np.float32)
        planes = PlaneSet(coef, np.zeros(2, dtype=np.float32), np.arange(3))
        found = preparation.relevance(planes, preparation.transform(Z))
        np.testing.assert_allclose(found, [1, LEAST_GAIN, LEAST_GAIN, 0.25], rtol=1e-3)  # a common weight is none

    def test_weights_count_for_all_that_is_made_from_a_feature(self):
        Z, _ = rows()
        preparation = fit("bins")
        ratio = preparation.weighted(np.array([1.0, 0.5, 2.0, 1.0])).transform(Z).std(axis=0)
        ratio /= preparation.transform(Z).std(axis=0)
        np.testing.assert_allclose(ratio, [[1.0, 0.5, 2.0, 1.0][j] for j, _ in preparation.sources], rtol=1e-5)


@pytest.mark.parametrize("preparation", ["robust+norm", "standard"])
def test_a_few_different_rows_without_numbers(preparation):
    """The classes have the same k-means centres: the best label of each level is learned, by weights of usual size."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, 300)
    y = np.where(rng.random(300) < 0.3, rng.integers(0, 2, 300), levels == 1).astype(int)
    best = sum(np.bincount(y[levels == level]).max() for level in range(3)) / 300
    table = pd.DataFrame({"a": np.array(["x", "y", "z"])[levels]})
    model = TableClassifier(1, preparation=preparation, n_planes=3, random_state=0).fit(table, y)
    assert model.score(table, y) == best
    assert np.abs(model.planes_.coef).max() < 20
