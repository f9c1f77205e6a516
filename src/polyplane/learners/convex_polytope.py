"""The Convex Polytope Machine (Kantchelian et al., 2014): its estimator, and joint training from a tangent start.

Polytopes that are trained alone, as in the paper, are in `polyplane.learners.sgd`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import repeat
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import row_norms

from polyplane._array_api import in_threads
from polyplane.base import Declaration, EpochParameters, PlaneClassifier, class_index
from polyplane.engine.data import Data, as_rows, moments
from polyplane.engine.method import Traits
from polyplane.engine.run import Choice, Race, Run
from polyplane.engine.state import Array, MixedNumber, Number, workspace
from polyplane.learners.sgd import (
    ADJUSTABLE,
    LARGEST_GROWTH,
    ConvexPolytope,
    InverseTimeSGD,
    MeasuredRows,
    PolytopeState,
    SgdState,
    SummedPlanes,
    better_planes,
    pieces,
    window_of,
)
from polyplane.learners.tangents import SkippedRows, kmeans, sampled
from polyplane.planes import PlaneSet

#: Minimum number of rows of a class per centre.
ROWS_PER_CENTRE = 3


class ClassCentres(NamedTuple):
    """The centres of the rows of each class, relative to the mean of all rows."""

    of_class: list[np.ndarray]  # each of shape (n_centres, n_features); empty for a class without rows
    mean: np.ndarray
    square: float  # the mean squared distance of the rows from their mean

    @classmethod
    def of(cls, data: Data, n_planes: int, seed: int) -> ClassCentres:
        """Compute up to `n_planes` centres of each class."""
        X, y, rows, rng = data.X, data.y, data.train, np.random.default_rng(seed)
        mean = moments(X, np.isin(np.arange(X.shape[0]), rows).astype(X.dtype))[0]
        found = []
        for c in range(data.n_classes):
            own = rows[y[rows] == c]
            n_centres = int(np.clip(len(own) // ROWS_PER_CENTRE, 1, n_planes))
            own = X[sampled(own, n_centres, rng)]
            centres = kmeans(own, n_centres, rng, in_float64=True) if own.shape[0] else np.zeros((0, X.shape[1]))
            if n_centres == 1 and own.shape[0]:  # more precisely
                centres = np.asarray(own.mean(axis=0), dtype=np.float64).reshape(1, -1)
            found.append(centres - mean if own.shape[0] else centres)
        return cls(found, mean, float(mean_square(X, rows, 0.0) - mean @ mean))

    def tangent_sums(self, n_planes: int, weight: float, bias_input: float, dtype: Any) -> tuple[Any, Any]:
        """Initial sums, in columns, class by class: `weight` times the tangents of |x - mean|^2 at the centres.

        These planes predict the class of the nearest centre, and each counts as an update by `weight` rows. A class
        with few rows has several planes at the same centre, all but the first lower; a class without rows has them at
        the mean.
        """
        coef = np.empty((len(self.mean), len(self.of_class) * n_planes), dtype=dtype)
        intercept = np.empty(coef.shape[1], dtype=dtype)
        for c, centres in enumerate(self.of_class):
            lower = np.zeros(n_planes)
            lower[len(centres) :] = self.square
            if not len(centres):
                centres = np.zeros((1, len(self.mean)))
            columns = slice(c * n_planes, (c + 1) * n_planes)
            at = np.arange(n_planes) % len(centres)
            coef[:, columns] = 2.0 * weight * centres[at].T
            offsets = -(centres * centres).sum(axis=1) - 2.0 * centres @ self.mean
            intercept[columns] = weight * (offsets[at] - lower)
        return coef, intercept * dtype.type(bias_input)


def mean_square(X: Any, rows: np.ndarray, bias_input: float) -> float:
    """The mean squared norm of the rows with these indices, including the constant feature."""
    return float(row_norms(X, squared=True)[rows].mean(dtype=np.float64)) + bias_input**2


_MEAN = Array("f", "features", "columns", in_place=False, mixed=True)
_MEAN_OFFSETS = Array("f", "columns", in_place=False, mixed=True)


@dataclass(frozen=True, eq=False)
class JointMemory(SkippedRows):
    """The memory of each row."""

    recorded: Annotated[np.ndarray, Array("int32", "rows", below="columns")]  # plane of its class, for the entropy
    margins: Annotated[np.ndarray, Array("f", "measured", in_place=False)] | None = None  # of measured rows


@dataclass(frozen=True, eq=False)
class JointState(SummedPlanes, SgdState):
    """The state of training. Columns are planes, class by class; arrays hold `margin` times the planes.

    The start counts as one visit per row, because the initial planes already separate the classes.
    """

    coef: Annotated[np.ndarray, Array("f", "features", "columns", by_feature=True, mixed=True, scaled_by="margin")]
    intercept: Annotated[np.ndarray, Array("f", "columns", mixed=True, scaled_by="margin")]
    counts: Annotated[np.ndarray, Array("i", "columns", mixed=True)]  # rows recorded at each plane, for the entropy
    n_classes: int
    alpha: float  # given or chosen on held-out rows
    margin: MixedNumber
    mean: tuple[Annotated[np.ndarray, _MEAN], Annotated[np.ndarray, _MEAN_OFFSETS]] | None = None
    rows: JointMemory | None = None
    workspace: MeasuredRows | None = workspace()

    def check(self, sizes: dict[str, int]) -> bool:
        """Classes own equal numbers of planes; counts are not negative; alpha and the margin are positive."""
        if self.n_classes != sizes["classes"]:
            return False
        even = len(self.intercept) == sizes.get("n_planes", self.n_planes) * self.n_classes
        return even and self.alpha > 0 and self.margin > 0 and bool((self.counts >= 0).all())

    @property
    def n_planes(self) -> int:
        """Number of planes per class."""
        return len(self.intercept) // self.n_classes

    @property
    def step(self) -> float:
        """Last step size."""
        return 1.0 / (self.alpha * min(self.t, self.window))


@dataclass(frozen=True)
class JointPolytope(InverseTimeSGD[JointState]):
    """Stochastic gradient descent with the steps 1 / (alpha t) on the margin to the best rival class.

    `n_planes` and `alpha` are chosen before training, if None; see `choose_sides`.
    """

    n_planes: int | None = None
    alpha: float | None = None
    start_weight: float = 10.0  # each initial plane counts as an update by this many rows

    traits = Traits(JointState, ADJUSTABLE, fades=True, mixable=True)

    def start(self, data: Data, seed: int) -> JointState:
        """Start from the tangent planes above the centres of each class."""
        assert self.n_planes is not None, "the number of planes is chosen before training"
        return self.begin(data, ClassCentres.of(data, self.n_planes, seed), seed)

    def begin(self, data: Data, centres: ClassCentres, seed: int) -> JointState:
        """The state before the first step, from given centres."""
        assert self.n_planes is not None
        assert self.alpha is not None
        sums = centres.tangent_sums(self.n_planes, self.start_weight, self._bias_input, data.X.dtype)
        counts, t = np.zeros(len(sums[1]), dtype=np.int64), len(data.train)
        return JointState(*sums, counts, data.n_classes, self.alpha, self.alpha * t, seed=seed, t=t)

    def step(self, state: JointState, data: Data) -> JointState:
        """One epoch: all rows, in a random order."""
        if state.rows is None or state.workspace is None:
            n = len(data.y)
            rows = state.rows or JointMemory(np.zeros((1, n), dtype=np.uint8), np.full(n, -1, dtype=np.int32))
            state = state.replace(rows=rows, workspace=self._measured_rows(data))
        order = self._permutation(state.seed, state.epoch, data)
        state = state.paced(window_of(data.half_life), state.alpha)
        state, movement = self._measured(state, data)
        return self._averaged(self._epoch(state, order, movement, data), data)

    def _measured(self, state: JointState, data: Data) -> tuple[JointState, float]:
        """Record the margins of the measured rows; return the movement of margins per pass and norm of the row.

        An update changes two planes, and the best rival class changes, so margins move less evenly than scores. Twice
        the movement is assumed, which gives the same errors as training without skipping rows.
        """
        rows, measured = state.rows, state.workspace
        assert rows is not None
        if measured is None:
            return state, math.inf
        X, index = measured.X, np.arange(len(measured.y))
        scores = np.asarray(X @ state.coef[: X.shape[1]]) + state.intercept
        best = scores.reshape(len(scores), state.n_classes, -1).max(axis=2)
        own = best[index, measured.y]
        best[index, measured.y] = -np.inf
        margins = (own - best.max(axis=1)) / own.dtype.type(state.margin)
        before, state = rows.margins, state.replace(rows=rows.replace(margins=margins))
        if before is None or before.shape != margins.shape:
            return state, math.inf
        return state, 2.0 * float(measured.movement(margins, before, state.step))

    def _epoch(self, state: JointState, order: np.ndarray, movement: float, data: Data) -> JointState:
        """The state after visiting the rows of `order`; its average is not updated."""
        from polyplane.kernels.convex_polytope import JointProblem, Memory, SgdProgress, joint_epoch
        from polyplane.kernels.rows import PlaneSums

        memory, measured = state.rows, state.workspace
        assert memory is not None
        min_entropy = self.min_entropy * math.log(state.n_planes)
        problem = JointProblem(data.y, data.weight, state.n_planes, state.alpha, min_entropy)
        kept = Memory(memory.recorded, state.counts, np.empty((state.n_classes, 2))) if min_entropy > 0.0 else None
        backoff = self._backoff(memory, 0, movement, measured, data)
        rows, score, loss, updates = as_rows(data.X), np.empty_like(state.intercept), 0.0, 0
        for piece in pieces(order, state.window):
            planes = PlaneSums(state.coef[: data.X.shape[1]], state.intercept, self._bias_input)
            pace = SgdProgress(state.t, state.margin, state.window)
            part = joint_epoch(rows, piece, pace, planes, problem, kept, backoff, score)
            loss, updates = loss + part[0], updates + part[1]
            state = state.replace(t=min(state.t + len(piece), state.window), margin=part[2])
            if state.margin > LARGEST_GROWTH * state.alpha * state.window:
                state = state.rescaled(state.alpha * state.window)
        if state.t == state.window:
            state.counts[:] = state.counts * math.exp(-len(order) / state.window)
        if measured is not None:
            state = state.replace(rows=memory.checked(backoff.checks.found, data, power=4.0))
        share = 1.0 / len(order)
        return state.replace(epoch=state.epoch + 1, loss=loss * share, updates=updates * share, prefers_last=False)

    def planes(self, state: JointState) -> PlaneSet:
        """All classes own the same number of planes."""
        coef, intercept = state.last_planes() if state.prefers_last else state.average(state.share)
        indptr = np.arange(state.n_classes + 1) * state.n_planes
        return PlaneSet(np.ascontiguousarray(coef.T), intercept.copy(), indptr)

    def predict(self, state: JointState, X: Any) -> np.ndarray:
        """The classes of the rows, without a copy of the planes: they may have millions of features."""
        codes: np.ndarray = state.scores(X, state.share).argmax(axis=1) // state.n_planes
        return codes

    def widen(self, state: JointState, n_features: int) -> JointState:
        """Add capacity for more features."""
        return state.widened(n_features)

    def done(self, state: JointState) -> float:
        """The loss."""
        return state.loss


# What is left open.

#: Numbers of planes per class to try, and the number for a stream, where no trials are possible.
SIDES, IN_A_STREAM = (1, 4, 16, 48), 16
#: Minimum number of rows per plane, in a class of median size.
ROWS_PER_SIDE = 2
#: Weights of the start to try. With a small weight, planes move freely; with a large one, they stay near their initial
#: rows, which a checkerboard needs.
START_WEIGHTS = (3.0, 30.0)
#: Regularisation to try, first that of the first trials: alpha relative to the mean squared norm of a row divided by
#: the number of rows.
STRENGTHS = (0.3, 0.03, 0.1, 1.0, 3.0)
#: alpha in a stream, relative to the mean squared norm of a row.
STREAM_ALPHA = 1e-6
#: Maximum number of rows of a trial, minimum number of held-out rows of all splits, and passes of a trial.
SIDES_ROWS, ROWS_TO_JUDGE, SIDES_PASSES = 4000, 1000, 20


class Sides(NamedTuple):
    """A candidate: planes per class, weight of the start and strength of the regularisation."""

    n_planes: int
    start_weight: float
    strength: float


def choose_sides(method: Any, data: Data, seed: int) -> Choice:
    """Choose the number of planes, the weight of the start and `alpha` of a `JointPolytope`, if one is not given.

    First the number of planes and the weight of the start, with the first strength; then the strength. Candidates with
    the same number of planes share the centres that they start from.
    """
    if method.n_planes is not None and method.alpha is not None:
        return Choice(method)
    square = mean_square(data.X, data.train, 0.0) or 1.0
    if data.stream:
        n_planes, alpha = method.n_planes or IN_A_STREAM, method.alpha or STREAM_ALPHA * square
        return Choice(replace(method, n_planes=n_planes, alpha=alpha))

    def method_with(candidate: Sides, n_rows: int) -> Any:
        alpha = method.alpha or candidate.strength * square / n_rows
        return replace(method, n_planes=candidate.n_planes, alpha=alpha, start_weight=candidate.start_weight)

    # Random splits; several if there are few rows.
    rng, n_rows = np.random.default_rng([seed, 1]), min(SIDES_ROWS, len(data.train))
    n_held_out = n_rows // 4
    n_splits = int(np.clip(ROWS_TO_JUDGE // max(n_held_out, 1), 1, 10))
    drawn = [rng.permutation(data.train)[:n_rows] for _ in range(n_splits)]
    folds = [Fold(data, np.sort(rows[n_held_out:]), rows[:n_held_out]) for rows in drawn]

    def losses(candidates: Sequence[Sides], number: int) -> list[float]:
        fold = folds[number]
        in_threads(lambda k: fold.centres(k, seed), {each.n_planes for each in candidates}, method.n_jobs)
        trials = [method_with(candidate, len(fold.data.train)) for candidate in candidates]
        return in_threads(lambda trial: fold.error(trial, seed), trials, method.n_jobs)

    race: Race[Sides] = Race(losses)

    def best(candidates: list[Sides]) -> Sides:
        left = race.run(candidates, range(len(folds)))
        return min(left, key=lambda candidate: sum(race.losses(candidate).tolist()))

    most = max(1, int(np.median(data.class_counts)) // ROWS_PER_SIDE)
    levels = [k for k in SIDES if k <= most] if method.n_planes is None else [method.n_planes]
    found = best([Sides(k, weight, STRENGTHS[0]) for k in levels for weight in START_WEIGHTS[: 1 + (k > 1)]])
    if not method.alpha:
        found = best([found._replace(strength=strength) for strength in STRENGTHS])
    chosen = method_with(found, len(data.train))
    settings = {"n_planes": found.n_planes, "alpha": chosen.alpha, "start_weight": found.start_weight}
    return Choice(chosen, settings, race.table(Sides._asdict))


class Fold:
    """Training rows and held-out rows of short trainings, and the centres that these start from."""

    def __init__(self, data: Data, train: np.ndarray, held_out: np.ndarray) -> None:
        self._whole = replace(data, train=train)
        own = np.arange(len(train))
        parts = {"X": data.X[train], "y": data.y[train], "weight": data.weight[train], "train": own}
        self.data = replace(data, **parts, memory={})
        self._held_out = data.X[held_out], data.y[held_out], data.weight[held_out]
        self._centres: dict[int, ClassCentres] = {}

    def centres(self, n_planes: int, seed: int) -> ClassCentres:
        """The centres of each class, computed once."""
        if n_planes not in self._centres:
            self._centres[n_planes] = ClassCentres.of(self._whole, n_planes, seed)
        return self._centres[n_planes]

    def error(self, trial: Any, seed: int) -> float:
        """The error on held-out rows after a short training on the others."""
        state = trial.begin(self.data, self.centres(trial.n_planes, seed), seed)
        run = Run(trial, state, tracked=False).go(repeat(self.data, SIDES_PASSES))
        X, y, weight = self._held_out
        return float(np.average(trial.predict(run.state, X) != y, weights=weight))


#: Rows per block when rows are assigned to the fitted planes.
ROWS_AT_ONCE = 1 << 14
#: Default number of sides of a polytope that is trained alone, and default regularisation.
SIDES_ALONE, ALPHA_ALONE = 16, 1e-4


@dataclass(eq=False, repr=False)
class ConvexPolytopeClassifier(EpochParameters, PlaneClassifier):
    r"""Convex Polytope Machine: each class owns the planes of a polytope, and scores its best plane.

    The class with the largest :math:`\max_k W_{ck} x` wins. By default the planes of all classes are trained together,
    so that each row beats the best plane of any other class by 1:

    .. math::

        \frac{\alpha}{2} \sum_{c, k} |W_{ck}|^2
        + \frac{1}{n} \sum_i \Big[1 + \max_{c \ne y_i, k} W_{ck} x_i - W_{y_i z(i)} x_i\Big]_+

    where :math:`z(i)` is the best plane of the row's own class, or with `min_entropy` the one that it is assigned to.
    Training starts from the planes tangent to a paraboloid above the k-means centres of each class.

    With ``enclosed="each"`` each polytope is trained alone, as in the paper. Rows of the other classes are pushed
    inside the polytope of class :math:`c`, below *every* side; a row of class :math:`c` is lifted over *one* side:

    .. math::

        \frac{\alpha}{2} \sum_k |W_k|^2
        + \frac{1}{n} \sum_{i: y_i \ne c} \sum_k \left[1 + W_k x_i\right]_+
        + \frac{1}{n} \sum_{i: y_i = c} \left[1 - W_{z(i)} x_i\right]_+

    For two classes this is the paper's double-sided classifier; the paper's classifier for more classes is
    ``OneVsOneClassifier(ConvexPolytopeClassifier(enclosed="each"))`` with scikit-learn's `OneVsOneClassifier`.

    All are minimised by stochastic gradient descent with the step :math:`1 / (\alpha t)`. The planes shrink before an
    update is added, as in Pegasos; in Algorithm 1 of the paper they shrink after it, which multiplies each update by
    :math:`1 - 1 / t`. The paper's algorithm is ``enclosed="each", backoff=0, average=False``.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (K). None: 1, 4, 16 or 48, chosen on held-out rows by short trainings; 16 in a stream and
        where polytopes are trained alone.
    enclosed : label, "each" or None, default=None
        None: the planes of all classes are trained together. A label, for two classes: the class that a single
        polytope encloses. "each", unless that is a label: each class is outside a polytope of its own, trained alone.
    alpha : float or None, default=None
        Strength of the regularisation on the mean loss (the paper's :math:`\lambda`). None: 0.03 to 3 times the mean
        squared norm of a row over the number of rows, chosen on held-out rows by short trainings; in a stream 1e-6
        times the mean squared norm; 1e-4 where polytopes are trained alone.
    max_iter : int, default=100
        Number of passes over the training rows (epochs). The paper fixes the number of visits T and searches ``alpha``
        in 1/T, 10/T, ..., 10000/T.
    tol : float or None, default=None
        Stop when the loss, or with `early_stopping` the validation error, has not fallen by this fraction for
        `n_iter_no_change` passes. None: make all passes; with `early_stopping`: 0.
    min_entropy : float, default=0.0
        The paper's h, as a fraction of log K. While the assignment of margin violators to planes has less entropy than
        this, violators are assigned to rarer planes: 0 leaves the assignment free, 1 aims at equal shares. It guides
        training and guarantees nothing about the fitted planes, see `plane_counts_`. The entropy of few rows means
        nothing, so the assignment is free until 5 K rows of the class outside have violated their margin; a class with
        fewer rows is never guided. Try 0.8 to 0.9 when K is large, and each class has many more than 5 K rows.
    backoff : int, default=31
        Maximum number of passes for which a row is skipped. A row is skipped for about as long as its margin lasts at
        the rate at which the planes move. In each pass a random sample of the skipped rows is visited, which shows how
        many updates are missed; rows are skipped for fewer passes where that is more than 0.5 % of all updates, by
        weight (see `history_`). 0: visit all rows in each pass, as in the paper; several times slower.
    average : bool, default=True
        Whether to use a running average of the planes, in which late passes weigh most, instead of the last planes. The
        last planes are used where they make clearly fewer errors on the training rows.
    fit_intercept : bool, default=True
        Whether to learn the offsets of the planes, which are regularised like the weights.
    standardize : {"auto", True, False}, default="auto"
        Whether `fit` trains on a copy of X with features of mean 0 and variance 1 (sparse rows: divided by their
        largest absolute values); the planes apply to X itself. "auto": if the scales
        of the features differ by a factor of 100, or one is far from 0. In streams, "auto" only warns, and True uses
        the first batch.
    probability : bool, default=False
        Whether `predict_proba` is available. Its temperature is calibrated on held-out rows: `fit` then also trains on
        four fifths of the rows, once or, with fewer than 5,000 rows, up to five times.
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
        Controls the order in which rows are visited.
    n_jobs : int or None, default=None
        Threads, in training (over short trainings, or over polytopes that are trained alone) and in prediction. The
        planes do not depend on it.
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
    assignments_ : ndarray of shape (n_rows,)
        The best plane of its class for each row of the last call, by the fitted planes; -1 for rows not trained on.
    plane_counts_ : ndarray of shape (n_planes,)
        How many rows are assigned to each plane.
    temperature_ : float
        With `probability`: the scores divided by this are log-odds.
    n_iter_ : int
        Number of passes made.
    choice_ : dict
        If `n_planes` or `alpha` was None: the short trainings that were compared, one entry each: "n_planes",
        "start_weight", "strength" (of the regularisation) and "loss", the error on held-out rows.
    history_ : dict
        After each pass: "time", "loss" (mean of the losses met, over all polytopes), "updates" (share of the visits
        that moved a plane), "step" (its length) and "missed" (estimated share of the updates that skipped rows missed
        in the last ten passes or so, by weight), and with `early_stopping` "validation_error".
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
    >>> model = ConvexPolytopeClassifier(random_state=0).fit(X_train, y_train)
    >>> model.planes_
    PlaneSet(n_classes=10, n_planes=480, n_features=64, dtype=float64)
    >>> print(f"{model.score(X_test, y_test):.2f}")
    0.98
    """

    n_planes: int | None = None
    _: KW_ONLY
    enclosed: Any = None
    alpha: float | None = None
    max_iter: int = 100
    min_entropy: float = 0.0
    backoff: int = 31
    average: bool = True
    fit_intercept: bool = True
    standardize: bool | str = "auto"
    probability: bool = False
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "standardize": ["boolean", StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"alpha": [None, 1e-5, 1e-4, 1e-3, 1e-2], "n_planes": [None, 4, 16, 48]},
        label_parameters=("enclosed",),
        choose=choose_sides,
        fitted={
            "temperature_": Number(),
            "assignments_": Array("i", "rows", below="planes"),
            "plane_counts_": Array("i", "planes"),
        },
    )

    def _method(self, classes: np.ndarray) -> ConvexPolytope | JointPolytope:
        if self.enclosed is None:
            return self._method_of(JointPolytope)
        outer = tuple(range(len(classes)))
        if self.enclosed != "each" or "each" in classes:
            if len(classes) != 2:
                raise ValueError(
                    f"enclosed={self.enclosed!r} is for two classes, but y has {len(classes)}; use enclosed=None."
                )
            outer = (1 - class_index("enclosed", self.enclosed, classes),)
        return self._method_of(
            ConvexPolytope, outer=outer, n_planes=self.n_planes or SIDES_ALONE, alpha=self.alpha or ALPHA_ALONE
        )

    def _concluded(self, method: Any, state: Any, data: Data) -> Any:
        return better_planes(method, state, data)

    def _fitted_attributes(self, state: PolytopeState | JointState, data: Data) -> Mapping[str, Any]:
        assignments = np.full(len(data.y), -1)
        for c in range(self.planes_.n_classes):
            rows = data.train[data.y[data.train] == c]
            coef, intercept = self.planes_.of(c)
            if self._scaling is not None:  # the planes are in the units of the input, the rows are scaled
                coef, intercept = coef / self._scaling.factor, intercept + coef @ self._scaling.centre
            for some in np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE)):  # to avoid a copy of all rows
                best = (np.asarray(data.X[some] @ coef.T) + intercept).argmax(axis=1)
                assignments[some] = self.planes_.indptr[c] + best
        counts = np.bincount(assignments[assignments >= 0], minlength=self.planes_.n_planes)
        return {"assignments_": assignments, "plane_counts_": counts}
