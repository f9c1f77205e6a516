import numpy as np
import pytest
from benchmarks.papers.polyceptron.oblique_tree import ObliqueTreeClassifier, _best_push
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier

from tests.reference import oblique_split as reference


def diagonal(n_rows, noise=0.0, seed=0):
    """Two classes on either side of a slanted plane in four dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 4))
    y = X @ [1.0, -1.0, 0.5, 0.3] > 0.2
    return X, y ^ (rng.random(n_rows) < noise)


@pytest.mark.parametrize("step", [None, 0.5])
def test_a_coefficient_gets_its_best_value(step):
    """Of two classes, by the twoing rule; with a step, many rows have the same numbers, and zeros."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        n_rows, n_features = rng.integers(8, 40), rng.integers(1, 5)
        X = rng.normal(size=(n_rows, n_features))
        X = np.column_stack([X if step is None else np.round(X / step) * step, np.ones(n_rows)])
        y, plane, m = rng.integers(0, 2, n_rows), rng.normal(size=n_features + 1), rng.integers(n_features + 1)
        _, push = _best_push(X @ plane, X[:, m].copy(), y, 2)
        best = reference.best_value(plane, m, X, y, 2)
        changed = plane.copy()
        changed[m] += push
        if best > 0:
            assert reference.split_value(changed, X, y, 2) == pytest.approx(best, abs=1e-12)


def test_one_plane_is_enough_where_one_plane_parts_the_classes():
    X, y = diagonal(300)
    tree = ObliqueTreeClassifier(prune_fraction=0, random_state=0).fit(X, y)
    assert tree.n_splits_ == 1
    assert tree.score(X, y) == 1.0
    slope = tree.root_.plane[:4] / tree.root_.plane[0]
    np.testing.assert_allclose(slope, [1.0, -1.0, 0.5, 0.3], atol=0.1)


def test_without_climbs_it_is_a_tree_along_features():
    X, y = load_iris(return_X_y=True)
    tree = ObliqueTreeClassifier(n_restarts=0, prune_fraction=0, random_state=0).fit(X, y)
    assert all(np.count_nonzero(node.plane[:-1]) == 1 for node in tree.root_.splits())
    # scikit-learn's tree has the same first split, by Gini; only one of two equally good features may differ.
    root = DecisionTreeClassifier(max_depth=1).fit(X, y)
    side = X @ tree.root_.plane[:-1] + tree.root_.plane[-1] > 0
    counts = sorted(np.bincount(root.apply(X))[1:])
    assert sorted([side.sum(), (~side).sum()]) == counts


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_climbing_never_makes_the_first_split_worse(n_restarts):
    X, y = diagonal(200, noise=0.1)

    def impurity(tree):
        above = X @ tree.root_.plane[:-1] + tree.root_.plane[-1] > 0
        sides = [np.bincount(y[above]), np.bincount(y[~above])]
        return len(y) - sum((counts**2).sum() / counts.sum() for counts in sides)

    along, climbed = (ObliqueTreeClassifier(n, prune_fraction=0, random_state=0).fit(X, y) for n in (0, n_restarts))
    assert impurity(climbed) < impurity(along)


def test_grown_to_the_end_it_knows_all_rows_and_pruned_it_is_smaller_and_better():
    X, y = diagonal(600, noise=0.15)
    X_test, y_test = diagonal(2000, seed=1)
    whole = ObliqueTreeClassifier(n_restarts=2, prune_fraction=0, random_state=0).fit(X, y)
    pruned = ObliqueTreeClassifier(n_restarts=2, prune_fraction=0.3, random_state=0).fit(X, y)
    assert whole.score(X, y) == 1.0
    assert pruned.n_splits_ < whole.n_splits_ / 4
    assert pruned.score(X_test, y_test) > whole.score(X_test, y_test) + 0.05


def test_three_classes_with_names():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    tree = ObliqueTreeClassifier(n_restarts=3, random_state=0).fit(X[::2], names[::2])
    assert tree.score(X[1::2], names[1::2]) > 0.9


def test_the_same_seed_gives_the_same_tree():
    X, y = load_breast_cancer(return_X_y=True)
    first, second = (ObliqueTreeClassifier(n_restarts=1, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.root_.plane, second.root_.plane)
    assert first.n_splits_ == second.n_splits_


def test_rows_that_cannot_be_parted_are_a_leaf():
    X, y = np.ones((6, 2)), [0, 1, 1, 0, 1, 1]
    tree = ObliqueTreeClassifier(prune_fraction=0, random_state=0).fit(X, y)
    assert tree.n_splits_ == 0
    assert tree.predict([[1.0, 1.0]]) == [1]
