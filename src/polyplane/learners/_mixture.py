"""The likelihood of a polyhedral mixture, and its maximisation: the E-step and the M-step of PLUME and SPLA1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from polyplane._array_api import astype, at_most, expit, namespace, to_numpy
from polyplane.learners._polyhedron_rows import ScaledRows, members
from polyplane.scaling import row_blocks

#: Number of steps that L-BFGS stores.
LBFGS_MEMORY = 10

#: Armijo's constant, and the maximum number of halvings of a step.
SUFFICIENT, HALVINGS = 1e-4, 40


class Gates(NamedTuple):
    """The result of the E-step."""

    log_likelihood: Any  # of each row
    gate: Any  # g: prior probability of each plane, shape (n_planes, n_rows)
    share: Any  # pi: posterior probability of each plane, given the label, shape (n_planes, n_rows)


def soft_gates(scores: Any, sign: Any, gamma: float) -> Gates:
    r"""The E-step of PLUME, in logarithms: :math:`\gamma w x` overflows easily."""
    xp = namespace(scores)
    with np.errstate(over="ignore"):
        log_gate = -gamma * (scores - xp.min(scores, axis=0))
    gate = xp.exp(log_gate)
    total = xp.sum(gate, axis=0)
    joint = log_gate + log_expit(sign * scores)
    top = xp.max(joint, axis=0)
    share = xp.exp(joint - top)
    joint_total = xp.sum(share, axis=0)
    # By rounding, a probability may exceed 1.
    log_likelihood = at_most(top + xp.log(joint_total) - xp.log(total), 0.0)
    return Gates(log_likelihood, gate / total, share / joint_total)


def hard_gates(scores: Any, sign: Any) -> Gates:
    """The E-step of SPLA1: each row belongs to its lowest plane."""
    xp = namespace(scores)
    gate = astype(members(xp.argmin(scores, axis=0), scores.shape[0]), scores.dtype)
    return Gates(log_expit(sign * xp.min(scores, axis=0)), gate, gate)


def log_expit(x: Any) -> Any:
    """The logarithm of the logistic function; several times faster than SciPy's."""
    xp = namespace(x)
    return at_most(x, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))


class Point(NamedTuple):
    """Planes, their likelihood, and the result of the E-step."""

    planes: np.ndarray  # (n_planes, n_features + 1), offset last
    value: float  # mean log-likelihood minus the ridge penalty
    scores: Any  # (n_planes, n_rows), on the device of the rows
    gates: Gates


class Likelihood:
    """The penalised log-likelihood of given rows, which is maximised.

    Parameters
    ----------
    rows : ScaledRows
        The rows.
    sign : array of shape (n_rows,)
        +1 inside, -1 outside.
    weight : array of shape (n_rows,)
        Weights of the rows.
    alpha : float
        Strength of the ridge penalty.
    gamma : float or None
        Sharpness of the gating; None: hard gating, the limit.
    """

    def __init__(self, rows: ScaledRows, sign: Any, weight: Any, alpha: float, gamma: float | None) -> None:
        self.rows = rows
        self.sign = rows.per_row(sign)
        self.weight = rows.per_row(weight / weight.sum())
        self.alpha = alpha
        self.gamma = gamma

    def at(self, planes: np.ndarray) -> Point:
        """E-step: the likelihood of the planes, and the probabilities of the planes for each row."""
        scores = self.rows.scores(planes)
        gates = hard_gates(scores, self.sign) if self.gamma is None else soft_gates(scores, self.sign, self.gamma)
        ridge = 0.5 * self.alpha * np.square(planes[:, :-1]).sum()
        return Point(planes, float(self.weight @ gates.log_likelihood) - float(ridge), scores, gates)

    def gradient(self, point: Point) -> np.ndarray:
        """Gradient of Q at the planes of the E-step, where it is equal to that of the likelihood."""
        _, gate, share = point.gates
        gradient_weights = share * (self.sign * expit(-self.sign * point.scores))
        if self.gamma is not None:
            gradient_weights += self.gamma * (gate - share)
        gradient = self.rows.sums(gradient_weights * self.weight)
        gradient[:, :-1] -= self.alpha * point.planes[:, :-1]
        return gradient

    def curvature(self, point: Point) -> np.ndarray:
        """Minus the Hessian of Q, positive semi-definite, of size ``n_planes * (n_features + 1)``."""
        _, gate, share = point.gates
        gamma = self.gamma or 0.0
        n_planes, size = point.planes.shape
        blocks = np.zeros((n_planes, size, n_planes, size))
        for k in range(n_planes):
            scores = point.scores[k, :]
            own = gamma**2 * gate[k, :] * (1 - gate[k, :]) + share[k, :] * expit(scores) * expit(-scores)
            blocks[k, :, k] = self._moment(own * self.weight)
            blocks[k, range(size - 1), k, range(size - 1)] += self.alpha
            for r in range(k) if gamma else ():
                both = gate[k, :] * gate[r, :] * self.weight
                blocks[k, :, r] = blocks[r, :, k] = -(gamma**2) * self._moment(both)
        return blocks.reshape(n_planes * size, n_planes * size)

    def separates(self, planes: np.ndarray) -> bool:
        """Whether all rows are on the correct side."""
        xp = namespace(self.sign)
        margin = self.sign * xp.min(self.rows.scores(planes), axis=0)
        return bool(xp.all((margin > 0) | (self.weight <= 0)))

    def _moment(self, weight: Any) -> np.ndarray:
        """Weighted sum of the outer products of each row with itself, including the constant 1."""
        X, (mean, factor) = self.rows.X, self.rows.scaling
        total, weight = float(namespace(weight).sum(weight)), astype(weight, X.dtype)
        first = np.asarray(to_numpy(X.T @ weight), dtype=np.float64)
        if sparse.issparse(X):
            second = (X.T @ sparse.diags_array(weight) @ X).toarray()
        else:
            blocks = ((X[block, :], weight[block][:, None]) for block in row_blocks(X))
            second = to_numpy(sum(part.T @ (part * share) for part, share in blocks))
        cross = np.outer(first, mean)
        moment = np.empty((len(mean) + 1, len(mean) + 1))
        moment[:-1, :-1] = (second - cross - cross.T + total * np.outer(mean, mean)) * np.outer(factor, factor)
        moment[-1, :-1] = moment[:-1, -1] = (first - total * mean) * factor
        moment[-1, -1] = total
        return moment


