"""The nearest point of a region of planes: allowed changes, the quadratic program, and unions of polyhedra."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog, nnls
from scipy.spatial.distance import cdist

from polyplane.planes import PlaneSet

#: Relative tolerance of constraint violations.
TOLERANCE = 1e-12
#: Number of constraints that a program starts with, and number that is added at a time.
FIRST_CONSTRAINTS = 32
#: A solution much longer than the limits is computed in a larger unit: in units of about its length, the last component
#: of the residual, the inverse of 1 plus the squared length, is not small. Factor between units, and their number.
MIN_RESIDUAL, FAR, MAX_UNITS = 0.01, 1e5, 3
#: The norms of changes, the metric that is the dual norm of a difference of weights, and the order of the dual norm.
DUALS = {1: ("chebyshev", np.inf), 2: ("euclidean", 2), np.inf: ("cityblock", 1)}


def check_norm(norm: Any) -> float:
    """Return the order of a norm: 1, 2 or infinity, which may be given as text."""
    order = {"1": 1, "2": 2, "inf": np.inf}.get(norm, norm) if isinstance(norm, str) else norm
    if isinstance(order, str | bool) or order not in DUALS:
        raise ValueError(f"norm={norm!r} must be 1, 2 or inf.")
    return float(order)


class AllowedChange(NamedTuple):
    """Allowed changes of a row: scale of each feature, features that may change, their bounds, and how changes are
    measured: by the norm of order 1, 2 or infinity.
    """

    scale: np.ndarray
    free: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    norm: float = 2

    @classmethod
    def of(
        cls,
        n_features: int,
        lower: Any = None,
        upper: Any = None,
        frozen: Any = None,
        scale: Any = None,
        norm: Any = 2,
    ) -> AllowedChange:
        """Validate the parameters; None means no bounds, no frozen features and a scale of 1."""
        low = _per_feature("lower", -np.inf if lower is None else lower, n_features)
        high = _per_feature("upper", np.inf if upper is None else upper, n_features)
        lengths = _per_feature("scale", 1.0 if scale is None else scale, n_features)
        if (low > high).any():
            raise ValueError(f"lower must not exceed upper, but it does for feature {int((low > high).argmax())}.")
        if not ((lengths > 0) & np.isfinite(lengths)).all():
            raise ValueError(f"scale must be positive, but it is not for feature {int((~(lengths > 0)).argmax())}.")
        free = np.ones(n_features, dtype=bool)
        if frozen is not None:
            free[_feature_numbers(frozen, n_features)] = False
        return cls(lengths, free, low, high, check_norm(norm))

    def length(self, change: np.ndarray) -> float:
        """Return the length of a change, in units of the scale."""
        return float(np.linalg.norm(change.astype(np.float64) / self.scale, self.norm))

    def contains(self, row: np.ndarray) -> bool:
        """Return whether the features that may change are within the bounds."""
        return bool(((row >= self.lower) & (row <= self.upper) | ~self.free).all())

    def clip(self, point: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Convert a changed row to the dtype of the row, without exceeding a bound by rounding."""
        lower, upper = self.lower.astype(row.dtype), self.upper.astype(row.dtype)
        lower = np.where(lower < self.lower, np.nextafter(lower, np.inf, dtype=row.dtype), lower)
        upper = np.where(upper > self.upper, np.nextafter(upper, -np.inf, dtype=row.dtype), upper)
        return np.where(self.free, np.clip(point.astype(row.dtype), lower, upper), row)


def check_row(planes: PlaneSet, x: Any) -> np.ndarray:
    """Return a finite float row with the number of features of the planes."""
    row = np.asarray(x)
    row = row if row.dtype in (np.float32, np.float64) else row.astype(np.float64)
    if row.shape != (planes.n_features,):
        raise ValueError(f"x has shape {row.shape}; it must be one row of {planes.n_features} features.")
    if not np.isfinite(row).all():
        raise ValueError(f"x must be finite, but feature {int((~np.isfinite(row)).argmax())} is not.")
    return row


