"""Search for the change of the fewest columns, and of the lowest cost, that leads to another class."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from polyplane.explain.geometry._table_candidates import Changes, RowColumn
from polyplane.explain.geometry._table_pairs import Found, PairSearch, RowChanges, class_of
from polyplane.tables._model import TableModel

#: Width of the beam while columns are added one by one, and number of combinations whose cost is then reduced.
BEAM, FINALISTS = 128, 4
#: Smallest improvement of the cost that starts another pass.
PROGRESS = 1e-3


class Reached(NamedTuple):
    """Changed columns, changed row, its class, and whether the change is proven to be the smallest."""

    values: dict[int, float]
    z: np.ndarray
    target: int
    is_proven: bool


def search(
    model: TableModel, z: np.ndarray, columns: Sequence[RowColumn], goals: list[int], max_columns: int
) -> Reached | None:
    """Find the change of the fewest columns, and among these the one of the lowest cost.

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
    max_columns : int
        Maximum number of columns that may change.
    """
    row = RowChanges(model, z, columns, goals)
    for is_strict in (False, True):
        row.is_strict = is_strict
        found, is_proven = _best(row, min(max_columns, len(row.tree.columns)))
        if found is None:
            return None
        rounded = {j: row.tree.columns[j].rounded(value) for j, value in found.values.items()}
        for values in [found.values] if rounded == found.values else [rounded, found.values]:
            after = row.changed(values)
            target = class_of(model, after)
            if target in goals:
                return Reached(values, after, target, is_proven)
    return None


def _best(row: RowChanges, max_columns: int) -> tuple[Found | None, bool]:
    own, is_proven = list(row.tree.columns), True
    for first in ([-1], own)[:max_columns]:
        pairs = PairSearch(row, first, own)
        is_proven &= pairs.run()
        if pairs.best is not None:
            return pairs.best, is_proven
    return (_by_beam(row, max_columns) if max_columns > 2 else None), False


def _by_beam(row: RowChanges, max_columns: int) -> Found | None:
    """Beam search: add columns one by one to the combinations with the largest lead, then reduce the cost."""
    changes = row.tree.changes.take(np.arange(1, row.tree.n_roots))
    changes = changes.take(~np.isnan(changes.value))
    added, used = np.zeros((1, len(row.base))), np.zeros((1, 0), dtype=int)
    for size in range(1, max_columns + 1):
        gaps = _gaps_of_more(row, changes, added, used)
        if size > 2 and (gaps > 0).any():
            return _cheapest(row, changes, gaps, used)
        order = np.argsort(-gaps, axis=None, kind="stable")[:BEAM]
        i, j = np.unravel_index(order[np.isfinite(gaps.ravel()[order])], gaps.shape)
        used, added = np.column_stack([used[i], j]), added[i] + changes.near[j]
        if not len(used):
            return None
    return None


def _gaps_of_more(row: RowChanges, changes: Changes, added: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Compute the leads of the targets after one more change, of another column, to each combination."""
    nothing = Changes.join([Changes.none(len(row.base))] * len(used))
    gaps = row.after({}).of_all(nothing._replace(near=added), changes, is_bound=False)
    for k in range(used.shape[1]):
        gaps[changes.column[used[:, k], None] == changes.column] = -np.inf
    return gaps


def _cheapest(row: RowChanges, changes: Changes, gaps: np.ndarray, used: np.ndarray) -> Found | None:
    """Reduce the cost of a few combinations of different columns; return the cheapest."""
    cost = np.where(gaps > 0, changes.cost[used].sum(axis=1)[:, None] + changes.cost, np.inf)
    finalists: dict[frozenset[int], Found] = {}
    for place in np.argsort(cost, axis=None, kind="stable"):
        i, j = np.unravel_index(place, cost.shape)
        if np.isinf(cost[i, j]) or len(finalists) == FINALISTS:
            break
        chosen = np.append(used[i], j)
        values = dict(zip(changes.column[chosen].tolist(), changes.value[chosen].tolist(), strict=True))
        if frozenset(values) not in finalists and row.is_reached(values):
            finalists[frozenset(values)] = _made_cheaper(row, row.found(values))
    return min(finalists.values(), key=lambda found: found.cost, default=None)


def _made_cheaper(row: RowChanges, found: Found) -> Found:
    """Reduce the cost by changing two columns at a time, until it no longer decreases."""
    is_better = True
    while is_better:
        is_better = False
        for i, j in combinations(sorted(found.values), 2):
            pairs = PairSearch(row, [i], [j], found)
            pairs.run()
            if pairs.best is not None and pairs.best.cost < found.cost - PROGRESS:
                found, is_better = pairs.best, True
    return found
