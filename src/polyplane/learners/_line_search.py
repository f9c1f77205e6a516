"""The line searches of the cutting-plane SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

#: First distance (delta in the paper) of the outer two of the three points; the step where standing still is no option.
WINDOW = 0.02

#: A shorter step of an exact search is standing still: it may be rounding that keeps it from 0.
STILL = 1e-6


class Line:
    """The objective on the way from the current planes to a candidate (f in the paper)."""

    def __init__(self, current: np.ndarray, candidate: np.ndarray, C: float, sums: Any) -> None:
        self.current, self.along, self.C, self.sums = current, candidate - current, C, sums
        self.height = half_square(current)
        self.slope = float(current.ravel() @ self.along.ravel())
        self.curvature = 2.0 * half_square(self.along)
        # At the optimum the two ends differ by rounding errors, along which there is nothing to be found.
        self.is_point = self.curvature <= 1e-24 * (self.height + half_square(candidate))

    def at(self, mu: float) -> np.ndarray:
        """A point of the line."""
        return self.current + mu * self.along

    def objectives(self, *steps: float) -> list[float]:
        """The objective at some points of the line."""
        risks = self.sums.risks(list(steps))
        return [
            self.height + mu * self.slope + 0.5 * mu * mu * self.curvature + self.C * float(risk)
            for mu, risk in zip(steps, risks, strict=True)
        ]


def _full_step(line: Line, last: float) -> tuple[float, float]:
    """CPA: no search."""
    return 1.0, line.objectives(1.0)[0]


def _exact(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3: the slope of the objective is a rising line with jumps; find where it passes 0."""
    from polyplane.kernels.cutting_plane import first_zero

    slope = line.slope + line.C * line.sums.slope()
    mu = 0.0
    if slope < 0.0:
        at, rise = line.sums.kinks(-slope / line.curvature)  # the jumps only raise the slope: its zero is not beyond
        mu = float(first_zero(at, line.C * rise, slope, line.curvature))
    return mu, line.objectives(mu)[0]


def _non_greedy(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3, but a short step on where it would stand still once more.

    From the same planes the next cuts are much alike (section 4.2: POKER). A step that raises the objective a little
    gives other cuts, and costs nothing else: the best planes are kept.
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
    """Half the square of the norm of all planes together."""
    flat = planes.ravel()
    return 0.5 * float(flat @ flat)
