"""The Convex Polytope Machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from polyplane._threads import in_threads
from polyplane._validation import Data
from polyplane.base import PlaneClassifier
from polyplane.planes import PlaneSet


class Polytope(NamedTuple):
    """One polytope in training: its class lives outside."""

    outer: int
    coef: np.ndarray  # (n_features, n_planes): alpha * t times the planes
    intercept: np.ndarray
    counts: np.ndarray  # rows recorded at each plane, for the entropy
    mean: tuple[np.ndarray, np.ndarray] | None  # running average of coef and intercept, when asked for


class PolytopeState(NamedTuple):
    """Everything that training needs to go on."""

    polytopes: list[Polytope]
    seed: int
    epoch: int
    t: int
    alpha: float
    loss: float  # mean over the rows of the last epoch
    updates: float  # share of them that moved a plane


class RowMemory(NamedTuple):
    """What is remembered of each row: by polytope (first axis), or by the one polytope that has it outside."""

    skip: np.ndarray
    patience: np.ndarray
    natural: np.ndarray
    recorded: np.ndarray

    @classmethod
    def fresh(cls, n_polytopes: int, n_rows: int) -> RowMemory:
        """Nothing seen yet."""
        return cls(
            np.zeros((n_polytopes, n_rows), dtype=np.uint8),
            np.zeros((n_polytopes, n_rows), dtype=np.uint8),
            np.full(n_rows, -1, dtype=np.int32),
            np.full(n_rows, -1, dtype=np.int32),
        )


class PolytopeTrainer(PlaneClassifier):
    """Trains polytopes by stochastic gradient descent, each class of `_outer_classes` outside one of its own."""

    _converges_on = "loss"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "backoff": [Interval(Integral, 0, 255, closed="both")],
        "average": ["boolean"],
    }

    def _outer_classes(self, n_classes: int) -> list[int]:
        return list(range(n_classes))

    def _start(self, data: Data, seed: int) -> PolytopeState:
        n_features = data.X.shape[1]
        polytopes = [
            Polytope(
                outer,
                np.zeros((n_features, self.n_planes), dtype=data.X.dtype),
                np.zeros(self.n_planes, dtype=data.X.dtype),
                np.zeros(self.n_planes, dtype=np.int64),
                None,
            )
            for outer in self._outer_classes(data.n_classes)
        ]
        return PolytopeState(polytopes, seed, 0, 0, self.alpha, math.inf, 1.0)

    def _step(self, state: PolytopeState, data: Data) -> PolytopeState:
        order = data.train
        if self.shuffle:
            order = np.random.default_rng([state.seed, state.epoch]).permutation(order)
        memory = data.recall(lambda: RowMemory.fresh(len(state.polytopes), len(data.y)))

        def epoch(side: int) -> tuple[Polytope, float, int]:
            return self._epoch(state, side, order, data, memory)

        polytopes, losses, updates = zip(*in_threads(epoch, range(len(state.polytopes)), self.n_jobs), strict=True)
        visits = len(order)
        return state._replace(
            polytopes=list(polytopes),
            epoch=state.epoch + 1,
            t=state.t + visits,
            alpha=self.alpha,
            loss=sum(losses) / visits,
            updates=sum(updates) / visits / len(polytopes),
        )

    def _epoch(
        self, state: PolytopeState, side: int, order: np.ndarray, data: Data, memory: RowMemory
    ) -> tuple[Polytope, float, int]:
        from polyplane.kernels.polytope import Memory, Task, polytope_epoch
        from polyplane.kernels.rows import PlaneSums, as_rows

        polytope = state.polytopes[side]
        n_planes = len(polytope.intercept)
        planes = PlaneSums(polytope.coef, polytope.intercept, 1.0 if self.fit_intercept else 0.0)
        task = Task(
            data.y,
            data.weight,
            polytope.outer,
            float(self.alpha),
            self.min_entropy * math.log(n_planes),
            int(self.backoff),
        )
        kept = Memory(
            memory.skip[side], memory.patience[side], memory.natural, memory.recorded, polytope.counts, np.empty(2)
        )
        score = np.empty(n_planes, dtype=polytope.coef.dtype)
        loss, updates = polytope_epoch(as_rows(data.X), order, state.t, planes, task, kept, score)
        if self.average:
            polytope = polytope._replace(mean=_blend(polytope, state.epoch, self.alpha * (state.t + len(order))))
        return polytope, loss, updates

    def _planes(self, state: PolytopeState) -> PlaneSet:
        scale = 1.0 / (state.alpha * state.t)
        owned = {}
        for polytope in state.polytopes:
            coef, intercept = polytope.mean or (polytope.coef * scale, polytope.intercept * scale)
            owned[polytope.outer] = (np.ascontiguousarray(coef.T), intercept)
        coef, intercept = owned[state.polytopes[0].outer]
        nothing = (np.zeros_like(coef[:1]), np.zeros_like(intercept[:1]))
        return PlaneSet.of_classes(owned.get(c, nothing) for c in range(len(self.classes_)))

    def _figures(self, state: PolytopeState) -> Mapping[str, float]:
        return {"loss": state.loss, "updates": state.updates, "step": 1.0 / (state.alpha * state.t)}

    def _stopping_rule(self) -> Callable[[Mapping[str, float]], bool]:
        level = super()._stopping_rule()
        # Before the steps 1 / (alpha t) have fallen to 1 the planes still jump about, and so does the loss.
        return lambda figures: figures["step"] <= 1.0 and level(figures)


class ConvexPolytopeClassifier(PolytopeTrainer):
    r"""Convex Polytope Machine: each class lives outside a polytope that encloses the others.

    The polytope of class :math:`c` has `n_planes` sides :math:`W_k`. Rows of the other classes are pushed inside, below
    *every* side; a row of class :math:`c` is lifted over *one* side, the one that it is assigned to:

    .. math::

        \frac{\alpha}{2} \sum_k |W_k|^2
        + \frac{1}{n} \sum_{i: y_i \ne c} \sum_k \left[1 + W_k x_i\right]_+
        + \frac{1}{n} \sum_{i: y_i = c} \left[1 - W_{z(i)} x_i\right]_+

    It is minimised by stochastic gradient descent with the step :math:`1 / (\alpha t)`. The class with the largest
    :math:`\max_k W_k x` wins. For two classes this is the double-sided machine of the paper; the paper's multi-class
    machine is ``sklearn.multiclass.OneVsOneClassifier`` around this one.

    Parameters
    ----------
    n_planes : int, default=16
        Sides of each polytope (K). More rarely hurt; time and model grow with them.
    sides : "both" or a label, default="both"
        "both": each class outside a polytope of its own. For two classes, a label: a single polytope that encloses this
        class.
    alpha : float, default=1e-4
        Strength of the regularisation on the mean loss (the paper's :math:`\lambda`).
    max_iter : int, default=100
        Passes over the rows. The paper fixes the number of visits T and looks for ``alpha`` in 1/T, 10/T, ..., 10000/T.
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes, unless `early_stopping` is on (then 0).
    min_entropy : float, default=0.0
        Keep the planes' shares of their class at least this even: 0 is free, 1 all equal (the paper's h as a fraction
        of log K). 0.8 to 0.9 helps when K is large.
    backoff : int, default=31
        A row whose margin is ample is not looked at for 1, 3, 7, ... and at the most this many visits. 0 is the paper's
        loop, several times slower.
    average : bool, default=True
        Use a running average of the planes, late passes weighing most, instead of the last ones.
    fit_intercept : bool, default=True
        Learn an offset of each plane, regularised like the rest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    shuffle : bool, default=True
        Visit the rows in a new order at each pass.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    early_stopping : bool, default=False
        Hold out rows, stop when their error no longer falls, and keep the planes that were best on them.
    validation_fraction : float, default=0.1
        Share of the rows to hold out.
    n_iter_no_change : int, default=10
        Passes without progress before stopping.
    random_state : int, RandomState or None, default=None
        Source of the orders.
    n_jobs : int or None, default=None
        Threads, over polytopes and in prediction. The planes do not depend on it.
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
    assignments_ : ndarray of shape (n_rows,)
        The plane that each row of the last call was assigned to when it was last looked at; -1 for rows not trained on.
    plane_counts_ : ndarray of shape (n_planes,)
        How many rows are assigned to each plane.
    n_iter_ : int
        Passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met, over all polytopes), "updates" (share of the visits
        that moved a plane) and "step" (its length), and with `early_stopping` "validation_error".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import ConvexPolytopeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    >>> machine = ConvexPolytopeClassifier(random_state=0).fit(X_train, y_train)
    >>> machine.planes_
    PlaneSet(n_classes=10, n_planes=160, n_features=64, dtype=float64)
    >>> print(f"{machine.score(X_test, y_test):.2f}")
    0.97
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PolytopeTrainer._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left")],
        "sides": "no_validation",
        "min_entropy": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_planes: int = 16,
        *,
        sides: Any = "both",
        alpha: float = 1e-4,
        max_iter: int = 100,
        tol: float | None = None,
        min_entropy: float = 0.0,
        backoff: int = 31,
        average: bool = True,
        fit_intercept: bool = True,
        class_weight: Any = None,
        shuffle: bool = True,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_planes = n_planes
        self.sides = sides
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.min_entropy = min_entropy
        self.backoff = backoff
        self.average = average
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _outer_classes(self, n_classes: int) -> list[int]:
        if isinstance(self.sides, str) and self.sides == "both":
            return list(range(n_classes))
        enclosed = np.flatnonzero(self.classes_ == self.sides)
        if len(enclosed) != 1:
            raise ValueError(f"sides={self.sides!r} is neither 'both' nor one of the labels {self.classes_.tolist()}.")
        if n_classes != 2:
            raise ValueError(f"sides={self.sides!r} encloses one of two classes, but y has {n_classes}; use 'both'.")
        return [1 - int(enclosed[0])]

    def _finish(self, state: PolytopeState, data: Data) -> None:
        natural = data.recall(lambda: RowMemory.fresh(0, len(data.y))).natural
        first = self.planes_.indptr[data.y]
        trained = np.isin(data.y, [polytope.outer for polytope in state.polytopes])
        seen = natural >= 0
        self.assignments_ = np.where(seen, first + natural, np.where(trained, -1, first))
        self.plane_counts_ = np.bincount(self.assignments_[self.assignments_ >= 0], minlength=self.planes_.n_planes)


def _blend(polytope: Polytope, epoch: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Polynomial-decay averaging (Shamir and Zhang, 2013) of the planes at the ends of epochs: late ones count most."""
    now = (polytope.coef / scale, polytope.intercept / scale)
    if polytope.mean is None:
        return now
    share = 4.0 / (epoch + 4.0)
    for mean, new in zip(polytope.mean, now, strict=True):
        mean *= 1.0 - share
        new *= share
        mean += new
    return polytope.mean
