"""`Run`, the one training loop, with what ends it and what observes it; `Race`, the one selection of candidates."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from polyplane._array_api import take_rows, to_numpy
from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.kernels.notice import begin_waiting, end_waiting
from polyplane.planes import PlaneSet


class Interrupt:
    """Turns the first signal into a request to stop after the current step; a second signal is raised at once.

    Parameters
    ----------
    *signals : int
        Signals to handle in addition to Ctrl-C, such as ``signal.SIGTERM``.

    Attributes
    ----------
    requested : int or None
        The first signal received.
    """

    def __init__(self, *signals: int) -> None:
        self.requested: int | None = None
        self._signals = (signal.SIGINT, *signals)

    def _handle(self, signum: int, frame: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = signum

    @contextmanager
    def watched(self) -> Iterator[Interrupt]:
        """Handle the signals, in the main thread (the only one that receives them) and if no other handler is set."""
        defaults = (signal.default_int_handler, signal.SIG_DFL)
        in_main_thread = threading.current_thread() is threading.main_thread()
        before = {
            signum: signal.getsignal(signum)
            for signum in self._signals
            if in_main_thread and signal.getsignal(signum) in defaults
        }
        for signum in before:
            signal.signal(signum, self._handle)
        try:
            yield self
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)


class Plateau:
    """Detects when a value to be minimised has stopped falling.

    Parameters
    ----------
    tol : float or None
        A step counts as progress when it lowers the best value by more than ``tol * |best|``. None: never stop.
    patience : int
        Number of steps without progress before training stops.
    """

    def __init__(self, tol: float | None, patience: int) -> None:
        self.tol = tol
        self.patience = patience
        self.best = float("inf")
        self.idle = 0

    def reached(self, value: float) -> bool:
        """Add the next value; return whether to stop."""
        if self.tol is None:
            return False
        self.idle = 0 if self.best == float("inf") or value < self.best - self.tol * abs(self.best) else self.idle + 1
        self.best = min(self.best, value)
        return self.idle >= self.patience


class Observer:
    """Is called during a run. The metrics that it returns are added to the history."""

    def begin(self) -> None:
        """Called before the first step."""

    def chosen(self, settings: Mapping[str, float]) -> None:
        """Called with the settings that were chosen before the first step."""

    def before_step(self, run: Run, data: Data) -> Mapping[str, float]:
        """Called before each step."""
        return {}

    def after_step(self, run: Run, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Called after each step, with the metrics so far."""
        return {}

    def end(self) -> None:
        """Called after the last step, also if the run fails."""


@dataclass(frozen=True)
class Limits:
    """When a run ends early.

    Parameters
    ----------
    seconds : float or None
        Time limit: no step starts after it.
    interrupt : Interrupt or None
        Signals that end the run after the current step. Without it, Ctrl-C interrupts the step, which is undone.
    """

    seconds: float | None = None
    interrupt: Interrupt | None = None


class Done(NamedTuple):
    """The result of the finished steps, replaced as a whole: an interruption cannot leave it inconsistent."""

    state: Any
    data: Data | None
    n_steps: int


