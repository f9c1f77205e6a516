"""Search for the cheapest change of two columns that leads to another class, with a proof of optimality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyplane.explain.geometry._table_candidates import RowColumn
from polyplane.explain.geometry._table_effects import ModelEffects
from polyplane.explain.geometry._table_gaps import Gaps
from polyplane.explain.geometry._table_tree import ChangeTree
from polyplane.tables._model import TableModel

#: Number of pairs of ranges that are split at a time, and of iterations until the search ends without proof.
BATCH, ROUNDS = 256, 60
#: Bound of the rounding error of scores: ranges that are this close to another class are examined further.
SLACK = 1e-4
#: Smallest improvement of the cost that is searched for.
TOLERANCE = 1e-3
#: Number of cheapest pairs that the model predicts at a time, where rounding may decide a near tie.
TRIES = 8
#: Smallest number of blocks of rows of the matrix of all pairs, and largest number of entries of a block. Pairs whose
#: columns are in the other order are omitted.
N_BLOCKS, BLOCK = 4, 1 << 20


class Found(NamedTuple):
    """Values of the changed columns, and the cost of the changes."""

    values: dict[int, float]
    cost: float


class RowChanges:
    """A row, the possible changes of its columns, and the model's predictions for the changed row.

    Parameters
    ----------
    model : TableModel
        The model.
    z : ndarray of shape (n_features,)
        The encoded row.
    columns : sequence of RowColumn
        The columns that may change.
    goals : list of int
        Target classes.
    """

    def __init__(self, model: TableModel, z: np.ndarray, columns: Sequence[RowColumn], goals: list[int]) -> None:
        self.model, self.z, self.goals = model, z, goals
        self.effects = ModelEffects.of(model)
        self.base = self.effects.plane_scores(z)
        self.tree = ChangeTree(self.effects, columns)
        self.is_strict = False  # whether the model predicts each change that seems to reach a target

    def changed(self, values: dict[int, float]) -> np.ndarray:
        """Return the encoded row with changed values in some columns."""
        z = self.z.copy()
        for j, value in values.items():
            z[self.model.encoding.places[j]] = self.tree.columns[j].effect.encode(np.array([value]))[0]
        return z

    def is_reached(self, values: dict[int, float]) -> bool:
        """Return whether the model predicts a target class for the changed row."""
        return class_of(self.model, self.changed(values)) in self.goals

    def found(self, values: dict[int, float]) -> Found:
        """Return changes with their cost."""
        return Found(values, sum(self.tree.columns[j].cost_of(value) for j, value in values.items()))

    def after(self, values: dict[int, float]) -> Gaps:
        """Return the leads of the targets after some changes."""
        added = [self.tree.columns[j].added(value) for j, value in values.items()]
        return Gaps(self.effects, self.goals, np.sum([self.base, *added], axis=0))


class PairSearch:
    """Branch-and-bound search for the cheapest change of two columns.

    Pairs of ranges of values are discarded if the bounds of their scores exclude all targets, or if they cost at least
    as much as the best change so far. Of the others, the potentially cheapest ones are split, until none is left.

    Parameters
    ----------
    row : RowChanges
        The row.
    first, second : list of int
        Candidates for the first and the second column; -1 for no change.
    start : Found, default=None
        A change to start from, possibly of other columns as well, whose values stay. Only cheaper changes are found.
    """

    def __init__(self, row: RowChanges, first: list[int], second: list[int], start: Found | None = None) -> None:
        self.row, self.tree = row, row.tree
        self.best: Found | None = None
        values = {} if start is None else start.values
        self.fixed = row.found({j: value for j, value in values.items() if j not in (*first, *second)})
        self.gaps = row.after(self.fixed.values)
        self.limit = np.inf if start is None else start.cost - self.fixed.cost
        self._columns = first, second
        self._tolerance = 0.0 if first == [-1] else TOLERANCE

    def run(self) -> bool:
        """Find `best`; return whether the result is proven."""
        left, right = self._start(*(self.tree.roots(columns) for columns in self._columns))
        for _ in range(ROUNDS):
            cost = self._cost(left, right)
            is_open = cost < self.limit - self._tolerance
            left, right, cost = left[is_open], right[is_open], cost[is_open]
            if not len(left):
                return True
            order = np.argpartition(cost, BATCH) if len(cost) > BATCH else np.arange(len(cost))
            now, later = order[:BATCH], order[BATCH:]
            parts = self._split(left[now], right[now])
            left, right = np.append(left[later], parts[0]), np.append(right[later], parts[1])
        return False

    def _start(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of undivided ranges that may lead to a target, as two lists."""
        if len(left) == 1:
            return self._of_pairs(np.repeat(left, len(right)), right)
        n_rows, column = max(1, min(BLOCK // max(len(right), 1), len(left) // N_BLOCKS)), self.tree.changes.column
        starts = range(0, len(left), n_rows)
        blocks = [self._of_all(left[i : i + n_rows], right[column[right] > column[left[i]]]) for i in starts]
        return np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])

    def _of_pairs(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs that may lead to a target; for single values, the bounds are exact."""
        is_open = self._cost(left, right) < self.limit
        left, right = left[is_open], right[is_open]
        self._keep_cheapest(left, right, self._gaps(left, right, is_bound=False))
        left, right = self._unless_single(left, right)
        is_open = self._cost(left, right) < self.limit
        left, right = left[is_open], right[is_open]
        is_open = self._gaps(left, right, is_bound=True) > -SLACK
        return left[is_open], right[is_open]

    def _of_all(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        changes = self.tree.changes
        bounds = self.gaps.of_all(changes.take(left), changes.take(right), is_bound=True)
        is_open = (bounds > -SLACK) & (changes.column[left, None] < changes.column[right])
        is_open &= changes.cost[left, None] + changes.cost[right] < self.limit
        rows, places = is_open.any(axis=1), is_open.any(axis=0)
        left, right, is_open = left[rows], right[places], is_open[rows][:, places]
        if not len(left):
            return left, right
        gaps = self.gaps.of_all(changes.take(left), changes.take(right), is_bound=False)
        i, j = np.nonzero(is_open)
        self._keep_cheapest(left[i], right[j], gaps[i, j])
        return self._unless_single(left[i], right[j])

    def _split(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split the wider range of each pair; return the parts that may lead to a target."""
        is_left = self.tree.widths(left) > self.tree.widths(right)
        parts, origin = self.tree.parts(np.where(is_left, left, right))
        of_left = is_left[origin]
        return self._of_pairs(np.where(of_left, parts, left[origin]), np.where(of_left, right[origin], parts))

    def _gaps(self, left: np.ndarray, right: np.ndarray, is_bound: bool) -> np.ndarray:
        return self.gaps.of_pairs(self.tree.changes, left, right, is_bound)

    def _cost(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.tree.changes.cost[left] + self.tree.changes.cost[right]

    def _unless_single(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Remove pairs of single values, whose result is known."""
        is_point = self.tree.changes.is_point
        is_open = ~(is_point[left] & is_point[right])
        return left[is_open], right[is_open]

    def _keep_cheapest(self, left: np.ndarray, right: np.ndarray, gaps: np.ndarray) -> None:
        """Keep the cheapest pair that reaches a target; in a near tie, the model itself decides."""
        is_reached = gaps > 0
        left, right, gaps = left[is_reached], right[is_reached], gaps[is_reached]
        cost, changes = self._cost(left, right), self.tree.changes
        for k in np.argsort(cost, kind="stable")[:TRIES]:
            if cost[k] >= self.limit:
                return
            pair = {int(changes.column[i]): float(changes.value[i]) for i in (left[k], right[k])}
            pair.pop(-1, None)
            values = pair | self.fixed.values
            if (gaps[k] > SLACK and not self.row.is_strict) or self.row.is_reached(values):
                self.best = self.row.found(values)
                self.limit = self.best.cost - self.fixed.cost
                return


def class_of(model: TableModel, z: np.ndarray) -> int:
    """Predict the class of an encoded row."""
    return int(model.class_scores(z[None])[0].argmax())
