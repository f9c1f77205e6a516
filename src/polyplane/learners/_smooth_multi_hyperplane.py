"""The multi-hyperplane machine with the log-loss: mini-batches and Adam."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from polyplane._array_api import astype, like, namespace, take_rows, widest_float, within_device_memory
from polyplane._threads import blas_threads
from polyplane.engine.data import Data
from polyplane.engine.kinds import Array, CommonScaling, MixedNumber, Seed
from polyplane.engine.state import State, workspace
from polyplane.learners._contested import ContestedPass, ContestedRows
from polyplane.learners._epochs import BackoffState, EpochSampler, Schedule
from polyplane.learners._log_loss import USUAL_BATCH, Adam, AdamPass, Pace, decay, stretch
from polyplane.learners._one_plane import OnePlanePerClass
from polyplane.learners._tangent import Tangents
from polyplane.learners._tangent_method import TangentMethod
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: A row whose class has this probability has a sufficient margin: it hardly changes the planes.
AMPLE = 0.99
#: Minimum number of steps per pass with larger batches than usual: fewer steps would train too slowly.
STEPS_PER_PASS = 64

_WEIGHTS = Array("f", "classes", "planes", "features+1", mixed=True)


@dataclass(frozen=True, eq=False)
class SmoothState(State):
    """The state of training with the log-loss. Its arrays are on the device of the rows."""

    W: Annotated[Any, _WEIGHTS]  # the planes over scaled rows
    adam: Adam
    tangents: Tangents  # the initial planes
    scaling: CommonScaling
    seed: Seed
    epoch: int = 0
    turn: int = 0  # epochs of the current schedule
    loss: MixedNumber = np.inf
    mean: Annotated[Any, _WEIGHTS] | None = None  # average over the last steps
    n_averaged: int = 0
    is_minimum: bool = False  # whether the minimum of the convex problem is reached
    rows: BackoffState | None = None
    workspace: EpochSampler | OnePlanePerClass | None = workspace()

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.tangents.mask.sum())


@dataclass(frozen=True)
class SmoothMultiHyperplane(TangentMethod[SmoothState]):
    """Training with the log-loss; the score of a class is the log-sum-exp of the scores of its planes."""

    alpha: float = 0.0
    noise: float | None = None
    batch_size: int = USUAL_BATCH

    state = SmoothState
    adjustable = TangentMethod.adjustable | {"alpha", "noise", "batch_size"}

    @property
    def trial(self) -> SmoothMultiHyperplane:
        """The method for comparing numbers of planes, with defaults for the other parameters."""
        return type(self)(scale=self.scale, noise=self.noise, backoff=self.backoff)

    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> SmoothState:
        """The state before the first step, from given planes."""
        W = tangents.planes()
        xp = namespace(W)
        return SmoothState(W, Adam(xp.zeros_like(W), xp.zeros_like(W)), tangents, scaling, seed)

    def prepare(self, state: SmoothState, data: Data) -> SmoothState:
        """Add the memory of the rows and the random orders, or the convex problem."""
        if self._is_convex(state, data):
            return replace(state, rows=None, workspace=OnePlanePerClass(data, state.scaling))
        noise = self.noise_level(state) > 0
        sampler = EpochSampler(data, self.shuffle, noise)
        if self.backoff and isinstance(data.X, np.ndarray):
            sampler = ContestedRows(data, self.shuffle, noise, state.tangents.mask.size)
        return replace(state, rows=self._backoff_state(state, data), workspace=sampler)

    def _is_convex(self, state: SmoothState, data: Data) -> bool:
        """Whether training is the convex problem of one plane per class, on rows in memory."""
        return self.is_convex(state.W.shape[1]) and not (data.stream or data.is_part)

    def is_convex(self, most_planes: int) -> bool:
        """Whether the problem is convex with at most `most_planes` per class; the seed then has no effect."""
        return most_planes == 1 and not (self.alpha or self.noise)

    def converged(self, state: SmoothState) -> bool:
        """Whether the minimum of the convex problem is reached."""
        return state.is_minimum

    def step(self, state: SmoothState, data: Data) -> SmoothState:
        """One pass over the rows."""
        problem = state.workspace
        if isinstance(problem, OnePlanePerClass):
            with self.products(state), within_device_memory("Train on fewer rows at a time with partial_fit."):
                found = problem.improve(state.W)
            return replace(state, **found._asdict(), mean=None, n_averaged=0, epoch=state.epoch + 1, turn=0)
        return self._pass(state, data)

    def _pass(self, state: SmoothState, data: Data) -> SmoothState:
        """One pass over the rows in mini-batches."""
        clocks, sampler = state.rows, state.workspace
        assert clocks is not None
        assert isinstance(sampler, EpochSampler)
        schedule = Schedule.of(self.max_iter, state, data)
        drawn = sampler.draw(state.seed, state.epoch, more=schedule.next_turn > 0)
        rows = clocks.visited(like(drawn.order, sampler.y))
        size = min(self.batch_size, max(USUAL_BATCH, rows.shape[0] // STEPS_PER_PASS))
        paces, averaged_from = self._paces(state, schedule, rows.shape[0], size)
        state = replace(state, mean=_mean_to_add_to(state, averaged_from, len(paces)))
        advice = f"Use a smaller batch_size than {self.batch_size}, or fewer rows at a time with partial_fit."
        with self.products(state), within_device_memory(advice):
            the_pass = self._prepared_pass(state, data, size)
            inputs = [rows]
            if drawn.noise is not None:
                the_pass.noise = like(drawn.noise, state.W)
                the_pass.noise *= self.noise_level(state) * state.tangents.margin
                inputs.append(like(drawn.noise_rows, sampler.y)[: rows.shape[0]])
            probability = the_pass.run(inputs, size, paces, averaged_from)
            loss = _log_loss(take_rows(sampler.weight, rows), probability)
            if self.backoff:
                clocks.note(rows, probability > AMPLE, self.backoff)
        return replace(
            state,
            epoch=state.epoch + 1,
            turn=schedule.next_turn,
            loss=loss / sampler.total_weight,
            is_minimum=False,
            adam=replace(state.adam, t=state.adam.t + len(paces)),
            n_averaged=int(paces[-1].n_averaged) if averaged_from < len(paces) else state.n_averaged,
        )

    def _prepared_pass(self, state: SmoothState, data: Data, size: int) -> AdamPass | ContestedPass:
        sampler = state.workspace
        assert isinstance(sampler, EpochSampler)
        anchor = state.tangents.planes() if self.alpha else None
        needed = (
            data.X, sampler.y, sampler.weight, state.scaling, state.W, state.adam, state.mean, anchor, decay(size),
        )  # fmt: skip
        if not isinstance(sampler, ContestedRows):
            return AdamPass(*needed)
        renew, sampler.is_new = sampler.is_renewed(state.turn, data), False
        return ContestedPass(*needed, contenders=sampler.contenders, renew=renew)

    def noise_level(self, state: SmoothState) -> float:
        """The standard deviation of the noise, relative to the margin of the start."""
        if self.noise is not None:
            return self.noise
        _, n_planes, n_features = state.tangents.centres.shape
        return 0.2 * max(0.0, 1.0 - 2.0 / n_features) if n_planes > 1 else 0.0

    def _paces(self, state: SmoothState, schedule: Schedule, n_rows: int, size: int) -> tuple[list[Pace], int]:
        """The settings of each step, and the first step after which planes are averaged."""
        unit = state.tangents.step / (state.W.shape[2] - 1) ** 0.5
        b1, b2 = decay(size)
        paces: list[Pace] = []
        averaged_from, t, n_averaged = 0, state.adam.t, state.n_averaged if state.mean is not None else 0
        for first in range(0, n_rows, size):
            fraction = first / n_rows
            t += 1
            rate = self.eta0 * stretch(size) * schedule.rate(fraction)
            if schedule.averages(fraction, self.average_fraction):
                n_averaged = min(n_averaged + 1, schedule.window)
            else:
                averaged_from, n_averaged = len(paces) + 1, 0
            corrected = rate * unit * (1 - b2**t) ** 0.5 / (1 - b1**t)
            paces.append(Pace(corrected, min(1.0, rate * self.alpha), float(n_averaged)))
        return paces, averaged_from

    def products(self, state: SmoothState) -> AbstractContextManager[Any]:
        """Set the number of threads of the matrix products of training."""
        return blas_threads(self.batch_size * state.W.size) if namespace(state.W) is np else nullcontext()

    def planes(self, state: SmoothState) -> PlaneSet:
        """The model in a state, over the rows of X."""
        W = state.W if state.mean is None else state.mean
        own = (take_rows(W[c, :, :], np.flatnonzero(mask)) for c, mask in enumerate(state.tangents.mask))
        return PlaneSet.of_classes(state.scaling.to_input_space(planes[:, :-1], planes[:, -1]) for planes in own)

    @property
    def takes_device_arrays(self) -> bool:
        """Training consists of matrix products."""
        return True


def _mean_to_add_to(state: SmoothState, averaged_from: int, n_steps: int) -> Any:
    """The average to update in a pass: a new one if averaging starts in this pass, or None if it has not started."""
    if n_steps == 0 or (state.mean is not None and averaged_from == 0):
        return state.mean
    return None if averaged_from == n_steps else namespace(state.W).zeros_like(state.W)


def _log_loss(weight: Any, probability: Any) -> float:
    xp = namespace(probability)
    return -float(xp.sum(astype(weight * xp.log(probability), widest_float(probability))))
