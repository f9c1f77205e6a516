"""Planes as rules: inequalities for a single polyhedron, otherwise scores, rounded with the same predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from polyplane.explain.columns import ModelColumns
from polyplane.explain.text import number, sum_of_terms
from polyplane.planes import PlaneSet

#: Number of digits without rows to check them on.
UNCHECKED_DIGITS = 4
#: Number of rows in a block: a candidate that changes too many predictions is rejected early.
BLOCK_ROWS = 4096
#: Largest number of terms that are tried one by one; with more, only the smallest ones together.
FEW_TERMS = 200
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, eq=False)
class PlaneRule:
    """A plane of a single model, with the rows that it decides.

    Parameters
    ----------
    label : object
        Label of the class that owns the plane.
    number : int
        Number of the plane within the class, from 1.
    plane : int
        Index of the plane in the model, from 0.
    share : float or None
        Fraction of the rows that the plane decides: those for which it has the largest score of the predicted class.
    typical : tuple of int
        Indices of the rows nearest to the mean of these rows, with each encoded number divided by its standard
        deviation.
    base : float
        Score at the reference row, minus the mean over all planes.
    """

    label: Any
    number: int
    plane: int
    share: float | None
    typical: tuple[int, ...]
    base: float

    @property
    def percent(self) -> str:
        """The fraction of the rows in percent, as text."""
        return f"{100 * (self.share or 0.0):.1f}"


@dataclass(frozen=True, eq=False)
class Rules:
    """The planes of a piecewise linear model as rules over its columns, rounded for display.

    Parameters
    ----------
    columns : ModelColumns
        The columns, and the rows that rounding was checked on, if any.
    inside : int or None
        The class that is predicted if all inequalities hold: the one of two classes that owns a single plane. If None,
        the class of the plane with the largest score is predicted.
    influence : ndarray of shape (n_columns,)
        Typical size of each column: terms are sorted by weight times this size.
    planes : PlaneSet
        The rounded planes.
    digits : int
        Significant digits of the weights.
    offset_digits : int
        Significant digits of the offsets.
    dropped : int, default=0
        Number of omitted terms.
    changed : float or None, default=None
        Fraction of the rows whose predicted class changes; None without rows.
    """

    columns: ModelColumns
    inside: int | None
    influence: np.ndarray
    planes: PlaneSet
    digits: int
    offset_digits: int
    dropped: int = 0
    changed: float | None = None

    @classmethod
    def of(cls, columns: ModelColumns, tolerance: float, digits: int | None) -> Rules:
        """Round the planes of a model to the fewest digits, and omit the smallest terms.

        Predictions for the rows may change for a fraction of them, the tolerance. Without rows, no terms are omitted,
        and the number of digits is fixed.
        """
        planes, influence, X = columns.model.flat().planes, columns.influence, columns.Z
        sizes = np.diff(planes.indptr)
        # If both classes own one plane it is the first, so that the rule describes the second.
        inside = int(sizes.argmin()) if planes.n_classes == 2 and sizes.min() == 1 else None
        exact = planes if inside is None else inequalities(planes, inside, influence)
        exact = PlaneSet(exact.coef.astype(np.float64), exact.intercept.astype(np.float64), exact.indptr)
        rules = partial(cls, columns, inside, influence)
        if X is None or X.shape[0] == 0:
            places = UNCHECKED_DIGITS if digits is None else digits
            rounded = PlaneSet(round_to(exact.coef, places), round_to(exact.intercept, places), exact.indptr)
            return rules(rounded, places, places)
        predicted, n_rows = exact.predict(X), X.shape[0]
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()

        def changed(planes: PlaneSet, allowed: float) -> float | None:
            """Return the fraction of rows whose predicted class changes with other planes; None if it is too large."""
            count = 0
            for start in range(0, n_rows, BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                count += int(np.count_nonzero(planes.predict(X[block]) != predicted[block]))
                if count > allowed * n_rows * (1 + 1e-12):
                    return None
            return count / n_rows

        terms = np.abs(exact.coef) * influence
        if inside is not None:  # each plane is an inequality of its own: its terms are compared with each other only
            terms = terms / np.maximum(terms.max(axis=1, keepdims=True), np.finfo(float).tiny)
        # Omitting terms uses at most half of the tolerance; rounding uses the rest.
        fewer, dropped = _drop_terms(exact, terms, mean, lambda planes: changed(planes, tolerance / 2) is not None)
        for places in range(2, 9) if digits is None else [digits]:
            coef = round_to(fewer.coef, places)
            offsets = fewer.intercept + (fewer.coef - coef) @ mean  # keeps the score of the mean row
            for offset_places in range(places, places + 3):
                candidate = PlaneSet(coef, round_to(offsets, offset_places), exact.indptr)
                forced = digits is not None and offset_places == places + 2
                share = changed(candidate, 1.0 if forced else tolerance)
                if share is not None:
                    return rules(candidate, places, offset_places, dropped, share)
        return rules(exact, 17, 17, 0, 0.0)

    @property
    def own_plane(self) -> int | None:
        """Index of the only plane of the class inside."""
        return None if self.inside is None else int(self.planes.indptr[self.inside])

    def rule(self, plane: int, top: int | None = None) -> str:
        """Return the rule of a plane as text, with its `top` leading terms; if None, with all."""
        coef, intercept, n_planes = self.planes.coef[plane], float(self.planes.intercept[plane]), self.planes.n_planes
        if self.inside is None:
            terms = sum_of_terms(coef, self.columns.names, self.influence, self.digits, top)
            sign = " - " if intercept < 0 else " + "
            return f"{terms}{sign}{number(abs(intercept), self.offset_digits)}"
        if plane == self.own_plane:
            return "all of these hold" if n_planes > 2 else "otherwise"
        limit = -intercept
        # The first class wins ties. A single rule describes its own class, several rules the class inside.
        holds, broken = ("<=", ">") if self.inside == 0 else ("<", ">=")
        relation = holds if n_planes > 2 else broken
        leading = int(np.abs(coef * self.influence).argmax())
        if coef[leading] < 0:
            coef, limit = -coef, -limit
            relation = MIRRORED[relation]
        terms = sum_of_terms(coef, self.columns.names, self.influence, self.digits, top)
        return f"{terms} {relation} {number(limit + 0.0, self.offset_digits)}"

    def note(self) -> str:
        """Return the effect of rounding, in a sentence."""
        digits = f"Numbers are rounded to {self.digits} digits"
        if self.columns.Z is None or self.changed is None:
            return f"{digits}; pass rows to check their effect on predictions."
        terms = "small term is" if self.dropped == 1 else "small terms are"
        left = f", {self.dropped} {terms} omitted" if self.dropped else ""
        kept = 100 * (1 - self.changed)
        share = "all" if self.changed == 0 else f"{kept:.1f} % of the"
        return f"{digits}{left}: for {share} {self.columns.Z.shape[0]} rows, the prediction is that of the exact model."


def inequalities(planes: PlaneSet, inside: int, influence: np.ndarray) -> PlaneSet:
    """Return equivalent planes: a zero plane and the differences to it, scaled to a leading weight of 1."""
    (own, own_offset), (coef, intercept) = planes.of(inside), planes.of(1 - inside)
    coef, intercept = coef.astype(np.float64) - own, intercept.astype(np.float64) - own_offset
    leading = np.abs(coef * influence).argmax(axis=1)
    unit = np.abs(coef[np.arange(len(coef)), leading])
    unit = np.where(unit > 0, unit, 1.0)
    around = (coef / unit[:, None], intercept / unit)
    nothing = (np.zeros((1, planes.n_features)), np.zeros(1))
    return PlaneSet.of_classes([nothing, around] if inside == 0 else [around, nothing])


def _drop_terms(
    planes: PlaneSet, sizes: np.ndarray, mean: np.ndarray, keeps: Callable[[PlaneSet], bool]
) -> tuple[PlaneSet, int]:
    """Omit as many of the smallest terms as possible; their means are added to the offset."""
    weights = planes.coef.ravel()
    # Each plane keeps its leading term, so that no rule is empty.
    leading = np.ravel_multi_index((np.arange(planes.n_planes), sizes.argmax(axis=1)), sizes.shape)
    order = np.argsort(sizes, axis=None, kind="stable")
    order = order[(weights[order] != 0) & ~np.isin(order, leading)]

    def without(terms: np.ndarray) -> PlaneSet:
        coef = planes.coef.copy()
        coef.ravel()[terms] = 0.0
        return PlaneSet(coef, planes.intercept + (planes.coef - coef) @ mean, planes.indptr)

    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keeps(without(order[:middle])) else (low, middle - 1)
    dropped = order[:low]
    for term in order[low:] if len(order) <= FEW_TERMS else ():
        if keeps(without(np.append(dropped, term))):
            dropped = np.append(dropped, term)
    return without(dropped), len(dropped)


def round_to(values: np.ndarray, digits: int) -> np.ndarray:
    """Round numbers to some significant digits."""
    sizes = np.abs(values)
    powers = np.floor(np.log10(sizes, out=np.zeros_like(sizes), where=sizes > 0))
    shift = digits - 1 - powers
    factor = 10.0 ** np.clip(shift, -200, 200)  # 10 ** 309 overflows
    return np.where(np.abs(shift) > 200, values, np.round(values * factor) / factor)
