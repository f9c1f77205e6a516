"""`compress`: compression of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane.compression.classifier import CompressedClassifier


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
        the pipeline does, before its scalers. A `TableClassifier` cannot be compressed.
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
    model = getattr(model, "best_estimator_", model)
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, PlanePrediction):
        raise TypeError(
            "compress takes a fitted learner of Polyplane, or a pipeline of scalers that ends in one, not a "
            f"{type(last).__name__}."
        )
    check_is_fitted(last)
    coef = _coef(last)
    if isinstance(model, Pipeline) and len(model) > 1:
        coef = coef * _factors(model[:-1], coef.shape[1])
    _check_rows(X, y, last.classes_, coef.shape[1])
    small = CompressedClassifier(max_bytes, max_iter=max_iter, random_state=random_state)
    return small._fit_from(coef, X, y, sample_weight)


def _check_rows(X: Any, y: Any, classes: np.ndarray, n_features: int) -> None:
    """Check the number of features and the labels against the model; `fit` checks everything else."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) == 2 and shape[1] != n_features:
        raise ValueError(f"X has {shape[1]} features, but the model was fitted on {n_features}.")
    given = np.unique(np.asarray(y))
    unknown = given[~np.isin(given, classes)].tolist()
    if unknown:
        raise ValueError(
            f"y contains the label {unknown[0]!r}, which the model was not fitted on: pass the rows it was fitted on."
        )


def _coef(model: PlanePrediction) -> np.ndarray:
    """Normals of the planes, shape (n_planes, n_features); of a committee, those of all members."""
    planes: Any = model.to_numpy().planes_
    return np.asarray(getattr(planes, "together", planes).coef, dtype=np.float64)


def _factors(scalers: Pipeline, n_features: int) -> np.ndarray:
    """The factor by which the scalers multiply each feature."""
    probe = np.random.default_rng(0).normal(size=n_features)
    rows: Any = np.stack([np.zeros(n_features), np.ones(n_features), probe])
    names = getattr(scalers[0], "feature_names_in_", None)
    if names is not None:
        import pandas

        rows = pandas.DataFrame(rows, columns=names)
    zero, one, other = np.asarray(scalers.transform(rows), dtype=np.float64)
    if zero.shape != probe.shape or not np.allclose(other, zero + (one - zero) * probe, rtol=1e-6):
        raise TypeError("compress takes pipelines whose steps before the last scale each feature by a factor.")
    return np.asarray(one - zero)
