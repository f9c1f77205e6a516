"""Training by the log-loss: each class scores the log-sum-exp of its planes; mini-batches, Adam, a falling step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane._array_api import (
    astype,
    device_of,
    like,
    namespace,
    take_rows,
    tf32_products,
    widest_float,
    within_device_memory,
)
from polyplane._threads import blas_threads
from polyplane._validation import Data
from polyplane.learners._log_loss import Adam, dense_gradient, sparse_gradient
from polyplane.learners._replay import run_steps
from polyplane.learners._schedule import Schedule
from polyplane.learners._tangent import Tangents
from polyplane.learners._units import Units
from polyplane.learners._visits import Draws, Visits
from polyplane.planes import PlaneSet

#: A row whose class has this probability hardly moves a plane: it may rest.
AMPLE = 0.99
#: Adam's memory of the gradient and of its square.
DECAY = (0.9, 0.99)
#: Adam's epsilon for one feature: planes without a gradient do not wander by rounding errors.
EPSILON = 1e-4
#: Rows per step that the above, and the length of a step, are meant for.
USUAL_BATCH = 256
#: Larger batches are asked of a pass only when it has this many of them: fewer steps would not reach as far.
STEPS_PER_PASS = 64


class SmoothState(NamedTuple):
    """Everything that training by the log-loss needs to go on; arrays are updated in place."""

    W: Any  # (n_classes, n_planes, n_features + 1), in training units, where the rows are
    anchor: Any  # the start, when weights decay towards it
    adam: Adam
    units: Units
    tangents: Tangents
    seed: int
    epoch: int = 0
    loss: float = np.inf
    mean: Any = None  # average over the last steps
    n_averaged: int = 0

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.tangents.real.sum())


class Pace(NamedTuple):
    """The numbers of a step."""

    rate: float  # of Adam
    shrink: float  # towards the anchor
    n_averaged: float  # states in the average, this one included


class SmoothTraining(NamedTuple):
    """How to train by the log-loss: mini-batches, Adam, a step that falls linearly."""

    batch_size: int
    eta0: float  # first step, relative to the way from a row to its centre
    noise: float  # standard deviation of the noise on the inputs, relative to the margin
    alpha: float
    tail: float  # the last part of the passes, whose planes are averaged
    backoff: int
    shuffle: bool
    schedule: Schedule
    tf32: bool = False

    def start(self, tangents: Tangents, units: Units, seed: int) -> SmoothState:
        """The state before the first epoch."""
        xp = namespace(tangents.centres)
        square = xp.sum(tangents.centres**2, axis=2, keepdims=True)
        W = tangents.scale * xp.concat([2 * tangents.centres, -square], axis=2)
        # What only fills up the array never wins, and has no gradient.
        W[:, :, -1] = xp.where(like(tangents.real, W), W[:, :, -1], xp.full_like(W[:, :, -1], -1e30))
        adam = Adam(xp.zeros_like(W), xp.zeros_like(W), 0)
        return SmoothState(W, xp.asarray(W, copy=True) if self.alpha else None, adam, units, tangents, seed)

    def epoch(self, state: SmoothState, data: Data) -> SmoothState:
        """The state after one more pass over the rows."""
        visits = data.recall(lambda: Visits(data))
        draws = visits.draws(self._draw(state, data, visits), *self._seeds(state))
        rows = visits.rest.wake(like(draws.order, visits.y))
        size = self._size(rows.shape[0])
        paces, averaged_from = self._paces(state, rows.shape[0], size)
        state = self._with_mean(state, averaged_from, len(paces))
        advice = f"Use a smaller batch_size than {self.batch_size}, or fewer rows at a time with partial_fit."
        with self._products(state.W), within_device_memory(advice):
            one_pass = _Pass(state, data, visits, draws, self.noise, decay(size))
            probability = self._steps(one_pass, rows, size, paces, averaged_from)
            loss = self._loss(visits, rows, probability)
            if self.backoff:
                visits.rest.note(rows, probability > AMPLE, self.backoff)
        return state._replace(
            epoch=state.epoch + 1,
            loss=loss / visits.total,
            adam=state.adam._replace(t=state.adam.t + len(paces)),
            n_averaged=int(paces[-1].n_averaged) if averaged_from < len(paces) else state.n_averaged,
        )

    def planes(self, state: SmoothState) -> PlaneSet:
        """The model in a state, in the units of X."""
        W = state.W if state.mean is None else state.mean
        by_class = []
        for c, real in enumerate(state.tangents.real):
            planes = take_rows(W[c, :, :], np.flatnonzero(real))
            by_class.append(state.units.fold(planes[:, :-1], planes[:, -1]))
        return PlaneSet.of_classes(by_class)

    def _size(self, n_rows: int) -> int:
        """Rows of each step in a pass over so many."""
        return min(self.batch_size, max(USUAL_BATCH, n_rows // STEPS_PER_PASS))

    def _seeds(self, state: SmoothState) -> tuple[list[int], list[int] | None]:
        """Of this epoch's chance, and of the next one's if there is to be one."""
        more = not self.schedule.stream and (state.epoch + 1) % self.schedule.passes > 0
        return [state.seed, state.epoch], [state.seed, state.epoch + 1] if more else None

    def _draw(self, state: SmoothState, data: Data, visits: Visits) -> Any:
        noise_shape = (state.W.shape[2] - 1, visits.dtype) if self.noise else None
        return lambda seed: Draws.of(data.train, self.shuffle, noise_shape, seed)

    def _paces(self, state: SmoothState, n_rows: int, size: int) -> tuple[list[Pace], int]:
        """The pace of each step, and the step from which planes are averaged."""
        lengths, n_features = state.tangents.lengths, state.W.shape[2] - 1
        # A step is a fraction of the way from a row to its centre, or of the margin where each row is its own centre.
        way = max(lengths.spread**0.5, lengths.margin / 4, 1e-6)
        unit = 2 * state.tangents.scale * way / n_features**0.5
        b1, b2 = decay(size)
        paces: list[Pace] = []
        averaged_from, t, n_averaged = 0, state.adam.t, state.n_averaged if state.mean is not None else 0
        for first in range(0, n_rows, size):
            fraction = first / n_rows
            t += 1
            rate = self.eta0 * stretch(size) * self.schedule.rate(state.epoch, fraction)
            if self.schedule.averages(state.epoch, fraction, self.tail):
                n_averaged = min(n_averaged + 1, self.schedule.window)
            else:
                averaged_from, n_averaged = len(paces) + 1, 0
            corrected = rate * unit * (1 - b2**t) ** 0.5 / (1 - b1**t)
            paces.append(Pace(corrected, min(1.0, rate * self.alpha), float(n_averaged)))
        return paces, averaged_from

    def _with_mean(self, state: SmoothState, averaged_from: int, n_steps: int) -> SmoothState:
        """The state with an average to add to, or none."""
        if averaged_from == n_steps and n_steps:
            return state._replace(mean=None)
        if n_steps and (state.mean is None or averaged_from):
            return state._replace(mean=namespace(state.W).zeros_like(state.W))
        return state

    def _products(self, W: Any) -> AbstractContextManager[Any]:
        """How matrix products are to be made."""
        if namespace(W) is np:
            return blas_threads(self.batch_size * W.size)
        return tf32_products(W) if self.tf32 else nullcontext()

    def _steps(self, one_pass: _Pass, rows: Any, size: int, paces: Sequence[Pace], averaged_from: int) -> Any:
        """Make all steps of a pass; return the probability of each row's class just before it was learned from."""
        xp, n_rows = namespace(rows), rows.shape[0]
        probability = xp.empty(n_rows, dtype=one_pass.W.dtype, device=device_of(rows))
        whole = n_rows // size
        inputs = [rows] if one_pass.noise is None else [rows, one_pass.noise_rows[:n_rows]]
        batches = [xp.reshape(array[: whole * size], (whole, size)) for array in inputs]
        out = xp.reshape(probability[: whole * size], (whole, size))
        for start, stop, step in (
            (0, min(averaged_from, whole), one_pass.step),
            (min(averaged_from, whole), whole, one_pass.averaged_step),
        ):
            run_steps(step, [batch[start:stop, :] for batch in batches], paces[start:stop], out[start:stop, :])
        if whole < len(paces):
            step = one_pass.step if averaged_from > whole else one_pass.averaged_step
            probability[whole * size :] = step(*(array[whole * size :] for array in inputs), *paces[-1])
        return probability

    def _loss(self, visits: Visits, rows: Any, probability: Any) -> float:
        xp = namespace(probability)
        losses = astype(take_rows(visits.weight, rows) * xp.log(probability), widest_float(probability))
        return -float(xp.sum(losses))


