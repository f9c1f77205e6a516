"""Effects of the values of columns on the scores of the classes, and the importance of the columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from polyplane.explain.columns import OTHER, CellValue, ModelColumns, decoded
from polyplane.explain.geometry.changes import part_of_column
from polyplane.explain.text import date_text, distinct, signed, whole_number
from polyplane.inputs.encoding import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    Range,
    TextColumn,
)
from polyplane.inputs.formats import DATES
from polyplane.inputs.frames import Cells
from polyplane.model import Model

#: Explanations use evenly spaced rows: largest number of rows, smallest number if this exceeds the limit of numbers,
#: this limit, and the typical number of values of a column.
MAX_ROWS, MIN_ROWS, MAX_NUMBERS, N_VALUES = 1000, 100, 1 << 22, 64
#: Number of values on an axis, besides the ends of bins.
GRID = 33
#: Quantiles of the rows between which a curve is drawn; without rows, it covers this many spreads around the median.
DRAWN, SPREADS = (0.005, 0.995), 3.0
#: Quantiles of the rows between which a band around a curve extends.
BAND = (0.1, 0.9)
#: Quantiles of a normal distribution, which represent the values of a number of known spread.
QUANTILES = ndtri((np.arange(40) + 0.5) / 40)
#: Values of the parts of a date.
CALENDAR = {"month": (1, 12), "day of week": (1, 7), "hour": (0, 23)}
#: Number of levels and numbers of a column that are printed, and smallest fraction of the rows of a level.
PRINTED_VALUES, MIN_SHARE = 5, 0.005
#: Smallest width of a range of effects that is printed, as a fraction of the largest effect of the column.
WIDE = 0.5
#: Number of words of a text whose effects are computed.
MAX_WORDS = 20


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """Effects of the values of a column on the scores of the classes, relative to its reference value.

    Parameters
    ----------
    column : str
        Name of the column.
    column_type : str
        "number", "category", "boolean", "date" or "text".
    part : str or None
        For dates: "days", "year", "month", "day of week" or "hour".
    values : tuple
        Numbers in increasing order (dates as days since 1970), levels, or words with the largest effects.
    reference : float or str
        The reference value: the median or the most frequent level; for a matrix, the mean.
    effect : ndarray of shape (n_values, n_classes)
        Change of the score of each class, minus the mean score of the other classes, relative to the reference value;
        in log-odds if the model has probabilities.
    low, high : ndarray of shape (n_values, n_classes) or None
        The 10th and the 90th percentile of the effect over the rows, if the column interacts with other columns.
    missing : ndarray of shape (n_classes,) or None
        Effect of a missing value, if the column had missing values in training.
    counts : tuple of int or None
        Number of training rows of each level.
    drawn : tuple of float
        The range that contains nearly all rows.
    deciles : tuple of float or None
        Deciles of the given rows.
    is_whole : bool
        Whether the values are integers.
    by_plane : ndarray of shape (n_values, n_planes) or None
        For a single member with several planes per class: contribution of the values to the score of each plane, minus
        the mean over all planes, which does not affect predictions.
    """

    column: str
    column_type: str
    part: str | None
    values: tuple[CellValue, ...]
    reference: CellValue
    effect: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    missing: np.ndarray | None
    counts: tuple[int, ...] | None
    drawn: tuple[float, float]
    deciles: tuple[float, ...] | None
    is_whole: bool
    by_plane: np.ndarray | None = None

    @property
    def name(self) -> str:
        """Name of the column, with the part of a date."""
        return self.column if self.part in (None, "days") else f"{self.column} ({self.part})"

    @property
    def is_curve(self) -> bool:
        """Whether the values are numbers."""
        return self.counts is None and self.column_type in ("number", "date")

    @property
    def bands(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The range of the effect over the rows: `low` and `high`, if the column interacts with other columns."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def shown(self, value: float, digits: int = 3) -> str:
        """Format a number or a date of a curve."""
        return date_text(value) if self.part == "days" else whole_number(value, self.is_whole, digits)

    def weights(self) -> np.ndarray:
        """Return the weight of each value: the frequency of levels, and equal weights of numbers in the main range."""
        if self.counts is not None:
            counts = np.array(self.counts, dtype=float)
            return counts / max(1.0, counts.sum())
        if not self.is_curve:
            return np.full(len(self.values), 1.0 / len(self.values))
        inside = [self.drawn[0] <= float(value or 0.0) <= self.drawn[1] for value in self.values]
        return np.array(inside, dtype=float) / max(1, sum(inside))

    def levels(self, most: int) -> tuple[list[str], np.ndarray, list[int], Any]:
        """Return names, effects, counts and bands of the most frequent levels, and of missing values."""
        counts = np.zeros(len(self.values), dtype=int) if self.counts is None else np.array(self.counts)
        kept = np.sort(np.argsort(-counts, kind="stable")[:most])
        names, rows = [str(self.values[i]) for i in kept], counts[kept].tolist()
        parts = [None if part is None else part[kept] for part in (self.effect, self.low, self.high)]
        if self.missing is not None:
            names, rows = [*names, "missing"], [*rows, 0]
            parts = [None if part is None else np.vstack([part, self.missing]) for part in parts]
        sizes, low, high = parts
        assert sizes is not None
        return names, sizes, rows, None if low is None else (low, high)

    def to_text(self, sizes: np.ndarray, c: int | None = None) -> str:
        """Format a few effects: the levels that matter in most rows, or numbers over the whole range.

        For class `c`, the range over rows is added in brackets if it is wide.
        """
        if self.is_curve:
            values = np.array(self.values, dtype=float)
            (low, high), middle = self.drawn, float(self.reference or 0.0)
            wanted = [low, 0.5 * (low + middle), middle, 0.5 * (middle + high), high]
            shown = sorted({int(np.abs(values - value).argmin()) for value in wanted})
            prefix = f"{self.part} " if self.part not in (None, "days") else ""
            texts = distinct(values[shown].tolist(), self.shown, 3)
            told = [f"{signed(sizes[i])} at {text}{self._band(i, c)}" for i, text in zip(shown, texts, strict=True)]
            return prefix + ", ".join(told)
        share = self.weights()
        order = np.argsort(-np.abs(sizes) * share, kind="stable")
        shown = [i for i in order if share[i] >= MIN_SHARE and self.values[i] != self.reference][:PRINTED_VALUES]
        told = [f"{signed(sizes[i])} {self.values[i]}{self._band(i, c)}" for i in shown]
        return ", ".join([*told, f"0 {self.reference} (reference)"])

    def _band(self, i: int, c: int | None) -> str:
        if c is None or self.bands is None:
            return ""
        low, high = (band[i, c] for band in self.bands)
        return f" ({signed(low)} to {signed(high)})" if high - low > WIDE * np.abs(self.effect[:, c]).max() else ""


def leads(scores: np.ndarray) -> np.ndarray:
    """Compute the scores of classes minus the mean of the other classes, along the last axis."""
    n_classes = scores.shape[-1]
    return (scores - scores.mean(axis=-1, keepdims=True)) * (n_classes / (n_classes - 1))


class _Axis(NamedTuple):
    """Values of a column, or of a part of a date, and their encoded numbers."""

    part: str | None
    values: tuple[CellValue, ...]
    reference: CellValue
    encoded: np.ndarray
    counts: tuple[int, ...] | None = None
    drawn: tuple[float, float] = (0.0, 0.0)
    is_whole: bool = False
    deciles: tuple[float, ...] | None = None


class Effects:
    """Effects and importance of the columns of a model on some rows, computed when they are asked for.

    Parameters
    ----------
    described : ModelColumns
        The columns, with encoded rows or without. Of many rows, evenly spaced ones are used.
    """

    def __init__(self, described: ModelColumns) -> None:
        model: Model = described.model.flat()
        self._model, self._described = model, described
        self.columns = tuple(described.names)
        self.is_additive = model.is_additive
        self._has_planes = model.planes.n_members == 1 and not model.is_additive
        self._reference = described.reference.z.astype(np.float64)
        self._at_reference = self._planes(self._reference[None])[0]
        self._Z: Any = None
        if described.Z is not None:
            wide = len(self.columns) * model.n_classes
            size = max(wide, model.planes.n_planes * (1 if self.is_additive else N_VALUES))
            n_rows = min(described.Z.shape[0], MAX_ROWS, max(MIN_ROWS, MAX_NUMBERS // size))
            self._Z = described.Z[np.linspace(0, described.Z.shape[0] - 1, n_rows).astype(np.intp)]

    def _planes(self, Z: Any) -> np.ndarray:
        scores: np.ndarray = self._model.plane_scores(Z).astype(np.float64)
        return scores

    def _classes(self, planes: np.ndarray) -> np.ndarray:
        """Compute the class scores, in log-odds, from plane scores along the last axis."""
        scores = self._model.planes.pooled(planes.reshape(-1, planes.shape[-1])) / self._model.unit
        return scores.reshape(*planes.shape[:-1], -1)

    @property
    def base(self) -> np.ndarray:
        """Scores of the classes at the reference row, minus the mean of the other classes."""
        return leads(self._classes(self._at_reference))

    @cached_property
    def by_class(self) -> np.ndarray:
        """Standard deviation of the contribution of each column to the score of each class."""
        if self._Z is None:
            return np.array([self._estimated(j) for j in range(len(self.columns))])
        parts = leads(self._model.contributions(self._Z, self._reference) / self._model.unit)
        return np.asarray(parts.std(axis=0))

    @cached_property
    def importance(self) -> np.ndarray:
        """The importance of each column: the root mean square of these deviations over the classes."""
        return np.sqrt(np.square(self.by_class).mean(axis=1))

    def _estimated(self, j: int) -> np.ndarray:
        """Estimate the deviations of the effects of a column from the stored distribution of its values."""
        column, variance = self._described.column(j), np.zeros(self._model.n_classes)
        if isinstance(column, TextColumn):  # as if words were independent
            shares, words = np.array(column.shares), np.eye(len(column.words), len(column.features))
            return np.sqrt((shares * (1.0 - shares)) @ np.square(self._mean_effect(self._part(j, words), None)[0]))
        for effect in self._effects_of(j):
            sizes, weights = effect.effect, np.ones(len(effect.values))
            known = getattr(column, "range", None)
            if isinstance(column, CategoryColumn):
                weights = np.array(column.counts, dtype=float)
            elif isinstance(column, BooleanColumn):
                weights = np.array([1.0 - column.neutral, column.neutral])
            elif isinstance(known, Range) and effect.part in (None, "days"):
                middle, values = float(effect.reference or 0.0), np.array(effect.values, dtype=float)
                points = np.clip(middle + known.spread / (2 * ndtri(0.75)) * QUANTILES, known.low, known.high)
                sizes = np.stack([np.interp(points, values, one) for one in sizes.T], axis=1)
                weights = np.ones(len(points))
            if weights.any():
                mean = np.average(sizes, axis=0, weights=weights)
                variance += np.average(np.square(sizes - mean), axis=0, weights=weights)
        return np.sqrt(variance)

    def _effects_of(self, j: int) -> list[ColumnEffect]:
        """Compute the effects of column `j`: one, or one for each part of a date."""
        column, own = self._described.column(j), self._described.encoded(j)
        seen = rest = None
        if self._Z is not None:
            Z = self._Z[:, own]
            Z = Z.toarray() if sparse.issparse(Z) else Z
            seen = Z[Z[:, -1] == 0] if column.has_gaps else Z
            if isinstance(column, NumberColumn):
                seen = seen[~seen[:, 1:].any(axis=1)]  # without special codes
            rest = self._scores - self._part(j, Z)
        missing = None
        if column.has_gaps:
            cell: Any = np.array(["NaT"], dtype=DATES) if column.kind == "date" else np.array([np.nan])
            encoded = np.zeros((1, own.stop - own.start))
            column.encode(Cells(column.name, "date" if column.kind == "date" else "number", cell), encoded)
            missing = self._mean_effect(self._part(j, encoded), rest)[0][0]
        effects = []
        for axis in self._axes(j, column, seen):
            known = axis._asdict()
            added = self._part(j, known.pop("encoded"))
            mean, low, high = self._mean_effect(added, rest)
            effects.append(
                ColumnEffect(
                    column=column.name,
                    column_type=column.kind,
                    effect=mean,
                    low=low,
                    high=high,
                    missing=missing if axis.part in (None, "days") else None,
                    by_plane=added - added.mean(axis=1, keepdims=True) if self._has_planes else None,
                    **known,
                )
            )
        return effects

    @cached_property
    def _scores(self) -> np.ndarray:
        return self._planes(self._Z)

    def _part(self, j: int, encoded: np.ndarray) -> np.ndarray:
        """Compute the change of the plane scores by encoded values of column `j`, shape (n_values, n_planes)."""
        own = self._described.encoded(j)
        part, weights = part_of_column(self._model, own, j)
        change: np.ndarray = part.transform(encoded) - part.transform(self._reference[None, own])
        return change @ weights

    def _mean_effect(
        self, added: np.ndarray, rest: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Compute mean effects of values and their range, from plane scores of the rows without the column."""
        if rest is None or self.is_additive:
            rest = self._at_reference[None]
        size = max(1, MAX_NUMBERS // max(1, added.size))
        blocks = []
        for start in range(0, len(rest), size):
            block = rest[start : start + size, None]
            blocks.append(leads(self._classes(block + added)) - leads(self._classes(block)))
        changes = np.concatenate(blocks)
        if len(changes) == 1:
            return changes[0], None, None
        low, high = np.quantile(changes, BAND, axis=0)
        return changes.mean(axis=0), low, high

    def _axes(self, j: int, column: Column, seen: np.ndarray | None) -> Iterator[_Axis]:
        """Yield the values of a column: one axis, or one for each part of a date."""
        reference, width = self._reference[self._described.encoded(j)], len(column.features)
        known = getattr(column, "range", None)
        if isinstance(column, CategoryColumn):
            names = (*column.levels, OTHER) if column.has_other else column.levels
            encoded = np.zeros((len(names), width))
            encoded[:, : column.encoded_levels.shape[1]] = column.encoded_levels
            yield _Axis(None, names, decoded(column, reference), encoded, column.counts)
        elif isinstance(column, TextColumn):
            words = np.eye(len(column.words), width)
            sizes = np.abs(self._part(j, words)).max(axis=1)
            most = np.sort(np.argsort(-sizes, kind="stable")[:MAX_WORDS])
            yield _Axis(None, tuple(column.words[i] for i in most), decoded(column, reference), words[most])
        elif isinstance(column, BooleanColumn):
            yield _Axis(None, ("false", "true"), decoded(column, reference), np.eye(2, width, -1))
        elif isinstance(column, DateColumn):
            is_long = column.range.high - column.range.low > GRID  # resolution of one day
            yield self._number_axis(j, "days", column.range, reference, is_long, seen)
            for k, part in enumerate(column.parts, start=1):
                ends = [column.of_day(day)[k] for day in (column.range.low, column.range.high)]
                low, high = CALENDAR.get(part, (int(min(ends)), int(max(ends))))
                yield _axis_of(part, np.arange(low, high + 1, dtype=float), reference, k, (low, high), is_whole=True)
        else:
            assert isinstance(known, Range)
            yield self._number_axis(j, None, known, reference, getattr(column, "is_whole", False), seen)

    def _number_axis(
        self, j: int, part: str | None, known: Range, reference: np.ndarray, is_whole: bool, seen: np.ndarray | None
    ) -> _Axis:
        low, high, spread = known
        middle = float(reference[0])
        drawn = max(low, middle - SPREADS * spread), min(high, middle + SPREADS * spread)
        deciles = None
        if seen is not None and len(seen):
            deciles = tuple(np.quantile(seen[:, 0], np.arange(1, 10) / 10).tolist())
            first, last = np.clip(np.quantile(seen[:, 0], DRAWN), low, high)
            drawn = (float(first), float(last)) if first < last else drawn
        knots = part_of_column(self._model, self._described.encoded(j), j)[0].knots(0)
        grid = np.concatenate([np.linspace(low, high, GRID), np.linspace(*drawn, GRID), [middle], knots])
        grid = np.unique(np.clip(np.round(grid) if is_whole else grid, low, high))
        return _axis_of(part, grid, reference, 0, drawn, is_whole, deciles)


def _axis_of(
    part: str | None,
    grid: np.ndarray,
    reference: np.ndarray,
    k: int,
    drawn: tuple[float, float],
    is_whole: bool,
    deciles: tuple[float, ...] | None = None,
) -> _Axis:
    """Return an axis of numbers, which replace encoded number `k` of the reference value."""
    encoded = np.repeat(reference[None], len(grid), axis=0)
    encoded[:, k] = grid
    return _Axis(part, tuple(grid.tolist()), float(reference[k]), encoded, None, drawn, is_whole, deciles)
