"""The Polyceptron: the perceptron of polyhedra."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane._array_api import astype, kind_of, namespace
from polyplane._validation import Data
from polyplane.learners._polyhedron import PolyhedronLearner, Rows, members
from polyplane.learners._units import Units
from polyplane.planes import PlaneSet


class Verdict(NamedTuple):
    """How planes do on given rows."""

    planes: np.ndarray
    error: float  # share of the rows on the wrong side
    criterion: float  # mean of -y h(x) over all rows, those on the right side counting 0
    pull: Any  # (n_planes, n_rows): signed weight of the wrong rows, at their lowest plane


class Bench:
    """Rows to try planes on, and what is remembered of the last trials."""

    def __init__(self, data: Data, inside: int) -> None:
        self.rows = Rows(data.X, Units.raw(data.X.shape[1]))
        self.sign = self.rows.spread(np.where(data.y == inside, 1.0, -1.0))
        self.weight = self.rows.spread(data.training_weight)
        self.total = data.training_weight.sum()
        self.last: Verdict | None = None
        self.pocket: np.ndarray | None = None

    def judge(self, planes: np.ndarray) -> Verdict:
        """Try planes on the rows. A row on a plane is on the wrong side, whatever its class."""
        if self.last is not None and self.last.planes is planes:
            return self.last
        scores = self.rows.scores(planes)
        xp = namespace(scores)
        lowest = xp.min(scores, axis=0)
        at_fault = xp.where(self.sign * lowest <= 0, self.weight, xp.zeros_like(self.weight))
        owner = members(xp.argmin(scores, axis=0), len(planes))
        self.last = Verdict(
            planes,
            float(xp.sum(at_fault)) / float(self.total),
            float(at_fault @ xp.abs(lowest)) / float(self.total),
            astype(owner, at_fault.dtype) * (at_fault * self.sign),
        )
        return self.last


class PolyceptronState(NamedTuple):
    """Everything that training needs to go on."""

    planes: np.ndarray  # (n_planes, n_features + 1), offset last
    mean: np.ndarray  # of the planes after each step
    pocket: np.ndarray  # the planes with the fewest errors so far
    inside: int
    seed: int
    steps: int
    kind: Any  # tells where the rows were, and their dtype
    error: float
    pocket_error: float
    criterion: float
    push: float  # batch: sum of the gradients' lengths; online: mistakes of the last pass


class PolyceptronClassifier(PolyhedronLearner):
    r"""Polyceptron: one class inside a polyhedron, by the perceptron rule.

    A row is inside when :math:`h(x) = \min_k f_k(x) > 0` with :math:`f_k(x) = w_k x + b_k`. With :math:`y = +1` inside
    and :math:`-1` outside, the criterion is the perceptron's:

    .. math:: E(\Theta) = - \sum_{i: \, y_i h(x_i) \le 0} y_i \, h(x_i)

    A row on the wrong side moves its lowest plane by :math:`\eta \, y x`. The batch form moves all planes at once by
    the sums over the wrong rows; the online form moves one plane at each mistake. Steps may add errors, so the planes
    with the fewest training errors are kept (the pocket).

    The perceptron rule is not blind to units: standardise the features first. For more than two classes:
    ``sklearn.multiclass.OneVsRestClassifier(PolyceptronClassifier())``. Under
    ``sklearn.config_context(array_api_dispatch=True)`` the batch form learns from arrays of PyTorch and CuPy where they
    are.

    Parameters
    ----------
    n_planes : int, default=2
        Sides of the polyhedron (K).
    mode : "batch" or "online", default="batch"
        Move on sums over all wrong rows, or row by row.
    inside : label, default=None
        The class in the convex region. None: the second class.
    eta0 : float, default=0.1
        Length of a step (:math:`\eta`), which stays as it is.
    average : bool, default=False
        Let the mean of the planes after each step compete for the pocket, not the planes themselves: steadier where
        the classes overlap.
    n_init : int, default=1
        Number of starts. The first splits the class outside along its long axes, the others at random; each is given
        100 steps, and the one with the fewest errors goes on. A wrong split of the class outside is seldom repaired by
        later steps: 10 starts are worth their time on small data.
    tol : float or None, default=0.0
        Batch: stop when the sum of the lengths of the planes' gradients is no more than this (:math:`\gamma`, 50 in the
        paper). Online: stop after a pass with no more mistakes than this.
    max_iter : int, default=1000
        Batch steps, or passes over the rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    shuffle : bool, default=True
        Visit the rows in a new order at each pass of the online form.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    random_state : int, RandomState or None, default=None
        Source of the orders, and of the starts after the first.
    n_jobs : int or None, default=None
        Threads in prediction.
    verbose : int, default=0
        Show progress.

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
        the planes in the pocket; it never rises), "criterion" (E over the number of rows) and "push" (what `tol` looks
        at).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    N. Manwani and P. S. Sastry. Polyceptron: A Polyhedral Learning Algorithm. arXiv:1107.1564.

    Examples
    --------
    >>> from polyplane import PolyceptronClassifier
    >>> from polyplane.datasets import make_polyceptron_1
    >>> X, y = make_polyceptron_1(random_state=0)
    >>> polyceptron = PolyceptronClassifier(n_planes=3, n_init=10, random_state=0).fit(X[:700], y[:700])
    >>> print(f"{polyceptron.score(X[700:], y[700:]):.2f}")
    0.95
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PolyhedronLearner._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left")],
        "mode": [StrOptions({"batch", "online"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "average": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    _trial_steps = 100

    def __init__(
        self,
        n_planes: int = 2,
        *,
        mode: str = "batch",
        inside: Any = None,
        eta0: float = 0.1,
        average: bool = False,
        n_init: int = 1,
        tol: float | None = 0.0,
        max_iter: int = 1000,
        class_weight: Any = None,
        shuffle: bool = True,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_planes = n_planes
        self.mode = mode
        self.inside = inside
        self.eta0 = eta0
        self.average = average
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _takes_foreign_arrays(self) -> bool:
        return self.mode == "batch"

    def _start(self, data: Data, seed: int) -> PolyceptronState:
        starts = list(self._starts(data, seed))
        if len(starts) == 1:
            return starts[0]
        return min((self._trial(start, data) for start in starts), key=lambda state: state.pocket_error)

    def _starts(self, data: Data, seed: int) -> Iterator[PolyceptronState]:
        inside = self._inside_class()
        rows = Rows(data.X, Units.raw(data.X.shape[1]))
        unknown = np.inf
        for planes in self._start_planes(rows, data, inside, seed):
            yield PolyceptronState(
                planes, planes, planes, inside, seed, 0, kind_of(data.X), unknown, unknown, unknown, unknown
            )

    def _step(self, state: PolyceptronState, data: Data) -> PolyceptronState:
        bench = data.recall(lambda: Bench(data, state.inside))
        if bench.pocket is not state.pocket:  # other rows than before: what is in the pocket is tried on them anew
            state = state._replace(pocket_error=bench.judge(state.pocket).error)
        planes, push = (self._batch if self.mode == "batch" else self._online)(state, data, bench)
        steps = state.steps + 1
        mean = state.mean + (planes - state.mean) / (steps + 1)
        state = state._replace(planes=planes, mean=mean, steps=steps, push=push)
        return self._pocketed(state, bench)

    def _batch(self, state: PolyceptronState, data: Data, bench: Bench) -> tuple[np.ndarray, float]:
        """Algorithm 1: each plane by the sum over the wrong rows whose lowest plane it is."""
        gradient = bench.rows.sums(bench.judge(state.planes).pull)
        push = float(np.linalg.norm(gradient, axis=1).sum())
        if self.tol is not None and push <= self.tol:
            return state.planes, push
        return state.planes + self.eta0 * gradient, push

    def _online(self, state: PolyceptronState, data: Data, bench: Bench) -> tuple[np.ndarray, float]:
        """Algorithm 2: one pass."""
        from polyplane.kernels.polyceptron import polyceptron_epoch
        from polyplane.kernels.rows import PlaneSums, as_rows

        order = data.train
        if self.shuffle:
            order = np.random.default_rng([state.seed, state.steps]).permutation(order)
        sums = PlaneSums(np.array(state.planes[:, :-1].T, order="C"), state.planes[:, -1].copy(), 1.0)
        score = np.empty(len(state.planes))
        mistakes = polyceptron_epoch(as_rows(data.X), order, bench.sign, self.eta0 * bench.weight, sums, score)
        return np.column_stack([sums.coef.T, sums.intercept]), float(mistakes)

    def _pocketed(self, state: PolyceptronState, bench: Bench) -> PolyceptronState:
        """Put the planes in the pocket unless those there make fewer errors."""
        candidate = bench.judge(state.mean if self.average else state.planes)
        if candidate.error <= state.pocket_error:
            state = state._replace(pocket=candidate.planes, pocket_error=candidate.error)
        bench.pocket = state.pocket
        now = bench.judge(state.planes)
        return state._replace(error=now.error, criterion=now.criterion)

    def _planes(self, state: PolyceptronState) -> PlaneSet:
        return self._plane_set(state.pocket, Units.raw(state.pocket.shape[1] - 1), state.inside, state.kind)

    def _figures(self, state: PolyceptronState) -> Mapping[str, float]:
        return {
            "error": state.error,
            "pocket_error": state.pocket_error,
            "criterion": state.criterion,
            "push": state.push,
        }

    def _stopping_rule(self) -> Callable[[Mapping[str, float]], bool]:
        return lambda figures: self.tol is not None and figures["push"] <= self.tol

    def _train(self, state: PolyceptronState, data: Data, held_out: np.ndarray | None) -> None:
        self._check_rows(data, state.inside)
        super()._train(state, data, held_out)

    def _finish(self, state: PolyceptronState, data: Data) -> None:
        self.inside_ = self.classes_[state.inside]
