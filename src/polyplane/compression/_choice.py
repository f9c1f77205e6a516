"""The choice of a shape, a scaling and a strength of noise on held-out rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyplane.compression._low_rank import LowRank
from polyplane.compression._shapes import Shape, fitting_shapes
from polyplane.compression._start import start
from polyplane.compression._tables import FLOAT, CompressedTables
from polyplane.compression._training import Training
from polyplane.scaling import AffineScaling

#: Noise to try, relative to the size of a feature; the first is what shapes are compared with.
NOISES = (0.3, 0.1, 0.7, 1.3)
#: Sizes of the first steps to try; the first is what all else is compared with.
RATES = (0.05, 0.1)
#: The shape that the scaling is chosen with, and its passes.
REFERENCE, REFERENCE_PASSES = Shape(0, 24, 16, False), 8
#: Passes of the rounds in which shapes are compared, and how many take part in each.
ROUNDS = ((4, 1000), (10, 5))
#: How many shapes are compared at last, with all passes that trials make.
LAST_SHAPES, LAST_PASSES = 3, 25
#: The fraction of the rows that is held out, and the most rows of a trial: to train on, and held out.
HELD_OUT, MOST_ROWS = 0.25, (6_000, 4_000)
#: With fewer rows than this, trials make more passes: as many steps as with so many rows.
FEW_ROWS = 2_000
#: Scales of features are costly where they would take more than this part of the budget.
COSTLY = 0.1
#: Features need scales if the ranges of more than this part of them are smaller than the largest range by this factor,
#: or if one is this far from 0 in standard deviations.
MANY, UNEQUAL, FAR = 0.1, 30.0, 100.0


class Rows(NamedTuple):
    """Rows with their classes and weights."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(self.X[rows], self.y[rows], self.weight[rows])

    def seen(self, scaling: AffineScaling, kept: np.ndarray) -> Rows:
        """The rows scaled, with some of their features."""
        X = (self.X[:, kept] - scaling.centre) * scaling.factor
        return self._replace(X=np.ascontiguousarray(X, dtype=np.float32))


class Settings(NamedTuple):
    """What is chosen: a shape, the noise relative to the size of a feature, and the size of the first steps."""

    shape: Shape
    noise: float = NOISES[0]
    rate: float = RATES[0]


class Trial(NamedTuple):
    """Settings that were tried, and their error on held-out rows."""

    settings: Settings
    n_bytes: int
    n_passes: int
    error: float


class Reference(NamedTuple):
    """Planes over all features that vary, and these features in the order of their importance."""

    coef: np.ndarray
    order: np.ndarray


