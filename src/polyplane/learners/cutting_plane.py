"""The linear SVM by cutting planes (Franc and Sonnenburg, 2009; Arnosti and Kalita, 2013)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import cycle
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane._array_api import ThreadPool, host_dtype, kind_of, like, namespace, within_device_memory
from polyplane.base import Declaration, PlaneClassifier
from polyplane.engine.data import Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Number
from polyplane.learners.cuts import (
    LINE_SEARCHES,
    Bundle,
    Clock,
    CutMemory,
    Cuts,
    CutState,
    CutWorkspace,
    Line,
    Solution,
    StepSeconds,
    half_square,
)
from polyplane.learners.row_sums import ArrayRowSums, RowSums, targets
from polyplane.planes import PlaneSet

_on_device = within_device_memory("Train on fewer rows, or on the host.")


@dataclass(frozen=True)
class CuttingPlane(Method[CutState]):
    """Algorithm 2 of the paper: OCA-T, OCA-E or, without a line search, CPA; for one SVM or one for each class.

    C weighs the sum of the losses, where equations (1) and (2) have the mean; see `CuttingPlaneSVC`. Cuts are made at
    ``(1 - cut_point) * w_b + cut_point * w_t``: the box lacks the second factor.
    """

    C: float = 1.0
    multi_class: str = "crammer_singer"
    line_search: str = "three-point"
    cut_point: float = 0.1
    tol: float | None = 0.01
    max_iter: int = 10_000
    fit_intercept: bool = True
    n_jobs: int | None = None

    traits = Traits(
        CutState,
        frozenset({"C", "multi_class", "line_search", "cut_point", "tol", "max_iter", "fit_intercept", "n_jobs"}),
        takes_device_arrays=True,
    )

    def start(self, data: Data, seed: int) -> CutState:
        """Zero planes."""
        n_planes = self._planes_of_problem(data.n_classes)
        zero = np.zeros((n_planes, data.X.shape[1] + 1))
        return CutState([Solution(zero) for _ in self._positives(data.n_classes)], kind_of(data.X))

    def _prepared(self, state: CutState, data: Data) -> CutState:
        """Start at the best planes so far. Cuts of other rows, or of another problem, are removed."""
        workspace, solutions = self._workspace(data), state.solutions
        bundles = self._known_bundles(state, data)
        if bundles is None:
            parts = np.split(np.concatenate([solution.best for solution in solutions]), len(workspace.sums))
            solutions = [replace(old, best=best, n_cuts=0) for old, best in zip(cycle(solutions), parts, strict=False)]
            bundles = [Bundle.empty(best.shape) for best in parts]
        begun = [self._begin(*problem) for problem in zip(solutions, bundles, workspace.sums, strict=True)]
        memory = CutMemory([cuts for _, cuts in begun], self.fit_intercept)
        return replace(state, solutions=[s for s, _ in begun], n_steps=0, rows=memory, workspace=workspace)

    @_on_device
    def step(self, state: CutState, data: Data) -> CutState:
        """One cut for each SVM that is not yet proven to be close enough to its optimum."""
        if state.workspace is None:
            state = self._prepared(state, data)
        memory, workspace = state.rows, state.workspace
        assert memory is not None
        assert workspace is not None

        def go_on(i: int) -> tuple[Solution, Cuts, StepSeconds]:
            solution, cuts = state.solutions[i], memory.cuts[i]
            if self._is_close(solution.gap):
                return solution, cuts, StepSeconds()
            return self._advance(solution, cuts, workspace.sums[i])

        done = workspace.threads.map(go_on, range(len(workspace.sums)))
        solutions, all_cuts, seconds = zip(*done, strict=True)
        return replace(
            state,
            solutions=list(solutions),
            seconds=sum(seconds, StepSeconds()),
            n_steps=state.n_steps + 1,
            rows=replace(memory, cuts=list(all_cuts)),
        )

    def planes(self, state: CutState) -> PlaneSet:
        """One plane for each class; of two classes, the first owns the zero plane."""
        best = np.concatenate([solution.best for solution in state.solutions]).astype(host_dtype(state.rows_like))
        if len(best) == 1:
            best = np.concatenate([np.zeros_like(best), best])
        coef, intercept = np.ascontiguousarray(best[:, :-1]), best[:, -1].copy()
        return PlaneSet(like(coef, state.rows_like), like(intercept, state.rows_like), np.arange(len(best) + 1))

    def metrics(self, state: CutState) -> Mapping[str, float]:
        """The bounds, the number of cuts kept, and the time of each part."""
        cuts = [] if state.rows is None else state.rows.cuts
        return {
            "primal": sum(solution.primal for solution in state.solutions),
            "dual": sum(solution.dual for solution in state.solutions),
            "gap": state.gap,
            "cuts": sum(of.bundle.n_cuts - 1 for of in cuts),
            **vars(state.seconds),
        }

    def done(self, state: CutState) -> bool:
        """Whether all SVMs are proven to be close to their optima."""
        return self._is_close(state.gap)

    def _is_close(self, gap: float) -> bool:
        return self.tol is not None and gap < self.tol

    # One iteration of the paper.

    def _advance(self, solution: Solution, cuts: Cuts, sums: Any) -> tuple[Solution, Cuts, StepSeconds]:
        """Algorithm 2: solve the reduced problem, search the line, cut."""
        clock = Clock()
        accuracy = 1e-3 * (self.tol or 1e-3)
        bundle, candidate, dual = cuts.bundle.solve(self.C, accuracy * solution.primal)
        clock.charge("qp")
        sums.set_candidate(candidate)
        clock.charge("outputs")
        line = Line(cuts.current, candidate, self.C, sums)
        search = LINE_SEARCHES[self.line_search]
        mu, objective = (0.0, solution.primal) if line.is_point else search(line, solution.mu)
        clock.charge("line_search")
        normal, offset = sums.cut((1.0 - self.cut_point) * mu + self.cut_point)
        clock.charge("cut")
        bundle = bundle.with_cut(normal, offset)
        clock.charge("qp")
        sums.move(mu)
        current = line.at(mu)
        best, primal = (current, objective) if objective < solution.primal else (solution.best, solution.primal)
        solution = Solution(best, primal, max(solution.dual, dual), mu, solution.n_cuts + 1)
        clock.charge("line_search")
        if self._is_close(solution.gap):
            solution = self._certify(solution, sums)
            clock.charge("outputs")
        return solution, Cuts(bundle, current), clock.read()

    def _certify(self, solution: Solution, sums: Any) -> Solution:
        """Recompute the objective in the dtype of the model: interpolation accumulates rounding errors."""
        best = solution.best.astype(sums.dtype).astype(np.float64)
        sums.set_candidate(best)
        return replace(solution, best=best, primal=half_square(best) + self.C * float(sums.risks([1.0])[0]))

    # The start on given rows.

    def _positives(self, n_classes: int) -> list[int | None]:
        """The positive class of each SVM; None: one SVM for all classes."""
        if n_classes == 2:
            return [1]
        return [None] if self.multi_class == "crammer_singer" else list(range(n_classes))

    def _planes_of_problem(self, n_classes: int) -> int:
        return n_classes if self._positives(n_classes) == [None] else 1

    def _workspace(self, data: Data) -> CutWorkspace:
        """The rows of each SVM. Threads share either the blocks of rows or the SVMs."""
        positives, n_planes = self._positives(data.n_classes), self._planes_of_problem(data.n_classes)
        of_rows = data.training_weight, n_planes, float(self.fit_intercept)
        if namespace(data.X) is not np:
            return CutWorkspace([ArrayRowSums(data.X, targets(data.y, c), *of_rows) for c in positives], ThreadPool(1))
        threads = ThreadPool(self.n_jobs)
        helpers = threads if len(positives) == 1 else ThreadPool(1)
        return CutWorkspace([RowSums(data.X, targets(data.y, c), *of_rows, helpers) for c in positives], threads)

    def _known_bundles(self, state: CutState, data: Data) -> list[Bundle] | None:
        """The cuts of these rows and this problem, if there are any."""
        memory, shape = state.rows, (len(self._positives(data.n_classes)), self._planes_of_problem(data.n_classes))
        if memory is None or memory.fit_intercept != self.fit_intercept:
            return None
        if (len(memory.cuts), len(memory.cuts[0].current)) != shape:
            return None
        return [cuts.bundle.in_new_arrays() for cuts in memory.cuts]

    def _begin(self, solution: Solution, bundle: Bundle, sums: Any) -> tuple[Solution, Cuts]:
        """Start at the best planes so far, with a first cut if there is none."""
        best, n_cuts = solution.best, solution.n_cuts
        if not self.fit_intercept:
            best = best.copy()
            best[:, -1] = 0.0  # from an earlier fit with an intercept
        sums.set_current(best)
        if bundle.n_cuts == 1:
            bundle, n_cuts = bundle.with_cut(*sums.cut(0.0)), n_cuts + 1
        primal = half_square(best) + self.C * float(sums.risks([0.0])[0])
        return replace(solution, best=best, primal=primal, dual=0.0, n_cuts=n_cuts), Cuts(bundle, best)


@dataclass(eq=False, repr=False)
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
        Weight of the *sum* of losses, as in `LinearSVC` and LIBLINEAR: the larger, the fewer rows may violate their
        margin. More rows weigh more against the regulariser, so a C found on a tenth of the rows is ten times too large
        for all of them. ``C = 1 / (alpha * n_rows)`` where another learner has `alpha`. For the paper, see the Notes.
    multi_class : {"crammer_singer", "ovr"}, default="crammer_singer"
        For more than two classes: one joint problem, or each class against the rest.
    line_search : {"three-point", "exact", "non-greedy", "none"}, default="three-point"
        Line search from the current planes to the minimiser of the cuts. "three-point" compares three points (OCA-T);
        "exact" finds the minimum (OCA-E; it sorts all rows at each cut, and can stall for thousands of cuts);
        "non-greedy" finds the minimum, but makes a fiftieth of the full step rather than stall twice in a row; "none"
        makes the full step (CPA; needs many more cuts). The model is the best solution found.
    cut_point : float, default=0.1
        Where the next cut is made, between the result of the line search (0) and the minimiser of the cuts (1); lambda
        in the papers.
    tol : float or None, default=0.01
        Stop when the objective is proven to be within this relative distance of the optimum. None: make `max_iter`
        cuts.
    max_iter : int, default=10000
        Maximum number of cuts.
    fit_intercept : bool, default=True
        Whether to learn the offsets of the planes. They are regularised like the weights: as those of a constant
        feature 1.
    probability : bool, default=False
        Whether `predict_proba` is available. Its temperature is calibrated on held-out rows: `fit` then also trains on
        four fifths of the rows, once or, with fewer than 5,000 rows, up to five times.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`. On the same rows all cuts are kept, also for another C.
    n_jobs : int or None, default=None
        Threads, over blocks of rows or with "ovr" over classes, and in prediction. Results do not depend on it.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model. For two classes the first owns the zero plane.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, one per class, or for two classes one, of shapes (1, n_features) and (1,) as in `LinearSVC`.
    gap_ : float
        The certificate: the objective is at most this share of itself above the optimum; with "ovr", for each
        class.
    n_cuts_ : int
        Cuts made.
    temperature_ : float
        With `probability`: the scores divided by this are log-odds.
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

    In the paper, equations (1) and (2) weigh the *mean* loss with C. Its figures, however, are those of the sum: with
    C = 1 on the mean the test error is 95.0 % on NEWS20 and 19.5 % on MNIST, with C = 1 on the sum 14.7 and 7.1 %, and
    its Figure 6 has 14.7 and 7.2 %. So the C of the paper's figures is this C; that of its equations is ``n_rows * C``.

    The cut point is that of the OCAS paper, :math:`(1 - \lambda) w_b + \lambda w_t` with :math:`\lambda` = `cut_point`,
    the result :math:`w_b` of the line search and the minimiser :math:`w_t` of the cuts; the second :math:`\lambda` is
    missing in print. The three-point search starts at the full step in the first iteration, and then at the step of the
    iteration before; the paper does not say where it starts. A cut that 25 consecutive solutions of the reduced problem
    do not use is removed, so that this problem stays small. The lower bound holds for any cuts, but there can be more
    iterations than if all are kept, with the exact search above all.

    There is no `partial_fit`: a cut bounds the losses of the rows that it was made of, and the gap to the optimum is
    known only for these rows. `PegasosSVC` trains the same model on a stream.

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

    C: float = 1.0
    _: KW_ONLY
    multi_class: str = "crammer_singer"
    line_search: str = "three-point"
    cut_point: float = 0.1
    tol: float | None = 0.01
    max_iter: int = 10_000
    fit_intercept: bool = True
    probability: bool = False
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "multi_class": [StrOptions({"crammer_singer", "ovr"})],
        "line_search": [StrOptions({"three-point", "exact", "non-greedy", "none"})],
        "cut_point": [Interval(Real, 0, 1, closed="right")],
        "tol": [Interval(Real, 0, 1, closed="neither"), None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"C": [1.0, 1e-3, 1e-2, 0.1, 10.0, 100.0]},
        fitted={"temperature_": Number()},
        streams=False,  # cuts bound the losses of their own rows: kept for other rows, they end far from the optimum
    )

    def _method(self, classes: np.ndarray) -> CuttingPlane:
        return self._method_of(CuttingPlane)

    def _concluded(self, method: Any, state: CutState, data: Data) -> CutState:
        if self.tol is not None and state.gap >= self.tol and state.n_steps == self.max_iter:
            warnings.warn(
                f"max_iter={self.max_iter} cuts were made and the objective is proven to be within {state.gap:.2g} of "
                f"the optimum, not within tol={self.tol:g}. Raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return state

    @property
    def gap_(self) -> float:
        """The objective is at most this share of itself above the optimum."""
        gap: float = self._state.gap
        return gap

    @property
    def n_cuts_(self) -> int:
        """Number of cuts made."""
        return sum(solution.n_cuts for solution in self._state.solutions)
