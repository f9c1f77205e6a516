"""Training of the members of a committee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.data import Data
from polyplane.engine.progress import Progress
from polyplane.learners._select_n_planes import select_n_planes
from polyplane.learners._smooth_multi_hyperplane import SmoothMultiHyperplane
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling
from polyplane.tables._training import Trained, train


@dataclass(frozen=True)
class Machine:
    """One member to train.

    Parameters
    ----------
    data : Data
        Prepared rows.
    n_planes : int or None
        Number of planes per class. If None, chosen on held-out rows.
    noise : float or None
        As in `MultiHyperplaneClassifier`.
    max_iter : int
        Number of passes over the rows.
    seed : int
        Seed of centres, row orders and noise.
    """

    data: Data
    n_planes: np.ndarray | int | None
    noise: float | None
    max_iter: int
    seed: int

    @property
    def method(self) -> SmoothMultiHyperplane:
        """Return the training method."""
        return SmoothMultiHyperplane(noise=self.noise, max_iter=self.max_iter)

    @property
    def scaling(self) -> AffineScaling:
        """Scaling of the rows in training."""
        return AffineScaling.common(self.data.X, self.data.training_weight)

    @property
    def is_convex(self) -> bool:
        """Whether the result does not depend on the seed."""
        return self.method.is_convex(int(np.asarray(self.n_planes).max()))

    def with_planes(self) -> Machine:
        """Return a copy with the number of planes of each class chosen."""
        if self.n_planes is None:
            trial = SmoothMultiHyperplane(noise=self.noise)
            return replace(self, n_planes=select_n_planes(self.data, self.scaling, trial, self.seed, _planes))
        most = np.maximum(self.data.class_counts, 1)
        return replace(self, n_planes=np.minimum(most, self.n_planes))


def _planes(
    trial: SmoothMultiHyperplane, data: Data, n_planes: np.ndarray, scaling: AffineScaling, seed: int
) -> PlaneSet:
    return train(trial, data, n_planes, scaling, seed).planes


def train_members(machines: Sequence[Machine], n_jobs: int | None = None, verbose: int = 0) -> list[Trained]:
    """Train members; the result does not depend on `n_jobs`.

    Parameters
    ----------
    machines : sequence of Machine
        The members to train. They may share their rows.
    n_jobs : int or None, default=None
        Number of threads.
    verbose : int, default=0
        Whether to show progress.
    """

    def train_one(number: int) -> Trained:
        machine = machines[number].with_planes()
        method, n_planes = machine.method, np.asarray(machine.n_planes)
        parts = machine.data, n_planes, machine.scaling, machine.seed
        if not verbose:
            return train(method, *parts)
        progress = Progress(f"TableClassifier, member {number + 1} of {len(machines)}", method.max_iter)
        progress.begin()
        try:
            return train(method, *parts, lambda done, loss: progress.update(done, {"loss": loss}))
        finally:
            progress.end()

    return in_threads(train_one, range(len(machines)), 1 if verbose else n_jobs)
