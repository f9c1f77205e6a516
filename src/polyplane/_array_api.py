"""Arrays of other libraries and their devices: PyTorch, CuPy, and all libraries that follow the array API standard.

Functions on such arrays get their namespace first, ``xp = namespace(X)``; the code is then the same for all libraries.
This module contains what the standard does not define: how arrays are copied between host and device.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

# SciPy and scikit-learn are imported in functions: prediction on NumPy arrays needs NumPy only.


def is_sparse(array: Any) -> bool:
    """Whether this is a SciPy sparse matrix or array."""
    scipy_sparse = sys.modules.get("scipy.sparse")  # imported already if such a matrix exists
    return scipy_sparse is not None and bool(scipy_sparse.issparse(array))


@cache
def _compat() -> Any:
    from sklearn.externals import array_api_compat

    return array_api_compat


def namespace(array: Any) -> Any:
    """Return the array API namespace of `array`: NumPy itself for its arrays and for sparse matrices."""
    if isinstance(array, np.ndarray | np.generic) or is_sparse(array):
        return np
    return _compat().array_namespace(array)


def is_foreign(array: Any) -> bool:
    """Whether this is an array of another library than NumPy that computes eagerly (Dask, for example, does not)."""
    if isinstance(array, np.ndarray | np.generic | list | tuple | str) or array is None or is_sparse(array):
        return False
    return _compat().is_array_api_obj(array) and not _compat().is_lazy_array(array)


def device_of(array: Any) -> Any:
    """Return the device of an array; "cpu" for NumPy."""
    return "cpu" if namespace(array) is np else _compat().device(array)


def is_on_host(array: Any) -> bool:
    """Whether the array is in host memory."""
    return "cpu" in str(device_of(array)).lower()


def describe(array: Any) -> str:
    """Describe the library and the device of an array, for messages."""
    if namespace(array) is np:
        return "a NumPy array"
    return f"an array of {namespace(array).__name__.split('.')[-1]} on {device_of(array)}"


def same_place(a: Any, b: Any) -> bool:
    """Whether two arrays have the same library and device."""
    return namespace(a) is namespace(b) and device_of(a) == device_of(b)


def host_dtype(array: Any) -> Any:
    """Return the NumPy dtype of an array of any library."""
    return array.dtype if isinstance(array.dtype, np.dtype) else np.dtype(str(array.dtype).rpartition(".")[2])


def kind_of(array: Any) -> Any:
    """Return an array without rows that has the library, device and dtype of `array` and can be pickled."""
    xp = namespace(array)
    return np.empty(0, array.dtype) if xp is np else xp.empty(0, dtype=array.dtype, device=device_of(array))


def widest_float(kind: Any) -> Any:
    """Return the dtype for sums: float64, or float32 on a device without float64."""
    if isinstance(kind, np.ndarray) or (xp := namespace(kind)) is np:
        return np.float64
    known = xp.__array_namespace_info__().dtypes(kind="real floating", device=device_of(kind))
    return known.get("float64", xp.float32)


def to_numpy(array: Any) -> np.ndarray:
    """Copy an array to host memory; NumPy arrays are returned unchanged."""
    if isinstance(array, np.ndarray) or (xp := namespace(array)) is np:
        return array
    if _compat().is_torch_array(array):
        return array.detach().cpu().numpy()
    if _compat().is_cupy_array(array):
        return array.get()
    if not is_on_host(array):
        array = _compat().to_device(array, xp.__array_namespace_info__().default_device())
    return np.asarray(array)


def like(array: Any, kind: Any, dtype: Any = None) -> Any:
    """Copy a host array to the library and device of `kind`; an array that is already there is only cast."""
    if isinstance(kind, np.ndarray) or (xp := namespace(kind)) is np:
        return np.asarray(to_numpy(array) if is_foreign(array) else array, dtype=dtype)
    if is_foreign(array) and same_place(array, kind):
        return array if dtype is None else xp.astype(array, dtype, copy=False)
    host = np.ascontiguousarray(to_numpy(array))
    if dtype is not None:  # cast on the host: the device may not support the original dtype
        host = host.astype(str(dtype).rpartition(".")[2], copy=False)
    return xp.asarray(host if host.flags.writeable else host.copy(), device=device_of(kind))


def as_matrix(X: Any) -> np.ndarray:
    """Convert rows to a two-dimensional NumPy array of any dtype, with at least one row and one feature.

    The checks and messages are those of scikit-learn's `check_array`, but need NumPy only.
    """
    if isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported. Please convert to a numpy array with np.asarray.")
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X.reshape(-1, 1) if it has a "
            "single feature, X.reshape(1, -1) if it is a single sample."
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: convert X to real numbers.")
    for length, what in zip(array.shape, ("sample", "feature"), strict=True):
        if not length:
            raise ValueError(f"Found array with 0 {what}(s) (shape={array.shape}) while a minimum of 1 is required.")
    return array


def labels_of(classes: np.ndarray, codes: Any) -> Any:
    """Return the labels of integer `codes`, on the same device; labels that are not numbers are in host memory."""
    if namespace(codes) is np or classes.dtype.kind not in "biuf":
        return classes[to_numpy(codes)]
    return take_rows(like(classes, codes), codes)


def astype(array: Any, dtype: Any) -> Any:
    """Convert an array to another dtype, without a copy if possible."""
    if isinstance(array, np.ndarray) or (xp := namespace(array)) is np:
        return array.astype(dtype, copy=False)
    return xp.astype(array, dtype, copy=False)


def take_rows(X: Any, rows: Any) -> Any:
    """Select rows of a dense or sparse matrix; the indices may be in host memory or on the device of X."""
    if isinstance(X, np.ndarray) or (xp := namespace(X)) is np:
        return X[rows]
    return xp.take(X, like(rows, X), axis=0)


def put(array: Any, index: Any, values: Any) -> None:
    """Set ``array[index] = values`` for an array of distinct indices."""
    try:
        array[index] = values
    except IndexError:  # the standard does not define this assignment, and array-api-strict rejects it
        host = to_numpy(array).copy()
        host[to_numpy(index)] = to_numpy(values)
        array[...] = like(host, array)


def at_most(array: Any, bound: float) -> Any:
    """Return the minimum of each entry and `bound`; NaN is preserved."""
    if isinstance(array, np.ndarray) or namespace(array) is np:
        return np.minimum(array, bound)
    # PyTorch's own function: that of the compatibility namespace synchronises with the device.
    return array.clamp(max=bound) if _compat().is_torch_array(array) else namespace(array).clip(array, max=bound)


def at_least(array: Any, bound: float) -> Any:
    """Return the maximum of each entry and `bound`; NaN is preserved."""
    if isinstance(array, np.ndarray) or namespace(array) is np:
        return np.maximum(array, bound)
    return array.clamp(min=bound) if _compat().is_torch_array(array) else namespace(array).clip(array, min=bound)


def expit(array: Any) -> Any:
    """Compute the logistic function."""
    xp = namespace(array)
    if xp is not np:
        return 1.0 / (1.0 + xp.exp(-array))
    from scipy.special import expit as scipy_expit

    return scipy_expit(array)


def softmax(scores: Any) -> Any:
    """Compute the softmax of each row."""
    xp = namespace(scores)
    likeness = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return likeness / xp.sum(likeness, axis=1, keepdims=True)


def is_on_cuda(array: Any) -> bool:
    """Whether this is a PyTorch array on an NVIDIA GPU."""
    return _compat().is_torch_array(array) and array.device.type == "cuda"


@contextmanager
def within_device_memory(advice: str) -> Iterator[None]:
    """Turn out-of-memory errors of a device into a message with the requested size and `advice`."""
    try:
        yield
    except Exception as error:
        if not any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__):
            raise
        asked = re.search(r"allocat\w+ ([\d.,]+ ?(?:bytes|[KMGT]i?B))", str(error))
        size = f"{asked[1]} more were" if asked else "more was"
        raise MemoryError(f"The device is out of memory: {size} asked for than it has left. {advice}") from error
