"""Lead of a class after two changes of a row, for many pairs of changes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyplane.explain.geometry._table_candidates import Changes
from polyplane.explain.geometry._table_effects import ModelEffects

#: Lower limit of sums of exponentials, so that the product of CHUNK sums does not underflow to 0.
LEAST, CHUNK = 1e-70, 4


@dataclass(frozen=True, eq=False)
class Gaps:
    """Lead of the target classes: their largest score minus the largest score of another class.

    Parameters
    ----------
    effects : ModelEffects
        Effects of the columns.
    goals : list of int
        Target classes.
    base : ndarray of shape (n_planes,)
        Scores of the planes before the changes.
    """

    effects: ModelEffects
    goals: list[int]
    base: np.ndarray

    def of_all(self, left: Changes, right: Changes, is_bound: bool) -> np.ndarray:
        """Compute the lead of all pairs, shape (n_left, n_right): at the cheapest values, or an upper bound."""
        upper = self._products(*((part.most if is_bound else part.near) for part in (left, right)))
        gaps = self._lead(upper, self._products(left.least, right.least) if is_bound else upper)
        if not is_bound:
            gaps[np.isnan(left.value)] = -np.inf
            gaps[:, np.isnan(right.value)] = -np.inf
        return gaps

    def of_pairs(self, changes: Changes, left: np.ndarray, right: np.ndarray, is_bound: bool) -> np.ndarray:
        """Compute the lead of pairs of changes, given by their indices, shape (n_pairs,)."""
        most = changes.most if is_bound else changes.near
        upper = self._sums(most[left], most[right])
        gaps = self._lead(upper, self._sums(changes.least[left], changes.least[right]) if is_bound else upper)
        return gaps if is_bound else np.where(np.isnan(changes.value[left] + changes.value[right]), -np.inf, gaps)

    def _lead(self, upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        best = np.full(upper.shape[1:], -np.inf)
        for goal in self.goals:
            others = [c for c in range(self.effects.n_classes) if c != goal]
            best = np.maximum(best, upper[goal] - lower[others].max(axis=0))
        return best

    def _sums(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the scores of the classes, shape (n_classes, n_pairs)."""
        return self.effects.class_scores(self.base + left + right).T

    def _products(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the scores of the classes, shape (n_classes, n_left, n_right).

        The sum of exponentials over the planes of a class is a matrix product of the factors of both changes.
        """
        if len(left) == 1:
            return self._sums(left, right)[:, None]
        starts, n_classes, n_members = self.effects.starts, self.effects.n_classes, self.effects.n_members
        total = self.base + left
        scores = np.zeros((n_classes, len(left), len(right)))
        product = np.ones_like(scores)
        for m in range(n_members):
            own = slice(starts[m * n_classes], starts[(m + 1) * n_classes])
            tops = total[:, own].max(axis=1)[:, None], right[:, own].max(axis=1)[:, None]
            scores += tops[0] + tops[1].T
            first, second = np.exp(total[:, own] - tops[0]), np.exp(right[:, own] - tops[1])
            for c in range(n_classes):
                planes = slice(*(starts[m * n_classes + c : m * n_classes + c + 2] - own.start))
                product[c] *= np.maximum(first[:, planes] @ second[:, planes].T, LEAST)
            if m % CHUNK == CHUNK - 1 or m == n_members - 1:
                scores += np.log(product)
                product[...] = 1.0
        return scores / n_members
