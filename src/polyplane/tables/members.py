"""The members of the committee of a table: their rows, their training on tables in memory and streams, their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np

from polyplane._array_api import (
    blocks_of,
    in_threads,
    is_foreign,
    like,
    namespace,
    take_rows,
    to_numpy,
    widest_float,
    within_device_memory,
)
from polyplane.engine.committee import CommitteeState
from polyplane.engine.data import DEVICE_BLOCK, AffineScaling, Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.run import Run
from polyplane.engine.state import Array
from polyplane.learners.log_loss import NOISE, USUAL_BATCH, CandidatePass, CandidatePlanes, decay, put_in_order
from polyplane.learners.many import Job, Part, parts_of
from polyplane.learners.multi_hyperplane import SmoothCommitteeState, SmoothMultiHyperplane, SmoothState
from polyplane.learners.tangents import Schedule, tangent_start
from polyplane.model import best_temperature
from polyplane.planes import PlaneSet
from polyplane.tables.preparation import RECIPES, Preparation

#: Initial step size, unless a smaller one is better.
ETA0 = 0.3
#: Rows per step on a device.
DEVICE_BATCH = 1024
#: Smallest probability, to avoid an infinite log-loss.
LEAST_PROBABILITY = 1e-30


def log_losses(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the log-loss of each row."""
    return -np.log(np.maximum(probability[np.arange(len(y)), y], LEAST_PROBABILITY))


