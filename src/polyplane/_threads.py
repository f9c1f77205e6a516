"""Independent work in threads, and when BLAS should not use any."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Threads, like joblib, are imported by what needs them: to predict a few rows takes less time than to import these.

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` stands for; None: 1, or that of the ``joblib.parallel_config`` in force."""
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


class Team:
    """Threads that stay: a step calls on them a dozen times, and is over in the time that starting them would take.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, as in joblib, with the one that calls.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self.size = n_threads(n_jobs)
        self._pool = _new_pool(self.size - 1) if self.size > 1 else None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``[function(item) for item in items]``; each thread takes the next item when it is done with its last."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: dict[int, Result] = {}
        waiting = iter(range(len(items)))  # taking the next of a range is a single act, whoever does it

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
    """Wait for threads whatever interrupts: they may write into arrays that whoever is interrupted puts in order."""
    from concurrent.futures import wait

    interrupt = None
    while True:
        try:
            for _ in waiting:  # what nobody has begun with is left
                pass
            wait(helpers)
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> list[Result]:
    """``[function(item) for item in items]``, in up to `n_jobs` threads; the results do not depend on their number.

    While there are several, BLAS keeps to one thread in each of them: cores are not asked for twice.
    """
    items = list(items)
    team = Team(1 if len(items) < 2 else n_jobs)
    if team.size == 1:
        return team.map(function, items)
    with one_blas_thread():
        return team.map(function, items)


#: Below so many multiplications a matrix product is done before its threads have met; on a busy machine they wait.
WORTH_THREADS = 30_000_000


@cache
def _controller_of(loaded: tuple[str, ...]) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _controller() -> Any:
    """What sets the threads of all BLAS libraries that are loaded by now: SciPy and PyTorch bring their own."""
    return _controller_of(tuple(name for name in ("scipy.linalg", "torch") if name in sys.modules))


class _Holder:
    """Somebody who needs BLAS to keep to one thread; interrupted on the way out, it is forgotten with its frame."""

    __slots__ = ("__weakref__",)


#: There is no lock around these: a Ctrl-C between taking a lock and releasing it would leave it taken for ever.
_holders: WeakSet[_Holder] = WeakSet()
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, until the last of those who asked for it at the same time is done.

    The number is that of the process: if each restored what it had found, threads would change it under each other's
    hands, and with it the order of sums.
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
    if _limit is None or _limit[0] is not controller:  # a library may have been loaded since
        earlier, _limit = _limit, (controller, controller.limit(limits=1, user_api="blas"))
        if earlier is not None:
            _limit = controller, _Both(_limit[1], earlier[1])


def _lift_limit() -> None:
    global _limit
    if len(_holders) == 0 and _limit is not None:
        limit, _limit = _limit, None
        limit[1].restore_original_limits()
        if len(_holders):  # somebody came meanwhile
            _set_limit()


class _Both(NamedTuple):
    """A limit on top of an earlier one."""

    last: Any
    first: Any

    def restore_original_limits(self) -> None:
        """Restore what was before both."""
        self.last.restore_original_limits()
        self.first.restore_original_limits()


def blas_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Keep BLAS to one thread for matrix products that are too small for more."""
    return nullcontext() if multiplications > WORTH_THREADS else one_blas_thread()
