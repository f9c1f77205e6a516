"""Partitions that stay on the workers of a cluster, and tasks on them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import one_blas_thread
from polyplane._prediction import check_classes, check_targets
from polyplane.base import PlaneClassifier
from polyplane.engine.data import Data, FeatureRanges

#: Seconds between checks for workers, and maximum time to wait for new ones.
LOOK_EVERY, WAIT_FOR_WORKERS = 5.0, 300.0
MISSING = 'polyplane.dask requires Dask: pip install "polyplane[dask]"'


class Partition:
    """The rows of a partition on its worker, and a cache of a result computed from them.

    The cache is not transferred with the rows, and no result depends on it.
    """

    def __init__(self, data: Data, feature_names: list[str] | None, number: int) -> None:
        self.data = replace(data, is_part=True, identity=b"%d" % number)
        self.feature_names, self.number = feature_names, number
        self._cache: tuple[Hashable, Any] = None, None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cache": (None, None)}

    def cached(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """Return ``build()``; the last result is cached."""
        if self._cache[0] != key:
            self._cache = None, None  # free memory first
            self._cache = key, build()
        return self._cache[1]


class PartitionInfo(NamedTuple):
    """Facts about a partition, in the client."""

    n_rows: int
    n_features: int
    dtype: Any
    class_counts: np.ndarray  # number of rows with positive weight, by class
    weight: float
    feature_names: list[str] | None
    ranges: FeatureRanges
    number: int

    @classmethod
    def of(cls, partition: Partition) -> PartitionInfo:
        """Collect the facts, on the worker."""
        data = partition.data
        (n_rows, n_features), weight = data.X.shape, float(data.training_weight.sum())
        names, number = partition.feature_names, partition.number
        return cls(n_rows, n_features, data.X.dtype, data.class_counts, weight, names, FeatureRanges.of(data.X), number)


class Parts:
    """Partitions on the workers of a cluster, and tasks on them.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    parts : list of tuple
        Of each partition, what tasks get as their first arguments: futures, and values.
    """

    def __init__(self, client: Any, parts: list[tuple[Any, ...]]) -> None:
        self.client, self.parts = client, parts

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a task, with one BLAS thread, so that the order of summation does not depend on the worker.

        The task includes its arguments, so that it can be repeated if a worker is lost.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(_in_one_thread, function, *arguments, pure=False)

    def start(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Submit ``function(*part, *arguments)`` for each partition."""
        return [self.submit(function, *part, *arguments) for part in self.parts]

    def gather(self, tasks: list[Any]) -> list[Any]:
        """Return the results of tasks; warn if there are no workers, and finally raise an error."""
        from distributed import wait

        alone_since = None
        while True:
            try:
                wait(tasks, timeout=LOOK_EVERY)
                break
            except TimeoutError:
                if self.client.status != "running":  # after a reconnection, the tasks would not be known
                    raise ConnectionError("The connection to the scheduler is closed.") from None
                if self.client.nthreads():
                    alone_since = None
                elif alone_since is None:
                    alone_since = time.monotonic()
                    warnings.warn("The Dask cluster has lost all workers; waiting for new ones.", stacklevel=2)
                elif time.monotonic() - alone_since > WAIT_FOR_WORKERS:
                    raise RuntimeError(
                        f"The Dask cluster had no workers for {WAIT_FOR_WORKERS} s; the estimator has not changed."
                    ) from None
        results: list[Any] = self.client.gather(tasks)
        return results

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``function(*part, *arguments)`` of each partition."""
        return self.gather(self.start(function, *arguments))

    def sum(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> list[Any]:
        """Sum each value of ``function(*part, *arguments)`` over all partitions, always in the same order."""
        return [sum(values) for values in zip(*self.map(function, *arguments), strict=True)]


def _in_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    with one_blas_thread():
        return function(*arguments)


class Cluster(Parts):
    """The validated partitions of a data set.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    partitions : list of futures
        The futures of the `Partition` objects.
    classes : ndarray
        The class labels.
    """

    def __init__(self, client: Any, partitions: list[Any], classes: np.ndarray) -> None:
        super().__init__(client, [(partition,) for partition in partitions])
        self.partitions, self.classes, self.infos = partitions, classes, self.map(PartitionInfo.of)
        _check_alike(self.infos)
        self.class_counts: np.ndarray = np.sum([info.class_counts for info in self.infos], axis=0)
        if np.count_nonzero(self.class_counts) < 2:
            raise ValueError("Fewer than two classes have rows of positive weight.")
        self.weight = float(sum(info.weight for info in self.infos))
        first = self.infos[0]
        self.n_features, self.dtype, self.feature_names = first.n_features, first.dtype, first.feature_names


def connected_client() -> Any:
    """Return the current Dask client; a cluster without workers is an error."""
    try:
        from distributed import default_client
    except ImportError:
        raise ImportError(MISSING) from None
    try:
        client = default_client()
    except ValueError:
        raise ValueError("No Dask client found: connect to a cluster first, client = Client(...).") from None
    if not client.nthreads():
        raise RuntimeError("The Dask cluster has no workers; start some, or wait for them: client.wait_for_workers(1).")
    return client


@contextmanager
def explain_lost_cluster(client: Any) -> Iterator[None]:
    """Turn errors about lost workers, or a lost cluster, into one sentence."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(f"Several workers died on the same task; a partition may be too large. {error}") from error
    except Exception as error:
        is_lost = isinstance(error, CommClosedError | CancelledError | ConnectionError | TimeoutError)
        if client.status == "running" and not is_lost:
            raise
        raise RuntimeError(f"The Dask cluster was lost during fit; the estimator has not changed. ({error})") from error


