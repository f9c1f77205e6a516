"""Polyhedral separation by successive linear programs (Astorino and Gaudioso, 2002)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from polyplane._array_api import kind_of
from polyplane.base import Declaration
from polyplane.engine.data import Data
from polyplane.engine.kinds import FeatureScaling
from polyplane.engine.state import workspace
from polyplane.learners._polyhedron import (
    PolyhedronClassifier,
    PolyhedronMethod,
    PolyhedronState,
    method_of,
    plane_set,
)
from polyplane.learners._polyhedron_rows import ScaledRows
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling


class LinearPrograms:
    """The rows as the linear programs see them, and the weights of their slacks."""

    def __init__(self, data: Data, scaling: AffineScaling, inside: int) -> None:
        weight, is_inside = data.training_weight, data.y == inside
        self.rows = ScaledRows(data.X, scaling)
        self.inside = np.flatnonzero(is_inside & (weight > 0))
        self.outside = np.flatnonzero(~is_inside & (weight > 0))
        self.cost = np.concatenate([weight[at] / weight[at].sum() for at in (self.inside, self.outside)])
        self.points = [_with_constant(data.X[at], scaling) for at in (self.inside, self.outside)]

    def objective(self, planes: np.ndarray) -> float:
        """Mean slack inside plus mean slack outside at margin 1, each row outside at its lowest plane."""
        lowest = self.rows.scores(planes).min(axis=0)
        margin = np.concatenate([lowest[self.inside], -lowest[self.outside]])
        return float(self.cost @ np.maximum(0.0, 1.0 - margin))

    def solve(self, planes: np.ndarray) -> np.ndarray:
        """The best planes when the lowest of `planes` is to keep out each row outside: one linear program."""
        from scipy.optimize import linprog

        owner, n_planes = self.rows.scores(planes).argmin(axis=0)[self.outside], len(planes)
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
        best: np.ndarray = found.x[:n_free].reshape(n_planes, size)
        return best


def _with_constant(X: Any, scaling: AffineScaling) -> sparse.csr_array:
    """Scaled rows, not centred, with a constant 1, as a sparse matrix."""
    scaled = sparse.csr_array(X) @ sparse.diags_array(scaling.factor)
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


@dataclass(frozen=True, eq=False)
class SuccessiveLPState(PolyhedronState):
    """Everything that training needs to go on; its planes are over scaled rows."""

    scaling: FeatureScaling
    objective: float = math.inf
    programs: LinearPrograms | None = workspace()


@dataclass(frozen=True)
class SuccessiveLP(PolyhedronMethod[SuccessiveLPState]):
    """The rows outside go to their lowest planes, and a linear program finds the best planes for that; and so on."""

    trial_steps: int = 1

    state = SuccessiveLPState

    def start(self, data: Data, seed: int) -> SuccessiveLPState:
        """Planes between the classes."""
        # Not centred: sparse rows would become dense, and a linear program does not care.
        scaling = AffineScaling.standard(data.X, data.training_weight)._replace(centre=np.zeros(data.X.shape[1]))
        rows = ScaledRows(data.X, scaling)

        def starts(inside: int) -> Iterator[SuccessiveLPState]:
            for planes in self.start_planes(rows, data, inside, seed):
                yield SuccessiveLPState(planes, inside, kind_of(data.X), scaling)

        return self.best_start(starts, data, lambda state: state.objective)

    def prepare(self, state: SuccessiveLPState, data: Data) -> SuccessiveLPState:
        """With the programs of these rows, and what planes found on other rows cost on them."""
        programs = LinearPrograms(data, state.scaling, state.inside)
        objective = state.objective if math.isinf(state.objective) else programs.objective(state.planes)
        return replace(state, objective=objective, programs=programs)

    def step(self, state: SuccessiveLPState, data: Data) -> SuccessiveLPState:
        """One linear program."""
        assert state.programs is not None
        planes = state.programs.solve(state.planes)
        objective = state.programs.objective(planes)
        # A vertex within the solver's tolerance may be worse by a hair.
        return replace(state, planes=planes, objective=objective) if objective < state.objective else replace(state)

    def planes(self, state: SuccessiveLPState) -> PlaneSet:
        """The planes over the rows as they are."""
        return plane_set(state.planes, state.scaling, state.inside, state.rows_like)

    def figures(self, state: SuccessiveLPState) -> Mapping[str, float]:
        """The objective."""
        return {"objective": state.objective}

    def monitored(self, state: SuccessiveLPState) -> float:
        """The objective, which never rises."""
        return state.objective


@dataclass(eq=False, repr=False)
class SuccessiveLPClassifier(PolyhedronClassifier):
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
        The class in the convex region. None: each class is tried for one program, and the better one goes on.
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

    n_planes: int = 2
    _: KW_ONLY
    inside: Any = None
    n_init: int = 1
    tol: float | None = 1e-6
    max_iter: int = 50
    warm_start: bool = False
    random_state: Any = None
    verbose: int = 0

    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"n_planes": [2, 3, 5, 8]},
        multi_class=False,
        streams=False,  # a linear program needs all rows at once, and would forget those of earlier calls
        label_parameters=("inside",),
    )

    def _method(self, classes: np.ndarray) -> SuccessiveLP:
        return method_of(SuccessiveLP, self, classes)
