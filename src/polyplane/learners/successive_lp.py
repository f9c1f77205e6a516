"""Polyhedral separation by successive linear programs."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from polyplane._validation import Data
from polyplane.learners._polyhedron import PolyhedronLearner, Rows
from polyplane.learners._units import Units
from polyplane.planes import PlaneSet


class Task:
    """The rows as the linear programs see them, and the weights of their slacks."""

    def __init__(self, data: Data, units: Units, inside: int) -> None:
        weight, is_inside = data.training_weight, data.y == inside
        self.rows = Rows(data.X, units)
        self.inside = np.flatnonzero(is_inside & (weight > 0))
        self.outside = np.flatnonzero(~is_inside & (weight > 0))
        self.cost = np.concatenate([weight[at] / weight[at].sum() for at in (self.inside, self.outside)])
        self.points = [_with_constant(data.X[at], units) for at in (self.inside, self.outside)]

    def objective(self, scores: np.ndarray) -> float:
        """Mean slack inside plus mean slack outside at margin 1, each row outside at its lowest plane."""
        lowest = scores.min(axis=0)
        margin = np.concatenate([lowest[self.inside], -lowest[self.outside]])
        return float(self.cost @ np.maximum(0.0, 1.0 - margin))

    def solve(self, owner: np.ndarray, n_planes: int) -> np.ndarray:
        """The best planes when it is settled which plane keeps out each row outside: one linear program."""
        from scipy.optimize import linprog

        inside, outside = self.points
        size = inside.shape[1]
        above = sparse.hstack([sparse.kron(sparse.eye_array(n_planes), -inside), _slacks(len(self.inside), n_planes)])
        below = _at_plane(outside, owner, n_planes)
        constraints = sparse.block_array(
            [
                [above, None],
                [sparse.hstack([below, sparse.csr_array((len(owner), len(self.inside)))]), _slacks(len(owner), 1)],
            ],
            format="csc",
        )
        n_free = n_planes * size
        found = linprog(
            np.concatenate([np.zeros(n_free), self.cost]),
            A_ub=constraints,
            b_ub=np.full(constraints.shape[0], -1.0),
            bounds=[(None, None)] * n_free + [(0.0, None)] * len(self.cost),
            method="highs",
        )
        if found.x is None:
            raise RuntimeError(f"The linear program could not be solved: {found.message}")
        planes: np.ndarray = found.x[:n_free].reshape(n_planes, size)
        return planes


def _with_constant(X: Any, units: Units) -> sparse.csr_array:
    """Rows in given units, with a constant 1, as a sparse matrix."""
    scaled = sparse.csr_array(X) @ sparse.diags_array(units.factor)
    return sparse.csr_array(sparse.hstack([scaled, np.ones((X.shape[0], 1))]))


def _at_plane(points: sparse.csr_array, owner: np.ndarray, n_planes: int) -> sparse.csr_array:
    """Each row moved to the columns of its plane."""
    points = points.tocoo()
    row, column = points.coords
    size = points.shape[1]
    return sparse.csr_array((points.data, (row, column + owner[row] * size)), shape=(len(owner), n_planes * size))


def _slacks(n_rows: int, n_planes: int) -> sparse.csr_array:
    """Minus one slack per row, shared by all of its planes."""
    return -sparse.vstack([sparse.eye_array(n_rows)] * n_planes)


class LPState(NamedTuple):
    """Everything that training needs to go on."""

    planes: np.ndarray  # in `units`, offset last
    units: Units
    inside: int
    dtype: Any
    objective: float


class SuccessiveLPClassifier(PolyhedronLearner):
    r"""One class inside a polyhedron, by successive linear programs (PC-SLP).

    A row is inside when :math:`h(x) = \min_k f_k(x) > 0` with :math:`f_k(x) = w_k x + b_k`. With :math:`A` the rows
    inside and :math:`B` those outside, the mean slack at margin 1 is minimised:

    .. math::

        \frac{1}{|A|} \sum_{i \in A} \left[1 - \min_k f_k(x_i)\right]_+
        + \frac{1}{|B|} \sum_{j \in B} \left[1 + \min_k f_k(x_j)\right]_+

    The first sum is convex; the second becomes so once it is settled which plane keeps out each row. So two steps
    alternate: each row outside is given to its lowest plane, and one linear program (HiGHS) finds the best planes for
    that. Neither raises the objective; training ends when it no longer falls. Both classes weigh the same, however many
    rows they have; sample weights count within a class.

    Features are scaled to unit variance on the way, and the planes given back for the features as they are. The
    programs hold ``n_planes`` copies of the rows inside: a method for hundreds or thousands of rows. For more
    than two classes: ``sklearn.multiclass.OneVsRestClassifier(SuccessiveLPClassifier())``.

    Parameters
    ----------
    n_planes : int, default=2
        Sides of the polyhedron (K).
    inside : label, default=None
        The class in the convex region. None: the second class.
    n_init : int, default=1
        Number of starts. The first splits the class outside along its long axes, the others at random; each solves one
        program, and the best goes on.
    tol : float or None, default=1e-6
        Stop when a program lowers the objective by no more than this fraction.
    max_iter : int, default=50
        Linear programs.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    random_state : int, RandomState or None, default=None
        Source of the starts after the first.
    n_jobs : int or None, default=None
        Threads in prediction.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model: the class outside owns the planes :math:`-f_k`, the class inside the zero plane.
    inside_ : label
        The class inside.
    classes_ : ndarray of shape (2,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    n_iter_ : int
        Linear programs solved.
    history_ : dict
        After each program: "time" and "objective", which never rises.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    A. Astorino and M. Gaudioso. Polyhedral Separability through Successive LP. Journal of Optimization Theory and
    Applications, 112(2), 2002.

    Examples
    --------
    >>> from polyplane import SuccessiveLPClassifier
    >>> from polyplane.datasets import make_polyhedron
    >>> X, y = make_polyhedron(400, n_features=2, n_planes=3, random_state=0)
    >>> polyhedron = SuccessiveLPClassifier(n_planes=3).fit(X[:200], y[:200])
    >>> print(f"{polyhedron.score(X[200:], y[200:]):.1f}")
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PolyhedronLearner._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    _takes_streams = False  # a linear program needs all rows at once, and would forget those of earlier calls

    def __init__(
        self,
        n_planes: int = 2,
        *,
        inside: Any = None,
        n_init: int = 1,
        tol: float | None = 1e-6,
        max_iter: int = 50,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_planes = n_planes
        self.inside = inside
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _start(self, data: Data, seed: int) -> LPState:
        inside = self._inside_class()
        self._check_rows(data, inside)
        # Not centred: sparse rows would become dense, and a linear program does not care.
        units = Units.standard(data.X, data.training_weight)._replace(centre=np.zeros(data.X.shape[1]))
        rows = Rows(data.X, units)
        starts = self._start_planes(rows, data, inside, seed)
        states = [LPState(planes, units, inside, data.X.dtype, np.inf) for planes in starts]
        if len(states) == 1:
            return states[0]
        return min((self._step(state, data) for state in states), key=lambda state: state.objective)

    def _step(self, state: LPState, data: Data) -> LPState:
        task = data.recall(lambda: Task(data, state.units, state.inside))
        owner = task.rows.scores(state.planes).argmin(axis=0)
        planes = task.solve(owner[task.outside], self.n_planes)
        objective = task.objective(task.rows.scores(planes))
        # A vertex within the solver's tolerance may be worse by a hair.
        return state if objective >= state.objective else state._replace(planes=planes, objective=objective)

    def _planes(self, state: LPState) -> PlaneSet:
        return self._plane_set(state.planes, state.units, state.inside, np.empty(0, state.dtype))

    def _figures(self, state: LPState) -> Mapping[str, float]:
        return {"objective": state.objective}

    def _finish(self, state: LPState, data: Data) -> None:
        self.inside_ = self.classes_[state.inside]
