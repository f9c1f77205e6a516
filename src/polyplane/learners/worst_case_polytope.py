"""The worst-case-margin form of the Convex Polytope Machine (Kantchelian et al., 2014)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.extmath import row_norms

from polyplane.base import Declaration, PlaneClassifier, class_index
from polyplane.engine.data import Data, as_rows
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Array, Seed, State, Whole, workspace
from polyplane.learners.sgd import MeanPlanes, planes_around
from polyplane.planes import PlaneSet


@dataclass(frozen=True, eq=False)
class WorstCasePolytope(State):
    """One polytope in training, whose class is outside; `mean` is the running average of its planes."""

    outer: Annotated[int, Whole(2)]
    coef: Annotated[np.ndarray, Array("f", "features", "n_planes")]
    intercept: Annotated[np.ndarray, Array("f", "n_planes")]
    mean: MeanPlanes | None = None


@dataclass(frozen=True, eq=False)
class WorstCaseState(State):
    """The state of training."""

    polytopes: list[WorstCasePolytope]
    seed: Seed
    t0: float  # visits that the steps 1 / (alpha t) are ahead of the first one
    t: int = 0  # visits made so far
    epoch: int = 0
    loss: float = math.inf  # mean over the rows of the last epoch
    updates: float = 1.0  # share of them that moved a plane
    squares: np.ndarray | None = workspace()  # squared norm of each row

    def check(self, sizes: dict[str, int]) -> bool:
        """There are two classes, and one or each of them is outside a polytope."""
        outer = [polytope.outer for polytope in self.polytopes]
        return sizes["classes"] == 2 and outer in ([0], [1], [0, 1]) and self.t0 >= 1.0


@dataclass(frozen=True)
class WorstCasePolytopes(Method[WorstCaseState]):
    """Stochastic sub-gradient descent: a visit shrinks the plane of the largest norm alone."""

    outer: tuple[int, ...]
    n_planes: int = 16
    alpha: float = 1e-2
    average: bool = True
    fit_intercept: bool = True
    longest_alone: bool = True  # False shrinks all planes: the total margin, with these steps, for comparison

    traits = Traits(WorstCaseState, frozenset({"average"}))

    def start(self, data: Data, seed: int) -> WorstCaseState:
        """Zero planes. The first step, 1 / (alpha t0), is as long as a row of mean norm needs for a margin of 1."""
        shape, dtype = (data.X.shape[1], self.n_planes), data.X.dtype
        squares, weight = self._squares(data)[data.train], data.weight[data.train].astype(np.float64)
        polytopes = [WorstCasePolytope(c, np.zeros(shape, dtype), np.zeros(shape[1], dtype)) for c in self.outer]
        return WorstCaseState(polytopes, seed, max(1.0, float((weight * squares).mean()) / self.alpha))

    def _squares(self, data: Data) -> np.ndarray:
        squares: np.ndarray = row_norms(data.X, squared=True).astype(np.float64) + float(self.fit_intercept)
        return squares

    def step(self, state: WorstCaseState, data: Data) -> WorstCaseState:
        """One epoch: all rows, in a random order, on each polytope."""
        if state.squares is None:
            state = replace(state, squares=self._squares(data))
        order = np.random.default_rng([state.seed, state.epoch]).permutation(data.train)
        done = [self._epoch(state, polytope, order, data) for polytope in state.polytopes]
        polytopes, losses, updates = zip(*done, strict=True)
        return replace(
            state,
            polytopes=list(polytopes),
            t=state.t + len(order),
            epoch=state.epoch + 1,
            loss=sum(losses) / len(order),
            updates=sum(updates) / len(order) / len(polytopes),
        )

    def _epoch(
        self, state: WorstCaseState, polytope: WorstCasePolytope, order: np.ndarray, data: Data
    ) -> tuple[WorstCasePolytope, float, int]:
        from polyplane.kernels.rows import PlaneSums
        from polyplane.kernels.worst_case_polytope import WorstCaseProblem, worst_case_epoch

        assert state.squares is not None
        coef, intercept = polytope.coef, polytope.intercept
        t, n_planes = state.t0 + state.t, self.n_planes
        problem = WorstCaseProblem(
            data.y, data.weight, state.squares, polytope.outer, float(self.alpha), t, self.longest_alone
        )
        planes = PlaneSums(coef, intercept, float(self.fit_intercept))
        norm = (coef.astype(np.float64) ** 2).sum(axis=0) + intercept.astype(np.float64) ** 2
        score = np.empty(n_planes, dtype=coef.dtype)
        loss, updates = worst_case_epoch(as_rows(data.X), order, planes, norm, problem, score)
        mean = None
        if self.average:  # as in ConvexPolytopeClassifier: late epochs count most (Shamir and Zhang, 2013)
            share = 4.0 / (state.epoch + 4.0)
            before = polytope.mean or (coef, intercept)
            mean = share * coef + (1.0 - share) * before[0], share * intercept + (1.0 - share) * before[1]
        return replace(polytope, mean=mean), loss, updates

    def planes(self, state: WorstCaseState) -> PlaneSet:
        """Each outer class owns the planes of its polytope, the other the zero plane."""
        return planes_around({p.outer: p.mean or (p.coef.copy(), p.intercept.copy()) for p in state.polytopes}, 2)

    def metrics(self, state: WorstCaseState) -> Mapping[str, float]:
        """Mean loss, share of the visits that moved a plane, and length of the last step."""
        return {"loss": state.loss, "updates": state.updates, "step": 1.0 / (self.alpha * (state.t0 + state.t))}


@dataclass(eq=False, repr=False)
class WorstCasePolytopeClassifier(PlaneClassifier):
    r"""Convex Polytope Machine of the largest worst-case margin, for comparison with `ConvexPolytopeClassifier`.

    The paper weighs two margins of a polytope: the sum of its planes' margins (total), which
    `ConvexPolytopeClassifier` maximises, and the smallest of them (worst case). "The only difference is the
    regularization term" (Section 3.3): the longest plane alone instead of the sum over the planes. With class
    :math:`c` outside,

    .. math::

        \frac{\alpha}{2} \max_k |W_k|^2
        + \frac{1}{n} \sum_{i: y_i \ne c} \sum_k \left[1 + W_k x_i\right]_+
        + \frac{1}{n} \sum_{i: y_i = c} \left[1 - W_{z(i)} x_i\right]_+

    The paper argues against it, as it leaves all but one plane free to move, and gives no algorithm. This one is
    stochastic sub-gradient descent as in the paper's Algorithm 1, without its heuristic assignment (h = 0): a visit
    shrinks the longest plane, and no other. Steps are :math:`1 / (\alpha t + r)` with :math:`r` the mean of
    :math:`|x|^2`. The paper's :math:`1 / (\alpha t)` begins with steps of :math:`1 / \alpha`, which only a
    regulariser of all planes takes back.

    Two classes; for more, ``sklearn.multiclass.OneVsOneClassifier(WorstCasePolytopeClassifier())``.

    Parameters
    ----------
    n_planes : int, default=16
        Number of planes, the sides of each polytope (K).
    enclosed : label or None, default=None
        The class that a single polytope encloses. None: each class is outside a polytope of its own.
    alpha : float, default=1e-2
        Strength of the regularisation on the mean loss (the paper's :math:`\lambda`).
    max_iter : int, default=100
        Number of passes over the training rows (epochs).
    average : bool, default=True
        Whether to use a running average of the planes, in which late passes weigh most, instead of the last planes.
    fit_intercept : bool, default=True
        Whether to learn the offsets of the planes, which are regularised like the weights.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    random_state : int, RandomState or None, default=None
        Controls the order in which rows are visited.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (2,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    n_iter_ : int
        Number of passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met, over all polytopes), "updates" (share of the visits
        that moved a plane) and "step" (its length).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    polyplane.theory.polytope_margins : Both margins of a fitted classifier.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import WorstCasePolytopeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y == 8, random_state=0)
    >>> model = WorstCasePolytopeClassifier(alpha=1e-3, random_state=0).fit(X_train, y_train)
    >>> model.planes_
    PlaneSet(n_classes=2, n_planes=32, n_features=64, dtype=float64)
    >>> print(f"{model.score(X_test, y_test):.2f}")
    0.98
    """

    n_planes: int = 16
    _: KW_ONLY
    enclosed: Any = None
    alpha: float = 1e-2
    max_iter: int = 100
    average: bool = True
    fit_intercept: bool = True
    random_state: Any = None

    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"alpha": [1e-2, 1e-4, 1e-3, 0.1], "n_planes": [16, 4, 48]},
        multi_class=False,
        label_parameters=("enclosed",),
    )

    def _method(self, classes: np.ndarray) -> WorstCasePolytopes:
        outer = (0, 1) if self.enclosed is None else (1 - class_index("enclosed", self.enclosed, classes),)
        return self._method_of(WorstCasePolytopes, outer=outer)
