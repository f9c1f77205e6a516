"""Pegasos: the linear SVM by stochastic sub-gradient descent (Shalev-Shwartz et al., 2007)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from polyplane.base import Declaration, PlaneClassifier
from polyplane.learners.convex_polytope import ConvexPolytope


@dataclass(eq=False, repr=False)
class PegasosSVC(PlaneClassifier):
    r"""Linear SVM by stochastic sub-gradient descent: the convex polytope machine with a single side.

    .. math:: \frac{\alpha}{2} |w|^2 + \frac{1}{n} \sum_i \left[1 - y_i \, w x_i\right]_+

    with the step :math:`1 / (\alpha t)`. For more than two classes, one plane for each against the rest.

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength of the regularisation on the mean loss (:math:`\lambda`); ``1 / (n_rows * C)`` of `LinearSVC`.
    max_iter : int, default=100
        Passes over the rows.
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes, unless `early_stopping` is on (then 0).
    backoff : int, default=31
        A row is skipped for as many passes, at most so many, as its margin is sure to hold at the pace at which the
        plane moves. 0 visits all rows.
    average : bool, default=True
        Use a running average of the planes, late passes weighing most, instead of the last ones.
    fit_intercept : bool, default=True
        Learn an offset, regularised like the rest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    early_stopping : bool or float, default=False
        Hold out this share of the rows (True: a tenth), stop when their error no longer falls, and keep the plane that
        was best on them.
    n_iter_no_change : int, default=10
        Passes without progress before stopping.
    random_state : int, RandomState or None, default=None
        Source of the orders.
    n_jobs : int or None, default=None
        Threads, in training (over classes) and in prediction. The planes do not depend on it.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model. For two classes the first owns the zero plane.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, one per class, or for two classes one, of shapes (1, n_features) and (1,) as in `LinearSVC`.
    n_iter_ : int
        Passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met), "updates" (share of the visits that moved a plane) and
        "step" (its length), and with `early_stopping` "validation_error".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer and N. Srebro. Pegasos: Primal Estimated sub-GrAdient SOlver for SVM. ICML 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import PegasosSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svm = make_pipeline(StandardScaler(), PegasosSVC(alpha=1e-2, random_state=0)).fit(X, y)
    >>> print(f"{svm.score(X, y):.2f}")
    0.99
    """

    alpha: float = 1e-4
    _: KW_ONLY
    max_iter: int = 100
    tol: float | None = None
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    class_weight: Any = None
    warm_start: bool = False
    early_stopping: bool | float = False
    n_iter_no_change: int = 10
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "backoff": [Interval(Integral, 0, 255, closed="both")],
        "average": ["boolean"],
    }
    _declaration: ClassVar[Declaration] = Declaration(tuning={"alpha": [1e-4, 1e-6, 1e-5, 1e-3, 1e-2, 0.1]})

    def _method(self, classes: np.ndarray) -> ConvexPolytope:
        outer = (1,) if len(classes) == 2 else tuple(range(len(classes)))
        return ConvexPolytope.of(self, outer=outer, n_planes=1)
