"""The loop over the batches of a stream."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._array_api import to_numpy
from polyplane._batches import Batch, Place, Source, check_batch, fit_width, read_ahead
from polyplane._loop import Interrupt, record
from polyplane._progress import Progress
from polyplane._validation import Data, all_or_nothing, check_classes, check_matrix, check_targets, encode, to_host

#: Parameters that two runs of one training may have different.
FREE = {"n_jobs", "verbose", "random_state", "warm_start", "max_iter"}


@dataclass(frozen=True)
class StreamOptions:
    """The options of `fit_stream`, checked."""

    classes: np.ndarray | None
    time_limit: float | None
    half_life: float | None
    progressive: bool
    validation: Any
    validate_every: int | None
    checkpoint: Path | None
    checkpoint_every: float
    resume: bool

    def __post_init__(self) -> None:
        for name in ("time_limit", "half_life", "validate_every", "checkpoint_every"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r} must be positive.")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs the checkpoint to go on from: checkpoint='...'.")
        if self.checkpoint is not None and not self.checkpoint.parent.is_dir():
            raise ValueError(f"checkpoint={os.fspath(self.checkpoint)!r}: there is no such folder.")


class StreamRun:
    """One call of `fit_stream`.

    Parameters
    ----------
    learner : PlaneClassifier
        What is trained.
    options : StreamOptions
        How.
    """

    def __init__(self, learner: Any, options: StreamOptions) -> None:
        self.learner, self.options = learner, options
        self.state: Any = None
        self.last: Data | None = None  # the batch that was learned from last
        self.place = Place(0, 0, 0)
        self.history: dict[str, list[float]] = {}
        self.n_batches = self.n_rows = self._rows_before = 0
        self.seconds = 0.0  # of the runs that led to the checkpoint
        self.dtype: Any = None
        self._last_save = self._began = time.perf_counter()

    # Before the first batch.

    def begin(self) -> None:
        """Take up what is to be gone on from: a checkpoint, the model at hand with `warm_start`, or nothing."""
        learner, options = self.learner, self.options
        if options.resume and options.checkpoint is not None and options.checkpoint.exists():
            self._take_up(options.checkpoint)
        elif learner.warm_start and hasattr(learner, "_state"):
            self.state, self.dtype = learner._state, learner.planes_.coef.dtype
        else:
            for name in ("classes_", "n_features_in_", "feature_names_in_", "planes_", "_state"):
                vars(learner).pop(name, None)
        known = getattr(learner, "classes_", None)
        if known is not None and options.classes is not None and not np.array_equal(known, options.classes):
            raise ValueError(f"classes={options.classes.tolist()} are not those of the model: {known.tolist()}.")

    def _take_up(self, path: Path) -> None:
        from polyplane import load

        found = load(path)
        mine, theirs = (_comparable(machine) for machine in (self.learner, found))
        if type(found) is not type(self.learner) or mine != theirs:
            other = sorted(name for name in mine if mine[name] != theirs.get(name))
            what = ", ".join(f"{name}={theirs[name]!r}" for name in other if name in theirs) or type(found).__name__
            raise ValueError(f"The checkpoint {os.fspath(path)!r} is of another training: {what}.")
        if "rows" not in found.history_:
            raise ValueError(f"{os.fspath(path)!r} is a model, not a checkpoint of a stream.")
        vars(self.learner).update({name: value for name, value in vars(found).items() if name not in mine})
        self.state, self.dtype = found._state, found.planes_.coef.dtype
        self.history, self.n_batches = found.history_, found.n_iter_
        self.place, self.n_rows = _place(self.history), int(self.history["rows"][-1])
        self._rows_before = self.n_rows
        self.seconds = self.history["time"][-1]

    # The loop.

    def go(self, source: Source, prefetch: int) -> None:
        """Learn from one batch after the other until the stream, the time or the user's patience ends."""
        signals = () if self.options.checkpoint is None else (signal.SIGTERM,)
        progress = Progress(type(self.learner).__name__, None, getattr(self.learner, "verbose", 0))
        with Interrupt(*signals).watched() as interrupt, progress:
            with closing(read_ahead(source.read(self.place), prefetch)) as batches:
                try:
                    self._loop(batches, interrupt, progress)
                except BaseException as error:
                    self._keep_what_there_is(error)
                    raise
            self.finish()
        if interrupt.requested == signal.SIGINT:
            warnings.warn(f"Interrupted: the model is that of {self.n_rows} rows.", RuntimeWarning, stacklevel=4)
        elif interrupt.requested:  # the checkpoint is written: end as one was asked to
            signal.raise_signal(interrupt.requested)

    def _loop(self, batches: Iterable[tuple[Place, Batch]], interrupt: Interrupt, progress: Progress) -> None:
        asked = time.perf_counter()
        for place, batch in batches:
            self.learn(place, batch, asked)
            progress.update(self.n_rows, self._shown())
            every = self.options.validate_every
            if self.options.validation is not None and (self.n_batches == 1 or (every and self.n_batches % every == 0)):
                self.validate()
            now = time.perf_counter()
            if interrupt.requested or now - self._began > (self.options.time_limit or np.inf):
                return
            if self.options.checkpoint is not None and now - self._last_save > self.options.checkpoint_every:
                self.keep()
            asked = time.perf_counter()

    def learn(self, place: Place, batch: Batch, asked: float) -> None:
        """Test on a batch, then train on it. A batch that is refused changes nothing."""
        came = time.perf_counter()
        learner, fresh = self.learner, self.state is None
        with all_or_nothing(learner), _named(place):
            data = self._take(batch)
            if fresh:
                self.state = learner._start(data, learner._seed())
        figures: dict[str, float] = {}
        if self.options.progressive:
            figures["progressive_error"] = np.nan if fresh else self._error(data)
        self.state = learner._step(self.state, data)
        self.last, self.place = data, place
        self.n_batches += 1
        self.n_rows += batch.n_rows
        row = {"time": self.seconds + time.perf_counter() - self._began, "reading": came - asked, "rows": self.n_rows}
        record(self.history, {**row, "pass": place.turn + 1, **figures, **learner._figures(self.state)})

    def _take(self, batch: Batch) -> Data:
        """Validate a batch, and make room for the features that it brings."""
        learner, width = self.learner, getattr(self.learner, "n_features_in_", None)
        X = batch.X if width is None else fit_width(batch.X, width)
        wider = width is not None and sparse.issparse(X) and X.shape[1] > width
        if wider:
            learner.n_features_in_ = X.shape[1]
        classes = getattr(learner, "classes_", None)
        if classes is None:
            classes = check_classes(np.asarray(batch.y)) if self.options.classes is None else self.options.classes
        data = learner._take(X, batch.y, batch.weight, classes)
        if self.dtype is not None and data.X.dtype != self.dtype:
            raise ValueError(
                f"X is {data.X.dtype}, and what came before {self.dtype}; convert it with X.astype(numpy.{self.dtype})."
            )
        if wider:
            self.state = learner._widen(self.state, X.shape[1])
        self.dtype = data.X.dtype
        return replace(data, stream=True, half_life=self.options.half_life)

    def _error(self, data: Data) -> float:
        wrong = to_numpy(self.learner._stream_predict(self.state, data.X)) != data.y
        return float(np.average(wrong, weights=data.weight))

    def validate(self) -> None:
        """Record the error of the model at hand on the rows that are held back."""
        learner, validation = self.learner, self.options.validation
        parts = [validation] if isinstance(validation, tuple) else validation() if callable(validation) else validation
        wrong = total = 0.0
        for number, part in enumerate(parts, start=1):
            batch = check_batch(part, number)
            X = check_matrix(learner, fit_width(batch.X, learner.n_features_in_), reset=False)
            codes = encode(check_targets(to_host("y", batch.y, X), batch.n_rows), learner.classes_)
            weight = np.ones(batch.n_rows) if batch.weight is None else np.asarray(batch.weight, dtype=np.float64)
            wrong += float(weight @ (to_numpy(learner._stream_predict(self.state, X)) != codes))
            total += float(weight.sum())
        record(self.history, {"validation_rows": self.n_rows, "validation_error": wrong / total})

    def _shown(self) -> dict[str, float]:
        """What a progress bar tells."""
        rows = self.n_rows - self._rows_before
        shown = {"rows/s": rows / (time.perf_counter() - self._began)}
        recent = self.history.get("progressive_error", [])[-20:]
        if len(recent) > 1:
            shown["error"] = float(np.nanmean(recent))
        return shown

    # After a batch.

    def settle(self) -> None:
        """Let the learner be the model of the batches so far."""
        learner = self.learner
        learner._state, learner.planes_ = learner._trimmed(self.state), learner._planes(self.state)
        learner.n_iter_, learner.history_ = self.n_batches, self.history
        learner._finish(self.state, self.last)

    def keep(self) -> None:
        """Settle, and write the checkpoint where one is asked for."""
        self.settle()
        if self.options.checkpoint is not None:
            from polyplane import save

            save(self.learner, self.options.checkpoint)
        self._last_save = time.perf_counter()

    def finish(self) -> None:
        """The end of the stream, or of the time."""
        if self.last is None:
            if not self.n_batches:
                raise ValueError("The stream is empty: not a single batch came.")
            return  # all of it had been learned before the checkpoint
        if self.options.validation is not None:
            self.validate()
        self.keep()

    def _keep_what_there_is(self, error: BaseException) -> None:
        """The stream broke off: what was learned stays."""
        if self.last is not None:
            self.keep()
            error.add_note(f"fit_stream had learned from {self.n_rows} rows before: the model is that of these rows.")


@contextmanager
def _named(place: Place) -> Iterator[None]:
    """Say which batch an error is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Batch {place.batch} of the stream: {error}") from error


def _comparable(machine: Any) -> dict[str, Any]:
    return {name: value for name, value in machine.get_params().items() if name not in FREE}


def _place(history: dict[str, list[float]]) -> Place:
    """Where the batches of a history end."""
    turns, rows = history["pass"], [0.0, *history["rows"]]
    n_batches = turns.count(turns[-1])
    return Place(int(turns[-1]) - 1, n_batches, int(rows[-1] - rows[-1 - n_batches]))
