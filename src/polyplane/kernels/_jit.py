"""The one decorator of all kernels."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

try:
    from numba import njit
except ModuleNotFoundError:  # kernels then run as they are written, in plain Python
    njit = None

Function = TypeVar("Function", bound=Callable[..., Any])


def _source_stamp() -> str:
    """Hash of all kernel sources."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


_STAMP = _source_stamp()


def kernel(function: Function) -> Function:
    """Compile `function` for the CPU at hand: no GIL, cached on disk, products and sums fused.

    Without Numba it stays as it is.

    Numba's cache looks at the file of the function alone, not at the kernels it calls, and a wheel's files all carry
    one date: after an upgrade it could serve machine code of the old version. The stamp in the name prevents that.
    """
    if njit is None:
        return function
    function.__qualname__ = f"{function.__qualname__}_{_STAMP}"
    compiled: Function = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")(function)
    return compiled


def kernel_or(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function, or without Numba let `plain`, which does the same by NumPy, take its place."""
    return kernel if njit is not None else lambda function: plain


def reduction_or(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for a function whose sums may be re-ordered, and so vectorised."""
    compile_sum: Callable[..., Any] = njit(fastmath={"reassoc", "contract"}) if njit is not None else lambda _: plain
    return compile_sum
