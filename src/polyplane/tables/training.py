"""How the members of a `TableClassifier` are trained: on a table in memory, and on the batches of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from polyplane._array_api import in_threads
from polyplane.engine.committee import CommitteeState
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Array
from polyplane.learners.multi_hyperplane import SmoothCommitteeState, SmoothMultiHyperplane, SmoothState
from polyplane.learners.tangents import tangent_start
from polyplane.planes import PlaneSet
from polyplane.tables.members import EncodedRows, Member, MemberTask, best_temperature, class_scores

#: Size of the uniform sample of earlier rows that are visited again.
MEMORY = 50_000
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
    tasks : tuple of MemberTask
        The members to train, each with its prepared rows.
    owners : tuple of (Preparation, int)
        For each member of the committee, its features, and the index of its planes in `tasks`: members with one
        plane per class and the same features have the same planes.
    fitted_temperature : float
        The temperature of the probabilities.
    n_jobs : int or None
        Number of threads; results do not depend on it.
    """

    tasks: tuple[MemberTask, ...]
    owners: tuple[tuple[Any, int], ...]
    fitted_temperature: float
    n_jobs: int | None = None

    traits = Traits(SmoothCommitteeState)

    def start(self, data: Data, seed: Any) -> SmoothCommitteeState:
        """The tangent planes at the centres of the prepared rows of each member."""
        starts = in_threads(lambda task: task.method.start(task.data, task.seed), self.tasks, self.n_jobs)
        return SmoothCommitteeState(starts)

    def step(self, state: SmoothCommitteeState, data: Data) -> SmoothCommitteeState:
        """One pass of each member; those that have converged wait for the others."""

        def advance(number: int) -> SmoothState:
            task, own = self.tasks[number], state.members[number]
            return own if own.is_minimum else task.method.step(own, task.data)

        return state.replace(members=in_threads(advance, range(len(self.tasks)), self.n_jobs))

    def done(self, state: SmoothCommitteeState) -> bool:
        """Whether all members have reached the minimum of a convex problem."""
        return all(own.is_minimum for own in state.members)

    def metrics(self, state: SmoothCommitteeState) -> Mapping[str, float]:
        """The mean loss of the members, and the number of planes of all of them."""
        pairs = list(zip(self.tasks, state.members, strict=True))
        losses = [task.method.metrics(own)["loss"] for task, own in pairs]
        return {"loss": float(np.mean(losses)), "planes": sum(own.n_planes for own in state.members)}

    def members(self, state: SmoothCommitteeState) -> tuple[Member, ...]:
        """The features and the planes of each member."""
        planes = [m.method.planes(own) for m, own in zip(self.tasks, state.members, strict=True)]
        return tuple(Member(preparation, planes[number]) for preparation, number in self.owners)

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
        kept = rows if len(rows.y) <= MEMORY else rows.take(rng.choice(len(rows.y), MEMORY, replace=False))
        return TableStreamState(
            [cast(TableMemberState, self._continued(number, kept, own)) for number, own in enumerate(seed)],
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
        return tuple(Member(member.preparation, own) for member, own in zip(self.fitted, planes, strict=True))

    def temperature(self, state: TableStreamState) -> float:
        """The temperature of the probabilities."""
        return state.temperature

    def _rows(self, data: Data) -> EncodedRows:
        return EncodedRows(data.X, data.y, data.weight, np.array(self.is_indicator), data.n_classes)

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
    n_new, space = len(new.y), MEMORY - len(state.y)
    n_added = min(space, n_new)
    index = rng.integers(0, state.n_seen + np.arange(n_added, n_new) + 1)
    taken = np.flatnonzero(index < MEMORY)
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
