"""The error of a model on some rows, and its confidence interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from polyplane.explain.confusion import ConfusionMatrix

#: Two-sided 95 % of a normal distribution.
_Z = 1.959964


class Error(NamedTuple):
    """The number of misclassified rows, and the size of the most frequent class as a baseline.

    Parameters
    ----------
    n_wrong, n_rows : int
        Number of misclassified rows, and of all rows.
    majority : label
        The most frequent class.
    n_majority : int
        Number of its rows.
    """

    n_wrong: int
    n_rows: int
    majority: Any = None
    n_majority: int = 0

    @classmethod
    def of_labels(cls, predicted: np.ndarray, truth: np.ndarray, majority: Any) -> Error:
        """Count the errors of predictions."""
        return cls(int((predicted != truth).sum()), len(truth), majority, int((truth == majority).sum()))

    @classmethod
    def of_matrix(cls, matrix: ConfusionMatrix) -> Error:
        """Count the errors in a confusion matrix."""
        import numpy as np

        majority = int(matrix.support.argmax())
        n_right, label = int(np.trace(matrix.counts)), matrix.classes.tolist()[majority]
        return cls(matrix.n_rows - n_right, matrix.n_rows, label, int(matrix.support[majority]))

    @classmethod
    def pooled(cls, errors: Iterable[Error]) -> Error:
        """Combine the errors of several sets of rows with the same most frequent class."""
        found = list(errors)
        wrong, rows = sum(error.n_wrong for error in found), sum(error.n_rows for error in found)
        return cls(wrong, rows, found[0].majority, sum(error.n_majority for error in found))

    @property
    def percent(self) -> float:
        """The percentage of misclassified rows."""
        return 100 * self.n_wrong / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval (Wilson, 1927) of `percent`."""
        share, spread = self.n_wrong / self.n_rows, _Z**2 / self.n_rows
        middle = (share + spread / 2) / (1 + spread)
        half = (spread * (share * (1 - share) + spread / 4)) ** 0.5 / (1 + spread)
        return max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half))

    @property
    def interval_name(self) -> str:
        """The name of the interval in reports."""
        return "95 % confidence interval"

    @property
    def shown_interval(self) -> str:
        """The interval as text."""
        low, high = self.interval
        return f"{low:.4g} to {high:.4g}"

    @property
    def baseline_percent(self) -> float:
        """The error of always predicting the most frequent class, as a percentage."""
        return 100 * (1 - self.n_majority / self.n_rows)

    @property
    def shown_baseline(self) -> str:
        """The baseline error as text."""
        return f"{self.baseline_percent:.4g} (always {self.majority})"

    def __str__(self) -> str:
        return f"{self.percent:.4g} ({self.interval_name} {self.shown_interval})"
