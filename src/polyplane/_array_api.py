"""Where arrays are computed: their libraries and devices, and threads.

Arrays may be those of PyTorch, CuPy, and all libraries that follow the array API standard. Functions on such arrays get
their namespace first, ``xp = namespace(X)``; the code is then the same for all libraries. This module contains what the
standard does not define: how arrays are copied between host and device.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# SciPy and scikit-learn are imported in functions: prediction on NumPy arrays needs NumPy only. So are thread pools and
# joblib: predicting a few rows takes less time than importing them.


def is_sparse(array: Any) -> bool:
    """Whether this is a SciPy sparse matrix or array."""
    scipy_sparse = sys.modules.get("scipy.sparse")  # imported already if such a matrix exists
    return scipy_sparse is not None and bool(scipy_sparse.issparse(array))


@cache
def _compat() -> Any:
    from sklearn.externals import array_api_compat

    return array_api_compat


#: The namespaces of types of arrays: it takes as long to find one as to launch a kernel.
_namespaces: dict[type, Any] = {}


def namespace(array: Any) -> Any:
    """Return the array API namespace of `array`: NumPy itself for its arrays and for sparse matrices."""
    found = _namespaces.get(type(array))
    if found is None:
        on_host = isinstance(array, np.ndarray | np.generic) or is_sparse(array)
        found = _namespaces[type(array)] = np if on_host else _compat().array_namespace(array)
    return found


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
    if is_torch(X):  # one kernel; that of the compatibility namespace allows for negative indices, in three more
        return X.index_select(0, like(rows, X))
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


def softmax(scores: Any, axis: int = 1) -> Any:
    """Compute the softmax along an axis: of each row, unless it is 0."""
    xp = namespace(scores)
    likeness = xp.exp(scores - xp.max(scores, axis=axis, keepdims=True))
    likeness /= xp.sum(likeness, axis=axis, keepdims=True)
    return likeness


def is_torch(array: Any) -> bool:
    """Whether this is an array of PyTorch."""
    return not isinstance(array, np.ndarray) and bool(_compat().is_torch_array(array))


def is_on_cuda(array: Any) -> bool:
    """Whether this is a PyTorch array on an NVIDIA GPU."""
    return is_torch(array) and array.device.type == "cuda"


def on_device(name: str) -> Any:
    """Return an array without rows on a device of PyTorch, such as "cuda"; an error if there is none."""
    try:
        import torch
    except ImportError:
        raise ImportError(f'device={name!r} needs PyTorch: pip install "polyplane[gpu]"') from None
    try:
        return torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device={name!r} is not available to PyTorch here: {reason}") from None


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


# Threads.

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; None: 1, or that of the active ``joblib.parallel_config``."""
    if n_jobs == 1 or (n_jobs is None and sys.modules.get("joblib") is None):
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


class ThreadPool:
    """A persistent pool of threads: a step uses it a dozen times, and takes no longer than starting the threads.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, as in joblib, including the calling one.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self.size = n_threads(n_jobs)
        self._pool = _new_pool(self.size - 1) if self.size > 1 else None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return ``[function(item) for item in items]``; each thread takes the next item when it is idle."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: dict[int, Result] = {}
        waiting = iter(range(len(items)))  # next() of a range iterator is atomic

        def work() -> None:
            for i in waiting:
                results[i] = function(items[i])

        helpers = [self._pool.submit(work) for _ in range(min(self.size, len(items)) - 1)]
        try:
            work()
        finally:
            _wait_for(helpers, waiting)
        for helper in helpers:
            helper.result()
        return [results[i] for i in range(len(items))]


def _new_pool(size: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(size)


def _wait_for(helpers: list[Future[None]], waiting: Iterator[int]) -> None:
    """Wait for threads even after an interruption: they may write into arrays that are then rolled back."""
    from concurrent.futures import wait

    interrupt = None
    while True:
        try:
            for _ in waiting:  # drop the items that no thread has started
                pass
            wait(helpers)
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> list[Result]:
    """Return ``[function(item) for item in items]``, with up to `n_jobs` threads; results do not depend on `n_jobs`.

    With several threads, BLAS is limited to one thread in each of them, to avoid oversubscription.
    """
    items = list(items)
    threads = ThreadPool(1 if len(items) < 2 else n_jobs)
    if threads.size == 1:
        return threads.map(function, items)
    with one_blas_thread():
        return threads.map(function, items)


def blocks_of(n_rows: int, size: int) -> list[slice]:
    """Return slices of at most `size` rows, and at least one slice."""
    size = max(1, size)
    return [slice(start, min(start + size, n_rows)) for start in range(0, max(n_rows, 1), size)]


#: Matrix products with fewer multiplications are faster with one thread, because of the cost of synchronisation.
WORTH_THREADS = 30_000_000


@cache
def _controller_of(loaded: tuple[str, ...]) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _controller() -> Any:
    """Return a controller of all BLAS libraries loaded so far: SciPy and PyTorch have their own."""
    return _controller_of(tuple(name for name in ("scipy.linalg", "torch") if name in sys.modules))


class _Holder:
    """A caller that limits BLAS to one thread; after an interruption it is garbage-collected with its frame."""

    __slots__ = ("__weakref__",)


#: No lock protects these: after a Ctrl-C between acquiring and releasing a lock, it would stay locked forever.
_holders: WeakSet[_Holder] = WeakSet()
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, until the last of the concurrent callers is done.

    The limit holds for the whole process: if each caller restored the previous value, threads would change it for each
    other, and with it the order of summation.
    """
    holder = _Holder()
    try:
        _holders.add(holder)
        _set_limit()
        yield
    finally:
        _holders.discard(holder)
        _lift_limit()


def _set_limit() -> None:
    global _limit
    controller = _controller()
    if _limit is None or _limit[0] is not controller:  # a library may have been loaded in the meantime
        earlier, _limit = _limit, (controller, controller.limit(limits=1, user_api="blas"))
        if earlier is not None:
            _limit = controller, _Both(_limit[1], earlier[1])


def _lift_limit() -> None:
    global _limit
    if len(_holders) == 0 and _limit is not None:
        limit, _limit = _limit, None
        limit[1].restore_original_limits()
        if len(_holders):  # another caller came in the meantime
            _set_limit()


class _Both(NamedTuple):
    """A limit in addition to an earlier one."""

    last: Any
    first: Any

    def restore_original_limits(self) -> None:
        """Restore the values before both limits."""
        self.last.restore_original_limits()
        self.first.restore_original_limits()


def blas_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread for matrix products that are too small for several."""
    return nullcontext() if multiplications > WORTH_THREADS else one_blas_thread()