class Run:
    """Steps of a method, one after the other.

    If a step fails or is interrupted by Ctrl-C, `state` is that of the last finished step.

    Parameters
    ----------
    method : Method
        The training method.
    state : State or None, default=None
        The state to continue from; the run works on a copy of it. None: `Method.start` on the first rows.
    seed : int, default=0
        For `choose` and `Method.start`.
    choose : function of (method, data, seed), default=None
        Returns the `Choice` of a method to start with, when training begins. The run goes on with the given method.
    plateau : Plateau, default=None
        Stopping rule for the value that the method, or an observer as "validation_error", reports.
    limits : Limits, default=no limits
        Time limit and signals.
    observers : sequence of Observer
        Called before and after each step.
    seconds : float, default=0.0
        Time in seconds of earlier runs of the same training.
    tracked : bool, default=True
        Whether to keep a history, to call the observers, and to undo steps that fail, on a copy of `state`. False: only
        the final state is used; on a few hundred rows this takes half of the time.

    Attributes
    ----------
    n_steps : int
        Number of finished steps.
    history : dict of str to list of float
        The metrics after each step.
    reason : str
        Why the run ended: "end of data", "converged", "time limit", "interrupted".
    choice : Choice or None
        What was chosen before the first step.
    """

    def __init__(
        self,
        method: Method[Any],
        state: Any = None,
        *,
        seed: Any = 0,
        choose: Callable[[Any, Data, int], Choice] | None = None,
        plateau: Plateau | None = None,
        limits: Limits | None = None,
        observers: Iterable[Observer] = (),
        seconds: float = 0.0,
        tracked: bool = True,
    ) -> None:
        self.method, self.seed, self.choose, self.tracked = method, seed, choose, tracked
        self.choice: Choice | None = None
        self.plateau, self.limits = plateau or Plateau(None, 1), limits or Limits()
        self.observers = list(observers)
        self.done = Done(state.copy() if tracked and state is not None else state, None, 0)
        self.history: dict[str, list[float]] = {}
        self.reason = "end of data"
        self._seconds_before = seconds
        self._began = time.perf_counter()

    @property
    def state(self) -> Any:
        """The state after the last finished step; None before the first one of a new training."""
        return self.done.state

    @property
    def data(self) -> Data | None:
        """The rows of the last finished step."""
        return self.done.data

    @property
    def n_steps(self) -> int:
        """Number of finished steps."""
        return self.done.n_steps

    @property
    def seconds(self) -> float:
        """Time since training began, that of earlier runs included."""
        return self._seconds_before + time.perf_counter() - self._began

    def go(self, batches: Iterable[Data]) -> Run:
        """Make one step on each of `batches`, until they end or a stopping rule applies.

        An interruption raises `KeyboardInterrupt`; `state` is then that of the last finished step.
        """
        self._began = time.perf_counter()
        try:
            for observer in self.observers:
                observer.begin()
            for data in batches:
                self.step(data)
                if self._over():
                    break
        except KeyboardInterrupt:
            self.reason = "interrupted"
            raise
        finally:
            for observer in self.observers:
                observer.end()
        if self.reason == "interrupted":
            raise KeyboardInterrupt
        return self

    def step(self, data: Data) -> None:
        """Make one step. If a step of a tracked run fails, what it has written is undone."""
        if not self.tracked:
            self._advance(self._ready(data), data)
            return
        metrics: dict[str, float] = {}
        for observer in self.observers:
            metrics |= observer.before_step(self, data)
        done, state = self.done, self._ready(data)
        saved = state.save(data)
        try:
            self._advance(state, data)
        except BaseException:
            if self.done is done:
                saved.restore()
            raise
        metrics |= self.method.metrics(self.state)
        record(self.history, {"time": self.seconds, **metrics})
        for observer in self.observers:
            record(self.history, observer.after_step(self, metrics))

    def _advance(self, state: Any, data: Data) -> None:
        self.done = Done(self.method.step(state, data), data, self.done.n_steps + 1)

    def widen(self, n_features: int) -> None:
        """Add room for more features."""
        self.done = self.done._replace(state=self.method.widen(self.state, n_features))

    def _ready(self, data: Data) -> Any:
        """The state before a step on these rows."""
        state = self.done.state
        if state is None:
            return self._start(data)
        return state if data is self.done.data else state.for_rows(data)

    def _start(self, data: Data) -> Any:
        """The state before the first step, after the choice of what is left open."""
        if self.choose is None:
            return self.method.start(data, self.seed)
        self.choice = self.choose(self.method, data, self.seed)
        for observer in self.observers if self.choice.settings else ():
            observer.chosen(self.choice.settings)
        return self.choice.method.start(data, self.seed)

    def _over(self) -> bool:
        interrupt, seconds = self.limits.interrupt, self.limits.seconds
        if interrupt is not None and interrupt.requested:
            self.reason = "interrupted"
        elif seconds is not None and time.perf_counter() - self._began > seconds:
            self.reason = "time limit"
        elif self._converged():
            self.reason = "converged"
        return self.reason != "end of data"

    def _converged(self) -> bool:
        state, data, _ = self.done
        if data is None or data.stream:
            return False
        watched = self.method.done(state)
        if isinstance(watched, bool) or self.plateau.tol is None:
            return watched is True
        if watched < float("inf") and "validation_error" in self.history:
            watched = self.history["validation_error"][-1]
        return self.plateau.reached(watched)


def record(history: dict[str, list[float]], row: Mapping[str, float]) -> None:
    """Append a row of metrics to a history."""
    for name, value in row.items():
        history.setdefault(name, []).append(float(value))


