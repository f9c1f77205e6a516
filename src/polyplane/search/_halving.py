"""Successive halving: many candidates with few resources, few candidates with all resources."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from polyplane.engine.run import Progress
from polyplane.search._candidates import Settings
from polyplane.search._checkpoint import Checkpoint
from polyplane.search._fitting import Evaluation
from polyplane.search._results import Trial, best_of
from polyplane.search._rungs import Rung, batches


@dataclass
class Halving:
    """Successive halving: on each rung, the best candidates are promoted to the next rung.

    Parameters
    ----------
    evaluation : Evaluation
        Fits and scores candidates.
    candidates : list of dict
        The parameter settings to compare.
    rungs : list of Rung
        The resources of each rung.
    factor : float or None
        One in `factor` candidates is promoted. If None, there is one rung.
    deadline : float
        No batch except the first starts after this time of `time.perf_counter`.
    checkpoint : Checkpoint or None
        Stores finished trials.
    trials : dict
        Finished trials, in chronological order.
    """

    evaluation: Evaluation
    candidates: Sequence[Settings]
    rungs: Sequence[Rung]
    factor: float | None
    deadline: float
    checkpoint: Checkpoint | None
    trials: dict[tuple[int, int], Trial] = field(default_factory=dict)

    def go(self, progress: Progress | None) -> bool:
        """Run the trials until the deadline; return whether all are finished."""
        going_on, done = list(range(len(self.candidates))), 0
        for number, rung in enumerate(self.rungs):
            for batch in batches(going_on, self._work(rung)):
                to_do = [candidate for candidate in batch if (number, candidate) not in self.trials]
                if to_do and self.trials and time.perf_counter() > self.deadline:
                    self._refuse_failures([candidate for _, candidate in self.trials], 0)
                    return False
                if to_do:
                    self._try(number, to_do)
                done += len(batch) * self._visits(rung)
                if progress is not None:
                    self._show(progress, number, done)
            self._refuse_failures(going_on, number)
            going_on = best_of(self.trials, number, going_on)[: self.n_kept(len(going_on))]
        return True

    def n_kept(self, n_candidates: int) -> int:
        """Return the number of promoted candidates."""
        return n_candidates if self.factor is None else math.ceil(n_candidates / self.factor)

    @property
    def n_visits(self) -> int:
        """Total number of row visits of all trials."""
        total, n_candidates = 0, len(self.candidates)
        for rung in self.rungs:
            total, n_candidates = total + n_candidates * self._visits(rung), self.n_kept(n_candidates)
        return total

    def _visits(self, rung: Rung) -> int:
        """Return the number of row visits of a trial."""
        return rung.n_visits * rung.n_folds(len(self.evaluation.folds))

    @property
    def last_rung(self) -> int:
        """The last rung with a finished trial."""
        return max(rung for rung, _ in self.trials)

    @property
    def best(self) -> tuple[int, int]:
        """Rung and candidate of the best trial on the last rung; an unfinished rung starts with the best candidates."""
        last = self.last_rung
        return last, best_of(self.trials, last, [candidate for rung, candidate in self.trials if rung == last])[0]

    def _try(self, number: int, to_do: Sequence[int]) -> None:
        trials = self.evaluation.trials([self.candidates[candidate] for candidate in to_do], self.rungs[number])
        self.trials |= {(number, candidate): trial for candidate, trial in zip(to_do, trials, strict=True)}
        if self.checkpoint is not None:
            self.checkpoint.write(self.trials)

    def _work(self, rung: Rung) -> float:
        evaluation = self.evaluation
        n_classes, n_columns = int(evaluation.codes.max()) + 1, evaluation.n_columns
        return float(self._visits(rung) * n_classes * n_columns)

    def _show(self, progress: Progress, number: int, done: int) -> None:
        share = int(100 * done / self.n_visits)
        progress.update(share, {"rung": number + 1, "score": round(self.trials[self.best].mean, 4)})

    def _refuse_failures(self, candidates: Sequence[int], number: int) -> None:
        """Raise an error if all candidates failed on a rung."""
        if not all(math.isnan(self.trials[number, candidate].mean) for candidate in candidates):
            return
        failure = self.evaluation.failure
        if failure is None:
            raise ValueError("The scores of all candidates are NaN; check the scoring function.")
        raise failure.error
