"""Tables on a cluster: the encoder from summaries of all partitions, and samples of the encoded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane._prediction import NoWeightError, check_targets, check_weights, encode
from polyplane.dask.partitions import (
    Cluster,
    Labelled,
    Partition,
    blocks_of,
    flat,
    gather,
    info_of,
    named_partition,
    scatter,
    submit,
)
from polyplane.inputs.cells import Cells
from polyplane.inputs.columns import CategoryColumn, Column
from polyplane.inputs.encoding import TableInputs
from polyplane.inputs.frames import GAPS, Table, concatenated_cells, read_table
from polyplane.inputs.learning import DENSE, Limits
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


class PartSummary(NamedTuple):
    """Summary of a partition, in the client."""

    number: int
    n_rows: int
    is_named: bool
    columns: dict[str, ColumnSummary]


class ClusterTable:
    """The encoded rows of a table on a cluster.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    rows : Labelled
        The partitions; the estimator has the parameters of the columns and weights.
    seed : int
        The seed of the samples.
    """

    def __init__(self, client: Any, rows: Labelled, seed: int) -> None:
        estimator = rows.estimator
        how = frozenset(estimator.gaps), rows.classes, estimator.class_weight
        found = gather(client, [submit(client, _summarise, i, *how, *part) for i, part in rows.parts()])
        summaries = [summary for summary in found if summary is not None]
        if not summaries:
            raise ValueError("All sample weights are zero; at least one row needs a positive weight.")
        self.encoder = learn_encoder(estimator._new_encoder(), summaries)
        self.is_indicator = self.encoder.encoding_.is_indicator
        estimator._keep_encoder(self.encoder, rows.classes, sum(summary.n_rows for summary in summaries))
        self.cluster = scatter(client, rows)  # these stay on the workers
        self.seeds = [[seed, info.number] for info in self.cluster.infos]
        self.n_rows = np.array([info.n_rows for info in self.cluster.infos])
        self.held_out = np.zeros(len(self.n_rows), dtype=int)

    def draw(self, sample_rows: int, held_out: int) -> EncodedRows:
        """Draw a uniform sample of the rows, followed by held-out rows, which `prepared` excludes.

        If there are no more rows than `sample_rows`, return all of them, in the order of the partitions.
        """
        self.held_out = self._shares(held_out)
        sizes = self._shares(held_out + sample_rows) - self.held_out
        parts = list(zip(self.cluster.partitions, sizes.tolist(), self.held_out.tolist(), self.seeds, strict=True))
        found = [
            *self.cluster.gather([self.cluster.submit(_sample, part, h, size, seed) for part, size, h, seed in parts]),
            *self.cluster.gather([self.cluster.submit(_sample, part, 0, h, seed) for part, _, h, seed in parts]),
        ]
        Z, y, weight = (np.concatenate(column) for column in zip(*found, strict=True))
        return EncodedRows(Z, y, weight, self.is_indicator, len(self.cluster.classes))

    def _shares(self, n_rows: int) -> np.ndarray:
        """Return how many of `n_rows` sampled rows to take from each partition."""
        share = min(1.0, n_rows / self.n_rows.sum())
        return np.diff(np.rint(np.cumsum(self.n_rows) * share), prepend=0).astype(int)

    def prepared(self, preparation: Preparation) -> Cluster:
        """Return the prepared training rows on the workers, without the held-out rows."""
        parts = zip(self.cluster.partitions, self.held_out.tolist(), self.seeds, strict=True)
        submitted = self.cluster.submit
        partitions = [submitted(_prepare, part, preparation, self.is_indicator, *how) for part, *how in parts]
        infos = self.cluster.gather([submitted(info_of, partition) for partition in partitions])
        return Cluster(self.cluster.client, partitions, infos, self.cluster.classes)


def learn_encoder(encoder: TableEncoder, summaries: Sequence[PartSummary]) -> TableEncoder:
    """Fit the encoder to the columns of the first partition, with the values of all partitions."""
    first = summaries[0]
    for summary in summaries:
        missing = [name for name in first.columns if name not in summary.columns]
        if missing:
            raise ValueError(
                f"Partition {summary.number} has no column {missing[0]!r}, which partition {first.number} has."
            )
    merged = {name: ColumnSummary.merged([each.columns[name] for each in summaries]) for name in first.columns}
    return encoder._learn(first.columns, lambda *how: learn_encoding(merged, first.is_named, *how))


def futures(client: Any, X: Any, y: Any, sample_weight: Any) -> list[list[Any]]:
    """Return the partitions of X without labels and weights, of the labels, and of the weights, if any."""
    given = {"y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    names = {key: value for key, value in given.items() if isinstance(value, str)}
    for key, name in names.items():
        if name not in getattr(X, "columns", [name]):
            raise ValueError(f"{key}={name!r} is not a column of X: {', '.join(map(str, X.columns))}.")
    apart = {key: value for key, value in given.items() if key not in names}
    blocks = blocks_of(X, apart.get("y", X), apart.get("sample_weight"))
    rows = client.compute(blocks[0])
    found = {
        key: [submit(client, column, part, names[key], i) for i, part in enumerate(rows)]
        if key in names
        else client.compute(blocks[1] if key == "y" else blocks[2])
        for key in given
    }
    if names:
        rows = [submit(client, without, part, list(names.values()), i) for i, part in enumerate(rows)]
    return [rows, *found.values()]


def without(X: Any, names: Sequence[str], number: int) -> Any:
    """Return a partition without some of its columns."""
    for name in names:
        column(X, name, number)
    return X.drop(columns=list(names))


def column(X: Any, name: str, number: int) -> Any:
    """Return a column of a partition."""
    if name not in getattr(X, "columns", ()):
        raise ValueError(f"Partition {number} has no column {name!r}.")
    return X[name]


def _summarise(
    number: int, gaps: frozenset[str], classes: np.ndarray, class_weight: Any, X: Any, y: Any, weight: Any = None
) -> PartSummary | None:
    """Summarise the rows with positive weight; None if there are none."""
    with named_partition(number):
        table = read_table(X, gaps)
        y = check_targets(flat(y), table.n_rows)
        weight = None if weight is None else flat(weight)
        try:
            if weight is not None and not weight.any():
                raise NoWeightError
            weight = check_weights(np.empty((len(y), 1)), y, encode(y, classes), classes, weight, class_weight)
        except NoWeightError:  # other partitions may have positive weights
            return None
        used = np.flatnonzero(weight > 0)
        columns = {name: ColumnSummary.of(table.read(j).take(used)) for j, name in enumerate(table.names)}
    return PartSummary(number, len(used), table.is_named, columns)


def _order(partition: Partition, seed: list[int]) -> np.ndarray:
    """Return the rows of a partition in sampling order."""
    return np.random.default_rng(seed).permutation(len(partition.data.y))


def _sample(partition: Partition, first: int, size: int, seed: list[int]) -> tuple[np.ndarray, ...]:
    rows, data = np.sort(_order(partition, seed)[first : first + size]), partition.data
    return data.X[rows], data.y[rows], data.weight[rows]


def _prepare(
    partition: Partition, preparation: Preparation, is_indicator: np.ndarray, held_out: int, seed: list[int]
) -> Partition:
    data = partition.data
    rows = EncodedRows(data.X, data.y, data.weight, is_indicator, data.n_classes)
    kept = rows.take(np.sort(_order(partition, seed)[held_out:]))
    return Partition(kept.data(preparation), None, partition.number)
