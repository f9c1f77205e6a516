"""Independent work in threads."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from joblib import Parallel, delayed

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> list[Result]:
    """``[function(item) for item in items]``, in up to `n_jobs` threads; the results do not depend on their number."""
    items = list(items)
    if n_jobs in (None, 1) or len(items) < 2:
        return [function(item) for item in items]
    results: list[Result] = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(item) for item in items)
    return results
