"""The adaptive multi-hyperplane machines: MM and AMM (Wang et al., 2011), GAMM (Djuric et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane.base import Declaration, PlaneClassifier
from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.engine.state import workspace
from polyplane.learners._epochs import Schedule
from polyplane.learners._margin_loss import CHECKS_PER_EPOCH, KernelRows, PlaneColumns, plane_sums
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: No limit to the planes of a class.
UNLIMITED = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class AdaptiveState(PlaneColumns):
    """Everything that training needs to go on. What is stored is ``alpha t`` times the planes."""

    t: int = 0  # visits made
    duplication: float = 0.0  # probability that a plane that errs is duplicated
    workspace: KernelRows | None = workspace()


@dataclass(frozen=True)
class AdaptiveMultiHyperplane(Method[AdaptiveState]):
    """Algorithm 1 of both papers: classes start without planes, which are added, duplicated and pruned."""

    n_planes: int | None = None
    assignment: str = "online"
    growth: float = 0.2
    growth_decay: float = 0.99
    prune: float = 50.0
    prune_every: int = 10_000
    alpha: float = 1e-5
    average_fraction: float = 0.2
    max_iter: int = 60
    shuffle: bool = True

    state = AdaptiveState
    adjustable = frozenset(
        {"assignment", "growth_decay", "prune", "prune_every", "average_fraction", "max_iter", "shuffle"}
    )

    def start(self, data: Data, seed: int) -> AdaptiveState:
        """No plane at all, and room for some."""
        scaling = AffineScaling.common(data.X, data.training_weight)
        dtype, columns = data.X.dtype, 4 * data.n_classes
        return AdaptiveState(
            np.zeros((data.X.shape[1], columns), dtype=dtype),
            np.zeros(columns, dtype=dtype),
            np.zeros(columns, dtype=dtype),
            np.full(columns, -1, dtype=np.int64),
            np.zeros(data.n_classes, dtype=np.int64),
            scaling,
            seed,
            duplication=self.growth,
        )

    def prepare(self, state: AdaptiveState, data: Data) -> AdaptiveState:
        """With what the kernel needs to know of the rows."""
        return replace(state, workspace=KernelRows(data, state.scaling))

    def step(self, state: AdaptiveState, data: Data) -> AdaptiveState:
        """One pass over the rows. In the last part of the passes planes are averaged, and none is added or pruned."""
        rng = np.random.default_rng([state.seed, state.epoch])
        order = rng.permutation(data.train) if self.shuffle else data.train
        draws = rng.random(len(order))
        schedule = Schedule.of(self.max_iter, state, data)
        settled = not data.stream and schedule.averages(0.0, self.average_fraction)
        by_epoch = self.assignment == "epoch" and state.epoch > 0
        assigned = _assign(state, data) if by_epoch else np.zeros(0, dtype=np.int64)
        if not settled:
            state = replace(state, mean=None)
        loss, done = 0.0, 0
        while done < len(order):
            # Pause to prune, to average, or where no column is free.
            pause = self.prune_every - state.t % self.prune_every
            if settled:
                pause = min(pause, -(-len(order) // CHECKS_PER_EPOCH))
            piece = slice(done, done + pause)
            state, visited, losses = self._visit(state, order[piece], draws[piece], assigned, settled)
            loss, done = loss + losses, done + visited
            if settled:
                state = state.averaged(1.0 / (self.alpha * state.t), schedule.window)
            elif not by_epoch and state.t % self.prune_every == 0:
                state = self._pruned(state)
        return replace(state, epoch=state.epoch + 1, turn=schedule.next_turn, loss=loss / len(order))

    def _visit(
        self, state: AdaptiveState, order: np.ndarray, draws: np.ndarray, assigned: np.ndarray, settled: bool
    ) -> tuple[AdaptiveState, int, float]:
        """Visit rows until `order` ends or no column is free: the state, how many were visited, and their losses."""
        from polyplane.kernels.multi_hyperplane import Growth, adaptive_epoch

        if state.n_planes + 3 > len(state.owner):
            columns = state.n_planes + max(8, state.n_planes // 2)
            state = _with_columns(state, np.arange(state.n_planes), columns)
        known = state.workspace
        assert known is not None
        growth = Growth(self.alpha, self.growth_decay, 0 if settled else self.n_planes or UNLIMITED, draws, assigned)
        numbers = np.array([state.n_planes, state.t, state.duplication])
        visited, loss = adaptive_epoch(
            known.X, order, plane_sums(state), state.owner, state.counts, known.targets, growth, numbers
        )
        return replace(state, t=int(numbers[1]), duplication=float(numbers[2])), visited, loss

    def _pruned(self, state: AdaptiveState) -> AdaptiveState:
        """Remove the smallest planes, as many as together do not matter; never the last one of a class."""
        coef, intercept = state.input_planes(1.0)
        offset = intercept + coef @ state.scaling.centre
        square = (coef.astype(float) ** 2).sum(axis=1) / state.scaling.factor**2 + offset.astype(float) ** 2
        left, keep = state.counts.copy(), np.ones(state.n_planes, dtype=bool)
        budget = (self.prune * state.t / (state.t - 1)) ** 2
        for k in np.argsort(square, kind="stable"):
            budget -= square[k]
            if budget < 0:
                break
            if left[state.owner[k]] > 1:
                left[state.owner[k]] -= 1
                keep[k] = False
            else:
                budget += square[k]
        return state if keep.all() else _with_columns(state, np.flatnonzero(keep), len(state.owner))

    def planes(self, state: AdaptiveState) -> PlaneSet:
        """The model in a state."""
        return state.plane_set(1.0 / (self.alpha * state.t))

    def figures(self, state: AdaptiveState) -> Mapping[str, float]:
        """The mean of the losses met, and the number of planes."""
        return {"loss": state.loss, "planes": state.n_planes}

    def monitored(self, state: AdaptiveState) -> float:
        """The loss."""
        return state.loss


def _assign(state: AdaptiveState, data: Data) -> np.ndarray:
    """The best plane of each row's class, as a column; -1 where the class has none."""
    coef, intercept = state.input_planes(1.0)
    assigned = np.full(len(data.y), -1, dtype=np.int64)
    for c in np.flatnonzero(state.counts):
        rows, columns = np.flatnonzero(data.y == c), np.flatnonzero(state.owner == c)
        if len(rows):
            own = PlaneSet(coef[columns], intercept[columns], np.array([0, len(columns)]))
            assigned[rows] = columns[own.winners(data.X[rows])]
    return assigned


