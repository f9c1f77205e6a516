"""Parallel work in threads, and limits on the threads of BLAS."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Thread pools and joblib are imported in functions: predicting a few rows takes less time than importing them.

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; None: 1, or that of the active ``joblib.parallel_config``."""
    if n_jobs == 1 or (n_jobs is None and sys.modules.get("joblib") is None):
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


class Team:
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


def _new_pool(size: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(size)


def _wait_for(helpers: "list[Future[None]]", waiting: Iterator[int]) -> None:
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
    team = Team(1 if len(items) < 2 else n_jobs)
    if team.size == 1:
        return team.map(function, items)
    with one_blas_thread():
        return team.map(function, items)


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
