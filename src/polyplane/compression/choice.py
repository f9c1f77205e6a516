"""Selection of the shape, scaling, noise and step size of a compressed model on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from polyplane.compression.shapes import FLOAT, Shape, fitting_shapes
from polyplane.compression.training import LowRank, LowRankMethod
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.run import Race, Run

#: Standard deviations of the noise to try, relative to that of a feature; shapes are compared with the first.
NOISES = (0.3, 0.1, 0.7, 1.3)
#: Initial step sizes to try; the other settings are compared with the first.
RATES = (0.05, 0.1)
#: The shape with which the scalings are compared, and the number of passes.
REFERENCE, REFERENCE_PASSES = Shape(0, 24, 16, False), 8
#: Rounds in which shapes are compared: the number of passes, and the maximum number of shapes.
ROUNDS = ((4, 1000), (10, 5))
#: Number of shapes in the last comparison, and passes of the last trials.
LAST_SHAPES, LAST_PASSES = 3, 25
#: The held-out fraction of the rows, and the maximum numbers of training rows and held-out rows of a trial.
HELD_OUT, MAX_ROWS = 0.25, (6_000, 4_000)
#: Trials on fewer rows than this make more passes, and so about as many steps as on this many rows.
FEW_ROWS = 2_000
#: Scales per feature are costly if they take more than this fraction of the budget.
COSTLY = 0.1
#: Scales per feature are needed if the ranges of more than this fraction of the features are smaller than the largest
#: range by this factor, or if the mean of a feature is this many standard deviations from 0.
MANY, UNEQUAL, FAR = 0.1, 30.0, 100.0


class CompressionSettings(NamedTuple):
    """The settings to choose: shape, noise (see `NOISES`) and initial step size."""

    shape: Shape
    noise: float = NOISES[0]
    rate: float = RATES[0]


class Reference(NamedTuple):
    """Planes over all varying features, and the indices of these features, the most important first."""

    coef: np.ndarray
    order: np.ndarray


class Search:
    """Trains models with different settings on a part of the rows, and compares them on held-out rows.

    Parameters
    ----------
    data : Data
        All training rows, dense.
    coef : ndarray of shape (n_given, n_features) or None
        Normals of the planes of the model to compress.
    max_bytes : int
        The budget for the tables, excluding the labels.
    seed : int
        Random seed.
    """

    def __init__(self, data: Data, coef: np.ndarray | None, max_bytes: int, seed: int) -> None:
        self.data, self.coef, self.max_bytes, self.seed = data, coef, max_bytes, seed
        self.n_features = data.X.shape[1]
        self.varying = np.flatnonzero(np.ptp(data.X, axis=0) > 0)
        if not len(self.varying):
            self.varying = np.arange(1)
        train, held_out = split(data.y, data.n_classes, np.random.default_rng(seed))
        self.train, self.held_out = _taken(data, train), _taken(data, held_out)
        self.race: Race[CompressionSettings] = Race(self._errors)  # the rungs are numbers of passes
        self._references: dict[bool, Reference] = {}

    def run(self) -> CompressionSettings:
        """Choose the scaling, then the shape, then the noise and the step size."""
        left = [CompressionSettings(shape) for scaled in self._best_scalings() for shape in self._shapes(scaled)]
        for n_passes, max_shapes in ROUNDS:
            left = self._ranked(left[:max_shapes], n_passes)
        best = left[0]
        best = self._ranked([best._replace(noise=noise) for noise in NOISES], LAST_PASSES)[0]
        others = [other._replace(noise=best.noise) for other in left[1:LAST_SHAPES]]
        best = self._ranked([best, *others], LAST_PASSES)[0]
        return self._ranked([best._replace(rate=rate) for rate in RATES], LAST_PASSES)[0]

    def final(self, settings: CompressionSettings, n_passes: int) -> tuple[dict[str, Any], dict[str, list[float]]]:
        """Train on all rows with these settings; return the parts of the model, and the history of the run."""
        run, planes = self._trained(settings, n_passes, self.data, tracked=True)
        kept = self._kept(settings.shape)[1]
        scaling = self._scaling(kept, settings.shape.scaled)
        return planes.model_parts(kept, self.n_features, self.data.n_classes, scaling), run.history

    def trials(self) -> dict[str, list[float]]:
        """Return what was compared, as the attribute `trials_`."""
        table = self.race.table(
            lambda settings: {
                "features": settings.shape.n_kept,
                "rank": settings.shape.rank or 0,
                "planes": settings.shape.n_planes,
                "scaled": settings.shape.scaled,
                "noise": settings.noise,
                "rate": settings.rate,
                "bytes": settings.shape.n_bytes(self.n_features, self.data.n_classes),
            }
        )
        return {**table, "passes": [float(n_passes) for n_passes, _ in self.race.trials], "error": table.pop("loss")}

    def _best_scalings(self) -> list[bool]:
        """The scaling with the lower error on all features; both, if scales per feature are better but costly.

        The planes trained here on all features determine their importance, and later trials start from these planes.
        """
        n_varying, references = len(self.varying), {}
        for scaled in (scaled for scaled in self._scalings() if self._shapes(scaled)):
            rank = min(REFERENCE.rank or 1, n_varying) if self.data.ranks is None else None
            shape = REFERENCE._replace(n_kept=n_varying, rank=rank, scaled=scaled)
            references[scaled] = CompressionSettings(shape)
        self.race.run(references.values(), [REFERENCE_PASSES])
        best = self.race.ranked(list(references.values()), REFERENCE_PASSES)[0].shape.scaled
        are_costly = 2 * FLOAT * n_varying > COSTLY * self.max_bytes
        return [*references] if best and are_costly else [best]

    def _ranked(self, candidates: list[CompressionSettings], n_passes: int) -> list[CompressionSettings]:
        """The candidates, sorted by their error on held-out rows."""
        self.race.run(candidates, [n_passes])
        return self.race.ranked(candidates, n_passes)

    def _errors(self, candidates: Sequence[CompressionSettings], n_passes: int) -> Iterator[float]:
        """The errors on held-out rows after training with these settings."""
        more = -(-FEW_ROWS // min(len(self.train.y), FEW_ROWS))
        for settings in candidates:
            _, planes = self._trained(settings, n_passes * more, self.train)
            scaled, kept = settings.shape.scaled, self._kept(settings.shape)[1]
            held_out = _scaled(self.held_out, self._scaling(kept, scaled), kept)
            error = float(np.average(planes.predict(held_out.X) != held_out.y, weights=held_out.weight))
            if scaled not in self._references:  # the first trial of a scaling is on all features
                spread = self.data.X[:, self.varying].std(axis=0) * self._scaling(self.varying, scaled).factor
                strength = np.linalg.norm(planes.coef - planes.coef.mean(axis=0), axis=0) * spread
                self._references[scaled] = Reference(planes.coef, np.argsort(-strength, kind="stable"))
            yield error

    def _scalings(self) -> list[bool]:
        """The scalings to try: a scale per feature (True) and, unless ranges differ too much, a common one (False)."""
        X = self.data.X[:, self.varying]
        spread, deviation = np.ptp(X, axis=0), X.std(axis=0)
        are_unequal = np.mean(UNEQUAL * spread < spread.max()) > MANY
        is_far = (np.abs(X.mean(axis=0)) > FAR * deviation).any()
        return [True] if are_unequal or is_far else [False, True]

    def _shapes(self, scaled: bool) -> list[Shape]:
        sizes = self.n_features, len(self.varying), self.data.n_classes, len(self.data.y)
        return fitting_shapes(self.max_bytes, *sizes, scaled=scaled, projected=self.data.ranks is None)

    def _kept(self, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """The features that a shape keeps, as indices into the varying features and into all features."""
        reference = self._references.get(shape.scaled)
        own = np.arange(len(self.varying)) if reference is None else np.sort(reference.order[: shape.n_kept])
        return own, self.varying[own]

    def _initial_coef(self, own: np.ndarray, scaled: bool) -> np.ndarray | None:
        """Normals of the planes to start from, over scaled rows: those of the reference, if already trained."""
        if scaled in self._references:
            return self._references[scaled].coef[:, own]
        factor = self._scaling(self.varying, scaled).factor
        return None if self.coef is None else np.asarray(self.coef[:, self.varying] / factor)

    def _scaling(self, kept: np.ndarray, scaled: bool) -> AffineScaling:
        """The scaling of the kept features: with all varying features, rows have a mean squared norm of about 1."""
        X, weight, n_varying = self.data.X[:, kept], self.data.weight, len(self.varying)
        if scaled:
            found = AffineScaling.standard(X, weight)
            return AffineScaling(found.centre, found.factor / n_varying**0.5)
        return AffineScaling(X.mean(axis=0), AffineScaling.common(self.data.X[:, self.varying], weight).factor)

    def _trained(
        self, settings: CompressionSettings, n_passes: int, data: Data, *, tracked: bool = False
    ) -> tuple[Run, LowRank]:
        """Train on these rows with these settings; return the run, and the planes."""
        shape = settings.shape
        own, kept = self._kept(shape)
        noise, coef = settings.noise / len(self.varying) ** 0.5, self._initial_coef(own, shape.scaled)
        method = LowRankMethod(shape.rank, shape.n_planes, n_passes, settings.rate, noise, coef)
        scaled = _scaled(data, self._scaling(kept, shape.scaled), kept)
        run = Run(method, seed=self.seed, tracked=tracked).go(repeat(scaled, n_passes))
        return run, method.low_rank(run.state)


def _taken(data: Data, rows: np.ndarray) -> Data:
    """The rows with these indices."""
    parts = {"X": data.X[rows], "y": data.y[rows], "weight": data.weight[rows]}
    return replace(data, **parts, train=np.arange(len(rows)))


def _scaled(data: Data, scaling: AffineScaling, kept: np.ndarray) -> Data:
    """The rows with the features `kept` only, scaled, in float32."""
    X = (data.X[:, kept] - scaling.centre) * scaling.factor
    ranks = None if data.ranks is None else data.ranks[kept]
    return replace(data, X=np.ascontiguousarray(X, dtype=np.float32), ranks=ranks)


def split(y: np.ndarray, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the training rows and the held-out rows of the trials, stratified by class."""
    train, held_out = [], []
    for c in range(n_classes):
        own = rng.permutation(np.flatnonzero(y == c))
        n_held_out = int(HELD_OUT * len(own))
        fraction = len(own) / len(y)
        held_out.append(own[: min(n_held_out, int(fraction * MAX_ROWS[1]) + 1)])
        train.append(own[n_held_out:][: int(fraction * MAX_ROWS[0]) + 1])
    chosen = np.concatenate(held_out)
    return np.concatenate(train), chosen if len(chosen) else np.arange(len(y))