def _with_columns(state: AdaptiveState, kept: np.ndarray, n_columns: int) -> AdaptiveState:
    """The state with only the columns `kept`, in new arrays of `n_columns`."""

    def moved(array: np.ndarray, fill: int = 0) -> np.ndarray:
        wide = np.full((*array.shape[:-1], n_columns), fill, dtype=array.dtype)
        wide[..., : len(kept)] = array[..., kept]
        return wide

    owner = moved(state.owner, -1)
    counts = np.bincount(owner[: len(kept)], minlength=len(state.counts))
    coef, intercept, shift = moved(state.coef), moved(state.intercept), moved(state.shift)
    return replace(state, coef=coef, intercept=intercept, shift=shift, owner=owner, counts=counts)


@dataclass(eq=False, repr=False)
class AdaptiveMultiHyperplaneClassifier(PlaneClassifier):
    r"""Adaptive multi-hyperplane machines: classes start without planes; planes are added during training.

    The score of class :math:`c` is :math:`\max_{k \in c} w_k x + b_k`, and the class with the best score wins. What is
    minimised, by stochastic gradient descent with the steps :math:`1 / (\alpha t)`, is the margin loss

    .. math::

        \frac{\alpha}{2} \sum_k |w_k|^2
        + \frac{1}{n} \sum_i \Big[1 + \max_{k \notin y_i} (w_k x_i + b_k) - \max_{k \in y_i} (w_k x_i + b_k)\Big]_+

    and the settings tell which of the papers' machines it is:

    * **GAMM**, the default: a class none of whose planes has a positive score answers with a new zero plane, and planes
      that err are duplicated at random;
    * **AMM**, ``growth=0, prune=10``: only the former;
    * **MM**, ``growth=0, assignment="epoch"`` and `n_planes`: a limited number of planes, and rows that keep their
      plane for an epoch, which makes each epoch a convex problem.

    The papers do not average: ``average_fraction=0``. `MultiHyperplaneClassifier`, which starts from k-means centres,
    is faster and errs less.

    Training sees the features centred and multiplied by one number; the planes are over `X` as it is. Standardise
    features of different kinds; leave pixels as they are.

    Parameters
    ----------
    n_planes : int or None, default=None
        The most planes that a class may have (b). None: no limit.
    assignment : {"online", "epoch"}, default="online"
        Which of its class's planes is to win a row: the best one at each visit, or at the start of the epoch.
    growth : float, default=0.2
        The probability that a plane that errs is duplicated (p).
    growth_decay : float, default=0.99
        What it is multiplied with at each duplication (:math:`\beta`).
    prune : float, default=50.0
        The smallest planes are removed as long as the norm of all of them is at most this over :math:`\alpha t` (c).
        The paper has 10 for AMM.
    prune_every : int, default=10000
        Visits between prunings.
    alpha : float, default=1e-5
        Strength of the regularisation on the mean loss (:math:`\lambda`).
    average_fraction : float, default=0.2
        The last part of the passes, over which planes are averaged, and none is added or pruned; a third does best. 0:
        no averaging, as in the papers.
    max_iter : int, default=60
        Passes over the rows.
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes, unless `early_stopping` is on (then 0).
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    early_stopping : bool or float, default=False
        Hold out this share of the rows (True: a tenth), stop when their error no longer falls, and keep the planes that
        were best on them.
    n_iter_no_change : int, default=10
        Passes without progress before stopping.
    random_state : int, RandomState or None, default=None
        Source of the orders and the duplications.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    n_iter_ : int
        Passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met), "planes", and with `early_stopping`
        "validation_error".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Z. Wang, N. Djuric, K. Crammer and S. Vucetic. Trading Representability for Scalability: Adaptive Multi-Hyperplane
    Machine for Nonlinear Classification. KDD 2011. (MM, AMM)

    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020. (GAMM)

    Examples
    --------
    >>> from polyplane import AdaptiveMultiHyperplaneClassifier
    >>> from polyplane.datasets import make_checkerboard
    >>> X, y = make_checkerboard(3000, (2, 3), random_state=0)
    >>> how = {"max_iter": 15, "random_state": 0}
    >>> gamm = AdaptiveMultiHyperplaneClassifier(average_fraction=1 / 3, **how)
    >>> amm = AdaptiveMultiHyperplaneClassifier(growth=0.0, prune=10.0, average_fraction=0.0, **how)
    >>> mm = AdaptiveMultiHyperplaneClassifier(8, growth=0.0, assignment="epoch", average_fraction=0.0, **how)
    >>> [round(machine.fit(X, y).score(X, y), 2) for machine in (gamm, amm, mm)]
    [0.99, 0.95, 0.96]
    """

    n_planes: int | None = None
    _: KW_ONLY
    assignment: str = "online"
    growth: float = 0.2
    growth_decay: float = 0.99
    prune: float = 50.0
    prune_every: int = 10_000
    alpha: float = 1e-5
    average_fraction: float = 0.2
    max_iter: int = 60
    tol: float | None = None
    class_weight: Any = None
    warm_start: bool = False
    early_stopping: bool | float = False
    n_iter_no_change: int = 10
    random_state: Any = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "assignment": [StrOptions({"online", "epoch"})],
        "growth": [Interval(Real, 0, 1, closed="left")],
        "growth_decay": [Interval(Real, 0, 1, closed="both")],
        "prune": [Interval(Real, 0, None, closed="left")],
        "prune_every": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "average_fraction": [Interval(Real, 0, 1, closed="both")],
    }
    del _parameter_constraints["fit_intercept"], _parameter_constraints["n_jobs"]
    _declaration: ClassVar[Declaration] = Declaration(tuning={"alpha": [1e-5, 1e-6, 1e-4], "growth": [0.2, 0.0]})

    def _method(self, classes: np.ndarray) -> AdaptiveMultiHyperplane:
        return AdaptiveMultiHyperplane.of(self)
