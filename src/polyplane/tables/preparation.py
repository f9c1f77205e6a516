"""`Preparation`: scaling and expansion of encoded features before training, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.engine.data import FeatureMoments, row_blocks
from polyplane.engine.state import Array
from polyplane.features import Features
from polyplane.files.values import ANY, Listed, Text
from polyplane.planes import PlaneSet

#: Largest number of leaves of the tree of a column. The smallest number of rows of a leaf is the maximum of the second
#: number and the third times the square root of the number of rows. (Mean error on 17 tables: 15.7 % with 8 leaves of a
#: hundredth of the rows, 15.4 % with 16 leaves; on adult 14.1 and 13.4 %.)
LEAVES, LEAST_ROWS, LEAST_ROOTS = 16, 5, 0.3
#: Number of rows that a tree is fitted on, and that levels are found in.
SAMPLE = 20_000


def _sampled(n_rows: int) -> np.ndarray:
    return np.linspace(0, n_rows - 1, min(n_rows, SAMPLE)).astype(int)


#: The number of leaves for steps is this power of the number of rows, 4 of 600 rows and 7 of 20,000, and a leaf has at
#: least this share of the rows of an even split. (Mean AUC on 5 small tables: 0.879; 0.874 with 8 leaves.)
STEP_POWER, STEP_SHARE = 0.2, 0.4
#: Width of the ramp of a step, relative to the distance of the values on either side.
RAMP = 1e-3


def tree_knots(
    values: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, as_steps: bool = False
) -> np.ndarray:
    """Return the ends of the bins of a column: the splits of a small classification tree, and the range of the column.

    Quantiles fail for a column that is 0 in nine of ten rows, since nearly all of them are 0; a tree splits at 0 and
    between the other values.

    With `as_steps`, the ends of a narrow ramp at each split instead, which no training row is on.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = _sampled(len(values))
    leaves, least = LEAVES, LEAST_ROOTS * len(rows) ** 0.5
    if as_steps:
        leaves = max(2, round(len(rows) ** STEP_POWER))
        least = STEP_SHARE * len(rows) / leaves
    tree = DecisionTreeClassifier(
        criterion="entropy",
        max_leaf_nodes=leaves,
        min_samples_leaf=max(LEAST_ROWS, int(least)),
        random_state=0,
    )
    # Trees use float32, in which large numbers with small differences are equal; their ranks are distinct.
    different, rank = np.unique(values[rows], return_inverse=True)
    column = rank[:, None].astype(np.float32)
    tree.fit(column, y[rows], None if weight is None else weight[rows], check_input=False)
    below = tree.tree_.threshold[tree.tree_.children_left >= 0].astype(int)
    if not len(below):
        return np.empty(0)
    splits = 0.5 * (different[below] + different[below + 1])
    if as_steps:
        half = 0.5 * RAMP * (different[below + 1] - different[below])
        return np.sort(np.concatenate([splits - half, splits + half]))
    return np.unique(np.concatenate([[values.min()], splits, [values.max()]]))


def bin_values(values: Any, knots: np.ndarray, as_steps: bool = False) -> np.ndarray:
    """Return the part of each bin below a value: 1 for lower bins, 0 for higher bins, a fraction for its own bin.

    With `as_steps`, the bins are every second interval between the knots.
    """
    low, width = knots[:-1], np.diff(knots)
    if as_steps:
        low, width = low[::2], width[::2]
    return np.clip((values[:, None] - low) / width, 0.0, 1.0)


#: A number with at most this many different values has levels, and a level has at least the second number of rows.
MOST_LEVELS, LEAST_LEVEL = 32, 5


def level_knots(values: np.ndarray) -> np.ndarray:
    """Return the levels of a column of few different values; empty if it has more of them, or less than three levels.

    A plane over indicators of levels can be any function of them: numbers are often codes, ranks or counts.
    """
    levels, count = np.unique(values[_sampled(len(values))], return_counts=True)
    knots = levels[count >= LEAST_LEVEL]
    return knots if len(levels) <= MOST_LEVELS and len(knots) > 2 else np.empty(0)


def level_values(values: Any, knots: np.ndarray) -> np.ndarray:
    """Return the indicator of each level; a value between two levels belongs to both of them in part."""
    below = bin_values(values, knots)
    below = np.concatenate([np.ones((len(below), 1)), below, np.zeros((len(below), 1))], axis=1)
    return below[:, :-1] - below[:, 1:]


#: Bound of robustly scaled numbers, approached smoothly.
CLIP = 3.0
#: Smallest number that indicators and bins are divided by: the standard deviation of an indicator of half of the rows.
#: At unit variance, an indicator of one row in a thousand would be 30 times as large as others. (Mean error on 17
#: tables: 15.9 %; 16.3 % with a floor of 0.3, 16.1 % with 0.05.)
LEAST_SPREAD = 0.5
#: Smallest relevance of a feature.
LEAST_GAIN = 1e-3
#: Largest prepared number, so that scores of float32 rows remain finite.
LARGEST_FEATURE = 1e12


