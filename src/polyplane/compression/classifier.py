"""`CompressedClassifier`: planes within a memory budget, and `compress`, which starts from a fitted model."""

from __future__ import annotations

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
from polyplane.base import LARGEST_INTEGER, Declaration
from polyplane.compression.choice import Search
from polyplane.compression.shapes import check_compressed, label_bytes, model_bytes, smallest
from polyplane.engine.data import Data, refuse_extremes
from polyplane.files.values import Metrics
from polyplane.inputs.encoding import MatrixInputs
from polyplane.learners.monotone import ranks_of
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
    log-sum-exp of the scores of its planes. Predictions take the maximum instead, which needs no exponentials on a
    small device; the errors of the log-sum-exp, ``planes_.replace(pooling="logsumexp")``, are often slightly smaller.
    The numbers of features, projected features and planes, the scaling of the
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
    model_ : Model
        The integers and scales, as `polyplane.export` writes them to C: its planes and its projection.
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
        For each pass of the final training: "time", in seconds, and "loss".
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
        "max_bytes": [Interval(Integral, 1, LARGEST_INTEGER, closed="both")],
        "max_iter": [Interval(Integral, 1, LARGEST_INTEGER, closed="both"), None],
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

    def _fit_from(
        self, coef: np.ndarray | None, X: Any, y: Any, sample_weight: Any, ranks: np.ndarray | None = None
    ) -> Self:
        """Fit, starting from planes with the normals `coef` of shape (n_planes, n_features), if given.

        With `ranks`, of shape (n_features, n_classes), weights are in this order of the classes.
        """
        self._validate_params()
        if is_foreign(X):
            raise TypeError("CompressedClassifier trains on the CPU: pass X as a NumPy array.")
        draft: Any = copy(self)
        draft.__dict__.pop("planes_", None)
        data = draft._check_rows(X, y, sample_weight)
        n_classes, budget = len(draft.classes_), self.max_bytes - label_bytes(draft.classes_)
        draft._check_budget(budget, data.X.shape[1], n_classes)
        seed = int(check_random_state(self.random_state).randint(2**31))
        search = Search(replace(data, ranks=ranks), coef, budget, seed)
        draft.n_iter_ = self.max_iter or default_passes(len(data.y))
        parts, draft.history_ = search.final(search.run(), draft.n_iter_)
        inputs = MatrixInputs(data.X.shape[1])
        draft._model = Model(inputs, classes=draft.classes_, learner=type(self).__name__, **parts)
        draft.trials_ = search.trials()
        self.__dict__ = draft.__dict__
        return self

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> Data:
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
        dense = X.toarray() if is_sparse(X) else X
        return Data(dense, codes[used], weight / weight.mean(), np.arange(len(used)), len(self.classes_))

    @property
    def model_(self) -> Model:
        """The fitted model, from the columns of the rows to class scores."""
        check_is_fitted(self, "_model")
        return replace(self._model, inputs=self._inputs())

    @cached_property
    def planes_(self) -> PlaneSet:  # type: ignore[override]
        """The planes over all features, in float64, used for prediction."""
        check_is_fitted(self, "_model")
        return self._model.flat().planes

    @property
    def n_bytes_(self) -> int:
        """Size of the tables in bytes, including the labels."""
        return model_bytes(self._model)

    def _restore(self, model: Model, fitted: Mapping[str, Any]) -> None:
        """Set the fitted attributes: those that follow from the model, and others; for model files."""
        check_compressed(model)
        self._model = model
        super()._restore(model, fitted)
        del self.planes_  # those over all features follow from the model

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


def compress(
    model: Any,
    X: Any,
    y: Any,
    *,
    max_bytes: int,
    sample_weight: Any = None,
    max_iter: int | None = None,
    random_state: Any = None,
) -> CompressedClassifier:
    """Compress a fitted model to a memory budget.

    A new model is trained on the rows: a shared projection and planes, stored as tables of one-byte weights. The given
    planes initialise the projection and determine which features are kept. The numbers of features, projected features
    and planes are chosen on held-out rows; see `polyplane.compression.CompressedClassifier`.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of scalers that ends in one. The compressed model takes rows as
        the pipeline does, before its scalers. Constraints of `monotonic_cst` are kept, which excludes projections. A
        `TableClassifier` cannot be compressed.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows that the model was trained on. Sparse rows are converted to dense ones.
    y : array-like of shape (n_rows,)
        Their labels.
    max_bytes : int
        Maximum size in bytes of the tables as constants of a compiled program, including the labels; code is not
        counted.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    max_iter : int or None, default=None
        Passes over the rows in the final training. None: 60; more for fewer than 2,000 rows, fewer for more than
        25,000.
    random_state : int, RandomState or None, default=None
        Controls the randomness of training.

    Returns
    -------
    small : CompressedClassifier
        The fitted classifier. ``small.n_bytes_`` is the size of its tables, and ``small.trials_`` has the results on
        held-out rows.

    See Also
    --------
    polyplane.export : Write the tables as C.

    Examples
    --------
    >>> import polyplane
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = polyplane.MultiHyperplaneClassifier(random_state=0).fit(X_train, y_train)
    >>> small = polyplane.compress(model, X_train, y_train, max_bytes=4_000, random_state=0)
    >>> small.n_bytes_ <= 4_000, small.score(X_test, y_test) > 0.95
    (True, True)
    """
    whole = Model.of(model)
    if not whole.features.is_affine or whole.inputs.is_table:
        raise TypeError(
            "compress takes a fitted learner of Polyplane, or a pipeline of scalers that ends in one and scales each "
            f"feature by a factor, not a {whole.learner} of other features."
        )
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) == 2 and shape[1] != whole.n_columns:
        raise ValueError(f"X has {shape[1]} features, but the model was fitted on {whole.n_columns}.")
    given = np.unique(np.asarray(y))
    unknown = given[~np.isin(given, whole.classes)].tolist()
    if unknown:
        raise ValueError(
            f"y contains the label {unknown[0]!r}, which the model was not fitted on: pass the rows it was fitted on."
        )
    small = CompressedClassifier(max_bytes, max_iter=max_iter, random_state=random_state)
    ranks = ranks_of(model.steps[-1][1] if hasattr(model, "steps") else model)
    if ranks is not None:
        ranks = ranks[:, np.isin(whole.classes, given)]
    return small._fit_from(whole.flat().planes.coef.astype(np.float64), X, y, sample_weight, ranks)
