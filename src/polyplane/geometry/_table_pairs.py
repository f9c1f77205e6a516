"""The cheapest change of two columns that makes a row another class, to a proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyplane.geometry._table_candidates import RowColumn
from polyplane.geometry._table_effects import ModelEffects
from polyplane.geometry._table_gaps import Gaps
from polyplane.geometry._table_tree import ChangeTree
from polyplane.tables._model import TableModel

#: Pairs of ranges that are split at a time, and how often; then the search ends without proof.
BATCH, ROUNDS = 256, 60
#: What scores may be wrong by: ranges that come this near to another class are looked at more closely.
SLACK = 1e-4
#: A pair of changes that is cheaper by less than this is not looked for.
TOLERANCE = 1e-3
#: Cheapest pairs that the model is asked about at a time, where rounding can make another class of a near tie.
TRIES = 8
#: The matrix of all pairs is looked at in so many blocks of rows or more, each of about so many entries at most: pairs
#: whose columns are in the other order are left out.
N_BLOCKS, BLOCK = 4, 1 << 20


class Found(NamedTuple):
    """Values of the changed columns, and what the changes cost."""

    values: dict[int, float]
    cost: float


class RowChanges:
    """A row, what its columns may change to, and what the model says of it then.

    Parameters
    ----------
    model : TableModel
        The model.
    z : ndarray of shape (n_features,)
        The encoded row.
    columns : sequence of RowColumn
        The columns that may change.
    goals : list of int
        The classes to get to.
    """

    def __init__(self, model: TableModel, z: np.ndarray, columns: Sequence[RowColumn], goals: list[int]) -> None:
        self.model, self.z, self.goals = model, z, goals
        self.effects = ModelEffects.of(model)
        self.base = self.effects.plane_scores(z)
        self.tree = ChangeTree(self.effects, columns)
        self.is_strict = False  # whether the model is asked about each change that seems to reach a goal

    def changed(self, values: dict[int, float]) -> np.ndarray:
        """The encoded row with other values in some columns."""
        z = self.z.copy()
        for j, value in values.items():
            z[self.model.encoding.places[j]] = self.tree.columns[j].effect.encode(np.array([value]))[0]
        return z

    def is_reached(self, values: dict[int, float]) -> bool:
        """Whether the model gives the changed row a goal."""
        return class_of(self.model, self.changed(values)) in self.goals

    def found(self, values: dict[int, float]) -> Found:
        """Changes with their cost."""
        return Found(values, sum(self.tree.columns[j].cost_of(value) for j, value in values.items()))

    def after(self, values: dict[int, float]) -> Gaps:
        """The leads of the goals from where some changes are made."""
        added = [self.tree.columns[j].added(value) for j, value in values.items()]
        return Gaps(self.effects, self.goals, np.sum([self.base, *added], axis=0))


class PairSearch:
    """The cheapest change of two columns.

    Pairs of ranges of values that cannot lead to a goal, by the bounds of their scores, or not at less cost than what
    was found, are dropped; of the others those that may be cheapest are split, until none is left.

    Parameters
    ----------
    row : RowChanges
        The row.
    first, second : list of int
        The columns, one of each list; -1 stands for no change.
    start : Found, default=None
        A change to start from, of these and of other columns, whose values stay; only cheaper ones are found.
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
        """Find `best`; whether it is proven that there is none cheaper, or none at all."""
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
        """All pairs of undivided ranges that may lead to a goal, as two lists."""
        if len(left) == 1:
            return self._of_pairs(np.repeat(left, len(right)), right)
        n_rows, column = max(1, min(BLOCK // max(len(right), 1), len(left) // N_BLOCKS)), self.tree.changes.column
        starts = range(0, len(left), n_rows)
        blocks = [self._of_all(left[i : i + n_rows], right[column[right] > column[left[i]]]) for i in starts]
        return np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])

    def _of_pairs(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of some pairs that may lead to a goal; the bounds of single values are their gaps."""
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
        """The parts of pairs that may lead to a goal: the wider range of each pair is split."""
        is_left = self.tree.widths(left) > self.tree.widths(right)
        parts, origin = self.tree.parts(np.where(is_left, left, right))
        of_left = is_left[origin]
        return self._of_pairs(np.where(of_left, parts, left[origin]), np.where(of_left, right[origin], parts))

    def _gaps(self, left: np.ndarray, right: np.ndarray, is_bound: bool) -> np.ndarray:
        return self.gaps.of_pairs(self.tree.changes, left, right, is_bound)

    def _cost(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.tree.changes.cost[left] + self.tree.changes.cost[right]

    def _unless_single(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Without pairs of single values, about which all is known."""
        is_point = self.tree.changes.is_point
        is_open = ~(is_point[left] & is_point[right])
        return left[is_open], right[is_open]

    def _keep_cheapest(self, left: np.ndarray, right: np.ndarray, gaps: np.ndarray) -> None:
        """Keep the cheapest pair that reaches a goal; where that is a near tie the model itself is asked."""
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
    """The class that a model gives an encoded row."""
    return int(model.class_scores(z[None])[0].argmax())
