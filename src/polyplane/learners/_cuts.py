"""The bundle of a cutting-plane method: cuts, and the planes that are best for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from polyplane.engine.kinds import Array
from polyplane.engine.state import State, workspace

#: After this many solutions the factor of the reduced problem is made afresh, lest rounding errors gather.
REFACTOR = 16

#: A cut is dropped after this many solutions in a row that make no use of it.
IDLE = 25

#: Room for cuts at the beginning.
FIRST_ROOM = 8


class Room:
    """Arrays with room for more cuts than a bundle has; its own are the first ones."""

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
    r"""Cuts, and the planes that are best for them.

    Each cut :math:`a_j w + b_j` is a lower bound of the risk :math:`R(w)`; the first is 0. The planes solve

    .. math:: \min_w \frac{1}{2} |w|^2 + C \max_j (a_j w + b_j)
        = \max_{x \ge 0, \sum_j x_j = 1} C \, b x - \frac{1}{2} \Big| C \sum_j x_j a_j \Big|^2

    and the value is a lower bound of the SVM's objective for any :math:`x` of the simplex, optimal or not. The cuts do
    not depend on C, so a bundle serves a path of C's.

    A bundle is a value: `solve` and `with_cut` return another one. Cuts are large, so both look at the same arrays, and
    a new cut is written behind those that the bundle counts as its own. Bundles that go different ways from a common
    one must not share them; see `with_room`.
    """

    normals: Annotated[np.ndarray, Array("float64", "cuts", "planes_of_problem", "features+1", in_place=False)]  # a
    offsets: Annotated[np.ndarray, Array("float64", "cuts", in_place=False)]  # b
    gram: Annotated[np.ndarray, Array("float64", "cuts", "cuts", in_place=False)]  # products of the normals
    x: Annotated[np.ndarray, Array("float64", "seen", in_place=False)]  # the last solution, 0 for cuts made since
    idle: Annotated[np.ndarray, Array("i", "seen", in_place=False)]  # solutions since the cut was last in use
    support: Annotated[np.ndarray, Array("i", "used", below="seen", in_place=False)]  # where x is positive
    factor: Annotated[np.ndarray, Array("float64", "used", "used", in_place=False)]  # see kernels/simplex_qp.py
    capacity: int = FIRST_ROOM
    shift: float = 1.0
    solved: int = 0
    room: Room | None = workspace()

    own_sizes = ("cuts", "seen", "used")

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Bundle:
        """The cut 0 alone, for planes of this shape."""
        room, none = Room(FIRST_ROOM, shape), np.zeros(1, dtype=np.int64)
        return cls(**room.first(1), x=np.ones(1), idle=none, support=none, factor=np.zeros((1, 1)), room=room)

    def check(self, sizes: dict[str, int]) -> bool:
        """There is room for the cuts, and those in use are among them, once each."""
        n_used = len(self.support)
        known = self.support.min(initial=0) >= 0 and len(np.unique(self.support)) == n_used
        return bool(n_used >= 1 and len(self.x) <= self.n_cuts <= self.capacity and known)

    @property
    def n_cuts(self) -> int:
        """How many cuts there are, the 0 included."""
        return len(self.offsets)

    def with_cut(self, normal: np.ndarray, offset: float) -> Bundle:
        """The bundle with one more cut."""
        n = self.n_cuts
        bundle = self if n < self.capacity else self.with_room(n + n // 2)
        room = bundle.room
        assert room is not None
        room.normals[n], room.offsets[n] = normal, offset
        flat = room.normals[: n + 1].reshape(n + 1, -1)
        room.gram[n, : n + 1] = room.gram[: n + 1, n] = flat @ flat[n]
        return replace(bundle, **room.first(n + 1))

    def solve(self, C: float, tol: float) -> tuple[Bundle, np.ndarray, float]:
        """The bundle without cuts long out of use, the best planes, and their bound, within `tol` of the largest."""
        from polyplane.kernels.simplex_qp import Iterate, Quadratic, minimise

        n, n_seen, size, shift = self.n_cuts, len(self.x), len(self.support), self.shift
        x, support, factor, idle = np.zeros(n), np.zeros(n, np.int64), np.zeros((n, n)), np.ones(n, np.int64)
        x[:n_seen], support[:size], factor[:size, :size] = self.x, self.support, self.factor
        idle[:n_seen] += self.idle
        iterate = Iterate(x, support, factor, np.empty((3, n)))
        afresh = self.solved % REFACTOR == 0
        if afresh:
            shift = float(self.gram.diagonal().max()) or 1.0
        # A copy: views into a room, which may or may not fill it, would be compiled for both.
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
        """Drop cuts that the last solutions made no use of: the solution, and so the bound, stays what it is."""
        if self.idle.max() <= IDLE:
            return self
        assert self.room is not None
        keep = np.flatnonzero(self.idle <= IDLE)
        changed = {"x": self.x[keep], "idle": self.idle[keep], "support": np.searchsorted(keep, self.support)}
        return self._moved(keep, Room(len(self.room.offsets), self.room.normals.shape[1:]), **changed)

    def with_room(self, capacity: int | None = None) -> Bundle:
        """The bundle in arrays of its own, with room for more cuts; what is not yet written there costs no memory."""
        room = Room(capacity or self.capacity, self.normals.shape[1:])
        return self._moved(np.arange(self.n_cuts), room)

    def _moved(self, keep: np.ndarray, room: Room, **changed: Any) -> Bundle:
        """The bundle with some of its cuts, in other arrays."""
        n = len(keep)
        np.take(self.normals, keep, axis=0, out=room.normals[:n], mode="clip")  # other modes copy once more
        room.offsets[:n], room.gram[:n, :n] = self.offsets[keep], self.gram[np.ix_(keep, keep)]
        return replace(self, capacity=len(room.offsets), room=room, **room.first(n), **changed)
