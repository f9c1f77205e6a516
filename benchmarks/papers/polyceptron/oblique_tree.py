"""OC1, the oblique decision tree that the Polyceptron paper compares with: a baseline, not a part of the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data


@dataclass
class Node:
    """A region of the tree: a leaf, or split by a plane.

    Parameters
    ----------
    counts : ndarray of shape (n_classes,)
        Training rows of each class in the region.
    plane : ndarray of shape (n_features + 1,) or None
        Weights and offset; rows above go to `above`. None: a leaf.
    above, below : Node or None
        The two sides.
    """

    counts: np.ndarray
    plane: np.ndarray | None = None
    above: Node | None = None
    below: Node | None = None

    @property
    def errors(self) -> int:
        """Training rows that are wrong if this is a leaf."""
        return int(self.counts.sum() - self.counts.max())

    def splits(self) -> list[Node]:
        """The nodes below and including this one that split, this one first."""
        return [] if self.plane is None else [self, *self.above.splits(), *self.below.splits()]

    def leaf_errors(self) -> int:
        """Training rows that are wrong at the leaves."""
        return self.errors if self.plane is None else self.above.leaf_errors() + self.below.leaf_errors()

    def winners(self, X: np.ndarray) -> np.ndarray:
        """The class of each row; X has a last column of ones."""
        if self.plane is None:
            return np.full(len(X), self.counts.argmax())
        is_above = X @ self.plane > 0
        winners = np.empty(len(X), dtype=np.intp)
        winners[is_above] = self.above.winners(X[is_above])
        winners[~is_above] = self.below.winners(X[~is_above])
        return winners


class ObliqueTreeClassifier(ClassifierMixin, BaseEstimator):
    """OC1: a tree whose nodes split by planes, found by randomised hill-climbing. Standardise the features first.

    At each node the best split along one feature is found first. From it, and from random planes, one coefficient after
    the other is set to its best value with the others held fixed, until nothing gains; then the plane is pushed in
    random directions, again to the best place, and climbing goes on where that gains. The best plane of all climbs
    splits the node, by the Gini impurity (for two classes the same as OC1's twoing rule). Grown until its leaves are
    pure, the tree is cut back by cost-complexity pruning with a held-out part of the rows.

    Parameters
    ----------
    n_restarts : int, default=20
        Climbs at each node; the first begins at the best split along one feature.
    n_jumps : int, default=5
        Pushes in random directions, without gain, after which a climb ends.
    min_samples_split : int, default=2
        Nodes with fewer rows are leaves.
    prune_fraction : float, default=0.1
        Share of the rows that is held out to prune by. 0: do not prune.
    random_state : int, RandomState or None, default=None
        Source of the planes, the pushes and the held-out rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    root_ : Node
        The tree.
    n_splits_ : int
        Its planes.

    References
    ----------
    S. K. Murthy, S. Kasif and S. Salzberg. A System for Induction of Oblique Decision Trees. JAIR 2, 1994.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from benchmarks.papers.polyceptron.oblique_tree import ObliqueTreeClassifier
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> tree = ObliqueTreeClassifier(n_restarts=2, random_state=0).fit(X[::2], y[::2])
    >>> bool(tree.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def __init__(self, n_restarts=20, *, n_jumps=5, min_samples_split=2, prune_fraction=0.1, random_state=None):
        self.n_restarts = n_restarts
        self.n_jumps = n_jumps
        self.min_samples_split = min_samples_split
        self.prune_fraction = prune_fraction
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ObliqueTreeClassifier:
        """Grow the tree and prune it."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, y = np.unique(y, return_inverse=True)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        X = _with_ones(X)
        grow, prune = np.arange(len(y)), np.arange(0)
        if self.prune_fraction and len(y) * self.prune_fraction >= 1:
            grow, prune = train_test_split(grow, test_size=self.prune_fraction, random_state=int(rng.integers(2**31)))
        self.root_ = self._grow(X[grow], y[grow], rng)
        if len(prune):
            _prune(self.root_, X[prune], y[prune])
        self.n_splits_ = len(self.root_.splits())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The classes of the leaves that the rows fall into."""
        check_is_fitted(self)
        return self.classes_[self.root_.winners(_with_ones(validate_data(self, X, reset=False, dtype=np.float64)))]

    def _grow(self, X, y, rng):
        node = Node(np.bincount(y, minlength=len(self.classes_)))
        if node.errors == 0 or len(y) < self.min_samples_split:
            return node
        plane, gain = _best_plane(X, y, len(node.counts), self.n_restarts, self.n_jumps, rng)
        is_above = X @ plane > 0
        if gain <= 0 or is_above.all() or not is_above.any():
            return node
        node.plane = plane
        node.above = self._grow(X[is_above], y[is_above], rng)
        node.below = self._grow(X[~is_above], y[~is_above], rng)
        return node


def _with_ones(X):
    return np.ascontiguousarray(np.hstack([X, np.ones((len(X), 1))]))


def _prune(root, X, y):
    """Cut the weakest link, one after the other, and keep the smallest tree with the fewest errors on held-out rows.

    A link's strength is the number of training errors that it saves per split.
    """
    cut, errors = [], [np.sum(root.winners(X) != y)]
    while root.plane is not None:
        weakest = min(root.splits(), key=lambda node: (node.errors - node.leaf_errors()) / len(node.splits()))
        cut.append((weakest, weakest.plane))
        weakest.plane = None
        errors.append(np.sum(root.winners(X) != y))
    best = len(errors) - 1 - int(np.argmin(errors[::-1]))
    for node, plane in cut[best:]:
        node.plane = plane


@njit(nogil=True, cache=True)
def _best_push(here, slope, y, n_classes):
    """How far to push along a line, and how pure the two sides are then.

    A row is above where ``here + push * slope > 0``: it crosses once, so sorting the crossings tries all pushes.
    Purity is the sum over both sides of (sum of squared class counts) / rows.
    """
    above, below = np.zeros(n_classes), np.zeros(n_classes)
    crossing = np.empty(len(y))
    for i in range(len(y)):
        if slope[i] < 0 or (slope[i] == 0 and here[i] > 0):
            above[y[i]] += 1
        else:
            below[y[i]] += 1
        crossing[i] = -here[i] / slope[i] if slope[i] != 0 else np.inf
    order = np.argsort(crossing)
    best, push = -1.0, 0.0
    for position in range(len(y) - 1):
        i, after = order[position], crossing[order[position + 1]]
        if crossing[i] == np.inf:
            break  # these rows never cross
        step = 1.0 if slope[i] > 0 else -1.0
        above[y[i]] += step
        below[y[i]] -= step
        if after == crossing[i] or not np.isfinite(after - crossing[i]) or above.sum() == 0 or below.sum() == 0:
            continue
        purity = (above * above).sum() / above.sum() + (below * below).sum() / below.sum()
        if purity > best:
            best, push = purity, 0.5 * (crossing[i] + after)
    return best, push


@njit(nogil=True, cache=True)
def _climb(X, y, n_classes, plane, n_jumps, rng):
    """Better the plane in place, coefficient by coefficient and then by pushes; return its purity."""
    here = X @ plane
    best, ties, jumps = -1.0, 0, 0
    while jumps < n_jumps:
        gained = True
        while gained:
            gained = False
            for j in range(X.shape[1]):
                purity, push = _best_push(here, X[:, j], y, n_classes)
                tie = purity == best and rng.random() < np.exp(-ties)  # walk on plateaus, but not for ever
                if purity > best + 1e-9 or tie:
                    gained |= not tie
                    ties = ties + 1 if tie else 0
                    best = purity
                    plane[j] += push
                    here += push * X[:, j]
        direction = rng.standard_normal(X.shape[1])
        slope = X @ direction
        purity, push = _best_push(here, slope, y, n_classes)
        if purity > best + 1e-9:
            best = purity
            plane += push * direction
            here += push * slope
        else:
            jumps += 1
    return best


@njit(nogil=True, cache=True)
def _best_plane(X, y, n_classes, n_restarts, n_jumps, rng):
    """The plane that parts the classes best, and the purity that it gains."""
    counts = np.zeros(n_classes)
    for label in y:
        counts[label] += 1
    last = X.shape[1] - 1
    winner, best = np.zeros(last + 1), -1.0
    for j in range(last):
        purity, push = _best_push(X[:, j].copy(), X[:, last], y, n_classes)
        if purity > best:
            best = purity
            winner = np.zeros(last + 1)
            winner[j], winner[last] = 1.0, push
    axis = winner.copy()
    for restart in range(n_restarts):
        plane = axis.copy() if restart == 0 else rng.standard_normal(last + 1)
        purity = _climb(X, y, n_classes, plane, n_jumps, rng)
        if purity > best + 1e-9:
            winner, best = plane, purity
    return winner, best - (counts * counts).sum() / counts.sum()