class Recipe(NamedTuple):
    """Definition of a preparation.

    Parameters
    ----------
    is_robust : bool
        Whether numbers are scaled by median and interquartile range and clipped smoothly, instead of scaled by mean and
        standard deviation.
    has_norm : bool
        Whether the sum of the squares of the numbers is added as a feature. A plane over it is a sphere or an
        ellipsoid.
    has_squares : bool
        Whether the square of each number is added as a feature.
    has_bins : bool
        Whether piecewise-linear bins of each number are added as features.
    has_steps : bool
        Whether the bins are steps, which replace the number.
    has_levels : bool
        Whether indicators of the levels of numbers with few different values are added as features.
    penalty : float
        Relative strength of the penalty of one plane per class.
    """

    is_robust: bool = False
    has_norm: bool = False
    has_squares: bool = False
    has_bins: bool = False
    has_steps: bool = False
    has_levels: bool = False
    penalty: float = 1.0


#: All preparations, the simplest first. (Mean AUC and log-loss of scorecards on 7 tables: 0.869 and 0.372 with penalty
#: 30; 0.860 and 0.385 with 1, 0.867 and 0.372 with 10, 0.868 and 0.381 with 100.)
RECIPES = {
    "standard": Recipe(),
    "robust": Recipe(is_robust=True),
    "robust+norm": Recipe(is_robust=True, has_norm=True),
    "squares": Recipe(has_squares=True),
    "bins": Recipe(is_robust=True, has_bins=True),
    "levels": Recipe(is_robust=True, has_levels=True),
    "steps": Recipe(has_bins=True, has_steps=True, penalty=30.0),
}


_BY_FEATURE, _BY_ADDED = (Array("float64", size, in_place=False) for size in ("features", "added"))


