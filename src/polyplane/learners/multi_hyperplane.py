"""The multi-hyperplane machine from a tangent start, by the log-loss or the margin loss."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from polyplane._array_api import astype, like, namespace, take_rows, widest_float, within_device_memory
from polyplane._threads import blas_threads
from polyplane._validation import check_fitted_matrix
from polyplane.base import Declaration, PlaneClassifier
from polyplane.engine.data import Data
from polyplane.engine.feature_ranges import OwnScaling
from polyplane.engine.kinds import Array, CommonScaling, MixedNumber, Seed
from polyplane.engine.method import Method
from polyplane.engine.state import State, workspace
from polyplane.learners._epochs import BackoffState, EpochSampler, Schedule
from polyplane.learners._log_loss import USUAL_BATCH, Adam, AdamPass, Pace, decay, stretch
from polyplane.learners._margin_loss import CHECKS_PER_EPOCH, KernelRows, PlaneColumns, pieces, plane_sums
from polyplane.learners._one_plane import OnePlanePerClass
from polyplane.learners._select_n_planes import select_n_planes
from polyplane.learners._tangent import Tangents, tangent_start
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: The margin of a row whose class has this probability is ample: it hardly moves a plane.
AMPLE = 0.99
#: Of the most that an epoch like the last one could change a margin, the part that it is taken to change: rows whose
#: margin would hold for some epochs are not visited in these.
CAUTION = 0.3
#: Larger batches than usual are taken only where a pass has this many of them: fewer steps would not reach as far.
STEPS_PER_PASS = 64

_WEIGHTS = Array("f", "classes", "planes", "features+1", mixed=True)


@dataclass(frozen=True, eq=False)
class SmoothState(State):
    """Everything that training by the log-loss needs to go on. Its arrays are where the rows are."""

    W: Annotated[Any, _WEIGHTS]  # the planes over scaled rows
    adam: Adam
    tangents: Tangents  # where they began
    scaling: CommonScaling
    seed: Seed
    epoch: int = 0
    turn: int = 0  # epochs of the present schedule
    loss: MixedNumber = np.inf
    mean: Annotated[Any, _WEIGHTS] | None = None  # average over the last steps
    n_averaged: int = 0
    is_minimum: bool = False  # of a convex problem
    rows: BackoffState | None = None
    workspace: EpochSampler | OnePlanePerClass | None = workspace()

    @property
    def n_planes(self) -> int:
        """Number of planes."""
        return int(self.tangents.mask.sum())


@dataclass(frozen=True, eq=False)
class MarginState(PlaneColumns):
    """Everything that training by the margin loss needs to go on."""

    unit_step: float = 0.0  # the step for eta0 = 1
    movement: MixedNumber = np.inf  # of the plane that moved most in the last epoch, over scaled rows
    rows: BackoffState | None = None
    workspace: KernelRows | None = workspace()


S = TypeVar("S", SmoothState, MarginState)


@dataclass(frozen=True)
class TangentMethod(Method[S]):
    """Training from the tangent planes above the k-means centres of each class, with steps that fall linearly to 0."""

    n_planes: int | None = None
    scale: float = 2.5
    eta0: float = 0.3
    backoff: int = 31
    max_iter: int = 60
    average_fraction: float = 0.2  # the last part of the passes, whose planes are averaged
    shuffle: bool = True

    adjustable = frozenset({"eta0", "backoff", "max_iter", "average_fraction", "shuffle"})
    mixable = True

    @property
    def own_scaling(self) -> OwnScaling:
        """Rows are centred, and multiplied by one number."""
        return "common"

    @abstractmethod
    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> S:
        """The state before the first step, from given planes."""

    def start(self, data: Data, seed: int) -> S:
        """The state before the first step."""
        with within_device_memory("Train on fewer rows at a time with partial_fit."):
            scaling = AffineScaling.common(data.X, data.training_weight)
            n_planes = self._planes_per_class(data, scaling, seed)
            return self.begin(tangent_start(data, n_planes, scaling, self.scale, seed), scaling, seed)

    def _planes_per_class(self, data: Data, scaling: AffineScaling, seed: int) -> np.ndarray:
        if self.n_planes is None:
            trial = SmoothMultiHyperplane(scale=self.scale, noise=getattr(self, "noise", None))
            return select_n_planes(data, scaling, trial, seed)
        n_rows = data.class_counts
        if (n_rows < self.n_planes).any() and not data.stream:
            few = int(n_rows.argmin())
            warnings.warn(
                f"n_planes={self.n_planes} is more than the {n_rows[few]} rows of class {few} (counted from 0 in the "
                "order of the labels); such a class gets one plane per row.",
                UserWarning,
                stacklevel=8,
            )
        return np.clip(n_rows, 1, self.n_planes)

    def _backoff_state(self, state: S, data: Data) -> BackoffState:
        """What is remembered of the rows; when a schedule begins, its steps are long again, and no row is skipped."""
        return BackoffState.fresh(data) if state.rows is None or state.turn == 0 else state.rows

    def figures(self, state: S) -> Mapping[str, float]:
        """The mean of the losses met, and the number of planes."""
        return {"loss": state.loss, "planes": state.n_planes}

    def monitored(self, state: S) -> float:
        """The loss."""
        return state.loss


@dataclass(frozen=True)
class SmoothMultiHyperplane(TangentMethod[SmoothState]):
    """The log-loss, where each class scores the log-sum-exp of its planes: mini-batches and Adam."""

    alpha: float = 0.0
    noise: float | None = None
    batch_size: int = USUAL_BATCH

    state = SmoothState
    adjustable = TangentMethod.adjustable | {"alpha", "noise", "batch_size"}

    def begin(self, tangents: Tangents, scaling: AffineScaling, seed: int) -> SmoothState:
        """The state before the first step, from given planes."""
        W = tangents.planes()
        xp = namespace(W)
        return SmoothState(W, Adam(xp.zeros_like(W), xp.zeros_like(W)), tangents, scaling, seed)

    def prepare(self, state: SmoothState, data: Data) -> SmoothState:
        """With a memory of the rows, and what draws their orders; or with the convex problem."""
        if self._is_convex(state, data):
            return replace(state, rows=None, workspace=OnePlanePerClass(data, state.scaling))
        sampler = EpochSampler(data, self.shuffle, self._noise_level(state) > 0)
        return replace(state, rows=self._backoff_state(state, data), workspace=sampler)

    def _is_convex(self, state: SmoothState, data: Data) -> bool:
        """Whether all there is to find is the minimum of the log-loss of one plane per class, on rows all at hand."""
        return state.W.shape[1] == 1 and not (self.alpha or self.noise or data.stream or data.is_part)

    def converged(self, state: SmoothState) -> bool:
        """Whether the minimum of the convex problem is reached."""
        return state.is_minimum

    def step(self, state: SmoothState, data: Data) -> SmoothState:
        """One pass over the rows."""
        problem = state.workspace
        if isinstance(problem, OnePlanePerClass):
            with self._products(state.W), within_device_memory("Train on fewer rows at a time with partial_fit."):
                found = problem.improve(state.W)
            return replace(state, **found._asdict(), mean=None, n_averaged=0, epoch=state.epoch + 1, turn=0)
        return self._pass(state, data)

    def _pass(self, state: SmoothState, data: Data) -> SmoothState:
        """One pass over the rows by mini-batches."""
        clocks, sampler = state.rows, state.workspace
        assert clocks is not None
        assert isinstance(sampler, EpochSampler)
        schedule = Schedule.of(self.max_iter, state, data)
        drawn = sampler.draw(state.seed, state.epoch, more=schedule.next_turn > 0)
        rows = clocks.visited(like(drawn.order, sampler.y))
        size = min(self.batch_size, max(USUAL_BATCH, rows.shape[0] // STEPS_PER_PASS))
        paces, averaged_from = self._paces(state, schedule, rows.shape[0], size)
        state = replace(state, mean=_mean_to_add_to(state, averaged_from, len(paces)))
        advice = f"Use a smaller batch_size than {self.batch_size}, or fewer rows at a time with partial_fit."
        with self._products(state.W), within_device_memory(advice):
            adam_pass = AdamPass(
                data.X, sampler.y, sampler.weight, state.scaling, state.W, state.adam, state.mean,
                state.tangents.planes() if self.alpha else None, decay(size),
            )  # fmt: skip
            inputs = [rows]
            if drawn.noise is not None:
                adam_pass.noise = like(drawn.noise, state.W)
                adam_pass.noise *= self._noise_level(state) * state.tangents.margin
                inputs.append(like(drawn.noise_rows, sampler.y)[: rows.shape[0]])
            probability = adam_pass.run(inputs, size, paces, averaged_from)
            loss = _log_loss(take_rows(sampler.weight, rows), probability)
            if self.backoff:
                clocks.note(rows, probability > AMPLE, self.backoff)
        return replace(
            state,
            epoch=state.epoch + 1,
            turn=schedule.next_turn,
            loss=loss / sampler.total_weight,
            is_minimum=False,
            adam=replace(state.adam, t=state.adam.t + len(paces)),
            n_averaged=int(paces[-1].n_averaged) if averaged_from < len(paces) else state.n_averaged,
        )

    def _noise_level(self, state: SmoothState) -> float:
        if self.noise is not None:
            return self.noise
        _, n_planes, n_features = state.tangents.centres.shape
        return 0.2 * max(0.0, 1.0 - 2.0 / n_features) if n_planes > 1 else 0.0

    def _paces(self, state: SmoothState, schedule: Schedule, n_rows: int, size: int) -> tuple[list[Pace], int]:
        """The pace of each step, and the step from which planes are averaged."""
        unit = state.tangents.step / (state.W.shape[2] - 1) ** 0.5
        b1, b2 = decay(size)
        paces: list[Pace] = []
        averaged_from, t, n_averaged = 0, state.adam.t, state.n_averaged if state.mean is not None else 0
        for first in range(0, n_rows, size):
            fraction = first / n_rows
            t += 1
            rate = self.eta0 * stretch(size) * schedule.rate(fraction)
            if schedule.averages(fraction, self.average_fraction):
                n_averaged = min(n_averaged + 1, schedule.window)
            else:
                averaged_from, n_averaged = len(paces) + 1, 0
            corrected = rate * unit * (1 - b2**t) ** 0.5 / (1 - b1**t)
            paces.append(Pace(corrected, min(1.0, rate * self.alpha), float(n_averaged)))
        return paces, averaged_from

    def _products(self, W: Any) -> AbstractContextManager[Any]:
        """How many threads matrix products take."""
        return blas_threads(self.batch_size * W.size) if namespace(W) is np else nullcontext()

    def planes(self, state: SmoothState) -> PlaneSet:
        """The model in a state, over the rows of X."""
        W = state.W if state.mean is None else state.mean
        own = (take_rows(W[c, :, :], np.flatnonzero(mask)) for c, mask in enumerate(state.tangents.mask))
        return PlaneSet.of_classes(state.scaling.to_input_space(planes[:, :-1], planes[:, -1]) for planes in own)

    @property
    def takes_device_arrays(self) -> bool:
        """It is all matrix products."""
        return True


def _mean_to_add_to(state: SmoothState, averaged_from: int, n_steps: int) -> Any:
    """The average that the steps of a pass go into: a new one when it begins in this pass; None when none does."""
    if n_steps == 0 or (state.mean is not None and averaged_from == 0):
        return state.mean
    return None if averaged_from == n_steps else namespace(state.W).zeros_like(state.W)


def _log_loss(weight: Any, probability: Any) -> float:
    xp = namespace(probability)
    return -float(xp.sum(astype(weight * xp.log(probability), widest_float(probability))))


@dataclass(frozen=True)
class MarginMultiHyperplane(TangentMethod[MarginState]):
    """The papers' margin loss: stochastic gradient descent, row by row."""

    state = MarginState

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

    by stochastic gradient descent. In both the steps fall linearly to 0 and the planes of the last fifth of the passes
    are averaged. The papers' own machines are `AdaptiveMultiHyperplaneClassifier`.

    With one plane per class the log-loss is that of logistic regression, a convex problem: `fit` then finds its minimum
    by L-BFGS, five iterations for a pass, unless `alpha` or `noise` is given. As in scikit-learn's
    `LogisticRegression`, half the sum of the squared weights is added to the sum of the losses, and nothing depends on
    `scale`, `eta0`, `batch_size`, `backoff` and `random_state`; so that units matter less, features whose variances
    sum to more than 25, or less than 5, are treated as if they summed to that.

    Training sees the features centred and multiplied by one number; the planes are over `X` as it is. Standardise
    features of different kinds; leave pixels as they are. Dense and sparse rows give the same machine.

    Under ``sklearn.config_context(array_api_dispatch=True)`` the log-loss trains on arrays of PyTorch and CuPy where
    they are, and the planes live there: see `to_numpy`. PyTorch's own
    ``torch.set_float32_matmul_precision("high")`` makes matrix products on NVIDIA devices faster and less precise.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (b). None: small machines with 1, 2, 4, 16 and up to 64 planes (96 for two classes) are
        compared on held-out training rows first; one plane is kept unless more are clearly better.
    loss : {"log", "hinge"}, default="log"
        What to minimise.
    alpha : float or None, default=None
        Log-loss: how strongly planes are drawn back to where they began. None: not at all.
    scale : float, default=2.5
        Curvature of the paraboloid, relative to what the data suggest.
    eta0 : float, default=0.3
        The first step, relative to the way from a row to the nearest centre of its class.
    noise : float or None, default=None
        Log-loss: standard deviation of the noise added to rows in training, relative to their distance from the
        nearest wall between classes. None: 0.2, less in few dimensions, none in two, and none with one plane per class.
    batch_size : int or None, default=None
        Log-loss: rows per step. None: 256. A GPU wants 4,096 or more: steps then grow with the square root of the
        batch. Batches above 256 are made smaller where a pass would have fewer than 64 of them.
    backoff : int, default=31
        Rows whose margin is ample are not visited for some epochs, at most this many: with the log-loss for 1, 3, 7,
        ..., with the hinge loss for as many as the margin would last if the planes moved on as in the last epoch. 0
        visits all rows.
    max_iter : int, default=60
        Passes over the rows, at most.
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
        Source of the centres, the orders and the noise.
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
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020. (Theorem 1: tangents of a
    convex function as planes.)

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
        tuning={"scale": [2.5, 1.0, 6.0], "eta0": [0.3, 0.1, 1.0]}, probabilities="softmax"
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
        scores = self.planes_.class_scores(X)
        xp = namespace(scores)
        likeness = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return likeness / xp.sum(likeness, axis=1, keepdims=True)
