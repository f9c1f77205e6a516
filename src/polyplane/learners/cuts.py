"""What a cutting-plane step works with: the cuts, the line searches, and the state of training."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from operator import add
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane._array_api import ThreadPool
from polyplane.engine.state import Array, RowMemory, RowsLike, State, workspace

#: The factor of the reduced problem is recomputed after this many solutions, to limit rounding errors.
REFACTOR = 16

#: A cut is removed after this many consecutive solutions that do not use it.
IDLE = 25

#: Initial capacity, in cuts.
FIRST_CAPACITY = 8


class CutArrays:
    """Arrays with capacity for more cuts; the cuts of a bundle are the first ones."""

    def __init__(self, n_cuts: int, shape: tuple[int, ...]) -> None:
        self.normals, self.offsets = np.zeros((n_cuts, *shape)), np.zeros(n_cuts)
        self.gram = np.zeros((n_cuts, n_cuts))

    def first(self, n_cuts: int) -> dict[str, Any]:
        """Views of the first cuts."""
        return {
            "normals": self.normals[:n_cuts],
            "offsets": self.offsets[:n_cuts],
            "gram": self.gram[:n_cuts, :n_cuts],
        }


@dataclass(frozen=True, eq=False)
class Bundle(State):
    r"""Cuts, and the planes that minimise the reduced problem.

    Each cut :math:`a_j w + b_j` is a lower bound of the risk :math:`R(w)`; the first is 0. The planes solve

    .. math:: \min_w \frac{1}{2} |w|^2 + C \max_j (a_j w + b_j)
        = \max_{x \ge 0, \sum_j x_j = 1} C \, b x - \frac{1}{2} \Big| C \sum_j x_j a_j \Big|^2

    and the dual objective is a lower bound of the objective of the SVM for any :math:`x` in the simplex, optimal or
    not. The cuts do not depend on C, so a bundle can be reused for several values of C.

    Bundles are immutable: `solve` and `with_cut` return a new one. Cuts are large, so both share the same arrays, and a
    new cut is written after the last cut of the bundle. Two bundles derived from the same one must therefore not both
    add cuts to the shared arrays; see `in_new_arrays`.
    """

    normals: Annotated[np.ndarray, Array("float64", "cuts", "planes_of_problem", "features+1", in_place=False)]  # a
    offsets: Annotated[np.ndarray, Array("float64", "cuts", in_place=False)]  # b
    gram: Annotated[np.ndarray, Array("float64", "cuts", "cuts", in_place=False)]  # products of the normals
    x: Annotated[np.ndarray, Array("float64", "seen", in_place=False)]  # the last solution, 0 for cuts made since
    idle: Annotated[np.ndarray, Array("i", "seen", in_place=False)]  # solutions since the cut was last used
    support: Annotated[np.ndarray, Array("i", "used", below="seen", in_place=False)]  # where x is positive
    factor: Annotated[np.ndarray, Array("float64", "used", "used", in_place=False)]  # see kernels/simplex_qp.py
    capacity: int = FIRST_CAPACITY
    shift: float = 1.0
    solved: int = 0
    arrays: CutArrays | None = workspace()

    own_sizes = ("cuts", "seen", "used")

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Bundle:
        """A bundle with the cut 0 only, for planes of this shape."""
        arrays, none = CutArrays(FIRST_CAPACITY, shape), np.zeros(1, dtype=np.int64)
        return cls(**arrays.first(1), x=np.ones(1), idle=none, support=none, factor=np.zeros((1, 1)), arrays=arrays)

    def check(self, sizes: dict[str, int]) -> bool:
        """The capacity suffices for the cuts, and the cuts in use exist and are distinct."""
        n_used = len(self.support)
        known = self.support.min(initial=0) >= 0 and len(np.unique(self.support)) == n_used
        return bool(n_used >= 1 and len(self.x) <= self.n_cuts <= self.capacity and known)

    @property
    def n_cuts(self) -> int:
        """Number of cuts, including the cut 0."""
        return len(self.offsets)

    def with_cut(self, normal: np.ndarray, offset: float) -> Bundle:
        """Add a cut."""
        n = self.n_cuts
        bundle = self if n < self.capacity else self.in_new_arrays(n + n // 2)
        arrays = bundle.arrays
        assert arrays is not None
        arrays.normals[n], arrays.offsets[n] = normal, offset
        flat = arrays.normals[: n + 1].reshape(n + 1, -1)
        arrays.gram[n, : n + 1] = arrays.gram[: n + 1, n] = flat @ flat[n]
        return replace(bundle, **arrays.first(n + 1))

    def solve(self, C: float, tol: float) -> tuple[Bundle, np.ndarray, float]:
        """Solve the reduced problem; return the bundle without idle cuts, the planes, and a bound within `tol`."""
        from polyplane.kernels.simplex_qp import Iterate, Quadratic, minimise

        n, n_seen, size, shift = self.n_cuts, len(self.x), len(self.support), self.shift
        x, support, factor, idle = np.zeros(n), np.zeros(n, np.int64), np.zeros((n, n)), np.ones(n, np.int64)
        x[:n_seen], support[:size], factor[:size, :size] = self.x, self.support, self.factor
        idle[:n_seen] += self.idle
        iterate = Iterate(x, support, factor, np.empty((3, n)))
        afresh = self.solved % REFACTOR == 0
        if afresh:
            shift = float(self.gram.diagonal().max()) or 1.0
        # Copied, because the kernel would be compiled twice, for contiguous arrays and for views.
        problem = Quadratic(self.gram.copy(), self.offsets / C, shift)
        size = minimise(problem, iterate, size, afresh, tol / C / C, 10 * n + 100)
        used = support[:size].copy()
        x[used] /= x[used].sum()
        planes = -C * (x @ self.normals.reshape(n, -1))
        bound = C * float(self.offsets[used] @ x[used]) - 0.5 * float(planes @ planes)
        idle[used] = idle[0] = 0
        factor = factor[:size, :size].copy()
        bundle = replace(self, x=x, idle=idle, support=used, factor=factor, shift=shift, solved=self.solved + 1)
        return bundle._without_idle(), planes.reshape(self.normals.shape[1:]), bound

    def _without_idle(self) -> Bundle:
        """Remove cuts that the last solutions did not use; the solution and the bound do not change."""
        if self.idle.max() <= IDLE:
            return self
        assert self.arrays is not None
        keep = np.flatnonzero(self.idle <= IDLE)
        changed = {"x": self.x[keep], "idle": self.idle[keep], "support": np.searchsorted(keep, self.support)}
        return self._moved(keep, CutArrays(len(self.arrays.offsets), self.arrays.normals.shape[1:]), **changed)

    def in_new_arrays(self, capacity: int | None = None) -> Bundle:
        """The bundle in new arrays, with capacity for more cuts; unused capacity needs no memory."""
        arrays = CutArrays(capacity or self.capacity, self.normals.shape[1:])
        return self._moved(np.arange(self.n_cuts), arrays)

    def _moved(self, keep: np.ndarray, arrays: CutArrays, **changed: Any) -> Bundle:
        """The bundle with the cuts `keep` only, in the arrays of `arrays`."""
        n = len(keep)
        np.take(self.normals, keep, axis=0, out=arrays.normals[:n], mode="clip")  # other modes copy once more
        arrays.offsets[:n], arrays.gram[:n, :n] = self.offsets[keep], self.gram[np.ix_(keep, keep)]
        return replace(self, capacity=len(arrays.offsets), arrays=arrays, **arrays.first(n), **changed)


#: Initial distance (delta in the paper) between the three points; also the step of "non-greedy" instead of no step.
INITIAL_STEP = 0.02

#: A shorter step of an exact search counts as no step: it may differ from 0 by rounding only.
STILL = 1e-6


class Line:
    """The objective on the line from the current planes to a candidate (f in the paper)."""

    def __init__(self, current: np.ndarray, candidate: np.ndarray, C: float, sums: Any) -> None:
        self.current, self.along, self.C, self.sums = current, candidate - current, C, sums
        self.height = half_square(current)
        self.slope = float(current.ravel() @ self.along.ravel())
        self.curvature = 2.0 * half_square(self.along)
        # At the optimum, the two ends differ by rounding errors only, and no search is possible.
        self.is_point = self.curvature <= 1e-24 * (self.height + half_square(candidate))

    def at(self, mu: float) -> np.ndarray:
        """A point of the line."""
        return self.current + mu * self.along

    def objectives(self, *steps: float) -> list[float]:
        """The objective at the given points of the line."""
        risks = self.sums.risks(list(steps))
        return [
            self.height + mu * self.slope + 0.5 * mu * mu * self.curvature + self.C * float(risk)
            for mu, risk in zip(steps, risks, strict=True)
        ]


def _full_step(line: Line, last: float) -> tuple[float, float]:
    """CPA: no search."""
    return 1.0, line.objectives(1.0)[0]


def _exact(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3: the derivative of the objective is increasing, piecewise linear with jumps; find its zero."""
    from polyplane.kernels.cutting_plane import first_zero

    slope = line.slope + line.C * line.sums.slope()
    mu = 0.0
    if slope < 0.0:
        at, rise = line.sums.kinks(-slope / line.curvature)  # jumps only increase the slope
        mu = float(first_zero(at, line.C * rise, slope, line.curvature))
    return mu, line.objectives(mu)[0]


