"""The program of a `TableClassifier`, with its preparations included in the features and weights."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import Any

import numpy as np

from polyplane.exports._program import LARGEST, Input, Program, Term, Value, Weights
from polyplane.inputs.columns import CategoryColumn, Column, DateColumn, Feature, NumberColumn
from polyplane.tables._model import Member, TableModel
from polyplane.tables._preparation import RECIPES, Preparation
from polyplane.tables.classifier import TableClassifier

#: Parts of columns that are indicators: they have weights but no term.
_INDICATORS = ("level", "other", "missing")
#: Zero weights at both ends are removed if at most this fraction of the weights remains, since then the first and the
#: last plane of each feature have to be stored.
WORTHWHILE = 0.8


def table_program(model: TableClassifier) -> Program:
    """Return the program of a fitted `TableClassifier`."""
    return _assemble(model, _Weights(model.table_model_))


class _Weights:
    """The weights, in all planes, of each encoded feature after each distinct transformation.

    Members that transform a feature in the same way, up to its gain, share a term.
    """

    def __init__(self, model: TableModel) -> None:
        sizes = [member.planes.n_planes for member in model.members]
        starts = [0, *accumulate(sizes)]
        self.intercept = np.zeros(starts[-1])
        #: By the index of the encoded feature: the weights for each of its terms; None is the key for an indicator.
        self.by_term: dict[int, dict[Term | None, np.ndarray]] = defaultdict(dict)
        self.members: list[tuple[int, ...]] = []
        self._features = model.encoding.features
        for member, start, size in zip(model.members, starts, sizes, strict=False):
            self.members.append(tuple((member.planes.indptr + start).tolist()))
            self._add_member(member, slice(start, start + size))

    def _add_member(self, member: Member, own: slice) -> None:
        preparation, coef = member.preparation, member.planes.coef.astype(np.float64)
        self.intercept[own] += member.planes.intercept
        n_scaled = len(preparation.centre)
        for i, (j, how) in enumerate(preparation.sources):
            weight = coef[:, i] * (preparation.gain[j] if j >= 0 else 1.0)
            if i < n_scaled:
                self._add_scaled(preparation, j, weight, own)
                continue
            centre, factor = preparation.more_centre[i - n_scaled], preparation.more_factor[i - n_scaled]
            self.intercept[own] -= weight * (centre * factor)
            for source, term in _more_terms(preparation, j, how, float(centre + LARGEST / factor)):
                self._add(source, term, weight * factor, own)

    def _add_scaled(self, preparation: Preparation, j: int, weight: np.ndarray, own: slice) -> None:
        centre, factor = float(preparation.centre[j]), float(preparation.factor[j])
        if self._features[j].part in _INDICATORS:
            self._add(j, None, weight * factor, own)
            self.intercept[own] -= weight * (centre * factor)
            return
        is_clipped = RECIPES[preparation.name].is_robust and preparation.is_number[j]
        self._add(j, Term("clipped" if is_clipped else "scaled", centre, factor), weight, own)

    def _add(self, j: int, term: Term | None, weight: np.ndarray, own: slice) -> None:
        row = self.by_term[j].setdefault(term, np.zeros(len(self.intercept)))
        row[own] += weight


def _more_terms(preparation: Preparation, j: int, how: str, most: float) -> list[tuple[int, Term]]:
    """Return the sources of an additional feature (square, bin or norm): indices of encoded features, and terms."""
    numbers = np.flatnonzero(preparation.is_number).tolist()
    if how == "norm":
        scaling = zip(preparation.centre[numbers], preparation.factor[numbers], strict=True)
        return [(k, Term("clipped square", float(c), float(f))) for k, (c, f) in zip(numbers, scaling, strict=True)]
    if how == "square":
        return [(j, Term("square", float(preparation.centre[j]), float(preparation.factor[j]), most))]
    low, high = preparation.knots[numbers.index(j)][int(how.removeprefix("bin ")) :][:2].tolist()
    return [(j, Term("bin", low, 1.0 / (high - low)))]


def _assemble(model: TableClassifier, weights: _Weights) -> Program:
    """Return the program; the weights of terms come first, then those of levels and missing values."""
    encoding = model.table_model_.encoding
    terms: list[Term] = []
    rows: list[np.ndarray] = []
    ranges: dict[int, range] = {}
    for j, feature in enumerate(encoding.features):
        if feature.part not in _INDICATORS:
            ranges[j] = range(len(terms), len(terms) + len(weights.by_term[j]))
            pairs = [(term, row) for term, row in weights.by_term[j].items() if term]
            pairs.sort(key=lambda pair: pair[0].kind)
            terms += [term for term, _ in pairs]
            rows += [row for _, row in pairs]
    inputs = []
    for column, place in zip(encoding.columns, encoding.places, strict=True):
        indicators = {}
        for j in range(place.start, place.stop):
            if encoding.features[j].part in _INDICATORS:
                indicators[encoding.features[j]] = len(rows)
                rows.append(weights.by_term[j][None])
        inputs.append(_input(column, encoding.names.index(column.name), ranges, place.start, indicators))
    return Program(
        learner=type(model).__name__,
        n_columns=len(encoding.names),
        inputs=tuple(inputs),
        missing_texts=encoding.gaps,
        terms=tuple(terms),
        weights=_without_zero_ends(rows),
        intercept=weights.intercept,
        members=tuple(weights.members),
        is_soft=True,
        temperature=model.table_model_.temperature,
        classes=model.classes_,
        dtype="float32",
    )


def _input(
    column: Column, position: int, ranges: dict[int, range], start: int, indicators: dict[Feature, int]
) -> Input:
    by_part = {feature.part: row for feature, row in reversed(indicators.items())}  # the first of the levels
    kept: dict[str, Any] = {
        "name": column.name,
        "position": position,
        "kind": column.kind,
        "missing": by_part.get("missing"),
    }
    if isinstance(column, CategoryColumn):
        return Input(**kept, levels=column.levels, first=by_part.get("level"), other=by_part.get("other"))
    parts = [feature.part for feature in column.features if feature.part not in _INDICATORS]
    neutral = column.of_day(column.neutral).tolist() if isinstance(column, DateColumn) else [column.neutral]  # type: ignore[attr-defined]
    values = (Value(part, neutral[i], ranges[start + i]) for i, part in enumerate(parts))
    decimal = column.decimal if isinstance(column, NumberColumn) else "."
    return Input(**kept, values=tuple(values), decimal=decimal)


def _without_zero_ends(rows: list[np.ndarray]) -> tuple[Weights, ...]:
    """Return the weights of each feature without zeros at both ends, if that saves enough memory."""
    trimmed = tuple(map(_trimmed, rows))
    if sum(len(row.values) for row in trimmed) > WORTHWHILE * sum(map(len, rows)):
        return tuple(Weights(0, row) for row in rows)
    return trimmed


def _trimmed(row: np.ndarray) -> Weights:
    used = np.flatnonzero(row)
    start, stop = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    return Weights(start, row[start:stop])
