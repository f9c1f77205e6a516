"""Progress of training."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from polyplane.engine.run import Observer, Run
from polyplane.kernels.notice import begin_waiting, end_waiting


class Progress(Observer):
    """A progress bar with the estimated remaining time on a terminal, plain lines otherwise.

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
        if sys.stdout is not None and sys.stdout.isatty():
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