def _per_feature(name: str, value: Any, n_features: int) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        raise ValueError(f"{name} must be one number or {n_features} numbers, one per feature.")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN.")
    return np.broadcast_to(array, n_features)


def _feature_numbers(frozen: Any, n_features: int) -> np.ndarray:
    array = np.asarray(frozen)
    if array.dtype == bool and array.shape == (n_features,):
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.min() < 0 or array.max() >= n_features:
        raise ValueError(f"frozen must be a mask of {n_features} booleans or indices from 0 to {n_features - 1}.")
    return array


class Region:
    r"""Region where one of the planes `own` scores at least as high as all planes `rivals`.

    It is a union of convex polyhedra, one for each plane of `own`. The distance to the farthest half-space of a
    polyhedron is a lower bound on the distance to it. Polyhedra are visited in the order of these bounds, until no
    other can be nearer.
    """

    def __init__(self, planes: PlaneSet, own: np.ndarray, rivals: np.ndarray, allowed: AllowedChange) -> None:
        self.own, self.rivals, self.allowed = own, rivals, allowed
        coef, intercept = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
        self.own_planes = coef[own], intercept[own]
        self.rival_planes = coef[rivals], intercept[rivals]
        a, b = (side[:, allowed.free] * allowed.scale[allowed.free] for side in (coef[own], coef[rivals]))
        self.lengths = cdist(a, b, DUALS[allowed.norm][0])
        self.beaten = self._beaten_twins()

    def _beaten_twins(self) -> np.ndarray:
        """Find, for each plane of `own`, identical rivals that come later: the first of identical planes wins ties."""
        (coef, intercept), (rival_coef, rival_intercept) = self.own_planes, self.rival_planes
        beaten = np.zeros((len(self.own), len(self.rivals)), dtype=bool)
        alike = np.equal.outer(intercept, rival_intercept) & np.less.outer(self.own, self.rivals)
        for i, j in np.argwhere(alike & np.equal.outer(coef.sum(axis=1), rival_coef.sum(axis=1))):
            beaten[i, j] = np.array_equal(coef[i], rival_coef[j])
        return beaten

    def nearest(self, x: np.ndarray, margin: float = 0.0) -> tuple[np.ndarray | None, float]:
        """Return the point nearest to `x` where `own` scores higher by at least `margin`, and its distance.

        If there is none, the point is None and the distance infinite.
        """
        bounds = self._half_spaces(x, margin)
        scale, free = self.allowed.scale, self.allowed.free
        lower, upper = (((edge - x) / scale)[free] for edge in (self.allowed.lower, self.allowed.upper))
        best, change = np.inf, None
        for i in np.argsort(bounds, kind="stable"):
            if bounds[i] >= best or bounds[i] == np.inf:
                break
            found = self._project(x, int(i), margin, (lower, upper), best)
            if found is not None and (length := float(np.linalg.norm(found, self.allowed.norm))) < best:
                best, change = length, found
        if change is None:
            return None, np.inf
        point = x.copy()
        point[free] += change * scale[free]
        return point, best

    def _half_spaces(self, x: np.ndarray, margin: float) -> np.ndarray:
        """Return, for each plane of `own`, a lower bound of the distance to its farthest half-space."""
        ours, theirs = (coef @ x + intercept for coef, intercept in (self.own_planes, self.rival_planes))
        missing = theirs - ours[:, None] + margin
        missing[self.beaten] = 0.0
        # If the length is 0, no change affects the difference; `_project` checks its sign.
        ways = np.divide(np.maximum(missing, 0.0), self.lengths, out=np.zeros_like(missing), where=self.lengths > 0)
        bounds: np.ndarray = ways.max(axis=1) * (1.0 - 1e-12)
        return bounds

    def _project(
        self, x: np.ndarray, i: int, margin: float, box: tuple[np.ndarray, np.ndarray], ceiling: float
    ) -> np.ndarray | None:
        """Return the shortest change into the polyhedron of one plane."""
        free = self.allowed.free
        difference = self.own_planes[0][i] - self.rival_planes[0]
        missing = margin - difference @ x - (self.own_planes[1][i] - self.rival_planes[1])
        normals = difference[:, free] * self.allowed.scale[free]
        flat = ~normals.any(axis=1)
        # If no allowed change affects the difference of two planes, it must already have the right sign.
        if (missing[flat & ~self.beaten[i]] > 0).any():
            return None
        return least_change(normals[~flat], missing[~flat], *box, ceiling, self.allowed.norm)