def stretch(size: int) -> float:
    """By what a batch of `size` rows lengthens steps: the noise of a gradient falls with the root of the batch."""
    return max(1.0, size / USUAL_BATCH) ** 0.5


def decay(size: int) -> tuple[float, float]:
    """Adam's memory for batches of `size` rows.

    It would reach back over the same number of rows with ``DECAY ** (size / USUAL_BATCH)``, and over the same number of
    steps with `DECAY`. Halfway between is best, or near it, for 1,024 to 16,384 rows of each of five data sets.
    """
    return DECAY[0] ** stretch(size), DECAY[1] ** stretch(size)


class _Pass:
    """One pass over the rows: all that its steps need, where the rows are."""

    def __init__(
        self,
        state: SmoothState,
        data: Data,
        visits: Visits,
        draws: Draws,
        noise: float,
        decay: tuple[float, float],
    ) -> None:
        self.X, self.y, self.weight = data.X, visits.y, visits.weight
        self.W, self.adam, self.anchor, self.mean = state.W, state.adam, state.anchor, state.mean
        self.units, self.decay = state.units, decay
        self.epsilon = EPSILON / (state.W.shape[2] - 1) ** 0.5
        self.classes = like(np.arange(state.W.shape[0]), state.W)
        self.noise: Any = None
        if draws.noise is not None:
            self.noise, self.noise_rows = like(draws.noise, state.W), like(draws.noise_rows, self.y)
            self.noise *= noise * state.tangents.lengths.margin

    def step(self, rows: Any, *rest: Any) -> Any:
        """Learn from some rows; return the probability of their classes before."""
        *noise_rows, rate, shrink, _ = rest
        probability, gradient = self._gradient(rows, *noise_rows)
        if self.anchor is not None:
            self.W -= shrink * (self.W - self.anchor)
        self.adam.step(self.W, gradient, self.decay, rate, self.epsilon)
        return probability

    def averaged_step(self, rows: Any, *rest: Any) -> Any:
        """The same, and let the planes join the average."""
        probability = self.step(rows, *rest)
        self.mean += (self.W - self.mean) / rest[-1]
        return probability

    def _gradient(self, rows: Any, noise_rows: Any = None) -> tuple[Any, Any]:
        W, n_rows = self.W, rows.shape[0]
        own = astype(take_rows(self.y, rows)[:, None] == self.classes, W.dtype)
        weight = take_rows(self.weight, rows) / n_rows
        if sparse.issparse(self.X):
            return sparse_gradient(W, self.X[rows], own, weight, self.units)
        xp = namespace(W)
        x = xp.ones((n_rows, W.shape[2]), dtype=W.dtype, device=device_of(W))
        x[:, :-1] = self.units.take(self.X, rows)
        if noise_rows is not None:
            x[:, :-1] += take_rows(self.noise, noise_rows)
        return dense_gradient(W, x, own, weight)
