"""Ctrl-C and SIGTERM as requests to stop after the current step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