def least_change(
    normals: np.ndarray,
    limits: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    ceiling: float = np.inf,
    norm: float = 2,
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
    norm : {1, 2, inf}, default=2
        The norm of :math:`u`. With 1 and infinity, the problem is a linear program.

    Returns
    -------
    u : ndarray of shape (n_features,) or None
        None if there is no such vector, or none shorter than `ceiling`.

    Notes
    -----
    A least-distance problem is a non-negative least-squares problem (Lawson and Hanson, 1974, chapter 23): with
    :math:`A` and :math:`b` of all constraints, and the residual :math:`r` of

    .. math:: \min_{y \ge 0} \left\| \begin{pmatrix} A^\top \\ b^\top \end{pmatrix} y -
              \begin{pmatrix} 0 \\ 1 \end{pmatrix} \right\|

    the solution is minus the first components of r over its last one, which is 0 if there is none. Few of many
    constraints are active, so they are added as they are violated, and the length only increases.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    normals, limits = normals / lengths[:, None], limits / lengths
    if norm != 2:
        return _least_sum_or_largest(normals, limits, lower, upper, norm)
    eye = np.eye(len(lower))
    below, above = np.isfinite(lower), np.isfinite(upper)
    rows = np.concatenate([normals, eye[below], -eye[above]])
    edges = np.concatenate([limits, lower[below], -upper[above]])
    size = float(np.abs(edges).max(initial=0.0)) or 1.0
    goal = np.append(np.zeros(len(lower)), 1.0)
    met = np.argsort(-edges, kind="stable")[:FIRST_CONSTRAINTS]
    while True:
        unit = size
        for _ in range(MAX_UNITS):
            system = np.vstack([rows[met].T, edges[met] / unit])
            residual = goal - system @ nnls(system, goal)[0]
            if residual[-1] > MIN_RESIDUAL:
                break
            unit *= min(FAR, max(residual[-1], 1e-16) ** -0.5)
        else:
            return None
        change = -unit * residual[:-1] / residual[-1]
        length = float(np.linalg.norm(change))
        gaps = rows @ change - edges
        if length > ceiling or gaps[met].min(initial=0.0) < -1e-9 * max(size, length):
            return None
        gaps[met] = 0.0
        worst = np.argsort(gaps, kind="stable")[:FIRST_CONSTRAINTS]
        worst = worst[gaps[worst] < -TOLERANCE * max(size, length)]
        if not len(worst):
            return np.clip(change, lower, upper)
        met = np.append(met, worst)


def _least_sum_or_largest(
    normals: np.ndarray, limits: np.ndarray, lower: np.ndarray, upper: np.ndarray, norm: float
) -> np.ndarray | None:
    """Return the shortest vector by the norm of order 1 or infinity, by linear programming; None if there is none."""
    n_features = len(lower)
    if norm == 1:  # the difference of two non-negative vectors, whose components sum to the norm
        ends = np.maximum(np.stack([np.append(lower, -upper), np.append(upper, -lower)], axis=1), 0.0)
        found = linprog(np.ones(2 * n_features), np.concatenate([-normals, normals], axis=1), -limits, bounds=ends)
        return None if found.status else found.x[:n_features] - found.x[n_features:]
    # The last variable is the norm: no component is above it, or below minus it.
    eye, largest = sparse.eye_array(n_features), sparse.csr_array(-np.ones((n_features, 1)))
    system = sparse.block_array([[-normals, None], [eye, largest], [-eye, largest]], format="csr")
    ends = np.stack([np.append(lower, 0.0), np.append(upper, np.inf)], axis=1)
    cost = np.append(np.zeros(n_features), 1.0)
    found = linprog(cost, system, np.append(-limits, np.zeros(2 * n_features)), bounds=ends)
    return None if found.status else found.x[:-1]
