"""The linear SVM by stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from polyplane.learners._polytopes import PolytopeTrainer


class PegasosSVC(PolytopeTrainer):
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
        A row whose margin is ample is not looked at for 1, 3, 7, ... and at the most this many visits. 0 looks at all.
    average : bool, default=True
        Use a running average of the planes, late passes weighing most, instead of the last ones.
    fit_intercept : bool, default=True
        Learn an offset, regularised like the rest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    shuffle : bool, default=True
        Visit the rows in a new order at each pass.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    early_stopping : bool, default=False
        Hold out rows, stop when their error no longer falls, and keep the plane that was best on them.
    validation_fraction : float, default=0.1
        Share of the rows to hold out.
    n_iter_no_change : int, default=10
        Passes without progress before stopping.
    random_state : int, RandomState or None, default=None
        Source of the orders.
    n_jobs : int or None, default=None
        Threads, over classes and in prediction. The planes do not depend on it.
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

    n_planes = 1
    min_entropy = 0.0

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        max_iter: int = 100,
        tol: float | None = None,
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
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
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
        return [1] if n_classes == 2 else list(range(n_classes))
