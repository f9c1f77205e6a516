"""Partitions that stay on the workers of a cluster, and tasks on them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import one_blas_thread
from polyplane._prediction import NoWeightError, check_classes, check_targets
from polyplane.base import PlaneClassifier
from polyplane.engine.data import Data, FeatureRanges

#: Seconds between checks for workers, and maximum time to wait for new ones.
LOOK_EVERY, WAIT_FOR_WORKERS = 5.0, 300.0
MISSING = 'polyplane.dask requires Dask: pip install "polyplane[dask]"'


class Partition:
    """The rows of a partition on its worker, and a cache of results computed from them.

    The cache is not transferred with the rows, and no result depends on it.
    """

    def __init__(self, data: Data, feature_names: list[str] | None, number: int) -> None:
        self.data = replace(data, is_part=True, identity=b"%d" % number)
        self.feature_names, self.number = feature_names, number
        self.cache: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "cache": {}}


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


class Cluster:
    """The partitions of a data set.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    partitions : list of futures
        The futures of the `Partition` objects.
    infos : list of PartitionInfo
        Facts about each partition.
    classes : ndarray
        The class labels.
    """

    def __init__(self, client: Any, partitions: list[Any], infos: list[PartitionInfo], classes: np.ndarray) -> None:
        self.client, self.partitions, self.infos, self.classes = client, partitions, infos, classes
        self.class_counts: np.ndarray = np.sum([info.class_counts for info in infos], axis=0)
        self.weight = float(sum(info.weight for info in infos))
        self.n_features, self.dtype, self.feature_names = infos[0].n_features, infos[0].dtype, infos[0].feature_names

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a task. It includes its arguments, so that it can be repeated if a worker is lost."""
        return submit(self.client, function, *arguments)

    def gather(self, tasks: list[Any]) -> list[Any]:
        """Return the results of tasks."""
        return gather(self.client, tasks)

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``function(partition, *arguments)`` of each partition."""
        tasks = [self.submit(function, partition, *arguments) for partition in self.partitions]
        return self.gather(tasks)

    def sum(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """Sum ``function(partition, *arguments)`` over all partitions, always in the same order."""
        total: np.ndarray = np.sum(self.map(function, *arguments), axis=0)
        return total


def submit(client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Submit a task with one BLAS thread, so that the order of summation does not depend on the worker."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        return client.submit(_in_one_thread, function, *arguments, pure=False)


def _in_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    with one_blas_thread():
        return function(*arguments)


def gather(client: Any, tasks: list[Any]) -> list[Any]:
    """Return the results of tasks; warn if there are no workers, and finally raise an error."""
    from distributed import wait

    alone_since = None
    while True:
        try:
            wait(tasks, timeout=LOOK_EVERY)
            break
        except TimeoutError:
            if client.nthreads():
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
                warnings.warn("The Dask cluster has lost all workers; waiting for new ones.", stacklevel=2)
            elif time.monotonic() - alone_since > WAIT_FOR_WORKERS:
                raise RuntimeError(
                    f"The Dask cluster had no workers for {WAIT_FOR_WORKERS} s; the estimator has not changed."
                ) from None
    results: list[Any] = client.gather(tasks)
    return results


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
def explain_lost_cluster() -> Iterator[None]:
    """Turn errors about lost workers, or a lost cluster, into one sentence."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(f"Several workers died on the same task; a partition may be too large. {error}") from error
    except (CommClosedError, CancelledError, FutureCancelledError, ConnectionError, TimeoutError) as error:
        raise RuntimeError(f"The Dask cluster was lost during fit; the estimator has not changed. ({error})") from error


class Labelled(NamedTuple):
    """The partitions before their validation."""

    columns: list[list[Any]]  # futures of the rows, the labels and the weights, if any
    filled: list[int]  # numbers of the partitions that have rows
    classes: np.ndarray
    estimator: Any  # with class weights over all partitions

    def parts(self) -> list[tuple[int, list[Any]]]:
        """Return number and futures of each partition that has rows."""
        return [(i, [column[i] for column in self.columns]) for i in self.filled]


def labelled(client: Any, estimator: Any, columns: list[list[Any]]) -> Labelled:
    """Find the classes of all partitions."""
    found = gather(client, [submit(client, _labels_of, block, i) for i, block in enumerate(columns[1])])
    filled = [i for i, labels in enumerate(found) if len(labels)]
    if not filled:
        raise ValueError("All partitions are empty.")
    classes = check_classes(np.concatenate([found[i] for i in filled]))
    if getattr(estimator, "class_weight", None) == "balanced":
        counts = np.sum(gather(client, [submit(client, _count, columns[1][i], classes) for i in filled]), axis=0)
        weights = counts.sum() / (len(classes) * counts)
        weight = dict(zip(classes.tolist(), weights.tolist(), strict=True))
        estimator = copy(estimator).set_params(class_weight=weight)
    return Labelled(columns, filled, classes, estimator)


