"""PLUME and SPLA1: a polyhedron as a mixture of logistic experts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from polyplane._array_api import astype, expit, kind_of, namespace, take_rows, widest_float
from polyplane._validation import Data, check_fitted_matrix
from polyplane.learners._mixture import Ascent, Likelihood, soft_gates
from polyplane.learners._polyhedron import PolyhedronLearner, Rows
from polyplane.learners._units import Units
from polyplane.planes import PlaneSet

#: The Newton matrix has this many rows at the most; it then takes 0.2 GB.
NEWTON_SIZE = 5_000


class MixtureState(NamedTuple):
    """Everything that training needs to go on."""

    planes: np.ndarray  # in `units`, offset last
    units: Units
    inside: int
    kind: Any  # tells where the rows were, and their dtype
    log_likelihood: float


class PolyhedralMixtureClassifier(PolyhedronLearner):
    r"""One class inside a polyhedron, by a mixture of logistic experts: PLUME, and its hard limit SPLA1.

    A row is inside when it is on the right side of all planes, :math:`h(x) = \min_k f_k(x) > 0` with
    :math:`f_k(x) = w_k x + b_k`. Each plane is an expert, and the planes themselves say which expert answers:

    .. math::

        p(y \mid x) = \sum_k g_k(x) \, \sigma(y f_k(x)), \qquad
        g_k(x) = \frac{e^{-\gamma f_k(x)}}{\sum_j e^{-\gamma f_j(x)}}

    for :math:`y = +1` inside and :math:`-1` outside. The mean of :math:`\log p(y_i \mid x_i)` less
    :math:`\frac{\alpha}{2} \sum_k |w_k|^2` is maximised by EM: the E-step finds the share that each plane has in each
    row, :math:`\pi_k \propto g_k \sigma`, and the M-step makes one step uphill. Hard gating is the limit
    :math:`\gamma \to \infty`: each row belongs to its lowest plane, :math:`p(y \mid x) = \sigma(y h(x))`.

    Features are standardised on the way (and the planes given back for the features as they are), so that `alpha` and
    `gamma` mean the same whatever the units. No standardised copy is made, and sparse rows stay sparse. `partial_fit`
    makes one EM step on the rows it is given; its first piece sets the units, so it should not be small.

    Under ``sklearn.config_context(array_api_dispatch=True)`` it learns from arrays of PyTorch and CuPy where they are.
    For more than two classes: ``sklearn.multiclass.OneVsRestClassifier(PolyhedralMixtureClassifier())``.

    Parameters
    ----------
    n_planes : int, default=2
        Sides of the polyhedron (K).
    gating : "soft" or "hard", default="soft"
        "soft" is PLUME, "hard" is SPLA1.
    gamma : float, default=1.0
        Sharpness of the soft gating (:math:`\gamma`); not used by the hard one.
    solver : "bfgs", "gradient" or "newton", default="bfgs"
        The M-step. "newton" solves a system of ``n_planes * (n_features + 1)`` unknowns at each step; the others need
        products with the rows only.
    inside : label or "auto", default=None
        The class in the convex region. None: the second class. "auto": try both, keep the likelier.
    n_init : int, default=1
        Number of starts. The first splits the class outside along its long axes, the others at random; each is given 20
        steps, and the likeliest goes on.
    alpha : float, default=1e-3
        Strength of the ridge, on standardised features. With 0 the likelihood of separable rows has no maximum: the
        planes grow until `tol` or `max_iter` stops them, and a warning says so.
    tol : float or None, default=1e-5
        Stop when a step raises the mean log-likelihood by no more than this (the paper's :math:`\epsilon`, on the sum).
    max_iter : int, default=200
        EM steps.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    warm_start : bool, default=False
        Go on from where the last `fit` ended.
    random_state : int, RandomState or None, default=None
        Source of the starts after the first.
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
        EM steps made.
    history_ : dict
        After each step: "time", and "log_likelihood", the mean less the ridge, which never falls.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    K. Shah, P. S. Sastry and N. Manwani. PLUME: Polyhedral Learning Using Mixture of Experts. ICML 2019.

    N. Manwani and P. S. Sastry. Learning Polyhedral Classifiers Using Logistic Function. ACML 2010 (SPLA1).

    Examples
    --------
    >>> from polyplane import PolyhedralMixtureClassifier
    >>> from polyplane.datasets import make_polyceptron_1
    >>> X, y = make_polyceptron_1(random_state=0)
    >>> mixture = PolyhedralMixtureClassifier(n_planes=3, gamma=2.0).fit(X[:700], y[:700])
    >>> mixture.planes_
    PlaneSet(n_classes=2, n_planes=4, n_features=10, dtype=float64)
    >>> print(f"{mixture.score(X[700:], y[700:]):.2f}")
    0.96
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PolyhedronLearner._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left")],
        "gating": [StrOptions({"soft", "hard"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"gradient", "newton", "bfgs"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_planes: int = 2,
        *,
        gating: str = "soft",
        gamma: float = 1.0,
        solver: str = "bfgs",
        inside: Any = None,
        n_init: int = 1,
        alpha: float = 1e-3,
        tol: float | None = 1e-5,
        max_iter: int = 200,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_planes = n_planes
        self.gating = gating
        self.gamma = gamma
        self.solver = solver
        self.inside = inside
        self.n_init = n_init
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def predict_proba(self, X: Any) -> np.ndarray:
        r"""Probabilities of the two classes that agree with `predict`: :math:`\sigma(h(x))` of being inside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_rows, 2)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        second = astype(scores, widest_float(scores))  # in float32 small scores of both signs would become 0.5
        return namespace(second).stack([expit(-second), expit(second)], axis=1)

    def mixture_proba(self, X: Any) -> np.ndarray:
        r"""The posterior :math:`p(y \mid x)` of the mixture, which near an edge may disagree with `predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_rows, 2)
            In the order of ``classes_``. With hard gating it is `predict_proba`.
        """
        if self.gating == "hard":
            return self.predict_proba(X)
        X = check_fitted_matrix(self, X)
        around = self.planes_.owners != np.flatnonzero(self.classes_ == self.inside_)[0]
        scores = take_rows(-self.planes_.scores(X, self.n_jobs).T, np.flatnonzero(around))
        scores, xp = astype(scores, widest_float(scores)), namespace(scores)
        inside, outside = (xp.exp(soft_gates(scores, sign, self.gamma).log_likelihood) for sign in (1.0, -1.0))
        swapped = self.classes_[0] == self.inside_
        return xp.stack([inside, outside] if swapped else [outside, inside], axis=1)

    @property
    def _takes_foreign_arrays(self) -> bool:
        return True

    def _start(self, data: Data, seed: int) -> MixtureState:
        auto = isinstance(self.inside, str) and self.inside == "auto"
        starts = [
            start
            for inside in ((0, 1) if auto else (self._inside_class(),))
            for start in self._starts(data, inside, seed)
        ]
        if len(starts) == 1:
            return starts[0]
        return max((self._trial(start, data) for start in starts), key=lambda state: state.log_likelihood)

    def _starts(self, data: Data, inside: int, seed: int) -> Iterator[MixtureState]:
        rows = Rows(data.X, Units.standard(data.X, data.training_weight))
        for planes in self._start_planes(rows, data, inside, seed):
            yield MixtureState(planes, rows.units, inside, kind_of(data.X), -np.inf)

    def _step(self, state: MixtureState, data: Data) -> MixtureState:
        there = self._ascent(state, data).advance(state.planes)
        return state._replace(planes=there.planes, log_likelihood=there.value)

    def _ascent(self, state: MixtureState, data: Data) -> Ascent:
        by_inside: dict[int, Ascent] = data.recall(dict)
        if state.inside not in by_inside:
            sign = np.where(data.y == state.inside, 1.0, -1.0)
            rows = Rows(data.X, state.units)
            gamma = self.gamma if self.gating == "soft" else None
            by_inside[state.inside] = Ascent(
                Likelihood(rows, sign, data.training_weight, self.alpha, gamma), self.solver
            )
        return by_inside[state.inside]

    def _planes(self, state: MixtureState) -> PlaneSet:
        return self._plane_set(state.planes, state.units, state.inside, state.kind)

    def _figures(self, state: MixtureState) -> Mapping[str, float]:
        return {"log_likelihood": state.log_likelihood}

    def _stopping_rule(self) -> Callable[[Mapping[str, float]], bool]:
        last = -np.inf

        def converged(figures: Mapping[str, float]) -> bool:
            nonlocal last
            gain, last = figures["log_likelihood"] - last, figures["log_likelihood"]
            return self.tol is not None and gain <= self.tol

        return converged

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: np.ndarray | None) -> Data:
        data = super()._take(X, y, sample_weight, classes)
        size = self.n_planes * (data.X.shape[1] + 1)
        if self.solver == "newton" and size > NEWTON_SIZE:
            raise ValueError(f"solver='newton' would solve for {size} unknowns at each step; use solver='bfgs'.")
        return data

    def _train(self, state: MixtureState, data: Data, held_out: np.ndarray | None) -> None:
        self._check_rows(data, state.inside)
        super()._train(state, data, held_out)
        if self.alpha == 0 and self._separated(self._state, data):
            warnings.warn(
                "The rows are perfectly separated, so their likelihood has no maximum: the planes are as steep as tol "
                "and max_iter let them grow. Set alpha > 0 for planes that do not depend on when training stops.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _separated(self, state: MixtureState, data: Data) -> bool:
        likelihood = self._ascent(state, data).likelihood
        xp = namespace(likelihood.sign)
        margin = likelihood.sign * xp.min(likelihood.rows.scores(state.planes), axis=0)
        return bool(xp.all((margin > 0) | (likelihood.weight <= 0)))

    def _finish(self, state: MixtureState, data: Data) -> None:
        self.inside_ = self.classes_[state.inside]
