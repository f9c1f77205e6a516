"""The Polyceptron: the perceptron of polyhedra (Manwani and Sastry, 2011)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from polyplane._array_api import astype, kind_of, namespace
from polyplane.base import Declaration
from polyplane.engine.data import AffineScaling, Data, as_rows
from polyplane.engine.method import Traits
from polyplane.engine.state import Seed, workspace
from polyplane.learners.polyhedron import (
    ADJUSTABLE,
    AffineRows,
    PolyhedronClassifier,
    PolyhedronMethod,
    PolyhedronPlanes,
    PolyhedronState,
    members,
    plane_set,
)
from polyplane.planes import PlaneSet


class Evaluation(NamedTuple):
    """How planes do on given rows."""

    planes: np.ndarray
    error: float  # share of the rows on the wrong side
    criterion: float  # mean of -y h(x) over all rows, those on the right side counting 0
    gradient_weights: Any  # (n_planes, n_rows): signed weight of the wrong rows, at their lowest plane


class Evaluator:
    """Rows to try planes on, and how the last ones did."""

    def __init__(self, data: Data, inside: int) -> None:
        self.rows = AffineRows(data.X, AffineScaling.identity(data.X.shape[1]))
        self.sign = self.rows.per_row(np.where(data.y == inside, 1.0, -1.0))
        self.weight = self.rows.per_row(data.training_weight)
        self.total = data.training_weight.sum()
        self._last: Evaluation | None = None

    def at(self, planes: np.ndarray) -> Evaluation:
        """Try planes on the rows; those of the last time are not tried again."""
        if self._last is None or self._last.planes is not planes:
            self._last = self._evaluate(planes)
        return self._last

    def _evaluate(self, planes: np.ndarray) -> Evaluation:
        """A row on a plane is on the wrong side, whatever its class."""
        scores = self.rows.scores(planes)
        xp = namespace(scores)
        lowest = xp.min(scores, axis=0)
        at_fault = xp.where(self.sign * lowest <= 0, self.weight, xp.zeros_like(self.weight))
        owner = members(xp.argmin(scores, axis=0), len(planes))
        return Evaluation(
            planes,
            float(xp.sum(at_fault)) / float(self.total),
            float(at_fault @ xp.abs(lowest)) / float(self.total),
            astype(owner, at_fault.dtype) * (at_fault * self.sign),
        )

    def gradient(self, evaluation: Evaluation) -> np.ndarray:
        """The sum over the wrong rows of each plane, minus the gradient of E; (n_planes, n_features + 1)."""
        return self.rows.sums(evaluation.gradient_weights)


@dataclass(frozen=True, eq=False)
class PolyceptronState(PolyhedronState):
    """The state of training."""

    mean: PolyhedronPlanes  # of the planes after each step
    pocket: PolyhedronPlanes  # the planes with the fewest errors so far
    seed: Seed
    steps: int = 0
    error: float = math.inf
    pocket_error: float = math.inf
    criterion: float = math.inf
    gradient_norm: float = math.inf  # batch: sum of the gradients' lengths; online: mistakes of the last pass
    evaluator: Evaluator | None = workspace()


@dataclass(frozen=True)
class Polyceptron(PolyhedronMethod[PolyceptronState]):
    """Algorithms 1 (batch) and 2 (online) of the paper, with a pocket or without."""

    trial_steps: int = 100
    mode: str = "batch"
    eta0: float = 0.1
    average: bool = True
    pocket: bool = True
    tol: float | None = 0.0
    shuffle: bool = True

    @property
    def traits(self) -> Traits:
        """The batch form is made of matrix products."""
        adjustable = ADJUSTABLE | {"mode", "eta0", "average", "pocket", "tol", "shuffle"}
        return Traits(PolyceptronState, adjustable, takes_device_arrays=self.mode == "batch")

    def start(self, data: Data, seed: int) -> PolyceptronState:
        """Planes between the classes."""
        scaling = AffineScaling.identity(data.X.shape[1])

        def begin(planes: np.ndarray, inside: int) -> PolyceptronState:
            return PolyceptronState(planes, inside, kind_of(data.X), planes, planes, seed)

        return self.best_start(data, seed, scaling, begin, lambda state: state.pocket_error)

    def _prepared(self, state: PolyceptronState, data: Data) -> PolyceptronState:
        """The state on other rows than before: what is in the pocket is tried on them anew."""
        self.check(data)
        evaluator = self._evaluator(data, state.inside)
        return replace(state, pocket_error=evaluator.at(state.pocket).error, evaluator=evaluator)

    def _evaluator(self, data: Data, inside: int) -> Evaluator:
        return Evaluator(data, inside)

    def step(self, state: PolyceptronState, data: Data) -> PolyceptronState:
        """Move the planes, and put them in the pocket unless those there make fewer errors and are to be kept."""
        if state.evaluator is None:
            state = self._prepared(state, data)
        assert state.evaluator is not None
        planes, gradient_norm = (self._batch if self.mode == "batch" else self._online)(state, data)
        steps = state.steps + 1
        mean = state.mean + (planes - state.mean) / (steps + 1)
        candidate, pocket = state.evaluator.at(mean if self.average else planes), (state.pocket, state.pocket_error)
        if not self.pocket or candidate.error <= state.pocket_error:
            pocket = candidate.planes, candidate.error
        _, error, criterion, _ = state.evaluator.at(planes)
        return replace(
            state,
            planes=planes,
            mean=mean,
            pocket=pocket[0],
            pocket_error=pocket[1],
            steps=steps,
            error=error,
            criterion=criterion,
            gradient_norm=gradient_norm,
        )

    def _batch(self, state: PolyceptronState, data: Data) -> tuple[np.ndarray, float]:
        """Algorithm 1: each plane by the sum over the wrong rows whose lowest plane it is."""
        assert state.evaluator is not None
        gradient = state.evaluator.gradient(state.evaluator.at(state.planes))
        norm = float(np.linalg.norm(gradient, axis=1).sum())
        if self.tol is not None and norm <= self.tol:
            return state.planes, norm
        return state.planes + self.eta0 * gradient, norm

    def _online(self, state: PolyceptronState, data: Data) -> tuple[np.ndarray, float]:
        """Algorithm 2: one pass."""
        from polyplane.kernels.polyceptron import polyceptron_epoch
        from polyplane.kernels.rows import PlaneSums

        assert state.evaluator is not None
        order = data.train
        if self.shuffle:
            order = np.random.default_rng([state.seed, state.steps]).permutation(order)
        sums = PlaneSums(np.array(state.planes[:, :-1].T, order="C"), state.planes[:, -1].copy(), 1.0)
        step, score = self.eta0 * state.evaluator.weight, np.empty(len(state.planes))
        mistakes = polyceptron_epoch(as_rows(data.X), order, state.evaluator.sign, step, sums, score)
        return np.column_stack([sums.coef.T, sums.intercept]), float(mistakes)

    def planes(self, state: PolyceptronState) -> PlaneSet:
        """Those in the pocket, where no pocket is kept the last."""
        scaling = AffineScaling.identity(state.pocket.shape[1] - 1)
        return plane_set(state.pocket, scaling, state.inside, state.rows_like)

    def metrics(self, state: PolyceptronState) -> Mapping[str, float]:
        """Errors of the planes and of those in the pocket, the criterion, and the length of the gradient."""
        names = ("error", "pocket_error", "criterion", "gradient_norm")
        return {name: getattr(state, name) for name in names if self.pocket or name != "pocket_error"}

    def done(self, state: PolyceptronState) -> bool:
        """Whether the gradient is short, or mistakes are few."""
        return self.tol is not None and state.gradient_norm <= self.tol


@dataclass(eq=False, repr=False, kw_only=True)
class PolyceptronClassifier(PolyhedronClassifier):
    r"""Polyceptron: one class inside a polyhedron, by the perceptron rule.

    A row is inside when :math:`h(x) = \min_k f_k(x) > 0` with :math:`f_k(x) = w_k x + b_k`. With :math:`y = +1` inside
    and :math:`-1` outside, the criterion is the perceptron's:

    .. math:: E(\Theta) = - \sum_{i: \, y_i h(x_i) \le 0} y_i \, h(x_i)

    A misclassified row moves its lowest plane by :math:`\eta \, y x`. The batch form moves all planes at once by
    the sums over the wrong rows; the online form moves one plane at each mistake. Steps may add errors, so the planes
    with the fewest training errors are kept (the pocket).

    The algorithms of the paper are ``pocket=False, average=False``, which return the last planes. Two misprints of
    Algorithm 1 are corrected: it goes on while the gradients are longer than the threshold, not shorter, and sums over
    the wrong rows of each plane, not over all.

    The perceptron rule depends on the units of the features: standardise them first. For more than two classes:
    ``sklearn.multiclass.OneVsRestClassifier(PolyceptronClassifier())``. Under
    ``sklearn.config_context(array_api_dispatch=True)`` the batch form learns from arrays of PyTorch and CuPy where they
    are.

    Parameters
    ----------
    n_planes : int, default=2
        Number of planes, the sides of the polyhedron (K).
    mode : "batch" or "online", default="batch"
        Move on sums over all wrong rows, or row by row.
    inside : label, default=None
        The class in the convex region. None: each class is tried for 100 steps, and the one with fewer errors is kept.
    eta0 : float, default=0.1
        Step size (:math:`\eta`), constant.
    average : bool, default=True
        Let the mean of the planes after each step compete for the pocket, not the planes themselves: steadier where
        the classes overlap, though the mean of planes that come to separate the rows need not separate them.
    pocket : bool, default=True
        Keep the planes with the fewest training errors. False: the last ones, as in the paper.
    n_init : int, default=1
        Number of starts. The first splits the class outside along its long axes, the others at random; each is given
        100 steps, and the one with the fewest errors is kept. A wrong split of the class outside is seldom repaired by
        later steps: 10 starts are worth their time on small data.
    tol : float or None, default=0.0
        Batch: stop when the sum of the lengths of the planes' gradients is no more than this (:math:`\gamma`, 50 in the
        paper). Online: stop after a pass with no more mistakes than this.
    max_iter : int, default=1000
        Maximum number of batch steps, or of passes over the rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. "balanced": inversely proportional to class frequencies.
    warm_start : bool, default=False
        Continue from the solution of the previous `fit`.
    random_state : int, RandomState or None, default=None
        Controls the order in which rows are visited, and the random starts after the first.
    verbose : int, default=0
        If positive, show progress.

    Attributes
    ----------
    planes_ : PlaneSet
        The model: the class outside owns the planes :math:`-f_k`, the class inside the zero plane.
    inside_ : label
        The class inside.
    classes_ : ndarray of shape (2,)
        The labels.
    coef_, intercept_ : ndarray
        The planes, class by class: those of ``planes_``.
    n_iter_ : int
        Steps made.
    history_ : dict
        After each step: "time", "error" (share of the training rows on the wrong side), "pocket_error" (the same for
        the planes in the pocket, where one is kept; it never rises), "criterion" (E over the number of rows) and
        "gradient_norm" (what `tol` is compared with: the sum of the lengths of the planes' gradients, or online the
        number of mistakes).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    N. Manwani and P. S. Sastry. Polyceptron: A Polyhedral Learning Algorithm. arXiv:1107.1564.

    Examples
    --------
    >>> from polyplane import PolyceptronClassifier
    >>> from polyplane.datasets import make_polyhedron
    >>> X, y = make_polyhedron(n_features=3, n_planes=3, random_state=0)
    >>> polyceptron = PolyceptronClassifier(n_planes=3, n_init=10, random_state=0).fit(X[:700], y[:700])
    >>> print(f"{polyceptron.score(X[700:], y[700:]):.2f}")
    0.97
    """

    mode: str = "batch"
    eta0: float = 0.1
    average: bool = True
    pocket: bool = True
    tol: float | None = 0.0
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "mode": [StrOptions({"batch", "online"})],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"n_planes": [2, 3, 5, 8], "mode": ["batch", "online"]},
        multi_class=False,
        label_parameters=("inside",),
    )

    def _method(self, classes: np.ndarray) -> Polyceptron:
        return self._polyhedron_method(Polyceptron, classes)
