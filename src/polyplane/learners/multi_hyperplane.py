"""The multi-hyperplane machines."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from polyplane._array_api import namespace, within_device_memory
from polyplane._validation import Data, check_fitted_matrix
from polyplane.base import PlaneClassifier
from polyplane.learners._contest import ROWS_PER_PLANE, choose_planes
from polyplane.learners._margin import AdaptiveTraining, MarginTraining
from polyplane.learners._schedule import Schedule
from polyplane.learners._smooth import SmoothTraining
from polyplane.learners._tangent import tangent_start
from polyplane.learners._units import Units
from polyplane.planes import PlaneSet


class MultiHyperplaneClassifier(PlaneClassifier):
    r"""Multi-hyperplane machine: each class owns as many planes as its shape needs.

    The score of class :math:`c` is :math:`\max_{k \in c} w_k x + b_k`, and the class with the best score wins. Two
    ways to find the planes:

    `init="tangent"` begins with the planes tangent to a paraboloid above the k-means centres of each class, that is
    with the nearest-centre classifier, and trains them all together. With `loss="log"` a class scores the log-sum-exp
    of its planes, and

    .. math:: \frac{1}{n} \sum_i -\log \frac{\sum_{k \in y_i} e^{w_k x_i + b_k}}{\sum_k e^{w_k x_i + b_k}}

    is minimised by Adam on mini-batches; with `loss="hinge"` it is the papers' margin loss

    .. math:: \frac{1}{n} \sum_i \Big[1 + \max_{k \notin y_i} (w_k x_i + b_k) - \max_{k \in y_i} (w_k x_i + b_k)\Big]_+

    by stochastic gradient descent. In both the steps fall linearly to 0 and the last planes are averaged.

    `init="zero"` is the papers' way: classes begin without planes and bear them while the margin loss, with
    :math:`\frac{\alpha}{2} \sum_k |w_k|^2`, is minimised with the steps :math:`1 / (\alpha t)`. It gives

    * **AMM** with `growth=0` and `prune=10`: a class that no plane of its own speaks for answers with a new zero plane;
    * **GAMM** with `growth=0.2`: moreover, planes that err are duplicated at random;
    * **MM** with `growth=0`, `assignment="epoch"` and `n_planes`: a fixed number of planes, and rows that keep their
      plane for an epoch, which makes each epoch a convex problem.

    Training sees the features centred and multiplied by one number; the planes speak the units of `X`. Standardise
    features of different kinds; leave pixels as they are.

    Under ``sklearn.config_context(array_api_dispatch=True)`` the log-loss trains on arrays of PyTorch and CuPy where
    they are, and the planes live there: see `to_numpy`.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (b). With a tangent start, None lets small machines with 1, 4, 16 and up to 64 planes (96
        for two classes) compete on held-out rows first. With a zero start it is the most that a class may have; None:
        no limit.
    init : {"tangent", "zero"}, default="tangent"
        How to begin.
    loss : {"log", "hinge"}, default="log"
        What to minimise; a zero start needs "hinge", and takes it whatever is said here.
    assignment : {"online", "epoch"}, default="online"
        Zero start: which of its class's planes is to win a row, the best one at each visit or at the start of the
        epoch.
    growth : float, default=0.2
        Zero start: the probability that a plane that errs is duplicated (p).
    growth_decay : float, default=0.99
        Zero start: what it is multiplied with at each duplication (:math:`\beta`).
    prune : float, default=50.0
        Zero start: the smallest planes are removed as long as the norm of all of them is at most this over
        :math:`\alpha t` (c). The paper has 10 for AMM.
    prune_every : int, default=10000
        Zero start: visits between prunings.
    alpha : float or None, default=None
        Zero start: strength of the regularisation (:math:`\lambda`); None: 1e-5. Tangent start with the log-loss: how
        strongly planes are drawn back to where they began; None: 0.
    scale : float, default=2.5
        Tangent start: curvature of the paraboloid, relative to what the data suggest.
    eta0 : float, default=0.3
        Tangent start: the first step, relative to the way from a row to the nearest centre of its class.
    noise : float or None, default=None
        Log-loss: standard deviation of the noise added to dense rows in training, relative to their distance from the
        nearest wall between classes; None: 0.2, less in few dimensions, and none in two.
    average : float, default=0.2
        The last part of the passes, over which planes are averaged; a zero start bears and prunes none in it, and
        does best with a third. 0: no averaging, as in the papers.
    batch_size : int, default=256
        Log-loss: rows per step. A GPU wants 4,096 or more: steps then grow with the square root of the batch. Batches
        above 256 are made smaller where a pass would have fewer than 64 of them.
    precision : {"full", "tf32"}, default="full"
        Log-loss with arrays of PyTorch on an NVIDIA device: "tf32" rounds the factors of matrix products to 10 bits and
        sums in float32.
    backoff : int, default=31
        Tangent start: a row that is amply right is not looked at for 1, 3, 7, ... and at the most this many visits. 0
        looks at all.
    max_iter : int, default=60
        Passes over the rows.
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes, unless `early_stopping` is on (then 0).
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
        Source of the centres, the orders and the noise.
    n_jobs : int or None, default=None
        Threads in prediction.
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
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020.

    Z. Wang, N. Djuric, K. Crammer and S. Vucetic. Trading Representability for Scalability: Adaptive Multi-Hyperplane
    Machine for Nonlinear Classification. KDD 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import MultiHyperplaneClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> machine = MultiHyperplaneClassifier(random_state=0).fit(X_train, y_train)
    >>> print(f"{machine.score(X_test, y_test):.2f}")
    0.99
    """

    _converges_on = "loss"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"tangent", "zero"})],
        "loss": [StrOptions({"log", "hinge"})],
        "assignment": [StrOptions({"online", "epoch"})],
        "growth": [Interval(Real, 0, 1, closed="left")],
        "growth_decay": [Interval(Real, 0, 1, closed="both")],
        "prune": [Interval(Real, 0, None, closed="left")],
        "prune_every": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "scale": [Interval(Real, 0, None, closed="neither")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "noise": [Interval(Real, 0, None, closed="left"), None],
        "average": [Interval(Real, 0, 1, closed="both")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "precision": [StrOptions({"full", "tf32"})],
        "backoff": [Interval(Integral, 0, 255, closed="both")],
    }
    del _parameter_constraints["fit_intercept"]

    def __init__(
        self,
        n_planes: int | None = None,
        *,
        init: str = "tangent",
        loss: str = "log",
        assignment: str = "online",
        growth: float = 0.2,
        growth_decay: float = 0.99,
        prune: float = 50.0,
        prune_every: int = 10_000,
        alpha: float | None = None,
        scale: float = 2.5,
        eta0: float = 0.3,
        noise: float | None = None,
        average: float = 0.2,
        batch_size: int = 256,
        precision: str = "full",
        backoff: int = 31,
        max_iter: int = 60,
        tol: float | None = None,
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
        self.init = init
        self.loss = loss
        self.assignment = assignment
        self.growth = growth
        self.growth_decay = growth_decay
        self.prune = prune
        self.prune_every = prune_every
        self.alpha = alpha
        self.scale = scale
        self.eta0 = eta0
        self.noise = noise
        self.average = average
        self.batch_size = batch_size
        self.precision = precision
        self.backoff = backoff
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @available_if(lambda self: self.init == "tangent" and self.loss == "log")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, for machines trained by the log-loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Softmax of the class scores, so that the most probable class is the predicted one.
        """
        X = check_fitted_matrix(self, X)
        scores = self.planes_.class_scores(X, self.n_jobs)
        xp = namespace(scores)
        likeness = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return likeness / xp.sum(likeness, axis=1, keepdims=True)

    @property
    def _takes_foreign_arrays(self) -> bool:
        return self.init == "tangent" and self.loss == "log"

    def _training(self, data: Data | None = None) -> SmoothTraining | MarginTraining | AdaptiveTraining:
        """The way to train that the parameters name."""
        schedule = Schedule(self.max_iter, stream=data is not None and data.stream)
        how: dict[str, Any] = {"tail": self.average, "shuffle": self.shuffle, "schedule": schedule}
        if self.init == "zero":
            return AdaptiveTraining(
                alpha=1e-5 if self.alpha is None else self.alpha,
                growth=self.growth,
                growth_decay=self.growth_decay,
                most=self.n_planes or np.iinfo(np.int64).max,
                prune=self.prune,
                prune_every=self.prune_every,
                by_epoch=self.assignment == "epoch",
                **how,
            )
        if self.loss == "hinge":
            return MarginTraining(eta0=self.eta0, backoff=self.backoff, **how)
        return SmoothTraining(
            batch_size=self.batch_size,
            eta0=self.eta0,
            noise=0.0 if data is None or sparse.issparse(data.X) else self._noise(data.X.shape[1]),
            alpha=self.alpha or 0.0,
            backoff=self.backoff,
            tf32=self.precision == "tf32",
            **how,
        )

    def _noise(self, n_features: int) -> float:
        return 0.2 * max(0.0, 1.0 - 2.0 / n_features) if self.noise is None else self.noise

    def _start(self, data: Data, seed: int) -> Any:
        if self.init == "zero" and self.alpha == 0:
            raise ValueError("alpha must be positive for init='zero': the steps are 1 / (alpha t).")
        with within_device_memory("Train on fewer rows at a time with partial_fit."):
            return self._begin(data, seed)

    def _begin(self, data: Data, seed: int) -> Any:
        units = Units.common(data.X, data.training_weight)
        training = self._training(data)
        if isinstance(training, AdaptiveTraining):
            return training.start(data.n_classes, data.X.shape[1], units, seed)
        n_planes = self._planes_per_class(data, units, seed)
        rng = np.random.default_rng(seed)
        tangents = tangent_start(data.X, data.y, data.train, n_planes, units, self.scale, rng)
        return training.start(tangents, units, seed)

    def _planes_per_class(self, data: Data, units: Units, seed: int) -> np.ndarray:
        n_rows = np.bincount(data.y[data.train], minlength=data.n_classes)
        if self.n_planes is None:
            most = np.clip(n_rows // ROWS_PER_PLANE, 1, max(64, 192 // data.n_classes))
            return choose_planes(data, most, units, self.scale, self._training_for_contest(data), seed)
        if (n_rows < self.n_planes).any() and not data.stream:
            few = int(n_rows.argmin())
            warnings.warn(
                f"n_planes={self.n_planes} is more than class {self.classes_.tolist()[few]!r} has rows "
                f"({n_rows[few]}); such a class gets one plane per row.",
                UserWarning,
                stacklevel=5,
            )
        return np.clip(n_rows, 1, self.n_planes)

    def _training_for_contest(self, data: Data) -> SmoothTraining:
        noise = 0.0 if sparse.issparse(data.X) else self._noise(data.X.shape[1])
        return SmoothTraining(256, 0.3, noise, 0.0, 0.2, 31, True, Schedule(10, stream=False))

    def _step(self, state: Any, data: Data) -> Any:
        return self._training(data).epoch(state, data)

    def _planes(self, state: Any) -> PlaneSet:
        return self._training().planes(state)

    def _figures(self, state: Any) -> Mapping[str, float]:
        return {"loss": state.loss, "planes": state.n_planes}
