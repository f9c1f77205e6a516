"""`Race`: candidates that are compared on held-out rows, and what was chosen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

C = TypeVar("C", bound=Hashable)

#: Trains candidates with the resources of a rung; returns the losses of each on held-out rows, or NaN if it failed.
Losses = Callable[[Sequence[C], Any], Iterable[Any]]


class Choice(NamedTuple):
    """What was chosen before a run.

    Parameters
    ----------
    method : Method
        The method with the chosen settings.
    settings : dict of str to float
        The chosen settings, for display; empty if there was nothing to choose.
    trials : dict of str to list of float
        What was compared, as `Race.table` returns it.
    """

    method: Any
    settings: Mapping[str, float] = MappingProxyType({})
    trials: Mapping[str, list[float]] = MappingProxyType({})


class Race(Generic[C]):
    """Candidates that are compared on held-out rows, in rounds (rungs).

    A rung is a value that says what the candidates get: the number of a fold, or of passes. After each rung, some
    candidates leave. Results are cached: a candidate is evaluated only once on each rung, also over several races.

    Parameters
    ----------
    losses : function of (candidates, rung)
        Trains candidates with the resources of a rung; returns an array of losses for each of them: one per held-out
        row, so that candidates can be compared row by row, or one per fold. Work that candidates share is the
        function's business, which gets all of them at once.
    batch_size : function of a rung, default=None
        The number of candidates that are evaluated together. None: all.
    after_batch : function of a rung, default=None
        Called after each batch, for progress and checkpoints.
    deadline : float, default=inf
        No batch except the first starts after this time of `time.perf_counter`.

    Attributes
    ----------
    trials : dict of (rung, candidate) to ndarray
        The losses so far, in chronological order.
    is_complete : bool
        False if the deadline has ended the race.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane.engine.race import Race
    >>> rows = [np.array([0.0, 1.0, 0.2]), np.array([0.1, 0.8, 0.3])]
    >>> race = Race(lambda candidates, fold: [abs(rows[fold] - candidate) for candidate in candidates])
    >>> race.run([0.0, 0.3, 5.0], rungs=[0, 1], keep=lambda left, fold: race.near_best(left, 2.0))
    [0.0, 0.3]
    """

    def __init__(
        self,
        losses: Losses[C],
        *,
        batch_size: Callable[[Any], int] | None = None,
        after_batch: Callable[[Any], None] | None = None,
        deadline: float = math.inf,
    ) -> None:
        self._losses, self._batch_size, self._after_batch = losses, batch_size, after_batch
        self.deadline = deadline
        self.trials: dict[tuple[Any, C], np.ndarray] = {}
        self.is_complete = True

    def run(
        self,
        candidates: Iterable[C],
        rungs: Iterable[Any],
        keep: Callable[[list[C], Any], list[C]] | None = None,
        *,
        until_one: bool = False,
    ) -> list[C]:
        """Evaluate candidates rung by rung.

        Parameters
        ----------
        candidates : iterable
            The candidates.
        rungs : iterable
            The rungs.
        keep : function of (candidates, rung), default=None
            Returns the candidates that stay after a rung. None: all.
        until_one : bool, default=False
            Whether to stop when one candidate is left.

        Returns
        -------
        left : list
            The candidates that are left.
        """
        left = list(candidates)
        for rung in rungs:
            if not self._evaluate(left, rung):
                self.is_complete = False
                break
            left = left if keep is None else keep(left, rung)
            if until_one and len(left) == 1:
                break
        return left

    def _evaluate(self, candidates: list[C], rung: Any) -> bool:
        """Evaluate those candidates that are new on a rung; return whether there was time for all of them."""
        size = len(candidates) if self._batch_size is None else self._batch_size(rung)
        for first in range(0, len(candidates), max(size, 1)):
            new = [each for each in candidates[first : first + size] if (rung, each) not in self.trials]
            if new and self.trials and time.perf_counter() > self.deadline:
                return False
            if new:
                found = zip(new, self._losses(new, rung), strict=True)
                self.trials |= {(rung, candidate): np.atleast_1d(losses) for candidate, losses in found}
            if self._after_batch is not None:
                self._after_batch(rung)
        return True

    # Comparisons.

    def losses(self, candidate: C, rungs: Sequence[Any] | None = None) -> np.ndarray:
        """Return the losses of a candidate on some rungs; None: on all so far."""
        if rungs is None:
            rungs = [rung for rung, other in self.trials if other == candidate]
        return np.concatenate([self.trials[rung, candidate] for rung in rungs])

    def mean(self, candidate: C, rung: Any) -> float:
        """Return the mean loss of a candidate on a rung; NaN if it failed."""
        return float(np.mean(self.trials[rung, candidate]))

    def ranked(self, candidates: Sequence[C], rung: Any) -> list[C]:
        """Sort candidates by their mean loss on a rung, the best first; ties keep their order, failures are last."""
        order = np.argsort(np.nan_to_num([self.mean(each, rung) for each in candidates], nan=np.inf), kind="stable")
        return [candidates[i] for i in order]

    def near_best(self, candidates: Sequence[C], n_errors: float, rungs: Sequence[Any] | None = None) -> list[C]:
        """Return the candidates whose mean loss exceeds the lowest by at most `n_errors` standard errors.

        Losses of all rungs are compared, or those of some if candidates were evaluated on different rungs.
        """
        losses = [self.losses(each, rungs) for each in candidates]
        best = min(losses, key=np.mean)
        return [c for c, own in zip(candidates, losses, strict=True) if excess(own, best) <= n_errors]

    def table(self, columns: Callable[[C], Mapping[str, float]]) -> dict[str, list[float]]:
        """Return one entry per trial and column: those of the candidates, and the mean "loss" on the rung."""
        table: dict[str, list[float]] = {}
        for (_, candidate), losses in self.trials.items():
            for name, value in {**columns(candidate), "loss": losses.mean()}.items():
                table.setdefault(name, []).append(float(value))
        return table


def excess(losses: np.ndarray, best: np.ndarray) -> float:
    """Return the difference of two mean losses, in standard errors of the differences per row."""
    difference = losses - best
    return float(difference.mean() / (difference.std() / len(difference) ** 0.5 + 1e-12))
