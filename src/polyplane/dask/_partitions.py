"""Rows that stay on the workers of a cluster, and functions that go to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from polyplane._validation import Data, check_classes, check_targets

MISSING = 'polyplane.dask needs Dask: pip install "polyplane[dask]"'


class Held:
    """A partition on its worker, and what may be remembered of it there; another worker would make that anew."""

    def __init__(self, data: Data, names: list[str] | None) -> None:
        self.data = data
        self.names = names
        self.cache: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "names": self.names, "cache": {}}


class Facts(NamedTuple):
    """What is known of a partition."""

    n_rows: int
    n_features: int
    dtype: Any
    counts: np.ndarray  # rows of positive weight, by class
    weight: float
    names: list[str] | None


class Cluster:
    """The partitions of a data set.

    Parameters
    ----------
    client : distributed.Client
        The way to the cluster.
    parts : list of futures
        Of `Held`.
    facts : list of Facts
        Of each of them.
    classes : ndarray
        The labels.
    """

    def __init__(self, client: Any, parts: list[Any], facts: list[Facts], classes: np.ndarray) -> None:
        self.client, self.parts, self.facts, self.classes = client, parts, facts, classes
        self.counts = np.sum([fact.counts for fact in facts], axis=0)
        self.weight = float(sum(fact.weight for fact in facts))
        self.n_features, self.dtype, self.names = facts[0].n_features, facts[0].dtype, facts[0].names

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A task. What it is given travels inside it: it can be run again, whatever worker is lost."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(function, *arguments, pure=False)

    def sum(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """The sum over all partitions of ``function(held, *arguments)``, always in the same order."""
        total: np.ndarray = np.sum(self.map(function, *arguments), axis=0)
        return total

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """``function(held, *arguments)`` of each partition."""
        results: list[Any] = self.client.gather([self.submit(function, part, *arguments) for part in self.parts])
        return results


def connected_client() -> Any:
    """The client of the cluster at hand, which has workers."""
    try:
        from distributed import default_client
    except ImportError:
        raise ImportError(MISSING) from None
    try:
        client = default_client()
    except ValueError:
        raise ValueError("There is no Dask client: connect to a cluster first, client = Client(...).") from None
    if not client.nthreads():
        raise RuntimeError("The Dask cluster has no workers; start some, or wait for them: client.wait_for_workers(1).")
    return client


@contextmanager
def clear_losses() -> Iterator[None]:
    """Say in one sentence that workers, or the cluster, are gone for good."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(f"Worker after worker died on the same task; is a partition too large? {error}") from error
    except (CommClosedError, CancelledError, FutureCancelledError, OSError) as error:
        raise RuntimeError(f"The Dask cluster was lost during fit; the estimator is as before. ({error})") from error


def spread(machine: Any, X: Any, y: Any, sample_weight: Any) -> Cluster:
    """Validate all partitions where they are."""
    client = connected_client()
    columns = _blocks_of(X, y, sample_weight)
    with clear_losses():
        futures = [client.compute(column) for column in columns]
        found = client.gather([client.submit(_labels, part, i) for i, part in enumerate(futures[1])])
        kept = [i for i, labels in enumerate(found) if len(labels)]
        if not kept:
            raise ValueError("All partitions are empty.")
        classes = check_classes(np.concatenate([found[i] for i in kept]))
        weigher = _with_class_weights(client, machine, classes, [futures[1][i] for i in kept])
        parts = [
            client.submit(_hold, weigher, classes, i, *(column[i] for column in futures), pure=False) for i in kept
        ]
        facts = client.gather([client.submit(_facts, part) for part in parts])
    for i, fact in zip(kept, facts, strict=True):
        if (fact.n_features, fact.dtype) != (facts[0].n_features, facts[0].dtype):
            raise ValueError(
                f"Partition {i} has {fact.n_features} features of {fact.dtype}, and partition {kept[0]} has "
                f"{facts[0].n_features} of {facts[0].dtype}."
            )
    return Cluster(client, parts, facts, classes)


def _blocks_of(X: Any, y: Any, sample_weight: Any) -> list[list[Any]]:
    """The partitions of X, of y and of the weights, each a list of as many delayed objects."""
    columns = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    rows = getattr(X, "chunks", [()])[0]
    delayed = {}
    for name, column in columns.items():
        known = hasattr(column, "chunks") and not np.isnan([*column.chunks[0], *rows]).any()
        if known and rows and column.chunks[0] != rows and sum(column.chunks[0]) == sum(rows):
            column = column.rechunk({0: rows})
        if hasattr(column, "chunks") and column.ndim == 2 and column.numblocks[1] > 1:
            column = column.rechunk({1: -1})
        delayed[name] = _delayed(name, column)
    numbers = {name: len(blocks) for name, blocks in delayed.items()}
    if len(set(numbers.values())) > 1:
        found = ", ".join(f"{name} has {number}" for name, number in numbers.items())
        raise ValueError(
            f"The numbers of partitions differ ({found}); where sizes of chunks are not known, "
            "X.compute_chunk_sizes() finds them."
        )
    return list(delayed.values())


def _delayed(name: str, column: Any) -> list[Any]:
    import dask

    if hasattr(column, "to_delayed"):
        return list(np.ravel(column.to_delayed()))
    if isinstance(column, list | tuple) and column and all(dask.is_dask_collection(part) for part in column):
        return list(column)
    raise TypeError(
        f"{name} is a {type(column).__name__}; a Dask array, a Dask dataframe or a list of delayed partitions is "
        "needed. For rows in memory, fit the estimator itself."
    )


def _labels(y: Any, number: int) -> np.ndarray:
    with _named(number):
        return np.unique(check_targets(_column(y), len(y))) if len(y) else np.empty(0)


def _count(y: Any, classes: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(classes, _column(y)), minlength=len(classes))


def _column(y: Any) -> np.ndarray:
    array = np.asarray(y)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _with_class_weights(client: Any, machine: Any, classes: np.ndarray, labels: list[Any]) -> Any:
    """The machine with the weights of "balanced" worked out over all partitions."""
    if getattr(machine, "class_weight", None) != "balanced":
        return machine
    counts = np.sum(client.gather([client.submit(_count, part, classes) for part in labels]), axis=0)
    weights = counts.sum() / (len(classes) * counts)
    return clone(machine).set_params(class_weight=dict(zip(classes.tolist(), weights.tolist(), strict=True)))


def _hold(machine: Any, classes: np.ndarray, number: int, X: Any, y: Any, weight: Any = None) -> Held:
    machine = clone(machine)
    with _named(number):
        data = machine._take(X, _column(y), None if weight is None else _column(weight), classes)
    names = getattr(machine, "feature_names_in_", None)
    return Held(data, None if names is None else names.tolist())


def _facts(held: Held) -> Facts:
    data = held.data
    counts = np.bincount(data.y[data.train], minlength=data.n_classes)
    n_rows, n_features = data.X.shape
    return Facts(n_rows, n_features, data.X.dtype, counts, float(data.training_weight.sum()), held.names)


@contextmanager
def _named(number: int) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
