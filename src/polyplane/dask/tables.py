"""Tables on a cluster: the encoder from summaries of all partitions, and samples of the encoded rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane._prediction import check_weights, encode
from polyplane.dask.partitions import Partition, Parts, columns_of, labelled, named_partition, scatter
from polyplane.inputs.encoding import DENSE, CategoryColumn, Column, TableInputs
from polyplane.inputs.frames import Cells, Table, as_table, concatenated_cells
from polyplane.tables.encoder import TableEncoder
from polyplane.tables.members import EncodedRows
from polyplane.tables.preparation import Preparation

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
        The distinct values in ascending order; one of them can be the missing value.
    counts : ndarray of shape (n_values,)
        Number of rows of each value.
    is_unique : bool
        Whether all values of the column are distinct, including omitted ones.
    """

    cells: Cells
    counts: np.ndarray
    is_unique: bool

    @classmethod
    def of(cls, cells: Cells, counts: np.ndarray, is_unique: bool = True) -> ColumnSummary:
        """Summarise values with their counts."""
        values, index = np.unique(cells.values, return_inverse=True)
        counts = np.bincount(index, weights=counts, minlength=len(values)).astype(np.int64)
        is_unique = is_unique and len(values) == len(cells.values)  # counts can include those of omitted values
        is_gap = replace(cells, values=values).is_gap
        kept = np.flatnonzero(~is_gap)
        if cells.form == "text":
            kept = kept[np.sort(np.argsort(-counts[kept], kind="stable")[:MOST_VALUES])]
            levels = tuple(cells.levels[i] for i in values[kept])
            texts = replace(cells, values=np.arange(-int(is_gap.any()), len(levels)), levels=levels)
            return cls(texts, counts[np.concatenate([np.flatnonzero(is_gap), kept])], is_unique)
        if len(kept) > MOST_VALUES:
            ranks = np.cumsum(counts[kept])
            last = np.unique(np.searchsorted(ranks, np.linspace(1, ranks[-1], MOST_VALUES)))
            counts[kept[last]] = np.diff(ranks[last], prepend=0)  # with the values between
            kept = kept[last]
        kept = np.concatenate([kept, np.flatnonzero(is_gap)])
        return cls(replace(cells, values=values[kept]), counts[kept], is_unique)

    @classmethod
    def merged(cls, parts: Sequence[ColumnSummary]) -> ColumnSummary:
        """Merge the summaries of several parts."""
        cells, counts = concatenated_cells([part.cells for part in parts]), [part.counts for part in parts]
        return cls.of(cells, np.concatenate(counts), all(part.is_unique for part in parts))

    def expanded(self, n_rows: int) -> Cells:
        """Return rows with these values and counts, at most `MOST_ROWS`."""
        values, counts = self.cells.values, np.rint(self.counts * min(1.0, MOST_ROWS / n_rows)).astype(np.int64)
        if self.is_unique:
            counts = np.ones_like(counts)
            is_whole = self.cells.form == "number" and len(values) == MOST_VALUES and bool((values % 1 == 0).all())
            if is_whole and n_rows >= DENSE * (values[-1] - values[0] + 1):
                # Row numbers remain recognisable even if few of them are kept.
                values, counts = values[0] + np.arange(min(n_rows, MOST_ROWS), dtype=np.float64), np.array(1)
        return replace(self.cells, values=np.repeat(values, np.maximum(counts, 1)))

    def counted(self, column: Column, n_rows: int) -> Column:
        """Return a category with the exact counts of its levels."""
        if not isinstance(column, CategoryColumn) or self.cells.form != "text":
            return column
        is_gap = self.cells.is_gap
        known = dict(zip(self.cells.levels, self.counts[~is_gap].tolist(), strict=True))
        counts = [known[level] for level in column.levels]
        other = [n_rows - int(self.counts[is_gap].sum()) - sum(counts)] if column.has_other else []
        return replace(column, counts=(*counts, *other))


class PartSummary(NamedTuple):
    """Summary of a partition, in the client."""

    number: int
    n_rows: int
    is_named: bool
    columns: dict[str, ColumnSummary]


def learn_encoder(encoder: TableEncoder, parts: Sequence[PartSummary]) -> TableEncoder:
    """Fit the encoder to the columns of the first partition, with the values of all partitions."""
    first, n_rows = parts[0], sum(part.n_rows for part in parts)
    for part in parts:
        missing = [name for name in first.columns if name not in part.columns]
        if missing:
            raise ValueError(
                f"Partition {part.number} has no column {missing[0]!r}, which partition {first.number} has."
            )
    names = tuple(first.columns)
    summaries = {name: ColumnSummary.merged([part.columns[name] for part in parts]) for name in names}

    def learn(*how: Any) -> TableInputs:
        table = Table(names, first.is_named, n_rows, lambda j: summaries[names[j]].expanded(n_rows))
        inputs = TableInputs.learn(table, *how)
        columns = (summaries[column.name].counted(column, n_rows) for column in inputs.columns)
        missing = {name: int(own.counts[own.cells.is_gap].sum()) for name, own in summaries.items()}
        return replace(inputs, columns=tuple(columns), n_missing={name: n for name, n in missing.items() if n})

    return encoder._learn(names, learn)


