"""Shortest vector of a polyhedron: the quadratic program of distances and counterfactuals."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

#: Relative tolerance of constraint violations.
TOLERANCE = 1e-12
#: A normal is linearly dependent on the active ones if the rest of its squared norm is below this fraction.
DEPENDENT = 1e-16


def least_change(
    normals: np.ndarray, limits: np.ndarray, lower: np.ndarray, upper: np.ndarray, ceiling: float = np.inf
) -> np.ndarray | None:
    r"""Compute the shortest :math:`u` with :math:`a_i u \ge b_i` and :math:`l \le u \le h`.

    Parameters
    ----------
    normals : ndarray of shape (n_constraints, n_features)
        The :math:`a_i`, which must not be 0.
    limits : ndarray of shape (n_constraints,)
        The :math:`b_i`.
    lower, upper : ndarray of shape (n_features,)
        Bounds :math:`l` and :math:`h`; may be infinite.
    ceiling : float, default=inf
        Upper bound on the length: the search stops when it is exceeded.

    Returns
    -------
    u : ndarray of shape (n_features,) or None
        None if there is no such vector, or none shorter than `ceiling`.

    Notes
    -----
    Uses the dual active-set method of Goldfarb and Idnani (1983). It starts with 0, the solution without constraints,
    and repeatedly adds the most violated constraint. Each iterate is the solution for a subset of the constraints, so
    its length only increases, and the method stops as soon as it exceeds `ceiling`.
    """
    return _ActiveSet(normals, limits, lower, upper).run(ceiling)


class _ActiveSet:
    """Active constraints and their multipliers; an active bound fixes its feature."""

    def __init__(self, normals: np.ndarray, limits: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
        self.normals, self.limits = normals / lengths[:, None], limits / lengths
        self.lower, self.upper = lower, upper
        self.point = np.zeros(normals.shape[1])
        self.active: list[int] = []
        self.weights = np.zeros(0)
        self.held = np.zeros(len(self.point))  # +1 at its lower bound, -1 at its upper one
        self.bound_weights = np.zeros(len(self.point))  # multipliers of the active bounds
        self.bounded = bool(np.isfinite(lower).any() or np.isfinite(upper).any())

    def run(self, ceiling: float) -> np.ndarray | None:
        for _ in range(100 * (len(self.limits) + len(self.point)) + 100):
            if np.linalg.norm(self.point) > ceiling:
                return None
            worst = self._worst()
            if worst is None:
                return self.point
            if not self._enter(*worst):
                return None
        raise ArithmeticError("The active-set method of a quadratic program is cycling.")

    def _worst(self) -> tuple[int, float, float] | None:
        """Return index, side and gap of the most violated constraint (bounds follow the planes); None if all hold."""
        gaps = self.normals @ self.point - self.limits
        gaps[self.active] = 0.0
        best = (int(gaps.argmin()), 1.0, float(gaps.min())) if len(gaps) else (0, 1.0, 0.0)
        if self.bounded:
            for side, room in ((1.0, self.point - self.lower), (-1.0, self.upper - self.point)):
                room = np.where(self.held == 0, room, 0.0)
                if room.min() < best[2]:
                    best = (len(gaps) + int(room.argmin()), side, float(room.min()))
        size = max(float(np.linalg.norm(self.point)), float(np.abs(self.limits).max(initial=0.0)))
        return best if best[2] < -TOLERANCE * size else None

    def _enter(self, index: int, side: float, gap: float) -> bool:
        """Move until the constraint holds, and drop blocking constraints; return whether this is possible."""
        if index < len(self.limits):
            normal = self.normals[index]
        else:
            normal = np.zeros(len(self.point))
            normal[index - len(self.limits)] = side
        weight = 0.0
        while True:
            shares, held_shares, rest = self._split(normal)
            square = float(rest @ rest)
            full = -gap / square if square > DEPENDENT else np.inf
            part, blocking = self._first_to_leave(shares, held_shares)
            step = min(full, part)
            if step == np.inf:
                return False
            self.weights -= step * shares
            self.bound_weights -= step * held_shares
            weight += step
            if full < np.inf:
                self.point = self.point + step * rest
                gap += step * square
            if step == full:
                self._add(index, side, weight)
                return True
            self._drop(blocking)

    def _split(self, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Decompose a normal into active normals, fixed features, and a remainder orthogonal to all of these."""
        free = self.held == 0
        rest = np.where(free, normal, 0.0)
        shares = np.zeros(0)
        spanned = np.zeros(len(normal))
        if self.active:
            active = self.normals[self.active]
            basis, triangle = np.linalg.qr((active * free).T)
            along = basis.T @ rest
            rest = rest - basis @ along
            again = basis.T @ rest  # repeated to reduce rounding errors
            rest, along = rest - basis @ again, along + again
            shares = solve_triangular(triangle, along, check_finite=False)
            spanned = shares @ active
        return shares, self.held * (normal - spanned), rest

    def _first_to_leave(self, shares: np.ndarray, held_shares: np.ndarray) -> tuple[float, int]:
        """Return the step at which a multiplier reaches 0, and its constraint."""
        multipliers = np.concatenate([self.weights, self.bound_weights])
        falls = np.concatenate([shares, held_shares])
        falling = np.flatnonzero(falls > 1e-14)
        if not len(falling):
            return np.inf, -1
        ways = np.maximum(multipliers[falling], 0.0) / falls[falling]
        first = int(ways.argmin())
        return float(ways[first]), int(falling[first])

    def _add(self, index: int, side: float, weight: float) -> None:
        if index < len(self.limits):
            self.active.append(index)
            self.weights = np.append(self.weights, weight)
        else:
            feature = index - len(self.limits)
            self.held[feature], self.bound_weights[feature] = side, weight
            self.point[feature] = self.lower[feature] if side > 0 else self.upper[feature]

    def _drop(self, index: int) -> None:
        if index < len(self.active):
            del self.active[index]
            self.weights = np.delete(self.weights, index)
        else:
            feature = index - len(self.active)
            self.held[feature] = self.bound_weights[feature] = 0.0
