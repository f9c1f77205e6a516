"""Tree of ranges of changes: each range is split once, and all searches share its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyplane.explain.geometry._table_candidates import Changes, RowColumn, root_changes
from polyplane.explain.geometry._table_effects import ModelEffects

#: Total number of parts into which ranges are split, and the smallest and largest number of parts of one range.
PARTS, PARTS_OF_ONE = 64, (4, 16)


class ChangeTree:
    """Changes of the columns of a row, and the parts of split changes.

    Parameters
    ----------
    effects : ModelEffects
        Effects of the columns.
    columns : sequence of RowColumn
        The columns that may change.

    Attributes
    ----------
    columns : dict of int to RowColumn
        The columns that have changes.
    changes : Changes
        All changes so far. The first is the change of no column.
    n_roots : int
        Number of the first changes, which cover everything that is allowed.
    """

    def __init__(self, effects: ModelEffects, columns: Sequence[RowColumn]) -> None:
        changes = root_changes(effects, columns)
        used = set(changes.column.tolist())
        self.columns = {column.position: column for column in columns if column.position in used}
        self.changes = Changes.join([Changes.none(effects.n_planes), changes])
        self.n_roots = len(self.changes.cost)
        self._starts = self._stops = np.full(self.n_roots, -1)
        self._spreads = np.ones(len(effects.columns) + 1)  # the last is no change
        self._spreads[list(self.columns)] = [column.spread for column in self.columns.values()]

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
        n_parts = int(np.clip(PARTS / max(len(some), 1), *PARTS_OF_ONE))
        joined, starts, stops = [self.changes], self._starts.copy(), self._stops.copy()
        n_changes = len(self.changes.cost)
        for j in np.unique(self.changes.column[some]).tolist():
            own = some[self.changes.column[some] == j]
            parts, origin = self.columns[j].split(self.changes.take(own), n_parts)
            stops[own] = n_changes + np.searchsorted(origin, np.arange(len(own)), side="right")
            starts[own] = n_changes + np.searchsorted(origin, np.arange(len(own)), side="left")
            joined.append(parts)
            n_changes += len(origin)
        if len(joined) > 1:
            self.changes = Changes.join(joined)
            unsplit = np.full(n_changes - len(starts), -1)
            self._starts, self._stops = np.append(starts, unsplit), np.append(stops, unsplit)
