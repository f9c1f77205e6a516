"""Arrays of other libraries, and the devices they live on: PyTorch, CuPy, and all that keep to the array API standard.

Functions over such arrays take their namespace first, ``xp = namespace(X)``, and are then the same code for all of
them. What follows is what the standard leaves open: how arrays go from the host to a device and back.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

# SciPy and scikit-learn are imported by what needs them: planes over NumPy arrays are scored by NumPy alone.


def is_sparse(array: Any) -> bool:
    """Whether this is a sparse matrix or array of SciPy."""
    scipy_sparse = sys.modules.get("scipy.sparse")  # whoever has such a matrix has imported it
    return scipy_sparse is not None and bool(scipy_sparse.issparse(array))


@cache
def _compat() -> Any:
    from sklearn.externals import array_api_compat

    return array_api_compat


def namespace(array: Any) -> Any:
    """The module whose functions take `array`: NumPy itself for its arrays and for sparse matrices."""
    if isinstance(array, np.ndarray | np.generic) or is_sparse(array):
        return np
    return _compat().array_namespace(array)


def is_foreign(array: Any) -> bool:
    """Whether this is an array of another library than NumPy that computes at once: Dask's, for one, do not."""
    if isinstance(array, np.ndarray | np.generic | list | tuple | str) or array is None or is_sparse(array):
        return False
    return _compat().is_array_api_obj(array) and not _compat().is_lazy_array(array)


def device_of(array: Any) -> Any:
    """The device of an array; that of NumPy's is "cpu"."""
    return "cpu" if namespace(array) is np else _compat().device(array)


def is_on_host(array: Any) -> bool:
    """Whether NumPy could look at the array where it lies."""
    return "cpu" in str(device_of(array)).lower()


def describe(array: Any) -> str:
    """What an array is and where it lies, in words."""
    if namespace(array) is np:
        return "a NumPy array"
    return f"an array of {namespace(array).__name__.split('.')[-1]} on {device_of(array)}"


def same_place(a: Any, b: Any) -> bool:
    """Whether two arrays are of one library and on one device."""
    return namespace(a) is namespace(b) and device_of(a) == device_of(b)


def host_dtype(array: Any) -> Any:
    """NumPy's dtype for the numbers of any array."""
    return array.dtype if isinstance(array.dtype, np.dtype) else np.dtype(str(array.dtype).rpartition(".")[2])


def kind_of(array: Any) -> Any:
    """An empty array like `array`: tells its library, device and dtype, keeps none of its rows, and can be pickled."""
    xp = namespace(array)
    return np.empty(0, array.dtype) if xp is np else xp.empty(0, dtype=array.dtype, device=device_of(array))


def widest_float(kind: Any) -> Any:
    """The dtype in which to sum: float64, or float32 on a device that has no more."""
    xp = namespace(kind)
    if xp is np:
        return np.float64
    known = xp.__array_namespace_info__().dtypes(kind="real floating", device=device_of(kind))
    return known.get("float64", xp.float32)


def to_numpy(array: Any) -> np.ndarray:
    """An array on the host; NumPy's are returned as they are."""
    xp = namespace(array)
    if xp is np:
        return array
    if _compat().is_torch_array(array):
        return array.detach().cpu().numpy()
    if _compat().is_cupy_array(array):
        return array.get()
    if not is_on_host(array):
        array = _compat().to_device(array, xp.__array_namespace_info__().default_device())
    return np.asarray(array)


def like(array: Any, kind: Any, dtype: Any = None) -> Any:
    """A host array in the library and on the device of `kind`; an array that is there already is only cast."""
    xp = namespace(kind)
    if xp is np:
        return np.asarray(to_numpy(array) if is_foreign(array) else array, dtype=dtype)
    if is_foreign(array) and same_place(array, kind):
        return array if dtype is None else xp.astype(array, dtype, copy=False)
    host = np.ascontiguousarray(to_numpy(array))
    if dtype is not None:  # cast here: the device may not have the dtype that it comes with
        host = host.astype(str(dtype).rpartition(".")[2], copy=False)
    return xp.asarray(host if host.flags.writeable else host.copy(), device=device_of(kind))


def as_matrix(X: Any) -> np.ndarray:
    """Rows as a NumPy array of any dtype with one axis for rows and one for features, neither of them empty.

    What scikit-learn's `check_array` refuses is refused here too, in its words, by NumPy alone.
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
        raise ValueError("Complex data not supported: take real numbers.")
    for length, what in zip(array.shape, ("sample", "feature"), strict=True):
        if not length:
            raise ValueError(f"Found array with 0 {what}(s) (shape={array.shape}) while a minimum of 1 is required.")
    return array


def labels_of(classes: np.ndarray, codes: Any) -> Any:
    """The labels of integer `codes`, where these are; labels that are not numbers exist on the host alone."""
    if namespace(codes) is np or classes.dtype.kind not in "biuf":
        return classes[to_numpy(codes)]
    return take_rows(like(classes, codes), codes)


def astype(array: Any, dtype: Any) -> Any:
    """The array in another dtype, copied only if it must be."""
    xp = namespace(array)
    return array.astype(dtype, copy=False) if xp is np else xp.astype(array, dtype, copy=False)


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of a dense or sparse matrix, given on the host or on its device."""
    xp = namespace(X)
    return X[rows] if xp is np else xp.take(X, like(rows, X), axis=0)


def put(array: Any, index: Any, values: Any) -> None:
    """``array[index] = values`` for an array of indices, each at most once."""
    try:
        array[index] = values
    except IndexError:  # the standard knows no such assignment, and one library takes it at its word
        host = to_numpy(array).copy()
        host[to_numpy(index)] = to_numpy(values)
        array[...] = like(host, array)


def at_most(array: Any, bound: float) -> Any:
    """The smaller of each entry and `bound`; what is not a number stays so."""
    if namespace(array) is np:
        return np.minimum(array, bound)
    # PyTorch's own: that of the compatible namespace asks the device on the way.
    return array.clamp(max=bound) if _compat().is_torch_array(array) else namespace(array).clip(array, max=bound)


def at_least(array: Any, bound: float) -> Any:
    """The larger of each entry and `bound`; what is not a number stays so."""
    if namespace(array) is np:
        return np.maximum(array, bound)
    return array.clamp(min=bound) if _compat().is_torch_array(array) else namespace(array).clip(array, min=bound)


def expit(array: Any) -> Any:
    """The logistic function."""
    xp = namespace(array)
    if xp is not np:
        return 1.0 / (1.0 + xp.exp(-array))
    from scipy.special import expit as scipy_expit

    return scipy_expit(array)


def softmax(scores: Any) -> Any:
    """The softmax of each row."""
    xp = namespace(scores)
    likeness = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return likeness / xp.sum(likeness, axis=1, keepdims=True)


def is_on_cuda(array: Any) -> bool:
    """Whether this is an array of PyTorch on an NVIDIA device."""
    return _compat().is_torch_array(array) and array.device.type == "cuda"


@contextmanager
def within_device_memory(advice: str) -> Iterator[None]:
    """Say in a sentence when a device runs out of memory: how much was asked for, and what to do."""
    try:
        yield
    except Exception as error:
        if not any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__):
            raise
        asked = re.search(r"allocat\w+ ([\d.,]+ ?(?:bytes|[KMGT]i?B))", str(error))
        size = f"{asked[1]} more were" if asked else "more was"
        raise MemoryError(f"The device is out of memory: {size} asked for than it has left. {advice}") from error
