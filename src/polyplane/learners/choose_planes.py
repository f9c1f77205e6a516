"""The numbers of planes, and the regularisation of convex polytopes, that users leave open: chosen by a race."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import in_threads, take_rows, to_numpy, within_device_memory
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.run import Choice, Race, Run
from polyplane.learners.joint_polytope import Centres, mean_square
from polyplane.learners.tangents import most_planes, run_from_tangents

# The number of planes of multi-hyperplane methods.

#: Minimum number of rows of a class per plane of a tangent start.
ROWS_PER_PLANE = 4
#: Numbers of planes per class to try; the last candidate is the maximum that the rows allow, up to 64, or 192 in total.
LEVELS = (1, 2, 4, 16)
#: Maximum number of rows of a trial, including held-out rows.
ROWS = 4500
#: Minimum and maximum number of passes of a trial, and the number of row visits that determines it in between; the
#: minimum if there are more features than rows. With few passes over few rows, several planes are not yet trained well
#: enough to compare them with a single plane, which is trained to the minimum.
PASSES, VISITS = (7, 60), 40_000
#: A quarter of the rows is held out; with up to FEW rows, three quarters in turn.
QUARTERS, FEW = 3, 2000
#: A number of planes worse than the best by this many standard errors is not tried on the next quarter.
OUT_OF_THE_RACE = 2.0
#: More than one plane is chosen only if a single one is worse by this many standard errors; more if trials use a
#: sample, because the number of planes is then multiplied.
WORSE, WORSE_IN_A_SAMPLE = 1.0, 1.5


def choose_n_planes(method: Any, data: Data, seed: Any) -> Choice:
    """Choose the number of planes of each class of a `TangentMethod` or a committee of it, if it is not given.

    Overlapping classes need one plane each, and more planes overfit; a checkerboard needs dozens, and a few are no
    better than one. Therefore all levels are tried, and a single plane is preferred (the one-standard-error rule). If
    the trials use a sample, the number of planes beyond the first grows in proportion to the number of rows.
    """
    if hasattr(method, "member"):
        choice = choose_n_planes(method.member, data, seed[0])
        return choice._replace(method=replace(method, member=choice.method))
    if method.n_planes is not None:
        return Choice(method)
    with within_device_memory("Train on fewer rows at a time with partial_fit."):
        scaling = AffineScaling.common(data.X, data.training_weight)
        most = _limit(data, min(max(64, 192 // data.n_classes), most_planes(data)))
        rows = np.random.default_rng(seed).permutation(data.train)[:ROWS]
        rows = rows[np.argsort(data.y[rows], kind="stable")]  # so that quarters are stratified by class
        levels = [*(level for level in LEVELS if level < most.max()), int(most.max())]
        passes = np.clip(VISITS // len(rows), *PASSES) if data.X.shape[1] <= len(rows) else PASSES[0]
        trial = replace(method.trial, max_iter=int(passes))

        def losses(levels: Sequence[int], quarter: int) -> list[np.ndarray]:
            held_out = rows[quarter::4]
            sample = replace(data, train=np.setdiff1d(rows, held_out), stream=False)
            runs = [run_from_tangents(trial, sample, _limit(sample, level), scaling, seed) for level in levels]
            return [_calibrated_losses(trial.planes(run.state), data, held_out) for run in runs]

        race: Race[int] = Race(losses)
        n_planes = most
        if len(levels) > 1:
            quarters = range(QUARTERS if len(rows) <= FEW else 1)
            left = race.run(levels, quarters, lambda left, _: race.near_best(left, OUT_OF_THE_RACE), until_one=True)
            worse = WORSE if len(rows) == len(data.train) else WORSE_IN_A_SAMPLE
            best = min(left, key=lambda level: race.losses(level).mean())
            level = 1 if 1 in race.near_best(left, worse) else best
            n_planes = np.minimum(most, 1 + (level - 1) * len(data.train) // len(rows))
    chosen = replace(method, n_planes=tuple(n_planes.tolist()))
    return Choice(chosen, {"n_planes": float(n_planes.max())}, race.table(lambda level: {"n_planes": level}))


def _limit(data: Data, n_planes: int) -> np.ndarray:
    """Planes of each class, at most `n_planes`: classes of few rows get fewer."""
    return np.clip(data.class_counts // ROWS_PER_PLANE, 1, n_planes)


def _calibrated_losses(planes: Any, data: Data, rows: np.ndarray) -> np.ndarray:
    """The loss of each row: its error, 0 or 1, plus its Brier score.

    The error is the quantity of interest, and Brier scores are more precise on few rows; log-losses are dominated by a
    few rows. After short training, scores are too large or too small, which longer training corrects. Scores are
    therefore multiplied by the factor with the lowest log-loss, which is convex in this factor.
    """
    scores = to_numpy(planes.class_scores(take_rows(data.X, rows))).astype(float)
    scores -= scores.max(axis=1, keepdims=True)
    scores /= max(-scores.mean(), 1e-300)
    index, y = np.arange(len(rows)), data.y[rows]
    own, weight = scores[index, y], data.weight[rows] / data.weight[rows].mean()
    power, step = 0.0, 4.0
    for _ in range(9):
        probability = np.exp(2**power * scores)
        probability /= probability.sum(axis=1, keepdims=True)
        slope = weight @ ((probability * scores).sum(axis=1) - own)
        power, step = power - np.sign(slope) * step, step / 2
    wrong, truth = scores.argmax(axis=1) != y, probability[index, y]
    return weight * (wrong + (probability**2).sum(axis=1) - 2 * truth + 1)


# The number of planes and the regularisation of joint convex polytopes.

#: Numbers of planes per class to try, and the number for a stream, where no trials are possible.
SIDES, IN_A_STREAM = (1, 4, 16, 48), 16
#: Minimum number of rows per plane, in a class of median size.
ROWS_PER_SIDE = 2
#: Weights of the start to try. With a small weight, planes move freely; with a large one, they stay near their initial
#: rows, which a checkerboard needs.
START_WEIGHTS = (3.0, 30.0)
#: Regularisation to try, first that of the first trials: alpha relative to the mean squared norm of a row divided by
#: the number of rows.
STRENGTHS = (0.3, 0.03, 0.1, 1.0, 3.0)
#: alpha in a stream, relative to the mean squared norm of a row.
STREAM_ALPHA = 1e-6
#: Maximum number of rows of a trial, minimum number of held-out rows of all splits, and passes of a trial.
SIDES_ROWS, ROWS_TO_JUDGE, SIDES_PASSES = 4000, 1000, 20


class Sides(NamedTuple):
    """A candidate: planes per class, weight of the start and strength of the regularisation."""

    n_planes: int
    start_weight: float
    strength: float


def choose_sides(method: Any, data: Data, seed: int) -> Choice:
    """Choose the number of planes, the weight of the start and `alpha` of a `JointPolytope`, if one is not given.

    First the number of planes and the weight of the start, with the first strength; then the strength. Candidates with
    the same number of planes share the centres that they start from.
    """
    if method.n_planes is not None and method.alpha is not None:
        return Choice(method)
    square = mean_square(data.X, data.train, 0.0) or 1.0
    if data.stream:
        n_planes, alpha = method.n_planes or IN_A_STREAM, method.alpha or STREAM_ALPHA * square
        return Choice(replace(method, n_planes=n_planes, alpha=alpha))

    def method_with(candidate: Sides, n_rows: int) -> Any:
        alpha = method.alpha or candidate.strength * square / n_rows
        return replace(method, n_planes=candidate.n_planes, alpha=alpha, start_weight=candidate.start_weight)

    folds = [Fold(data, *rows) for rows in _random_splits(data, seed)]

    def losses(candidates: Sequence[Sides], number: int) -> list[float]:
        fold = folds[number]
        in_threads(lambda k: fold.centres(k, seed), {each.n_planes for each in candidates}, method.n_jobs)
        trials = [method_with(candidate, len(fold.data.train)) for candidate in candidates]
        return in_threads(lambda trial: fold.error(trial, seed), trials, method.n_jobs)

    race: Race[Sides] = Race(losses)

    def best(candidates: list[Sides]) -> Sides:
        left = race.run(candidates, range(len(folds)))
        return min(left, key=lambda candidate: sum(race.losses(candidate).tolist()))

    most = max(1, int(np.median(data.class_counts)) // ROWS_PER_SIDE)
    levels = [k for k in SIDES if k <= most] if method.n_planes is None else [method.n_planes]
    found = best([Sides(k, weight, STRENGTHS[0]) for k in levels for weight in START_WEIGHTS[: 1 + (k > 1)]])
    if not method.alpha:
        found = best([found._replace(strength=strength) for strength in STRENGTHS])
    chosen = method_with(found, len(data.train))
    settings = {"n_planes": found.n_planes, "alpha": chosen.alpha, "start_weight": found.start_weight}
    return Choice(chosen, settings, race.table(Sides._asdict))


def _random_splits(data: Data, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training rows and held-out rows; several splits if there are few rows."""
    rng, n_rows = np.random.default_rng([seed, 1]), min(SIDES_ROWS, len(data.train))
    n_held_out = n_rows // 4
    n_splits = int(np.clip(ROWS_TO_JUDGE // max(n_held_out, 1), 1, 10))
    drawn = [rng.permutation(data.train)[:n_rows] for _ in range(n_splits)]
    return [(np.sort(rows[n_held_out:]), rows[:n_held_out]) for rows in drawn]


class Fold:
    """Training rows and held-out rows of short trainings, and the centres that these start from."""

    def __init__(self, data: Data, train: np.ndarray, held_out: np.ndarray) -> None:
        self._whole = replace(data, train=train)
        own = np.arange(len(train))
        self.data = replace(data, X=data.X[train], y=data.y[train], weight=data.weight[train], train=own)
        self._held_out = data.X[held_out], data.y[held_out], data.weight[held_out]
        self._centres: dict[int, Centres] = {}

    def centres(self, n_planes: int, seed: int) -> Centres:
        """The centres of each class, computed once."""
        if n_planes not in self._centres:
            self._centres[n_planes] = Centres.of(self._whole, n_planes, seed)
        return self._centres[n_planes]

    def error(self, trial: Any, seed: int) -> float:
        """The error on held-out rows after a short training on the others."""
        state = trial.begin(self.data, self.centres(trial.n_planes, seed), seed)
        run = Run(trial, state, tracked=False).go(repeat(self.data, SIDES_PASSES))
        X, y, weight = self._held_out
        return float(np.average(trial.predict(run.state, X) != y, weights=weight))
