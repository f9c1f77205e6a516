"""One line on a terminal when kernels are about to be compiled, for those who wait for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_n_waiting = 0
_is_said = False


def begin_waiting() -> None:
    """Somebody looks at the terminal from now on; the line is shown once to each who comes first."""
    global _n_waiting, _is_said
    with _lock:
        _is_said = _is_said and _n_waiting > 0
        _n_waiting += 1


def end_waiting() -> None:
    """Whoever began to wait has what they waited for."""
    global _n_waiting
    with _lock:
        _n_waiting -= 1


@contextmanager
def compilation_shown() -> Iterator[None]:
    """Say so, on standard error if it is a terminal, when something has to be compiled."""
    begin_waiting()
    try:
        yield
    finally:
        end_waiting()


def say_compiling(is_kept: bool) -> None:
    """To be called before a kernel is compiled; `is_kept` tells whether other processes will find it."""
    global _is_said
    with _lock:
        if _n_waiting == 0 or _is_said or sys.stderr is None or not sys.stderr.isatty():
            return
        _is_said = True
    print(f"Compiling for this CPU{', once' if is_kept else ''} (a few seconds) ...", file=sys.stderr, flush=True)
