"""Planes that are trained for the worst case around each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import repeat
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from polyplane._prediction import check_classes, check_targets, check_weights, encode
from polyplane._sklearn import BaseEstimator, ClassifierMixin
from polyplane.base import CONSTRAINTS, Declaration
from polyplane.engine.data import Data
from polyplane.engine.run import Progress, Run
from polyplane.features import Features
from polyplane.inputs.encoding import MatrixInputs
from polyplane.learners.log_loss import AdamPass, dense_gradient
from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane, SmoothState
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Number of planes of other classes that a row is protected from at a time: those with the highest scores.
RIVALS = 16
#: Share of the passes in which the radius grows from 0 to `eps`.
GROWTH = 0.4
#: The norms, and their codes in the kernel.
ORDERS = {1: 1, 2: 2, "inf": 0, np.inf: 0}


@dataclass(frozen=True)
class RobustMultiHyperplane(SmoothMultiHyperplane):
    """The log-loss of the worst case within a distance, mixed with that of the rows themselves."""

    eps: float = 0.1
    order: int = 0  # of the norm; 0: infinity
    clean: float = 0.2  # share of the loss of the rows themselves
    low: float = 0.0  # with the infinity norm, the range of the rows
    high: float = 1.0
    n_bins: int = 1  # and the number of parts of this range

    @property
    def bins(self) -> tuple[np.ndarray, float]:
        """The lower ends of the parts of the range that no change of `eps` can leave, and their width."""
        width = (self.high - self.low - 2 * self.eps) / self.n_bins
        return self.low + self.eps + width * np.arange(self.n_bins), width

    def features(self, X: Any, change: float = 0.0) -> Any:
        """Return the features of rows after a change of all columns."""
        if self.order:
            return X
        low, width = self.bins
        start = (low - change).astype(X.dtype)
        return np.clip((X[:, :, None] - start) / X.dtype.type(width), 0, 1).reshape(len(X), -1)

    def fitted_features(self, n_columns: int) -> Features:
        """Return the features as part of a model."""
        if self.order:
            return Features.identity(n_columns)
        low, width = self.bins
        source = np.repeat(np.arange(n_columns), self.n_bins)
        centre = np.tile(low, n_columns)
        return Features.of(source, centre=centre, factor=1.0 / width, low=0.0, high=1.0, n_inputs=n_columns)

    def start(self, data: Data, seed: int) -> SmoothState:
        """The tangent planes over the features."""
        return super().start(replace(data, X=self.features(data.X)), seed)

    def is_convex(self, most_planes: int) -> bool:
        """Whether the problem is that of the convex log-loss: it is not."""
        return False

    def planes(self, state: SmoothState) -> PlaneSet:
        """The model in a state: one plane of the class is trained to be above all others, so scores are maxima."""
        return super().planes(state).replace(pooling="max")

    def _prepared_pass(self, state: SmoothState, data: Data, size: int) -> Any:
        plain: Any = super()._prepared_pass(state, data, size)
        given = {name: value for name, value in vars(plain).items() if not name.startswith("_")}
        grown = min(1.0, (state.turn + 1) / (GROWTH * self.max_iter))
        given["anchor"] = np.zeros_like(state.W) if self.alpha else None
        return RobustPass(**given, method=self, radius=self.eps * grown)


@dataclass
class RobustPass(AdamPass):
    """One pass over the rows, for the worst case around each."""

    method: Any = None
    radius: float = 0.0

    def _gradient(self, chosen: Any, weight: Any) -> tuple[Any, Any]:
        from polyplane.kernels.robust import Perturbation, RowBuffers, ScoredRows, add_worst_cases

        rows = chosen[0]
        W, method, X = self.W, self.method, self.X[rows]
        flat, factor = W.reshape(-1, W.shape[2]), W.dtype.type(self.scaling.factor)
        own = (self.y[rows, None] == self._classes).astype(W.dtype)
        x = np.ones((len(rows), W.shape[2]), dtype=W.dtype)
        x[:, :-1] = (method.features(X) - self.scaling.centre) * factor
        probability, gradient = dense_gradient(W, x, own, W.dtype.type(method.clean) * weight)
        half = np.zeros_like(x)
        if not method.order:
            low, high = (method.features(X, side * self.radius) for side in (-1, 1))
            x[:, :-1] = (0.5 * (low + high) - self.scaling.centre) * factor
            half[:, :-1] = 0.5 * (high - low) * factor
        n_rivals = min(RIVALS, len(flat) - W.shape[1])
        of_row, shares = np.zeros_like(x[:2]), np.zeros(W.shape[1], dtype=W.dtype)
        buffers = RowBuffers(np.zeros(n_rivals, dtype=np.int64), np.zeros(n_rivals), shares, *of_row)
        batch = ScoredRows(x, half, self.y[rows], W.dtype.type(1 - method.clean) * weight, x @ flat.T)
        ball = Perturbation(float(self.radius * factor), method.order, method.n_bins)
        worst = np.empty_like(probability)
        add_worst_cases(flat, W.shape[1], batch, ball, buffers, gradient.reshape(flat.shape), worst)
        return worst, gradient


@dataclass(eq=False, repr=False)
class RobustPlaneClassifier(ClassifierMixin, BaseEstimator):
    r"""Multi-hyperplane machine whose predictions are certain after small changes of the rows.

    A mean :math:`\bar s` of the planes of the class of a row, weighted by the softmax of their scores at the row, is
    trained to have a larger score than all planes k of other classes after any change of the row by at most `eps`. The
    worst case of their difference is known,

    .. math:: l_k(x) = \max_{\|\delta\| \le \varepsilon} \big(s_k(x + \delta) - \bar s(x + \delta)\big)
              = s_k(x) - \bar s(x) + \varepsilon \, \|w_k - \bar w\|_*

    with the dual norm. Since a mean is at most the maximum, :math:`\log(1 + \sum_k e^{l_k})` is an upper bound of the
    log-loss of all changed rows. A mean of this and of the log-loss of the rows themselves is minimised like that of
    `MultiHyperplaneClassifier`; the distance grows in the first part of the passes. `certified_radius` and
    `robust_error` of `polyplane.explain` compute what is certain about the fitted model.

    With ``norm="inf"``, rows are clipped: with all values of the training rows between a and b, the planes are
    functions of :math:`(x - a - \varepsilon) / (b - a - 2 \varepsilon)`, limited to 0 and 1. A value at the end of the
    range, such as the background of an image, then does not change if it moves by `eps`. With `n_bins`, this range is
    divided, and each part is a feature that rises from 0 to 1 in it: scores are then piecewise-linear functions of each
    column, as with steps of boosted trees. Their worst case is exact, since the features of a column rise one after
    another.

    Parameters
    ----------
    eps : float, default=0.1
        The largest change, in the units of the rows.
    norm : {1, 2, "inf"}, default="inf"
        The norm of the change: the sum of the absolute values, the root of the sum of squares, or the largest one.
    n_planes : int, default=32
        Planes of each class.
    n_bins : int, default=1
        Number of features of each column. Several are useful for tables of a few columns, and need ``norm="inf"``.
    clean : float, default=0.2
        Share of the log-loss of the rows themselves, from 0 to 1.
    alpha : float, default=1e-3
        Planes shrink by this fraction times the step size in each step; larger values prevent overfitting.
    eta0 : float, default=0.3
        Initial step size, as in `MultiHyperplaneClassifier`.
    max_iter : int, default=60
        Number of passes over the training rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    random_state : int, RandomState or None, default=None
        Controls the start and the order of the rows.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    model_ : Model
        The fitted model, from columns to class scores.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        Number of passes made.
    history_ : dict of str to list of float
        The loss after each pass.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    M. Andriushchenko and M. Hein. Provably robust boosted decision stumps and trees against adversarial attacks.
    NeurIPS 2019. (The robust loss of other models.)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import MultiHyperplaneClassifier, RobustPlaneClassifier
    >>> from polyplane.explain import robust_error
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    >>> robust = RobustPlaneClassifier(eps=0.2, n_planes=8, random_state=0).fit(X_train, y_train)
    >>> plain = MultiHyperplaneClassifier(8, random_state=0).fit(X_train, y_train)
    >>> [round(robust_error(m, X_test, y_test, 0.2, norm="inf"), 1) for m in (robust, plain)]
    [0.3, 1.0]
    """

    eps: float = 0.1
    _: KW_ONLY
    norm: Any = "inf"
    n_planes: int = 32
    n_bins: int = 1
    clean: float = 0.2
    alpha: float = 1e-3
    eta0: float = 0.3
    max_iter: int = 60
    class_weight: Any = None
    random_state: Any = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "eps": [Interval(Real, 0, None, closed="left")],
        "norm": "no_validation",
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "clean": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        **{name: CONSTRAINTS[name] for name in ("n_planes", "eta0", "max_iter", "class_weight", "random_state")},
        "verbose": CONSTRAINTS["verbose"],
    }
    _declaration: ClassVar[Declaration] = Declaration(tuning={"n_planes": [32, 8]}, streams=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the planes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._validate_params()
        if not isinstance(self.norm, str | Real) or self.norm not in ORDERS:
            raise ValueError(f"norm={self.norm!r} must be 1, 2 or 'inf'.")
        if self.n_bins > 1 and ORDERS[self.norm]:
            raise ValueError(f"n_bins={self.n_bins} needs norm='inf': with norm={self.norm!r}, leave it at 1.")
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        y = check_targets(y, X.shape[0])
        self.classes_ = check_classes(y)
        codes, order = encode(y, self.classes_), ORDERS[self.norm]
        weight = check_weights(X, y, codes, self.classes_, sample_weight, self.class_weight)
        low, high = float(X.min()), float(X.max())
        if not order and not 2 * self.eps < high - low:
            raise ValueError(f"eps={self.eps:g} must be less than half of the range of X, {high - low:g}.")
        method = RobustMultiHyperplane(
            n_planes=self.n_planes, eta0=self.eta0, alpha=float(self.alpha), max_iter=self.max_iter, backoff=0,
            noise=0.0, eps=float(self.eps), order=order, clean=float(self.clean), low=low, high=high,
            n_bins=self.n_bins,
        )  # fmt: skip
        data = Data(X, codes, weight, np.flatnonzero(weight > 0), len(self.classes_))
        observers = [Progress(type(self).__name__, self.max_iter)] if self.verbose else []
        seed = int(check_random_state(self.random_state).randint(2**31))
        run = Run(method, seed=seed, observers=observers).go(repeat(data, self.max_iter))
        inputs, features = MatrixInputs(X.shape[1]), method.fitted_features(X.shape[1])
        planes, name = method.planes(run.state), type(self).__name__
        self._model = Model(inputs, features, planes, self.classes_, temperature=1.0, learner=name)
        self.n_iter_, self.history_ = run.n_steps, run.history
        return self

    @property
    def model_(self) -> Model:
        """The fitted model, from columns to class scores."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return replace(
            self._model, inputs=MatrixInputs(self._model.n_columns, None if names is None else tuple(map(str, names)))
        )

    def _restore(self, model: Model, fitted: Mapping[str, Any]) -> None:
        """Set the fitted attributes: those that follow from the model, and others; for model files."""
        self._model, self.classes_, self.n_features_in_ = model, model.classes, model.n_columns
        if model.inputs.is_named:
            self.feature_names_in_ = np.array(model.inputs.names, dtype=object)
        self.__dict__.update(fitted)

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The labels of the classes with the highest scores.
        """
        return self._fitted().predict(self._rows(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute class scores; for two classes, the score of the second class minus that of the first.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            The scores.
        """
        return self._fitted().decision_function(self._rows(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities: the softmax of the class scores.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            The probabilities.
        """
        return self._fitted().predict_proba(self._rows(X))

    def _fitted(self) -> Model:
        check_is_fitted(self)
        return self._model

    def _rows(self, X: Any) -> np.ndarray:
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")
