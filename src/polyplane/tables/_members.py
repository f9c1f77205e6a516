"""Training of committee members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.data import Data
from polyplane.learners.log_loss import NOISE, USUAL_BATCH, CandidatePass, CandidatePlanes, decay
from polyplane.learners.multi_hyperplane import AMPLE, SmoothMultiHyperplane, SmoothState
from polyplane.learners.tangents import Schedule, run_from_tangents
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling


@dataclass(frozen=True)
class MemberMethod(SmoothMultiHyperplane):
    """`SmoothMultiHyperplane` for dense rows in memory and runs that are never resumed.

    `TableClassifier.fit` makes dozens of short runs on a few hundred rows each, so what a pass costs apart from its
    steps matters: a run has one random number generator, draws its noise once and keeps the arrays of its passes.
    """

    def _prepared(self, state: SmoothState, data: Data) -> SmoothState:
        """Add what the passes of a run share."""
        if self._is_convex(state, data):
            return super()._prepared(state, data)
        return state.replace(rows=self._backoff_state(state, data), workspace=MemberRows(self, state, data))

    def _pass(self, state: SmoothState, data: Data) -> SmoothState:
        """One pass over the rows by mini-batches."""
        clocks, rows = state.rows, state.workspace
        assert clocks is not None
        assert isinstance(rows, MemberRows)
        schedule = Schedule.of(self.max_iter, state, data)
        visited = clocks.visited(rows.rng.permutation(data.train))
        paces, averaged_from = self._paces(state, schedule, len(visited), USUAL_BATCH)
        one_pass, inputs = rows.one_pass, [visited]
        if one_pass.noise is not None:
            inputs.append(rows.rng.integers(0, NOISE, len(visited)))
        one_pass.renew = rows.is_renewed(state.turn, data)
        with self.products(state) if one_pass.renew else nullcontext():
            probability = one_pass.run(inputs, USUAL_BATCH, paces, averaged_from)
        rows.probability = probability
        clocks.note(visited, probability > AMPLE, self.backoff)
        has_mean = averaged_from < len(paces)
        return state.replace(
            epoch=state.epoch + 1,
            turn=schedule.next_turn,
            adam=state.adam.replace(t=state.adam.t + len(paces)),
            mean=one_pass.mean if has_mean else state.mean,
            n_averaged=int(paces[-1].n_averaged) if has_mean else state.n_averaged,
        )

    def metrics(self, state: SmoothState) -> Mapping[str, float]:
        """The mean log-loss met in the last pass: computed only if somebody asks for it."""
        rows = state.workspace
        return {"loss": rows.loss if isinstance(rows, MemberRows) else state.loss}


class MemberRows(CandidatePlanes):
    """What the passes of a run share: the generator, the noise and the arrays of the kernel."""

    def __init__(self, method: MemberMethod, state: SmoothState, data: Data) -> None:
        level = method.noise_level(state) * state.tangents.margin
        super().__init__(data, method.shuffle, level > 0, state.tangents.mask.size)
        self.n_rows, self.probability = len(data.train), np.empty(0)  # of the class of each visited row
        self.is_new = False  # the first pass of a schedule finds the candidates
        W, noise = state.W, None
        self.rng = np.random.default_rng(state.seed)
        if level > 0:
            noise = self.rng.standard_normal(NOISE + W.shape[2] - 1, dtype=W.dtype.type)
            noise *= level
        self.one_pass = CandidatePass(
            data.X, data.y, data.weight, state.scaling, W, state.adam, np.zeros_like(W), None, decay(USUAL_BATCH),
            noise=noise, candidates=self.candidates, renew=not self.all_are_candidates,
        )  # fmt: skip

    @property
    def loss(self) -> float:
        """The log-losses met in the last pass, over the number of rows."""
        return float(-np.log(self.probability).sum()) / self.n_rows


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


def train_members(machines: Sequence[Machine], n_jobs: int | None = None) -> list[PlaneSet]:
    """Train members, and return their planes; the result does not depend on `n_jobs`.

    Parameters
    ----------
    machines : sequence of Machine
        The members to train. Several may share their rows.
    n_jobs : int or None, default=None
        Number of threads.
    """

    def train(machine: Machine) -> PlaneSet:
        machine = machine.with_planes()
        run = run_from_tangents(
            machine.method, machine.data, np.asarray(machine.n_planes), machine.scaling, machine.seed
        )
        return run.method.planes(run.state)

    return in_threads(train, machines, n_jobs)
