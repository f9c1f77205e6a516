"""The Convex Polytope Machine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from polyplane._validation import Data
from polyplane.learners._polytopes import PolytopeState, PolytopeTrainer, Workplace


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
        Use a running average of the planes, late passes weighing most, instead of the last ones, unless these err
        clearly less on the rows of `fit`.
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
        super()._finish(state, data)
        natural = data.recall(lambda: Workplace(0, len(data.y), 1)).rows.natural
        first = self.planes_.indptr[data.y]
        trained = np.isin(data.y, [polytope.outer for polytope in state.polytopes])
        seen = natural >= 0
        self.assignments_ = np.where(seen, first + natural, np.where(trained, -1, first))
        self.plane_counts_ = np.bincount(self.assignments_[self.assignments_ >= 0], minlength=self.planes_.n_planes)
