"""The source of the batches of a stream."""

from __future__ import annotations

import inspect
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from scipy import sparse


class Position(NamedTuple):
    """A position in a stream."""

    passes: int  # completed passes
    batch: int  # batches read in the current pass
    rows: int  # rows read in the current pass


class Batch(NamedTuple):
    """Labelled rows, not yet validated."""

    X: Any
    y: Any
    weight: Any
    n_rows: int


@contextmanager
def named_batch(position: Position) -> Iterator[None]:
    """Add the number of the batch to errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"Batch {position.batch} of the stream: {error}") from error


class BatchSource:
    """Batches that can be read from any position, in several passes.

    Parameters
    ----------
    batches : iterable or callable
        An iterable of ``(X, y)`` or ``(X, y, weight)``. A callable returns a new iterable for each pass; if it has a
        parameter `start`, that is the index of the first row to return.
    passes : int
        Number of passes.
    """

    def __init__(self, batches: Iterable[Any] | Callable[..., Iterable[Any]], passes: int) -> None:
        if not callable(batches) and not isinstance(batches, Iterable):
            raise ValueError(
                f"batches is a {type(batches).__name__}; it must be an iterable of (X, y) or (X, y, weight), or a "
                "function that returns one."
            )
        if passes > 1 and isinstance(batches, Iterator):
            raise ValueError(
                f"passes={passes} needs a list of batches, or a function that returns a new iterator for each pass; a "
                f"{type(batches).__name__} is exhausted after one pass."
            )
        self.batches = batches
        self.passes = passes
        self.seeks = callable(batches) and "start" in _parameters(batches)

    def read(self, position: Position) -> Iterator[tuple[Position, Batch]]:
        """Yield all batches after `position`, each with the position after it."""
        while position.passes < self.passes:
            for batch in self._open(position):
                position = Position(position.passes, position.batch + 1, position.rows + batch.n_rows)
                yield position, batch
            position = Position(position.passes + 1, 0, 0)

    def _open(self, position: Position) -> Iterator[Batch]:
        if self.seeks and callable(self.batches):
            opened = iter(self.batches(start=position.rows))
        else:
            opened = iter(self.batches() if callable(self.batches) else self.batches)
            self._skip(opened, position)
        for number, item in enumerate(opened, start=position.batch + 1):
            yield check_batch(item, number)

    def _skip(self, opened: Iterator[Any], position: Position) -> None:
        """Skip the batches that have been trained on; they must be the same as before."""
        rows = number = 0
        while rows < position.rows:
            item = next(opened, None)
            if item is None:
                break
            number += 1
            rows += check_batch(item, number).n_rows
        if rows != position.rows:
            raise ValueError(
                f"This is not the stream of the checkpoint: its first {number} batches have {rows} rows, but the "
                f"batches before the checkpoint had {position.rows}; pass the same batches."
            )


def _parameters(function: Callable[..., Any]) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        return ()


def check_batch(item: Any, number: int) -> Batch:
    """Return an item of a stream as a `Batch`, without validating the rows; of the readers' `Rows`, use `X` and `y`."""
    if hasattr(item, "X") and hasattr(item, "y"):
        item = (item.X, item.y)
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise ValueError(f"Batch {number} of the stream is a {type(item).__name__}, not (X, y) or (X, y, weight).")
    X = item[0]
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows == 0:
        raise ValueError(f"Batch {number} of the stream has no rows.")
    return Batch(X, item[1], item[2] if len(item) == 3 else None, int(n_rows))


def fit_width(X: Any, n_features: int) -> Any:
    """Give sparse rows as many columns as the model has: the last ones may not occur in every batch."""
    if not sparse.issparse(X) or X.shape[1] >= n_features:
        return X
    X = X.tocsr()
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def read_ahead(items: Iterator[Any], depth: int) -> Generator[Any, None, None]:
    """Yield the same items; a thread computes up to `depth` of them in advance."""
    if depth == 0:
        yield from items
        return
    ready: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    over, room, is_closed = object(), threading.Semaphore(depth), threading.Event()

    def work() -> None:
        item, error = None, None
        while item is not over:
            room.acquire()
            if is_closed.is_set():
                return
            try:
                item = next(items, over)
            except BaseException as raised:  # raised again in the consumer
                item, error = over, raised
            ready.put((item, error))

    threading.Thread(target=work, name="polyplane-reader", daemon=True).start()
    try:
        while (found := ready.get())[0] is not over:
            room.release()
            yield found[0]
        if found[1] is not None:
            raise found[1]
    finally:
        is_closed.set()
        room.release()