def _non_greedy(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3, with a short step instead of a second consecutive search without a step.

    From the same planes, the next cuts would be very similar (section 4.2: POKER). A step that increases the objective
    slightly gives different cuts at no other cost, since the best planes are kept.
    """
    mu, objective = _exact(line, last)
    return (mu, objective) if max(mu, last) > STILL else (INITIAL_STEP, line.objectives(INITIAL_STEP)[0])


def _three_point(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 4: shift a window of three points, from where the last search ended, until the middle one is lowest."""
    width = INITIAL_STEP
    low, mid, high = last - width, last, last + width
    f_low, f_mid, f_high = line.objectives(low, mid, high)
    while f_high < f_mid:
        width *= 2.0
        low, mid, high = mid, high, high + width
        f_low, f_mid, f_high = f_mid, f_high, line.objectives(high)[0]
    while f_low < f_mid:
        width *= 2.0
        low, mid, high = low - width, low, mid
        f_low, f_mid = line.objectives(low)[0], f_low
    return mid, f_mid


LINE_SEARCHES = {"none": _full_step, "exact": _exact, "non-greedy": _non_greedy, "three-point": _three_point}


def half_square(planes: np.ndarray) -> float:
    """Half the squared norm of all planes together."""
    flat = planes.ravel()
    return 0.5 * float(flat @ flat)


#: Planes have the weight of the constant feature in their last column.
PlanesOfProblem = Annotated[np.ndarray, Array("float64", "planes_of_problem", "features+1", in_place=False)]


@dataclass(frozen=True, eq=False)
class Solution(State):
    """The best planes of one SVM so far, with bounds of its objective."""

    best: PlanesOfProblem
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
    current: PlanesOfProblem  # where line searches start from (w^b in the paper)


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


class CutWorkspace(NamedTuple):
    """The sums over rows of each SVM, and the threads that share the SVMs."""

    sums: list[Any]  # of RowSums or ArrayRowSums
    threads: ThreadPool


@dataclass(frozen=True, eq=False)
class CutState(State):
    """The state of training."""

    solutions: list[Solution]
    rows_like: RowsLike
    seconds: StepSeconds = StepSeconds()
    n_steps: int = 0  # on the current rows
    rows: CutMemory | None = None
    workspace: CutWorkspace | None = workspace()

    def check(self, sizes: dict[str, int]) -> bool:
        """One plane for two classes, otherwise one per class; the capacity of a bundle fits its number of cuts."""
        n_planes, n_classes = len(self.solutions) * sizes["planes_of_problem"], sizes["classes"]
        capacities = [0] * len(self.solutions) if self.rows is None else [of.bundle.capacity for of in self.rows.cuts]
        needed = [max(FIRST_CAPACITY, 3 * (solution.n_cuts + 1) // 2) for solution in self.solutions]
        fits = len(capacities) == len(needed) and all(np.less_equal(capacities, needed))
        return n_planes == (1 if n_classes == 2 else n_classes) and fits

    @property
    def gap(self) -> float:
        """The largest gap of all SVMs."""
        return max(solution.gap for solution in self.solutions)