class Validation(Observer):
    """The error on held-out rows after each step, and the planes that were best on them."""

    def __init__(self, data: Data, held_out: np.ndarray) -> None:
        self.planes: PlaneSet | None = None
        self._error = float("inf")
        self._X = take_rows(data.X, held_out)
        self._y, self._weight = data.y[held_out], data.weight[held_out]

    def after_step(self, run: Run, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Evaluate the planes."""
        planes = run.method.planes(run.state)
        wrong = to_numpy(planes.predict(self._X)) != self._y
        error = float(np.average(wrong, weights=self._weight))
        if error < self._error:
            self._error, self.planes = error, planes
        return {"validation_error": error}


class Progress(Observer):
    """A progress bar with the estimated remaining time on a terminal (requires Rich), plain lines otherwise.

    Except for the first and the last, lines are at least half a second apart.

    Parameters
    ----------
    title : str
        Title of the progress bar.
    total : int or None
        Number of steps; None if unknown.
    """

    def __init__(self, title: str, total: int | None) -> None:
        self.title = title
        self.total = total
        self._bar: Any = None
        self._next_line = 0.0
        self._is_shown = False

    def begin(self) -> None:
        """Show the bar, if there is a terminal, and a message if kernels are compiled."""
        begin_waiting()
        self._is_shown = True
        if sys.stdout is not None and sys.stdout.isatty() and find_spec("rich"):
            self._bar = _rich_bar()
            self._task = self._bar.add_task(self.title, total=self.total, metrics="")
            self._bar.start()

    def end(self) -> None:
        """Stop updating the bar."""
        if self._is_shown:
            end_waiting()
            self._is_shown = False
        if self._bar is not None:
            self._bar.stop()

    def chosen(self, settings: Mapping[str, float]) -> None:
        """Show the settings that were chosen before the first step."""
        self.update(0, settings)

    def after_step(self, run: Run, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Show the metrics of the last step."""
        self.update(run.n_steps, {name: values[-1] for name, values in run.history.items() if name != "time"})
        return {}

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        """Show the number of completed steps, and the metrics of the last one."""
        text = "  ".join(f"{name} {value:.5g}" for name, value in metrics.items())
        if self._bar is not None:
            self._bar.update(self._task, completed=done, metrics=text)
        elif done == self.total or time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + 0.5
            place = f"{done}" if self.total is None else f"{done}/{self.total}"
            print(f"{self.title}  {place}  {text}", flush=True)


def _rich_bar() -> Any:
    from rich import progress

    return progress.Progress(
        progress.TextColumn("[bold]{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[metrics]}"),
    )


# Selection.

C = TypeVar("C", bound=Hashable)

#: Trains candidates with the resources of a rung; returns the losses of each on held-out rows, or NaN if it failed.
Losses = Callable[[Sequence[C], Any], Iterable[Any]]


class Choice(NamedTuple):
    """What was chosen before a run.

    Parameters
    ----------
    method : Method
        The method with the chosen settings.
    settings : dict of str to float
        The chosen settings, for display; empty if there was nothing to choose.
    trials : dict of str to list of float
        What was compared, as `Race.table` returns it.
    """

    method: Any
    settings: Mapping[str, float] = MappingProxyType({})
    trials: Mapping[str, list[float]] = MappingProxyType({})


class Race(Generic[C]):
    """Candidates that are compared on held-out rows, in rounds (rungs).

    A rung is a value that says what the candidates get: the number of a fold, or of passes. After each rung, some
    candidates leave. Results are cached: a candidate is evaluated only once on each rung, also over several races.

    Parameters
    ----------
    losses : function of (candidates, rung)
        Trains candidates with the resources of a rung; returns an array of losses for each of them: one per held-out
        row, so that candidates can be compared row by row, or one per fold. Work that candidates share is the
        function's business, which gets all of them at once.
    batch_size : function of a rung, default=None
        The number of candidates that are evaluated together. None: all.
    after_batch : function of a rung, default=None
        Called after each batch, for progress and checkpoints.
    deadline : float, default=inf
        No batch except the first starts after this time of `time.perf_counter`.

    Attributes
    ----------
    trials : dict of (rung, candidate) to ndarray
        The losses so far, in chronological order.
    is_complete : bool
        False if the deadline has ended the race.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane.engine.run import Race
    >>> rows = [np.array([0.0, 1.0, 0.2]), np.array([0.1, 0.8, 0.3])]
    >>> race = Race(lambda candidates, fold: [abs(rows[fold] - candidate) for candidate in candidates])
    >>> race.run([0.0, 0.3, 5.0], rungs=[0, 1], keep=lambda left, fold: race.near_best(left, 2.0))
    [0.0, 0.3]
    """

    def __init__(
        self,
        losses: Losses[C],
        *,
        batch_size: Callable[[Any], int] | None = None,
        after_batch: Callable[[Any], None] | None = None,
        deadline: float = math.inf,
    ) -> None:
        self._losses, self._batch_size, self._after_batch = losses, batch_size, after_batch
        self.deadline = deadline
        self.trials: dict[tuple[Any, C], np.ndarray] = {}
        self.is_complete = True

    def run(
        self,
        candidates: Iterable[C],
        rungs: Iterable[Any],
        keep: Callable[[list[C], Any], list[C]] | None = None,
        *,
        until_one: bool = False,
    ) -> list[C]:
        """Evaluate candidates rung by rung.

        Parameters
        ----------
        candidates : iterable
            The candidates.
        rungs : iterable
            The rungs.
        keep : function of (candidates, rung), default=None
            Returns the candidates that stay after a rung. None: all.
        until_one : bool, default=False
            Whether to stop when one candidate is left.

        Returns
        -------
        left : list
            The candidates that are left.
        """
        left = list(candidates)
        for rung in rungs:
            if not self._evaluate(left, rung):
                self.is_complete = False
                break
            left = left if keep is None else keep(left, rung)
            if until_one and len(left) == 1:
                break
        return left

    def _evaluate(self, candidates: list[C], rung: Any) -> bool:
        """Evaluate those candidates that are new on a rung; return whether there was time for all of them."""
        size = len(candidates) if self._batch_size is None else self._batch_size(rung)
        for first in range(0, len(candidates), max(size, 1)):
            new = [each for each in candidates[first : first + size] if (rung, each) not in self.trials]
            if new and self.trials and time.perf_counter() > self.deadline:
                return False
            if new:
                found = zip(new, self._losses(new, rung), strict=True)
                self.trials |= {(rung, candidate): np.atleast_1d(losses) for candidate, losses in found}
            if self._after_batch is not None:
                self._after_batch(rung)
        return True

    # Comparisons.

    def losses(self, candidate: C, rungs: Sequence[Any] | None = None) -> np.ndarray:
        """Return the losses of a candidate on some rungs; None: on all so far."""
        if rungs is None:
            rungs = [rung for rung, other in self.trials if other == candidate]
        return np.concatenate([self.trials[rung, candidate] for rung in rungs])

    def mean(self, candidate: C, rung: Any) -> float:
        """Return the mean loss of a candidate on a rung; NaN if it failed."""
        return float(np.mean(self.trials[rung, candidate]))

    def best(self, candidates: Sequence[C], rungs: Sequence[Any] | None = None) -> C:
        """Return the candidate with the lowest mean loss on some rungs; None: on all so far."""
        return min(candidates, key=lambda each: float(np.mean(self.losses(each, rungs))))

    def ranked(self, candidates: Sequence[C], rung: Any) -> list[C]:
        """Sort candidates by their mean loss on a rung, the best first; ties keep their order, failures are last."""
        order = np.argsort(np.nan_to_num([self.mean(each, rung) for each in candidates], nan=np.inf), kind="stable")
        return [candidates[i] for i in order]

    def near_best(self, candidates: Sequence[C], n_errors: float, rungs: Sequence[Any] | None = None) -> list[C]:
        """Return the candidates whose mean loss exceeds the lowest by at most `n_errors` standard errors.

        Losses of all rungs are compared, or those of some if candidates were evaluated on different rungs.
        """
        losses = [self.losses(each, rungs) for each in candidates]
        best = min(losses, key=np.mean)
        return [c for c, own in zip(candidates, losses, strict=True) if excess(own, best) <= n_errors]

    def table(self, columns: Callable[[C], Mapping[str, float]]) -> dict[str, list[float]]:
        """Return one entry per trial and column: those of the candidates, and the mean "loss" on the rung."""
        table: dict[str, list[float]] = {}
        for (_, candidate), losses in self.trials.items():
            for name, value in {**columns(candidate), "loss": losses.mean()}.items():
                table.setdefault(name, []).append(float(value))
        return table


def excess(losses: np.ndarray, best: np.ndarray) -> float:
    """Return the difference of two mean losses, in standard errors of the differences per row."""
    difference = losses - best
    return float(difference.mean() / (difference.std() / len(difference) ** 0.5 + 1e-12))
