"""`PlaneClassifier`: everything that is not a method of one paper."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from polyplane._array_api import brought_home, labels_of, take_rows, to_numpy
from polyplane._loop import Plateau, record, train
from polyplane._progress import Progress
from polyplane._stream import StreamLearner
from polyplane._validation import (
    Data,
    all_or_nothing,
    check_classes,
    check_fitted_matrix,
    check_matrix,
    check_targets,
    check_training_place,
    check_weights,
    encode,
    hold_out,
    to_host,
)
from polyplane.planes import PlaneSet


class PlaneClassifier(StreamLearner, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """A classifier made of planes.

    A learner names its parameters in ``__init__`` and writes three methods: `_start`, `_step` and `_planes`. It may
    add figures to the history (`_figures`), a stopping rule (`_converged`) and fitted attributes (`_finish`).

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        Steps made by the last `fit`, or all steps since the first `partial_fit`.
    history_ : dict of str to list of float
        The figures after each step, and the time in seconds since the start.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "shuffle": ["boolean"],
        "warm_start": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    planes_: PlaneSet
    classes_: np.ndarray
    n_iter_: int
    history_: dict[str, list[float]]
    _state: Any

    #: The figure that is watched for convergence; none is watched unless a learner records it.
    _converges_on: ClassVar[str] = "objective"

    #: Whether training saw rows in other units than those that the planes now speak; going on is then refused.
    _scaled_training: bool = False

    # What a learner writes.

    @abstractmethod
    def _start(self, data: Data, seed: int) -> Any:
        """The state before the first step: a value that holds all that training needs to go on."""

    @abstractmethod
    def _step(self, state: Any, data: Data) -> Any:
        """The state after one more epoch, EM step or cut."""

    @abstractmethod
    def _planes(self, state: Any) -> PlaneSet:
        """The model in a state."""

    def _figures(self, state: Any) -> Mapping[str, float]:
        """What to record of a state."""
        return {}

    def _finish(self, state: Any, data: Data) -> None:
        """Set fitted attributes of the learner's own."""

    @property
    def _takes_foreign_arrays(self) -> bool:
        """Whether training is made of matrix products, which any array library can do, on a GPU too."""
        return False

    # What a user calls.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn planes from labelled rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows. float32 stays float32, and so does the model.
        y : array-like of shape (n_rows,)
            The labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; a row of weight 0 is not there.

        Returns
        -------
        self : object
            The fitted estimator. When `fit` fails, the estimator is left as it was.
        """
        with all_or_nothing(self):
            self._validate_params()
            known = self.warm_start and hasattr(self, "_state")
            data = self._take(X, y, sample_weight, classes=self.classes_ if known else None)
            seed = self._seed()
            held_out = None
            if getattr(self, "early_stopping", False):
                data, held_out = hold_out(data, self.validation_fraction, seed)
            if np.count_nonzero(np.bincount(data.y[data.train])) < 2:
                raise ValueError("Fewer than two classes have rows of positive weight.")
            self._train(self._state if known else self._start(data, seed), data, held_out)
        return self

    @available_if(lambda self: self._takes_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one step on new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The new rows.
        y : array-like of shape (n_rows,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; needed at the first call.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The estimator, one step further.
        """
        with all_or_nothing(self):
            self._validate_params()
            first = not hasattr(self, "_state")
            data = replace(self._take(X, y, sample_weight, self._agreed_classes(classes)), stream=True)
            if first:
                state = self._start(data, self._seed())
                self.n_iter_, self.history_ = 0, {}
            else:
                state = self._state
            state = self._step(state, data)
            self.n_iter_ += 1
            record(self.history_, self._figures(state))
            self._state, self.planes_ = state, self._planes(state)
            self._finish(state, data)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the score of the second less that of the first: positive means the second.
        """
        X = check_fitted_matrix(self, X)
        scores = self.planes_.class_scores(X, getattr(self, "n_jobs", None))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Labels of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The label whose class owns the best plane.
        """
        X = check_fitted_matrix(self, X)
        return labels_of(self.classes_, self.planes_.predict(X, getattr(self, "n_jobs", None)))

    def to_numpy(self) -> Self:
        """Bring a model that was trained on a device home.

        Returns
        -------
        estimator : object
            A copy whose planes, and all that training needs to go on, are NumPy arrays.
        """
        home = copy(self)
        for name, value in vars(self).items():
            setattr(home, name, brought_home(value))
        return home

    @property
    def coef_(self) -> np.ndarray:
        """Normals of the planes, class by class: ``planes_.coef``."""
        return self.planes_.coef

    @property
    def intercept_(self) -> np.ndarray:
        """Offsets of the planes: ``planes_.intercept``."""
        return self.planes_.intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "planes_")

    # How it is done.

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: np.ndarray | None) -> Data:
        """Validate a call's rows; set `classes_` when they are not yet known."""
        if classes is None:
            self.__dict__.pop("_scaled_training", None)  # a fresh start
        elif self._scaled_training:
            raise ValueError(
                "This model was trained on scaled rows, and cannot go on with others: use `polyplane train --resume`, "
                "which scales them alike, or fit anew."
            )
        X = check_matrix(self, X, reset=classes is None or not hasattr(self, "classes_"))
        check_training_place(self, X, learned=classes is not None and hasattr(self, "_state"))
        sample_weight = to_host("sample_weight", sample_weight, X)
        y = check_targets(to_host("y", y, X), X.shape[0])
        self.classes_ = check_classes(y) if classes is None else classes
        codes = encode(y, self.classes_)
        weight = check_weights(X, y, codes, self.classes_, sample_weight, getattr(self, "class_weight", None))
        return Data(X, codes, weight, np.flatnonzero(weight > 0), len(self.classes_))

    def _seed(self) -> int:
        """From which a learner, where it needs any, draws all its randomness."""
        return int(check_random_state(getattr(self, "random_state", 0)).randint(2**31))

    def _agreed_classes(self, classes: Any) -> np.ndarray:
        if getattr(self, "class_weight", None) == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once; give a dict of weights instead.")
        known = getattr(self, "classes_", None)
        if classes is None:
            if known is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return known
        classes = check_classes(np.asarray(classes))
        if known is not None and not np.array_equal(known, classes):
            raise ValueError(f"classes={classes.tolist()} is not the same as on the last call: {known.tolist()}.")
        return classes

    def _train(self, state: Any, data: Data, held_out: np.ndarray | None) -> None:
        """Run the loop and keep its outcome."""
        monitor = Monitor(self, data, held_out)
        progress = Progress(type(self).__name__, self.max_iter, getattr(self, "verbose", 0))
        trained = train(lambda state: self._step(state, data), state, monitor.figures, self._stopping_rule(), progress)
        self._state = trained.state
        self.planes_ = monitor.best or self._planes(trained.state)
        self.n_iter_, self.history_ = trained.n_iter, trained.history
        self._finish(trained.state, data)

    def _stopping_rule(self) -> Callable[[Mapping[str, float]], bool]:
        tol = getattr(self, "tol", None)
        if tol is None and getattr(self, "early_stopping", False):
            tol = 0.0
        plateau = Plateau(tol, getattr(self, "n_iter_no_change", 1))

        def converged(figures: Mapping[str, float]) -> bool:
            watched = "validation_error" if "validation_error" in figures else self._converges_on
            return watched in figures and plateau.reached(figures[watched])

        return converged


class Monitor:
    """Takes the figures of each step; with held-out rows, also their error and the best planes so far."""

    def __init__(self, learner: PlaneClassifier, data: Data, held_out: np.ndarray | None) -> None:
        self.learner = learner
        self.best: PlaneSet | None = None
        self.best_error = float("inf")
        self.X = None if held_out is None else take_rows(data.X, held_out)
        self.y = None if held_out is None else data.y[held_out]
        self.weight = None if held_out is None else data.weight[held_out]

    def figures(self, state: Any) -> dict[str, float]:
        """The figures of a state."""
        figures = dict(self.learner._figures(state))
        if self.X is not None:
            planes = self.learner._planes(state)
            wrong = to_numpy(planes.predict(self.X)) != self.y
            figures["validation_error"] = float(np.average(wrong, weights=self.weight))
            if figures["validation_error"] < self.best_error:
                self.best_error, self.best = figures["validation_error"], planes
        return figures
