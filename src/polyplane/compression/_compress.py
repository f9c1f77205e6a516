"""`compress`: a fitted model made small."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane.base import PlaneClassifier
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
    """Make a fitted model small: the best planes that fit into a budget of bytes.

    The model is trained again on the rows, as one-byte tables of a shared projection and planes. The directions of the
    given planes are where the projection starts, and tell which features to keep. The numbers of features, projected
    features and planes are chosen on held-out rows; see `polyplane.compression.CompressedClassifier`.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of scalers that ends in one. The compressed model takes rows as
        the pipeline does, before its scalers. A `TableClassifier` cannot be compressed.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows that the model was trained on. Sparse rows are made dense.
    y : array-like of shape (n_rows,)
        Their labels.
    max_bytes : int
        The most bytes that the tables may take as constants of a compiled program, labels included; code is not
        counted.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    max_iter : int or None, default=None
        Passes over the rows in the last training. None: 60; more for fewer than 2,000 rows, fewer for more than 25,000.
    random_state : int, RandomState or None, default=None
        Controls the randomness of training.

    Returns
    -------
    small : CompressedClassifier
        The fitted classifier. ``small.n_bytes_`` is what its tables take, ``small.trials_`` what was tried.

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
    if not isinstance(last, PlaneClassifier):
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
    """Refuse rows that are not like those of the model; all else about them is checked in fitting."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) == 2 and shape[1] != n_features:
        raise ValueError(f"X has {shape[1]} features, but the model was fitted on {n_features}.")
    given = np.unique(np.asarray(y))
    unknown = given[~np.isin(given, classes)].tolist()
    if unknown:
        raise ValueError(
            f"y contains the label {unknown[0]!r}, which the model does not know: pass the rows that it was fitted on."
        )


def _coef(model: PlaneClassifier) -> np.ndarray:
    """Normals of the planes of a model, those of all machines of a committee."""
    planes: Any = model.to_numpy().planes_
    return np.asarray(getattr(planes, "together", planes).coef, dtype=np.float64)


def _factors(scalers: Pipeline, n_features: int) -> np.ndarray:
    """By how much the output of scalers changes with each feature."""
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
