"""`View`: a model as the exports write it, column by column: numbers, their features, and the weights of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from polyplane.features import OPS, Features
from polyplane.inputs.formats import NumberFormat
from polyplane.inputs.frames import LARGEST, text_cells, text_of
from polyplane.model import Model

#: Data types of weights, except for those of one byte.
FLOATS = ("float32", "float64")
#: Parts of columns that are indicators: they have weights but no features.
INDICATORS = ("level", "word", "special", "other", "missing")
#: Numbers with digits, a sign, a decimal point or comma and an exponent.
PLAIN_FORMATS = (NumberFormat("."), NumberFormat(","))
#: Zero weights at both ends are removed if at most this fraction of the weights remains, since then the first and the
#: last plane of each feature have to be stored.
WORTHWHILE = 0.8
#: The largest one-byte weight.
LARGEST_WEIGHT = 127


class ColumnNumber(NamedTuple):
    """A number derived from a column: its value, or a part of a date.

    Parameters
    ----------
    part : str
        "number", "true", "days", "year", "month", "day of week", "hour" or "evidence".
    neutral : float or None
        The replacement of a missing value. None: values must not be missing.
    features : range
        The indices of its features.
    by_level : tuple of float
        The evidence of each level of a category; of unknown levels it is 0.
    """

    part: str
    neutral: float | None
    features: range
    by_level: tuple[float, ...] = ()


class FeatureRange(NamedTuple):
    """Successive features of one number, `start` to `stop`, with the same function and limits."""

    start: int
    stop: int
    op: str
    low: float
    high: float


@dataclass(frozen=True)
class ColumnView:
    """A column of the rows.

    Parameters
    ----------
    name : str
        The name of the column.
    position : int
        Its index among all columns.
    kind : str
        "number", "category", "boolean", "date" or "text".
    numbers : tuple of Number
        The numbers derived from it; none for a text, and for a category only evidence.
    levels : tuple of str
        The known levels of a category, or words of a text; level i has the weights with index ``first + i``.
    n_own : int
        Number of levels with weights; the others have those of unknown levels.
    first, other, missing : int or None
        The indices of the weights of the first level, of unknown levels, and of missing values. None: no weights.
    format : NumberFormat, str or None
        How numbers or dates are written in strings.
    special : tuple of float
        Numbers with weights of their own, from the index `first` on; they are otherwise treated as missing values.
    """

    name: str
    position: int
    kind: str
    numbers: tuple[ColumnNumber, ...]
    levels: tuple[str, ...] = ()
    n_own: int = 0
    first: int | None = None
    other: int | None = None
    missing: int | None = None
    format: NumberFormat | str | None = None
    special: tuple[float, ...] = ()

    @property
    def may_be_missing(self) -> bool:
        """Whether values may be missing: always in tables, and in matrices only after an imputer."""
        return all(number.neutral is not None for number in self.numbers)


class Spans(NamedTuple):
    """Weights without the zeros at both ends: feature i has weights from the plane ``starts[i]`` on."""

    starts: list[int]
    offsets: list[int]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class View:
    """A model without projection, column by column.

    The score of a plane is its intercept plus the sum over the features of value times weight; an indicator (of a level
    or a missing value) has the value 1.

    Parameters
    ----------
    model : Model
        The model.
    columns : tuple of Column
        The columns in use.
    features : Features
        The features of the numbers, ordered by column.
    weights : ndarray of shape (n_features + n_indicators, n_planes)
        The weights of the features, followed by those of the indicators.
    intercept : ndarray of shape (n_planes,)
        The intercepts of the planes.
    dtype : str
        Data type of the exported weights.
    """

    model: Model
    columns: tuple[ColumnView, ...]
    features: Features
    weights: np.ndarray
    intercept: np.ndarray
    dtype: str

    @classmethod
    def of(cls, estimator: Any, dtype: str | None = None, allowed: Sequence[str] = FLOATS) -> View:
        """Return the view of a fitted estimator or model; `dtype` must be None or one of those allowed."""
        if dtype is not None and dtype not in allowed:
            raise ValueError(f"dtype={dtype!r} must be one of {', '.join(allowed)}.")
        model = Model.of(estimator).unprojected()
        coef = model.planes.coef.astype(np.float64)
        intercept = model.planes.intercept.astype(np.float64)
        inputs: Any = model.inputs
        parts = [each.part for each in inputs.features] if inputs.is_table else ["number"] * inputs.n_encoded
        is_indicator = np.isin(parts, INDICATORS)
        own = is_indicator[model.features.source]
        # The values of an indicator are 0 and 1, so each of its features is affine.
        ends = np.repeat([[0.0], [1.0]], inputs.n_encoded, axis=1)
        at_zero, at_one = model.features.take(own).transform(ends)
        intercept += coef[:, own] @ at_zero
        indicators = np.zeros((inputs.n_encoded, len(coef)))
        np.add.at(indicators, model.features.source[own], (coef[:, own] * (at_one - at_zero)).T)
        source, op, *_, low, high = model.features.keys().T
        order = np.lexsort((high, low, op, source))
        order = order[~own[order]]
        features = model.features.take(order)
        weights = np.concatenate([coef[:, order].T, indicators[is_indicator]])
        columns = _columns(model, features.source, features.n_features + np.cumsum(is_indicator) - 1)
        return cls(model, columns, features, weights, intercept, dtype or default_dtype(model))

    @property
    def n_planes(self) -> int:
        """Total number of planes of all members."""
        return len(self.intercept)

    @property
    def is_table(self) -> bool:
        """Whether rows are tables with columns of any type, not matrices."""
        return self.model.inputs.is_table

    @property
    def is_soft(self) -> bool:
        """Whether the score of a class is the log-sum-exp, not the maximum, of the scores of its planes."""
        return self.model.planes.pooling == "logsumexp" and not self.model.is_additive

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """Strings that denote a missing value; values are compared with them as canonical text."""
        return tuple(text for text in getattr(self.model.inputs, "gaps", ()) if text == text_of(text))

    @property
    def largest(self) -> float:
        """Numbers above this, in absolute value, are invalid."""
        return LARGEST if self.is_table else float(np.finfo(np.float64).max)

    @property
    def members(self) -> list[list[int]]:
        """For each member, the edges of its classes: class c owns the planes ``edges[c]`` to ``edges[c + 1]``."""
        indptr, n_classes = self.model.planes.indptr.tolist(), self.model.n_classes
        return [indptr[start : start + n_classes + 1] for start in range(0, len(indptr) - 1, n_classes)]

    @property
    def member_weights(self) -> list[float] | None:
        """The weights of the members, with a mean of 1; None if all are equal."""
        weights = self.model.planes.member_weight
        return None if (weights == weights[0]).all() else (weights * len(weights)).tolist()

    def refuse(self, language: str, kinds: Sequence[str], *, formats: bool = False) -> None:
        """Raise an error for columns that a language does not read: of some kinds, or with strings in other formats."""
        for column in self.columns:
            is_plain = not column.format if isinstance(column.format, str) else column.format in (None, *PLAIN_FORMATS)
            if column.kind in kinds:
                raise ValueError(
                    f"Column {column.name!r} is free text, which {language} does not read: export to JavaScript, or "
                    "train without the column."
                )
            if formats and not is_plain:
                raise ValueError(
                    f"Column {column.name!r} was trained on strings that {language} does not read as {column.kind}s: "
                    f"convert it to {column.kind}s before training."
                )

    def runs(self, number: ColumnNumber) -> list[FeatureRange]:
        """Return the features of a number as runs."""

        def key(f: int) -> tuple[int, float, float]:
            return int(self.features.op[f]), float(self.features.low[f]), float(self.features.high[f])

        groups = [(found, list(own)) for found, own in groupby(number.features, key)]
        return [FeatureRange(own[0], own[-1] + 1, OPS[op], low, high) for (op, low, high), own in groups]

    def spans(self, weights: np.ndarray) -> Spans | None:
        """Return the weights without zeros at both ends; None if that would not save enough memory."""
        used = weights != 0
        starts = np.where(used.any(axis=1), used.argmax(axis=1), 0)
        stops = np.where(used.any(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1), 0)
        offsets = np.cumsum([0, *(stops - starts)])
        if offsets[-1] > WORTHWHILE * weights.size:
            return None
        parts = [row[start:stop] for row, start, stop in zip(weights, starts, stops, strict=True)]
        return Spans(starts.tolist(), offsets.tolist(), np.concatenate(parts))

    def quantized(self) -> tuple[np.ndarray, np.ndarray, Features]:
        """Return weights as integers from -127 to 127, the scale of each plane, and features to multiply them by.

        The features of a table are scaled to similar ranges. Numbers of a matrix may have very different ranges, and so
        do their weights: their features are multiplied by the largest weight.
        """
        features, n_features = self.features, self.features.n_features
        units = np.ones(len(self.weights))
        if not self.is_table:
            largest = np.abs(self.weights[:n_features]).max(axis=1, initial=0.0)
            units[:n_features] = unit = np.where((features.op == 0) & (largest > 0), largest, 1.0)
            low, high = features.low * unit, features.high * unit
            features = features.replace(factor=features.factor * unit, low=low, high=high)
        weights = self.weights / units[:, None]
        by_plane = np.abs(weights).max(axis=0, initial=0.0)
        planes = np.where(by_plane > 0, by_plane, 1.0) / LARGEST_WEIGHT
        return np.rint(weights / planes).astype(np.int8), planes, features


def default_dtype(model: Model) -> str:
    """Return the data type of exported weights: that of the planes, and float32 for tables.

    The planes of a table are trained in float32; in the model they include centres and factors in float64.
    """
    return "float32" if model.inputs.is_table else model.planes.coef.dtype.name


def column_names(model: Model) -> list[str]:
    """Return a unique name for each column of the rows."""
    return unique_names(model.inputs.names)


def is_number(level: str) -> bool:
    """Return whether a level is the canonical text of a finite float."""
    try:
        value = float(level)
    except ValueError:
        return False
    return bool(np.isfinite(value)) and text_of(value) == level


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names; duplicates get their index as a suffix."""
    times = Counter(names)
    return [f"{name}#{j}" if times[name] > 1 else name for j, name in enumerate(names)]


