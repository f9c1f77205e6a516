"""All passes of a machine in a row.

The machines of a table are trained by the method of `MultiHyperplaneClassifier`, many of them on few rows. Nothing is
kept to go on from, nothing has to be undone, and chance is drawn once: a pass over a few hundred rows takes a quarter
of the time that it takes in the engine, which can be stopped and resumed after each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from polyplane._threads import blas_threads
from polyplane.engine.data import Data
from polyplane.learners._contested import CONTENDERS, NOISE, ContestedPass, renews
from polyplane.learners._log_loss import USUAL_BATCH, decay
from polyplane.learners._one_plane import OnePlanePerClass
from polyplane.learners._smooth_multi_hyperplane import AMPLE, SmoothMultiHyperplane, SmoothState
from polyplane.learners._tangent import tangent_start
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: Called after each pass with the number of passes made and the mean log-loss met.
Report = Callable[[int, float], None]


class Trained(NamedTuple):
    """A trained machine: its planes over the rows, and the passes that it made."""

    planes: PlaneSet
    n_iter: int


def train(
    method: SmoothMultiHyperplane,
    data: Data,
    n_planes: np.ndarray,
    scaling: AffineScaling,
    seed: int,
    report: Report | None = None,
) -> Trained:
    """Train a machine on dense rows in memory, from the tangents above the centres of each class."""
    state = method.begin(tangent_start(data, n_planes, scaling, method.scale, seed), scaling, seed)
    make_passes = _find_minimum if method.is_convex(int(n_planes.max())) else _make_passes
    with blas_threads(method.batch_size * state.W.size):
        state, n_iter = make_passes(method, state, data, report)
    return Trained(method.planes(state), n_iter)


def _find_minimum(
    method: SmoothMultiHyperplane, state: SmoothState, data: Data, report: Report | None
) -> tuple[SmoothState, int]:
    """With one plane per class the problem is convex."""
    problem, W, done = OnePlanePerClass(data, state.scaling), state.W, 0
    for done in range(1, method.max_iter + 1):
        found = problem.improve(W)
        W = found.W
        if report is not None:
            report(done, found.loss)
        if found.is_minimum:
            break
    return replace(state, W=W), done


def _make_passes(
    method: SmoothMultiHyperplane, state: SmoothState, data: Data, report: Report | None
) -> tuple[SmoothState, int]:
    """Adam on mini-batches; rows whose margin is ample are not visited for 1, 3, 7, ... passes."""
    rng, W = np.random.default_rng(state.seed), state.W
    mean = np.zeros_like(W)
    all_contend = W.shape[0] * W.shape[1] <= CONTENDERS
    contenders = np.zeros((len(data.y), min(W.shape[0] * W.shape[1], CONTENDERS)), dtype=np.int32)
    contenders[:] = np.arange(contenders.shape[1])
    one_pass = ContestedPass(
        data.X, data.y, data.weight, state.scaling, W, state.adam, mean, None, decay(USUAL_BATCH),
        noise=_noise(method, state, rng), contenders=contenders, renew=not all_contend,
    )  # fmt: skip
    rows, paces = data.train, _Paces(method, state, len(data.train))
    skip, patience = np.zeros(len(data.y), dtype=np.uint8), np.zeros(len(data.y), dtype=np.uint8)
    for done in range(method.max_iter):
        order = rng.permutation(rows)
        waiting = skip[order]
        visited = order[waiting == 0]
        skip[order] = waiting - (waiting > 0)
        inputs = [visited]
        if one_pass.noise is not None:
            inputs.append(rng.integers(0, NOISE, len(visited)))
        one_pass.renew = not all_contend and renews(done)
        probability = one_pass.run(inputs, USUAL_BATCH, *paces.next(done, len(visited)))
        longer = np.minimum(2 * patience[visited].astype(np.int64) + 1, method.backoff)
        skip[visited] = patience[visited] = np.where(probability > AMPLE, longer, 0)
        if report is not None:
            report(done + 1, float(-np.log(probability).sum()) / len(rows))
    return replace(state, mean=mean if paces.n_averaged else None), method.max_iter


def _noise(method: SmoothMultiHyperplane, state: SmoothState, rng: np.random.Generator) -> np.ndarray | None:
    """Noise that rows get stretches of."""
    level = method.noise_level(state) * state.tangents.margin
    if level == 0:
        return None
    noise = rng.standard_normal(NOISE + state.W.shape[2] - 1, dtype=state.W.dtype.type)
    noise *= level
    return noise


class _Paces:
    """The numbers of the steps of each pass: rate, shrinking (none) and how many are averaged."""

    def __init__(self, method: SmoothMultiHyperplane, state: SmoothState, n_rows: int) -> None:
        self.passes, self.averaged_from = method.max_iter, (1 - method.average_fraction) * method.max_iter
        b1, b2 = decay(USUAL_BATCH)
        t = np.arange(1.0, 1 + method.max_iter * -(-n_rows // USUAL_BATCH))
        rate = method.eta0 * state.tangents.step / (state.W.shape[2] - 1) ** 0.5
        self.rates = rate * np.sqrt(1 - b2**t) / (1 - b1**t)
        self.t, self.n_averaged = 0, 0

    def next(self, done: int, n_rows: int) -> tuple[np.ndarray, int]:
        """The numbers of the next pass, one step in a line, and which is the first one that is averaged."""
        n_steps = -(-n_rows // USUAL_BATCH)
        paces = np.zeros((n_steps, 3))
        before = done + np.arange(0, n_rows, USUAL_BATCH) / max(n_rows, 1)  # passes made before each step
        paces[:, 0] = self.rates[self.t : self.t + n_steps] * (1 - before / self.passes)
        n_before = int(np.searchsorted(before, self.averaged_from))
        paces[n_before:, 2] = np.arange(self.n_averaged + 1, self.n_averaged + 1 + n_steps - n_before)
        self.t, self.n_averaged = self.t + n_steps, self.n_averaged + n_steps - n_before
        return paces, n_before
