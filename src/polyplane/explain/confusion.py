"""Confusion matrix, with accuracy, precision, recall and F1, and confidence intervals of fractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

#: Two-sided 95 % of a normal distribution.
QUANTILE = 1.959964


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Counts of rows: true class by row, predicted class by column.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    counts : ndarray of shape (n_classes, n_classes)
        Number of rows by true class (first axis) and predicted class.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane.explain.confusion import ConfusionMatrix
    >>> matrix = ConfusionMatrix.of(np.array(["no", "yes"]), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    >>> matrix.counts.tolist()
    [[1, 1], [0, 2]]
    >>> matrix.accuracy
    0.75
    """

    classes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, classes: np.ndarray, truth: Any, predicted: Any) -> ConfusionMatrix:
        """Compute the matrix from true and predicted class indices."""
        return cls(classes, confusion_matrix(truth, predicted, labels=np.arange(len(classes))))

    def __add__(self, other: ConfusionMatrix) -> ConfusionMatrix:
        return ConfusionMatrix(self.classes, self.counts + other.counts)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Fraction of correctly classified rows."""
        return float(self.counts.trace() / self.n_rows)

    @property
    def by_class(self) -> dict[str, list[Any]]:
        """Number of "rows", "precision", "recall" and "f1" of each class; NaN where they are not defined."""
        pairs = np.indices(self.counts.shape).reshape(2, -1)
        metrics = precision_recall_fscore_support(*pairs, sample_weight=self.counts.ravel(), zero_division=np.nan)
        named = zip(("precision", "recall", "f1"), metrics, strict=False)
        return {"rows": self.counts.sum(axis=1).tolist(), **{name: values.tolist() for name, values in named}}

    @property
    def majority(self) -> Any:
        """The most frequent class."""
        return self.classes.tolist()[int(self.counts.sum(axis=1).argmax())]

    @property
    def baseline_percent(self) -> float:
        """The error of always predicting the most frequent class, as a percentage."""
        return 100 * (1 - int(self.counts.sum(axis=1).max()) / self.n_rows)

    @property
    def error_percent(self) -> float:
        """The percentage of misclassified rows."""
        return 100 * (self.n_rows - int(self.counts.trace())) / self.n_rows

    @property
    def interval_percent(self) -> tuple[float, float]:
        """The 95 % confidence interval of `error_percent`."""
        low, high = wilson(self.error_percent / 100, self.n_rows)
        return 100 * low, 100 * high


def wilson(share: float, n_rows: int) -> tuple[float, float]:
    """Compute the 95 % confidence interval (Wilson, 1927) of a fraction of some rows."""
    spread = QUANTILE**2 / n_rows
    middle = (share + spread / 2) / (1 + spread)
    half = float((spread * (share * (1 - share) + spread / 4)) ** 0.5) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