class Pair(NamedTuple):
    """A step, for the updates of BFGS and L-BFGS."""

    moved: np.ndarray
    change: np.ndarray  # decrease of the gradient
    curvature: float  # inner product of both


class Ascent(NamedTuple):
    """The maximisation of a likelihood, one M-step at a time.

    The line search compares the likelihood itself, not Q: the likelihood increases at least as much as Q (Jensen's
    inequality) and has the same slope, so every step that is acceptable for Q is acceptable. With hard gating, where an
    increase of Q guarantees nothing, the likelihood still never decreases.
    """

    likelihood: Any  # a Likelihood, or that of the rows of a cluster
    solver: str
    current: Any  # the current Point
    gradient: np.ndarray  # at the current point
    pairs: tuple[Pair, ...] = ()  # L-BFGS: the last steps
    inverse: np.ndarray | None = None  # BFGS: approximation of the inverse of minus the Hessian, B in the paper
    step: float = 1.0  # size of the last step along a gradient

    @classmethod
    def begin(cls, likelihood: Any, solver: str, planes: np.ndarray) -> Ascent:
        """Start from `planes`."""
        point = likelihood.at(planes)
        return cls(likelihood, solver, point, likelihood.gradient(point))

    def advance(self) -> Ascent:
        """Make one step; the planes stay the same if no step increases the likelihood."""
        for direction in self._directions():
            found = self._search(direction)
            if found is not None:
                candidate, step = found
                here = self._replace(pairs=(), inverse=None, step=step) if direction is self.gradient else self
                return here._move(candidate)
        return self._replace(pairs=(), inverse=None)

    def _directions(self) -> Iterator[np.ndarray]:
        """Yield the direction of the solver, and then the gradient, in case the first one fails."""
        if self.solver == "newton":
            yield self._newton()
        elif self.inverse is not None:
            yield (self.inverse @ self.gradient.ravel()).reshape(self.gradient.shape)
        elif self.pairs:
            yield self._lbfgs()
        yield self.gradient

    def _search(self, direction: np.ndarray) -> tuple[Any, float] | None:
        """Backtracking: the first of the halved steps with a sufficient increase of the likelihood (Armijo)."""
        current, slope = self.current, float(np.vdot(self.gradient, direction))
        if not slope > 0:
            return None
        step = 2.0 * self.step if direction is self.gradient else 1.0
        for _ in range(HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is rejected
                candidate = self.likelihood.at(current.planes + step * direction)
            if candidate.value >= current.value + SUFFICIENT * step * slope and candidate.value > current.value:
                return candidate, step
            step *= 0.5
        return None

    def _move(self, candidate: Any) -> Ascent:
        gradient = self.likelihood.gradient(candidate)
        here = self._replace(current=candidate, gradient=gradient)
        moved, change = candidate.planes - self.current.planes, self.gradient - gradient
        pair = Pair(moved, change, float(np.vdot(moved, change)))
        if not pair.curvature > 1e-10 * float(np.vdot(change, change)) > 0:  # the likelihood is not concave everywhere
            return here
        if self.solver == "lbfgs":
            return here._replace(pairs=(*self.pairs, pair)[-LBFGS_MEMORY:])
        return here._replace(inverse=_updated(self.inverse, pair)) if self.solver == "bfgs" else here

    def _newton(self) -> np.ndarray:
        """The Newton direction of Q at the current planes."""
        matrix = self.likelihood.curvature(self.current)
        # Planes without rows and equal planes make the matrix singular: add a ridge far below its scale.
        matrix[np.diag_indices(len(matrix))] += 1e-9 * max(matrix.diagonal().max(), np.finfo(float).tiny)
        try:
            factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return self.gradient
        return linalg.cho_solve(factor, self.gradient.ravel()).reshape(self.gradient.shape)

    def _lbfgs(self) -> np.ndarray:
        """The L-BFGS direction, by the two-loop recursion."""
        direction, amounts = self.gradient.copy(), []
        for moved, change, curvature in reversed(self.pairs):
            amounts.append(np.vdot(moved, direction) / curvature)
            direction -= amounts[-1] * change
        _, change, curvature = self.pairs[-1]
        direction *= curvature / np.vdot(change, change)
        for moved, change, curvature in self.pairs:
            direction += (amounts.pop() - np.vdot(change, direction) / curvature) * moved
        return direction


def _updated(inverse: np.ndarray | None, pair: Pair) -> np.ndarray:
    """The paper's rank-two update; the initial matrix is a scaled identity (Nocedal and Wright, 6.20)."""
    moved, change, curvature = pair.moved.ravel(), pair.change.ravel(), pair.curvature
    if inverse is None:
        inverse = curvature / np.vdot(change, change) * np.eye(len(moved))
    product = inverse @ change
    cross = np.outer(product, moved)
    stretch = (1.0 + np.vdot(change, product) / curvature) / curvature
    updated: np.ndarray = inverse + stretch * np.outer(moved, moved) - (cross + cross.T) / curvature
    return updated
