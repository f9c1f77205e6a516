"""The line searches of the cutting-plane SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Initial distance (delta in the paper) between the three points; also the step of "non-greedy" instead of no step.
WINDOW = 0.02

#: A shorter step of an exact search counts as no step: it may differ from 0 by rounding only.
STILL = 1e-6


class Line:
    """The objective on the line from the current planes to a candidate (f in the paper)."""

    def __init__(self, current: np.ndarray, candidate: np.ndarray, C: float, sums: Any) -> None:
        self.current, self.along, self.C, self.sums = current, candidate - current, C, sums
        self.height = half_square(current)
        self.slope = float(current.ravel() @ self.along.ravel())
        self.curvature = 2.0 * half_square(self.along)
        # At the optimum, the two ends differ by rounding errors only, and no search is possible.
        self.is_point = self.curvature <= 1e-24 * (self.height + half_square(candidate))

    def at(self, mu: float) -> np.ndarray:
        """A point of the line."""
        return self.current + mu * self.along

    def objectives(self, *steps: float) -> list[float]:
        """The objective at the given points of the line."""
        risks = self.sums.risks(list(steps))
        return [
            self.height + mu * self.slope + 0.5 * mu * mu * self.curvature + self.C * float(risk)
            for mu, risk in zip(steps, risks, strict=True)
        ]


def _full_step(line: Line, last: float) -> tuple[float, float]:
    """CPA: no search."""
    return 1.0, line.objectives(1.0)[0]


def _exact(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3: the derivative of the objective is increasing, piecewise linear with jumps; find its zero."""
    from polyplane.kernels.cutting_plane import first_zero

    slope = line.slope + line.C * line.sums.slope()
    mu = 0.0
    if slope < 0.0:
        at, rise = line.sums.kinks(-slope / line.curvature)  # jumps only increase the slope
        mu = float(first_zero(at, line.C * rise, slope, line.curvature))
    return mu, line.objectives(mu)[0]


def _non_greedy(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3, with a short step instead of a second consecutive search without a step.

    From the same planes, the next cuts would be very similar (section 4.2: POKER). A step that increases the objective
    slightly gives different cuts at no other cost, since the best planes are kept.
    """
    mu, objective = _exact(line, last)
    return (mu, objective) if max(mu, last) > STILL else (WINDOW, line.objectives(WINDOW)[0])


def _three_point(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 4: shift a window of three points, from where the last search ended, until the middle one is lowest."""
    width = WINDOW
    low, mid, high = last - width, last, last + width
    f_low, f_mid, f_high = line.objectives(low, mid, high)
    while f_high < f_mid:
        width *= 2.0
        low, mid, high = mid, high, high + width
        f_low, f_mid, f_high = f_mid, f_high, line.objectives(high)[0]
    while f_low < f_mid:
        width *= 2.0
        low, mid, high = low - width, low, mid
        f_low, f_mid = line.objectives(low)[0], f_low
    return mid, f_mid


LINE_SEARCHES = {"none": _full_step, "exact": _exact, "non-greedy": _non_greedy, "three-point": _three_point}


def half_square(planes: np.ndarray) -> float:
    """Half the squared norm of all planes together."""
    flat = planes.ravel()
    return 0.5 * float(flat @ flat)
