"""The multi-hyperplane machine from a tangent start, by the log-loss or the margin loss."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from polyplane._array_api import (
    astype,
    blas_threads,
    host_dtype,
    is_foreign,
    kind_of,
    like,
    namespace,
    put,
    softmax,
    take_rows,
    widest_float,
    within_device_memory,
)
from polyplane._prediction import check_fitted_matrix
from polyplane.base import Declaration, EpochParameters, PlaneClassifier
from polyplane.engine.committee import Committee, CommitteeState
from polyplane.engine.data import AffineScaling, Data, ScaledRows, as_rows
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Array, CommonScaling, MixedNumber, Seed, State, workspace
from polyplane.learners.log_loss import (
    MOST_COPIED,
    USUAL_BATCH,
    Adam,
    AdamPass,
    CandidatePass,
    CandidatePlanes,
    OnePlanePerClass,
    StepSettings,
    decay,
    put_in_order,
    stretch,
)
from polyplane.learners.monotone import ranks_of
from polyplane.learners.tangents import (
    ADJUSTABLE,
    USUAL_STEP,
    BackoffState,
    EpochSampler,
    Schedule,
    SkippedRows,
    TangentMethod,
    Tangents,
    choose_n_planes,
    update_mean,
)
from polyplane.planes import PlaneSet

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
    eta0: float = USUAL_STEP  # the initial step size, chosen with the number of planes
    label_noise: float = 0.0  # the part of the labels that is taken for random, chosen likewise
    rows: BackoffState | None = None
    workspace: Any = workspace()  # an `EpochSampler`, a `OnePlanePerClass`, or the rows of a member of a table

    own_sizes: ClassVar[tuple[str, ...]] = ("planes",)

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.tangents.mask.sum())

    @property
    def missed(self) -> float:
        """The part of the gradient that belongs to planes that are not candidates, when last measured."""
        return self.workspace.missed if isinstance(self.workspace, CandidatePlanes) else 0.0


@dataclass(frozen=True)
class SmoothMultiHyperplane(TangentMethod[SmoothState]):
    """Training with the log-loss; the score of a class is the log-sum-exp of the scores of its planes."""

    alpha: float = 0.0
    noise: float | None = None
    label_noise: float | None = None  # None: chosen with the number of planes, or 0
    batch_size: int = USUAL_BATCH
    penalty: float = 1.0  # relative strength of the penalty of one plane per class

    traits = Traits(
        SmoothState,
        ADJUSTABLE | {"alpha", "noise", "batch_size"},
        mixable=True,
        takes_device_arrays=True,
        own_scaling="common",
    )

    @property
    def trial(self) -> SmoothMultiHyperplane:
        """The method for comparing numbers of planes, with defaults for the other parameters."""
        return type(self)(scale=self.scale, noise=self.noise, backoff=self.backoff)

    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> SmoothState:
        """The state before the first step, from given planes."""
        W = tangents.planes()
        xp = namespace(W)
        adam, doubt = Adam(xp.zeros_like(W), xp.zeros_like(W)), self.label_noise or 0.0
        return SmoothState(W, adam, tangents, scaling, seed, eta0=self.step_size, label_noise=doubt)

    def _backoff_state(self, state: SmoothState, data: Data) -> BackoffState:
        """The back-off state; when a schedule starts, steps are large again, so no row is skipped."""
        if state.rows is not None and state.turn > 0:
            return state.rows
        skip = like(np.zeros(len(data.y), dtype=np.uint8), kind_of(data.X))
        trust = like(np.ones(len(data.y), dtype=host_dtype(state.W)), state.W) if state.label_noise else None
        return BackoffState(skip, trust=trust)

    def _prepared(self, state: SmoothState, data: Data) -> SmoothState:
        """Add the memory of the rows and the random orders, or the convex problem."""
        if self._is_convex(state, data):
            workspace = OnePlanePerClass(data, state.scaling, self.penalty)
            return replace(state, rows=None, is_minimum=False, workspace=workspace)
        noise = self.noise_level(state) > 0
        sampler = EpochSampler(data, self.shuffle, noise)
        if self.backoff and isinstance(data.X, np.ndarray):
            sampler = CandidatePlanes(data, self.shuffle, noise, state.tangents.mask.size)
        return replace(state, rows=self._backoff_state(state, data), workspace=sampler)

    def _is_convex(self, state: SmoothState, data: Data) -> bool:
        """Whether training is the convex problem of one plane per class, on rows in memory."""
        return self.is_convex(state.W.shape[1]) and not (data.stream or data.is_part) and data.ranks is None

    def is_convex(self, most_planes: int) -> bool:
        """Whether the problem is convex with at most `most_planes` per class; the seed then has no effect."""
        return most_planes == 1 and not (self.alpha or self.noise)

    def done(self, state: SmoothState) -> bool | float:
        """Whether the minimum of the convex problem is reached; otherwise the loss."""
        return (state.is_minimum and state.workspace is not None) or state.loss

    def step(self, state: SmoothState, data: Data) -> SmoothState:
        """One pass over the rows."""
        if state.workspace is None:
            state = self._prepared(state, data)
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
        rows, factor = clocks.visited(like(drawn.order, sampler.y), like(drawn.chance, sampler.weight))
        size = min(self.batch_size, max(USUAL_BATCH, rows.shape[0] // STEPS_PER_PASS))
        paces, averaged_from = self.paces(state, schedule, rows.shape[0], size)
        state = replace(state, mean=_mean_to_add_to(state, averaged_from, len(paces)))
        advice = f"Use a smaller batch_size than {self.batch_size}, or fewer rows at a time with partial_fit."
        with self.products(state), within_device_memory(advice):
            the_pass = self._prepared_pass(state, data, size)
            the_pass.weight[...] = astype(sampler.weight * factor, sampler.weight.dtype)
            inputs = [rows]
            if drawn.noise is not None:
                if the_pass.noise is None:
                    the_pass.noise = like(np.empty_like(drawn.noise), state.W)
                the_pass.noise[...] = like(drawn.noise, state.W)
                the_pass.noise *= self.noise_level(state) * state.tangents.margin
                inputs.append(like(drawn.noise_rows, sampler.y)[: rows.shape[0]])
            probability = the_pass.run(inputs, size, paces, averaged_from)
            weight = take_rows(the_pass.weight, rows)
            losses = weight * namespace(probability).log(probability)
            loss = -float(namespace(losses).sum(astype(losses, widest_float(losses))))
            if self.backoff:
                clocks = clocks.noted(rows, weight, probability, self.backoff)
            if clocks.trust is not None:
                put(clocks.trust, rows, probability / (probability + self.doubt(state)))
        if data.ranks is not None:
            put_in_order(data.ranks, state.W, state.mean)  # means are rounded
        return replace(
            state,
            rows=clocks,
            epoch=state.epoch + 1,
            turn=schedule.next_turn,
            loss=loss / sampler.total_weight,
            is_minimum=False,
            adam=replace(state.adam, t=state.adam.t + len(paces)),
            n_averaged=int(paces[-1].n_averaged) if averaged_from < len(paces) else state.n_averaged,
        )

    def _prepared_pass(self, state: SmoothState, data: Data, size: int) -> AdamPass | CandidatePass:
        sampler = state.workspace
        assert isinstance(sampler, EpochSampler)
        known = sampler.last_pass
        if known is not None and known.W is state.W and known.mean is state.mean and known.decay == decay(size):
            return known  # with its recorded steps
        anchor = state.tangents.planes() if self.alpha else None
        weight = namespace(sampler.weight).zeros_like(sampler.weight)
        needed = (
            data.X, sampler.y, weight, state.scaling, state.W, state.adam, state.mean, anchor, decay(size),
        )  # fmt: skip
        if not isinstance(sampler, CandidatePlanes):
            sampler.last_pass = AdamPass(*needed, ranks=data.ranks)
            return sampler.last_pass
        renew = sampler.is_renewed(state.turn, data)
        return CandidatePass(*needed, planes=sampler, turn=state.turn, renew=renew, ranks=data.ranks)

    def noise_level(self, state: SmoothState) -> float:
        """The standard deviation of the noise, relative to the margin of the start."""
        if self.noise is not None:
            return self.noise
        _, n_planes, n_features = state.tangents.centres.shape
        return 0.2 * max(0.0, 1.0 - 2.0 / n_features) if n_planes > 1 else 0.0

    def doubt(self, state: SmoothState) -> float:
        """The odds of a random label that is that of a given row, with the part of random labels that is assumed."""
        return state.label_noise / (state.W.shape[0] * (1.0 - state.label_noise))

    def paces(self, state: SmoothState, schedule: Schedule, n_rows: int, size: int) -> tuple[list[StepSettings], int]:
        """The settings of each step, and the first step after which planes are averaged."""
        unit = state.tangents.step / (state.W.shape[2] - 1) ** 0.5
        eta0 = state.eta0 if self.eta0 is None else self.eta0
        b1, b2 = decay(size)
        paces: list[StepSettings] = []
        averaged_from, t, n_averaged = 0, state.adam.t, state.n_averaged if state.mean is not None else 0
        for first in range(0, n_rows, size):
            fraction = first / n_rows
            t += 1
            rate = eta0 * stretch(size) * schedule.rate(fraction)
            if schedule.averages(fraction, self.average_fraction):
                n_averaged = min(n_averaged + 1, schedule.window)
            else:
                averaged_from, n_averaged = len(paces) + 1, 0
            corrected = rate * unit * (1 - b2**t) ** 0.5 / (1 - b1**t)
            paces.append(StepSettings(corrected, min(1.0, rate * self.alpha), float(n_averaged)))
        return paces, averaged_from

    def products(self, state: SmoothState) -> AbstractContextManager[Any]:
        """Set the number of threads of the matrix products of training."""
        return blas_threads(self.batch_size * state.W.size) if namespace(state.W) is np else nullcontext()

    def planes(self, state: SmoothState) -> PlaneSet:
        """The model in a state, over the rows of X."""
        W = state.W if state.mean is None else state.mean
        own = (take_rows(W[c, :, :], np.flatnonzero(mask)) for c, mask in enumerate(state.tangents.mask))
        return PlaneSet.of_classes(
            (state.scaling.to_input_space(planes[:, :-1], planes[:, -1]) for planes in own), pooling="logsumexp"
        )

    def planes_of_models(self, state: SmoothState) -> list[PlaneSet]:
        """The planes of the only model, on the host, as those of a stack of models."""
        return [self.planes(state).to_numpy()]


def _mean_to_add_to(state: SmoothState, averaged_from: int, n_steps: int) -> Any:
    """The average to update in a pass: a new one if averaging starts in this pass, or None if it has not started."""
    if n_steps == 0 or (state.mean is not None and averaged_from == 0):
        return state.mean
    return None if averaged_from == n_steps else namespace(state.W).zeros_like(state.W)


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
        from polyplane.kernels.rows import CentredRows

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


def plane_sums(state: PlaneColumns) -> Any:
    """The planes as an argument of the kernels, which update them in place."""
    from polyplane.kernels.rows import PlaneSums

    return PlaneSums(state.coef, state.intercept, 1.0, state.shift)


#: Of the most that an epoch like the last one could change a margin, the part that it is taken to change: rows whose
#: margin would hold for some epochs are not visited in these.
CAUTION = 0.3


@dataclass(frozen=True, eq=False)
class MarginState(PlaneColumns):
    """The state of training with the margin loss."""

    unit_step: float = 0.0  # the step for eta0 = 1
    movement: MixedNumber = np.inf  # of the plane that moved most in the last epoch, over scaled rows
    rows: SkippedRows | None = None
    workspace: KernelRows | None = workspace()

    @property
    def missed(self) -> float:
        """The part of the updates of the last passes that was missed, by weight."""
        return self.rows.share if self.rows is not None else 0.0


@dataclass(frozen=True)
class MarginMultiHyperplane(TangentMethod[MarginState]):
    """The papers' margin loss: stochastic gradient descent, row by row."""

    traits = Traits(MarginState, ADJUSTABLE, mixable=True, own_scaling="common")

    @property
    def trial(self) -> SmoothMultiHyperplane:
        """The log-loss: it wants as many planes, and finds them sooner."""
        return SmoothMultiHyperplane(scale=self.scale, backoff=self.backoff)

    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> MarginState:
        """The state before the first step, from given planes."""
        planes = tangents.planes()[tangents.mask]
        coef, intercept = scaling.to_input_space(planes[:, :-1], planes[:, -1])
        owner = np.nonzero(tangents.mask)[0].copy()  # in one piece, as in any other state: one kernel to compile
        counts = np.bincount(owner, minlength=len(tangents.mask))
        coef, shift = np.ascontiguousarray(coef.T), np.zeros_like(intercept)
        return MarginState(coef, intercept, shift, owner, counts, scaling, seed, unit_step=tangents.step)

    def step(self, state: MarginState, data: Data) -> MarginState:
        """One pass over the rows."""
        from polyplane.kernels.multi_hyperplane import Clocks, StepSize, margin_epoch
        from polyplane.kernels.skipping import Checks

        if state.workspace is None:
            state = state.replace(workspace=KernelRows(data, state.scaling))
        if state.rows is None or state.turn == 0:  # when a schedule starts, steps are large again: no row is skipped
            state = state.replace(rows=SkippedRows(np.zeros((1, len(data.y)), dtype=np.uint8)))
        rows, known = state.rows, state.workspace
        assert rows is not None
        assert known is not None
        schedule = Schedule.of(self.max_iter, state, data)
        order = data.train
        if self.shuffle:
            order = np.random.default_rng([state.seed, state.epoch]).permutation(order)
        sums, score, before = plane_sums(state), np.empty_like(state.intercept), state.input_planes(1.0)
        movement = state.movement if state.turn else np.inf
        reach, checks = rows.caution * CAUTION * movement * known.lengths, Checks(rows.rate(data), np.zeros(2))
        loss, n_visited = 0.0, 0
        length = -(-len(order) // CHECKS_PER_EPOCH)
        for piece in np.split(order, range(length, len(order), length)):
            first, last = (
                self.step_size * state.unit_step * schedule.rate(visited / len(order))
                for visited in (n_visited, n_visited + len(piece))
            )
            steps = StepSize(first, (first - last) / len(piece))
            clocks = Clocks(rows.skip[0], reach, self.backoff, state.epoch * len(order) + n_visited, checks)
            loss += margin_epoch(known.X, piece, sums, state.owner, known.targets, clocks, steps, score)
            n_visited += len(piece)
            if schedule.averages(n_visited / len(order), self.average_fraction):
                state = state.averaged(1.0, schedule.window)
            elif state.mean is not None:
                state = replace(state, mean=None)
        movement = self._movement(before, state)
        rows, loss = rows.checked(checks.found, data, power=1.0), loss / len(order)
        return replace(state, rows=rows, epoch=state.epoch + 1, turn=schedule.next_turn, loss=loss, movement=movement)

    def _movement(self, before: tuple[np.ndarray, np.ndarray], state: MarginState) -> float:
        """How far the plane that moved most has moved since, over scaled rows that end in a 1."""
        coef, intercept = (now - then for now, then in zip(state.input_planes(1.0), before, strict=True))
        offset = intercept + coef @ state.scaling.centre
        return float(np.sqrt(((coef / state.scaling.factor) ** 2).sum(axis=1) + offset**2).max())

    def planes(self, state: MarginState) -> PlaneSet:
        """The model in a state."""
        return state.plane_set(1.0)


@dataclass(frozen=True, eq=False)
class SmoothCommitteeState(CommitteeState):
    """The states of members that are trained with the log-loss."""

    members: list[SmoothState]
    workspace: Any = workspace()


@dataclass(frozen=True)
class SmoothCommittee(Committee[SmoothCommitteeState]):
    """A committee of members that are trained with the log-loss."""

    state_type = SmoothCommitteeState

    def start(self, data: Data, seed: Any) -> SmoothCommitteeState:
        """The states of all members. A convex problem is solved once."""
        is_convex = self.member.is_convex(int(np.max(self.member.n_planes))) and data.ranks is None
        is_convex &= not (data.stream or data.is_part)
        return super().start(data, seed[:1] if is_convex else seed)  # the others would find the same minimum

    def step(self, state: SmoothCommitteeState, data: Data) -> SmoothCommitteeState:
        """One pass of each member; on a device, from the first pass on, with common matrix products."""
        if state.workspace is None:
            first, one = state.members[0], self.member
            is_stack = is_foreign(data.X) and len(state.members) > 1 and not (data.stream or data.is_part)
            is_stack &= data.X.shape[0] * data.X.shape[1] <= MOST_COPIED
            if not is_stack or first.turn or first.adam.t or one.is_convex(first.W.shape[1]) or data.ranks is not None:
                return super().step(state, data)
            state = self._as_stack(state, data)
        stack, rows = state.workspace
        method, members = stack.jobs[0].method, []
        with within_device_memory("Use a smaller batch_size, or fewer members."):
            stack_state = stack.step(rows, data)
        made, turn = stack_state.workspace, (rows.epoch + 1) % method.max_iter
        for m, (own, loss) in enumerate(zip(state.members, made.losses.tolist(), strict=True)):
            adam = own.adam.replace(t=stack_state.adam.t)
            mean = stack_state.mean[m, ...] if stack_state.n_averaged else None
            changes = {"epoch": own.epoch + 1, "turn": turn, "loss": loss, "n_averaged": stack_state.n_averaged}
            members.append(own.replace(adam=adam, mean=mean, **changes))
        if turn == 0:  # steps are large again, and new averages begin
            return state.replace(members=members, workspace=None)
        return state.replace(members=members, workspace=(stack, stack_state))

    def _as_stack(self, state: SmoothCommitteeState, data: Data) -> SmoothCommitteeState:
        """The state whose arrays are parts of those of a stack of all members."""
        from polyplane.learners.many import Job, Stack

        jobs = tuple(Job(self.member, own.seed, data.train) for own in state.members)
        stack = Stack(jobs, tuple(state.members), self.n_jobs)
        rows = stack.start(data, None)
        members = [
            own.replace(W=rows.W[m, ...], adam=Adam(rows.adam.first[m, ...], rows.adam.second[m, ...]))
            for m, own in enumerate(state.members)
        ]
        return state.replace(members=members, workspace=(stack, rows))


@dataclass(frozen=True, eq=False)
class MarginCommitteeState(CommitteeState):
    """The states of members that are trained with the margin loss."""

    members: list[MarginState]


@dataclass(frozen=True)
class MarginCommittee(Committee[MarginCommitteeState]):
    """A committee of members that are trained with the margin loss."""

    state_type = MarginCommitteeState


@dataclass(eq=False, repr=False)
class MultiHyperplaneClassifier(EpochParameters, PlaneClassifier):
    r"""Multi-hyperplane machine: each class owns as many planes as its shape needs.

    The class with the highest score is predicted. Training begins with the planes tangent to a paraboloid above the
    k-means centres of each class, that is with the nearest-centre classifier, and moves them all together. With
    `loss="log"` the score of class :math:`c` is the log-sum-exp of its planes, :math:`\log \sum_{k \in c} e^{w_k x +
    b_k}`, and

    .. math:: \frac{1}{n} \sum_i -\log \frac{\sum_{k \in y_i} e^{w_k x_i + b_k}}{\sum_k e^{w_k x_i + b_k}}

    is minimised by Adam on mini-batches; with `loss="hinge"` the score is the highest score of its planes,
    :math:`\max_{k \in c} w_k x + b_k`, and the papers' margin loss

    .. math:: \frac{1}{n} \sum_i \Big[1 + \max_{k \notin y_i} (w_k x_i + b_k) - \max_{k \in y_i} (w_k x_i + b_k)\Big]_+

    is minimised by stochastic gradient descent. In both cases the step size decreases linearly to 0, and the planes of
    the last fifth of the passes are averaged. The papers' own methods are in `AdaptiveMultiHyperplaneClassifier`.

    With the log-loss and several planes per class, no single plane decides a prediction, so that rules, cells,
    `simplify` and exact distances are not available. They are with ``loss="hinge"``, and for the maximum of the same
    planes: ``planes_.replace(pooling="max")``, which has 0.83 points more errors over 23 tables where several planes
    were chosen, and 0.05 over letter, usps and ijcnn1 (``benchmarks/peers/pooling.py``).

    With one plane per class the log-loss is that of logistic regression, a convex problem: `fit` then finds its minimum
    by L-BFGS, five iterations for a pass, unless `alpha` or `noise` is given. As in scikit-learn's
    `LogisticRegression`, half the sum of the squared weights is added to the sum of the losses, and nothing depends on
    `scale`, `eta0`, `batch_size`, `backoff`, `n_estimators` and `random_state`; so that units matter less, features
    whose variances sum to more than 25, or less than 5, are treated as if they summed to that.

    With `n_estimators`, the model is a committee: its members are trained on the same rows from different seeds, and
    the score of a class is the mean of its scores in the members. The number of planes is chosen once for all members.
    Near a row the committee is a linear classifier, which `PlaneSet.at` returns. Averaging the scores gives the same
    error as averaging the probabilities, up to noise (letter 2.3 and 2.3 %, usps 4.8 and 4.8 %).

    Internally the features are centred and multiplied by one number, or standardised if their scales differ (see
    `standardize`); the fitted planes apply to `X` itself. Dense and sparse rows give the same model with
    ``backoff=0``; otherwise dense rows on the host update only the planes with the best scores for them (see
    `backoff`), which takes a fraction of the time and gives a different model with the same error.

    Under ``sklearn.config_context(array_api_dispatch=True)`` the log-loss trains on arrays of PyTorch and CuPy where
    they are, and the planes live there: see `to_numpy`. PyTorch's own
    ``torch.set_float32_matmul_precision("high")`` makes matrix products on NVIDIA devices faster and less precise.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (b). None: small models with 1, 2, 4, 16 and up to 64 planes (96 for two classes) are
        compared on held-out training rows first, with more than 2,000 rows on growing samples, and with more planes
        where these are best; one plane is used unless more are clearly better. With the log-loss, if many held-out
        rows are wrong, it is also chosen whether part of the labels is taken for random (`choice_`; Patrini et al.): a
        row then counts as likely as its label is right, by its probability at the last visit. Rows of a stream, which
        are visited once, always count fully.
    loss : {"log", "hinge"}, default="log"
        The loss function.
    alpha : float or None, default=None
        Log-loss: strength of a penalty on the distance of the planes from their start. None: no penalty.
    scale : float, default=2.5
        Curvature of the paraboloid of the start, relative to an estimate from the data.
    eta0 : float or None, default=None
        Initial step size, relative to the distance from a row to the nearest centre of its class. None: with the
        log-loss 0.3, 0.1, 0.03 or 0.01, chosen after `n_planes` where that is None; otherwise 0.3. Smaller steps fit
        noise in the labels less. If a step size is given, all labels are trusted.
    noise : float or None, default=None
        Log-loss: standard deviation of the noise added to rows in training, relative to their distance from the
        decision boundary. None: 0.2, less in few dimensions, none in two, and none with one plane per class.
    batch_size : int or None, default=None
        Log-loss: rows per step. None: 256. Use 4,096 or more on a GPU: step sizes grow with the square root of the
        batch size. Batches above 256 are made smaller where an epoch would have fewer than 64 of them.
    backoff : int, default=31
        Maximum number of epochs for which rows with a large margin are skipped. With the log-loss, a row whose class
        has a probability above 99 % is visited at random every 2, 4, 8, ... epochs, and counts that many times as
        much, so that on average no update is missed; all rows are visited again when skipped ones lose more than 4 %
        of probability on average. In addition, a dense row updates only the 16 planes with the best scores for it,
        determined in epochs 0, 1, 3, 7, 15, 23 and so on, or 32, 64, ..., if the others would make more than 45 % of
        the update. With the hinge loss, a row is skipped for about as long as its margin lasts; a random sample of the
        skipped rows is visited, and rows are skipped for fewer epochs where these show that more than 0.5 % of the
        updates are missed, by weight. See `history_`. 0: visit all rows and update all planes.
    standardize : {"auto", True, False}, default="auto"
        Whether `fit` trains on a copy of X with features of mean 0 and variance 1 (sparse rows: divided by their
        largest absolute values); the planes apply to X itself. "auto": if the range
        of one feature is more than 100 times that of the smallest ones. In streams, "auto" only warns, and True uses
        the first batch.
    monotonic_cst : dict or array-like of shape (n_features,), default=None
        Log-loss: monotone features. For two classes, 1 means that the probability of the second class never falls as
        the feature grows, and -1 that it never grows. For more classes, a dict names the classes, ``{"age": {"high":
        1}}``, or "ordered" says that the probability of a higher class never falls relative to that of a lower one. A
        dict of features may omit those without constraints. They hold for the model exactly, at all rows; the weights
        are projected after each step.
    n_estimators : int, default=1
        Number of members of the committee. With one plane per class, all members of a `fit` would be the same, and the
        model has one member.
    max_iter : int, default=60
        Maximum number of passes over the training rows (epochs).
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes; with `early_stopping`: 0.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    early_stopping : bool or float, default=False
        Hold out this share of the rows (True: a tenth), stop when their error no longer falls, and keep the planes that
        were best on them.
    n_iter_no_change : int, default=10
        Number of passes without improvement before training stops.
    random_state : int, RandomState or None, default=None
        Controls the k-means centres, the order in which rows are visited and the noise, or the seeds of the members.
    n_jobs : int or None, default=None
        Number of threads, over members and blocks of rows to predict; results do not depend on it.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model; ``planes_.members`` are the planes of the members.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, member by member and class by class: those of ``planes_``.
    n_iter_ : int
        Number of passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met, over all members), "planes" (of all members), "missed"
        (see `backoff`: with the hinge loss the share of the updates that skipped rows missed in the last ten epochs or
        so; with the log-loss the share of the gradient in planes that a row does not update, when last measured), and
        with `early_stopping` "validation_error".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020. (Theorem 1: tangents of a
    convex function as planes.)

    G. Patrini, A. Rozza, A. K. Menon, R. Nock and L. Qu. Making Deep Neural Networks Robust to Label Noise: A Loss
    Correction Approach. CVPR 2017. (The forward correction of the log-loss, for labels that are random in part.)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import MultiHyperplaneClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.98
    True
    >>> committee = MultiHyperplaneClassifier(4, n_estimators=3, max_iter=10, random_state=0).fit(X_train, y_train)
    >>> committee.planes_.n_members, committee.planes_.n_planes
    (3, 120)
    """

    n_planes: int | None = None
    _: KW_ONLY
    loss: str = "log"
    alpha: float | None = None
    scale: float = 2.5
    eta0: float | None = None
    noise: float | None = None
    batch_size: int | None = None
    backoff: int = 31
    standardize: bool | str = "auto"
    monotonic_cst: Any = None
    n_estimators: int = 1
    max_iter: int = 60
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "standardize": ["boolean", StrOptions({"auto"})],
        "loss": [StrOptions({"log", "hinge"})],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "monotonic_cst": [dict, "array-like", None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={
            "n_planes": [None, 1, 2, 4, 8, 16, 32, 64],
            "alpha": [None, 1e-3, 3e-3, 1e-2, 3e-2, 0.1],
            "noise": [None, 0.0, 0.1, 0.2, 0.4],
            "eta0": [None, 0.03, 0.1, 0.3, 1.0],
            "scale": [2.5, 0.6, 1.0, 1.6, 4.0, 6.0, 10.0],
        },
        choose=choose_n_planes,
    )

    def _method(self, classes: np.ndarray) -> Method[Any]:
        if self.loss == "log":
            batch_size = USUAL_BATCH if self.batch_size is None else self.batch_size
            smooth = self._method_of(SmoothMultiHyperplane, alpha=self.alpha or 0.0, batch_size=batch_size)
            return smooth if self.n_estimators == 1 else SmoothCommittee(smooth, self.n_estimators, self.n_jobs)
        for name in ("alpha", "noise", "batch_size", "monotonic_cst"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} belongs to the log-loss and means nothing for loss='hinge'; leave "
                    "it at None."
                )
        margin = self._method_of(MarginMultiHyperplane, eta0=USUAL_STEP if self.eta0 is None else self.eta0)
        return margin if self.n_estimators == 1 else MarginCommittee(margin, self.n_estimators, self.n_jobs)

    def _validated(self, X: Any, *others: Any, **options: Any) -> Data:
        data = super()._validated(X, *others, **options)
        if self.monotonic_cst is None:
            return data
        if is_foreign(data.X):
            raise TypeError("monotonic_cst is available on the CPU only: pass a NumPy array.")
        return replace(data, ranks=ranks_of(self))

    def _seed(self) -> Any:
        if self.n_estimators == 1:
            return super()._seed()
        return tuple(check_random_state(self.random_state).randint(2**31, size=self.n_estimators).tolist())

    @available_if(lambda self: self.loss == "log")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, for models trained with the log-loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Softmax of the class scores, so that the most probable class is the predicted one.
        """
        X = check_fitted_matrix(self, X)
        return softmax(self.planes_.class_scores(X, self.n_jobs))
