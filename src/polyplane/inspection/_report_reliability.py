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
    page.add(
        "p",
        f"The expected calibration error is {100 * found.error:.1f} %: so far apart are, on average over the rows, the "
        f"predicted probability of {event} and how often it is the true class, in {BINS} bins. On the diagonal "
        "probabilities are what they say; lines are 95 % confidence intervals.",
        "quiet",
    )
    with page.group("effects"):
        caption = f"Reliability: predicted probability of {event} (across) and its observed frequency (up)"
        page.figure(draw_reliability(found.counts, found.predicted, found.observed), caption)
