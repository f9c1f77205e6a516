"""The one decorator of all kernels."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


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
    stamp = _source_stamp(Path(function.__code__.co_filename).parent)
    function.__qualname__ = f"{function.__qualname__}_{stamp}"
    compiled: Function = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")(function)
    return compiled
