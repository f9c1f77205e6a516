"""The line searches of the cutting-plane SVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.learners._cuts import compiled_kernels

#: First distance (delta in the paper) of the outer two of the three points.
WINDOW = 0.02


class Line:
    """The objective on the way from one set of planes to another (f in the paper)."""

    def __init__(self, here: np.ndarray, there: np.ndarray, C: float, rows: Any) -> None:
        self.here, self.along, self.C, self.rows = here, there - here, C, rows
        self.height = half_square(here)
        self.slope = float(here.ravel() @ self.along.ravel())
        self.curvature = 2.0 * half_square(self.along)
        # At the optimum the two ends differ by rounding errors, along which there is nothing to be found.
        self.is_point = self.curvature <= 1e-24 * (self.height + half_square(there))

    def at(self, mu: float) -> np.ndarray:
        """A point of the line."""
        return self.here + mu * self.along

    def objectives(self, *steps: float) -> list[float]:
        """The objective at some points of the line."""
        risks = self.rows.risks(list(steps))
        return [
            self.height + mu * self.slope + 0.5 * mu * mu * self.curvature + self.C * float(risk)
            for mu, risk in zip(steps, risks, strict=True)
        ]


def _full_step(line: Line, last: float) -> tuple[float, float]:
    """CPA: no search."""
    return 1.0, line.objectives(1.0)[0]


def _exact(line: Line, last: float) -> tuple[float, float]:
    """Algorithm 3: the slope of the objective is a rising line with jumps; find where it passes 0."""
    slope = line.slope + line.C * line.rows.slope()
    mu = 0.0
    if slope < 0.0:
        at, rise = line.rows.kinks(-slope / line.curvature)  # the jumps only raise the slope: its zero is not beyond
        mu = _first_zero(at, line.C * rise, slope, line.curvature)
    return mu, line.objectives(mu)[0]


def _first_zero(at: np.ndarray, rise: np.ndarray, slope: float, curvature: float) -> float:
    """Where ``slope + curvature mu + (rises up to mu)`` passes 0; `at` is sorted."""
    if compiled_kernels():
        from polyplane.kernels.cutting_plane import first_zero

        return float(first_zero(at, rise, slope, curvature))
    after = slope + np.cumsum(rise)
    before = np.concatenate([[slope], after])  # the last: beyond all kinks
    passed = np.flatnonzero(after + curvature * at >= 0.0)
    i = int(passed[0]) if len(passed) else len(at)
    zero = -before[i] / curvature
    return float(zero if i == len(at) or zero <= at[i] else at[i])


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


SEARCHES = {"none": _full_step, "exact": _exact, "three-point": _three_point}


def half_square(planes: np.ndarray) -> float:
    """Half the square of the norm of all planes together."""
    flat = planes.ravel()
    return 0.5 * float(flat @ flat)
