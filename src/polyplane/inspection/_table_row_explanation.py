"""An explanation of a row of a table, as data, text or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.inspection._result import Explanation, data_frame
from polyplane.inspection._table_values import Value, shown
from polyplane.inspection._table_words import signed
from polyplane.inspection.rules import number, quoted
from polyplane.tables._columns import Column

#: Contributions below this part of the largest are told together.
SMALL = 0.03


@dataclass(frozen=True, eq=False)
class ChangedRow:
    """The smallest change of a row of a table for which another class is predicted.

    Parameters
    ----------
    label : object
        The label of that class.
    changes : dict of str to pair of values
        Of each column that changes, the value before and after.
    distance : float
        The sum of the changes: numbers and dates in units of the spread of their column, the interquartile range of the
        training rows (the standard deviation where that is 0); another level counts 1.
    proven : bool
        Whether it is proven that no smaller change leads there.
    """

    label: Any
    changes: dict[str, tuple[Any, Any]]
    distance: float
    proven: bool


@dataclass(frozen=True, eq=False)
class TableRowExplanation(Explanation):
    r"""Why a class is predicted for a row of a table.

    The logarithm of the ratio of the probabilities of the predicted class and its rival, the log-odds, is that at the
    reference row and the sum of what the columns contribute:

    .. math:: \log \frac{p_c(x)}{p_d(x)} = \text{base} + \sum_j \phi_j

    A column that has its reference value contributes 0. Where each class has one plane in each machine, contributions
    are what each column adds whatever the others are; otherwise they are Aumann-Shapley values on the way from the
    reference to the row.

    Parameters
    ----------
    label, rival : object
        The predicted label, and the next most probable one, or the one that was asked for.
    true_label : object or None
        The label that the row should have, where it is known.
    classes : list
        The labels.
    probabilities : ndarray of shape (n_classes,)
        The probabilities of the classes.
    difference, base : float
        The log-odds of the predicted class against the rival, at the row and at the reference row.
    contributions : ndarray of shape (n_columns,)
        What each column contributes; with the base they sum to the difference.
    values, reference : list of float, str or None
        The row and the reference row; None where a value is missing.
    columns : tuple of Column
        The columns.
    unseen : frozenset of int
        Columns in which the row has a level that fitting did not see, or too rarely.
    flip : ChangedRow or None
        The smallest change for which another class is predicted; None when none was found.
    searched : bool
        Whether a change was looked for.
    machines : int
        The number of machines.
    """

    _printed: ClassVar[int] = 10
    label: Any
    rival: Any
    true_label: Any
    classes: list[Any]
    probabilities: np.ndarray
    difference: float
    base: float
    contributions: np.ndarray
    values: list[Value]
    reference: list[Value]
    columns: tuple[Column, ...]
    unseen: frozenset[int]
    flip: ChangedRow | None
    searched: bool
    machines: int

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def probability(self) -> float:
        """The probability of the predicted class."""
        return self.probability_of(self.label)

    def probability_of(self, label: Any) -> float:
        """The probability of a class."""
        return float(self.probabilities[self.classes.index(label)])

    def by_contribution(self) -> list[int]:
        """The columns that contribute, the largest contribution first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        return order[self.contributions[order] != 0].tolist()

    def told(self, top: int | None = None) -> tuple[list[int], list[int]]:
        """The columns that are told, at most `top`, and the others that contribute; small ones are with these."""
        order = self.by_contribution()
        if top is None:
            return order, []
        sizes = np.abs(self.contributions)
        large = [j for j in order[:top] if sizes[j] >= SMALL * sizes.max()]
        return (large, order[len(large) :]) if len(order) > len(large) + 1 else (order, [])

    def reason(self, j: int) -> str:
        """What the row has in a column, in words."""
        column = self.columns[j]
        name, reference = quoted(column.name), shown(column, self.reference[j])
        if self.values[j] is None:
            return f"{name} is missing (reference {reference})"
        new = "a rare or new level, " if j in self.unseen else ""
        return f"{name} = {shown(column, self.values[j])} ({new}reference {reference})"

    def to_text(self, top: int | None = None) -> str:
        """The explanation in words, with the `top` largest contributions; None: with all."""
        large, small = self.told(top)
        parts = [(signed(self.contributions[j]), self.reason(j)) for j in large]
        if small:
            parts.append((signed(float(self.contributions[small].sum())), f"{len(small)} other columns"))
        parts.append((signed(self.base), "at the reference row"))
        width = max(len(size) for size, _ in parts)
        lines = [f"  {size:>{width}}  {reason}" for size, reason in parts]
        return "\n".join([*self.headline(), *lines, *self.flip_lines()])

    def headline(self) -> list[str]:
        """What is predicted, in one or two sentences."""
        truth = "" if self.true_label is None else f" The true class is {self.true_label!r}."
        times = number(float(np.exp(min(self.difference, 50.0))), 2)
        return [
            f"The predicted class is {self.label!r}, with probability {self.probability:.3f}.{truth}",
            f"It is {times} times as probable as class {self.rival!r}, log-odds of {self.difference:.2f}:",
        ]

    def to_dict(self) -> dict[str, Any]:
        """The explanation in the types of JSON."""
        flip = None
        if self.flip is not None:
            changes = {name: {"from": before, "to": after} for name, (before, after) in self.flip.changes.items()}
            flip = {"label": self.flip.label, "changes": changes}
            flip |= {"distance": self.flip.distance, "proven": self.flip.proven}
        return plain(
            {
                "label": self.label,
                "true_label": self.true_label,
                "rival": self.rival,
                "probabilities": dict(zip(map(str, self.classes), self.probabilities.tolist(), strict=True)),
                "difference": self.difference,
                "base": self.base,
                "columns": list(self.column_names),
                "values": self.values,
                "reference": self.reference,
                "contributions": self.contributions,
                "machines": self.machines,
                "flip": flip,
            }
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each column, the largest contribution first."""
        changes = {} if self.flip is None else self.flip.changes
        frame = data_frame(
            {
                "column": self.column_names,
                "value": self.values,
                "reference": self.reference,
                "contribution": self.contributions,
                "changed": [changes[name][1] if name in changes else None for name in self.column_names],
            }
        )
        return frame.sort_values("contribution", key=abs, ascending=False, ignore_index=True, kind="stable")

    def flip_lines(self) -> list[str]:
        """The smallest change that leads to another class, in words."""
        if not self.searched:
            return []
        if self.flip is None:
            return ["No change within the bounds that leads to another class was found."]
        if not self.flip.changes:
            return [f"Class {self.flip.label!r} is predicted already."]
        smallest = "The smallest change" if self.flip.proven else "A small change"
        far = f"distance {number(self.flip.distance, 3)}, in spreads of the columns"
        lines = [f"{smallest} that leads to class {self.flip.label!r} ({far}):"]
        for name, (before, after) in self.flip.changes.items():
            column = self.columns[self.column_names.index(name)]
            lines.append(f"  {quoted(name)}: {shown(column, before)} -> {shown(column, after)}")
        return lines
