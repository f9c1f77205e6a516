"""The members of the committee of a table: their rows, their training, their scores and probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyplane._array_api import in_threads, softmax
from polyplane.engine.data import AffineScaling, Data
from polyplane.learners.log_loss import NOISE, USUAL_BATCH, CandidatePass, CandidatePlanes, decay
from polyplane.learners.multi_hyperplane import AMPLE, SmoothMultiHyperplane, SmoothState
from polyplane.learners.tangents import Schedule, choose_n_planes, run_from_tangents
from polyplane.planes import PlaneSet
from polyplane.tables.preparation import RECIPES, Preparation

#: Smallest probability, to avoid an infinite log-loss.
LEAST_PROBABILITY = 1e-30


def log_losses(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the log-loss of each row."""
    return -np.log(np.maximum(probability[np.arange(len(y)), y], LEAST_PROBABILITY))


def best_temperature(scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Find the temperature between 1/8 and 8 that minimises the log-loss, which is convex in its inverse.

    A prior equivalent to one row per class, with uniform class probabilities, prevents extreme temperatures if there
    are few rows and all are classified correctly.
    """
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    own, n_classes = scores[np.arange(len(y)), y], scores.shape[1]
    low, high = -3.0, 3.0
    for _ in range(30):
        power = 0.5 * (low + high)
        expected = (softmax(scores * 2.0**power) * scores).sum(axis=1)
        slope = weight @ (expected - own) + (expected - scores.mean(axis=1)).mean() * n_classes
        low, high = (low, power) if slope > 0 else (power, high)
    return float(2.0 ** (-0.5 * (low + high)))


@dataclass(frozen=True)
class EncodedRows:
    """Encoded rows, their class indices and sample weights, and which features are indicators."""

    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    is_indicator: np.ndarray
    n_classes: int
    _plain: dict[str, Preparation] = field(default_factory=dict, init=False, repr=False, compare=False)

    def take(self, rows: np.ndarray) -> EncodedRows:
        """Return some of the rows."""
        return EncodedRows(self.Z[rows], self.y[rows], self.weight[rows], self.is_indicator, self.n_classes)

    def prepare(self, candidate: Candidate) -> Preparation:
        """Fit a preparation on the rows, once for candidates that differ only in their gains."""
        plain = self._plain.get(candidate.name)
        if plain is None:
            plain = Preparation.fit(candidate.name, self.Z, self.y, self.is_indicator, self.weight)
            self._plain[candidate.name] = plain
        return plain if candidate.gain is None else plain.weighted(np.array(candidate.gain))

    def data(self, preparation: Preparation) -> Data:
        """Return the prepared rows as training data."""
        weight = self.weight.astype(np.float32)
        return Data(preparation.transform(self.Z), self.y, weight, np.flatnonzero(weight > 0), self.n_classes)

    def noise(self, name: str) -> float | None:
        """Return the noise of training: 0 if most features are indicators or bins, which noise would blur."""
        return self.noise_of(name, self.is_indicator)

    @staticmethod
    def noise_of(name: str, is_indicator: np.ndarray) -> float | None:
        """Return the noise of training with a preparation."""
        return 0.0 if RECIPES[name].has_bins or is_indicator.mean() > 0.5 else None


class Candidate(NamedTuple):
    """A preparation, and the factor of each feature; None for no factors."""

    name: str
    gain: tuple[float, ...] | None = None

    @property
    def label(self) -> str:
        """Name for display."""
        return self.name if self.gain is None else f"{self.name}, weighted"


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
        paces, averaged_from = self.paces(state, schedule, len(visited), USUAL_BATCH)
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
class MemberTask:
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

    def with_planes(self) -> MemberTask:
        """The member with a number of planes for each class."""
        if self.n_planes is None:
            return replace(self, n_planes=np.array(choose_n_planes(self.method, self.data, self.seed).method.n_planes))
        most = np.maximum(self.data.class_counts, 1)
        return replace(self, n_planes=np.minimum(most, self.n_planes))


def train_members(tasks: Sequence[MemberTask], n_jobs: int | None = None) -> list[PlaneSet]:
    """Train members, and return their planes; the result does not depend on `n_jobs`.

    Parameters
    ----------
    tasks : sequence of MemberTask
        The members to train. Several may share their rows.
    n_jobs : int or None, default=None
        Number of threads.
    """

    def train(task: MemberTask) -> PlaneSet:
        task = task.with_planes()
        run = run_from_tangents(task.method, task.data, np.asarray(task.n_planes), task.scaling, task.seed)
        return run.method.planes(run.state)

    return in_threads(train, tasks, n_jobs)


class Member(NamedTuple):
    """One member of a committee: a preparation of encoded rows, and planes over the prepared features."""

    preparation: Preparation
    planes: PlaneSet

    def plane_scores(self, Z: np.ndarray) -> np.ndarray:
        """Compute the scores of the planes for encoded rows; each score is a sum over the columns of the table."""
        return self.planes.scores(self.preparation.transform(Z))


def class_scores(members: Sequence[Member], Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    r"""Compute the scores of the classes for encoded rows: the means over the members of their log-sum-exp.

    Equal members are computed once.
    """
    preparations = {id(member.preparation): member.preparation for member in members}
    prepared = {key: preparation.transform(Z) for key, preparation in preparations.items()}
    different = {(id(member.preparation), id(member.planes)): member.planes for member in members}
    parts = {key: smooth_scores(planes, prepared[key[0]], n_jobs) for key, planes in different.items()}
    return np.mean([parts[id(member.preparation), id(member.planes)] for member in members], axis=0)


def smooth_scores(planes: PlaneSet, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Compute the scores of the classes for prepared rows, in float64: the log-sum-exp that training maximises."""
    scores = planes.replace(pooling="logsumexp").class_scores(X, n_jobs)
    return np.asarray(scores, dtype=np.float64)
