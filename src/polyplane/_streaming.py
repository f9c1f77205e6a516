"""Training on streams: data in batches, larger than memory or unbounded."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._array_api import to_numpy
from polyplane._prediction import check_classes
from polyplane.engine.batches import Batch, BatchSource, Position, check_batch, fit_width, named_batch, read_ahead
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.run import Interrupt, Limits, Observer, Progress, Run, record

#: Parameters that may differ between the checkpoint and the resumed training.
FREE = {"n_jobs", "verbose", "random_state", "warm_start", "max_iter"}


@dataclass
class StreamOptions:
    """The validated options of `fit_stream`."""

    classes: Any = None
    passes: int = 1
    time_limit: float | None = None
    half_life: float | None = None
    progressive: bool = True
    validation: Any = None
    validate_every: int | None = None
    checkpoint: Any = None
    checkpoint_every: float = 300.0
    resume: bool = False
    prefetch: int = 0
    first_rows: int = 1
    continues: bool = False  # from the fitted model, as with `warm_start`

    def __post_init__(self) -> None:
        for name in ("time_limit", "half_life", "validate_every", "checkpoint_every", "first_rows"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r} must be positive.")
        if self.passes < 1:
            raise ValueError(f"passes={self.passes} must be 1 or more.")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs the file to resume from: set checkpoint.")
        if self.checkpoint is not None:
            self.checkpoint = Path(self.checkpoint)
            if not self.checkpoint.parent.is_dir():
                raise ValueError(f"checkpoint={os.fspath(self.checkpoint)!r}: the folder does not exist.")
        self.classes = None if self.classes is None else check_classes(np.asarray(self.classes))


class StreamTraining(Observer):
    """One call of `fit_stream`.

    Parameters
    ----------
    estimator : PlaneClassifier
        The estimator to train. It does not change: `draft` is the model of the batches so far.
    options : StreamOptions
        The options.
    limits : Limits
        Time limit and interruption.
    scaling : AffineScaling or None
        The scaling of the rows, if training starts from the beginning.
    """

    def __init__(self, estimator: Any, options: StreamOptions, limits: Limits, scaling: AffineScaling | None) -> None:
        self.options, self.limits = options, limits
        self.draft = copy(estimator)
        self.position = Position(0, 0, 0)
        self.history: dict[str, list[float]] = {}
        self.n_batches = self.n_rows = self._rows_before = 0
        self.dtype: Any = None
        self.run: Run | None = None
        self.unwritten: OSError | None = None  # the error of the last checkpoint, if it could not be written
        self.is_up_to_date = False  # whether the draft is the model of all batches so far
        self._is_wider = False  # whether features were added
        self._learned_now = False  # whether a batch of this call was trained on
        self._seconds = 0.0  # training time before the checkpoint
        self._reading = 0.0  # seconds waited for the current batch
        self._next = self.draft, self.position, 0  # the draft, the position and the rows after the current batch
        self._begin(scaling)
        self._progress = Progress(type(estimator).__name__, None) if getattr(estimator, "verbose", 0) else None
        self._last_save = time.perf_counter()

    # Before the first batch.

    def _begin(self, scaling: AffineScaling | None) -> None:
        """Start from a checkpoint, from the fitted model if training continues, or from the beginning."""
        draft, options = self.draft, self.options
        if options.resume and options.checkpoint.exists():
            self._resume_from(options.checkpoint)
        elif (draft.warm_start or options.continues) and draft._is_resumable:
            self.dtype = draft.planes_.coef.dtype
        else:
            self.draft = draft._unfitted(scaling)
        known = getattr(self.draft, "classes_", None)
        if known is not None and options.classes is not None and not np.array_equal(known, options.classes):
            raise ValueError(f"classes={options.classes.tolist()} differ from those of the model, {known.tolist()}.")

    def _resume_from(self, path: Path) -> None:
        from polyplane.files import read_model

        def find(name: str) -> type:
            if name != type(self.draft).__name__:
                raise ValueError(f"The checkpoint {os.fspath(path)!r} is from another estimator, {name}.")
            return type(self.draft)

        found = read_model(path, find).model
        mine, theirs = (_comparable(model) for model in (self.draft, found))
        if mine != theirs:
            other = ", ".join(f"{name}={theirs[name]!r}" for name in sorted(mine) if mine[name] != theirs[name])
            raise ValueError(f"The checkpoint {os.fspath(path)!r} is from training with other parameters: {other}.")
        if "rows" not in found.history_:
            raise ValueError(f"{os.fspath(path)!r} is a model, not a checkpoint of a stream.")
        learned = {name: value for name, value in vars(found).items() if name not in found.get_params(deep=False)}
        vars(self.draft).update(learned)
        self.dtype, self.is_up_to_date = found.planes_.coef.dtype, True
        self.history, self.n_batches = found.history_, found.n_iter_
        self.position, self.n_rows = _position(self.history), int(self.history["rows"][-1])
        self._rows_before, self._seconds = self.n_rows, self.history["time"][-1]

    # The loop.

    def go(self, batches: Any) -> None:
        """Train on the batches until the stream ends, the time limit is reached, or an exception is raised."""
        source, interrupt = BatchSource(batches, self.options.passes), self.limits.interrupt
        if interrupt is None and self.options.checkpoint is not None:
            interrupt = Interrupt(signal.SIGTERM)
        try:
            with interrupt.watched() if interrupt is not None else nullcontext():
                with closing(read_ahead(source.read(self.position), self.options.prefetch)) as parts:
                    gathered = self.draft._gathered(parts, self.options.first_rows)
                    self._train(self._data(gathered), replace(self.limits, interrupt=interrupt))
                self._finish()
        except KeyboardInterrupt:
            if interrupt is not None and interrupt.requested not in (None, signal.SIGINT):
                if self.unwritten is not None:
                    sys.stderr.write(f"polyplane: the checkpoint could not be written: {self.unwritten}\n")
                    sys.stderr.flush()
                signal.raise_signal(interrupt.requested)  # terminate as requested
            raise

    def _train(self, stream: Iterator[Data], limits: Limits) -> None:
        try:
            first = next(stream, None)
            if first is None:
                return
            self.run = self._next[0]._stream_run(first, limits=limits, observers=[self], seconds=self._seconds)
            self.run.history = self.history
            if self.options.half_life is not None and not self.run.method.traits.fades:
                raise ValueError(f"half_life is not supported by {type(self.draft).__name__}; set it to None.")
            self.run.go(chain([first], stream))
        except BaseException as error:
            if self._learned_now:
                self._keep_after(error)
            raise

    def _data(self, parts: Iterator[tuple[Position, Batch]]) -> Iterator[Data]:
        """Yield the validated batches."""
        asked = time.perf_counter()
        for position, batch in parts:
            self._reading = time.perf_counter() - asked
            with named_batch(position):
                draft, data = self._validated_batch(batch, is_repeated=position.passes > 0)
            self._next = draft, position, self.n_rows + batch.n_rows
            yield data
            asked = time.perf_counter()

    def _validated_batch(self, batch: Batch, is_repeated: bool) -> tuple[Any, Data]:
        """Validate a batch, and add its new features to the model."""
        draft = copy(self.draft)  # an invalid batch changes nothing
        width = getattr(draft, "n_features_in_", None)
        X = batch.X if width is None else fit_width(batch.X, width)
        wider = width is not None and sparse.issparse(X) and X.shape[1] > width
        if wider:
            draft.n_features_in_ = X.shape[1]
        classes = getattr(draft, "classes_", None)
        if classes is None:
            classes = check_classes(np.asarray(batch.y)) if self.options.classes is None else self.options.classes
        data = draft._validated(X, batch.y, batch.weight, classes)
        if self.dtype is not None and data.X.dtype != self.dtype:
            raise ValueError(
                f"X is {data.X.dtype}, but earlier batches are {self.dtype}; convert it: X.astype(numpy.{self.dtype})."
            )
        if wider:
            assert self.run is not None
            self.run.widen(X.shape[1])
            self._is_wider = True
        self.dtype = data.X.dtype
        return draft, replace(data, stream=True, half_life=self.options.half_life, is_repeated=is_repeated)

    # Recording.

    def begin(self) -> None:
        """Show progress, if requested."""
        if self._progress is not None:
            self._progress.begin()

    def end(self) -> None:
        """Stop showing progress."""
        if self._progress is not None:
            self._progress.end()

    def before_step(self, run: Run, data: Data) -> Mapping[str, float]:
        """Test the model on the next batch before training on it."""
        _, position, n_rows = self._next
        metrics = {"reading": self._reading, "rows": n_rows, "pass": position.passes + 1}
        if self.options.progressive:
            metrics["progressive_error"] = np.nan if run.state is None else self._error(run, data)
        return metrics

    def _error(self, run: Run, data: Data) -> float:
        wrong = to_numpy(run.method.predict(run.state, data.X)) != data.y
        return float(np.average(wrong, weights=data.weight))

    def after_step(self, run: Run, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Record the position, test on held-out rows, and write a checkpoint, when they are due."""
        before, is_first = self.position, self.n_batches == 0
        self.draft, self.position, self.n_rows = self._next
        self.n_batches += self.position.batch - (before.batch if before.passes == self.position.passes else 0)
        self._learned_now, self.is_up_to_date = True, False
        if self._progress is not None:
            self._progress.update(self.n_rows, self._shown(run))
        every = self.options.validate_every
        if self.options.validation is not None and (is_first or (every and self.n_batches % every == 0)):
            self._validate(run)
        now = time.perf_counter()
        if self.options.checkpoint is not None and now - self._last_save > self.options.checkpoint_every:
            self.keep()
        return {}

    def _validate(self, run: Run) -> None:
        """Record the error of the current model on held-out rows."""
        draft, validation = self.draft, self.options.validation
        parts = [validation] if isinstance(validation, tuple) else validation() if callable(validation) else validation
        wrong = total = 0.0
        for number, part in enumerate(parts, start=1):
            X, codes, weight = draft._held_out(*check_batch(part, number)[:3])
            wrong += float(weight @ (to_numpy(run.method.predict(run.state, X)) != codes))
            total += float(weight.sum())
        record(self.history, {"validation_rows": self.n_rows, "validation_error": wrong / total})

    def _shown(self, run: Run) -> dict[str, float]:
        """Return the metrics for the progress bar."""
        shown = {"rows/s": (self.n_rows - self._rows_before) / (run.seconds - self._seconds)}
        recent = self.history.get("progressive_error", [])[-20:]
        if len(recent) > 1:
            shown["error"] = float(np.nanmean(recent))
        return shown

    # Keeping the model.

    def keep(self) -> None:
        """Update the draft to the model of the batches so far, and write the checkpoint, if requested."""
        run, draft = self.run, self.draft
        assert run is not None
        state = run.state.trimmed(draft.n_features_in_) if self._is_wider else run.state
        draft._set_model(run.method, state.without_rows(), state, run.data)
        draft.n_iter_, draft.history_ = self.n_batches, self.history
        self.is_up_to_date = True
        if self.options.checkpoint is not None:
            from polyplane.files import write_model

            write_model(self.options.checkpoint, draft, {})
        self._last_save = time.perf_counter()

    def _keep_after(self, error: BaseException) -> None:
        """Do the same after an error: a checkpoint that cannot be written must not hide the original error."""
        try:
            self.keep()
        except OSError as failure:
            self.unwritten = failure
            error.add_note(f"The checkpoint could not be written: {failure}")
        error.add_note(f"fit_stream had trained on {self.n_rows} rows; the estimator keeps the model of these rows.")

    def _finish(self) -> None:
        """Handle the end of the stream, or the time limit."""
        if not self._learned_now:
            if not self.n_batches:
                raise ValueError("The stream is empty: it has no batches.")
            return  # all batches were trained on before the checkpoint
        if self.options.validation is not None:
            assert self.run is not None
            self._validate(self.run)
        self.keep()


def _comparable(estimator: Any) -> dict[str, Any]:
    return {name: value for name, value in estimator.get_params().items() if name not in FREE}


def _position(history: dict[str, list[float]]) -> Position:
    """Return the position at the end of a history."""
    passes, rows = history["pass"], [0.0, *history["rows"]]
    n_steps = passes.count(passes[-1])
    return Position(int(passes[-1]) - 1, n_steps, int(rows[-1] - rows[-1 - n_steps]))
