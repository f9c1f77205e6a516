"""Contributions of the columns of a table to the scores of a table model's planes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from polyplane.inputs.columns import CategoryColumn, Column, DateColumn, NumberColumn, date_part, days
from polyplane.tables._model import TableModel
from polyplane.tables._preparation import Preparation

#: Largest number of integers that are tabulated one by one.
MOST_POINTS = 128
#: Cyclic parts of dates: their number of values, and the number of days after which a value may repeat.
CYCLES = {"month": (12, 334), "day of week": (7, 7)}
#: Largest extra cost of a level for being less frequent, so that frequent levels are preferred.
PREFERENCE = 1e-6
#: Sizes of the caches of a column: tables of different bounds, and values of rows.
MOST_TABLES, MOST_ROWS = 16, 256


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def remembered(known: dict[Key, Value], key: Key, make: Callable[[], Value], most: int) -> Value:
    """Return the cached value of a key, or compute it; a full cache is emptied."""
    value = known.get(key)
    if value is None:
        value = make()
        if len(known) >= most:
            known.clear()
        known[key] = value
    return value


class Cells(NamedTuple):
    """Ranges of values of one column, and their contributions to the scores of the planes.

    Parameters
    ----------
    low, high : ndarray of shape (n_cells,)
        Ends of the ranges, inclusive: numbers, days since 1970, or indices of levels. If both ends are equal, the cell
        is a single value.
    at_low, at_high : ndarray of shape (n_cells, n_planes)
        Contributions of the ends.
    least, most : ndarray of shape (n_cells, n_planes)
        Bounds of the contribution of any value in the range.
    """

    low: np.ndarray
    high: np.ndarray
    at_low: np.ndarray
    at_high: np.ndarray
    least: np.ndarray
    most: np.ndarray


class ColumnPart(NamedTuple):
    """One preparation of the features of a column, and their weights in all planes.

    The weights are 0 in planes of members with another preparation.
    """

    preparation: Preparation
    weights: np.ndarray

    @classmethod
    def of(cls, whole: Preparation, weights: np.ndarray, place: slice) -> ColumnPart:
        """Return the part of a column; the squared norm of a row is a sum over columns."""
        n_features = len(whole.centre)
        own = [f for f, (source, _) in enumerate(whole.sources) if source < 0 or place.start <= source < place.stop]
        more = [f - n_features for f in own if f >= n_features]
        numbers = np.flatnonzero(whole.is_number)
        part = replace(
            whole,
            is_number=whole.is_number[place],
            centre=whole.centre[place],
            factor=whole.factor[place],
            knots=tuple(k for j, k in zip(numbers, whole.knots, strict=False) if place.start <= j < place.stop),
            more_centre=whole.more_centre[more],
            more_factor=whole.more_factor[more],
            gain=whole.gain[place],
        )
        return cls(part, weights[own])

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Compute the contributions of encoded values to the scores of the planes, up to a constant."""
        return self.preparation.transform(rows).astype(np.float64) @ self.weights

    def bounds(self, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
        """Compute the scores of two ends, and bounds of the scores of all rows between them.

        Prepared features are monotonic functions of their sources, except for squares, which are smallest at the centre
        and largest at the end that is farther from it.
        """
        centre = self.preparation.centre
        nearest = np.clip(centre, low, high)
        farthest = np.where(np.abs(low - centre) > np.abs(high - centre), low, high)
        rows = np.concatenate([low, high, nearest, farthest])
        prepared = self.preparation.transform(rows).astype(np.float64).reshape(4, *low.shape[:1], -1)
        least, most = prepared.min(axis=0), prepared.max(axis=0)
        middle, half = 0.5 * (least + most) @ self.weights, 0.5 * (most - least) @ np.abs(self.weights)
        return [prepared[0] @ self.weights, prepared[1] @ self.weights, middle - half, middle + half]


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """Contribution of one column to the scores of all planes of a model."""

    column: Column
    parts: tuple[ColumnPart, ...]
    _tables: dict[tuple[float, float], Cells]
    _rows: dict[bytes, np.ndarray]

    @classmethod
    def of(cls, column: Column, place: slice, weights: list[tuple[Preparation, np.ndarray]]) -> ColumnEffect:
        """Return the effect of a column, given the preparations of a model and their weights in all planes."""
        return cls(column, tuple(ColumnPart.of(*pair, place) for pair in weights), {}, {})

    @cached_property
    def _n_features(self) -> int:
        return len(self.column.features)

    @cached_property
    def is_whole(self) -> bool:
        """Whether values change in steps of 1."""
        return isinstance(self.column, DateColumn) or (isinstance(self.column, NumberColumn) and self.column.is_whole)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Compute the contributions of encoded values to the scores, shape (n_rows, n_planes)."""
        return np.sum([part.scores(rows) for part in self.parts], axis=0)

    def scores_of(self, features: np.ndarray) -> np.ndarray:
        """Compute the contribution of one encoded value to the scores, shape (n_planes,), with a cache."""
        return remembered(self._rows, features.tobytes(), lambda: self.scores(features[None])[0], MOST_ROWS)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Encode numbers, days, or indices of levels."""
        rows = np.zeros((len(values), self._n_features))
        match self.column:
            case CategoryColumn():
                rows[np.arange(len(values)), values.astype(int)] = 1.0
            case DateColumn(parts=parts):
                dates = np.datetime64(0, "us") + np.round(values * 86_400e6).astype(np.int64).astype("timedelta64[us]")
                rows[:, 0] = days(dates)
                for j, part in enumerate(parts, start=1):
                    rows[:, j] = date_part(dates, part)
            case _:
                rows[:, 0] = values
        return rows

    def cells(self, low: np.ndarray, high: np.ndarray) -> Cells:
        """Return the cells between the given ends."""
        if (low == high).all():
            at_low = self.scores(self.encode(low))
            return Cells(low, high, at_low, at_low, at_low, at_low)
        box = self._box(low, high)
        if not isinstance(self.column, DateColumn):
            return Cells(low, high, *np.sum([part.bounds(*box) for part in self.parts], axis=0))
        _, _, least, most = np.sum([part.bounds(*box) for part in self.parts], axis=0)
        return Cells(low, high, self.scores(self.encode(low)), self.scores(self.encode(high)), least, most)

    def table(self, low: float, high: float) -> Cells:
        """Return the cells between two values: single values if few, otherwise ranges between knots."""
        return remembered(self._tables, (low, high), lambda: self.cells(*self._ends(low, high)), MOST_TABLES)

    @cached_property
    def levels(self) -> Cells:
        """Return the cells of all levels of a category, or of both values of a boolean."""
        n_levels = len(self.column.levels) if isinstance(self.column, CategoryColumn) else 2
        places = np.arange(n_levels, dtype=np.float64)
        return self.cells(places, places)

    @cached_property
    def level_costs(self) -> np.ndarray:
        """Return the cost of each level: 1, and slightly more if it is less frequent."""
        if not isinstance(self.column, CategoryColumn):
            return np.ones(2)
        counts = np.array(self.column.counts[: len(self.column.levels)])
        return 1.0 + PREFERENCE * (1.0 - counts / max(counts.sum(), 1))

    def _ends(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        if self.is_whole and high - low < MOST_POINTS and isinstance(self.column, NumberColumn):
            points = np.arange(np.ceil(low), high + 1.0)
            return points, points
        knots = np.concatenate([[low, high], *(self._knots(part.preparation) for part in self.parts)])
        knots = np.unique(knots[(knots >= low) & (knots <= high)])
        if self.is_whole:
            # Days keep the time of day of `low`.
            knots = np.unique(low + np.floor(knots - low))
            starts, stops = np.append(knots[:-1], knots[-1]), np.append(knots[1:] - 1.0, knots[-1])
            return starts, stops
        return np.append(knots[:-1], high), np.append(knots[1:], high)

    def _knots(self, preparation: Preparation) -> np.ndarray:
        """Return the knots of the first feature: ends of bins, and the centre of squares."""
        bends = preparation.knots[0] if preparation.knots and preparation.is_number[0] else np.empty(0)
        return np.append(bends, preparation.centre[0])

    def _box(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest value of each feature between two ends."""
        first, last = self.encode(low), self.encode(high)
        if isinstance(self.column, DateColumn):
            for j, part in enumerate(self.column.parts, start=1):
                if part in CYCLES:
                    size, n_days = CYCLES[part]
                    goes_round = (high - low >= n_days) | (last[:, j] < first[:, j])
                    first[goes_round, j], last[goes_round, j] = 1, size
        return first, last


class ModelEffects:
    """Effects of all columns of a model, tabulated on first use."""

    _known: ClassVar[WeakKeyDictionary[TableModel, ModelEffects]] = WeakKeyDictionary()

    def __init__(self, model: TableModel) -> None:
        encoding, weights = model.encoding, _weights(model)
        self.columns = tuple(
            ColumnEffect.of(column, place, weights)
            for column, place in zip(encoding.columns, encoding.places, strict=True)
        )
        counts = np.concatenate([np.diff(member.planes.indptr) for member in model.members])
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.n_members, self.n_classes, self.n_planes = len(model.members), model.n_classes, int(self.starts[-1])
        self.joined: dict[tuple[tuple[int, float, float], ...], tuple[np.ndarray, Cells, np.ndarray]] = {}
        self._places = encoding.places
        whole = np.concatenate([member.plane_scores(encoding.reference[None])[0] for member in model.members])
        self._constant = whole - sum(self.parts_of(encoding.reference))

    def parts_of(self, z: np.ndarray) -> list[np.ndarray]:
        """Compute the contribution of each column of an encoded row to the scores of the planes."""
        return [effect.scores_of(z[place]) for effect, place in zip(self.columns, self._places, strict=True)]

    def plane_scores(self, z: np.ndarray) -> np.ndarray:
        """Compute the scores of the planes of all members for an encoded row, in float64."""
        return self._constant + sum(self.parts_of(z))

    def class_scores(self, scores: np.ndarray) -> np.ndarray:
        """Compute the scores of the classes from those of the planes, shape (n_rows, n_classes)."""
        top = np.maximum.reduceat(scores, self.starts[:-1], axis=1)
        shares = np.exp(scores - np.repeat(top, np.diff(self.starts), axis=1))
        soft = top + np.log(np.add.reduceat(shares, self.starts[:-1], axis=1))
        return soft.reshape(len(scores), self.n_members, self.n_classes).mean(axis=1)

    @classmethod
    def of(cls, model: TableModel) -> ModelEffects:
        """Return the effects of a model, cached for the lifetime of the model."""
        if model not in cls._known:
            cls._known[model] = cls(model)
        return cls._known[model]


def _weights(model: TableModel) -> list[tuple[Preparation, np.ndarray]]:
    """Return the distinct preparations of a model, and the weights of their features in the planes of all members."""
    groups: list[tuple[Preparation, np.ndarray]] = []
    n_planes, start = sum(member.planes.n_planes for member in model.members), 0
    for preparation, planes in model.members:
        weights = next((known for other, known in groups if _are_same(preparation, other)), None)
        if weights is None:
            weights = np.zeros((planes.n_features, n_planes))
            groups.append((preparation, weights))
        weights[:, start : start + planes.n_planes] = planes.coef.T
        start += planes.n_planes
    return groups


def _are_same(one: Preparation, other: Preparation) -> bool:
    return one is other or one.to_dict() == other.to_dict()
