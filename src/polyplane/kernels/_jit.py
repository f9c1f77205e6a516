"""The one decorator of all kernels."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def _source_stamp() -> str:
    """Hash of all kernel sources."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


_STAMP = _source_stamp()


def kernel(function: Function) -> Function:
    """Compile `function` for the CPU at hand: no GIL, cached on disk, products and sums fused.

    Numba's cache looks at the file of the function alone, not at the kernels it calls, and a wheel's files all carry
    one date: after an upgrade it could serve machine code of the old version. The stamp in the name prevents that.
    """
    function.__qualname__ = f"{function.__qualname__}_{_STAMP}"
    compiled: Function = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")(function)
    return compiled
