"""The bundle of a cutting-plane method: the cuts, and the solution of the reduced problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from polyplane.engine.state import Array, State, workspace

#: The factor of the reduced problem is recomputed after this many solutions, to limit rounding errors.
REFACTOR = 16

#: A cut is removed after this many consecutive solutions that do not use it.
IDLE = 25

#: Initial capacity, in cuts.
FIRST_ROOM = 8


class Room:
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
    add cuts to the shared arrays; see `with_room`.
    """

    normals: Annotated[np.ndarray, Array("float64", "cuts", "planes_of_problem", "features+1", in_place=False)]  # a
    offsets: Annotated[np.ndarray, Array("float64", "cuts", in_place=False)]  # b
    gram: Annotated[np.ndarray, Array("float64", "cuts", "cuts", in_place=False)]  # products of the normals
    x: Annotated[np.ndarray, Array("float64", "seen", in_place=False)]  # the last solution, 0 for cuts made since
    idle: Annotated[np.ndarray, Array("i", "seen", in_place=False)]  # solutions since the cut was last used
    support: Annotated[np.ndarray, Array("i", "used", below="seen", in_place=False)]  # where x is positive
    factor: Annotated[np.ndarray, Array("float64", "used", "used", in_place=False)]  # see kernels/simplex_qp.py
    capacity: int = FIRST_ROOM
    shift: float = 1.0
    solved: int = 0
    room: Room | None = workspace()

    own_sizes = ("cuts", "seen", "used")

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Bundle:
        """A bundle with the cut 0 only, for planes of this shape."""
        room, none = Room(FIRST_ROOM, shape), np.zeros(1, dtype=np.int64)
        return cls(**room.first(1), x=np.ones(1), idle=none, support=none, factor=np.zeros((1, 1)), room=room)

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
        bundle = self if n < self.capacity else self.with_room(n + n // 2)
        room = bundle.room
        assert room is not None
        room.normals[n], room.offsets[n] = normal, offset
        flat = room.normals[: n + 1].reshape(n + 1, -1)
        room.gram[n, : n + 1] = room.gram[: n + 1, n] = flat @ flat[n]
        return replace(bundle, **room.first(n + 1))

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
        assert self.room is not None
        keep = np.flatnonzero(self.idle <= IDLE)
        changed = {"x": self.x[keep], "idle": self.idle[keep], "support": np.searchsorted(keep, self.support)}
        return self._moved(keep, Room(len(self.room.offsets), self.room.normals.shape[1:]), **changed)

    def with_room(self, capacity: int | None = None) -> Bundle:
        """The bundle in new arrays, with capacity for more cuts; unused capacity needs no memory."""
        room = Room(capacity or self.capacity, self.normals.shape[1:])
        return self._moved(np.arange(self.n_cuts), room)

    def _moved(self, keep: np.ndarray, room: Room, **changed: Any) -> Bundle:
        """The bundle with the cuts `keep` only, in the arrays of `room`."""
        n = len(keep)
        np.take(self.normals, keep, axis=0, out=room.normals[:n], mode="clip")  # other modes copy once more
        room.offsets[:n], room.gram[:n, :n] = self.offsets[keep], self.gram[np.ix_(keep, keep)]
        return replace(self, capacity=len(room.offsets), room=room, **room.first(n), **changed)
