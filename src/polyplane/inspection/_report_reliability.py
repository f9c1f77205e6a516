"""How reliable probabilities are: predicted against observed, bin by bin, and their mean distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.inspection._markup import Markup
from polyplane.inspection._svg import draw_reliability

#: Bins of equal width.
BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    r"""Predicted probabilities against observed frequencies.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        The rows whose probability is in each bin.
    predicted, observed : ndarray of shape (n_bins,)
        Their mean probability, and the share of them for which the event came true; NaN in an empty bin.
    """

    counts: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, probability: np.ndarray, happened: np.ndarray) -> Reliability:
        """Of the probability of an event in each row, and whether it came true."""
        bins = np.minimum((probability * BINS).astype(int), BINS - 1)
        counts = np.bincount(bins, minlength=BINS)
        with np.errstate(invalid="ignore"):
            sums = (np.bincount(bins, values, BINS) for values in (probability, happened))
            predicted, observed = (total / counts for total in sums)
        return cls(counts, predicted, observed)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance between predicted and observed, weighted by rows."""
        distances = np.abs(self.predicted - self.observed)
        return float(np.nansum(self.counts * distances) / max(1, self.counts.sum()))


def add_reliability(page: Markup, labels: list[Any], truth: np.ndarray, probabilities: np.ndarray) -> None:
    """Add the section: of two classes about the rarer one, otherwise about the predicted class of each row."""
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
        f"Across: the predicted probability of {event}, in {BINS} bins. Up: how often it is the true class. On the "
        "diagonal the two agree: of the rows with a probability of 0.8, 80 % belong to the class. The expected "
        "calibration error is their mean distance over the rows. Vertical lines are 95 % confidence intervals, bars "
        "the number of rows in each bin."
    )
