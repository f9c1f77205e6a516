"""Code shared by the methods that are trained with the margin loss, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from polyplane.engine.data import Data
from polyplane.engine.kinds import Array, CommonScaling, MixedNumber, Seed
from polyplane.engine.state import State
from polyplane.learners._epochs import update_mean
from polyplane.learners._scaled_rows import ScaledRows
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: Planes are averaged this many times in an epoch.
CHECKS_PER_EPOCH = 8

_BY_COLUMN = Array("f", "columns", mixed=True)


@dataclass(frozen=True, eq=False)
class PlaneColumns(State):
    """Planes over scaled rows, one per column, as in the kernels; see `polyplane.kernels.rows`."""

    coef: Annotated[np.ndarray, Array("f", "features", "columns", mixed=True)]
    intercept: Annotated[np.ndarray, _BY_COLUMN]
    shift: Annotated[np.ndarray, _BY_COLUMN]
    owner: Annotated[np.ndarray, Array("i", "columns", below="classes")]  # class of each column, -1: still free
    counts: Annotated[np.ndarray, Array("i", "classes")]  # planes of each class
    scaling: CommonScaling
    seed: Seed
    epoch: int = 0
    turn: int = 0  # epochs of the current schedule
    loss: MixedNumber = np.inf
    #: The average of the last planes, over the rows of X.
    mean: (
        tuple[
            Annotated[np.ndarray, Array("f", "planes", "features", mixed=True)],
            Annotated[np.ndarray, Array("f", "planes", mixed=True)],
        ]
        | None
    ) = None
    n_averaged: int = 0

    def check(self, sizes: dict[str, int]) -> bool:
        """The first columns belong to classes, in agreement with `counts`; the others are free."""
        counts, n_columns = self.counts, len(self.owner)
        if (counts < 0).any() or (counts > n_columns).any() or counts.sum() > n_columns:
            return False
        owner, free = np.split(self.owner, [self.n_planes])
        averaged = self.mean is None or len(self.mean[1]) == self.n_planes
        owned = (owner >= 0).all() and np.array_equal(np.bincount(owner, minlength=len(counts)), counts)
        return bool(averaged and owned and (free == -1).all())

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.counts.sum())

    def input_planes(self, factor: float) -> tuple[np.ndarray, np.ndarray]:
        """Normals and offsets of the planes over the rows of X: `factor` times the stored arrays."""
        coef = self.coef[:, : self.n_planes].T - np.multiply.outer(self.shift[: self.n_planes], self.scaling.centre)
        return coef * factor, self.intercept[: self.n_planes] * factor

    def averaged(self, factor: float, window: int) -> Self:
        """The state with the current planes included in the average."""
        now = self.input_planes(factor)
        if self.mean is None:
            return replace(self, mean=now, n_averaged=1)
        n_averaged = min(self.n_averaged + 1, window)
        for mean, new in zip(self.mean, now, strict=True):
            update_mean(mean, new, n_averaged)
        return replace(self, n_averaged=n_averaged)

    def plane_set(self, factor: float) -> PlaneSet:
        """The model; a class without planes owns the zero plane."""
        coef, intercept = self.mean or self.input_planes(factor)
        owner = self.owner[: self.n_planes]
        zero = (np.zeros_like(coef, shape=(1, coef.shape[1])), np.zeros_like(intercept, shape=1))
        own = ((coef[owner == c], intercept[owner == c]) for c in range(len(self.counts)))
        return PlaneSet.of_classes(planes if len(planes[0]) else zero for planes in own)


class KernelRows:
    """The rows as arguments of the kernels, computed once."""

    def __init__(self, data: Data, scaling: AffineScaling) -> None:
        from polyplane.kernels.multi_hyperplane import Targets
        from polyplane.kernels.rows import CentredRows, as_rows

        centre = scaling.centre
        along = np.asarray(data.X @ centre).ravel()
        self.X = CentredRows(as_rows(data.X), along, float(centre @ centre), scaling.factor)
        self.targets = Targets(data.y, data.weight)
        self._scaled = ScaledRows(data.X, np.arange(len(data.y)), scaling)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The norms of the scaled rows, including a constant feature of 1."""
        lengths: np.ndarray = np.sqrt(self._scaled.square_norms().astype(np.float64) + 1.0)
        return lengths


def pieces(order: np.ndarray, length: int) -> Iterator[np.ndarray]:
    """Split an order into parts of a given length."""
    for first in range(0, len(order), length):
        yield order[first : first + length]


def plane_sums(state: PlaneColumns) -> Any:
    """The planes as an argument of the kernels, which update them in place."""
    from polyplane.kernels.rows import PlaneSums

    return PlaneSums(state.coef, state.intercept, 1.0, state.shift)
