"""The state of cutting-plane training, and the time spent in the parts of a step."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from operator import add
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane._threads import Team
from polyplane.engine.state import Array, RowMemory, RowsLike, State, workspace
from polyplane.learners._cuts import FIRST_ROOM, Bundle

#: Planes have the weight of the constant feature in their last column.
Planes = Annotated[np.ndarray, Array("float64", "planes_of_problem", "features+1", in_place=False)]


@dataclass(frozen=True, eq=False)
class Solution(State):
    """The best planes of one SVM so far, with bounds of its objective."""

    best: Planes
    primal: float = math.inf  # their objective
    dual: float = 0.0  # the largest lower bound so far
    mu: float = 1.0  # result of the last line search
    n_cuts: int = 0  # made on the current rows

    def check(self, sizes: dict[str, int]) -> bool:
        """Objectives are positive."""
        return self.primal > 0

    @property
    def gap(self) -> float:
        """Upper bound of the relative distance of the objective of the best planes to the optimum."""
        return max(1.0 - self.dual / self.primal, 0.0)


@dataclass(frozen=True, eq=False)
class Cuts(State):
    """The cuts of one SVM, and its current planes."""

    bundle: Bundle
    current: Planes  # where line searches start from (w^b in the paper)


@dataclass(frozen=True, eq=False)
class CutMemory(RowMemory):
    """The cuts of each SVM: lower bounds, valid only for the rows, labels and weights that they were computed from."""

    cuts: list[Cuts]
    fit_intercept: bool


@dataclass(frozen=True, eq=False)
class StepSeconds(State):
    """The time spent in the parts of a step, in seconds."""

    outputs: float = 0.0
    line_search: float = 0.0
    cut: float = 0.0
    qp: float = 0.0

    def __add__(self, other: StepSeconds) -> StepSeconds:
        return StepSeconds(*map(add, vars(self).values(), vars(other).values()))


class Clock:
    """Measures the time of the parts of a step."""

    def __init__(self) -> None:
        self._seconds = dict(vars(StepSeconds()))
        self._last = time.perf_counter()

    def charge(self, part: str) -> None:
        """Add the time since the last call to `part`."""
        now = time.perf_counter()
        self._seconds[part] += now - self._last
        self._last = now

    def read(self) -> StepSeconds:
        """The times so far."""
        return StepSeconds(**self._seconds)


class Workspace(NamedTuple):
    """The sums over rows of each SVM, and the threads that share the SVMs."""

    sums: list[Any]  # of RowSums or ArrayRowSums
    team: Team


@dataclass(frozen=True, eq=False)
class CutState(State):
    """The state of training."""

    solutions: list[Solution]
    rows_like: RowsLike
    seconds: StepSeconds = StepSeconds()
    n_steps: int = 0  # on the current rows
    rows: CutMemory | None = None
    workspace: Workspace | None = workspace()

    def check(self, sizes: dict[str, int]) -> bool:
        """One plane for two classes, otherwise one per class; the capacity of a bundle fits its number of cuts."""
        n_planes, n_classes = len(self.solutions) * sizes["planes_of_problem"], sizes["classes"]
        capacities = [0] * len(self.solutions) if self.rows is None else [of.bundle.capacity for of in self.rows.cuts]
        needed = [max(FIRST_ROOM, 3 * (solution.n_cuts + 1) // 2) for solution in self.solutions]
        fits = len(capacities) == len(needed) and all(np.less_equal(capacities, needed))
        return n_planes == (1 if n_classes == 2 else n_classes) and fits

    @property
    def gap(self) -> float:
        """The largest gap of all SVMs."""
        return max(solution.gap for solution in self.solutions)
