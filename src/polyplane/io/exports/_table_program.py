"""The program of a `TableClassifier`: its preparations, folded into features and weights."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import Any

import numpy as np

from polyplane.io.exports._program import LARGEST, Input, Program, Term, Value, Weights
from polyplane.tables._columns import CategoryColumn, Column, DateColumn, Feature, NumberColumn
from polyplane.tables._model import Member, TableModel
from polyplane.tables._preparation import RECIPES, Preparation
from polyplane.tables.classifier import TableClassifier

#: Parts of columns that are there or not: they have weights of their own, and no term.
_FLAGS = ("level", "other", "missing")
#: Rows of weights are cut where at most this share of them is left: cut rows must say where they start and end.
WORTHWHILE = 0.8


def table_program(model: TableClassifier) -> Program:
    """The program of a fitted `TableClassifier`."""
    sums = _Sums(model.model_)
    return _laid_out(model, sums)


class _Sums:
    """What each feature of a table, in each form that a preparation gives it, adds to the scores of all planes.

    Machines with the same form of a feature share it; so do those whose features differ in their gains only.
    """

    def __init__(self, model: TableModel) -> None:
        sizes = [member.planes.n_planes for member in model.members]
        starts = [0, *accumulate(sizes)]
        self.intercept = np.zeros(starts[-1])
        #: By the number of the encoded feature: in all its forms, None for one that is there or not.
        self.forms: dict[int, dict[Term | None, np.ndarray]] = defaultdict(dict)
        self.machines: list[tuple[int, ...]] = []
        self._features = model.encoding.features
        for member, start, size in zip(model.members, starts, sizes, strict=False):
            self.machines.append(tuple((member.planes.indptr + start).tolist()))
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
        if self._features[j].part in _FLAGS:
            self._add(j, None, weight * factor, own)
            self.intercept[own] -= weight * (centre * factor)
            return
        is_clipped = RECIPES[preparation.name].is_robust and preparation.is_number[j]
        self._add(j, Term("clipped" if is_clipped else "scaled", centre, factor), weight, own)

    def _add(self, j: int, term: Term | None, weight: np.ndarray, own: slice) -> None:
        row = self.forms[j].setdefault(term, np.zeros(len(self.intercept)))
        row[own] += weight


def _more_terms(preparation: Preparation, j: int, how: str, most: float) -> list[tuple[int, Term]]:
    """What a feature beyond the scaled ones is made from: the encoded features, and their forms."""
    numbers = np.flatnonzero(preparation.is_number).tolist()
    if how == "norm":
        scaling = zip(preparation.centre[numbers], preparation.factor[numbers], strict=True)
        return [(k, Term("clipped square", float(c), float(f))) for k, (c, f) in zip(numbers, scaling, strict=True)]
    if how == "square":
        return [(j, Term("square", float(preparation.centre[j]), float(preparation.factor[j]), most))]
    low, high = preparation.knots[numbers.index(j)][int(how.removeprefix("bin ")) :][:2].tolist()
    return [(j, Term("bin", low, 1.0 / (high - low)))]


def _laid_out(model: TableClassifier, sums: _Sums) -> Program:
    """The program, in which terms have the first rows of weights, and levels and gaps the others."""
    encoding = model.model_.encoding
    terms: list[Term] = []
    rows: list[np.ndarray] = []
    ranges: dict[int, range] = {}
    for j, feature in enumerate(encoding.features):
        if feature.part not in _FLAGS:
            ranges[j] = range(len(terms), len(terms) + len(sums.forms[j]))
            forms = sorted(((term, row) for term, row in sums.forms[j].items() if term), key=lambda form: form[0].kind)
            terms += [term for term, _ in forms]
            rows += [row for _, row in forms]
    inputs = []
    for column, place in zip(encoding.columns, encoding.places, strict=True):
        flags = {}
        for j in range(place.start, place.stop):
            if encoding.features[j].part in _FLAGS:
                flags[encoding.features[j]] = len(rows)
                rows.append(sums.forms[j][None])
        inputs.append(_input(column, encoding.names.index(column.name), ranges, place.start, flags))
    return Program(
        learner=type(model).__name__,
        n_columns=len(encoding.names),
        inputs=tuple(inputs),
        gaps=encoding.gaps,
        terms=tuple(terms),
        weights=_without_ends(rows),
        intercept=sums.intercept,
        machines=tuple(sums.machines),
        is_soft=True,
        temperature=model.model_.temperature,
        classes=model.classes_,
        dtype="float32",
    )


def _input(column: Column, position: int, ranges: dict[int, range], start: int, flags: dict[Feature, int]) -> Input:
    by_part = {feature.part: row for feature, row in reversed(flags.items())}  # of levels, the first
    kept: dict[str, Any] = {
        "name": column.name,
        "position": position,
        "kind": column.kind,
        "missing": by_part.get("missing"),
    }
    if isinstance(column, CategoryColumn):
        return Input(**kept, levels=column.levels, first=by_part.get("level"), other=by_part.get("other"))
    parts = [feature.part for feature in column.features if feature.part not in _FLAGS]
    neutral = column.of_day(column.neutral).tolist() if isinstance(column, DateColumn) else [column.neutral]  # type: ignore[attr-defined]
    values = (Value(part, neutral[i], ranges[start + i]) for i, part in enumerate(parts))
    decimal = column.decimal if isinstance(column, NumberColumn) else "."
    return Input(**kept, values=tuple(values), decimal=decimal)


def _without_ends(rows: list[np.ndarray]) -> tuple[Weights, ...]:
    """Rows of weights without the planes at both ends that a feature does not count for, where that saves much."""
    trimmed = tuple(map(_trimmed, rows))
    if sum(len(row.values) for row in trimmed) > WORTHWHILE * sum(map(len, rows)):
        return tuple(Weights(0, row) for row in rows)
    return trimmed


def _trimmed(row: np.ndarray) -> Weights:
    used = np.flatnonzero(row)
    start, stop = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    return Weights(start, row[start:stop])