@dataclass(frozen=True, eq=False)
class Preparation:
    """Transformation of encoded features to the features that planes are trained on.

    All features are centred and scaled, followed by the bins, levels, squares and norm of the recipe, also centred and
    scaled.

    Parameters
    ----------
    name : str
        Name of the recipe.
    is_number : ndarray of bool, shape (n_features,)
        Whether each feature is a number; the others are indicators or have only two values.
    centre, factor : ndarray of shape (n_features,)
        Scaling of the features.
    knots : tuple of ndarray
        Ends of the bins, or the levels, of each number; empty if there are none.
    more_centre, more_factor : ndarray
        Scaling of the added features.
    gain : ndarray of shape (n_features,)
        Final factor of each feature and of all features derived from it.
    """

    name: Annotated[str, Text(*RECIPES)]
    is_number: Annotated[np.ndarray, Array("b", "features", in_place=False)]
    centre: Annotated[np.ndarray, _BY_FEATURE]
    factor: Annotated[np.ndarray, _BY_FEATURE]
    knots: Annotated[tuple[np.ndarray, ...], Listed(Array("float64", ANY, in_place=False))]
    more_centre: Annotated[np.ndarray, _BY_ADDED]
    more_factor: Annotated[np.ndarray, _BY_ADDED]
    gain: Annotated[np.ndarray, _BY_FEATURE]

    @classmethod
    def fit(
        cls, name: str, Z: np.ndarray, y: np.ndarray, is_indicator: np.ndarray, weight: np.ndarray | None = None
    ) -> Preparation:
        """Fit a preparation on training rows.

        Parameters
        ----------
        name : str
            One of `RECIPES`.
        Z : ndarray of shape (n_rows, n_features)
            Encoded rows.
        y : ndarray of shape (n_rows,)
            Class indices.
        is_indicator : ndarray of bool, shape (n_features,)
            Whether each feature is an indicator.
        weight : ndarray of shape (n_rows,), default=None
            Sample weights.
        """
        recipe = RECIPES[name]
        is_number = ~is_indicator & (np.ptp(Z, axis=0) > 0 if recipe.has_steps else _has_three_values(Z))
        centre, factor = _scaling(Z, is_number, recipe.is_robust)
        knots: tuple[np.ndarray, ...] = ()
        if recipe.has_bins:
            numbers = np.flatnonzero(is_number)
            knots = tuple(tree_knots(Z[:, j], y, weight, recipe.has_steps) for j in numbers)
        if recipe.has_levels:
            knots = tuple(level_knots(Z[:, j]) for j in np.flatnonzero(is_number))
        gain = np.ones(len(centre))
        plain = cls(name, is_number, centre, factor, knots, np.empty(0), np.empty(0), gain)
        more = FeatureMoments()
        for rows in row_blocks(Z):
            more.add(plain._more(Z[rows], plain._scaled(Z[rows])))
        spread = np.sqrt(more.variance)
        if knots:
            spread = np.maximum(spread, LEAST_SPREAD)
        return replace(plain, more_centre=more.mean, more_factor=1.0 / np.where(spread > 0, spread, 1.0))

    def transform(self, Z: np.ndarray) -> np.ndarray:
        """Prepare encoded rows; the result is float32."""
        n_scaled = len(self.centre)
        result = np.empty((len(Z), n_scaled + len(self.more_centre)), dtype=np.float32)
        for rows in row_blocks(result):
            scaled, out = self._scaled(Z[rows]), result[rows]
            out[:, :n_scaled] = np.clip(scaled, -LARGEST_FEATURE, LARGEST_FEATURE)
            if len(self.more_centre):
                more = self._more(Z[rows], scaled)
                more -= self.more_centre
                more *= self.more_factor
                out[:, n_scaled:] = np.clip(more, -LARGEST_FEATURE, LARGEST_FEATURE, out=more)
        if (self.gain != 1.0).any():
            result *= np.append(self.gain, 1.0)[[j for j, _ in self.sources]].astype(np.float32)
        return result

    def weighted(self, gain: np.ndarray) -> Preparation:
        """Return a copy with features multiplied by gains."""
        return replace(self, gain=self.gain * gain)

    def relevance(self, planes: PlaneSet, X: np.ndarray) -> np.ndarray:
        """Compute the relevance of each feature for planes over prepared rows `X`, relative to the largest one.

        Weights that all planes share do not change predictions. The relevance is therefore the spread of the weights
        times the spread of the feature, including the features derived from it.
        """
        effect = np.square(planes.coef.std(axis=0) * X.std(axis=0)).astype(np.float64)
        source = np.array([j for j, _ in self.sources])
        own = source >= 0
        total = np.sqrt(np.bincount(source[own], weights=effect[own], minlength=len(self.gain)))
        return np.maximum(total / max(total.max(), 1e-30), LEAST_GAIN)

    def fold(self, planes: PlaneSet, is_indicator: np.ndarray) -> tuple[Features, np.ndarray, np.ndarray]:
        """Return features of the encoded columns, and the planes over them: coef and intercept in float64.

        Centres and factors of indicators and of added features, and gains, are included in the planes, so that members
        with different preparations share features. The norm becomes a feature for each number.
        """
        coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
        n_scaled = len(self.centre)
        centres, factors = np.append(self.centre, self.more_centre), np.append(self.factor, self.more_factor)
        functions: list[tuple[float, ...]] = []
        columns = []
        for i, (j, how) in enumerate(self.sources):
            if how == "scaled" and RECIPES[self.name].has_steps and self.is_number[j]:
                continue
            weight = coef[:, i] * (self.gain[j] if j >= 0 else 1.0)
            if i >= n_scaled or is_indicator[j]:
                intercept = intercept - weight * (centres[i] * factors[i])
                weight = weight * factors[i]
            if how.startswith("level "):
                # An indicator is the bin below the level less the bin above it.
                if how == "level 0":
                    intercept, before = intercept + weight, weight
                    continue
                weight, before = weight - before, weight
            own = self._functions(i, j, how, bool(is_indicator[j]))
            functions += own
            columns += [weight] * len(own)
        source, op, *numbers = np.array(functions).T
        features = Features(n_scaled, source.astype(np.intp), op.astype(np.uint8), *numbers)
        return features, np.stack(columns, axis=1), intercept

    def _functions(self, i: int, j: int, how: str, is_indicator: bool) -> list[tuple[float, ...]]:
        """Return the features whose sum is a prepared feature before its last scaling.

        Each is a tuple of source, index in `polyplane.features.OPS`, centre, factor, low and high.
        """
        if how == "norm":
            return [
                (k, 3, self.centre[k], self.factor[k], -np.inf, np.inf) for k in np.flatnonzero(self.is_number).tolist()
            ]
        if how.startswith(("bin ", "level ")):
            number = np.count_nonzero(self.is_number[:j])
            k = int(how.removeprefix("bin ").removeprefix("level ")) - how.startswith("level ")
            low, high = self.knots[number][2 * k if RECIPES[self.name].has_steps else k :][:2]
            return [(j, 0, low, 1.0 / (high - low), 0.0, 1.0)]
        if how == "square":
            more = i - len(self.centre)
            most = self.more_centre[more] + LARGEST_FEATURE / self.more_factor[more]
            return [(j, 1, self.centre[j], self.factor[j], -np.inf, most)]
        if is_indicator:
            return [(j, 0, 0.0, 1.0, -np.inf, np.inf)]
        if RECIPES[self.name].is_robust and self.is_number[j]:
            return [(j, 2, self.centre[j], self.factor[j], -np.inf, np.inf)]
        return [(j, 0, self.centre[j], self.factor[j], -LARGEST_FEATURE, LARGEST_FEATURE)]

    @property
    def sources(self) -> list[tuple[int, str]]:
        """The encoded feature that each prepared feature is derived from (-1 for all numbers), and how."""
        recipe, numbers = RECIPES[self.name], np.flatnonzero(self.is_number).tolist()
        sources = [(j, "scaled") for j in range(len(self.centre))]
        for j, knots in zip(numbers, self.knots, strict=False):
            if recipe.has_levels:
                sources += [(j, f"level {k}") for k in range(len(knots))]
                continue
            n_bins = len(knots) // 2 if recipe.has_steps else max(len(knots) - 1, 0)
            sources += [(j, f"bin {k}") for k in range(n_bins)]
        sources += [(j, "square") for j in numbers if recipe.has_squares]
        return sources + ([(-1, "norm")] if recipe.has_norm else [])

    def _scaled(self, Z: np.ndarray) -> np.ndarray:
        scaled = (Z - self.centre) * self.factor
        if RECIPES[self.name].has_steps:
            scaled[:, self.is_number] = 0.0
        if RECIPES[self.name].is_robust:
            numbers = scaled[:, self.is_number]
            scaled[:, self.is_number] = numbers / np.sqrt(1.0 + np.square(numbers / CLIP))
        return scaled

    def _more(self, Z: np.ndarray, scaled: np.ndarray) -> np.ndarray:
        """Compute the added features, without scaling."""
        recipe, numbers = RECIPES[self.name], np.flatnonzero(self.is_number)
        pairs = zip(numbers, self.knots, strict=False)
        values = level_values if recipe.has_levels else partial(bin_values, as_steps=recipe.has_steps)
        parts = [values(Z[:, j], knots) for j, knots in pairs if len(knots)]
        squares = np.square(scaled[:, numbers]) if recipe.has_squares or recipe.has_norm else None
        if recipe.has_squares and squares is not None:
            parts.append(squares)
        if recipe.has_norm and squares is not None:
            parts.append(squares.sum(axis=1, keepdims=True))
        return np.concatenate(parts, axis=1) if parts else np.empty((len(Z), 0))

    def check(self, sizes: Mapping[str, int]) -> bool:
        """Whether the arrays are consistent; called for preparations from a file."""
        recipe, n_numbers = RECIPES[self.name], np.count_nonzero(self.is_number)
        has_knots = len(self.knots) == (n_numbers if recipe.has_bins or recipe.has_levels else 0)
        is_sorted = all(len(knots) != 1 and (np.diff(knots) > 0).all() for knots in self.knots)
        numbers = (self.centre, self.factor, self.gain, self.more_centre, self.more_factor, *self.knots)
        is_finite = all(np.isfinite(part).all() for part in numbers)
        is_positive = all((part > 0).all() for part in (self.factor, self.gain, self.more_factor))
        return has_knots and is_sorted and is_finite and is_positive and len(self.sources) == self.n_prepared

    def to_dict(self) -> dict[str, Any]:
        """Convert the preparation to plain data that can be stored as JSON."""
        return {
            "name": self.name,
            "is_number": self.is_number.tolist(),
            "centre": self.centre.tolist(),
            "factor": self.factor.tolist(),
            "knots": [knots.tolist() for knots in self.knots],
            "more_centre": self.more_centre.tolist(),
            "more_factor": self.more_factor.tolist(),
            "gain": self.gain.tolist(),
        }

    @property
    def n_prepared(self) -> int:
        """Number of prepared features."""
        return len(self.centre) + len(self.more_centre)


def _has_three_values(Z: np.ndarray) -> np.ndarray:
    low, high = Z.min(axis=0), Z.max(axis=0)
    return ((low < Z) & (high > Z)).any(axis=0)


def _scaling(Z: np.ndarray, is_number: np.ndarray, is_robust: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and factor of each feature; if the interquartile range is 0, the standard deviation is used."""
    centre, spread = Z.mean(axis=0), Z.std(axis=0)
    ends = np.ptp(Z, axis=0)
    two = ~is_number
    spread[two] = np.maximum(spread[two], LEAST_SPREAD * ends[two])
    if is_robust and is_number.any():
        low, middle, high = np.quantile(Z[:, is_number], [0.25, 0.5, 0.75], axis=0)
        centre[is_number] = middle
        spread[is_number] = np.where(high > low, high - low, spread[is_number])
    return centre, 1.0 / np.where(ends > 0, spread, 1.0)
