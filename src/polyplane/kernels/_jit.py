"""The one decorator of all kernels."""

import hashlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache, NullCache

from polyplane.kernels.notice import say_compiling

Function = TypeVar("Function", bound=Callable[..., Any])

_RULES: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "no_cfunc_wrapper": True}
_SUMS: dict[str, Any] = {"fastmath": {"contract", "reassoc"}}

#: How to compile what only kernels call.
PART: dict[str, Any] = {**_RULES, "no_cpython_wrapper": True}


@cache
def _source_stamp(folder: Path) -> str:
    """Hash of all sources in this folder and in `folder`: of whatever a kernel there may call."""
    sources = sorted({*Path(__file__).parent.glob("*.py"), *folder.glob("*.py")})
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def kernel(function: Function) -> Function:
    """Compile `function` for the CPU at hand: no GIL, cached on disk, products and sums fused.

    Kernels may live beside what uses them. They may call kernels of their own folder and of this one.

    Numba's cache looks at the file of the function alone, not at the kernels it calls, and a wheel's files all carry
    one date: after an upgrade it could serve machine code of the old version. The stamp in the name prevents that.
    """
    return _entry(function, _RULES)


def summing_kernel(function: Function) -> Function:
    """A kernel whose sums may be re-associated, so that they are vectorised."""
    return _entry(function, {**_RULES, **_SUMS})


def _entry(function: Function, rules: dict[str, Any]) -> Function:
    """Compile `function` for calls from Python."""
    stamp = _source_stamp(Path(function.__code__.co_filename).parent)
    function.__qualname__ = f"{function.__qualname__}_{stamp}"
    compiled: Any = njit(nogil=True, **rules)(function)
    try:
        compiled._cache = KernelCache(function)  # what `cache=True` does, with Numba's own class
    except (RuntimeError, OSError):  # neither the package's folder nor the user's cache folder can be written to
        _note("no folder for it can be written to")
        compiled._cache = NoCache()
    return compiled  # type: ignore[no-any-return]


def part(function: Function) -> Function:
    """Compile `function` as a part of the kernels that call it, and for nothing else.

    It has no entry from Python and no file in the cache, which take as long to make as the code itself.
    """
    return njit(**PART)(function)  # type: ignore[no-any-return]


def inlined_part(function: Function) -> Function:
    """A part that is written into the one kernel that calls it before that is compiled, and so optimised once."""
    return njit(inline="always", **PART)(function)  # type: ignore[no-any-return]


def summing_part(function: Function) -> Function:
    """A part whose sums may be re-associated, so that they are vectorised."""
    return njit(**{**PART, **_SUMS})(function)  # type: ignore[no-any-return]


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, as the convenience that it is: what cannot be read is compiled, what cannot be written is not."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature; None when there is none, or the file is damaged."""
        found = None
        with suppress(Exception):
            found = super().load_overload(sig, target_context)
        if found is None:
            say_compiling(is_kept=True)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for a signature."""
        try:
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # a damaged index, which has to be replaced first
                self.flush()
                super().save_overload(sig, data)
        except Exception as error:
            _note(getattr(error, "strerror", None) or type(error).__name__)


class NoCache(NullCache):  # type: ignore[misc]
    """Where nothing can be kept."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """There is never any machine code."""
        say_compiling(is_kept=False)


@cache
def _note(reason: str) -> None:
    """Say once for each reason what can be done."""
    warnings.warn(
        f"Compiled code cannot be kept ({reason}): each process compiles it again, which takes seconds. Set "
        "NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=2,
    )