def _columns(model: Model, source: np.ndarray, indicator: np.ndarray) -> tuple[ColumnView, ...]:
    """Return the columns in use, given the source of each feature and the index of each indicator among the weights."""
    inputs: Any = model.inputs
    edges = np.searchsorted(source, np.arange(inputs.n_encoded + 1)).tolist()
    ranges = [range(start, stop) for start, stop in pairwise(edges)]
    if not inputs.is_table:
        neutral = [None] * inputs.n_columns if inputs.neutral is None else inputs.neutral.tolist()
        cells = zip(column_names(model), neutral, ranges, strict=True)
        return tuple(
            ColumnView(name, j, "number", (ColumnNumber("number", missing, own),))
            for j, (name, missing, own) in enumerate(cells)
            if len(own)
        )
    position = {name: j for j, name in enumerate(inputs.names)}
    columns = []
    for column, own in zip(inputs.columns, inputs.places, strict=True):
        encoded = np.zeros((1, own.stop - own.start))
        column.encode(text_cells(column.name, np.array([-1]), [], ()), encoded)
        parts = [(feature, j) for feature, j in zip(column.features, range(own.start, own.stop), strict=True)]
        evidence = iter(getattr(column, "evidence", ()))
        numbers = [
            ColumnNumber(feature.part, float(encoded[0, j - own.start]), ranges[j], next(evidence, ()))
            for feature, j in parts
            if feature.part not in INDICATORS
        ]
        place = {feature.part: int(indicator[j]) for feature, j in reversed(parts)}  # the first of the levels
        levels = getattr(column, "words" if column.kind == "text" else "levels", ())
        part = {"text": "word", "number": "special"}.get(column.kind, "level")
        first, other, missing = (place.get(name) for name in (part, "other", "missing"))
        name, format = column.name, getattr(column, "format", None)
        values, n_own = tuple(numbers), getattr(column, "n_own", len(levels))
        rest = first, other, missing, format, getattr(column, "special", ())
        columns.append(ColumnView(name, position[name], column.kind, values, levels, n_own, *rest))
    return tuple(columns)