def labelled(client: Any, estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Parts, np.ndarray, Any]:
    """Load the partitions and find their labels.

    Returns
    -------
    parts : Parts
        Number, rows, labels and weights of each partition that has rows of nonzero weight; see `_columns`.
    classes : ndarray
        The classes of all partitions.
    estimator : PlaneClassifier
        The estimator, with class weights that are balanced over all partitions.
    """
    columns = [client.compute(blocks) for blocks in _blocks_of(X, y, sample_weight)]
    parts = Parts(client, list(zip(count(), *columns, strict=False)))
    found = parts.map(_labels_of)
    filled = [labels for labels, *_ in found if len(labels)]
    if not filled:
        raise ValueError("All partitions are empty.")
    classes, weights = check_classes(np.concatenate(filled)), getattr(estimator, "class_weight", None) or {}
    if weights == "balanced":
        counts = np.zeros(len(classes))
        for labels, n_rows, _ in found:
            counts[np.searchsorted(classes, labels)] += n_rows
        weights = dict(zip(classes.tolist(), (counts.sum() / (len(classes) * counts)).tolist(), strict=True))
        estimator = copy(estimator).set_params(class_weight=weights)
    parts.parts = [
        part
        for part, (labels, _, used) in zip(parts.parts, found, strict=True)
        if any(weights.get(label, 1.0) for label in labels[used].tolist())
    ]
    if not parts.parts:
        raise ValueError("All sample weights are zero; at least one row needs a positive weight.")
    return parts, classes, estimator


def scatter(parts: Parts, estimator: PlaneClassifier, classes: np.ndarray) -> Cluster:
    """Validate all partitions on their workers."""
    return Cluster(parts.client, parts.start(_validated, estimator, classes), classes)


