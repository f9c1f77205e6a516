"""What a long training shows while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any


class Progress:
    """A bar with an estimate of the time left on a terminal, plain lines elsewhere, nothing when not `verbose`.

    Lines are at least half a second apart, but for the first and the last.

    Parameters
    ----------
    title : str
        What is being trained.
    total : int or None
        Number of steps to come; None: not known.
    verbose : int
        0: silent.
    """

    def __init__(self, title: str, total: int | None, verbose: int) -> None:
        self.title = title
        self.total = total
        self.verbose = verbose
        self._bar: Any = None
        self._next_line = 0.0

    def __enter__(self) -> Progress:
        if self.verbose and sys.stdout.isatty():
            self._bar = _rich_bar()
            self._task = self._bar.add_task(self.title, total=self.total, figures="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, figures: Mapping[str, float]) -> None:
        """Show that `done` steps are finished, and the figures of the last one."""
        if not self.verbose:
            return
        text = "  ".join(f"{name} {value:.5g}" for name, value in figures.items())
        if self._bar is not None:
            self._bar.update(self._task, completed=done, figures=text)
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
        progress.TextColumn("{task.fields[figures]}"),
    )
