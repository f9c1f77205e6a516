"""Tables on a cluster: fitting of the encoder, and encoded rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane._validation import NoWeightError, check_classes, check_targets, check_weights, encode
from polyplane.dask._partitions import (
    Cluster,
    Partition,
    flat,
    gather,
    info_of,
    labels_of,
    named_partition,
    submit,
    with_class_weights,
)
from polyplane.inputs.cells import Cells
from polyplane.inputs.encoding import TableInputs
from polyplane.inputs.frames import Table, read_table
from polyplane.tables._choice import EncodedRows
from polyplane.tables._preparation import Preparation
from polyplane.tables._summary import ColumnSummary, learn_encoding
from polyplane.tables.classifier import TableClassifier
from polyplane.tables.encoder import TableEncoder


@dataclass(frozen=True)
class TablePart:
    """The rows of a partition with positive weight, parsed."""

    names: tuple[str, ...]
    is_named: bool
    cells: list[Cells]
    y: np.ndarray
    weight: np.ndarray

    @property
    def table(self) -> Table:
        """Return the rows as a table."""
        return Table(self.names, self.is_named, len(self.y), self.cells.__getitem__)


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
    estimator : TableClassifier
        The estimator, with the parameters of the columns and weights.
    seed : int
        The seed of the samples.
    X, y, weight : list of futures
        The partitions, their labels and their weights (None: all 1).
    """

    def __init__(
        self, client: Any, estimator: TableClassifier, seed: int, X: list[Any], y: list[Any], weight: list[Any] | None
    ) -> None:
        self.client = client
        found = gather(client, [submit(client, labels_of, block, i) for i, block in enumerate(y)])
        filled = [i for i, labels in enumerate(found) if len(labels)]
        if not filled:
            raise ValueError("All partitions are empty.")
        self.classes = check_classes(np.concatenate([found[i] for i in filled]))
        class_weight = with_class_weights(client, estimator, self.classes, [y[i] for i in filled]).class_weight
        how = frozenset(estimator.gaps), self.classes, class_weight
        parts = [submit(client, _read, X[i], y[i], None if weight is None else weight[i], i, *how) for i in filled]
        summaries = gather(client, [submit(client, _summarise, p, i) for p, i in zip(parts, filled, strict=True)])
        kept = [j for j, summary in enumerate(summaries) if summary is not None]
        if not kept:
            raise ValueError("All sample weights are zero; at least one row needs a positive weight.")
        self.encoder = learn_encoder(estimator, [summaries[j] for j in kept])
        encoding = self.encoder.encoding_
        self.numbers = [filled[j] for j in kept]
        self.seeds = [[seed, number] for number in self.numbers]
        self.held_out = np.zeros(len(kept), dtype=int)
        self.n_rows = np.array([summaries[j].n_rows for j in kept])
        self.parts = [
            submit(client, _encode, parts[j], filled[j], encoding, len(self.classes)) for j in kept
        ]  # these stay on the workers

    def draw(self, sample_rows: int, held_out: int) -> EncodedRows:
        """Draw a uniform sample of the rows, followed by held-out rows, which `prepared` excludes.

        If there are no more rows than `sample_rows`, return all of them, in the order of the partitions.
        """
        self.held_out = self._shares(held_out)
        sizes = self._shares(held_out + sample_rows) - self.held_out
        parts = list(zip(self.parts, sizes.tolist(), self.held_out.tolist(), self.seeds, strict=True))
        found = [
            *gather(self.client, [submit(self.client, _sample, part, h, size, seed) for part, size, h, seed in parts]),
            *gather(self.client, [submit(self.client, _sample, part, 0, h, seed) for part, _, h, seed in parts]),
        ]
        Z, y, weight = (np.concatenate([getattr(rows, name) for rows in found]) for name in ("Z", "y", "weight"))
        return EncodedRows(Z, y, weight, found[0].is_indicator, len(self.classes))

    def _shares(self, n_rows: int) -> np.ndarray:
        """Return how many of `n_rows` sampled rows to take from each partition."""
        share = min(1.0, n_rows / self.n_rows.sum())
        return np.diff(np.rint(np.cumsum(self.n_rows) * share), prepend=0).astype(int)

    def prepared(self, preparation: Preparation) -> Cluster:
        """Return the prepared training rows on the workers, without the held-out rows."""
        held_out = zip(self.parts, self.held_out.tolist(), self.seeds, self.numbers, strict=True)
        partitions = [submit(self.client, _prepare, part, preparation, *how) for part, *how in held_out]
        infos = gather(self.client, [submit(self.client, info_of, partition) for partition in partitions])
        return Cluster(self.client, partitions, infos, self.classes)


def learn_encoder(estimator: TableClassifier, summaries: Sequence[PartSummary]) -> TableEncoder:
    """Fit the encoder to the columns of the first partition, with the values of all partitions."""
    first = summaries[0]
    for summary in summaries:
        missing = [name for name in first.columns if name not in summary.columns]
        if missing:
            raise ValueError(
                f"Partition {summary.number} has no column {missing[0]!r}, which partition {first.number} has."
            )
    merged = {name: ColumnSummary.merged([each.columns[name] for each in summaries]) for name in first.columns}
    encoder = TableEncoder(
        estimator.kinds,
        min_rows=estimator.min_rows,
        max_levels=estimator.max_levels,
        decimal=estimator.decimal,
        gaps=estimator.gaps,
    )
    return encoder._learn(first.columns, lambda *how: learn_encoding(merged, first.is_named, *how))


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


def _read(
    X: Any, y: Any, weight: Any, number: int, gaps: frozenset[str], classes: np.ndarray, class_weight: Any
) -> TablePart | None:
    """Return the rows with positive weight; None if there are none."""
    with named_partition(number):
        table = read_table(X, gaps)
        y = check_targets(flat(y), table.n_rows)
        codes, sample_weight = encode(y, classes), None if weight is None else flat(weight)
        try:
            if sample_weight is not None and not sample_weight.any():
                raise NoWeightError
            weight = check_weights(np.empty((len(y), 1)), y, codes, classes, sample_weight, class_weight)
        except NoWeightError:  # other partitions may have positive weights
            return None
        used = np.flatnonzero(weight > 0)
        cells = [table.read(j).take(used) for j in range(len(table.names))]
    return TablePart(table.names, table.is_named, cells, codes[used], weight[used])


def _summarise(part: TablePart | None, number: int) -> PartSummary | None:
    if part is None:
        return None
    columns = {name: ColumnSummary.of(cells) for name, cells in zip(part.names, part.cells, strict=True)}
    return PartSummary(number, len(part.y), part.is_named, columns)


def _encode(part: TablePart, number: int, encoding: TableInputs, n_classes: int) -> EncodedRows:
    with named_partition(number):
        Z = encoding.encode(part.table, TableClassifier.__name__)
    return EncodedRows(Z, part.y, part.weight, encoding.is_indicator, n_classes)


def _order(rows: EncodedRows, seed: list[int]) -> np.ndarray:
    """Return the rows of a partition in sampling order."""
    return np.random.default_rng(seed).permutation(len(rows.y))


def _sample(rows: EncodedRows, first: int, size: int, seed: list[int]) -> EncodedRows:
    return rows.take(np.sort(_order(rows, seed)[first : first + size]))


def _prepare(rows: EncodedRows, preparation: Preparation, held_out: int, seed: list[int], number: int) -> Partition:
    rows = rows.take(np.sort(_order(rows, seed)[held_out:]))
    return Partition(replace(rows.data(preparation), identity=b"%d" % number), None)
