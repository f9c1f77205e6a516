"""Reliability of probabilities: predicted and observed frequencies by bin, and the calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain._markup import Markup
from polyplane.explain._svg import draw_reliability

#: Number of bins of equal width.
BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    r"""Predicted probabilities and observed frequencies by bin.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Number of rows in each bin.
    predicted, observed : ndarray of shape (n_bins,)
        Mean predicted probability and observed frequency of the event in each bin; NaN in an empty bin.
    """

    counts: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, probability: np.ndarray, happened: np.ndarray) -> Reliability:
        """Compute the bins, given the probability of an event in each row and whether it occurred."""
        bins = np.minimum((probability * BINS).astype(int), BINS - 1)
        counts = np.bincount(bins, minlength=BINS)
        with np.errstate(invalid="ignore"):
            sums = (np.bincount(bins, values, BINS) for values in (probability, happened))
            predicted, observed = (total / counts for total in sums)
        return cls(counts, predicted, observed)

    @property
    def error(self) -> float:
        """Expected calibration error: mean difference of predicted and observed frequency, weighted by rows."""
        distances = np.abs(self.predicted - self.observed)
        return float(np.nansum(self.counts * distances) / max(1, self.counts.sum()))


def add_reliability(page: Markup, labels: list[Any], truth: np.ndarray, probabilities: np.ndarray) -> None:
    """Add the section; the event is the rarer of two classes, or that the predicted class is correct."""
    if len(labels) == 2:
        c = int(np.bincount(truth, minlength=2).argmin())
        event, happened, values = f"class {labels[c]}", truth == c, probabilities[:, c]
    else:
        event, happened = "the predicted class", probabilities.argmax(axis=1) == truth
        values = probabilities.max(axis=1)
    found = Reliability.of(values, happened)
    page.add("h2", "Probabilities")
    with page.group("reliability"):
        page.figure(draw_reliability(found.counts, found.predicted, found.observed), "Reliability curve")
        with page.group(""):
            page.add("p", f"Expected calibration error: {100 * found.error:.1f} %", "lead")
            page.add("p", _meaning(event), "quiet")


def _meaning(event: str) -> str:
    return (
        f"Horizontal axis: predicted probability of {event}, in {BINS} bins. Vertical axis: fraction of these rows for "
        "which it is the true class. On the diagonal, the two are equal: of rows with a predicted probability of 0.8, "
        "80 % are of this class. The expected calibration error is the mean difference of the two. Vertical lines are "
        "95 % confidence intervals. Bars show the number of rows in each bin."
    )
