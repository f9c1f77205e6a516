"""How well a model does: counted part by part, shown as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import Table

if TYPE_CHECKING:
    import numpy as np

#: A confusion table of more classes than these is no longer read by anyone; --json has it all the same.
SHOWN_CLASSES = 30


class Score(NamedTuple):
    """How many rows of each class were given to each class.

    Parameters
    ----------
    classes : list
        The labels.
    confusion : ndarray of shape (n_classes, n_classes)
        Rows: what they are; columns: what they were taken for.
    """

    classes: list[Any]
    confusion: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """Share of the rows that were recognised."""
        return float(self.confusion.trace() / max(1, self.n_rows))

    def by_class(self) -> list[dict[str, Any]]:
        """Precision, recall and F1 of each class; 0 where there is nothing to divide by."""
        given, there, right = self.confusion.sum(axis=0), self.confusion.sum(axis=1), self.confusion.diagonal()
        return [
            {
                "label": label,
                "rows": int(there[c]),
                "precision": float(right[c] / max(1, given[c])),
                "recall": float(right[c] / max(1, there[c])),
                "f1": float(2 * right[c] / max(1, given[c] + there[c])),
            }
            for c, label in enumerate(self.classes)
        ]

    def content(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "rows": self.n_rows,
            "accuracy": self.accuracy,
            "error_percent": 100 * (1 - self.accuracy),
            "classes": self.by_class(),
            "confusion": self.confusion.tolist(),
        }

    def tables(self) -> list[Table]:
        """Everything, for people."""
        facts = [
            ("rows", self.n_rows),
            ("accuracy", self.accuracy),
            ("error %", round(100 * (1 - self.accuracy), 4)),
        ]
        tables = [Table("Evaluation", (), list(facts))]
        columns = ("label", "rows", "precision", "recall", "f1")
        tables.append(Table("By class", columns, [tuple(row.values()) for row in self.by_class()]))
        if len(self.classes) <= SHOWN_CLASSES:
            rows = [(label, *self.confusion[c].tolist()) for c, label in enumerate(self.classes)]
            tables.append(Table("Confusion", ("is / taken for", *map(str, self.classes)), list(rows)))
        return tables


def score(model: Any, parts: Iterable[tuple[Any, np.ndarray]]) -> Score:
    """Try a model on rows whose classes (as indices) are known."""
    import numpy as np

    n_classes = len(model.classes_)
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    for X, y in parts:
        taken_for = model.planes_.predict(X, getattr(model, "n_jobs", None))
        confusion += np.bincount(y * n_classes + taken_for, minlength=n_classes**2).reshape(n_classes, n_classes)
    return Score(model.classes_.tolist(), confusion)
