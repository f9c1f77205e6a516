"""`TangentMethod`: start, schedule and figures shared by multi-hyperplane methods of any loss."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from polyplane._array_api import within_device_memory
from polyplane.engine.data import Data
from polyplane.engine.feature_ranges import OwnScaling
from polyplane.engine.method import Method
from polyplane.learners._epochs import BackoffState
from polyplane.learners._select_n_planes import select_n_planes
from polyplane.learners._tangent import Tangents, tangent_start
from polyplane.scaling import AffineScaling

S = TypeVar("S", bound=Any)


@dataclass(frozen=True)
class TangentMethod(Method[S]):
    """Training from the tangent planes at the k-means centres of each class, with step sizes that decrease to 0."""

    n_planes: int | tuple[int, ...] | None = None  # of each class, the same for all or class by class; None: chosen
    scale: float = 2.5
    eta0: float = 0.3
    backoff: int = 31
    max_iter: int = 60
    average_fraction: float = 0.2  # the last part of the passes, whose planes are averaged
    shuffle: bool = True

    adjustable = frozenset({"eta0", "backoff", "max_iter", "average_fraction", "shuffle"})
    mixable = True

    @property
    def own_scaling(self) -> OwnScaling:
        """Rows are centred, and multiplied by a common factor."""
        return "common"

    @property
    @abstractmethod
    def trial(self) -> Any:
        """The method for comparing numbers of planes."""

    def products(self, state: S) -> AbstractContextManager[Any]:
        """Set the number of threads of the matrix products of training."""
        return nullcontext()

    @abstractmethod
    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> S:
        """The state before the first step, from given planes."""

    def start(self, data: Data, seed: int) -> S:
        """The state before the first step."""
        with within_device_memory("Train on fewer rows at a time with partial_fit."):
            scaling = AffineScaling.common(data.X, data.training_weight)
            n_planes = self._planes_per_class(data, scaling, seed)
            return self.begin(tangent_start(data, n_planes, scaling, self.scale, seed), scaling, seed)

    def settled(self, data: Data, seed: int) -> Self:
        """The same with the number of planes chosen."""
        if self.n_planes is not None:
            return self
        chosen = self._planes_per_class(data, AffineScaling.common(data.X, data.training_weight), seed)
        return replace(self, n_planes=tuple(chosen.tolist()))

    def _planes_per_class(self, data: Data, scaling: AffineScaling, seed: int) -> np.ndarray:
        if self.n_planes is None:
            return select_n_planes(data, scaling, self.trial, seed)
        if isinstance(self.n_planes, tuple):
            return np.array(self.n_planes)
        n_rows = data.class_counts
        if (n_rows < self.n_planes).any() and not data.stream:
            few = int(n_rows.argmin())
            warnings.warn(
                f"n_planes={self.n_planes} is more than the {n_rows[few]} rows of class {few} (counted from 0 in the "
                "order of the labels); such a class gets one plane per row.",
                UserWarning,
                stacklevel=8,
            )
        return np.clip(n_rows, 1, self.n_planes)

    def _backoff_state(self, state: S, data: Data) -> BackoffState:
        """The back-off state; when a schedule starts, steps are large again, so no row is skipped."""
        return BackoffState.fresh(data) if state.rows is None or state.turn == 0 else state.rows

    def figures(self, state: S) -> Mapping[str, float]:
        """The mean loss over the visits of the last epoch, and the number of planes."""
        return {"loss": state.loss, "planes": state.n_planes}

    def monitored(self, state: S) -> float:
        """The loss."""
        return state.loss
