"""`ModelExplanation`: explanation of a model by rules, as text, dict or data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.explain._result import Explanation, data_frame, listed
from polyplane.explain.rounding import RoundedPlanes
from polyplane.explain.rules import number, sum_of_terms
from polyplane.planes import PlaneSet

MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, eq=False)
class PlaneRule:
    """A plane as a rule, with the rows that it decides.

    Parameters
    ----------
    label : object
        Label of the class that owns the plane.
    number : int
        Number of the plane within the class, from 1.
    plane : int
        Index of the plane in the model, from 0.
    coef, intercept : ndarray of shape (n_features,), float
        Rounded weights and offset.
    share : float or None
        Fraction of the rows that the plane decides: those for which it has the largest score.
    typical : tuple of int
        Indices of the rows nearest to the mean of these rows, with each feature divided by its standard deviation.
    """

    label: Any
    number: int
    plane: int
    coef: np.ndarray
    intercept: float
    share: float | None
    typical: tuple[int, ...]

    @property
    def percent(self) -> str:
        """The fraction of the rows in percent, as text."""
        return f"{100 * (self.share or 0.0):.1f}"


@dataclass(frozen=True, eq=False)
class ModelExplanation(Explanation):
    """A model as rules in the units of the data.

    Parameters
    ----------
    learner : str
        Class name of the estimator.
    classes : list
        Class labels.
    feature_names : tuple of str
        Names of the features.
    inside : int or None
        The class that is predicted if all inequalities hold: the one of two classes that owns a single plane. If None,
        the class of the plane with the largest score is predicted.
    rules : tuple of PlaneRule
        The planes, ordered by class.
    planes : PlaneSet
        The exact planes, in the units of the data.
    rounded : RoundedPlanes
        The rounded planes of the rules, and the effect of rounding.
    n_rows : int or None
        Number of rows that the rules are evaluated on; None without rows.
    influence : ndarray of shape (n_features,)
        Scale of each feature: terms are sorted by weight times scale.
    """

    _printed: ClassVar[int] = 8
    learner: str
    classes: list[Any]
    feature_names: tuple[str, ...]
    inside: int | None
    rules: tuple[PlaneRule, ...]
    planes: PlaneSet
    rounded: RoundedPlanes
    n_rows: int | None
    influence: np.ndarray

    def rule(self, plane: int, top: int | None = None) -> str:
        """Return the rule of a plane as text, with its `top` leading terms; if None, with all."""
        rule = self.rules[plane]
        digits, offset_digits = self.rounded.digits, self.rounded.offset_digits
        if self.inside is None:
            terms = sum_of_terms(rule.coef, self.feature_names, self.influence, digits, top)
            sign = " - " if rule.intercept < 0 else " + "
            return f"{terms}{sign}{number(abs(rule.intercept), offset_digits)}"
        if self._is_inside(rule):
            return "all of these hold" if len(self.rules) > 2 else "otherwise"
        coef, limit = rule.coef, -rule.intercept
        # The first class wins ties. A single rule describes its own class, several rules the class inside.
        holds, broken = ("<=", ">") if self.inside == 0 else ("<", ">=")
        relation = holds if len(self.rules) > 2 else broken
        leading = int(np.abs(coef * self.influence).argmax())
        if coef[leading] < 0:
            coef, limit = -coef, -limit
            relation = MIRRORED[relation]
        terms = sum_of_terms(coef, self.feature_names, self.influence, digits, top)
        return f"{terms} {relation} {number(limit + 0.0, offset_digits)}"

    def busiest(self) -> list[PlaneRule]:
        """Return the rules, those of planes that decide the most rows first."""
        return sorted(self.rules, key=lambda rule: -(rule.share or 0.0))

    def typical_rows(self) -> list[int]:
        """Return typical rows, alternating between the planes, those that decide the most rows first."""
        return [i for place in range(3) for rule in self.busiest() for i in rule.typical[place : place + 1]]

    def pictures(self) -> list[tuple[str, np.ndarray]]:
        """Return a name and the weights of each plane, those that decide the most rows first."""
        return [(f"{rule.label}: {rule.percent} %", self.planes.coef[rule.plane]) for rule in self.busiest()]

    def to_text(self, top: int | None = None) -> str:
        """Return the rules as text, each with its `top` leading terms; if None, with all."""
        lines = self._scores(top) if self.inside is None else self._inequalities(self.inside, top)
        return "\n".join([*lines, "", self._rounding()])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types."""
        rules = [
            {
                "class": rule.label,
                "number": rule.number,
                "plane": rule.plane,
                "rule": self.rule(rule.plane),
                "weights": {self.feature_names[j]: rule.coef[j] for j in np.flatnonzero(rule.coef)},
                "offset": rule.intercept,
                "share": rule.share,
                "typical_rows": rule.typical,
            }
            for rule in self.rules
        ]
        return plain(
            {
                "learner": self.learner,
                "classes": self.classes,
                "features": list(self.feature_names),
                "inside": None if self.inside is None else self.classes[self.inside],
                "rules": rules,
                "digits": self.rounded.digits,
                "terms_left_out": self.rounded.dropped,
                "rows": self.n_rows,
                "predictions_changed": self.rounded.changed,
            }
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each plane."""
        return data_frame(
            {
                "class": [rule.label for rule in self.rules],
                "plane": [rule.number for rule in self.rules],
                "share": [np.nan if rule.share is None else rule.share for rule in self.rules],
                "rule": [self.rule(rule.plane) for rule in self.rules],
                "typical_rows": [list(rule.typical) for rule in self.rules],
            }
        )

    def _is_inside(self, rule: PlaneRule) -> bool:
        return self.inside is not None and rule.plane == int(self.planes.indptr[self.inside])

    def _inequalities(self, inside: int, top: int | None) -> list[str]:
        around = [rule for rule in self.rules if not self._is_inside(rule)]
        [home] = [rule for rule in self.rules if self._is_inside(rule)]
        other = self.classes[1 - inside]
        if len(around) == 1:
            [only] = around
            lines = [f"Class {other!r} if {self.rule(only.plane, top)}, otherwise class {home.label!r}."]
            return lines + _predicted_for(only, home)
        lines = [f"Class {home.label!r} if all of:"]
        for rule in around:
            share = f"   (else {other!r}: {_share_of_rows(rule)})" if rule.share is not None else ""
            lines.append(f"  {rule.number}. {self.rule(rule.plane, top)}{share}")
        return [*lines, f"otherwise class {other!r}.", *_predicted_for(home)]

    def _scores(self, top: int | None) -> list[str]:
        lines = ["The predicted class is that of the plane with the highest score."]
        for rule in self.rules:
            share = f", {_share_of_rows(rule)}" if rule.share is not None else ""
            lines.append(f"Plane {rule.number} of class {rule.label!r}{share}:")
            lines.append(f"  {self.rule(rule.plane, top)}")
        return lines

    def _rounding(self) -> str:
        digits = f"Numbers are rounded to {self.rounded.digits} digits"
        if self.n_rows is None or self.rounded.changed is None:
            return f"{digits}; pass rows to check their effect on predictions."
        terms = "small term is" if self.rounded.dropped == 1 else "small terms are"
        left = f", {self.rounded.dropped} {terms} omitted" if self.rounded.dropped else ""
        kept = 100 * (1 - self.rounded.changed)
        share = "all" if self.rounded.changed == 0 else f"{kept:.1f} % of the"
        return f"{digits}{left}: for {share} {self.n_rows} rows, the prediction is that of the exact model."


def _predicted_for(*rules: PlaneRule) -> list[str]:
    known = [rule for rule in rules if rule.share is not None]
    return [f"Class {rule.label!r} is predicted for {_share_of_rows(rule)}." for rule in known]


def _share_of_rows(rule: PlaneRule) -> str:
    share = f"{rule.percent} % of the rows"
    return share + (f", such as {listed(rule.typical)}" if rule.typical else "")
