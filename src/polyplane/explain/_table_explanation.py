"""`TableExplanation`: explanation of a `TableClassifier` as text, dict or data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.explain._result import Explanation, data_frame
from polyplane.explain._table_effects import ColumnEffect
from polyplane.explain._table_values import Value
from polyplane.explain._table_words import effects_text, signed, weights
from polyplane.explain.rules import quoted

#: Largest number of classes for which effects are printed; with more, only the importance of columns.
MOST_CLASSES = 6


@dataclass(frozen=True, eq=False)
class TablePlane:
    """A plane of a single member, in terms of the columns of the table.

    Parameters
    ----------
    label : object
        Label of the class that owns the plane.
    number : int
        Number of the plane within the class, from 1.
    base : float
        Score at the reference row, minus the mean over all planes.
    share : float or None
        Fraction of the rows for which its class is predicted and it has the largest score of the class.
    """

    label: Any
    number: int
    base: float
    share: float | None


@dataclass(frozen=True, eq=False)
class TableExplanation(Explanation):
    r"""Importance and effects of the columns of a `TableClassifier`.

    Scores are in log-odds: the difference of the scores of two classes is the logarithm of the ratio of their
    probabilities. Effects refer to the score of a class minus the mean score of the other classes; for two classes,
    minus the score of the other class.

    Parameters
    ----------
    learner : str
        Class name of the estimator.
    classes : list
        Class labels.
    columns : tuple of str
        The columns that the model uses.
    machines : int
        Number of members of the committee.
    importance : ndarray of shape (n_columns,)
        Standard deviation over rows of the contribution of each column to the score of a class, as the root mean square
        over the classes. Without rows, it is estimated from the training rows: from the counts of levels, and from the
        median and the spread of numbers, assuming a normal distribution.
    by_class : ndarray of shape (n_columns, n_classes)
        The same for each class.
    effects : tuple of ColumnEffect
        Effects of the values of each column. If each class has one plane in each member, the sum of the effects and the
        base is exactly the score. Otherwise the effects depend on the other columns: they are means over the rows, or
        without rows, effects at the reference row.
    base : ndarray of shape (n_classes,)
        Scores of the classes at the reference row.
    reference : dict of str to float or str
        The reference row: medians and most frequent levels.
    is_additive : bool
        Whether each class has one plane in each member.
    planes : tuple of TablePlane
        The planes of a single member with several planes per class; the attribute `by_plane` of the effects contains
        the contributions of the columns to their scores.
    dropped : dict of str to str
        Columns that are not used, with the reason.
    n_rows : int or None
        Number of rows that the explanation is computed on; None without rows.
    """

    _printed: ClassVar[int] = 8
    learner: str
    classes: list[Any]
    columns: tuple[str, ...]
    machines: int
    importance: np.ndarray
    by_class: np.ndarray
    effects: tuple[ColumnEffect, ...]
    base: np.ndarray
    reference: dict[str, Value]
    is_additive: bool
    planes: tuple[TablePlane, ...]
    dropped: dict[str, str]
    n_rows: int | None

    def by_importance(self) -> list[int]:
        """Return the columns, the most important first."""
        return np.argsort(-self.importance, kind="stable").tolist()

    def of_column(self, column: str) -> list[ColumnEffect]:
        """Return the effects of a column: one, or one for each part of a date."""
        found = [effect for effect in self.effects if effect.column == column]
        if not found:
            reason = f": it was dropped because {self.dropped[column]}" if column in self.dropped else ""
            raise ValueError(f"{column!r} is not a column that the model uses{reason}.")
        return found

    def shown_classes(self) -> list[int]:
        """Return the classes whose effects are shown: for two classes, only the second."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` most important columns; if None, with all."""
        lines = [self._headline(), self.meaning()]
        if len(self.classes) > MOST_CLASSES:
            lines += ["", *self._importances(top)]
        else:
            for c in self.shown_classes():
                lines += ["", *self._of_class(c, top)]
        return "\n".join([*lines, *(["", *self.plane_lines(top)] if self.planes else [])])

    def plane_lines(self, top: int | None = None) -> list[str]:
        """Return the planes of a single member as text, with the `top` largest contributions; if None, with all."""
        head = (
            "Planes, relative to the mean of all planes and the reference row. The score of a class is the logarithm "
            "of the sum of exp(score) over its planes:"
        )
        return [head, *(line for p in range(len(self.planes)) for line in self._of_plane(p, top))]

    def meaning(self) -> str:
        """Return a definition of the importance, in a sentence."""
        if self.n_rows is None:
            return (
                "Importance is the standard deviation of a column's contribution, estimated from the counts of levels "
                "and the spread of numbers in training; pass rows to compute it on them."
            )
        return f"Importance is the standard deviation of a column's contribution over {self.n_rows:,} rows."

    def about_effects(self, brackets: bool = True) -> str:
        """Return a definition of the effects, in a sentence; `brackets` adds the meaning of numbers in brackets."""
        if self.is_additive:
            return "Effects are relative to the reference value; the score is exactly their sum."
        if self.n_rows is None:
            return "Effects are relative to the reference value, with all other columns at their reference values."
        means = f"Effects are relative to the reference value, averaged over {self.n_rows:,} rows"
        return means + ("; in brackets, the range of the middle 80 % of the rows if it is wide." if brackets else ".")

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types."""
        effects = [
            {
                "column": effect.column,
                "kind": effect.kind,
                "part": effect.part,
                "reference": effect.reference,
                "values": list(effect.values),
                "effect": effect.effect,
                "missing": effect.missing,
                "rows": None if effect.counts is None else list(effect.counts),
                "by_plane": effect.by_plane,
            }
            for effect in self.effects
        ]
        planes = [{"class": p.label, "number": p.number, "base": p.base, "share": p.share} for p in self.planes]
        return plain(
            {
                "learner": self.learner,
                "machines": self.machines,
                "classes": self.classes,
                "columns": list(self.columns),
                "importance": self.importance,
                "importance_by_class": self.by_class,
                "reference": self.reference,
                "base": self.base,
                "is_additive": self.is_additive,
                "effects": effects,
                "planes": planes,
                "dropped": self.dropped,
                "rows": self.n_rows,
            }
        )

    def to_frame(self, column: str | None = None) -> Any:
        """Return a pandas DataFrame with a row for each column, the most important first, or for each value of one."""
        if column is None:
            order = self.by_importance()
            return data_frame({"column": [self.columns[j] for j in order], "importance": self.importance[order]})
        effects = self.of_column(column)
        rows = [(e.part, v, e.effect[i]) for e in effects for i, v in enumerate(e.values)]
        rows += [(None, None, effects[0].missing)] if effects[0].missing is not None else []
        parts = {"part": [part for part, _, _ in rows]} if len(effects) > 1 else {}
        by_class = {str(self.classes[c]): [effect[c] for _, _, effect in rows] for c in self.shown_classes()}
        return data_frame({**parts, "value": [value for _, value, _ in rows], **by_class})

    def _headline(self) -> str:
        members = f"{self.machines} members" if self.machines > 1 else "one member"
        return (
            f"{self.learner}: {members}, {len(self.columns)} columns, {len(self.classes)} classes. Scores are in "
            f"log-odds. {self.about_effects()}"
        )

    def _importances(self, top: int | None) -> list[str]:
        order = self.by_importance()[:top]
        lines = [f"  {self.importance[j]:6.3f}  {quoted(self.columns[j])}" for j in order]
        return ["Importance of the columns:", *lines, *self._rest(len(order))]

    def _of_class(self, c: int, top: int | None) -> list[str]:
        rival = f"class {self.classes[1 - c]!r}" if len(self.classes) == 2 else "the mean of the other classes"
        order = np.argsort(-self.by_class[:, c], kind="stable")[:top].tolist()
        lines = [f"Class {self.classes[c]!r} against {rival}; importance, column, effects:"]
        for j in order:
            told = "; ".join(effects_text(effect, effect.effect[:, c], c) for effect in self.of_column(self.columns[j]))
            missing = self.of_column(self.columns[j])[0].missing
            gap = "" if missing is None else f", {signed(missing[c])} missing"
            lines.append(f"  {self.by_class[j, c]:6.3f}  {quoted(self.columns[j])}: {told}{gap}")
        lines += self._rest(len(order))
        return [*lines, f"  {self.base[c]:+6.3f}  at the reference row, where all effects are 0"]

    def _of_plane(self, p: int, top: int | None) -> list[str]:
        plane = self.planes[p]
        share = "" if plane.share is None else f", which decides {100 * plane.share:.1f} % of the rows"
        lines = [f"Plane {plane.number} of class {plane.label!r}{share}: {signed(plane.base)} at the reference row"]
        terms = [(float(weights(e) @ np.abs(_of_plane(e, p))), e) for e in self.effects]
        shown = sorted(terms, key=lambda term: -term[0])[:top]
        lines += [f"  {e.name}: {effects_text(e, _of_plane(e, p))}" for _, e in shown]
        left = len(terms) - len(shown)
        return lines + ([f"  and smaller contributions of {left} other terms"] if left else [])

    def _rest(self, n_shown: int) -> list[str]:
        left = len(self.columns) - n_shown
        return [f"          {left} other {'column is' if left == 1 else 'columns are'} less important"] if left else []


def _of_plane(effect: ColumnEffect, p: int) -> np.ndarray:
    assert effect.by_plane is not None
    return effect.by_plane[:, p]
