"""`ColumnSummary`: summaries of distributed columns, from which an encoding is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyplane.inputs.cells import Cells
from polyplane.inputs.columns import CategoryColumn, Column
from polyplane.inputs.concatenation import GAPS, concatenated_cells
from polyplane.inputs.encoding import TableInputs
from polyplane.inputs.frames import Table
from polyplane.inputs.learning import DENSE, Limits

#: Largest number of distinct values of a column: the most frequent strings, or quantiles of numbers and dates.
MOST_VALUES = 100_000
#: Largest number of values that a column is fitted on; with more rows, all counts are reduced in proportion.
MOST_ROWS = 5_000_000


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """The distinct values of a column and their counts.

    With at most `MOST_VALUES` distinct values, a column fitted on a summary is exact: levels and their counts, medians
    and ranges. Otherwise rare strings are omitted, and numbers are replaced by the next one that is kept. The smallest
    and the largest number are always kept, and quantiles are exact to a hundred-thousandth of the rows.

    Parameters
    ----------
    cells : Cells
        The distinct values, without missing ones.
    counts : ndarray of shape (n_values,)
        Number of rows of each value.
    n_gaps : int
        Number of rows with a missing value.
    n_left_out : int
        Number of rows with omitted strings.
    is_unique : bool
        Whether all values of the column are distinct, including omitted ones.
    """

    cells: Cells
    counts: np.ndarray
    n_gaps: int
    n_left_out: int
    is_unique: bool

    @classmethod
    def of(cls, cells: Cells) -> ColumnSummary:
        """Summarise rows."""
        is_gap = cells.is_gap
        present = cells.take(np.flatnonzero(~is_gap))
        return _distinct(present, np.ones(len(present.values), dtype=np.int64), int(is_gap.sum()), 0, True)

    @classmethod
    def merged(cls, parts: Sequence[ColumnSummary]) -> ColumnSummary:
        """Merge the summaries of several parts."""
        cells = concatenated_cells([part.cells for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        n_gaps, n_left_out = (sum(getattr(part, name) for part in parts) for name in ("n_gaps", "n_left_out"))
        return _distinct(cells, counts, n_gaps, n_left_out, all(part.is_unique for part in parts))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum()) + self.n_gaps + self.n_left_out

    def expanded(self) -> Cells:
        """Return rows with these values and counts, at most `MOST_ROWS`."""
        share = min(1.0, MOST_ROWS / max(self.n_rows, 1))
        if self.is_unique:
            return replace(self.cells, values=np.concatenate([self._once(), self._gaps(share)]))
        counts = np.maximum(np.rint(self.counts * share), 1).astype(np.int64)
        return replace(self.cells, values=np.concatenate([np.repeat(self.cells.values, counts), self._gaps(share)]))

    def _gaps(self, share: float) -> np.ndarray:
        n_gaps = int(np.ceil(self.n_gaps * share))
        return np.full(n_gaps, GAPS[self.cells.form], dtype=self.cells.values.dtype)

    def _once(self) -> np.ndarray:
        """Return distinct values; row numbers remain recognisable even if few of them are kept."""
        values = self.cells.values
        if self.cells.form == "number" and len(values) == MOST_VALUES and (values % 1 == 0).all():
            low, n_rows = values[0], min(self.n_rows, MOST_ROWS)
            if self.n_rows >= DENSE * (values[-1] - low + 1):
                return low + np.arange(n_rows, dtype=np.float64)
        return values


def learn_encoding(
    summaries: Mapping[str, ColumnSummary],
    is_named: bool,
    kinds: Mapping[str, str],
    gaps: tuple[str, ...],
    decimal: str,
    limits: Limits,
) -> TableInputs:
    """Fit the encoding of a table on summaries of its columns; see `TableInputs.learn`."""
    names = tuple(summaries)
    n_rows = next(iter(summaries.values())).n_rows
    table = Table(names, is_named, n_rows, lambda j: summaries[names[j]].expanded())
    encoding = TableInputs.learn(table, kinds, gaps, decimal, limits)
    return replace(encoding, columns=tuple(_counted(column, summaries[column.name]) for column in encoding.columns))


def _counted(column: Column, summary: ColumnSummary) -> Column:
    """Return a category with the exact counts of its levels."""
    if not isinstance(column, CategoryColumn) or summary.cells.form != "text":
        return column
    known = dict(zip(summary.cells.levels, summary.counts.tolist(), strict=True))
    counts = [known[level] for level in column.levels]
    other = [summary.n_rows - summary.n_gaps - sum(counts)] if column.has_other else []
    return replace(column, counts=(*counts, *other))


def _distinct(cells: Cells, counts: np.ndarray, n_gaps: int, n_left_out: int, is_unique: bool) -> ColumnSummary:
    """Return the distinct values, limited in number."""
    values, place = np.unique(cells.values, return_inverse=True)
    counts = np.bincount(place, weights=counts, minlength=len(values)).astype(np.int64)
    # Numbers that replace neighbouring ones include their counts.
    is_unique = is_unique and len(values) == len(cells.values)
    if cells.form != "text":
        kept = _quantiles(counts)
        counts = np.diff(np.cumsum(counts)[kept], prepend=0)
        return ColumnSummary(replace(cells, values=values[kept]), counts, n_gaps, n_left_out, is_unique)
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_VALUES])
    levels = tuple(cells.levels[i] for i in values[kept])
    n_left_out += int(counts.sum() - counts[kept].sum())
    texts = replace(cells, values=np.arange(len(levels), dtype=np.intp), levels=levels)
    return ColumnSummary(texts, counts[kept], n_gaps, n_left_out, is_unique)


def _quantiles(counts: np.ndarray) -> np.ndarray:
    """Return the sorted values to keep: all, or those at evenly spaced ranks, including the first and the last."""
    if len(counts) <= MOST_VALUES:
        return np.arange(len(counts))
    ranks = np.cumsum(counts)
    return np.unique(np.searchsorted(ranks, np.linspace(1, ranks[-1], MOST_VALUES)))
