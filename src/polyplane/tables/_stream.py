"""Training on a stream of tables: batches of rows, each used once per pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from polyplane._validation import check_classes, check_targets, check_weights, encode
from polyplane.engine.batches import Batch, BatchSource, Position, read_ahead
from polyplane.engine.run import Progress, record
from polyplane.inputs.concatenation import concatenated, loaded
from polyplane.inputs.conversion import as_numbers
from polyplane.inputs.encoding import positions_of
from polyplane.inputs.frames import Table, read_table
from polyplane.tables._choice import EncodedRows
from polyplane.tables._further_training import FurtherTraining

if TYPE_CHECKING:
    from polyplane.tables.classifier import TableClassifier


#: Number of rows that determine the encoder and all choices, such as the number of planes. (Error on adult: 13.3 % if
#: these are all of its 32,561 rows; 13.3 to 13.7 % if they are the first 20,000 rows and the others follow in batches;
#: 13.9 % if they are the first 4,000 rows.)
FIRST_ROWS = 50_000


class Part(NamedTuple):
    """Validated rows."""

    table: Table
    y: np.ndarray
    weight: np.ndarray


class TableStream:
    """One call of `fit_stream`.

    Parameters
    ----------
    estimator : TableClassifier
        The classifier. It is not changed: `draft` is the classifier trained on the batches so far.
    classes : array-like or None
        All labels.
    first_rows : int
        Number of rows that determine the encoder, the preparation and the number of planes.
    """

    def __init__(self, estimator: TableClassifier, classes: Any, first_rows: int) -> None:
        refuse_balanced(estimator)
        if not first_rows >= 1:
            raise ValueError(f"first_rows={first_rows!r} must be 1 or more.")
        self.draft = type(estimator)(**estimator.get_params(deep=False))
        self.classes = None if classes is None else check_classes(np.asarray(classes))
        self.first_rows = first_rows
        self.n_parts = self.n_rows = 0
        self.training: FurtherTraining | None = None
        self._waiting: list[Part] = []  # the first rows, for the encoder
        self._history: dict[str, list[float]] = {}
        self._began = time.perf_counter()
        self._progress = Progress(type(estimator).__name__, None) if estimator.verbose else None

    @property
    def is_fitted(self) -> bool:
        """Whether the draft is fitted."""
        return self.training is not None

    def go(self, batches: Any, passes: int, time_limit: float | None, prefetch: int) -> None:
        """Train on the batches until the stream or the time ends, or an exception is raised."""
        source = BatchSource(batches, passes)
        try:
            with closing(read_ahead(source.read(Position(0, 0, 0)), prefetch)) as parts:
                for position, batch in parts:
                    self._take(position, batch)
                    if time_limit is not None and time.perf_counter() - self._began > time_limit:
                        break
            if not self.is_fitted:
                self._begin(1)
        except BaseException as error:
            self._keep_after(error)
            raise
        finally:
            if self._progress is not None:
                self._progress.end()

    def start(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Train on a first batch of any size."""
        self._waiting = [self._checked(Batch(X, y, sample_weight, 0))]
        self.n_rows = len(self._waiting[0].y)
        self._begin(1)

    def _take(self, position: Position, batch: Batch) -> None:
        if position.passes and not self.is_fitted:
            self._begin(1)
        with _named(position):
            part = self._checked(batch)
            rows = encoded(self.draft, *part) if self.is_fitted else None
        if rows is not None:
            self._step(rows, position.passes + 1)
        else:
            self._waiting.append(part)
            self.n_rows += len(part.y)
            if self.n_rows >= self.first_rows:
                self._begin(1)

    def _checked(self, batch: Batch) -> Part:
        """Validate the columns, labels and weights of a batch before it is added to the others."""
        table = loaded(read_table(batch.X, frozenset(self.draft.gaps)))
        y = check_targets(batch.y, table.n_rows)
        if self.classes is not None:
            encode(y, self.classes)
        weight = _check_sample_weight(batch.weight, np.empty((table.n_rows, 1)), ensure_non_negative=True)
        if self._waiting:
            first = self._waiting[0]
            positions_of(first.table.names, first.table.names, first.table.is_named, table, type(self.draft).__name__)
            if (first.y.dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
                raise ValueError("The labels of the stream have mixed types: some are strings, others are not.")
        if not self.is_fitted:
            for cells in map(table.read, range(len(table.names))):
                if cells.form == "number":
                    as_numbers(cells, self.draft.decimal)
        return Part(table, y, weight)

    def _begin(self, number: int) -> None:
        """Fit the encoder and a first model on the batches so far."""
        if not self._waiting:
            raise ValueError("The stream is empty: it has no batches.")
        draft, tables = self.draft, [part.table for part in self._waiting]
        y, weight = (np.concatenate([getattr(part, name) for part in self._waiting]) for name in ("y", "weight"))
        table = concatenated(tables, type(draft).__name__)
        encoder, classes, rows = draft._encode(table, y, weight, self.classes)
        if self._progress is not None:
            print(f"{type(draft).__name__}  fitting the encoder on the first {len(rows.y)} rows", flush=True)
        draft._fit_encoded(encoder, classes, rows)
        if self._progress is not None:
            self._progress.begin()
        self.training = FurtherTraining(draft.table_model_, rows, seeds_of(draft))
        self.classes = draft.classes_
        self.n_parts, self._waiting = len(self._waiting), []
        self._note(number, np.nan)

    def _step(self, rows: EncodedRows, number: int) -> None:
        assert self.training is not None
        error = self.training.step(rows, self.draft.n_jobs, is_new=number == 1)
        self.draft.table_model_ = self.training.model
        self.n_parts, self.n_rows = self.n_parts + 1, self.n_rows + len(rows.y)
        self._note(number, error)

    def _note(self, number: int, error: float) -> None:
        seconds = time.perf_counter() - self._began
        record(self._history, {"time": seconds, "rows": self.n_rows, "pass": number, "progressive_error": error})
        self.draft.n_iter_, self.draft.history_ = self.n_parts, self._history
        if self._progress is not None:
            self._progress.update(self.n_rows, {"rows/s": self.n_rows / seconds, "error": error})

    def _keep_after(self, error: BaseException) -> None:
        """Fit the draft on the batches before an error, if they are sufficient."""
        if not self.is_fitted and self._waiting:
            try:
                self._begin(1)
            except Exception:
                return  # the first error is raised
        if self.is_fitted:
            error.add_note(
                f"fit_stream had trained on {self.n_rows} rows; the estimator keeps the model of these rows."
            )


def encoded(fitted: TableClassifier, table: Table, y: np.ndarray, weight: np.ndarray | None) -> EncodedRows:
    """Encode rows of positive weight with a fitted classifier."""
    classes, encoding = fitted.classes_, fitted.table_model_.encoding
    codes = encode(y, classes)
    weight = check_weights(np.empty((len(y), 1)), y, codes, classes, weight, fitted.class_weight)
    Z = encoding.encode(table, type(fitted).__name__)
    rows = EncodedRows(Z, codes, weight, encoding.is_indicator, len(classes))
    return rows if (weight > 0).all() else rows.take(np.flatnonzero(weight > 0))


def partial_fit(estimator: TableClassifier, X: Any, y: Any, classes: Any, sample_weight: Any) -> TableClassifier:
    """Train on a first or a further batch; if this fails, the classifier remains unchanged."""
    refuse_balanced(estimator)
    if not hasattr(estimator, "table_model_"):
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        stream = TableStream(estimator, classes, 1)
        stream.start(X, y, sample_weight)
        estimator.__dict__ = {**vars(stream.draft), "_training": stream.training}
        return estimator
    if classes is not None and not np.array_equal(np.unique(classes), estimator.classes_):
        raise ValueError(f"classes={list(classes)} is not the same as on the last call: {estimator.classes_.tolist()}.")
    table = read_table(X, estimator.table_model_.encoding.gaps)
    rows = encoded(estimator, table, check_targets(y, table.n_rows), sample_weight)
    training = vars(estimator).get("_training") or FurtherTraining(estimator.table_model_, rows, seeds_of(estimator))
    history = {name: list(values) for name, values in getattr(estimator, "history_", {}).items()}
    record(history, {"progressive_error": training.step(rows, estimator.n_jobs)})
    n_iter = estimator.n_iter_ + 1
    estimator.__dict__.update(table_model_=training.model, _training=training, n_iter_=n_iter, history_=history)
    return estimator


def seeds_of(fitted: TableClassifier) -> list[int]:
    """Return one seed per member."""
    random = check_random_state(fitted.random_state)
    return [int(seed) for seed in random.randint(2**31, size=len(fitted.members_))]


def refuse_balanced(estimator: TableClassifier) -> None:
    """Raise an error for class weights that require all rows."""
    if estimator.class_weight == "balanced":
        raise ValueError("class_weight='balanced' needs all rows at once; pass a dict of weights instead.")


@contextmanager
def _named(position: Position) -> Iterator[None]:
    """Add the number of the batch to the message of an error."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"Batch {position.batch} of the stream: {error}") from error
