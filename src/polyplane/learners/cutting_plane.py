"""The linear SVM by cutting planes."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane._array_api import host_dtype, kind_of, namespace, within_device_memory
from polyplane._threads import Team
from polyplane._validation import Data
from polyplane.base import PlaneClassifier
from polyplane.learners._array_sums import ArrayRowSums
from polyplane.learners._cuts import Bundle, RowSums, compiled_kernels, fingerprint
from polyplane.learners._line_search import SEARCHES, Line, half_square
from polyplane.learners._scales import warn_of_scales
from polyplane.planes import PlaneSet

#: The next cut is made this far (lambda in the paper) from the best point towards the minimiser of the bundle.
CUT_POINT = 0.1


class Search(NamedTuple):
    """One SVM in training. Planes have the weight of the constant feature in their last column."""

    bundle: Bundle
    here: np.ndarray  # where the line searches start from (w^b in the paper)
    best: np.ndarray  # the planes with the smallest objective so far
    primal: float  # their objective
    dual: float  # the largest lower bound so far
    step: float  # outcome of the last line search (mu' in the paper)

    @property
    def gap(self) -> float:
        """The objective of the best planes is at the most this share of itself above the optimum."""
        return max(1.0 - self.dual / self.primal, 0.0)


class CutState(NamedTuple):
    """Everything that training needs to go on."""

    searches: list[Search]
    kind: Any  # tells where the rows were, and their dtype
    seconds: dict[str, float]  # time of the parts of the last step
    rows: bytes | None  # fingerprint of the rows that the cuts are about


@dataclass
class Memory:
    """What is remembered of the rows of one call."""

    rows: list[Any]  # of each problem, RowSums or ArrayRowSums
    team: Team  # shares the problems
    entered: bool = False


class Clock:
    """Adds up the time of named parts."""

    def __init__(self) -> None:
        self.seconds = {"outputs": 0.0, "line_search": 0.0, "cut": 0.0, "qp": 0.0}
        self._last = time.perf_counter()

    def charge(self, part: str) -> None:
        """Book the time since the last call under `part`."""
        now = time.perf_counter()
        self.seconds[part] += now - self._last
        self._last = now


class CuttingPlaneSVC(PlaneClassifier):
    r"""Linear SVM by cutting planes, with a certificate: it stops when it is provably close to the optimum.

    For two classes it minimises

    .. math:: F(w) = \frac{1}{2} |w|^2 + C \sum_i \left[1 - y_i \, w x_i\right]_+

    and for more the loss of Crammer and Singer, over one plane per class:

    .. math:: F(W) = \frac{1}{2} \sum_k |w_k|^2 + C \sum_i \max_k \left( [k \ne y_i] + w_k x_i - w_{y_i} x_i \right)

    The sum of losses is bounded from below by its tangents, the cuts, and the minimum over all cuts so far is a small
    quadratic problem whose value :math:`F_t` is a lower bound of the optimum. Training ends when
    :math:`1 - F_t / F(w) < tol`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses, as in `LinearSVC`. The papers' C weighs the mean loss: theirs is ``n_rows * C``.
    multi_class : {"crammer_singer", "ovr"}, default="crammer_singer"
        For more than two classes: one joint problem, or each class against the rest.
    line_search : {"three-point", "exact", "none"}, default="three-point"
        How to go on from the best planes towards those that the cuts suggest: by comparing three points (OCA-T), to the
        exact minimum (OCA-E, sorts all rows at each cut), or all the way (CPA, needs many more cuts).
    tol : float or None, default=0.01
        Stop when the objective is proven to be within this share of the optimum. None: make all cuts.
    max_iter : int, default=10000
        Cuts at the most.
    fit_intercept : bool, default=True
        Learn an offset of each plane, regularised like the rest: the weight of a constant feature 1.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    warm_start : bool, default=False
        Go on from where the last `fit` ended. On the same rows all cuts are kept, also for another C.
    n_jobs : int or None, default=None
        Threads, over blocks of rows or with "ovr" over classes, and in prediction. The planes do not depend on it.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model. For two classes the first owns the zero plane.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    gap_ : float
        The certificate: the objective is at the most this share of itself above the optimum; with "ovr", for each
        class.
    n_cuts_ : int
        Cuts made.
    n_iter_ : int
        Steps made: one cut per problem.
    history_ : dict
        After each step: "time", "primal" (objective of the best planes), "dual" (lower bound of the optimum), "gap",
        "cuts" (kept) and the seconds spent on "outputs" (the product of X and the planes), "line_search", "cut", "qp".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Under ``sklearn.config_context(array_api_dispatch=True)`` the sums over rows are made where the rows are, by PyTorch
    or CuPy; the small quadratic problem stays on the host.

    `partial_fit` makes one cut about the rows that it is given, going on from the current planes; cuts about other rows
    say nothing about these and are forgotten.

    References
    ----------
    N. A. Arnosti and J. K. Kalita. Cutting Plane Training for Linear Support Vector Machines. IEEE TKDE 25(5), 2013.

    V. Franc and S. Sonnenburg. Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization. JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> svm = CuttingPlaneSVC(C=0.01).fit(X, y)
    >>> bool(svm.gap_ < 0.01)
    True
    >>> print(f"{svm.score(X, y):.2f}")
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "multi_class": [StrOptions({"crammer_singer", "ovr"})],
        "line_search": [StrOptions({"three-point", "exact", "none"})],
        "tol": [Interval(Real, 0, 1, closed="neither"), None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        multi_class: str = "crammer_singer",
        line_search: str = "three-point",
        tol: float | None = 0.01,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.multi_class = multi_class
        self.line_search = line_search
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    # The contract of PlaneClassifier.

    def _start(self, data: Data, seed: int) -> CutState:
        warn_of_scales(data.X)
        n_searches, n_planes = self._layout(data.n_classes)
        shape = (n_planes, data.X.shape[1] + 1)
        zero = np.zeros(shape)
        searches = [Search(Bundle(shape), zero, zero, np.inf, 0.0, 1.0) for _ in range(n_searches)]
        return CutState(searches, kind_of(data.X), Clock().seconds, None)

    def _step(self, state: CutState, data: Data) -> CutState:
        memory = data.recall(lambda: self._remember(data))
        if not memory.entered:
            state = self._enter(state, memory, keep_cuts=False)

        def go_on(i: int) -> tuple[Search, dict[str, float]]:
            done = self.tol is not None and state.searches[i].gap < self.tol
            return (state.searches[i], Clock().seconds) if done else self._advance(state.searches[i], memory.rows[i])

        with within_device_memory("Train on fewer rows at a time with partial_fit."):
            searches, seconds = zip(*memory.team.map(go_on, range(len(memory.rows))), strict=True)
        total = {part: sum(second[part] for second in seconds) for part in seconds[0]}
        return state._replace(searches=list(searches), seconds=total)

    def _planes(self, state: CutState) -> PlaneSet:
        best = np.concatenate([search.best for search in state.searches]).astype(host_dtype(state.kind))
        if len(best) == 1:
            best = np.concatenate([np.zeros_like(best), best])
        planes = PlaneSet(np.ascontiguousarray(best[:, :-1]), best[:, -1].copy(), np.arange(len(best) + 1))
        return planes.to(state.kind)

    @property
    def _takes_foreign_arrays(self) -> bool:
        return True

    def _figures(self, state: CutState) -> Mapping[str, float]:
        return {
            "primal": sum(search.primal for search in state.searches),
            "dual": sum(search.dual for search in state.searches),
            "gap": max(search.gap for search in state.searches),
            "cuts": sum(search.bundle.n_cuts - 1 for search in state.searches),
            **state.seconds,
        }

    def _finish(self, state: CutState, data: Data) -> None:
        self.gap_ = max(search.gap for search in state.searches)
        self.n_cuts_ = sum(search.bundle.made for search in state.searches)

    def _stopping_rule(self) -> Callable[[Mapping[str, float]], bool]:
        return lambda figures: self.tol is not None and figures["gap"] < self.tol

    def _train(self, state: CutState, data: Data, held_out: np.ndarray | None) -> None:
        terms = (self._layout(data.n_classes), self.fit_intercept)
        of_rows = fingerprint(data, terms) if self.warm_start else None
        memory = data.recall(lambda: self._remember(data))
        state = self._enter(state, memory, keep_cuts=of_rows is not None and of_rows == state.rows)
        super()._train(state._replace(rows=of_rows), data, held_out)
        if not self.warm_start:  # the cuts may be larger than X; what is left is enough for partial_fit
            self._state = _without_cuts(self._state, len(memory.rows))
        if self.tol is not None and self.gap_ >= self.tol and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"max_iter={self.max_iter} cuts were made and the objective is proven to be within {self.gap_:.2g} of "
                f"the optimum, not within tol={self.tol:g}. Raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # One iteration of the paper.

    def _layout(self, n_classes: int) -> tuple[int, int]:
        """How many problems there are, and how many planes each has."""
        if n_classes == 2:
            return 1, 1
        return (1, n_classes) if self.multi_class == "crammer_singer" else (n_classes, 1)

    def _remember(self, data: Data) -> Memory:
        """The rows of each problem."""
        n_searches, n_planes = self._layout(data.n_classes)
        weight = np.zeros(len(data.y))
        weight[data.train] = data.weight[data.train]
        if n_planes > 1:
            targets = [data.y.astype(np.int32)]
        else:
            positive = [1] if n_searches == 1 else range(n_searches)
            targets = [np.where(data.y == c, 1, -1).astype(np.int32) for c in positive]
        bias_input = 1.0 if self.fit_intercept else 0.0
        if namespace(data.X) is not np or not compiled_kernels():
            rows = [ArrayRowSums(data.X, target, weight, n_planes, bias_input) for target in targets]
            return Memory(rows, Team(1))
        team, alone = Team(self.n_jobs), Team(1)
        helpers = team if n_searches == 1 else alone  # the threads share either the blocks of rows or the problems
        return Memory([RowSums(data.X, target, weight, n_planes, bias_input, helpers) for target in targets], team)

    def _enter(self, state: CutState, memory: Memory, keep_cuts: bool) -> CutState:
        """Take up training on rows not yet seen, or seen by an earlier `fit`, from the best planes so far."""
        memory.entered = True
        if not keep_cuts:
            state = _without_cuts(state, len(memory.rows))
        if not self.fit_intercept:
            for search in state.searches:
                search.best[:, -1] = 0.0  # of an earlier fit that had one
        searches = []
        for search, sums in zip(state.searches, memory.rows, strict=True):
            sums.stand(search.best)
            if search.bundle.n_cuts == 1:
                search.bundle.add(*sums.cut(0.0))
            primal = half_square(search.best) + self.C * float(sums.risks([0.0])[0])
            searches.append(search._replace(here=search.best, primal=primal, dual=0.0))
        return state._replace(searches=searches, rows=None)

    def _advance(self, search: Search, rows: Any) -> tuple[Search, dict[str, float]]:
        """Algorithm 2: solve the reduced problem, search the line, cut."""
        clock = Clock()
        accuracy = 1e-3 * (self.tol or 1e-3)
        there, dual = search.bundle.solve(self.C, accuracy * search.primal)
        clock.charge("qp")
        rows.look(there)
        clock.charge("outputs")
        line = Line(search.here, there, self.C, rows)
        mu, objective = (0.0, search.primal) if line.is_point else SEARCHES[self.line_search](line, search.step)
        clock.charge("line_search")
        normal, offset = rows.cut((1.0 - CUT_POINT) * mu + CUT_POINT)
        clock.charge("cut")
        search.bundle.add(normal, offset)
        clock.charge("qp")
        rows.move(mu)
        search = search._replace(here=line.at(mu), dual=max(search.dual, dual), step=mu)
        if objective < search.primal:
            search = search._replace(best=search.here, primal=objective)
        clock.charge("line_search")
        if self.tol is not None and search.gap < self.tol:
            search = self._certify(search, rows)
            clock.charge("outputs")
        return search, clock.seconds

    def _certify(self, search: Search, rows: Any) -> Search:
        """Take the objective afresh, of the planes as the model will hold them: interpolation gathers errors."""
        best = search.best.astype(host_dtype(rows.X)).astype(np.float64)
        rows.look(best)
        return search._replace(best=best, primal=half_square(best) + self.C * float(rows.risks([1.0])[0]))


def _without_cuts(state: CutState, n_searches: int) -> CutState:
    """The state with its best planes only, shared among problems that may be others in number."""
    parts = np.split(np.concatenate([search.best for search in state.searches]), n_searches)
    searches = [
        search._replace(bundle=Bundle(best.shape), here=best, best=best)
        for search, best in zip(itertools.cycle(state.searches), parts, strict=False)
    ]
    return state._replace(searches=searches, rows=None)
