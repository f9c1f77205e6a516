"""Independent work in threads, and when BLAS should not use any."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> list[Result]:
    """``[function(item) for item in items]``, in up to `n_jobs` threads; the results do not depend on their number."""
    items = list(items)
    if n_jobs in (None, 1) or len(items) < 2:
        return [function(item) for item in items]
    results: list[Result] = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(item) for item in items)
    return results


#: Below so many multiplications a matrix product is done before its threads have met; on a busy machine they wait.
WORTH_THREADS = 30_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Keep BLAS to one thread for matrix products that are too small for more."""
    if multiplications > WORTH_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