def _check_alike(infos: list[PartitionInfo]) -> None:
    """Raise an error unless all partitions have the same features in the same order."""
    expected = infos[0]
    for info in infos:
        if (info.n_features, info.dtype) != (expected.n_features, expected.dtype):
            raise ValueError(
                f"Partition {info.number} has {info.n_features} features of {info.dtype}, but partition "
                f"{expected.number} has {expected.n_features} of {expected.dtype}."
            )
        if info.feature_names != expected.feature_names and None not in (info.feature_names, expected.feature_names):
            pairs = zip(info.feature_names or (), expected.feature_names or (), strict=True)
            one, other = next(pair for pair in pairs if pair[0] != pair[1])
            raise ValueError(
                f"Partition {info.number} has the column {one!r} where partition {expected.number} has {other!r}: all "
                "partitions must have the same columns in the same order."
            )


def _blocks_of(X: Any, y: Any, sample_weight: Any) -> list[list[Any]]:
    """Return the partitions of X, y and the weights, as lists of the same length.

    The partitions are delayed objects; a name of a column of X, or None, is repeated.
    """
    rows = getattr(X, "chunks", [()])[0]
    blocks: dict[str, list[Any]] = {}
    for name, column in {"X": X, "y": y, "sample_weight": sample_weight}.items():
        if column is None or (isinstance(column, str) and name != "X"):
            blocks[name] = [column] * len(blocks["X"])
            continue
        known = hasattr(column, "chunks") and not np.isnan([*column.chunks[0], *rows]).any()
        if known and rows and column.chunks[0] != rows and sum(column.chunks[0]) == sum(rows):
            column = column.rechunk({0: rows})
        if hasattr(column, "chunks") and column.ndim == 2 and column.numblocks[1] > 1:
            column = column.rechunk({1: -1})
        blocks[name] = _delayed(name, column)
    if len({len(parts) for parts in blocks.values()}) > 1:
        found = ", ".join(f"{name} has {len(parts)}" for name, parts in blocks.items() if parts[0] is not None)
        raise ValueError(
            f"The numbers of partitions differ ({found}); if chunk sizes are unknown, call X.compute_chunk_sizes()."
        )
    return list(blocks.values())


def _delayed(name: str, column: Any) -> list[Any]:
    import dask

    if hasattr(column, "to_delayed"):
        return list(np.ravel(column.to_delayed()))
    if isinstance(column, list | tuple) and column and all(dask.is_dask_collection(part) for part in column):
        return list(column)
    raise TypeError(
        f"{name} is a {type(column).__name__}; expected a Dask array, a Dask dataframe or a list of delayed "
        "partitions. For rows in memory, fit the estimator itself."
    )


def columns_of(X: Any, y: Any, weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return the rows of a partition, their labels and their weights; these can be columns of the rows."""
    names = [name for name in (y, weight) if isinstance(name, str)]
    for name in names:
        if name not in getattr(X, "columns", ()):
            raise ValueError(f"X has no column {name!r}.")
    y, weight = (X[column] if isinstance(column, str) else column for column in (y, weight))
    return X.drop(columns=names) if names else X, _flat(y), None if weight is None else _flat(weight)


def _flat(column: Any) -> np.ndarray:
    """Return a column as a one-dimensional array."""
    array = np.asarray(column)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _labels_of(number: int, X: Any, y: Any, weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the labels of a partition, their numbers of rows, and whether some of these have nonzero weight."""
    with named_partition(number):
        _, y, weight = columns_of(X, y, weight)
        labels, codes, counts = np.unique(
            check_targets(y, len(y)) if len(y) else np.empty(0), return_inverse=True, return_counts=True
        )
        used = counts > 0 if weight is None else np.bincount(codes, weights=weight != 0) > 0
        return labels, counts, used


def _validated(number: int, X: Any, y: Any, weight: Any, estimator: PlaneClassifier, classes: np.ndarray) -> Partition:
    estimator = copy(estimator)
    with named_partition(number):
        data = estimator._validated(*columns_of(X, y, weight), classes, check_scales=False)
    names = getattr(estimator, "feature_names_in_", None)
    return Partition(data, None if names is None else names.tolist(), number)


@contextmanager
def named_partition(number: int) -> Iterator[None]:
    """Add the number of the partition to errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
