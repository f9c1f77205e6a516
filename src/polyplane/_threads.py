"""Independent work in threads, and when BLAS should not use any."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> list[Result]:
    """``[function(item) for item in items]``, in up to `n_jobs` threads; the results do not depend on their number.

    Each thread takes the next item when it is done with its last. While there are several, BLAS keeps to one thread in
    each of them: cores are not asked for twice.
    """
    items = list(items)
    size = min(effective_n_jobs(1 if n_jobs is None else n_jobs), len(items))
    if size < 2:
        return [function(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(size) as pool:
        return list(pool.map(function, items))


class Team:
    """Threads that stay: a step calls on them a dozen times, and is over in the time that starting them would take.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, as in joblib.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self.size = effective_n_jobs(1 if n_jobs is None else n_jobs)
        self._pool = ThreadPoolExecutor(self.size) if self.size > 1 else None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``[function(item) for item in items]``, a share for each thread: for many items that take equally long."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        n_shares = min(self.size, len(items))
        edges = [i * len(items) // n_shares for i in range(n_shares + 1)]
        shares = [items[start:stop] for start, stop in pairwise(edges)]
        return [
            result
            for share in self._pool.map(lambda share: [function(item) for item in share], shares)
            for result in share
        ]

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``[function(item) for item in items]``, one by one to whoever is free: for few items, long or short."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))


#: Below so many multiplications a matrix product is done before its threads have met; on a busy machine they wait.
WORTH_THREADS = 30_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


def blas_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Keep BLAS to one thread for matrix products that are too small for more."""
    return nullcontext() if multiplications > WORTH_THREADS else one_blas_thread()