@dataclass(frozen=True)
class EncodedRows:
    """Encoded rows, their class indices and sample weights, which features are indicators, and which are monotone.

    `there` are the same rows on a device, where members are then trained; None: on the host.
    """

    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    is_indicator: np.ndarray
    n_classes: int
    ranks: np.ndarray | None = None
    there: Any = None
    _plain: dict[str, Preparation] = field(default_factory=dict, init=False, repr=False, compare=False)

    def take(self, rows: np.ndarray) -> EncodedRows:
        """Return some of the rows."""
        there = None if self.there is None else take_rows(self.there, rows)
        return replace(self, Z=self.Z[rows], y=self.y[rows], weight=self.weight[rows], there=there)

    def on_device(self, kind: Any) -> EncodedRows:
        """Return the same rows, to be trained on where the array `kind` is."""
        return replace(self, there=like(self.Z, kind, widest_float(kind)))

    def prepare(self, name: str) -> Preparation:
        """Fit a preparation on the rows, once."""
        if name not in self._plain:
            self._plain[name] = Preparation.fit(name, self.Z, self.y, self.is_indicator, self.weight)
        return self._plain[name]

    def data(self, preparation: Preparation) -> Data:
        """Return the prepared rows as training data."""
        weight, ranks = self.weight.astype(np.float32), None
        if self.ranks is not None:  # the features are scaled numbers, which grow with them, and bins
            ranks = self.ranks[[j for j, _ in preparation.sources]]
        X = self.prepared(preparation)
        return Data(X, self.y, weight, np.flatnonzero(weight > 0), self.n_classes, ranks=ranks)

    def prepared(self, preparation: Preparation) -> Any:
        """Prepare the rows, as float32, where members are trained.

        On a device, a prepared feature is an affine function of the features of a model: that of the planes which have
        a weight for this feature only.
        """
        if self.there is None:
            return preparation.transform(self.Z)
        xp, n_prepared = namespace(self.there), preparation.n_prepared
        one_each = PlaneSet(np.eye(n_prepared), np.zeros(n_prepared), np.arange(n_prepared + 1))
        features, coef, intercept = preparation.fold(one_each, self.is_indicator)
        coef, intercept = (like(part, self.there, xp.float32) for part in (coef.T, intercept))
        parts = []
        for rows in blocks_of(len(self.y), DEVICE_BLOCK // max(n_prepared, 1)):
            values = features.transform(self.there[rows, :])
            parts.append(xp.astype(values, xp.float32) @ coef + intercept)
        return xp.concat(parts, axis=0)

    def noise(self, name: str) -> float | None:
        """Return the noise of training: 0 if most features are indicators or bins, which noise would blur."""
        return self.noise_of(name, self.is_indicator)

    @staticmethod
    def noise_of(name: str, is_indicator: np.ndarray) -> float | None:
        """Return the noise of training with a preparation."""
        return 0.0 if RECIPES[name].has_bins or is_indicator.mean() > 0.5 else None


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
        order = rows.rng.permutation(data.train)
        visited, factor = clocks.visited(order, rows.rng.random(len(order), dtype=np.float32))
        np.multiply(data.weight, factor, out=rows.one_pass.weight)
        paces, averaged_from = self.paces(state, schedule, len(visited), USUAL_BATCH)
        one_pass, inputs = rows.one_pass, [visited]
        if one_pass.noise is not None:
            inputs.append(rows.rng.integers(0, NOISE, len(visited)))
        one_pass.turn, one_pass.renew = state.turn, rows.planes.is_renewed(state.turn, data)
        with self.products(state) if one_pass.renew else nullcontext():
            probability = one_pass.run(inputs, USUAL_BATCH, paces, averaged_from)
        rows.probability = probability
        weight = rows.one_pass.weight[visited]
        if data.ranks is not None:
            put_in_order(data.ranks, state.W, one_pass.mean)  # means are rounded
        has_mean = averaged_from < len(paces)
        return state.replace(
            rows=clocks.noted(visited, weight, probability, self.backoff),
            epoch=state.epoch + 1,
            turn=schedule.next_turn,
            adam=state.adam.replace(t=state.adam.t + len(paces)),
            mean=one_pass.mean if has_mean else state.mean,
            n_averaged=int(paces[-1].n_averaged) if has_mean else state.n_averaged,
        )

    def metrics(self, state: SmoothState) -> Mapping[str, float]:
        """The mean log-loss met in the last pass: computed only if somebody asks for it."""
        rows = state.workspace
        return {"loss": rows.loss if isinstance(rows, MemberRows) else state.loss, "planes": state.n_planes}


class MemberRows:
    """What the passes of a run share: the generator, the candidate planes, the noise and the arrays of the kernel."""

    def __init__(self, method: MemberMethod, state: SmoothState, data: Data) -> None:
        level = method.noise_level(state) * state.tangents.margin
        self.planes = CandidatePlanes(data, method.shuffle, level > 0, state.tangents.mask.size)
        self.n_rows, self.probability = len(data.train), np.empty(0)  # of the class of each visited row
        W, noise = state.W, None
        self.rng = np.random.default_rng(state.seed)
        if level > 0:
            noise = self.rng.standard_normal(NOISE + W.shape[2] - 1, dtype=W.dtype.type)
            noise *= level
        self.one_pass = CandidatePass(
            data.X, data.y, data.weight.copy(), state.scaling, W, state.adam, np.zeros_like(W), None,
            decay(USUAL_BATCH), noise=noise, planes=self.planes, turn=0, renew=not self.planes.all_are_candidates,
            ranks=data.ranks,
        )  # fmt: skip

    @property
    def loss(self) -> float:
        """The log-losses met in the last pass, over the number of rows."""
        return float(-np.log(self.probability).sum()) / self.n_rows


@dataclass(frozen=True)
class MemberTask:
    """One member to train.

    Parameters
    ----------
    data : Data
        The prepared rows.
    n_planes : int
        Number of planes per class; classes with fewer rows get one plane per row.
    noise : float or None
        As in `MultiHyperplaneClassifier`.
    max_iter : int
        Number of passes over the rows.
    seed : int
        Seed of the centres, the order of the rows and the noise.
    eta0 : float, default=0.3
        Initial step size.
    penalty : float, default=1.0
        Relative strength of the penalty of one plane per class.
    """

    data: Data
    n_planes: int
    noise: float | None
    max_iter: int
    seed: int
    eta0: float = ETA0
    penalty: float = 1.0

    @property
    def method(self) -> SmoothMultiHyperplane:
        """The training method: on a device that of stacks, where models are trained with larger batches."""
        n_planes = tuple(np.clip(self.data.class_counts, 1, self.n_planes).tolist())
        how: dict[str, Any] = {"noise": self.noise, "max_iter": self.max_iter, "eta0": self.eta0}
        how["penalty"] = self.penalty
        if is_foreign(self.data.X):
            return SmoothMultiHyperplane(n_planes=n_planes, **how, backoff=0, batch_size=DEVICE_BATCH)
        return MemberMethod(n_planes=n_planes, **how)


def train_members(tasks: Sequence[MemberTask], n_jobs: int | None = None) -> list[PlaneSet]:
    """Train members, and return their planes; the result does not depend on `n_jobs`.

    Parameters
    ----------
    tasks : sequence of MemberTask
        The members to train. Several may share their rows.
    n_jobs : int or None, default=None
        Number of threads.
    """

    def train(part: Part) -> list[PlaneSet]:
        method, data = part.method, part.data
        state = method.start(data, part.seed)
        with method.products(state), within_device_memory("Use device=None, or fewer rows."):
            run = Run(method, state, tracked=False).go(repeat(data, method.max_iter))
            return part.method.planes_of_models(run.state)  # type: ignore[no-any-return]

    parts = parts_of_tasks(tasks, n_jobs)
    return in_order(parts, in_threads(train, parts, n_jobs))


def parts_of_tasks(tasks: Sequence[MemberTask], n_jobs: int | None) -> list[Part]:
    """Return what is trained together: on a device the members with the same rows, otherwise each member alone."""
    by_rows: dict[int, list[int]] = {}
    for i, task in enumerate(tasks):
        by_rows.setdefault(id(task.data.X) if is_foreign(task.data.X) else -i, []).append(i)
    parts = []
    for group in by_rows.values():
        first = tasks[group[0]]
        if is_foreign(first.data.X):
            jobs = [Job(tasks[i].method, tasks[i].seed, first.data.train) for i in group]
            found = parts_of(first.data, jobs, n_jobs)
            parts += [part._replace(members=[group[i] for i in part.members]) for part in found]
        else:
            parts.append(Part(first.method, first.data, first.seed, group))
    return parts


def in_order(parts: Sequence[Part], values: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the values of the members of all parts, in the order of the members."""
    found = {
        i: value for part, own in zip(parts, values, strict=True) for i, value in zip(part.members, own, strict=True)
    }
    return [found[i] for i in range(len(found))]


class Member(NamedTuple):
    """One member of a committee: a preparation of encoded rows, planes over the prepared features, and a weight."""

    preparation: Preparation
    planes: PlaneSet
    weight: float = 1.0


def class_scores(members: Sequence[Member], Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Compute the scores of the classes for encoded rows: the weighted means over the members of their log-sum-exp."""
    preparations = {id(member.preparation): member.preparation for member in members}
    prepared = {key: preparation.transform(Z) for key, preparation in preparations.items()}
    scores = [smooth_scores(member.planes, prepared[id(member.preparation)], n_jobs) for member in members]
    return np.asarray(np.average(scores, axis=0, weights=[member.weight for member in members]))


def smooth_scores(planes: PlaneSet, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Compute the scores of the classes for prepared rows, in float64: the log-sum-exp that training maximises."""
    there = planes.to(X) if is_foreign(X) else planes
    scores = there.replace(pooling="logsumexp").class_scores(X, n_jobs)
    return np.asarray(to_numpy(scores), dtype=np.float64)


#: Size of the uniform sample of earlier rows that are visited again.
REPLAY_SAMPLE = 50_000
#: Number of earlier rows visited per new row when the number of rows so far equals the size of the sample; after n
#: times as many rows, it is divided by n, so that the number of repeated visits does not grow with the stream. (adult
#: in batches after the first 20,000 rows: log-loss 0.289; 0.291 without earlier rows.)
REPLAY = 3.0
#: Number of batches in which the step size falls to a third; from then on, planes are averaged.
SETTLED_AFTER = 2
#: Largest and smallest number of the last rows, scored before training on them, that determine the temperature.
MOST_SCORED, LEAST_SCORED = 2000, 500


class TableMethod(Method[Any]):
    """A method whose state has members with their own features."""

    def members(self, state: Any) -> tuple[Member, ...]:
        """The features and the planes of each member."""
        raise NotImplementedError

    def temperature(self, state: Any) -> float:
        """The temperature of the probabilities."""
        raise NotImplementedError

    def planes(self, state: Any) -> PlaneSet:
        """Of tables, the planes are those of the model, over its features."""
        raise TypeError("The members have planes over different features.")

    def predict(self, state: Any, X: Any) -> Any:
        """Predict the classes of encoded rows, as integers."""
        return class_scores(self.members(state), X).argmax(axis=1)


@dataclass(frozen=True)
class TableCommittee(TableMethod):
    """Members with their own features, on a table in memory. A step is a pass of each member over all rows.

    Parameters
    ----------
    parts : tuple of Part
        The members to train, each with its prepared rows; on a device, those with the same rows together.
    preparations : tuple of Preparation
        The features of each member.
    weights : tuple of float
        The weight of each member in the mean of the scores.
    fitted_temperature : float
        The temperature of the probabilities.
    n_jobs : int or None
        Number of threads; results do not depend on it.
    """

    parts: tuple[Part, ...]
    preparations: tuple[Any, ...]
    weights: tuple[float, ...]
    fitted_temperature: float
    n_jobs: int | None = None

    traits = Traits(SmoothCommitteeState)

    def start(self, data: Data, seed: Any) -> SmoothCommitteeState:
        """The tangent planes at the centres of the prepared rows of each member."""
        starts = in_threads(lambda part: part.method.start(part.data, part.seed), self.parts, self.n_jobs)
        return SmoothCommitteeState(starts)

    def step(self, state: SmoothCommitteeState, data: Data) -> SmoothCommitteeState:
        """One pass of each member; those that have converged wait for the others."""

        def advance(number: int) -> SmoothState:
            part, own = self.parts[number], state.members[number]
            return own if own.is_minimum else part.method.step(own, part.data)

        return state.replace(members=in_threads(advance, range(len(self.parts)), self.n_jobs))

    def done(self, state: SmoothCommitteeState) -> bool:
        """Whether all members have reached the minimum of a convex problem."""
        return all(own.is_minimum for own in state.members)

    def metrics(self, state: SmoothCommitteeState) -> Mapping[str, float]:
        """The mean loss of the members, and the number of planes of all of them."""
        metrics = [part.method.metrics(own) for part, own in zip(self.parts, state.members, strict=True)]
        losses = [own["loss"] for own, part in zip(metrics, self.parts, strict=True) for _ in part.members]
        return {"loss": float(np.mean(losses)), "planes": sum(own["planes"] for own in metrics)}

    def members(self, state: SmoothCommitteeState) -> tuple[Member, ...]:
        """The features and the planes of each member."""
        planes = [part.method.planes_of_models(own) for part, own in zip(self.parts, state.members, strict=True)]
        return tuple(map(Member, self.preparations, in_order(self.parts, planes), self.weights))

    def temperature(self, state: Any) -> float:
        """The temperature of the probabilities."""
        return self.fitted_temperature


_ROWS, _SCORED = "remembered", "scored"


@dataclass(frozen=True, eq=False)
class TableMemberState(SmoothState):
    """The state of a member, over features of its own."""

    own_sizes: ClassVar[tuple[str, ...]] = ("planes", "features")


@dataclass(frozen=True, eq=False)
class TableStreamState(CommitteeState):
    """The members, a uniform sample of the rows so far, and the last rows with their scores before training on them."""

    members: list[TableMemberState]
    Z: Annotated[np.ndarray, Array("float64", _ROWS, "encoded", in_place=False)]
    y: Annotated[np.ndarray, Array("i", _ROWS, below="classes", in_place=False)]
    weight: Annotated[np.ndarray, Array("float64", _ROWS, in_place=False)]
    scores: Annotated[np.ndarray, Array("float64", _SCORED, "classes", in_place=False)]
    scored_y: Annotated[np.ndarray, Array("i", _SCORED, below="classes", in_place=False)]
    scored_weight: Annotated[np.ndarray, Array("float64", _SCORED, in_place=False)]
    random: Annotated[np.ndarray, Array("uint8", "generator", in_place=False)]  # the state of the random generator
    temperature: float
    n_seen: int  # rows that the sample was drawn from
    n_batches: int = 0
    is_fresh: bool = True  # whether the members have their planes of before the first step
    error: float = np.nan  # of the last batch, before training on it


@dataclass(frozen=True)
class TableStream(TableMethod):
    """Members with their own features, on a stream. A step trains all members on a batch, and on earlier rows.

    Parameters
    ----------
    fitted : tuple of Member
        The members to go on with: their features, and their planes before the first step.
    is_indicator : tuple of bool
        Whether each encoded feature is an indicator.
    fitted_temperature : float
        The temperature before the first step.
    n_jobs : int or None
        Number of threads; results do not depend on it.
    has_seen_first : bool, default=False
        Whether the members were fitted to the rows of the first step, so that this step only remembers them.
    """

    fitted: tuple[Member, ...]
    is_indicator: tuple[bool, ...]
    fitted_temperature: float
    n_jobs: int | None = None
    has_seen_first: bool = False

    traits = Traits(
        TableStreamState,
        adjustable=frozenset({"fitted", "is_indicator", "fitted_temperature", "n_jobs", "has_seen_first"}),
    )

    def start(self, data: Data, seed: Any) -> TableStreamState:
        """The states of the members from their planes, and a sample of the first rows."""
        rows, rng = self._rows(data), np.random.default_rng(seed[0])
        kept = (
            rows if len(rows.y) <= REPLAY_SAMPLE else rows.take(rng.choice(len(rows.y), REPLAY_SAMPLE, replace=False))
        )
        return TableStreamState(
            [cast(TableMemberState, self._continued(i, kept, seed[i])) for i in range(len(self.fitted))],
            kept.Z, kept.y, kept.weight, np.empty((0, data.n_classes)), np.empty(0, dtype=np.int64), np.empty(0),
            _packed(rng), self.fitted_temperature, len(rows.y),
        )  # fmt: skip

    def step(self, state: TableStreamState, data: Data) -> TableStreamState:
        """Train on rows, along with earlier ones if these are new."""
        if self.has_seen_first and state.n_batches == 0:
            return state.replace(n_batches=1)
        rows, rng = self._rows(data), _generator(state.random)
        scores = class_scores(self.members(state), rows.Z, self.n_jobs)
        error = float(np.average(scores.argmax(axis=1) != rows.y, weights=rows.weight))
        visited = rows if data.is_repeated else self._with_earlier(rows, state, rng)

        def train(number: int) -> SmoothState:
            method, own = self._method(number), replace(self._prepared(visited, number), stream=True)
            return method.step(state.members[number].for_rows(own), own).without_rows()

        members = in_threads(train, range(len(self.fitted)), self.n_jobs)
        state = state.replace(members=members, error=error, n_batches=state.n_batches + 1, is_fresh=False)
        if not data.is_repeated:
            state = _scored(_remembered(state, rows, rng), scores, rows)
        return state.replace(random=_packed(rng))

    def metrics(self, state: TableStreamState) -> Mapping[str, float]:
        """The error on the last batch before training on it."""
        return {"progressive_error": state.error}

    def members(self, state: TableStreamState) -> tuple[Member, ...]:
        """The features and the planes of each member; before the first step, as they were."""
        if state.is_fresh:
            return self.fitted
        planes = (self._method(number).planes(own) for number, own in enumerate(state.members))
        return tuple(member._replace(planes=own) for member, own in zip(self.fitted, planes, strict=True))

    def temperature(self, state: TableStreamState) -> float:
        """The temperature of the probabilities."""
        return state.temperature

    def _rows(self, data: Data) -> EncodedRows:
        return EncodedRows(data.X, data.y, data.weight, np.array(self.is_indicator), data.n_classes, data.ranks)

    def _method(self, number: int) -> SmoothMultiHyperplane:
        return member_method(self.fitted[number], np.array(self.is_indicator), SETTLED_AFTER)

    def _prepared(self, rows: EncodedRows, number: int) -> Data:
        return rows.data(self.fitted[number].preparation)

    def _continued(self, number: int, rows: EncodedRows, seed: int) -> SmoothState:
        """A state with the planes of a member; the rows only determine the scaling."""
        method, member = self._method(number), self.fitted[number]
        cold = cold_start(method, member, rows, seed)
        # Few rows have fewer centres than planes; all planes are kept.
        mask = np.arange(cold.tangents.mask.shape[1]) < np.diff(member.planes.indptr)[:, None]
        state = method.begin(replace(cold.tangents, mask=mask), cold.scaling, seed)
        coef = member.planes.coef
        state.W[mask, :-1] = coef / coef.dtype.type(cold.scaling.factor)
        state.W[mask, -1] = member.planes.intercept + coef @ cold.scaling.centre
        return state

    def _with_earlier(self, rows: EncodedRows, state: TableStreamState, rng: np.random.Generator) -> EncodedRows:
        """The rows, and earlier ones to visit along with them."""
        n_kept = len(state.y)
        wanted = int(min(n_kept, len(rows.y) * REPLAY * n_kept / max(state.n_seen, n_kept)))
        chosen = rng.choice(n_kept, wanted, replace=False)
        pairs = ((rows.Z, state.Z), (rows.y, state.y), (rows.weight, state.weight))
        Z, y, weight = (np.concatenate([new, old[chosen]]) for new, old in pairs)
        return replace(rows, Z=Z, y=y, weight=weight)


def member_method(member: Member, is_indicator: np.ndarray, max_iter: int) -> SmoothMultiHyperplane:
    """Return the method that trains a member on batches or partitions; its steps decrease over `max_iter` visits."""
    noise = EncodedRows.noise_of(member.preparation.name, is_indicator)
    return SmoothMultiHyperplane(noise=noise, max_iter=max_iter)


def cold_start(method: SmoothMultiHyperplane, member: Member, rows: EncodedRows, seed: int) -> SmoothState:
    """Return a state with the number of planes of a member: tangent planes at centres of the rows."""
    data = rows.data(member.preparation)
    scaling = AffineScaling.common(data.X, data.training_weight)
    tangents = tangent_start(data, np.diff(member.planes.indptr), scaling, method.scale, seed)
    return method.begin(tangents, scaling, seed)


def _remembered(state: TableStreamState, new: EncodedRows, rng: np.random.Generator) -> TableStreamState:
    """The state with new rows in the sample, by reservoir sampling."""
    n_new, space = len(new.y), REPLAY_SAMPLE - len(state.y)
    n_added = min(space, n_new)
    index = rng.integers(0, state.n_seen + np.arange(n_added, n_new) + 1)
    taken = np.flatnonzero(index < REPLAY_SAMPLE)
    kept = []
    for old, young in ((state.Z, new.Z), (state.y, new.y), (state.weight, new.weight)):
        rows = np.concatenate([old, young[:n_added]])
        rows[index[taken]] = young[n_added:][taken]
        kept.append(rows)
    Z, y, weight = kept
    return state.replace(Z=Z, y=y, weight=weight, n_seen=state.n_seen + n_new)


def _scored(state: TableStreamState, scores: np.ndarray, rows: EncodedRows) -> TableStreamState:
    """The state with the last scored rows, and the temperature that fits them."""
    pairs = ((state.scores, scores), (state.scored_y, rows.y), (state.scored_weight, rows.weight))
    last = [np.concatenate(pair)[-MOST_SCORED:] for pair in pairs]
    temperature = best_temperature(*last) if len(last[1]) >= LEAST_SCORED else state.temperature
    return state.replace(scores=last[0], scored_y=last[1], scored_weight=last[2], temperature=temperature)


def _packed(rng: np.random.Generator) -> np.ndarray:
    """The state of a random generator, as bytes."""
    found: Any = rng.bit_generator.state
    words = found["state"]["state"].to_bytes(16, "little"), found["state"]["inc"].to_bytes(16, "little")
    rest = found["has_uint32"].to_bytes(1, "little"), found["uinteger"].to_bytes(4, "little")
    return np.frombuffer(b"".join((*words, *rest)), dtype=np.uint8)


def _generator(packed: np.ndarray) -> np.random.Generator:
    """The random generator of a state."""
    content, rng = packed.tobytes(), np.random.default_rng(0)
    numbers = [int.from_bytes(content[start:stop], "little") for start, stop in ((0, 16), (16, 32), (32, 33), (33, 37))]
    state = {"state": numbers[0], "inc": numbers[1]}
    rng.bit_generator.state = {
        "bit_generator": "PCG64", "state": state, "has_uint32": numbers[2], "uinteger": numbers[3],
    }  # fmt: skip
    return rng
