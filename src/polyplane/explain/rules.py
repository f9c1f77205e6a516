"""Planes as rules: inequalities for a single polyhedron, otherwise scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain.columns import ModelColumns
from polyplane.explain.rounding import RoundedPlanes, round_planes
from polyplane.explain.text import number, sum_of_terms
from polyplane.planes import PlaneSet

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
    names : list of str
        Names of the columns.
    inside : int or None
        The class that is predicted if all inequalities hold: the one of two classes that owns a single plane. If None,
        the class of the plane with the largest score is predicted.
    rounded : RoundedPlanes
        The rounded planes of the rules, and the effect of rounding.
    influence : ndarray of shape (n_columns,)
        Typical size of each column: terms are sorted by weight times this size.
    n_rows : int or None
        Number of rows that rounding was checked on.
    """

    names: list[str]
    inside: int | None
    rounded: RoundedPlanes
    influence: np.ndarray
    n_rows: int | None

    @classmethod
    def of(cls, columns: ModelColumns, tolerance: float, digits: int | None) -> Rules:
        """Round the planes of a model, with the same predictions for its rows but for a fraction of them."""
        planes, influence, Z = columns.model.flat().planes, columns.influence, columns.Z
        sizes = np.diff(planes.indptr)
        # If both classes own one plane it is the first, so that the rule describes the second.
        inside = int(sizes.argmin()) if planes.n_classes == 2 and sizes.min() == 1 else None
        exact = planes if inside is None else inequalities(planes, inside, influence)
        rounded = round_planes(exact, Z, influence, tolerance, digits, apart=inside is not None)
        return cls(columns.names, inside, rounded, influence, None if Z is None else int(Z.shape[0]))

    @property
    def own_plane(self) -> int | None:
        """Index of the only plane of the class inside."""
        return None if self.inside is None else int(self.rounded.planes.indptr[self.inside])

    def rule(self, plane: int, top: int | None = None) -> str:
        """Return the rule of a plane as text, with its `top` leading terms; if None, with all."""
        planes, n_planes = self.rounded.planes, self.rounded.planes.n_planes
        coef, intercept = planes.coef[plane], float(planes.intercept[plane])
        digits, offset_digits = self.rounded.digits, self.rounded.offset_digits
        if self.inside is None:
            terms = sum_of_terms(coef, self.names, self.influence, digits, top)
            sign = " - " if intercept < 0 else " + "
            return f"{terms}{sign}{number(abs(intercept), offset_digits)}"
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
        terms = sum_of_terms(coef, self.names, self.influence, digits, top)
        return f"{terms} {relation} {number(limit + 0.0, offset_digits)}"

    def note(self) -> str:
        """Return the effect of rounding, in a sentence."""
        digits = f"Numbers are rounded to {self.rounded.digits} digits"
        if self.n_rows is None or self.rounded.changed is None:
            return f"{digits}; pass rows to check their effect on predictions."
        terms = "small term is" if self.rounded.dropped == 1 else "small terms are"
        left = f", {self.rounded.dropped} {terms} omitted" if self.rounded.dropped else ""
        kept = 100 * (1 - self.rounded.changed)
        share = "all" if self.rounded.changed == 0 else f"{kept:.1f} % of the"
        return f"{digits}{left}: for {share} {self.n_rows} rows, the prediction is that of the exact model."


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
