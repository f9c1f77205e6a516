"""The state of the Convex Polytope Machine in training."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from polyplane._threads import Team
from polyplane.engine.data import Data
from polyplane.engine.state import Array, MixedNumber, MixedWhole, RowMemory, Seed, State, Whole, workspace
from polyplane.learners._backoff import MeasuredRows
from polyplane.learners._falling_steps import FOREVER, share_of_last

_MEAN = Array("f", "features", "n_planes", in_place=False, mixed=True)
_MEAN_OFFSETS = Array("f", "n_planes", in_place=False, mixed=True)
_SCORES = Array("f", "polytopes", "measured", "n_planes", in_place=False)


@dataclass(frozen=True, eq=False)
class Polytope(State):
    """One polytope in training; its class is outside. Arrays hold `margin` times the planes."""

    outer: Annotated[int, Whole("classes")]
    coef: Annotated[np.ndarray, Array("f", "features", "n_planes", by_feature=True, mixed=True, scaled_by="margin")]
    intercept: Annotated[np.ndarray, Array("f", "n_planes", mixed=True, scaled_by="margin")]
    counts: Annotated[np.ndarray, Array("i", "n_planes", mixed=True)]  # rows assigned to each plane, for the entropy
    margin: MixedNumber = 0.0
    mean: tuple[Annotated[np.ndarray, _MEAN], Annotated[np.ndarray, _MEAN_OFFSETS]] | None = None

    def check(self, sizes: dict[str, int]) -> bool:
        """Counts are not negative."""
        return bool((self.counts >= 0).all())


@dataclass(frozen=True, eq=False)
class PolytopeMemory(RowMemory):
    """The memory of each row: by polytope (first axis), or for the polytope of its class."""

    skip: Annotated[np.ndarray, Array("uint8", "polytopes", "rows")]  # passes for which to skip it
    recorded: Annotated[np.ndarray, Array("int32", "rows", below="n_planes")]
    scores: Annotated[np.ndarray, _SCORES] | None = None  # of some rows, before the last pass

    @classmethod
    def fresh(cls, n_polytopes: int, n_rows: int) -> PolytopeMemory:
        """The memory before the first pass."""
        return cls(np.zeros((n_polytopes, n_rows), dtype=np.uint8), np.full(n_rows, -1, dtype=np.int32))


class Workspace:
    """The threads of a run, the order of the next epoch, and the rows on which movements are measured."""

    def __init__(self, n_jobs: int | None, measured: MeasuredRows | None) -> None:
        self.team = Team(n_jobs)
        self.next_order: tuple[int, np.ndarray] | None = None
        self.measured = measured


@dataclass(frozen=True, eq=False)
class PolytopeState(State):
    """The state of training."""

    polytopes: list[Polytope]
    n_classes: int
    seed: Seed
    epoch: int = 0
    t: MixedWhole = 0  # visits made so far
    step: MixedNumber = math.inf  # last step size
    loss: MixedNumber = math.inf  # mean over the rows of the last epoch
    updates: MixedNumber = 1.0  # fraction of them that updated a plane
    window: int = FOREVER  # number of visits after which steps are constant
    blends: int = 0  # number of updates of the average
    blend_rows: int = 0  # rows, and the numbers in them, visited since the last time
    blend_entries: int = 0
    prefers_last: bool = False  # the last planes make clearly fewer errors than their average
    rows: PolytopeMemory | None = None
    workspace: Workspace | None = workspace()

    @property
    def share(self) -> float:
        """The weight of the current planes in their average, if they are not yet included in `mean`."""
        return share_of_last(self.blends, self.blend_rows, self.window) if self.blend_rows else 0.0

    def check(self, sizes: dict[str, int]) -> bool:
        """Each class is outside one polytope, or one of two classes is."""
        outer, n_classes = [polytope.outer for polytope in self.polytopes], sizes["classes"]
        known = self.rows is None or len(self.rows.skip) == len(outer)
        each_once = outer == list(range(n_classes)) or (n_classes == 2 and outer in ([0], [1]))
        return self.n_classes == n_classes and known and each_once


def measure_movement(state: PolytopeState, data: Data, bias_input: float) -> tuple[PolytopeState, np.ndarray]:
    """Record the scores of the measured rows; return the movement of the scores of each plane per pass and row norm.

    The movements, of shape (n_polytopes, n_planes), are infinite where they are not known yet.
    """
    from polyplane.kernels.convex_polytope import polytope_scores
    from polyplane.kernels.rows import PlaneSums, as_rows

    assert state.rows is not None
    assert state.workspace is not None
    measured, before = state.workspace.measured, state.rows.scores
    shape = len(state.polytopes), len(state.polytopes[0].intercept)
    if measured is None or state.t == 0:
        return state, np.full(shape, math.inf)
    now = np.empty((shape[0], len(measured.rows), shape[1]), dtype=data.X.dtype)
    rows = as_rows(data.X)

    def write(side: int) -> None:
        polytope = state.polytopes[side]
        planes = PlaneSums(polytope.coef[: data.X.shape[1]], polytope.intercept, bias_input)
        polytope_scores(rows, measured.rows, planes, now[side])
        now[side] /= polytope.margin

    state.workspace.team.map(write, range(len(now)))
    state = replace(state, rows=replace(state.rows, scores=now))
    if before is None or before.shape != now.shape:
        return state, np.full(shape, math.inf)
    return state, np.array([measured.movement(*pair, state.step) for pair in zip(now, before, strict=True)])
