"""Many classifiers fitted together, each on its own rows of one matrix.

On a device, multi-hyperplane models are trained as a stack, with one matrix product for the planes of all of them. The
models share a matrix; each has its own rows, seed, start, step size, noise and number of planes, and skips rows of its
own. The result of one does not depend on the others, but that its steps are smaller where others visit more rows.
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
    at_least,
    device_of,
    host_dtype,
    in_threads,
    is_foreign,
    like,
    namespace,
    put,
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
from polyplane.learners.tangents import (
    BackoffState,
    DrawnEpochs,
    EpochRandomness,
    EpochSampler,
    Schedule,
    choose_n_planes,
    skip_longer,
)
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
    starts = shared_starts(data, jobs, n_jobs)
    convex = [i for i, job in enumerate(jobs) if job.method.is_convex(starts[i].W.shape[1])]
    parts = []
    for i in convex:
        method = replace(jobs[i].method, n_planes=1)
        parts.append(Part(method, replace(data, train=jobs[i].rows), jobs[i].seed, [i]))
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
    data: Data, jobs: Sequence[Job], n_jobs: int | None, memory: dict[Any, Any] | None = None
) -> list[SmoothState]:
    """The states before the first step. Models that differ only in their scales share their centres.

    With a common `memory`, so do the models of several calls with the same rows.
    """
    memory = {} if memory is None else memory

    def choose(job: Job) -> Any:
        found = choose_n_planes(job.method, replace(data, train=job.rows), job.seed).method
        chosen = {"n_planes": found.n_planes}
        return chosen if job.method.eta0 else chosen | {"eta0": found.step_size, "label_noise": found.label_noise}

    def start(job: Job) -> SmoothState:
        return replace(job.method, scale=1.0).start(replace(data, train=job.rows), job.seed)

    def source(job: Job) -> tuple[Any, ...]:
        return id(job.rows), job.seed, job.method.n_planes

    def setting(job: Job) -> tuple[Any, ...]:
        method = job.method
        return *source(job), method.eta0 is None, method.label_noise, None if method.n_planes else method.trial

    trials = [setting(job) for job in jobs]
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
        kind = method.backoff, method.max_iter, method.average_fraction, size, -(-n_rows // size), padded
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
    n_averaged: int = 0
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
        settings = state.workspace.make_pass(state, self.n_jobs)
        adam, n_averaged = state.adam.replace(t=state.adam.t + len(settings)), np.count_nonzero(settings[:, 2, 0])
        return state.replace(epoch=state.epoch + 1, adam=adam, n_averaged=state.n_averaged + int(n_averaged))

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
        W = to_numpy(state.mean if state.n_averaged else state.W)
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
        doubts = [job.method.doubt(start) for job, start in zip(jobs, starts, strict=True)]
        self.doubt = self._to_device(doubts)[:, None] if any(doubts) else None
        sources = {(id(job.rows), job.seed): job for job in jobs}
        self.model_sources = [list(sources).index((id(job.rows), job.seed)) for job in jobs]
        self.samplers = [
            (EpochSampler(replace(data, train=job.rows), job.method.shuffle, self.has_noise), job.seed)
            for job in sources.values()
        ]
        self.starts, self.most, number = starts, int(self.n_rows.max()), np.arange(len(jobs))[:, None]
        # Where the rows of each model begin in arrays of all models, and where its visits do.
        self.first_row, self.first_visit = like(number * len(data.y), data.X), like(number * self.most, data.X)
        # For how many passes each model skips each row on average; padding of batches writes to the last entry.
        n_skips = len(jobs) * len(data.y) if method.backoff else 0
        self.skip = like(np.zeros(n_skips + 1, dtype=np.uint8), data.X)
        self.clocks = [BackoffState(self.skip[m : m + len(data.y)]) for m in range(0, n_skips, len(data.y))]

    def _to_device(self, values: Any) -> Any:
        """Copy numbers of each model to the device of the rows."""
        return like(np.asarray(values, dtype=host_dtype(self.X)), self.X)

    def make_pass(self, state: StackState, n_jobs: int | None) -> np.ndarray:
        """Update the arrays of a state in one pass, and return the settings of its steps.

        Random numbers are drawn in threads, on the host.
        """
        xp, method = namespace(self.X), self.jobs[0].method
        more = state.epoch + 1 < method.max_iter
        drawn = in_threads(lambda source: source[0].draw(source[1], state.epoch, more=more), self.samplers, n_jobs)
        order, counts = self._by_model([each.order for each in drawn]), self.n_rows
        if method.backoff:
            order, counts = self._visited(order, self._by_model([each.chance for each in drawn], padding=np.inf))
        n_steps = -(-int(counts.max()) // self.size)
        # Models that visit so few rows that they need fewer steps than others make smaller ones.
        ends = np.minimum(np.arange(n_steps + 1)[:, None] * self.size, counts)
        less = -(-counts // self.size) < n_steps
        ends[:, less] = np.arange(n_steps + 1)[:, None] * counts[less] // max(n_steps, 1)
        begin, end = (like(part[:, :, None], self.X) for part in (ends[:-1], ends[1:]))
        at = begin + like(np.arange(self.size), self.X)
        is_row = at < end
        at = xp.where(is_row, at, 0 * at) + self.first_visit
        rows = self._of(order, at)
        whole = [rows, self._of(self.y, rows)]
        if self.has_noise:
            whole.append(self._of(self._draw_noise(drawn), at))
        dtype, visited = self.weight.dtype, rows + self.first_row
        weight = self._of(self.weight, rows) * astype(is_row, dtype)
        if method.backoff:
            visited = xp.where(is_row, visited, 0 * visited + self.skip.shape[0] - 1)
            skip = self._of(self.skip, visited)
            weight *= astype(skip, dtype) + 1.0
        share = weight / at_least(astype(end - begin, dtype), 1.0)
        settings = self._settings(state, counts)
        batches = [xp.stack(whole, axis=1), share, self._to_device(settings)]
        probability = xp.empty(rows.shape, dtype=dtype, device=device_of(rows))
        run_steps(partial(self._step, state), batches, [()] * n_steps, probability, self.recorded)
        if method.backoff:
            self._note(visited, skip, weight, probability)
        self.losses = -to_numpy(_sum(share * xp.log(probability)) / at_least(_sum(share), 1e-30))
        return settings

    def _visited(self, order: Any, chance: Any) -> tuple[Any, np.ndarray]:
        """The rows that each model visits in this pass, first in each line of `order`, and their numbers."""
        xp = namespace(order)
        is_visited = (astype(self._of(self.skip, order + self.first_row), chance.dtype) + 1.0) * chance < 1.0
        counts = to_numpy(xp.sum(astype(is_visited, order.dtype), axis=1))
        first = xp.argsort(astype(~is_visited, order.dtype), axis=1, stable=True)
        return self._of(order, first + self.first_visit), counts

    def _note(self, visited: Any, skip: Any, weight: Any, probability: Any) -> None:
        """Skip rows of high probability for longer, in the models whose skipped rows have not lost theirs."""
        xp = namespace(skip)
        counted = weight * astype(skip > 0, weight.dtype)
        shortfall = to_numpy(_sum(counted * (1.0 - probability))) / np.maximum(to_numpy(_sum(counted)), 1e-30)
        judged = [clock.judged(float(own)) for clock, own in zip(self.clocks, shortfall, strict=True)]
        self.clocks = [clock for clock, _ in judged]
        is_free = like(np.array([own for _, own in judged])[:, None], skip)
        visited = xp.where(is_free, visited, 0 * visited + self.skip.shape[0] - 1)
        longer = skip_longer(skip, probability, self.jobs[0].method.backoff)
        put(self.skip, xp.reshape(visited, (-1,)), xp.reshape(longer, (-1,)))

    def _settings(self, state: StackState, counts: np.ndarray) -> np.ndarray:
        """The step size, the shrinking and the weight in the average of each step of a pass: (steps, 3, models)."""
        found: dict[Any, np.ndarray] = {}
        settings = []
        for job, start, count in zip(self.jobs, self.starts, counts.tolist(), strict=True):
            method, unit = job.method, start.tangents.step
            n_rows = int(counts.max()) if method.backoff else count
            key = replace(method, n_planes=None), start.eta0, n_rows
            if key not in found:  # but for the unit of the steps, which are those of all models with the same method
                schedule = Schedule(method.max_iter, state.epoch, stream=False)
                now = start.replace(adam=state.adam, mean=start.W, n_averaged=state.n_averaged)
                paces, _ = method.paces(now, schedule, n_rows, self.size)
                found[key] = np.reshape(paces, (-1, 3)) / [unit, 1.0, 1.0]
            settings.append(found[key] * [unit, 1.0, 1.0])
        table = np.stack(settings, axis=2)
        table[:, 2] = np.where(table[:, 2] > 0, 1.0 / np.maximum(table[:, 2], 1), 0.0)
        return table

    def _of(self, values: Any, rows: Any) -> Any:
        """The values at an array of indices, over all axes of `values` together."""
        xp = namespace(values)
        return xp.reshape(take_rows(xp.reshape(values, (-1,)), xp.reshape(rows, (-1,))), rows.shape)

    def _by_model(self, values: Sequence[np.ndarray], padding: float = 0) -> Any:
        """The values of the source of each model, one for each row in the order of the visits."""
        lines = [
            value if len(value) == self.most else np.pad(value, (0, self.most - len(value)), constant_values=padding)
            for value in values
        ]
        return take_rows(like(np.stack(lines), self.X), like(np.array(self.model_sources), self.X))

    def _draw_noise(self, drawn: Sequence[EpochRandomness]) -> Any:
        tables: list[Any] = [each.noise for each in drawn]
        starts = np.cumsum([0, *(len(table) for table in tables[:-1])])
        noise = like(np.pad(np.concatenate(tables), ((0, 0), (0, 1))), self.X)
        if self.noise is None:
            self.noise = noise
        else:
            self.noise[...] = noise  # recorded steps know this array
        chosen = [each.noise_rows + start for each, start in zip(drawn, starts, strict=True)]
        return self._by_model(chosen)

    def _step(self, state: StackState, whole: Any, weight: Any, settings: Any) -> Any:
        """Train on some rows; return the probability of the class of each row."""
        rows, y = whole[0, ...], whole[1, ...]
        rate, shrink, averaged = (settings[i, ...][:, None, None, None] for i in range(3))
        xp, W = namespace(state.W), state.W
        x = xp.reshape(take_rows(self.inputs, xp.reshape(rows, (-1,))), (*rows.shape, -1))
        if not self.is_scaled:
            x -= self.centre
            x *= self.factor
        if self.has_noise:
            noise = xp.reshape(take_rows(self.noise, xp.reshape(whole[2, ...], (-1,))), x.shape)
            noise *= self.noise_level
            x += noise
        own = astype(y[..., None] == self.classes, W.dtype)
        probability, gradient = dense_gradient(W, x, own, weight, self.doubt)
        if self.anchor is not None:
            W -= shrink * (W - self.anchor)
        state.adam.step(W, gradient, self.decay, rate, self.epsilon)
        add_to_mean(state.mean, W, averaged)
        return probability


def _sum(values: Any) -> Any:
    """The sum over the steps and the rows, for each model."""
    xp = namespace(values)
    return xp.sum(xp.sum(values, axis=2), axis=0)


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
    common matrix products, and cannot continue training.

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
