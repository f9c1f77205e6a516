"""What surrounds the compilation of kernels: a message on a terminal before it, and Ctrl-C after it."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, current_thread, main_thread
from typing import Any

_lock = Lock()
_n_waiting = 0
_is_said = False


def begin_waiting() -> None:
    """Enable the message; nested calls show it once."""
    global _n_waiting, _is_said
    with _lock:
        _is_said = _is_said and _n_waiting > 0
        _n_waiting += 1


def end_waiting() -> None:
    """Disable the message at the end of the outermost call."""
    global _n_waiting
    with _lock:
        _n_waiting -= 1


@contextmanager
def compilation_shown() -> Iterator[None]:
    """Show a message on standard error, if it is a terminal, when a kernel is compiled."""
    begin_waiting()
    try:
        yield
    finally:
        end_waiting()


def say_compiling(is_kept: bool) -> None:
    """Show the message; called before a kernel is compiled. `is_kept`: whether it will be cached on disk."""
    global _is_said
    with _lock:
        if _n_waiting == 0 or _is_said or sys.stderr is None or not sys.stderr.isatty():
            return
        _is_said = True
    print(f"Compiling for this CPU{', once' if is_kept else ''} (a few seconds) ...", file=sys.stderr, flush=True)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Handle Ctrl-C at the end of the block instead of within it.

    Numba that was imported or initialised in part cannot be used again in the same process, and an exception in one of
    its callbacks is lost. Only the main thread receives signals.
    """
    handler = signal.getsignal(signal.SIGINT) if current_thread() is main_thread() else None
    if not callable(handler):
        yield
        return
    received: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            handler(*received[0])