class ClusterTable:
    """The encoded rows of a table on a cluster.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    estimator : TableClassifier
        The parameters of the columns and weights; the encoder is kept in it.
    X, y, sample_weight
        The partitions.
    seed : int
        The seed of the samples.
    """

    def __init__(self, client: Any, estimator: Any, X: Any, y: Any, sample_weight: Any, seed: int) -> None:
        parts, classes, weighing = labelled(client, estimator, X, y, sample_weight)
        summaries = parts.map(_summarise, frozenset(estimator.gaps), classes, weighing.class_weight)
        encoder = learn_encoder(estimator._new_encoder(), summaries)
        for each in (estimator, weighing):
            each._keep_encoder(encoder, classes, sum(summary.n_rows for summary in summaries))
        self.is_indicator = encoder.encoding_.is_indicator
        self.ranks = estimator._ranks(encoder, classes)
        self.cluster = scatter(parts, weighing, classes)  # these stay on the workers
        self.n_rows = np.array([info.n_rows for info in self.cluster.infos])
        self.seeds = [[seed, info.number] for info in self.cluster.infos]
        self.held_out = np.zeros(len(self.n_rows), dtype=int)

    def draw(self, sample_rows: int, held_out: int) -> tuple[EncodedRows, EncodedRows]:
        """Draw a uniform sample of the rows, and held-out rows, which `prepared` excludes.

        If there are no more rows than `sample_rows`, return all of them, in the order of the partitions.
        """
        self.held_out = np.minimum(self._shares(held_out), self.n_rows - 1)  # no partition becomes empty
        return self._taken(self.held_out, self._shares(held_out + sample_rows)), self._taken(0, self.held_out)

    def _taken(self, first: Any, last: np.ndarray) -> EncodedRows:
        """Return the rows of each partition from `first` to `last`, in the order of sampling."""
        parts = zip(self.cluster.partitions, *np.broadcast_arrays(first, last), self.seeds, strict=True)
        found = self.cluster.gather([self.cluster.submit(_sample, *part) for part in parts])
        Z, y, weight = (np.concatenate(column) for column in zip(*found, strict=True))
        return EncodedRows(Z, y, weight, self.is_indicator, len(self.cluster.classes), self.ranks)

    def _shares(self, n_rows: int) -> np.ndarray:
        """Return how many of `n_rows` sampled rows to take from each partition."""
        share = min(1.0, n_rows / self.n_rows.sum())
        return np.diff(np.rint(np.cumsum(self.n_rows) * share), prepend=0).astype(int)

    def prepared(self, preparation: Preparation) -> Parts:
        """Return the prepared training rows on the workers, without the held-out rows."""
        parts = zip(self.cluster.partitions, self.held_out.tolist(), self.seeds, strict=True)
        submit = self.cluster.submit
        prepared = [(submit(_prepare, *part, preparation, self.is_indicator, self.ranks),) for part in parts]
        return Parts(self.cluster.client, prepared)


def _summarise(
    number: int, X: Any, y: Any, weight: Any, gaps: frozenset[str], classes: np.ndarray, class_weight: Any
) -> PartSummary:
    """Summarise the rows with positive weight."""
    with named_partition(number):
        X, y, weight = columns_of(X, y, weight)
        table = as_table(X, gaps)
        weight = check_weights(np.empty((table.n_rows, 1)), y, encode(y, classes), classes, weight, class_weight)
        used = np.flatnonzero(weight > 0)
        ones = np.ones(len(used))
        columns = {name: ColumnSummary.of(table.read(j).take(used), ones) for j, name in enumerate(table.names)}
        return PartSummary(number, len(used), table.is_named, columns)


def _order(partition: Partition, seed: list[int]) -> np.ndarray:
    """Return the rows of a partition in sampling order."""
    return np.random.default_rng(seed).permutation(len(partition.data.y))


def _sample(partition: Partition, first: int, last: int, seed: list[int]) -> tuple[np.ndarray, ...]:
    rows, data = np.sort(_order(partition, seed)[first:last]), partition.data
    return data.X[rows], data.y[rows], data.weight[rows]


def _prepare(
    partition: Partition,
    held_out: int,
    seed: list[int],
    preparation: Preparation,
    is_indicator: np.ndarray,
    ranks: np.ndarray | None,
) -> Partition:
    data = partition.data
    rows = EncodedRows(data.X, data.y, data.weight, is_indicator, data.n_classes, ranks)
    kept = rows.take(np.sort(_order(partition, seed)[held_out:]))
    return Partition(kept.data(preparation), None, partition.number)
