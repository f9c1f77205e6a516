"""`TableRowExplanation`: explanation of a prediction for a table row as text, dict or data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.explain._result import Explanation, data_frame
from polyplane.explain._table_values import Value, shown
from polyplane.explain._table_words import signed
from polyplane.explain.rules import number, quoted
from polyplane.inputs.columns import Column

#: Contributions below this fraction of the largest are summed up in one line.
SMALL = 0.03


@dataclass(frozen=True, eq=False)
class ChangedRow:
    """Counterfactual: the smallest change of a table row that leads to another class.

    Parameters
    ----------
    label : object
        Label of this class.
    changes : dict of str to pair of values
        Values before and after the change, by column name.
    distance : float
        Sum of the changes. The change of a number or a date is measured in units of the column's spread: the
        interquartile range of the training rows, or their standard deviation if that is 0. The change of a category or
        a boolean counts 1.
    proven : bool
        Whether it is proven that no smaller change leads to this class.
    """

    label: Any
    changes: dict[str, tuple[Any, Any]]
    distance: float
    proven: bool


@dataclass(frozen=True, eq=False)
class TableRowExplanation(Explanation):
    r"""Explanation of the predicted class of a table row.

    The log-odds of the predicted class :math:`c` against its rival :math:`d`, the logarithm of the ratio of their
    probabilities, are the sum of the log-odds at the reference row and the contributions of the columns:

    .. math:: \log \frac{p_c(x)}{p_d(x)} = \text{base} + \sum_j \phi_j

    The contribution of a column with its reference value is 0. If each class has one plane in each member, the
    contribution of a column does not depend on the other columns. Otherwise contributions are Aumann-Shapley values on
    the line from the reference to the row.

    Parameters
    ----------
    label, rival : object
        The predicted label, and the second most probable one or the target class.
    true_label : object or None
        The true label of the row, if known.
    classes : list
        Class labels.
    probabilities : ndarray of shape (n_classes,)
        Probabilities of the classes.
    difference, base : float
        Log-odds of the predicted class against the rival, at the row and at the reference row.
    contributions : ndarray of shape (n_columns,)
        Contribution of each column; the contributions and the base sum to the difference.
    values, reference : list of float, str or None
        The row and the reference row; None for a missing value.
    columns : tuple of Column
        The columns.
    unseen : frozenset of int
        Columns in which the row has a level that was unknown or rare in training.
    flip : ChangedRow or None
        The smallest change that leads to another class; None if none was found.
    searched : bool
        Whether a change was searched for.
    machines : int
        Number of members of the committee.
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
        """Probability of the predicted class."""
        return self.probability_of(self.label)

    def probability_of(self, label: Any) -> float:
        """Return the probability of a class."""
        return float(self.probabilities[self.classes.index(label)])

    def by_contribution(self) -> list[int]:
        """Return the columns with a non-zero contribution, the largest first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        return order[self.contributions[order] != 0].tolist()

    def told(self, top: int | None = None) -> tuple[list[int], list[int]]:
        """Return the columns to list, at most `top`, and the other contributing columns, including small ones."""
        order = self.by_contribution()
        if top is None:
            return order, []
        sizes = np.abs(self.contributions)
        large = [j for j in order[:top] if sizes[j] >= SMALL * sizes.max()]
        return (large, order[len(large) :]) if len(order) > len(large) + 1 else (order, [])

    def reason(self, j: int) -> str:
        """Return the value of a column and its reference value as text."""
        column = self.columns[j]
        name, reference = quoted(column.name), shown(column, self.reference[j])
        if self.values[j] is None:
            return f"{name} is missing (reference {reference})"
        new = "rare or unknown level, " if j in self.unseen else ""
        return f"{name} = {shown(column, self.values[j])} ({new}reference {reference})"

    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` largest contributions; if None, with all."""
        large, small = self.told(top)
        parts = [(signed(self.contributions[j]), self.reason(j)) for j in large]
        if small:
            parts.append((signed(float(self.contributions[small].sum())), f"{len(small)} other columns"))
        parts.append((signed(self.base), "at the reference row"))
        width = max(len(size) for size, _ in parts)
        lines = [f"  {size:>{width}}  {reason}" for size, reason in parts]
        return "\n".join([*self.headline(), *lines, *self.flip_lines()])

    def headline(self) -> list[str]:
        """Return the prediction in one or two sentences."""
        truth = "" if self.true_label is None else f" The true class is {self.true_label!r}."
        odds = float(np.exp(min(self.difference, 50.0)))
        times = number(odds, 2 if odds >= 2 else 3)
        return [
            f"The predicted class is {self.label!r}, with probability {self.probability:.3f}.{truth}",
            f"It is {times} times as probable as class {self.rival!r} (log-odds {self.difference:.2f}):",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types."""
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
        """Return a pandas DataFrame with a row for each column, the largest contribution first."""
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
        """Return the smallest change that leads to another class as text."""
        if not self.searched:
            return []
        if self.flip is None:
            return ["The search found no change within the bounds that leads to another class."]
        if not self.flip.changes:
            return [f"The predicted class is already {self.flip.label!r}."]
        smallest = "The smallest change" if self.flip.proven else "A small change"
        far = f"distance {number(self.flip.distance, 3)}, in interquartile ranges of the columns"
        lines = [f"{smallest} that leads to class {self.flip.label!r} ({far}):"]
        for name, (before, after) in self.flip.changes.items():
            column = self.columns[self.column_names.index(name)]
            lines.append(f"  {quoted(name)}: {shown(column, before)} -> {shown(column, after)}")
        return lines
