"""The adaptive multi-hyperplane machines: MM and AMM (Wang et al., 2011), GAMM (Djuric et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane.base import Declaration, EpochParameters, PlaneClassifier
from polyplane.engine.data import AffineScaling, Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import Array, RowMemory, workspace
from polyplane.learners.multi_hyperplane import CHECKS_PER_EPOCH, KernelRows, PlaneColumns, plane_sums
from polyplane.learners.tangents import Schedule
from polyplane.planes import PlaneSet

#: In a stream, planes are averaged once per this many dense rows of a batch.
ROWS_PER_CHECK = 64


class AveragedPart(NamedTuple):
    """The visits of a pass after which planes are averaged: the last fraction of the visits of a fit; in a stream, all.

    In a stream, the weight of the state after visit t of T is about ``(t / T) ** (1 / fraction - 1)``, so that the last
    `fraction` of the visits dominates the average (polynomial-decay averaging, Shamir and Zhang, 2013).
    """

    first: int  # visits before averaging starts
    interval: int  # visits between two averaged states
    fraction: float
    schedule: Schedule

    @classmethod
    def of(cls, fraction: float, schedule: Schedule, data: Data, n_rows: int) -> AveragedPart:
        """The part of the next pass; unless `fraction` is 0, the last visit of a fit is always averaged."""
        if fraction == 0:
            return cls(n_rows, n_rows, fraction, schedule)
        if schedule.stream:
            # Averaging must not take longer than training: batches may be small, and sparse rows have few features.
            stored = data.X.nnz if sparse.issparse(data.X) else data.X.size
            checks = min(CHECKS_PER_EPOCH, max(1, stored // data.X.shape[1] // ROWS_PER_CHECK))
            return cls(0, -(-n_rows // checks), fraction, schedule)
        total = schedule.passes * n_rows
        begin = min(int((1.0 - fraction) * schedule.passes * n_rows), total - 1)
        first = min(max(begin - schedule.done * n_rows, 0), n_rows)
        return cls(first, -(-min(n_rows, total - begin) // CHECKS_PER_EPOCH), fraction, schedule)

    @property
    def settled(self) -> bool:
        """Whether the whole pass of a fit is averaged."""
        return self.first == 0 and not self.schedule.stream

    def pause(self, done: int) -> int:
        """Visits until averaging starts, or until the next averaged state."""
        return self.first - done if done < self.first else self.interval

    def window(self, t: int) -> int:
        """Maximum number of states in the average after `t` visits."""
        if not self.schedule.stream:
            return self.schedule.window
        return max(1, min(self.schedule.window, int(self.fraction * t / self.interval)))


@dataclass(frozen=True, eq=False)
class Assignments(RowMemory):
    """The column of the plane assigned to each row (z in the paper); -1: the best plane of its class."""

    columns: Annotated[np.ndarray, Array("i", "rows", in_place=False, below="columns")]


@dataclass(frozen=True, eq=False)
class AdaptiveState(PlaneColumns):
    """The state of training. Arrays hold ``alpha t`` times the planes."""

    t: int = 0  # number of visits, of the current round if training is in rounds
    duplication: float = 0.0  # probability that a plane is duplicated after an error
    rows: Assignments | None = None
    workspace: KernelRows | None = workspace()

    @property
    def assigned(self) -> np.ndarray:
        """The column of the plane assigned to each row; empty if planes are not assigned in rounds."""
        return np.zeros(0, dtype=np.int64) if self.rows is None else self.rows.columns

    def with_room(self) -> Self:
        """The state with at least three free columns: a visit adds up to three planes."""
        if self.n_planes + 3 <= len(self.owner):
            return self
        return self._with_columns(np.arange(self.n_planes), self.n_planes + max(8, self.n_planes // 2))

    def with_new_planes(self, parents: np.ndarray) -> Self:
        """The state after planes were added: the average of a copy starts as that of its parent (-1: no parent)."""
        if self.mean is None or not len(parents):
            return self
        origin = [*range(len(self.mean[1]))]
        for parent in parents:
            origin.append(origin[parent] if parent >= 0 else -1)
        added = np.array(origin[len(self.mean[1]) :])
        coef, intercept = (np.concatenate([mean, mean[added]]) for mean in self.mean)
        for mean in (coef, intercept):
            mean[-len(added) :][added < 0] = 0
        return replace(self, mean=(coef, intercept))

    def pruned(self, limit: float) -> Self:
        """Remove the smallest planes, up to a norm of `limit` of all removed planes; each class keeps at least one.

        Averaging starts again: averages over planes before and after pruning had larger errors than the last planes.
        """
        coef, intercept = self.input_planes(1.0)
        offset = intercept + coef @ self.scaling.centre
        square = (coef.astype(float) ** 2).sum(axis=1) / self.scaling.factor**2 + offset.astype(float) ** 2
        left, keep, budget = self.counts.copy(), np.ones(self.n_planes, dtype=bool), limit**2
        for k in np.argsort(square, kind="stable"):
            if left[self.owner[k]] == 1:
                continue
            budget -= square[k]
            if budget < 0:
                break
            left[self.owner[k]] -= 1
            keep[k] = False
        if keep.all():
            return self
        return replace(self._with_columns(np.flatnonzero(keep), len(self.owner)), mean=None, n_averaged=0)

    def _with_columns(self, kept: np.ndarray, n_columns: int) -> Self:
        """The state with only the columns `kept`, in new arrays of `n_columns`."""

        def moved(array: np.ndarray, fill: int = 0) -> np.ndarray:
            wide = np.full((*array.shape[:-1], n_columns), fill, dtype=array.dtype)
            wide[..., : len(kept)] = array[..., kept]
            return wide

        owner, rows = moved(self.owner, -1), self.rows
        if rows is not None:
            places = np.full(len(self.owner) + 1, -1)  # the last entry is for rows without a plane, -1
            places[kept] = np.arange(len(kept))
            rows = replace(rows, columns=places[rows.columns])
        counts = np.bincount(owner[: len(kept)], minlength=len(self.counts))
        coef, intercept, shift = moved(self.coef), moved(self.intercept), moved(self.shift)
        return replace(self, coef=coef, intercept=intercept, shift=shift, owner=owner, counts=counts, rows=rows)

    def assigned_anew(self, data: Data, add_zero_planes: bool) -> Self:
        """Assign to each row the best plane of its class, which may be a new zero plane."""
        coef, intercept = self.input_planes(1.0)
        state, columns = self, np.full(len(data.y), -1)
        for c in range(data.n_classes):
            rows, own = np.flatnonzero(data.y == c), np.flatnonzero(self.owner == c)
            if not len(rows) or not (len(own) or add_zero_planes):
                continue
            # The first of the best planes is assigned: the zero plane if no other score is positive.
            n_zero = int(add_zero_planes)
            planes = np.pad(coef[own], ((n_zero, 0), (0, 0))), np.pad(intercept[own], (n_zero, 0))
            winners = PlaneSet(*planes, np.array([0, len(own) + n_zero])).winners(data.X[rows])
            if add_zero_planes:
                own = np.concatenate([[state.n_planes], own])
                if not winners.all():
                    state = state.with_room()
                    state.owner[state.n_planes] = c
                    state.counts[c] += 1
                    state = state.with_new_planes(np.array([-1]))
            columns[rows] = own[winners]
        return replace(state, rows=Assignments(columns))


#: No limit to the planes of a class.
UNLIMITED = np.iinfo(np.int64).max


@dataclass(frozen=True)
class AdaptiveMultiHyperplane(Method[AdaptiveState]):
    """Algorithm 1 of both papers: planes are added, duplicated and pruned, and rows assigned to them."""

    n_planes: int | None = None
    assignment: str | int = "online"
    growth: float = 0.2
    growth_decay: float = 0.99
    prune: float | None = None
    prune_every: int = 10_000
    alpha: float = 1e-5
    average_fraction: float = 0.2
    max_iter: int = 60
    shuffle: bool = True

    traits = Traits(
        AdaptiveState,
        frozenset({"assignment", "growth_decay", "prune", "prune_every", "average_fraction", "max_iter", "shuffle"}),
        own_scaling="common",
    )

    @property
    def round_length(self) -> int:
        """Passes between assignments; 0 where rows are assigned at each visit."""
        if isinstance(self.assignment, str):
            return int(self.assignment == "epoch")
        return self.assignment

    @property
    def pruning(self) -> float:
        """How large the planes are that are pruned (c), where `prune` is None: those of MM stay."""
        if self.prune is not None:
            return self.prune
        return 0.0 if self.round_length and self.n_planes is not None and self.growth == 0 else 50.0

    def start(self, data: Data, seed: int) -> AdaptiveState:
        """Zero planes to which rows can be assigned; online no plane at all. Room for some."""
        scaling = AffineScaling.common(data.X, data.training_weight)
        per_class = (self.n_planes or 1) if self.round_length else 0
        owner = np.repeat(np.arange(data.n_classes), per_class)
        dtype, columns = data.X.dtype, max(len(owner) + 3, 4 * data.n_classes)
        return AdaptiveState(
            np.zeros((data.X.shape[1], columns), dtype=dtype),
            np.zeros(columns, dtype=dtype),
            np.zeros(columns, dtype=dtype),
            np.concatenate([owner, np.full(columns - len(owner), -1)]),
            np.full(data.n_classes, per_class),
            scaling,
            seed,
            duplication=self.growth,
        )

    def step(self, state: AdaptiveState, data: Data) -> AdaptiveState:
        """One pass over the rows. In the averaged part of a fit no plane is added or pruned, and no row assigned."""
        if state.workspace is None:
            state = replace(state, workspace=KernelRows(data, state.scaling))
        rng = np.random.default_rng([state.seed, state.epoch])
        order = rng.permutation(data.train) if self.shuffle else data.train
        draws = rng.random(len(order))
        schedule = Schedule.of(self.max_iter, state, data)
        part = AveragedPart.of(self.average_fraction, schedule, data, len(order))
        if part.first > 0 or (schedule.done == 0 and not data.stream):
            state = replace(state, mean=None)
        state, before = self._assigned(state, data, rng, part)
        loss, done = 0.0, 0
        while done < len(order):
            settled = done >= part.first and not data.stream
            pause = part.pause(done)
            if not settled:
                pause = min(pause, self.prune_every - state.t % self.prune_every)
            piece = slice(done, done + pause)
            state, losses = self._visit(state, order[piece], draws[piece], settled, before)
            loss, done, before = loss + losses, min(done + pause, len(order)), 0.0
            if not settled and self.pruning > 0 and state.t > 1 and state.t % self.prune_every == 0:
                state = state.pruned(self.pruning * state.t / (state.t - 1))
            if done > part.first:
                state = state.averaged(1.0 / (self.alpha * state.t), part.window(state.t))
        return replace(state, epoch=state.epoch + 1, turn=schedule.next_turn, loss=loss / len(order))

    def _assigned(
        self, state: AdaptiveState, data: Data, rng: np.random.Generator, part: AveragedPart
    ) -> tuple[AdaptiveState, float]:
        """Begin a round, where one is due: the state, and what ``alpha t`` was in the round before, if there was one.

        When no row changes its plane, the problem is the one that was solved: the round goes on. So it does in a
        stream, whose rows are assigned when they come.
        """
        if not self.round_length:
            return replace(state, rows=None), 0.0
        if state.epoch == 0:
            first = np.cumsum(state.counts) - state.counts
            return replace(state, rows=Assignments(first[data.y] + rng.integers(0, state.counts[data.y]))), 0.0
        if state.rows is not None and (part.settled or state.turn % self.round_length):
            return state, 0.0
        known = state.assigned
        state = state.assigned_anew(data, self.n_planes is None and not part.settled)
        if part.settled or data.stream or np.array_equal(state.assigned, known):
            return state, 0.0
        return replace(state, t=0), self.alpha * state.t

    def _visit(
        self, state: AdaptiveState, order: np.ndarray, draws: np.ndarray, settled: bool, before: float
    ) -> tuple[AdaptiveState, float]:
        """Visit rows: the state, and the sum of the losses met."""
        from polyplane.kernels.multi_hyperplane import Growth, adaptive_epoch

        known, loss, done = state.workspace, 0.0, 0
        assert known is not None
        most = UNLIMITED if self.round_length else self.n_planes or UNLIMITED
        unused = 0 if self.round_length and self.n_planes is not None else most
        while done < len(order):
            state = state.with_room()
            parents = np.empty(len(state.owner), dtype=np.int64)
            limits = (0, 0) if settled else (unused, most)
            growth = Growth(self.alpha, self.growth_decay, *limits, draws[done:], state.assigned, parents)
            numbers = np.array([n_planes := state.n_planes, state.t, state.duplication, before if done == 0 else 0.0])
            visited, losses = adaptive_epoch(
                known.X, order[done:], plane_sums(state), state.owner, state.counts, known.targets, growth, numbers
            )
            loss, done = loss + losses, done + visited
            state = replace(state, t=int(numbers[1]), duplication=float(numbers[2]))
            state = state.with_new_planes(parents[n_planes : state.n_planes])
        return state, loss

    def planes(self, state: AdaptiveState) -> PlaneSet:
        """The model in a state."""
        return state.plane_set(1.0 / (self.alpha * state.t))

    def metrics(self, state: AdaptiveState) -> Mapping[str, float]:
        """The mean of the losses met, and the number of planes."""
        return {"loss": state.loss, "planes": state.n_planes}

    def done(self, state: AdaptiveState) -> float:
        """The loss."""
        return state.loss


@dataclass(eq=False, repr=False)
class AdaptiveMultiHyperplaneClassifier(EpochParameters, PlaneClassifier):
    r"""Adaptive multi-hyperplane machines: classes start without planes; planes are added during training.

    The score of class :math:`c` is :math:`\max_{k \in c} w_k x + b_k`, and the class with the best score wins. What is
    minimised, by stochastic gradient descent with the steps :math:`1 / (\alpha t)`, is the margin loss

    .. math::

        \frac{\alpha}{2} \sum_k |w_k|^2
        + \frac{1}{n} \sum_i \Big[1 + \max_{k \notin y_i} (w_k x_i + b_k) - \max_{k \in y_i} (w_k x_i + b_k)\Big]_+

    and the settings tell which of the papers' machines it is:

    * **GAMM**, the default: a class none of whose planes has a positive score answers with a new zero plane, and planes
      that err are duplicated at random;
    * **AMM**, ``growth=0, prune=10``: only the former;
    * **MM**, ``growth=0, assignment="epoch"`` and `n_planes`: a fixed number of planes.

    With ``assignment="epoch"`` training goes in rounds, as in Algorithm 1: rows keep the plane that is to win them for
    a round, which makes each round a convex problem that is solved from the start, t = 1. GAMM has rounds too.

    Where the papers and their authors' program differ: rivals without a positive score answer with a zero plane, as on
    paper (in the program only the row's own class does); only planes with a positive score are duplicated, as in the
    program (in the box zero planes, too, whose copies then never win); rows whose plane was pruned take the best one at
    each visit until the round ends, as in the program; the first planes of rows are drawn at random and t starts again
    in each round, as on paper (in the program the first pass is online, and t goes on); planes are not limited to 50
    per class. Where no row changes its plane, the box ends; here its last round goes on for the passes that are left.

    The papers do not average: ``average_fraction=0``. `MultiHyperplaneClassifier`, which starts from k-means centres,
    is faster and more accurate.

    Internally the features are centred and multiplied by one number; the fitted planes apply to `X` itself. Standardise
    features of different kinds; leave pixels as they are.

    Parameters
    ----------
    n_planes : int or None, default=None
        Planes of each class (b). Online, the most that a class may have. In rounds, those that each class has from the
        start, as zero planes, among which its rows are first divided at random; more come only by `growth`. None: no
        limit, and new zero planes wherever a class has no positive score; rounds start with one plane per class.
    assignment : {"online", "epoch"} or int, default="online"
        Which of its class's planes is to win a row: the best one at each visit, or the one that was best at the start
        of the round. A round is one pass ("epoch"), or that many passes. In a stream rows are assigned when they come,
        and one round goes on.
    growth : float, default=0.2
        The probability that the plane of a row's own class that the row is assigned to is duplicated (p), at a visit
        that violates the margin, if its score is positive. The copy stays, and the original takes the update.
    growth_decay : float, default=0.99
        Factor by which `growth` is multiplied at each duplication (:math:`\beta`).
    prune : float or None, default=None
        Pruning threshold (c): the smallest planes are removed as long as their joint norm is at most this over
        :math:`\alpha t`. 0: no pruning. None: 50, and 0 for MM. The paper uses 10 for AMM.
    prune_every : int, default=10000
        Visits between prunings; in rounds, counted from the start of each.
    alpha : float, default=1e-5
        Strength of the regularisation on the mean loss (:math:`\lambda`).
    average_fraction : float, default=0.2
        The last part of all visits of a `fit`, in which planes are averaged, and none is added or pruned, nor is any
        row assigned to another; a third does best. With few passes it begins within a pass: a single one with 0.2
        averages over its last fifth. In a stream (`partial_fit`, `fit_stream`), whose end is not known, planes are
        averaged from the start while they grow, with most weight on this last part of the visits so far, on no more
        than about the last thirty states, of which a batch has up to eight, and on none from before planes were last
        pruned. 0: no averaging, as in the papers.
    max_iter : int, default=60
        Number of passes over the training rows (epochs).
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
        Controls the order in which rows are visited, the first assignments and the duplications.
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
    Z. Wang, N. Djuric, K. Crammer and S. Vucetic. Trading Representability for Scalability: Adaptive Multi-Hyperplane
    Machine for Nonlinear Classification. KDD 2011. (MM, AMM)

    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020. (GAMM)

    Examples
    --------
    >>> from polyplane import AdaptiveMultiHyperplaneClassifier
    >>> from polyplane.datasets import make_checkerboard
    >>> X, y = make_checkerboard(3000, (2, 3), random_state=0)
    >>> how = {"max_iter": 15, "average_fraction": 1 / 3, "random_state": 0}
    >>> gamm = AdaptiveMultiHyperplaneClassifier(**how)
    >>> amm = AdaptiveMultiHyperplaneClassifier(growth=0.0, prune=10.0, **how)
    >>> mm = AdaptiveMultiHyperplaneClassifier(8, growth=0.0, assignment="epoch", **how)
    >>> [round(machine.fit(X, y).score(X, y), 2) for machine in (gamm, amm, mm)]
    [0.99, 0.99, 0.98]
    """

    n_planes: int | None = None
    _: KW_ONLY
    assignment: str | int = "online"
    growth: float = 0.2
    growth_decay: float = 0.99
    prune: float | None = None
    prune_every: int = 10_000
    alpha: float = 1e-5
    average_fraction: float = 0.2
    max_iter: int = 60

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "assignment": [StrOptions({"online", "epoch"}), Interval(Integral, 1, None, closed="left")],
        "growth": [Interval(Real, 0, 1, closed="left")],
    }
    _declaration: ClassVar[Declaration] = Declaration(tuning={"alpha": [1e-5, 1e-6, 1e-4], "growth": [0.2, 0.0]})

    def _method(self, classes: np.ndarray) -> AdaptiveMultiHyperplane:
        return self._method_of(AdaptiveMultiHyperplane)
