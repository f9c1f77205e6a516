"""The cheapest changes of few columns that make a row another class of a table model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from polyplane.geometry._table_candidates import Changes, RowColumn
from polyplane.geometry._table_effects import ModelEffects
from polyplane.tables._model import TableModel

#: A search over ranges ends, without proof, after so many rounds, or where so many ranges are left.
ROUNDS, MOST_CHANGES = 40, 2000
#: What scores may be wrong by: ranges that come this near to another class are looked at more closely.
SLACK = 1e-4
#: Sums of exponentials count as no less than this, so that the product of CHUNK of them is not 0.
LEAST, CHUNK = 1e-70, 4
#: Combinations that are kept while columns are added one by one, and those of them that are made cheaper.
BEAM, FINALISTS = 64, 4
#: Cheapest combinations that the model is asked about: rounding can make a class of a near tie.
TRIES = 8


class Found(NamedTuple):
    """Changes of some columns that lead to another class."""

    values: dict[int, float]
    cost: float
    z: np.ndarray


class Search:
    """The cheapest changes of one row.

    Parameters
    ----------
    model : TableModel
        The model.
    z : ndarray of shape (n_features,)
        The encoded row.
    columns : sequence of RowColumn
        The columns that may change.
    goals : collection of int
        The classes to get to.
    """

    def __init__(self, model: TableModel, z: np.ndarray, columns: Sequence[RowColumn], goals: Collection[int]) -> None:
        self.model, self.z, self.goals = model, z, list(goals)
        self.effects = ModelEffects.of(model)
        self.base = np.concatenate([member.plane_scores(z[None])[0] for member in model.members]).astype(np.float64)
        changes = [column.changes() for column in columns]
        self.columns = {column.position: column for column, own in zip(columns, changes, strict=True) if len(own.cost)}
        self.changes = Changes.join([Changes.none(len(self.base)), *changes])

    def best(self, max_columns: int) -> tuple[Found | None, bool]:
        """Fewest columns first, then the least cost; and whether both are proven."""
        own = list(self.columns)
        is_proven = True
        for first in ([-1], own)[: min(max_columns, len(own))]:
            found, is_exact = self.cheapest_pair(self.changes, first, own)
            is_proven &= is_exact
            if found is not None:
                return found, is_proven
        if min(max_columns, len(own)) <= 2:
            return None, is_proven
        return self._by_beam(min(max_columns, len(own))), False

    def cheapest_pair(
        self, changes: Changes, first: list[int], second: list[int], fixed: Found | None = None
    ) -> tuple[Found | None, bool]:
        """The cheapest change of two columns, one of each list, and whether that is proven.

        Ranges of values that cannot lead to a goal, by the bounds of their scores, or not at less cost than what was
        found, are dropped; the others are split, until none is left.

        Parameters
        ----------
        changes : Changes
            Ranges of values that cover all that is allowed.
        first, second : list of int
            The columns; -1 stands for no change.
        fixed : Found, default=None
            A change to start from, of these and of other columns, whose values stay; only cheaper ones are found.
        """
        others = {} if fixed is None else {j: v for j, v in fixed.values.items() if j not in (*first, *second)}
        base = self.base + self._added(others)
        spent = self._cost(others)
        best, limit = None, np.inf if fixed is None else fixed.cost - spent
        changes = changes.take(np.isin(changes.column, [*first, *second]))
        for _ in range(ROUNDS):
            left = np.flatnonzero(np.isin(changes.column, first))
            right = np.flatnonzero(np.isin(changes.column, second))
            cost = changes.cost[left, None] + changes.cost[right]
            alive = (changes.column[left, None] < changes.column[right]) & (cost < limit)
            alive &= self._gaps(base, changes.take(left), changes.take(right), is_bound=True) > -SLACK
            rows, cols = alive.any(axis=1), alive.any(axis=0)
            left, right, cost, alive = left[rows], right[cols], cost[rows][:, cols], alive[rows][:, cols]
            if not len(left):
                return best, True
            is_reached = alive & (self._gaps(base, changes.take(left), changes.take(right), is_bound=False) > 0)
            found = self._cheapest_reached(changes, left, right, np.where(is_reached, cost, np.inf), others)
            if found is not None:
                best, limit = found, found.cost - spent
            is_point = changes.is_point
            alive &= (cost < limit) & ~(is_point[left, None] & is_point[right])
            used = np.union1d(left[alive.any(axis=1)], right[alive.any(axis=0)])
            if not len(used):
                return best, True
            changes = self._split(changes.take(used))
            if len(changes.cost) > MOST_CHANGES:
                return best, False
        return best, False

    def _gaps(self, base: np.ndarray, left: Changes, right: Changes, is_bound: bool) -> np.ndarray:
        """By how much a goal leads all other classes after two changes, or could lead, shape (n_left, n_right)."""
        upper = self._class_scores(base, *((part.most if is_bound else part.near) for part in (left, right)))
        lower = self._class_scores(base, left.least, right.least) if is_bound else upper
        best = np.full(upper.shape[1:], -np.inf)
        for goal in self.goals:
            rivals = [c for c in range(self.effects.n_classes) if c != goal]
            best = np.maximum(best, upper[goal] - lower[rivals].max(axis=0))
        if not is_bound:
            best[np.isnan(left.value)] = -np.inf
            best[:, np.isnan(right.value)] = -np.inf
        return best

    def _class_scores(self, base: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Scores of the classes after two changes, shape (n_classes, n_left, n_right).

        The sum of exponentials over the planes of a class is a product of matrices, one of each change.
        """
        starts, n_classes, n_members = self.effects.starts, self.effects.n_classes, self.effects.n_members
        total = base + left
        scores = np.zeros((n_classes, len(left), len(right)))
        product = np.ones_like(scores)
        for m in range(n_members):
            own = slice(starts[m * n_classes], starts[(m + 1) * n_classes])
            tops = total[:, own].max(axis=1), right[:, own].max(axis=1)
            scores += tops[0][:, None] + tops[1]
            first, second = np.exp(total[:, own] - tops[0][:, None]), np.exp(right[:, own] - tops[1][:, None])
            for c in range(n_classes):
                planes = slice(*(starts[m * n_classes + c : m * n_classes + c + 2] - own.start))
                product[c] *= np.maximum(first[:, planes] @ second[:, planes].T, LEAST)
            if m % CHUNK == CHUNK - 1 or m == n_members - 1:
                scores += np.log(product)
                product[...] = 1.0
        return scores / n_members

    def _cheapest_reached(
        self, changes: Changes, left: np.ndarray, right: np.ndarray, cost: np.ndarray, others: dict[int, float]
    ) -> Found | None:
        """The cheapest pair that the model itself gives a goal."""
        for place in np.argsort(cost, axis=None, kind="stable")[:TRIES]:
            i, j = np.unravel_index(place, cost.shape)
            if np.isinf(cost[i, j]):
                return None
            pair = (left[i], right[j])
            values = {int(changes.column[k]): float(changes.value[k]) for k in pair if changes.column[k] >= 0}
            found = self._checked(values | others)
            if found is not None:
                return found
        return None

    def _checked(self, values: dict[int, float]) -> Found | None:
        """A change, if the model agrees that it leads to a goal."""
        z = self.z.copy()
        for j, value in values.items():
            z[self.model.encoding.places[j]] = self.columns[j].effect.encode(np.array([value]))[0]
        after = int(self.model.class_scores(z[None])[0].argmax())
        return Found(values, self._cost(values), z) if after in self.goals else None

    def _cost(self, values: dict[int, float]) -> float:
        return sum(self.columns[j].cost_of(value) for j, value in values.items())

    def _added(self, values: dict[int, float]) -> np.ndarray:
        return sum((self.columns[j].added(value) for j, value in values.items()), np.zeros(len(self.base)))

    def _split(self, changes: Changes) -> Changes:
        """Ranges in parts; single values as they are."""
        is_point = changes.is_point
        parts = [changes.take(is_point)]
        for j, column in self.columns.items():
            own = ~is_point & (changes.column == j)
            if own.any():
                parts.append(column.split(changes.take(own)))
        return Changes.join(parts)

    def _by_beam(self, max_columns: int) -> Found | None:
        """Three columns or more: the best pairs, and columns added to them one by one; then made cheaper."""
        changes = self.changes.take(~np.isnan(self.changes.value))
        added = np.zeros((1, len(self.base)))
        used: list[tuple[int, ...]] = [()]
        for size in range(1, max_columns + 1):
            gaps = self._beam_gaps(changes, added, used)
            if size > 2 and (gaps > 0).any():
                return self._cheapest_finalist(changes, gaps, used)
            order = np.argsort(-gaps, axis=None)[: BEAM * size]
            rows, cols = np.unravel_index(order[np.isfinite(gaps.ravel()[order])], gaps.shape)
            used = [(*used[i], j) for i, j in zip(rows.tolist(), cols.tolist(), strict=True)]
            if not used:
                return None
            added = added[rows] + changes.near[cols]
        return None

    def _beam_gaps(self, changes: Changes, added: np.ndarray, used: list[tuple[int, ...]]) -> np.ndarray:
        nothing = Changes.none(len(self.base))
        left = Changes.join([nothing] * len(used))._replace(near=added)
        gaps = self._gaps(self.base, left, changes, is_bound=False)
        for i, chosen in enumerate(used):
            gaps[i, np.isin(changes.column, [-1, *changes.column[list(chosen)]])] = -np.inf
        return gaps

    def _cheapest_finalist(self, changes: Changes, gaps: np.ndarray, used: list[tuple[int, ...]]) -> Found | None:
        spent = np.array([changes.cost[list(chosen)].sum() for chosen in used])
        cost = np.where(gaps > 0, spent[:, None] + changes.cost, np.inf)
        finalists: dict[frozenset[int], Found] = {}
        for place in np.argsort(cost, axis=None, kind="stable"):
            i, j = np.unravel_index(place, cost.shape)
            if np.isinf(cost[i, j]) or len(finalists) == FINALISTS:
                break
            chosen = [*used[i], int(j)]
            values = dict(zip(changes.column[chosen].tolist(), changes.value[chosen].tolist(), strict=True))
            if frozenset(values) not in finalists:
                found = self._checked(values)
                if found is not None:
                    finalists[frozenset(values)] = self._cheaper(found)
        return min(finalists.values(), key=lambda found: found.cost, default=None)

    def _cheaper(self, found: Found) -> Found:
        """Change two columns at a time, as long as that makes the whole cheaper."""
        is_better = True
        while is_better:
            is_better = False
            for i, j in combinations(sorted(found.values), 2):
                better, _ = self.cheapest_pair(self.changes, [i], [j], found)
                if better is not None and better.cost < found.cost - 1e-9:
                    found, is_better = better, True
        return found
