"""`CompressedClassifier`: planes within a memory budget."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from polyplane._array_api import is_foreign, is_sparse
from polyplane._prediction import (
    PlanePrediction,
    check_classes,
    check_matrix,
    check_targets,
    check_weights,
    encode,
    to_host,
)
from polyplane.base import MOST, Declaration
from polyplane.compression._choice import Rows, Search, Trial
from polyplane.compression._shapes import smallest
from polyplane.compression._tables import CompressedTables, label_bytes
from polyplane.engine.data import refuse_extremes
from polyplane.files.values import Metrics
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Default number of passes of the final training, and its minimum; minimum and maximum number of row visits.
PASSES, MIN_PASSES, MIN_VISITS, MAX_VISITS = 60, 10, 120_000, 1_500_000


@dataclass(eq=False, repr=False)
class CompressedClassifier(PlanePrediction):
    r"""Planes stored as tables of one-byte weights, within a memory budget.

    All planes share a projection of the most important features to a few dimensions: the weights of the planes are the
    product :math:`V P` of two small matrices of integers from -127 to 127, with one scale per row of P. Both matrices
    are trained together with the log-loss, with rounded weights in the last passes; the score of a class is the
    log-sum-exp of the scores of its planes. The numbers of features, projected features and planes, the scaling of the
    features, the noise added to training rows and the step size are chosen on held-out rows.

    Usually created by `compress`, which starts from the planes of a fitted model; `fit` needs no fitted model.

    Parameters
    ----------
    max_bytes : int, default=16000
        Maximum size in bytes of the tables as constants of a compiled program, including the labels.
    max_iter : int or None, default=None
        Passes over the rows in the final training. None: 60; more for fewer than 2,000 rows, fewer for more than
        25,000.
    random_state : int, RandomState or None, default=None
        Controls the randomness of training.

    Attributes
    ----------
    tables_ : CompressedTables
        The integers and scales, as `polyplane.export` writes them to C.
    planes_ : PlaneSet
        The same planes over all features, in float64, used for prediction.
    n_bytes_ : int
        Size of the tables in bytes, including the labels.
    trials_ : dict of str to list of float
        The results on held-out rows, one entry per trial: "features", "rank" (0: no projection), "planes" (per class),
        "scaled" (1: each feature has its own scale), "noise", "rate", "passes", "bytes" and "error".
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        Number of passes of the final training.
    history_ : dict
        For each pass of the final training: "loss", and "time", the seconds of the whole fit spread evenly over them.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    polyplane.compress : Compress a fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane.compression import CompressedClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> small = CompressedClassifier(2_000, random_state=0).fit(X_train, y_train)
    >>> small.n_bytes_ <= 2_000, small.score(X_test, y_test) > 0.93
    (True, True)
    """

    max_bytes: int = 16_000
    _: KW_ONLY
    max_iter: int | None = None
    random_state: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_bytes": [Interval(Integral, 1, MOST, closed="both")],
        "max_iter": [Interval(Integral, 1, MOST, closed="both"), None],
        "random_state": ["random_state"],
    }
    _declaration: ClassVar[Declaration] = Declaration(tuning={}, streams=False, fitted={"trials_": Metrics()})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the settings on held-out rows, then train on all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows. Sparse rows are converted to dense ones.
        y : array-like of shape (n_rows,)
            The labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. Rows with zero weight are ignored.

        Returns
        -------
        self : object
            The fitted estimator. When `fit` fails, the estimator is unchanged.
        """
        return self._fit_from(None, X, y, sample_weight)

    def _fit_from(self, coef: np.ndarray | None, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit, starting from planes with the normals `coef` of shape (n_planes, n_features), if given."""
        began = time.perf_counter()
        self._validate_params()
        if is_foreign(X):
            raise TypeError("CompressedClassifier trains on the CPU: pass X as a NumPy array.")
        draft = copy(self)
        draft.__dict__.pop("planes_", None)
        rows = draft._check_rows(X, y, sample_weight)
        n_classes, budget = len(draft.classes_), self.max_bytes - label_bytes(draft.classes_)
        draft._check_budget(budget, rows.X.shape[1], n_classes)
        seed = int(check_random_state(self.random_state).randint(2**31))
        search = Search(rows, n_classes, coef, budget, seed)
        n_passes = self.max_iter or default_passes(len(rows.y))
        tables, losses = search.final(search.run(), n_passes)
        draft.tables_ = tables
        draft.trials_, draft.n_iter_ = _as_lists(search.trials), n_passes
        seconds = time.perf_counter() - began
        draft.history_ = {"time": np.linspace(0, seconds, n_passes + 1)[1:].tolist(), "loss": losses}
        self.__dict__ = draft.__dict__
        return self

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Validate rows, labels and weights, and set `classes_`; return the dense rows with positive weight.

        The weights returned have mean 1.
        """
        X = check_matrix(self, X, reset=True)
        refuse_extremes(X)
        y = check_targets(to_host("y", y, X), X.shape[0])
        self.classes_ = check_classes(y)
        codes = encode(y, self.classes_)
        weight = check_weights(X, y, codes, self.classes_, to_host("sample_weight", sample_weight, X), None)
        used = np.flatnonzero(weight > 0)
        X, weight = X[used], weight[used].astype(np.float32)
        return Rows(X.toarray() if is_sparse(X) else X, codes[used], weight / weight.mean())

    @property
    def model_(self) -> Model:
        """The fitted model, from the columns of the rows to class scores."""
        return replace(super().model_, **self.tables_.model_parts())

    @cached_property
    def planes_(self) -> PlaneSet:  # type: ignore[override]
        """The planes over all features, in float64, used for prediction."""
        check_is_fitted(self, "tables_")
        return self.tables_.planes()

    @property
    def n_bytes_(self) -> int:
        """Size of the tables in bytes, including the labels."""
        return self.tables_.n_bytes(self.classes_)

    def _restore(self, model: Model, fitted: Mapping[str, Any]) -> None:
        """Set the fitted attributes: those that follow from the model, and others; for model files."""
        self.tables_ = CompressedTables.of_model(model)
        super()._restore(model, fitted)
        del self.planes_  # those over all features follow from the tables

    def _check_budget(self, budget: int, n_features: int, n_classes: int) -> None:
        least = smallest(n_features, n_classes, scaled=True).n_bytes(n_features, n_classes)
        if budget < least:
            raise ValueError(
                f"max_bytes={self.max_bytes} is too small: the smallest tables for {n_classes} classes and "
                f"{n_features} features take {least + self.max_bytes - budget} bytes."
            )


def default_passes(n_rows: int) -> int:
    """The default number of passes of the final training over `n_rows` rows."""
    return min(max(PASSES, MIN_VISITS // n_rows), max(MIN_PASSES, MAX_VISITS // n_rows))


def _as_lists(trials: list[Trial]) -> dict[str, list[float]]:
    """The trials as the attribute `trials_`."""
    columns: dict[str, list[Any]] = {
        "features": [trial.settings.shape.n_kept for trial in trials],
        "rank": [trial.settings.shape.rank or 0 for trial in trials],
        "planes": [trial.settings.shape.n_planes for trial in trials],
        "scaled": [trial.settings.shape.scaled for trial in trials],
        "noise": [trial.settings.noise for trial in trials],
        "rate": [trial.settings.rate for trial in trials],
        "passes": [trial.n_passes for trial in trials],
        "bytes": [trial.n_bytes for trial in trials],
        "error": [trial.error for trial in trials],
    }
    return {name: [float(value) for value in values] for name, values in columns.items()}
