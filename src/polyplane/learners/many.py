"""Many classifiers fitted together, each on its own rows of one matrix.

On a device, multi-hyperplane models are trained as a stack, with one matrix product for the planes of all of them. The
models share a matrix; each has its own rows, seed, start, step size, noise and number of planes. All visit all of
their rows, as with ``backoff=0``, and the result of one does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone

from polyplane._array_api import (
    astype,
    host_dtype,
    in_threads,
    is_foreign,
    like,
    namespace,
    take_rows,
    to_numpy,
    within_device_memory,
)
from polyplane.base import PlaneClassifier
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.run import Limits, Run
from polyplane.engine.state import Array, State, workspace
from polyplane.learners.log_loss import EPSILON, USUAL_BATCH, Adam, add_to_mean, decay, dense_gradient, run_steps
from polyplane.learners.multi_hyperplane import (
    STEPS_PER_PASS,
    MultiHyperplaneClassifier,
    SmoothMultiHyperplane,
    SmoothState,
)
from polyplane.learners.tangents import DrawnEpochs, EpochRandomness, EpochSampler, Schedule, choose_n_planes, near_host
from polyplane.planes import PlaneSet

#: Maximum number of scores, and of values of the rows, in a step of a stack; more models form several stacks.
MOST_SCORES, MOST_NUMBERS = 1 << 29, 1 << 28
#: Models with fewer scores in a step than this are padded to the same number of planes: launches take longer than sums.
FEW_SCORES = 1 << 19


_BY_MODEL = Array("f", "models", "classes", "planes", "features+1")


class Job(NamedTuple):
    """A model to train: method, seed and rows."""

    method: SmoothMultiHyperplane
    seed: int
    rows: np.ndarray


class Part(NamedTuple):
    """Models that are trained together, and their positions among all of them."""

    method: Any
    data: Data
    seed: int
    members: list[int]


def parts_of(data: Data, jobs: Sequence[Job], n_jobs: int | None = None) -> list[Part]:
    """Return the stacks that train a model for each job; a convex problem is solved alone.

    Parameters
    ----------
    data : Data
        The rows that all share, dense.
    jobs : sequence of Job
        The models to train.
    n_jobs : int or None, default=None
        Number of threads that compute the starts and draw random numbers, on the host.
    """
    near = near_host(data, max(int(np.max(job.method.n_planes or 1)) for job in jobs))
    starts = shared_starts(near, jobs, n_jobs)
    convex = [i for i, job in enumerate(jobs) if job.method.is_convex(starts[i].W.shape[1])]
    parts = []
    for i in convex:
        method = replace(jobs[i].method, n_planes=1)
        parts.append(Part(method, replace(near, train=jobs[i].rows), jobs[i].seed, [i]))
    for group in _groups(jobs, starts, set(range(len(jobs))) - set(convex)):
        stack = Stack(tuple(jobs[i] for i in group), tuple(starts[i] for i in group), n_jobs)
        parts.append(Part(stack, data, 0, group))
    return parts


def train_stacked(data: Data, jobs: Sequence[Job], n_jobs: int | None = None) -> list[PlaneSet]:
    """Train a model for each job, as `parts_of` groups them; return the planes, over the rows of X, on the host."""
    planes: dict[int, PlaneSet] = {}
    for part in parts_of(data, jobs, n_jobs):
        with within_device_memory("Train fewer models together, or fewer rows."):
            run = Run(part.method, seed=part.seed, tracked=False).go(repeat(part.data, part.method.max_iter))
            planes |= zip(part.members, part.method.planes_of_models(run.state), strict=True)
    return [planes[i] for i in range(len(jobs))]


def shared_starts(
    host: Data, jobs: Sequence[Job], n_jobs: int | None, memory: dict[Any, Any] | None = None
) -> list[SmoothState]:
    """The states before the first step, on the host. Models that differ only in their scales share their centres.

    With a common `memory`, so do the models of several calls with the same rows.
    """
    memory = {} if memory is None else memory

    def choose(job: Job) -> Any:
        found = choose_n_planes(job.method, replace(host, train=job.rows), job.seed).method
        chosen = {"n_planes": found.n_planes}
        return chosen if job.method.eta0 else chosen | {"eta0": found.step_size}

    def start(job: Job) -> SmoothState:
        return replace(job.method, scale=1.0).start(replace(host, train=job.rows), job.seed)

    def source(job: Job) -> tuple[Any, ...]:
        return id(job.rows), job.seed, job.method.n_planes

    trials = [
        (*source(job), job.method.eta0 is None, None if job.method.n_planes else job.method.trial) for job in jobs
    ]
    chosen = _each_once(choose, jobs, trials, n_jobs, memory)
    jobs = [job._replace(method=replace(job.method, **own)) for job, own in zip(jobs, chosen, strict=True)]
    starts = _each_once(start, jobs, [source(job) for job in jobs], n_jobs, memory)
    scaled = []
    for job, begun in zip(jobs, starts, strict=True):
        tangents = replace(begun.tangents, scale=job.method.scale * begun.tangents.scale)
        scaled.append(job.method.begin(tangents, begun.scaling, job.seed))
    return scaled


def _each_once(
    find: Callable[[Job], Any], jobs: Sequence[Job], keys: Sequence[Any], n_jobs: int | None, memory: dict[Any, Any]
) -> list[Any]:
    """What `find` returns for each job, in threads, once for all jobs of the same key."""
    first = {key: job for key, job in reversed(list(zip(keys, jobs, strict=True))) if key not in memory}
    found = in_threads(find, first.values(), n_jobs)
    for (key, job), value in zip(first.items(), found, strict=True):
        memory[key] = value, job.rows  # keys contain the id of the rows, so the rows are kept alive
    return [memory[key][0] for key in keys]


def _groups(jobs: Sequence[Job], starts: Sequence[SmoothState], chosen: set[int]) -> list[list[int]]:
    """The models of each stack: with equal numbers of steps and similar numbers of planes, as many as memory allows."""
    by_kind: dict[Any, list[int]] = {}
    for i in sorted(chosen):
        method, n_rows, start = jobs[i].method, len(jobs[i].rows), starts[i]
        size = min(method.batch_size, max(USUAL_BATCH, n_rows // STEPS_PER_PASS))
        padded = max(1 << (start.W.shape[1] - 1).bit_length(), FEW_SCORES // (size * start.W.shape[0]))
        kind = method.max_iter, method.average_fraction, size, -(-n_rows // size), padded
        by_kind.setdefault(kind, []).append(i)
    groups = []
    for (*_, size, _, _), members in by_kind.items():
        n_classes, _, n_inputs = starts[members[0]].W.shape
        n_planes = max(starts[i].W.shape[1] for i in members)
        most = max(1, min(MOST_SCORES // (n_classes * n_planes), MOST_NUMBERS // n_inputs) // size)
        groups += [members[first : first + most] for first in range(0, len(members), most)]
    return groups


@dataclass(frozen=True, eq=False)
class StackState(State):
    """The planes of all models, with their average and the moments of the gradient; the first axis is the model."""

    W: Annotated[Any, _BY_MODEL]
    adam: Adam
    mean: Annotated[Any, _BY_MODEL]
    epoch: int = 0
    workspace: StackRows | None = workspace()

    is_minimum: ClassVar[bool] = False  # only one plane per class can reach the minimum


@dataclass(frozen=True)
class Stack(Method[StackState]):
    """Models with the same number of steps. A step is a pass of all models over their rows.

    Parameters
    ----------
    jobs : tuple of Job
        The models.
    starts : tuple of SmoothState
        The state of each model before the first step.
    n_jobs : int or None
        Number of threads that draw random numbers, on the host.
    """

    jobs: tuple[Job, ...]
    starts: tuple[SmoothState, ...]
    n_jobs: int | None = None

    traits = Traits(StackState, takes_device_arrays=True)

    @property
    def max_iter(self) -> int:
        """Number of passes."""
        return self.jobs[0].method.max_iter

    def start(self, data: Data, seed: Any) -> StackState:
        """The starts, on the device of the rows."""
        W = self.padded_starts(data)
        xp = namespace(W)
        return StackState(W, Adam(xp.zeros_like(W), xp.zeros_like(W)), xp.zeros_like(W))

    def padded_starts(self, data: Data) -> Any:
        """The planes of all starts, padded to the same number, on the device of the rows."""
        (n_classes, _, n_inputs), n_planes = self.starts[0].W.shape, max(start.W.shape[1] for start in self.starts)
        padded = np.zeros((len(self.starts), n_classes, n_planes, n_inputs), dtype=host_dtype(data.X))
        padded[..., -1] = -1e30  # padding never has the highest score
        for own, start in zip(padded, self.starts, strict=True):
            own[:, : start.W.shape[1]] = to_numpy(start.W)
        return like(padded, data.X)

    def step(self, state: StackState, data: Data) -> StackState:
        """One pass of all models."""
        if state.workspace is None:
            anchor = self.padded_starts(data) if any(job.method.alpha for job in self.jobs) else None
            state = state.replace(workspace=StackRows(data, self.jobs, self.starts, anchor))
        assert state.workspace is not None
        state.workspace.make_pass(state, self.n_jobs)
        return state.replace(epoch=state.epoch + 1)

    def products(self, state: StackState) -> AbstractContextManager[Any]:
        """Matrix products are those of the device."""
        return nullcontext()

    def planes(self, state: StackState) -> PlaneSet:
        """Of a stack, each model has planes."""
        raise TypeError("A stack has several models: use planes_of_models.")

    def metrics(self, state: StackState) -> Mapping[str, float]:
        """The mean over the models of the log-loss met in the last pass, and the number of planes of all of them."""
        assert state.workspace is not None
        return {"loss": float(state.workspace.losses.mean()), "planes": sum(start.n_planes for start in self.starts)}

    def planes_of_models(self, state: StackState) -> list[PlaneSet]:
        """The planes of each model, over the rows of X, on the host."""
        assert state.workspace is not None
        W = to_numpy(state.mean if state.workspace.is_averaged(state.epoch) else state.W)
        found = []
        for planes, start in zip(W, self.starts, strict=True):
            own = (planes[c, np.flatnonzero(mask)] for c, mask in enumerate(start.tangents.mask))
            scaling = AffineScaling(to_numpy(start.scaling.centre), start.scaling.factor)
            unscaled = (scaling.to_input_space(p[:, :-1], p[:, -1]) for p in own)
            found.append(PlaneSet.of_classes(unscaled, pooling="logsumexp"))
        return found


class StackRows:
    """What the passes of a stack share: the rows, and the random numbers and settings of each step."""

    def __init__(self, data: Data, jobs: Sequence[Job], starts: Sequence[SmoothState], anchor: Any) -> None:
        self.jobs, self.X = jobs, data.X
        self.recorded: dict[Any, Any] = {}
        self.n_rows = np.array([len(job.rows) for job in jobs])
        method, xp = jobs[0].method, namespace(data.X)
        self.size = min(method.batch_size, max(USUAL_BATCH, int(self.n_rows[0]) // STEPS_PER_PASS))
        self.n_steps = -(-int(self.n_rows[0]) // self.size)
        self.anchor = anchor
        self.inputs = xp.concat([data.X, xp.ones_like(data.X[:, :1])], axis=1)
        self.centre = self._to_device([[*to_numpy(start.scaling.centre), 0.0] for start in starts])[:, None, :]
        factors = [[start.scaling.factor] * data.X.shape[1] + [1.0] for start in starts]
        self.factor = self._to_device(factors)[:, None, :]
        self.is_scaled = len({id(job.rows) for job in jobs}) == 1  # all models have the same scaling: once for all
        if self.is_scaled:
            self.inputs -= self.centre[0, ...]
            self.inputs *= self.factor[0, ...]
        self.y, self.weight = like(data.y, data.X), like(data.weight, data.X)
        self.classes = like(np.arange(data.n_classes), data.X)
        self.epsilon = EPSILON / data.X.shape[1] ** 0.5
        self.decay = decay(self.size)
        levels = [
            job.method.noise_level(start) * start.tangents.margin for job, start in zip(jobs, starts, strict=True)
        ]
        self.has_noise, self.noise_level = max(levels) > 0, self._to_device(levels)[:, None, None]
        self.noise: Any = None
        sources = {(id(job.rows), job.seed): job for job in jobs}
        self.model_sources = [list(sources).index((id(job.rows), job.seed)) for job in jobs]
        self.samplers = [
            (EpochSampler(replace(data, train=job.rows), job.method.shuffle, self.has_noise), job.seed)
            for job in sources.values()
        ]
        # The weight of each row in the mean over its batch; 0 for the padding of the last batch.
        index = np.arange(self.n_steps * self.size).reshape(self.n_steps, 1, self.size)
        real = index < self.n_rows[:, None]
        self.shares = self._to_device(real / real.sum(axis=2, keepdims=True))
        # The step size, the shrinking and the weight in the average of each step: (epochs, steps, 3, models).
        rates = _paces_of(jobs, starts, self.size)
        n_averaged = rates[..., 2]
        rates[..., 2] = np.where(n_averaged > 0, 1.0 / np.maximum(n_averaged, 1), 0.0)
        self.rates = np.ascontiguousarray(rates.transpose(1, 2, 3, 0))
        self.probability = like(np.empty((self.n_steps, len(jobs), self.size), dtype=host_dtype(data.X)), data.X)

    def _to_device(self, values: Any) -> Any:
        """Copy numbers of each model to the device of the rows."""
        return like(np.asarray(values, dtype=host_dtype(self.X)), self.X)

    def is_averaged(self, epoch: int) -> bool:
        """Whether the averages contain planes after this number of passes."""
        return bool(self.rates[:epoch, :, 2].any())

    def make_pass(self, state: StackState, n_jobs: int | None) -> None:
        """Update the arrays of a state in one pass; random numbers are drawn in threads, on the host."""
        xp, more = namespace(self.X), state.epoch + 1 < len(self.rates)
        drawn = in_threads(lambda source: source[0].draw(source[1], state.epoch, more=more), self.samplers, n_jobs)
        rows = self._batches([each.order for each in drawn])
        whole = [rows, self._of(self.y, rows)]
        if self.has_noise:
            whole.append(self._draw_noise(drawn))
        self.share = self._of(self.weight, rows) * self.shares
        batches = [xp.stack(whole, axis=1), self.share, self._to_device(self.rates[state.epoch])]
        run_steps(partial(self._step, state), batches, [()] * self.n_steps, self.probability, self.recorded)

    @property
    def losses(self) -> np.ndarray:
        """The mean log-loss of each model in the last pass."""
        xp = namespace(self.X)
        sums = [xp.sum(xp.sum(each, axis=2), axis=0) for each in (self.share * xp.log(self.probability), self.share)]
        return -to_numpy(sums[0] / sums[1])

    def _of(self, values: Any, rows: Any) -> Any:
        """The value of each row of an array of indices."""
        xp = namespace(values)
        return xp.reshape(xp.take(values, xp.reshape(rows, (-1,))), rows.shape)

    def _batches(self, values: Sequence[np.ndarray]) -> Any:
        """The values of each source in the order of the visits, with shape (steps, models, rows)."""
        padded = np.zeros((len(values), self.n_steps * self.size), dtype=np.int64)
        for line, value in zip(padded, values, strict=True):
            line[: len(value)] = value
        xp, there = namespace(self.X), like(padded, self.X)
        taken = take_rows(there, like(np.array(self.model_sources), self.X))
        return xp.permute_dims(xp.reshape(taken, (len(self.jobs), self.n_steps, self.size)), (1, 0, 2))

    def _draw_noise(self, drawn: Sequence[EpochRandomness]) -> Any:
        tables: list[Any] = [each.noise for each in drawn]
        starts = np.cumsum([0, *(len(table) for table in tables[:-1])])
        noise = like(np.pad(np.concatenate(tables), ((0, 0), (0, 1))), self.X)
        if self.noise is None:
            self.noise = noise
        else:
            self.noise[...] = noise  # recorded steps know this array
        chosen = [each.noise_rows + start for each, start in zip(drawn, starts, strict=True)]
        return self._batches(chosen)

    def _step(self, state: StackState, whole: Any, weight: Any, settings: Any) -> Any:
        """Train on some rows; return the probability of the class of each row."""
        rows, y = whole[0, ...], whole[1, ...]
        rate, shrink, averaged = (settings[i, ...][:, None, None, None] for i in range(3))
        xp, W = namespace(state.W), state.W
        x = xp.reshape(xp.take(self.inputs, xp.reshape(rows, (-1,)), axis=0), (*rows.shape, -1))
        if not self.is_scaled:
            x -= self.centre
            x *= self.factor
        if self.has_noise:
            noise = xp.reshape(xp.take(self.noise, xp.reshape(whole[2, ...], (-1,)), axis=0), x.shape)
            noise *= self.noise_level
            x += noise
        own = astype(y[..., None] == self.classes, W.dtype)
        probability, gradient = dense_gradient(W, x, own, weight)
        if self.anchor is not None:
            W -= shrink * (W - self.anchor)
        state.adam.step(W, gradient, self.decay, rate, self.epsilon)
        add_to_mean(state.mean, W, averaged)
        return probability


def _paces_of(jobs: Sequence[Job], starts: Sequence[SmoothState], size: int) -> np.ndarray:
    """The settings of all steps of the models, shape (models, epochs, steps, 3)."""
    found: dict[Any, np.ndarray] = {}
    paces = []
    for job, start in zip(jobs, starts, strict=True):
        unit, state = start.tangents.step, start
        key = replace(job.method, n_planes=None), start.eta0, len(job.rows)
        if key not in found:  # but for the unit of the steps, which are those of all models with the same method
            passes, own = job.method.max_iter, []
            for done in range(passes):
                steps, _ = job.method.paces(state, Schedule(passes, done, stream=False), len(job.rows), size)
                n_averaged = int(steps[-1].n_averaged)
                adam = state.adam.replace(t=state.adam.t + len(steps))
                state = state.replace(adam=adam, mean=state.W if n_averaged else None, n_averaged=n_averaged)
                own.append(steps)
            found[key] = np.array(own) / [unit, 1.0, 1.0]
        paces.append(found[key] * [unit, 1.0, 1.0])
    return np.array(paces)


def fit_many(
    estimators: Sequence[PlaneClassifier],
    X: Any,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    *,
    sample_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    memory: dict[Any, Any] | None = None,
) -> list[PlaneClassifier]:
    """Fit a copy of each estimator to its own rows.

    The result is ``[clone(e).fit(X[r], y[r], sample_weight[r]) for e, r in zip(estimators, rows)]``, up to rounding.
    `MultiHyperplaneClassifier` does not copy the rows, and classifiers with the same rows and seed share their start.
    They are trained in threads. If X is an array on a device (PyTorch, CuPy, ...), they are trained as a stack with
    common matrix products; they then visit all rows, as with ``backoff=0``, and cannot continue training.

    Parameters
    ----------
    estimators : sequence of PlaneClassifier
        The classifiers; they are not changed.
    X : array or CSR matrix of shape (n_rows, n_features)
        The matrix that all classifiers share.
    y : ndarray of shape (n_rows,)
        The labels.
    rows : sequence of ndarray of int
        The indices of the rows of each classifier.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows.
    n_jobs : int or None, default=None
        Number of threads.
    memory : dict or None, default=None
        A cache of starts, for several calls with the same X and the same array objects in `rows`.

    Returns
    -------
    fitted : list of PlaneClassifier
        A fitted classifier for each estimator.
    """
    n_classes = len(np.unique(y))
    together = {k for k, own in enumerate(rows) if _shares(estimators[k]) and len(np.unique(y[own])) == n_classes}

    def fit_alone(k: int) -> PlaneClassifier:
        own = rows[k]
        weight = None if sample_weight is None else sample_weight[own]
        return clone(estimators[k]).fit(take_rows(X, own), y[own], weight)

    alone = [k for k in range(len(rows)) if k not in together]
    fitted = dict(zip(alone, in_threads(fit_alone, alone, n_jobs), strict=True))
    kinds = {k: getattr(estimators[k], "standardize", False) for k in sorted(together)}
    for standardize in set(kinds.values()):
        members = [k for k, own in kinds.items() if own == standardize]
        chosen, own = [estimators[k] for k in members], [rows[k] for k in members]
        machines = _fit_together(chosen, X, y, own, sample_weight, n_jobs, memory)
        fitted |= zip(members, machines, strict=True)
    return [fitted[k] for k in range(len(rows))]


def _shares(estimator: PlaneClassifier) -> bool:
    """Whether an estimator can be trained together with others."""
    if not isinstance(estimator, MultiHyperplaneClassifier):
        return False
    plain = estimator.class_weight is None and estimator.tol is None and not estimator.early_stopping
    return plain and estimator.loss == "log" and not estimator.verbose


def _fit_together(
    estimators: Sequence[Any],
    X: Any,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    sample_weight: np.ndarray | None,
    n_jobs: int | None,
    memory: dict[Any, Any] | None,
) -> list[PlaneClassifier]:
    first = clone(estimators[0])
    data = first._validated(X, y, sample_weight, classes=None, whole=True)  # the scales of all rows, for all folds
    learned = {name: value for name, value in vars(first).items() if name not in first.get_params()}
    drafts = [clone(estimator) for estimator in estimators]
    own_rows: dict[int, np.ndarray] = {}  # classifiers with the same rows are recognised by the identity of this array
    jobs = []
    for draft, own in zip(drafts, rows, strict=True):
        draft._validate_params()
        draft.__dict__.update(learned)
        if id(own) not in own_rows:
            used = data.weight[own] > 0
            own_rows[id(own)] = own if used.all() else own[used]
        jobs.append(Job(draft._method(first.classes_), draft._seed(), own_rows[id(own)]))
    if is_foreign(X):
        for draft, planes in zip(drafts, train_stacked(data, jobs, n_jobs), strict=True):
            draft.planes_, draft.n_iter_ = planes.to(X), draft.max_iter
        return drafts
    memory = {} if memory is None else memory
    starts = shared_starts(data, jobs, n_jobs, memory)
    for job in jobs:
        memory.setdefault(("drawn", id(job.rows)), DrawnEpochs())

    def train(k: int) -> PlaneClassifier:
        own = replace(data, train=jobs[k].rows, memory=memory["drawn", id(jobs[k].rows)])
        return drafts[k]._train(own, Limits(), jobs[k].method, starts[k])

    return in_threads(train, range(len(jobs)), n_jobs)