def scatter(client: Any, rows: Labelled) -> Cluster:
    """Validate all partitions on their workers."""
    how = rows.estimator, rows.classes
    partitions = [submit(client, _validated, *how, i, *part) for i, part in rows.parts()]
    infos = gather(client, [submit(client, info_of, partition) for partition in partitions])
    _check_alike(dict(zip(rows.filled, infos, strict=True)))
    kept = [j for j, info in enumerate(infos) if info.weight > 0]
    if not kept:
        raise ValueError("All sample weights are zero; at least one row needs a positive weight.")
    cluster = Cluster(client, [partitions[j] for j in kept], [infos[j] for j in kept], rows.classes)
    if np.count_nonzero(cluster.class_counts) < 2:
        raise ValueError("Fewer than two classes have rows of positive weight.")
    return cluster


def _check_alike(infos: dict[int, PartitionInfo]) -> None:
    """Raise an error unless all partitions have the same features in the same order."""
    first, expected = next(iter(infos.items()))
    for i, info in infos.items():
        if (info.n_features, info.dtype) != (expected.n_features, expected.dtype):
            raise ValueError(
                f"Partition {i} has {info.n_features} features of {info.dtype}, but partition {first} has "
                f"{expected.n_features} of {expected.dtype}."
            )
        if info.feature_names != expected.feature_names and None not in (info.feature_names, expected.feature_names):
            pairs = zip(info.feature_names or (), expected.feature_names or (), strict=True)
            one, other = next(pair for pair in pairs if pair[0] != pair[1])
            raise ValueError(
                f"Partition {i} has the column {one!r} where partition {first} has {other!r}: all partitions must "
                "have the same columns in the same order."
            )


def blocks_of(X: Any, y: Any, sample_weight: Any) -> list[list[Any]]:
    """Return the partitions of X, y and the weights, as lists of delayed objects with the same length."""
    columns = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    rows = getattr(X, "chunks", [()])[0]
    blocks = {}
    for name, column in columns.items():
        known = hasattr(column, "chunks") and not np.isnan([*column.chunks[0], *rows]).any()
        if known and rows and column.chunks[0] != rows and sum(column.chunks[0]) == sum(rows):
            column = column.rechunk({0: rows})
        if hasattr(column, "chunks") and column.ndim == 2 and column.numblocks[1] > 1:
            column = column.rechunk({1: -1})
        blocks[name] = _delayed(name, column)
    numbers = {name: len(parts) for name, parts in blocks.items()}
    if len(set(numbers.values())) > 1:
        found = ", ".join(f"{name} has {number}" for name, number in numbers.items())
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


def _labels_of(y: Any, number: int) -> np.ndarray:
    with named_partition(number):
        return np.unique(check_targets(flat(y), len(y))) if len(y) else np.empty(0)


def _count(y: Any, classes: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(classes, flat(y)), minlength=len(classes))


def flat(column: Any) -> np.ndarray:
    """Return a column as a one-dimensional array."""
    array = np.asarray(column)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _validated(
    estimator: PlaneClassifier, classes: np.ndarray, number: int, X: Any, y: Any, weight: Any = None
) -> Partition:
    estimator, weight = copy(estimator), None if weight is None else flat(weight)
    with named_partition(number):
        try:
            if weight is not None and not weight.any():
                raise NoWeightError
            data = estimator._take(X, flat(y), weight, classes, judge_scales=False)
        except NoWeightError:  # other partitions may have positive weights; rows of this one are ignored
            if hasattr(estimator, "class_weight"):
                estimator.set_params(class_weight=None)
            data = estimator._take(X, flat(y), None, classes, judge_scales=False)
            data = replace(data, weight=np.zeros_like(data.weight), train=data.train[:0])
    names = getattr(estimator, "feature_names_in_", None)
    return Partition(data, None if names is None else names.tolist(), number)


def info_of(partition: Partition) -> PartitionInfo:
    """Return the facts about a partition."""
    data = partition.data
    (n_rows, n_features), weight = data.X.shape, float(data.training_weight.sum())
    ranges = FeatureRanges.of(data.X)
    names, number = partition.feature_names, partition.number
    return PartitionInfo(n_rows, n_features, data.X.dtype, data.class_counts, weight, names, ranges, number)


@contextmanager
def named_partition(number: int) -> Iterator[None]:
    """Add the number of the partition to errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
