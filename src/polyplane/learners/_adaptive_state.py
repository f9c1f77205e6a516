"""The state of adaptive multi-hyperplane training: planes that are added and removed, and the rows assigned to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from polyplane.engine.data import Data
from polyplane.engine.state import Array, RowMemory, workspace
from polyplane.learners.multi_hyperplane import KernelRows, PlaneColumns
from polyplane.planes import PlaneSet


@dataclass(frozen=True, eq=False)
class Assignments(RowMemory):
    """The column of the plane assigned to each row (z in the paper); -1: the best plane of its class."""

    columns: Annotated[np.ndarray, Array("i", "rows", in_place=False, below="columns")]


@dataclass(frozen=True, eq=False)
class AdaptiveState(PlaneColumns):
    """The state of training. Arrays hold ``alpha t`` times the planes."""

    t: int = 0  # number of visits, of the current round if training is in rounds
    duplication: float = 0.0  # probability that a plane is duplicated after an error
    rows: Assignments | None = None
    workspace: KernelRows | None = workspace()

    @property
    def assigned(self) -> np.ndarray:
        """The column of the plane assigned to each row; empty if planes are not assigned in rounds."""
        return np.zeros(0, dtype=np.int64) if self.rows is None else self.rows.columns

    def with_room(self) -> Self:
        """The state with at least three free columns: a visit adds up to three planes."""
        if self.n_planes + 3 <= len(self.owner):
            return self
        return self._with_columns(np.arange(self.n_planes), self.n_planes + max(8, self.n_planes // 2))

    def with_new_planes(self, parents: np.ndarray) -> Self:
        """The state after planes were added: the average of a copy starts as that of its parent (-1: no parent)."""
        if self.mean is None or not len(parents):
            return self
        origin = [*range(len(self.mean[1]))]
        for parent in parents:
            origin.append(origin[parent] if parent >= 0 else -1)
        added = np.array(origin[len(self.mean[1]) :])
        coef, intercept = (np.concatenate([mean, mean[added]]) for mean in self.mean)
        for mean in (coef, intercept):
            mean[-len(added) :][added < 0] = 0
        return replace(self, mean=(coef, intercept))

    def pruned(self, limit: float) -> Self:
        """Remove the smallest planes, up to a norm of `limit` of all removed planes; each class keeps at least one.

        Averaging starts again: averages over planes before and after pruning had larger errors than the last planes.
        """
        coef, intercept = self.input_planes(1.0)
        offset = intercept + coef @ self.scaling.centre
        square = (coef.astype(float) ** 2).sum(axis=1) / self.scaling.factor**2 + offset.astype(float) ** 2
        left, keep, budget = self.counts.copy(), np.ones(self.n_planes, dtype=bool), limit**2
        for k in np.argsort(square, kind="stable"):
            if left[self.owner[k]] == 1:
                continue
            budget -= square[k]
            if budget < 0:
                break
            left[self.owner[k]] -= 1
            keep[k] = False
        if keep.all():
            return self
        return replace(self._with_columns(np.flatnonzero(keep), len(self.owner)), mean=None, n_averaged=0)

    def _with_columns(self, kept: np.ndarray, n_columns: int) -> Self:
        """The state with only the columns `kept`, in new arrays of `n_columns`."""

        def moved(array: np.ndarray, fill: int = 0) -> np.ndarray:
            wide = np.full((*array.shape[:-1], n_columns), fill, dtype=array.dtype)
            wide[..., : len(kept)] = array[..., kept]
            return wide

        owner, rows = moved(self.owner, -1), self.rows
        if rows is not None:
            places = np.full(len(self.owner) + 1, -1)  # the last entry is for rows without a plane, -1
            places[kept] = np.arange(len(kept))
            rows = replace(rows, columns=places[rows.columns])
        counts = np.bincount(owner[: len(kept)], minlength=len(self.counts))
        coef, intercept, shift = moved(self.coef), moved(self.intercept), moved(self.shift)
        return replace(self, coef=coef, intercept=intercept, shift=shift, owner=owner, counts=counts, rows=rows)

    def assigned_anew(self, data: Data, add_zero_planes: bool) -> Self:
        """Assign to each row the best plane of its class, which may be a new zero plane."""
        coef, intercept = self.input_planes(1.0)
        state, columns = self, np.full(len(data.y), -1)
        for c in range(data.n_classes):
            rows, own = np.flatnonzero(data.y == c), np.flatnonzero(self.owner == c)
            if not len(rows) or not (len(own) or add_zero_planes):
                continue
            # The first of the best planes is assigned: the zero plane if no other score is positive.
            n_zero = int(add_zero_planes)
            planes = np.pad(coef[own], ((n_zero, 0), (0, 0))), np.pad(intercept[own], (n_zero, 0))
            winners = PlaneSet(*planes, np.array([0, len(own) + n_zero])).winners(data.X[rows])
            if add_zero_planes:
                own = np.concatenate([[state.n_planes], own])
                state = state if winners.all() else state._with_zero_plane(c)
            columns[rows] = own[winners]
        return replace(state, rows=Assignments(columns))

    def _with_zero_plane(self, c: int) -> Self:
        state = self.with_room()
        column = state.n_planes
        state.owner[column] = c
        state.counts[c] += 1
        return state.with_new_planes(np.array([-1]))
