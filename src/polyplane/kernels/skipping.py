"""Back-off: for how long a row is skipped, and what that misses."""

from typing import NamedTuple

import numpy as np

from polyplane.kernels.jit import part

#: 2 ** 64 divided by the golden ratio: the fractional parts of its multiples are spread evenly.
GOLDEN, TO_FRACTION, SHIFT = np.uint64(0x9E3779B97F4A7C15), 2.0**-32, np.uint64(32)


class Checks(NamedTuple):
    """The check of some rows that would be skipped: whether they would have updated a plane."""

    rate: float  # probability of a check, relative to the weight of the row
    #: Output: the estimated weight of the updates that were missed, and the weight of those that were made.
    found: np.ndarray


@part
def relative_slack(slack: float, movement: float) -> float:
    """Return the distance of a score from its margin, `slack`, relative to the movement of the score in a pass."""
    return slack / (0.7 * movement)


@part
def passes_within(slack: float, longest: int) -> int:
    """Return the number of passes for which a score keeps its margin, given its `relative_slack`.

    A random walk moves sqrt(n) times as far in n passes, and less if steps decrease. The fourth root, which skips most
    rows, and the factor 0.7 were chosen so that few updates are missed on twelve data sets. They are no bound: the
    caller increases the movement when checks find missed updates.
    """
    if not slack > 0.0:
        return 0
    slack *= slack
    slack *= slack
    return int(slack) if slack < longest else longest


@part
def is_checked(t: int, weight: float, checks: Checks) -> bool:
    """Whether the row of visit `t` is checked although it is skipped; heavy rows more often."""
    return bool(((np.uint64(t) * GOLDEN) >> SHIFT) * TO_FRACTION < checks.rate * weight)


@part
def note_update(skip: np.ndarray, i: int, was_skipped: bool, n_planes: int, weight: float, checks: Checks) -> None:
    """Count an update of `n_planes` planes by row `i`; a check that finds one stands for those that it did not see."""
    checks.found[1] += n_planes * weight
    if was_skipped:
        skip[i] = 0
        checks.found[0] += n_planes * max(0.0, 1.0 / checks.rate - weight)
