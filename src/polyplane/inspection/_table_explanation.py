"""An explanation of a model of a table, as data, text or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.inspection._result import Explanation, data_frame
from polyplane.inspection._table_effects import ColumnEffect
from polyplane.inspection._table_values import Value
from polyplane.inspection._table_words import signed, told_values, weights
from polyplane.inspection.rules import quoted

#: With more classes than these, only the importance of columns is printed.
MOST_CLASSES = 6


@dataclass(frozen=True, eq=False)
class TablePlane:
    """A plane of a single machine, in the columns of the table.

    Parameters
    ----------
    label : object
        The class that owns it.
    number : int
        Its number within the class, from 1.
    base : float
        Its score at the reference row, less the mean over all planes.
    share : float or None
        The share of the rows in which its class is predicted, and it has the best score of the class.
    """

    label: Any
    number: int
    base: float
    share: float | None


@dataclass(frozen=True, eq=False)
class TableExplanation(Explanation):
    r"""What a `TableClassifier` has learned, column by column.

    Scores are in log-odds: the difference of two classes' scores is the logarithm of the ratio of their probabilities.
    The score of a class is compared with the mean of those of the other classes; with two classes that is the other
    one.

    Parameters
    ----------
    learner : str
        The name of the estimator.
    classes : list
        The labels.
    columns : tuple of str
        The columns that are used.
    machines : int
        The number of machines.
    importance : ndarray of shape (n_columns,)
        The standard deviation over rows of what the column contributes to the score of a class, the root mean square
        over the classes. Without rows it is estimated from what was seen in fitting: the counts of levels, and the
        median and the spread of numbers as if they were normally distributed.
    by_class : ndarray of shape (n_columns, n_classes)
        The same of each class.
    effects : tuple of ColumnEffect
        What the values of each column do. Where each class has one plane in each machine, the sum of the effects and
        the base is the score exactly. Otherwise effects depend on the other columns: with rows they are means over
        these, and without rows those at the reference row.
    base : ndarray of shape (n_classes,)
        The scores of the classes at the reference row.
    reference : dict of str to float or str
        The reference row: medians and most frequent levels.
    is_additive : bool
        Whether each class has one plane in each machine.
    planes : tuple of TablePlane
        The planes of a single machine, where a class has several; what the columns add to their scores is `by_plane` of
        the effects.
    dropped : dict of str to str
        Columns that are not used, with the reason.
    n_rows : int or None
        The number of rows that were looked at.
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
        """The columns, the most important first."""
        return np.argsort(-self.importance, kind="stable").tolist()

    def of_column(self, column: str) -> list[ColumnEffect]:
        """The effects of a column: one, or one for each part of a date."""
        found = [effect for effect in self.effects if effect.column == column]
        if not found:
            reason = f": it was dropped, as {self.dropped[column]}" if column in self.dropped else ""
            raise ValueError(f"{column!r} is not a column that the model uses{reason}.")
        return found

    def shown_classes(self) -> list[int]:
        """The classes whose scores are told: of two, the second alone."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def to_text(self, top: int | None = None) -> str:
        """The explanation in words, with the `top` most important columns; None: with all."""
        lines = [self._headline(), self.meaning()]
        if len(self.classes) > MOST_CLASSES:
            lines += ["", *self._importances(top)]
        else:
            for c in self.shown_classes():
                lines += ["", *self._of_class(c, top)]
        return "\n".join([*lines, *(["", *self.plane_lines(top)] if self.planes else [])])

    def plane_lines(self, top: int | None = None) -> list[str]:
        """The planes of a single machine in words, with the `top` columns that add most to each; None: with all."""
        head = (
            "Planes, relative to the mean of all planes and the reference row. The score of a class is the logarithm "
            "of the sum of exp(score) over its planes:"
        )
        return [head, *(line for p in range(len(self.planes)) for line in self._of_plane(p, top))]

    def meaning(self) -> str:
        """What the importance is, in a sentence."""
        if self.n_rows is None:
            return (
                "Importance is the standard deviation of a column's contribution, estimated from the counts of levels "
                "and the ranges of numbers seen in fitting; pass rows for that of these rows."
            )
        return f"Importance is the standard deviation of a column's contribution over {self.n_rows:,} rows."

    def about_effects(self, brackets: bool = True) -> str:
        """What the effects are, in a sentence; `brackets` say what is in them."""
        if self.is_additive:
            return "Effects are relative to the reference value, and add up exactly."
        if self.n_rows is None:
            return "Effects are relative to the reference value, with all other columns at theirs."
        means = f"Effects are relative to the reference value: means over {self.n_rows:,} rows"
        return means + (", in brackets the range of the middle 80 % of them where it is wide." if brackets else ".")

    def to_dict(self) -> dict[str, Any]:
        """The explanation in the types of JSON."""
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
        """A pandas DataFrame with a row for each column, the most important first; or for each value of one column."""
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
        machines = f"{self.machines} machines" if self.machines > 1 else "one machine"
        return (
            f"{self.learner}: {machines} over {len(self.columns)} columns, {len(self.classes)} classes. Scores are in "
            f"log-odds. {self.about_effects()}"
        )

    def _importances(self, top: int | None) -> list[str]:
        order = self.by_importance()[:top]
        lines = [f"  {self.importance[j]:6.3f}  {quoted(self.columns[j])}" for j in order]
        return ["Importance of the columns:", *lines, *self._rest(len(order))]

    def _of_class(self, c: int, top: int | None) -> list[str]:
        rival = f"class {self.classes[1 - c]!r}" if len(self.classes) == 2 else "the mean of the others"
        order = np.argsort(-self.by_class[:, c], kind="stable")[:top].tolist()
        lines = [f"Class {self.classes[c]!r} against {rival}; importance, column, effects:"]
        for j in order:
            told = "; ".join(told_values(effect, effect.effect[:, c], c) for effect in self.of_column(self.columns[j]))
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
        lines += [f"  {e.name}: {told_values(e, _of_plane(e, p))}" for _, e in shown]
        left = len(terms) - len(shown)
        return lines + ([f"  and less from {left} other columns"] if left else [])

    def _rest(self, n_shown: int) -> list[str]:
        left = len(self.columns) - n_shown
        return [f"          and less of {left} other {'column' if left == 1 else 'columns'}"] if left else []


def _of_plane(effect: ColumnEffect, p: int) -> np.ndarray:
    assert effect.by_plane is not None
    return effect.by_plane[:, p]