class Search:
    """Trains candidates on some rows and compares them on others.

    Parameters
    ----------
    rows : Rows
        All rows.
    n_classes : int
        Number of classes.
    coef : ndarray of shape (n_given, n_features) or None
        Normals of the planes of the given model.
    max_bytes : int
        The budget, without the labels.
    seed : int
        Seed of the random choices.
    """

    def __init__(self, rows: Rows, n_classes: int, coef: np.ndarray | None, max_bytes: int, seed: int) -> None:
        self.rows, self.n_classes, self.coef, self.max_bytes, self.seed = rows, n_classes, coef, max_bytes, seed
        self.n_features = rows.X.shape[1]
        spread = np.ptp(rows.X, axis=0)
        self.varying = np.flatnonzero(spread > 0)
        if not len(self.varying):
            self.varying = np.arange(1)
        train, held_out = split(rows.y, n_classes, np.random.default_rng(seed))
        self.train, self.held_out = rows.take(train), rows.take(held_out)
        self.trials: list[Trial] = []
        self._references: dict[bool, Reference] = {}
        self._known: dict[tuple[Settings, int], tuple[float, LowRank]] = {}

    def run(self) -> Settings:
        """Choose the scaling, then the shape, and then the noise and the size of steps."""
        left = [Settings(shape) for scaled in self._best_scalings() for shape in self._shapes(scaled)]
        for n_passes, most in ROUNDS:
            left = self._compared(left[:most], n_passes)
        best = left[0]
        best = self._compared([best._replace(noise=noise) for noise in NOISES], LAST_PASSES)[0]
        others = [other._replace(noise=best.noise) for other in left[1:LAST_SHAPES]]
        best = self._compared([best, *others], LAST_PASSES)[0]
        return self._compared([best._replace(rate=rate) for rate in RATES], LAST_PASSES)[0]

    def final(self, settings: Settings, n_passes: int) -> tuple[CompressedTables, list[float]]:
        """The tables of settings after training on all rows, and the loss of each pass."""
        planes, losses = self._trained(settings, n_passes, self.rows)
        kept = self._kept(settings.shape)[1]
        scaling = self._scaling(kept, settings.shape.scaled)
        return planes.tables(kept, self.n_features, self.n_classes, scaling), losses

    def _best_scalings(self) -> list[bool]:
        """The scaling that is best with all features; both, where scales are better but would take many of the bytes.

        The planes trained with all features tell which of them matter, and are what candidates start from.
        """
        errors, n_varying = {}, len(self.varying)
        for scaled in (scaled for scaled in self._scalings() if self._shapes(scaled)):
            shape = REFERENCE._replace(n_kept=n_varying, rank=min(REFERENCE.rank or 1, n_varying), scaled=scaled)
            errors[scaled], planes = self._error(Settings(shape), REFERENCE_PASSES)
            spread = self.rows.X[:, self.varying].std(axis=0) * self._scaling(self.varying, scaled).factor
            strength = np.linalg.norm(planes.coef - planes.coef.mean(axis=0), axis=0) * spread
            self._references[scaled] = Reference(planes.coef, np.argsort(-strength, kind="stable"))
        best = min(errors, key=lambda scaled: errors[scaled])
        are_costly = 2 * FLOAT * n_varying > COSTLY * self.max_bytes
        return [*errors] if best and are_costly else [best]

    def _compared(self, candidates: list[Settings], n_passes: int) -> list[Settings]:
        """The candidates, those of the least error on held-out rows first."""
        errors = [self._error(settings, n_passes)[0] for settings in candidates]
        return [candidates[i] for i in np.argsort(errors, kind="stable")]

    def _scalings(self) -> list[bool]:
        """Whether features may have one scale in common, and scales of their own."""
        X = self.rows.X[:, self.varying]
        spread, deviation = np.ptp(X, axis=0), X.std(axis=0)
        are_unequal = np.mean(UNEQUAL * spread < spread.max()) > MANY
        is_far = (np.abs(X.mean(axis=0)) > FAR * deviation).any()
        return [True] if are_unequal or is_far else [False, True]

    def _shapes(self, scaled: bool) -> list[Shape]:
        n_varying = len(self.varying)
        return fitting_shapes(
            self.max_bytes, self.n_features, n_varying, self.n_classes, len(self.rows.y), scaled=scaled
        )

    def _kept(self, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """The features that a shape keeps: as indices of those that vary, and of all."""
        reference = self._references.get(shape.scaled)
        own = np.arange(len(self.varying)) if reference is None else np.sort(reference.order[: shape.n_kept])
        return own, self.varying[own]

    def _given(self, own: np.ndarray, scaled: bool) -> np.ndarray | None:
        """The planes to start from, over scaled rows: those of the reference, once there is one."""
        if scaled in self._references:
            return self._references[scaled].coef[:, own]
        factor = self._scaling(self.varying, scaled).factor
        return None if self.coef is None else np.asarray(self.coef[:, self.varying] / factor)

    def _scaling(self, kept: np.ndarray, scaled: bool) -> AffineScaling:
        """How the kept features are scaled: rows have a mean square norm of about 1 before any are left out."""
        X, weight, n_varying = self.rows.X[:, kept], self.rows.weight, len(self.varying)
        if scaled:
            found = AffineScaling.standard(X, weight)
            return AffineScaling(found.centre, found.factor / n_varying**0.5)
        return AffineScaling(X.mean(axis=0), AffineScaling.common(self.rows.X[:, self.varying], weight).factor)

    def _trained(self, settings: Settings, n_passes: int, rows: Rows) -> tuple[LowRank, list[float]]:
        """The planes of settings after some passes over rows, and the loss of each pass."""
        shape, rng = settings.shape, np.random.default_rng(self.seed)
        own, kept = self._kept(shape)
        seen = rows.seen(self._scaling(kept, shape.scaled), kept)
        given = self._given(own, shape.scaled)
        planes = start(seen.X, seen.y, self.n_classes, shape.rank, shape.n_planes, given, rng)
        return Training(n_passes, settings.rate, settings.noise / len(self.varying) ** 0.5).run(planes, *seen, rng)

    def _error(self, settings: Settings, n_passes: int) -> tuple[float, LowRank]:
        """The error of settings on held-out rows, and their planes; none is trained twice."""
        known = self._known.get((settings, n_passes))
        if known is not None:
            return known
        planes, _ = self._trained(settings, n_passes * -(-FEW_ROWS // min(len(self.train.y), FEW_ROWS)), self.train)
        kept = self._kept(settings.shape)[1]
        held_out = self.held_out.seen(self._scaling(kept, settings.shape.scaled), kept)
        error = float(np.average(planes.predict(held_out.X) != held_out.y, weights=held_out.weight))
        n_bytes = settings.shape.n_bytes(self.n_features, self.n_classes)
        self.trials.append(Trial(settings, n_bytes, n_passes, error))
        self._known[settings, n_passes] = error, planes
        return error, planes


def split(y: np.ndarray, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on in trials, and held-out rows; of each class the same part, where it has enough rows."""
    train, held_out = [], []
    for c in range(n_classes):
        own = rng.permutation(np.flatnonzero(y == c))
        n_held_out = int(HELD_OUT * len(own))
        share = len(own) / len(y)
        held_out.append(own[: min(n_held_out, int(share * MOST_ROWS[1]) + 1)])
        train.append(own[n_held_out:][: int(share * MOST_ROWS[0]) + 1])
    chosen = np.concatenate(held_out)
    return np.concatenate(train), chosen if len(chosen) else np.arange(len(y))
