"""The decorators of the kernels, and Numba itself, which kernels import from here."""

import hashlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from polyplane.kernels.notice import interrupts_deferred, say_compiling

with interrupts_deferred():
    from numba import njit, types
    from numba.core import cgutils
    from numba.core.caching import FunctionCache, NullCache
    from numba.core.cgutils import ir
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic, overload

    _ = cpu_target.typing_context, cpu_target.target_context  # which Numba initialises when they are first used

__all__ = [
    "KERNELS",
    "PART",
    "cgutils",
    "comparing_part",
    "inlined_part",
    "intrinsic",
    "ir",
    "kernel",
    "njit",
    "overload",
    "part",
    "summing_kernel",
    "summing_part",
    "types",
]

Function = TypeVar("Function", bound=Callable[..., Any])

#: All kernels of the imported modules.
KERNELS: list[Any] = []

_RULES: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "no_cfunc_wrapper": True}
_SUMS: dict[str, Any] = {"fastmath": {"contract", "reassoc"}}

#: Compilation options of functions that only kernels call.
PART: dict[str, Any] = {**_RULES, "no_cpython_wrapper": True}


@cache
def _source_stamp(folder: Path) -> str:
    """Return a hash of all sources in this folder and in `folder`, which a kernel there may call."""
    sources = sorted({*Path(__file__).parent.glob("*.py"), *folder.glob("*.py")})
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def kernel(function: Function) -> Function:
    """Compile `function` for the current CPU: without the GIL, cached on disk, with fused multiply-add.

    Kernels can be in other folders, next to the code that uses them. They may call kernels of their own folder and of
    this one.

    Numba's cache checks only the file of the function, not the kernels that it calls, and all files of a wheel have the
    same date: after an upgrade it could return machine code of the old version. The hash in the name prevents this.
    """
    return _entry(function, _RULES)


def summing_kernel(function: Function) -> Function:
    """Compile a kernel whose sums may be reassociated, so that they are vectorised."""
    return _entry(function, {**_RULES, **_SUMS})


def _entry(function: Function, rules: dict[str, Any]) -> Function:
    """Compile `function` for calls from Python."""
    stamp = _source_stamp(Path(function.__code__.co_filename).parent)
    function.__qualname__ = f"{function.__qualname__}_{stamp}"
    compiled: Any = njit(nogil=True, **rules)(function)
    try:
        compiled._cache = KernelCache(function)  # as `cache=True` does with Numba's own class
    except (RuntimeError, OSError):  # neither the package's folder nor the user's cache folder can be written to
        _note("no cache folder is writable")
        compiled._cache = NoCache()
    KERNELS.append(compiled)
    compiled._compile_for_args = _without_interrupts(compiled._compile_for_args)  # called for each new signature
    return compiled  # type: ignore[no-any-return]


def _without_interrupts(compile_for_args: Function) -> Function:
    @wraps(compile_for_args)
    def compile_and_call(*args: Any, **kwargs: Any) -> Any:
        with interrupts_deferred():
            return compile_for_args(*args, **kwargs)

    return compile_and_call  # type: ignore[return-value]


def part(function: Function) -> Function:
    """Compile `function` for use in other kernels only.

    It cannot be called from Python and is not cached on disk: both would take as long as the compilation itself.
    """
    return njit(**PART)(function)  # type: ignore[no-any-return]


def inlined_part(function: Function) -> Function:
    """Inline a function into the only kernel that calls it before compilation, so that it is optimised once."""
    return njit(inline="always", **PART)(function)  # type: ignore[no-any-return]


def summing_part(function: Function) -> Function:
    """Compile a function for use in other kernels; its sums may be reassociated, so that they are vectorised."""
    return njit(**{**PART, **_SUMS})(function)  # type: ignore[no-any-return]


def comparing_part(function: Function) -> Function:
    """Compile a function for use in other kernels; its largest and least values, without NaN, are vectorised."""
    return njit(**{**PART, "fastmath": {"nnan", "nsz"}})(function)  # type: ignore[no-any-return]


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache without errors: unreadable code is compiled again, unwritable code is not cached."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the machine code for a signature; None if there is none, or the file is damaged."""
        found = None
        with suppress(Exception):
            found = super().load_overload(sig, target_context)
        if found is None:
            say_compiling(is_kept=True)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the machine code for a signature."""
        try:
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # a damaged index, which must be replaced first
                self.flush()
                super().save_overload(sig, data)
        except Exception as error:
            _note(getattr(error, "strerror", None) or type(error).__name__)


class NoCache(NullCache):  # type: ignore[misc]
    """The cache if no folder is writable."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Return None: there is no cached code."""
        say_compiling(is_kept=False)


@cache
def _note(reason: str) -> None:
    """Warn once for each reason, with the remedy."""
    warnings.warn(
        f"Compiled code cannot be cached ({reason}): each process compiles it again, which takes seconds. Set "
        "NUMBA_CACHE_DIR to a writable folder.",
        RuntimeWarning,
        stacklevel=2,
    )
