"""Training of committee members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.data import Data
from polyplane.engine.run import Progress
from polyplane.learners.tangents import run_from_tangents
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling
from polyplane.tables._member_method import MemberMethod


@dataclass(frozen=True)
class Machine:
    """One member to train.

    Parameters
    ----------
    data : Data
        The prepared rows.
    n_planes : int or None
        Number of planes per class; None: selected on held-out rows.
    noise : float or None
        As in `MultiHyperplaneClassifier`.
    max_iter : int
        Number of passes over the rows.
    seed : int
        Seed of the centres, the order of the rows and the noise.
    """

    data: Data
    n_planes: np.ndarray | int | None
    noise: float | None
    max_iter: int
    seed: int

    @property
    def method(self) -> MemberMethod:
        """The training method."""
        n_planes = None if self.n_planes is None else tuple(np.asarray(self.n_planes).tolist())
        return MemberMethod(n_planes=n_planes, noise=self.noise, max_iter=self.max_iter)

    @property
    def scaling(self) -> AffineScaling:
        """The scaling of the rows in training."""
        return AffineScaling.common(self.data.X, self.data.training_weight)

    @property
    def is_convex(self) -> bool:
        """Whether the result does not depend on the seed."""
        return self.method.is_convex(int(np.asarray(self.n_planes).max()))

    def with_planes(self) -> Machine:
        """The member with a number of planes for each class."""
        if self.n_planes is None:
            return replace(self, n_planes=np.array(self.method.settled(self.data, self.seed).n_planes))
        most = np.maximum(self.data.class_counts, 1)
        return replace(self, n_planes=np.minimum(most, self.n_planes))


class Trained(NamedTuple):
    """A trained member: its planes over the prepared rows, and the number of passes."""

    planes: PlaneSet
    n_iter: int


def train_members(machines: Sequence[Machine], n_jobs: int | None = None, verbose: int = 0) -> list[Trained]:
    """Train members; the result does not depend on `n_jobs`.

    Parameters
    ----------
    machines : sequence of Machine
        The members to train. Several may share their rows.
    n_jobs : int or None, default=None
        Number of threads.
    verbose : int, default=0
        Whether to show progress.
    """

    def train(number: int) -> Trained:
        machine = machines[number].with_planes()
        title = f"TableClassifier, member {number + 1} of {len(machines)}"
        observers = [Progress(title, machine.max_iter)] if verbose else []
        start = np.asarray(machine.n_planes), machine.scaling, machine.seed
        run = run_from_tangents(machine.method, machine.data, *start, observers)
        return Trained(run.method.planes(run.state), run.n_steps)

    return in_threads(train, range(len(machines)), 1 if verbose else n_jobs)
