"""The multi-hyperplane machine from a tangent start, by the log-loss or the margin loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from polyplane._array_api import softmax
from polyplane._validation import check_fitted_matrix
from polyplane.base import Declaration, PlaneClassifier
from polyplane.engine.data import Data
from polyplane.engine.kinds import MixedNumber
from polyplane.engine.state import workspace
from polyplane.learners._epochs import BackoffState, Schedule
from polyplane.learners._log_loss import USUAL_BATCH
from polyplane.learners._margin_loss import CHECKS_PER_EPOCH, KernelRows, PlaneColumns, pieces, plane_sums
from polyplane.learners._smooth_multi_hyperplane import SmoothMultiHyperplane
from polyplane.learners._tangent import Tangents
from polyplane.learners._tangent_method import TangentMethod
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: Of the most that an epoch like the last one could change a margin, the part that it is taken to change: rows whose
#: margin would hold for some epochs are not visited in these.
CAUTION = 0.3


@dataclass(frozen=True, eq=False)
class MarginState(PlaneColumns):
    """The state of training with the margin loss."""

    unit_step: float = 0.0  # the step for eta0 = 1
    movement: MixedNumber = np.inf  # of the plane that moved most in the last epoch, over scaled rows
    rows: BackoffState | None = None
    workspace: KernelRows | None = workspace()


@dataclass(frozen=True)
class MarginMultiHyperplane(TangentMethod[MarginState]):
    """The papers' margin loss: stochastic gradient descent, row by row."""

    state = MarginState

    @property
    def trial(self) -> SmoothMultiHyperplane:
        """The log-loss: it wants as many planes, and finds them sooner."""
        return SmoothMultiHyperplane(scale=self.scale, backoff=self.backoff)

    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> MarginState:
        """The state before the first step, from given planes."""
        planes = tangents.planes()[tangents.mask]
        coef, intercept = scaling.to_input_space(planes[:, :-1], planes[:, -1])
        owner = np.nonzero(tangents.mask)[0].copy()  # in one piece, as in any other state: one kernel to compile
        counts = np.bincount(owner, minlength=len(tangents.mask))
        coef, shift = np.ascontiguousarray(coef.T), np.zeros_like(intercept)
        return MarginState(coef, intercept, shift, owner, counts, scaling, seed, unit_step=tangents.step)

    def prepare(self, state: MarginState, data: Data) -> MarginState:
        """With a memory of the rows, and what the kernel needs to know of them."""
        return replace(state, rows=self._backoff_state(state, data), workspace=KernelRows(data, state.scaling))

    def step(self, state: MarginState, data: Data) -> MarginState:
        """One pass over the rows."""
        from polyplane.kernels.multi_hyperplane import Clocks, Steps, margin_epoch

        rows, known = state.rows, state.workspace
        assert rows is not None
        assert known is not None
        schedule = Schedule.of(self.max_iter, state, data)
        order = data.train
        if self.shuffle:
            order = np.random.default_rng([state.seed, state.epoch]).permutation(order)
        sums, score, before = plane_sums(state), np.empty_like(state.intercept), state.input_planes(1.0)
        movement = state.movement if state.turn else np.inf
        clocks = Clocks(rows.skip, CAUTION * movement * known.lengths, self.backoff)
        loss, n_visited = 0.0, 0
        for piece in pieces(order, -(-len(order) // CHECKS_PER_EPOCH)):
            first, last = (
                self.eta0 * state.unit_step * schedule.rate(visited / len(order))
                for visited in (n_visited, n_visited + len(piece))
            )
            steps = Steps(first, (first - last) / len(piece))
            loss += margin_epoch(known.X, piece, sums, state.owner, known.targets, clocks, steps, score)
            n_visited += len(piece)
            if schedule.averages(n_visited / len(order), self.average_fraction):
                state = state.averaged(1.0, schedule.window)
            elif state.mean is not None:
                state = replace(state, mean=None)
        movement = self._movement(before, state)
        return replace(state, epoch=state.epoch + 1, turn=schedule.next_turn, loss=loss / len(order), movement=movement)

    def _movement(self, before: tuple[np.ndarray, np.ndarray], state: MarginState) -> float:
        """How far the plane that moved most has moved since, over scaled rows that end in a 1."""
        coef, intercept = (now - then for now, then in zip(state.input_planes(1.0), before, strict=True))
        offset = intercept + coef @ state.scaling.centre
        return float(np.sqrt(((coef / state.scaling.factor) ** 2).sum(axis=1) + offset**2).max())

    def planes(self, state: MarginState) -> PlaneSet:
        """The model in a state."""
        return state.plane_set(1.0)


@dataclass(eq=False, repr=False)
class MultiHyperplaneClassifier(PlaneClassifier):
    r"""Multi-hyperplane machine: each class owns as many planes as its shape needs.

    The score of class :math:`c` is :math:`\max_{k \in c} w_k x + b_k`, and the class with the best score wins. Training
    begins with the planes tangent to a paraboloid above the k-means centres of each class, that is with the
    nearest-centre classifier, and moves them all together. With `loss="log"` a class scores the log-sum-exp of its
    planes, and

    .. math:: \frac{1}{n} \sum_i -\log \frac{\sum_{k \in y_i} e^{w_k x_i + b_k}}{\sum_k e^{w_k x_i + b_k}}

    is minimised by Adam on mini-batches; with `loss="hinge"` it is the papers' margin loss

    .. math:: \frac{1}{n} \sum_i \Big[1 + \max_{k \notin y_i} (w_k x_i + b_k) - \max_{k \in y_i} (w_k x_i + b_k)\Big]_+

    by stochastic gradient descent. In both cases the step size decreases linearly to 0, and the planes of the last
    fifth of the passes are averaged. The papers' own methods are in `AdaptiveMultiHyperplaneClassifier`.

    With one plane per class the log-loss is that of logistic regression, a convex problem: `fit` then finds its minimum
    by L-BFGS, five iterations for a pass, unless `alpha` or `noise` is given. As in scikit-learn's
    `LogisticRegression`, half the sum of the squared weights is added to the sum of the losses, and nothing depends on
    `scale`, `eta0`, `batch_size`, `backoff` and `random_state`; so that units matter less, features whose variances
    sum to more than 25, or less than 5, are treated as if they summed to that.

    Internally the features are centred and multiplied by one number; the fitted planes apply to `X` itself. Standardise
    features of different kinds; leave pixels as they are. Dense and sparse rows give the same model with
    ``backoff=0``; otherwise dense rows on the host update only the planes with the best scores for them (see
    `backoff`), which takes a fraction of the time and gives a different model with the same error.

    Under ``sklearn.config_context(array_api_dispatch=True)`` the log-loss trains on arrays of PyTorch and CuPy where
    they are, and the planes live there: see `to_numpy`. PyTorch's own
    ``torch.set_float32_matmul_precision("high")`` makes matrix products on NVIDIA devices faster and less precise.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (b). None: small models with 1, 2, 4, 16 and up to 64 planes (96 for two classes) are
        compared on held-out training rows first; one plane is used unless more are clearly better.
    loss : {"log", "hinge"}, default="log"
        The loss function.
    alpha : float or None, default=None
        Log-loss: strength of a penalty on the distance of the planes from their start. None: no penalty.
    scale : float, default=2.5
        Curvature of the paraboloid of the start, relative to an estimate from the data.
    eta0 : float, default=0.3
        Initial step size, relative to the distance from a row to the nearest centre of its class.
    noise : float or None, default=None
        Log-loss: standard deviation of the noise added to rows in training, relative to their distance from the
        decision boundary. None: 0.2, less in few dimensions, none in two, and none with one plane per class.
    batch_size : int or None, default=None
        Log-loss: rows per step. None: 256. Use 4,096 or more on a GPU: step sizes grow with the square root of the
        batch size. Batches above 256 are made smaller where an epoch would have fewer than 64 of them.
    backoff : int, default=31
        Maximum number of epochs for which rows with a large margin are skipped: with the log-loss 1, 3, 7, ..., with
        the hinge loss as long as the margin would last if the planes kept moving as in the last epoch. In addition,
        with the log-loss a dense row updates only the 16 planes with the best scores for it, which are determined in
        epochs 0, 1, 3, 7, 15, 23 and so on. 0: visit all rows and update all planes.
    max_iter : int, default=60
        Maximum number of passes over the training rows (epochs).
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes; with `early_stopping`: 0.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    early_stopping : bool or float, default=False
        Hold out this share of the rows (True: a tenth), stop when their error no longer falls, and keep the planes that
        were best on them.
    n_iter_no_change : int, default=10
        Number of passes without improvement before training stops.
    random_state : int, RandomState or None, default=None
        Controls the k-means centres, the order in which rows are visited and the noise.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    n_iter_ : int
        Number of passes made.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met), "planes", and with `early_stopping`
        "validation_error".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020. (Theorem 1: tangents of a
    convex function as planes.)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import MultiHyperplaneClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X_train, y_train)
    >>> print(f"{model.score(X_test, y_test):.2f}")
    0.99
    """

    n_planes: int | None = None
    _: KW_ONLY
    loss: str = "log"
    alpha: float | None = None
    scale: float = 2.5
    eta0: float = 0.3
    noise: float | None = None
    batch_size: int | None = None
    backoff: int = 31
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
        "loss": [StrOptions({"log", "hinge"})],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "scale": [Interval(Real, 0, None, closed="neither")],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "noise": [Interval(Real, 0, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "backoff": [Interval(Integral, 0, 255, closed="both")],
    }
    del _parameter_constraints["fit_intercept"], _parameter_constraints["n_jobs"]
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={
            "n_planes": [None, 1, 2, 4, 8, 16, 32, 64],
            "alpha": [None, 1e-3, 3e-3, 1e-2, 3e-2, 0.1],
            "noise": [None, 0.0, 0.1, 0.2, 0.4],
            "eta0": [0.3, 0.03, 0.1, 1.0],
            "scale": [2.5, 0.6, 1.0, 1.6, 4.0, 6.0, 10.0],
        },
        probabilities="softmax",
    )

    def _method(self, classes: np.ndarray) -> SmoothMultiHyperplane | MarginMultiHyperplane:
        if self.loss == "log":
            batch_size = USUAL_BATCH if self.batch_size is None else self.batch_size
            return SmoothMultiHyperplane.of(self, alpha=self.alpha or 0.0, batch_size=batch_size)
        for name in ("alpha", "noise", "batch_size"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} belongs to the log-loss and means nothing for loss='hinge'; leave "
                    "it at None."
                )
        return MarginMultiHyperplane.of(self)

    @available_if(lambda self: self.loss == "log")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, for models trained with the log-loss.

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
        return softmax(self.planes_.class_scores(X))
