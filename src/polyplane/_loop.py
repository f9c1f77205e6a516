"""The training loop, once, for all learners."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from polyplane._progress import Progress


class Plateau:
    """Says when a figure to be minimised has stopped falling.

    Parameters
    ----------
    tol : float or None
        A step counts as progress when it lowers the best value by more than ``tol * |best|``. None: never stop.
    patience : int
        How many steps without progress are granted.
    """

    def __init__(self, tol: float | None, patience: int) -> None:
        self.tol = tol
        self.patience = patience
        self.best = float("inf")
        self.idle = 0

    def reached(self, value: float) -> bool:
        """Take the next value; True when it is time to stop."""
        if self.tol is None:
            return False
        self.idle = 0 if self.best == float("inf") or value < self.best - self.tol * abs(self.best) else self.idle + 1
        self.best = min(self.best, value)
        return self.idle >= self.patience


class Interrupt:
    """Turns the first Ctrl-C into a request to stop after the step at hand; the second one is raised at once.

    Parameters
    ----------
    *signals : int
        What to watch for besides Ctrl-C, such as ``signal.SIGTERM``.
    """

    def __init__(self, *signals: int) -> None:
        self.requested: int | None = None
        self._signals = (signal.SIGINT, *signals)

    def _handle(self, signum: int, frame: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = signum

    @contextmanager
    def watched(self) -> Any:
        """Watch: in the main thread, the only one that is ever interrupted, over the default handlers."""
        defaults = (signal.default_int_handler, signal.SIG_DFL)
        before = {
            signum: signal.getsignal(signum)
            for signum in self._signals
            if threading.current_thread() is threading.main_thread() and signal.getsignal(signum) in defaults
        }
        for signum in before:
            signal.signal(signum, self._handle)
        try:
            yield self
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)


class Trained(NamedTuple):
    """The outcome of a training loop."""

    state: Any
    n_iter: int
    history: dict[str, list[float]]


def train(
    step: Callable[[Any], Any],
    state: Any,
    figures: Callable[[Any], Mapping[str, float]],
    converged: Callable[[Mapping[str, float]], bool],
    progress: Progress,
) -> Trained:
    """Step from `state` until `converged`, the total of `progress`, or Ctrl-C.

    Parameters
    ----------
    step : callable
        From one state to the next.
    state : object
        Where to start.
    figures : callable
        What to record of a state.
    converged : callable
        Whether the figures of the last step say that training is done.
    progress : Progress
        Where to show the figures, and how many steps to make at the most.

    Returns
    -------
    trained : Trained
        The last finished state, the number of steps, and each figure (with the time in seconds) after each step.
    """
    history: dict[str, list[float]] = {"time": []}
    began = time.perf_counter()
    n_iter = 0
    with Interrupt().watched() as interrupt, progress:
        while progress.total is None or n_iter < progress.total:
            state = step(state)
            n_iter += 1
            row = dict(figures(state))
            record(history, {"time": time.perf_counter() - began, **row})
            progress.update(n_iter, row)
            if interrupt.requested:
                warnings.warn(f"Interrupted: the model is that of step {n_iter}.", RuntimeWarning, stacklevel=4)
                break
            if converged(row):
                break
    return Trained(state, n_iter, history)


def record(history: dict[str, list[float]], row: Mapping[str, float]) -> None:
    """Append a row of figures to a history."""
    for name, value in row.items():
        history.setdefault(name, []).append(float(value))
