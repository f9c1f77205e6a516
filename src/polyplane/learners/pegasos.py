"""Pegasos: the linear SVM by stochastic sub-gradient descent (Shalev-Shwartz et al., 2007)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane.base import Declaration, EpochParameters, PlaneClassifier
from polyplane.engine.data import Data
from polyplane.learners.sgd import ConvexPolytope, better_planes


@dataclass(eq=False, repr=False)
class PegasosSVC(EpochParameters, PlaneClassifier):
    r"""Linear SVM by stochastic sub-gradient descent: the convex polytope machine with a single side.

    .. math:: \frac{\alpha}{2} |w|^2 + \frac{1}{n} \sum_i \left[1 - y_i \, w x_i\right]_+

    with the step size :math:`1 / (\alpha t)`. For more than two classes, one plane for each against the rest.

    Parameters
    ----------
    alpha : float, default=1e-4
        Strength of the regularisation on the mean loss (:math:`\lambda`); ``1 / (n_rows * C)`` of `LinearSVC`.
    max_iter : int, default=100
        Number of passes over the training rows (epochs).
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes; with `early_stopping`: 0.
    backoff : int, default=31
        Maximum number of passes for which a row is skipped. A row is skipped for about as long as its margin lasts at
        the rate at which the plane moves. In each pass a random sample of the skipped rows is visited, which shows how
        many updates are missed; rows are skipped for fewer passes where that is more than 0.5 % of all updates, by
        weight (see `history_`). 0: visit all rows in each pass.
    average : bool, default=True
        Whether to use a running average of the planes, in which late passes weigh most, instead of the last planes. The
        last planes are used where they make clearly fewer errors on the training rows.
    fit_intercept : bool, default=True
        Whether to learn the offset, which is regularised like the weights.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    early_stopping : bool or float, default=False
        Hold out this share of the rows (True: a tenth), stop when their error no longer falls, and keep the plane that
        was best on them.
    n_iter_no_change : int, default=10
        Number of passes without improvement before training stops.
    random_state : int, RandomState or None, default=None
        Controls the order in which rows are visited.
    n_jobs : int or None, default=None
        Threads, in training (over classes) and in prediction. Results do not depend on it.
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
    n_iter_ : int
        Number of passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met), "updates" (share of the visits that moved a plane),
        "step" (its length) and "missed" (estimated share of the updates that skipped rows missed in the last ten passes
        or so, by weight), and with `early_stopping` "validation_error".
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
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    n_jobs: int | None = None

    _declaration: ClassVar[Declaration] = Declaration(tuning={"alpha": [1e-4, 1e-6, 1e-5, 1e-3, 1e-2, 0.1]})

    def _method(self, classes: np.ndarray) -> ConvexPolytope:
        outer = (1,) if len(classes) == 2 else tuple(range(len(classes)))
        return self._method_of(ConvexPolytope, outer=outer, n_planes=1)

    def _concluded(self, method: Any, state: Any, data: Data) -> Any:
        return better_planes(method, state, data)
