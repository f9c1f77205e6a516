"""Counterfactuals of rows of a table: branch and bound over the values of columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from polyplane.explain.columns import decoded
from polyplane.explain.geometry.changes import Bounds, Changes, ModelScores, RowColumn, free_columns, root_changes
from polyplane.inputs.encoding import BooleanColumn, TableInputs
from polyplane.model import Model

#: Number of pairs of ranges that are split at a time, and of iterations until the search ends without proof.
BATCH, MAX_ROUNDS = 256, 60
#: Bound of the rounding error of scores: ranges that are this close to another class are examined further.
SLACK = 1e-4
#: Smallest improvement of the cost that is searched for.
TOLERANCE = 1e-3
#: Number of cheapest pairs that the model predicts at a time, where rounding may decide a near tie.
MAX_TRIES = 8
#: Smallest number of blocks of rows of the matrix of all pairs, and largest number of entries of a block. Pairs whose
#: columns are in the other order are omitted.
MIN_BLOCKS, MAX_BLOCK_PAIRS = 4, 1 << 20
#: Total number of parts into which ranges are split, and the smallest and largest number of parts of one range.
PARTS, PARTS_OF_ONE = 64, (4, 16)
#: Width of the beam while columns are added one by one, and number of combinations whose cost is then reduced.
BEAM, FINALISTS = 128, 4
#: Lower limit of sums of exponentials, so that the product of MEMBERS_PER_LOG sums does not underflow to 0.
MIN_SUM, MEMBERS_PER_LOG = 1e-70, 4


@dataclass(frozen=True, eq=False)
class TableCounterfactual:
    """A counterfactual of a table row: a changed row of another class.

    Parameters
    ----------
    changes : dict of str to tuple
        Values before and after, by the name of each changed column: levels as strings, numbers, booleans, and dates as
        ISO strings.
    target : int
        Class index of the changed row.
    distance : float
        Sum of the changes. The change of a number or a date is measured in units of the column's spread: the
        interquartile range of the training rows, or their standard deviation if that is 0. The change of a category or
        a boolean counts 1.
    proven : bool
        Whether the change is proven to be optimal: no change of fewer columns leads to the target, and no change of as
        many columns is smaller. If a single column of levels, integers or dates changes, this is exact. Otherwise,
        "smaller" means by more than a few thousandths: non-integer numbers are resolved to a thousandth of the spread.
    z : ndarray of shape (n_encoded,)
        The changed row, encoded.
    """

    changes: dict[str, tuple[Any, Any]]
    target: int
    distance: float
    proven: bool
    z: np.ndarray


def table_counterfactual(
    model: Any,
    z: np.ndarray,
    target: int | None = None,
    *,
    bounds: Bounds | None = None,
    frozen: Collection[str] = (),
    increasing: Collection[str] = (),
    decreasing: Collection[str] = (),
    max_columns: int | None = None,
) -> TableCounterfactual | None:
    r"""Find the smallest change of a table row that leads to another class.

    Only plausible changes are considered: a category changes to another of its levels, integers remain integers, dates
    move by whole days, and numbers and dates stay within the range of the training data. Missing values remain missing,
    and no value becomes missing or a rare level. Among all changes that lead to the target, those of the fewest columns
    are preferred, and among these the one with the smallest sum of changes.

    The score of each plane is a sum over the columns. For each range of values of a column, the search computes bounds
    of its contribution to the scores. Ranges that cannot lead to the target are discarded, and the others are split
    until single values remain. For one and two columns, this proves that the result is the smallest change. For three
    columns or more, the search adds columns one by one and then reduces the change two columns at a time, without
    proof.

    Parameters
    ----------
    model : Model, TableClassifier or Pipeline
        A model of tables.
    z : ndarray of shape (n_encoded,)
        The encoded row: a row of ``Model.of(model).encode(table)``.
    target : int, default=None
        Index of the target class in ``classes_``. If None, any class other than the predicted one.
    bounds : dict of str to (low, high), default=None
        Bounds of numbers and dates that replace the range of the training data; None as low or high keeps that side.
        They apply only to columns that change.
    frozen : collection of str, default=()
        Columns that must not change.
    increasing, decreasing : collection of str, default=()
        Numbers and dates that can only increase, or only decrease.
    max_columns : int, default=None
        Maximum number of columns that may change. If None, all.

    Returns
    -------
    found : TableCounterfactual or None
        None if no allowed change was found. For a row of the target class, a result without changes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> from polyplane.explain.geometry import table_counterfactual
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "member": rng.choice(["yes", "no"], 400)})
    >>> price = np.where((frame["age"] >= 60) | (frame["member"] == "yes"), "reduced", "full")
    >>> model = TableClassifier(random_state=0).fit(frame, price).model_
    >>> row = model.encode(pd.DataFrame({"age": [57], "member": ["no"]}))[0]
    >>> found = table_counterfactual(model, row)
    >>> found.changes, found.proven
    ({'age': (57, 60)}, True)
    >>> table_counterfactual(model, row, frozen=["age"]).changes
    {'member': ('no', 'yes')}
    """
    model = Model.of(model)
    inputs = model.inputs
    if not isinstance(inputs, TableInputs):
        raise TypeError(f"This {model.learner} takes a matrix, not a table: use counterfactual.")
    z = np.asarray(z, dtype=np.float64)
    if z.shape != (inputs.n_encoded,):
        raise ValueError(f"z has shape {z.shape}; it must be one encoded row of {inputs.n_encoded} features.")
    if not np.isfinite(z).all():
        name = inputs.features[int((~np.isfinite(z)).argmax())].name
        raise ValueError(f"z must be finite, but its feature {name!r} is not.")
    if target is not None and not 0 <= target < model.n_classes:
        raise ValueError(f"target={target!r} is not one of the classes 0 to {model.n_classes - 1}.")
    if max_columns is not None and max_columns < 1:
        raise ValueError(f"max_columns={max_columns!r} must be 1 or more, or None.")
    columns = free_columns(model, z, bounds, frozen, increasing, decreasing)
    before = int(model.class_scores(z[None])[0].argmax())
    if target == before:
        return TableCounterfactual({}, before, 0.0, True, z.copy())
    if not columns:
        return None
    goals = [c for c in range(model.n_classes) if c != before] if target is None else [target]
    row = RowChanges(model, z, columns, goals)
    for row.is_strict in (False, True):
        found, is_proven = _best(row, min(max_columns or len(columns), len(row.columns)))
        if found is None:
            return None
        rounded = {j: row.columns[j].rounded(value) for j, value in found.values.items()}
        for values in [rounded] if rounded == found.values else [rounded, found.values]:
            if row.is_reached(values):
                return _as_read(row, values, is_proven)
    return None


def _as_read(row: RowChanges, values: dict[int, float], is_proven: bool) -> TableCounterfactual:
    after, changes, distance = row.changed(values), {}, 0.0
    for j, value in sorted(values.items()):
        column, own = row.columns[j].scores.column, row.places[j]
        before, now = decoded(column, row.z[own]), decoded(column, after[own])
        is_boolean = isinstance(column, BooleanColumn)
        changes[column.name] = (before == "true", now == "true") if is_boolean else (before, now)
        distance += row.columns[j].cost_of(value) if row.columns[j].scores.level_cost is None else 1.0
    return TableCounterfactual(changes, row.predicted(after), distance, is_proven, after)


class ValueChanges(NamedTuple):
    """Values of the changed columns, and the cost of the changes."""

    values: dict[int, float]
    cost: float


class RowChanges:
    """A row and the tree of its changes: each range of values is split once, and all searches share its parts.

    Parameters
    ----------
    model : Model
        The model.
    z : ndarray of shape (n_encoded,)
        The encoded row.
    columns : sequence of RowColumn
        The columns that may change.
    goals : list of int
        Target classes.

    Attributes
    ----------
    columns : dict of int to RowColumn
        The columns that have changes.
    changes : Changes
        All changes so far. The first is the change of no column.
    n_roots : int
        Number of the first changes, which cover everything that is allowed.
    """

    def __init__(self, model: Model, z: np.ndarray, columns: Sequence[RowColumn], goals: list[int]) -> None:
        self.model, self.z, self.goals, self.places = model, z, goals, model.inputs.places  # type: ignore[union-attr]
        scores = ModelScores.of(model)
        self.planes = scores.planes
        self.base = model.plane_scores(z[None])[0].astype(np.float64)
        self.is_strict = False  # whether the model predicts each change that seems to reach a target
        changes = root_changes(scores, columns)
        used = set(changes.column.tolist())
        self.columns = {column.position: column for column in columns if column.position in used}
        self.changes = Changes.join([Changes.none(self.planes.n_planes), changes])
        self.n_roots = len(self.changes.cost)
        self._starts = self._stops = np.full(self.n_roots, -1)
        self._spreads = np.ones(len(scores.columns) + 1)  # the last is no change
        self._spreads[list(self.columns)] = [column.spread for column in self.columns.values()]

    # The row after changes.

    def changed(self, values: dict[int, float]) -> np.ndarray:
        """Return the encoded row with changed values in some columns."""
        z = self.z.copy()
        for j, value in values.items():
            z[self.places[j]] = self.columns[j].scores.encode(np.array([value]))[0]
        return z

    def predicted(self, z: np.ndarray) -> int:
        """Predict the class of an encoded row."""
        return int(self.model.class_scores(z[None])[0].argmax())

    def is_reached(self, values: dict[int, float]) -> bool:
        """Return whether the model predicts a target class for the changed row."""
        return self.predicted(self.changed(values)) in self.goals

    def found(self, values: dict[int, float]) -> ValueChanges:
        """Return changes with their cost."""
        return ValueChanges(values, sum(self.columns[j].cost_of(value) for j, value in values.items()))

    def after(self, values: dict[int, float]) -> np.ndarray:
        """Compute the scores of the planes after some changes."""
        total = self.base.copy()
        for j, value in values.items():
            scores = self.columns[j].scores
            total += scores.of(scores.encode(np.array([value])))[0] - self.columns[j].own
        return total

    # The tree of ranges.

    def roots(self, columns: list[int]) -> np.ndarray:
        """Return the roots of some columns; -1 is no change."""
        is_own = np.zeros(len(self._spreads), dtype=bool)
        is_own[columns] = True
        return np.flatnonzero(is_own[self.changes.column[: self.n_roots]])

    def widths(self, some: np.ndarray) -> np.ndarray:
        """Return the widths of ranges in units of the spread; single values have width 0."""
        return (self.changes.high[some] - self.changes.low[some]) / self._spreads[self.changes.column[some]]

    def parts(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of some ranges, and the index in `some` of the range that each is a part of."""
        self._split(np.unique(some[self._starts[some] < 0]))
        counts = self._stops[some] - self._starts[some]
        origin = np.repeat(np.arange(len(some)), counts)
        within = np.arange(len(origin)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._starts[some][origin] + within, origin

    def _split(self, some: np.ndarray) -> None:
        if not len(some):
            return
        n_parts = int(np.clip(PARTS / len(some), *PARTS_OF_ONE))
        joined, starts, stops = [self.changes], self._starts.copy(), self._stops.copy()
        n_changes = len(self.changes.cost)
        for j in np.unique(self.changes.column[some]).tolist():
            own = some[self.changes.column[some] == j]
            parts, origin = self.columns[j].split(self.changes.take(own), n_parts)
            stops[own] = n_changes + np.searchsorted(origin, np.arange(len(own)), side="right")
            starts[own] = n_changes + np.searchsorted(origin, np.arange(len(own)), side="left")
            joined.append(parts)
            n_changes += len(origin)
        self.changes = Changes.join(joined)
        unsplit = np.full(n_changes - len(starts), -1)
        self._starts, self._stops = np.append(starts, unsplit), np.append(stops, unsplit)

    # The lead of the targets: their largest score minus the largest score of another class.

    def leads_of_all(self, base: np.ndarray, left: Changes, right: Changes, is_bound: bool) -> np.ndarray:
        """Compute the lead of all pairs, shape (n_left, n_right): at the cheapest values, or an upper bound."""
        if is_bound:
            upper = self._products(base, left.most, right.most)
            return self._lead(upper, self._products(base, left.least, right.least))
        scores = self._products(base, left.near, right.near)
        return np.where(np.isnan(np.add.outer(left.value, right.value)), -np.inf, self._lead(scores, scores))

    def leads_of_pairs(self, base: np.ndarray, left: np.ndarray, right: np.ndarray, is_bound: bool) -> np.ndarray:
        """Compute the lead of pairs of changes, given by their indices, shape (n_pairs,)."""
        changes = self.changes
        if is_bound:
            upper, lower = (
                self.planes.pooled(base + part[left] + part[right]).T for part in (changes.most, changes.least)
            )
            return self._lead(upper, lower)
        scores = self.planes.pooled(base + changes.near[left] + changes.near[right]).T
        return np.where(np.isnan(changes.value[left] + changes.value[right]), -np.inf, self._lead(scores, scores))

    def _lead(self, upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        best, top = lower.max(axis=0), lower.argmax(axis=0)
        rest = lower.copy()
        np.put_along_axis(rest, top[None], -np.inf, axis=0)
        second = rest.max(axis=0)
        return np.max([upper[goal] - np.where(top == goal, second, best) for goal in self.goals], axis=0)

    def _products(self, base: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the scores of the classes, shape (n_classes, n_left, n_right).

        The sum of exponentials over the planes of a class is a matrix product of the factors of both changes.
        """
        if len(left) == 1 or self.planes.pooling == "max":
            return np.stack([self.planes.pooled(base + one + right).T for one in left], axis=1)
        starts, n_classes, n_members = self.planes.indptr, self.planes.n_classes, self.planes.n_members
        total = base + left
        scores = np.zeros((n_classes, len(left), len(right)))
        product = np.ones_like(scores)
        for m, share in enumerate(self.planes.member_weight * n_members):
            edges = starts[m * n_classes : (m + 1) * n_classes + 1]
            own = slice(edges[0], edges[-1])
            tops = total[:, own].max(axis=1)[:, None], right[:, own].max(axis=1)[:, None]
            scores += share * (tops[0] + tops[1].T)
            first, second = np.exp(total[:, own] - tops[0]), np.exp(right[:, own] - tops[1])
            for c in range(n_classes):
                planes = slice(edges[c] - own.start, edges[c + 1] - own.start)
                factor = np.maximum(first[:, planes] @ second[:, planes].T, MIN_SUM)
                product[c] *= factor if share == 1.0 else factor**share
            if m % MEMBERS_PER_LOG == MEMBERS_PER_LOG - 1 or m == n_members - 1:
                scores += np.log(product)
                product[...] = 1.0
        return scores / n_members


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
    start : ValueChanges, default=None
        A change to start from, possibly of other columns as well, whose values stay. Only cheaper changes are found.
    """

    def __init__(self, row: RowChanges, first: list[int], second: list[int], start: ValueChanges | None = None) -> None:
        self.row = row
        self.best: ValueChanges | None = None
        values = {} if start is None else start.values
        self.fixed = row.found({j: value for j, value in values.items() if j not in (*first, *second)})
        self.base = row.after(self.fixed.values)
        self.limit = np.inf if start is None else start.cost - self.fixed.cost
        self._columns = first, second
        self._tolerance = 0.0 if first == [-1] else TOLERANCE

    def run(self) -> bool:
        """Find `best`; return whether the result is proven."""
        left, right = self._start(*(self.row.roots(columns) for columns in self._columns))
        for _ in range(MAX_ROUNDS):
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
        n_rows = max(1, min(MAX_BLOCK_PAIRS // max(len(right), 1), len(left) // MIN_BLOCKS))
        column, starts = self.row.changes.column, range(0, len(left), n_rows)
        blocks = [self._of_all(left[i : i + n_rows], right[column[right] > column[left[i]]]) for i in starts]
        return np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])

    def _of_pairs(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs that may lead to a target; for single values, the bounds are exact."""
        is_open = self._cost(left, right) < self.limit
        left, right = left[is_open], right[is_open]
        self._keep_cheapest(left, right, self.row.leads_of_pairs(self.base, left, right, is_bound=False))
        left, right = self._unless_single(left, right)
        is_open = self._cost(left, right) < self.limit
        left, right = left[is_open], right[is_open]
        is_open = self.row.leads_of_pairs(self.base, left, right, is_bound=True) > -SLACK
        return left[is_open], right[is_open]

    def _of_all(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        changes = self.row.changes
        bounds = self.row.leads_of_all(self.base, changes.take(left), changes.take(right), is_bound=True)
        is_open = (bounds > -SLACK) & (changes.column[left, None] < changes.column[right])
        is_open &= changes.cost[left, None] + changes.cost[right] < self.limit
        rows, places = is_open.any(axis=1), is_open.any(axis=0)
        left, right, is_open = left[rows], right[places], is_open[rows][:, places]
        if not len(left):
            return left, right
        leads = self.row.leads_of_all(self.base, changes.take(left), changes.take(right), is_bound=False)
        i, j = np.nonzero(is_open)
        self._keep_cheapest(left[i], right[j], leads[i, j])
        return self._unless_single(left[i], right[j])

    def _split(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split the wider range of each pair; return the parts that may lead to a target."""
        is_left = self.row.widths(left) > self.row.widths(right)
        parts, origin = self.row.parts(np.where(is_left, left, right))
        of_left = is_left[origin]
        return self._of_pairs(np.where(of_left, parts, left[origin]), np.where(of_left, right[origin], parts))

    def _cost(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.row.changes.cost[left] + self.row.changes.cost[right]

    def _unless_single(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Remove pairs of single values, whose result is known."""
        is_wide = self.row.changes.low != self.row.changes.high
        is_open = is_wide[left] | is_wide[right]
        return left[is_open], right[is_open]

    def _keep_cheapest(self, left: np.ndarray, right: np.ndarray, leads: np.ndarray) -> None:
        """Keep the cheapest pair that reaches a target; in a near tie, the model itself decides."""
        is_reached = leads > 0
        left, right, leads = left[is_reached], right[is_reached], leads[is_reached]
        cost, changes = self._cost(left, right), self.row.changes
        for k in np.argsort(cost, kind="stable")[:MAX_TRIES]:
            if cost[k] >= self.limit:
                return
            pair = {int(changes.column[i]): float(changes.value[i]) for i in (left[k], right[k])}
            pair.pop(-1, None)
            values = pair | self.fixed.values
            if (leads[k] > SLACK and not self.row.is_strict) or self.row.is_reached(values):
                self.best = self.row.found(values)
                self.limit = self.best.cost - self.fixed.cost
                return


def _best(row: RowChanges, max_columns: int) -> tuple[ValueChanges | None, bool]:
    """Find the change of the fewest columns, and of the lowest cost, and whether this is proven."""
    own, is_proven = list(row.columns), True
    for first in ([-1], own)[:max_columns]:
        pairs = PairSearch(row, first, own)
        is_proven &= pairs.run()
        if pairs.best is not None:
            return pairs.best, is_proven
    return (_by_beam(row, max_columns) if max_columns > 2 else None), False


def _by_beam(row: RowChanges, max_columns: int) -> ValueChanges | None:
    """Beam search: add columns one by one to the combinations with the largest lead, then reduce the cost."""
    changes, n_planes = row.changes.take(np.arange(1, row.n_roots)), row.planes.n_planes
    changes = changes.take(~np.isnan(changes.value))
    added, used = np.zeros((1, n_planes)), np.zeros((1, 0), dtype=int)
    for size in range(1, max_columns + 1):
        combined = Changes.none(n_planes, len(used))._replace(near=added)
        leads = row.leads_of_all(row.base, combined, changes, is_bound=False)
        for k in range(used.shape[1]):
            leads[changes.column[used[:, k], None] == changes.column] = -np.inf
        if size > 2 and (leads > 0).any():
            return _cheapest(row, changes, leads, used)
        order = np.argsort(-leads, axis=None, kind="stable")[:BEAM]
        i, j = np.unravel_index(order[np.isfinite(leads.ravel()[order])], leads.shape)
        used, added = np.column_stack([used[i], j]), added[i] + changes.near[j]
        if not len(used):
            return None
    return None


def _cheapest(row: RowChanges, changes: Changes, leads: np.ndarray, used: np.ndarray) -> ValueChanges | None:
    """Reduce the cost of a few combinations of different columns; return the cheapest."""
    cost = np.where(leads > 0, changes.cost[used].sum(axis=1)[:, None] + changes.cost, np.inf)
    finalists: dict[frozenset[int], ValueChanges] = {}
    for place in np.argsort(cost, axis=None, kind="stable"):
        i, j = np.unravel_index(place, cost.shape)
        if np.isinf(cost[i, j]) or len(finalists) == FINALISTS:
            break
        chosen = np.append(used[i], j)
        values = dict(zip(changes.column[chosen].tolist(), changes.value[chosen].tolist(), strict=True))
        if frozenset(values) not in finalists and row.is_reached(values):
            finalists[frozenset(values)] = _made_cheaper(row, row.found(values))
    return min(finalists.values(), key=lambda found: found.cost, default=None)


def _made_cheaper(row: RowChanges, found: ValueChanges) -> ValueChanges:
    """Reduce the cost by changing two columns at a time, until it no longer decreases."""
    is_better = True
    while is_better:
        is_better = False
        for i, j in combinations(sorted(found.values), 2):
            pairs = PairSearch(row, [i], [j], found)
            pairs.run()
            if pairs.best is not None and pairs.best.cost < found.cost - TOLERANCE:
                found, is_better = pairs.best, True
    return found
