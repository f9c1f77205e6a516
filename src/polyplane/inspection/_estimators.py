"""What explanations and displays ask of an estimator: its planes, its rows, the names of its features."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane.base import PlaneClassifier
from polyplane.committee import PlaneCommittee, check_single
from polyplane.planes import PlaneSet
from polyplane.tables.classifier import TableClassifier


def table_classifier(estimator: Any) -> TableClassifier | None:
    """The fitted classifier of tables that an estimator is, or the best of a search; None: it is another one."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, TableClassifier):
        return None
    check_is_fitted(estimator)
    return estimator


def refuse_given(parameters: dict[str, Any], why: str) -> None:
    """Refuse parameters that have no meaning for a model."""
    for name, value in parameters.items():
        if value is not None:
            raise TypeError(f"{name} cannot be given: {why}.")


def plane_classifier(estimator: Any) -> PlaneClassifier:
    """The fitted classifier of this library that an estimator is, or that a pipeline ends in."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(last, OneVsOneClassifier | OneVsRestClassifier | OutputCodeClassifier):
        raise TypeError(
            f"{type(last).__name__} votes among several models, it is not one set of planes: use one of its "
            f"estimators_, or a learner that takes several classes at once, such as MultiHyperplaneClassifier."
        )
    if isinstance(last, TableClassifier):
        raise TypeError(
            "A TableClassifier has no planes over the columns of its table: use explain_model, explain_row, "
            "ImportanceDisplay, EffectsDisplay or ReasonsDisplay."
        )
    if not isinstance(last, PlaneClassifier):
        raise TypeError(f"{type(last).__name__} is not a classifier of this library: it has no planes.")
    check_is_fitted(last)
    return last


def alone(planes: PlaneSet | PlaneCommittee) -> PlaneSet | PlaneCommittee:
    """The planes, those of a committee of one member as a single set."""
    return planes.members[0] if isinstance(planes, PlaneCommittee) and planes.n_members == 1 else planes


def single_planes(estimator: Any) -> PlaneSet:
    """The planes of an estimator where one of them decides: a committee of several members is refused."""
    return check_single(alone(plane_classifier(estimator).planes_))


def transformed_rows(estimator: Any, X: Any) -> Any:
    """The rows as the classifier sees them, after the other steps of a pipeline."""
    X = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X
    return X if sparse.issparse(X) else np.asarray(X, dtype=plane_classifier(estimator).planes_.coef.dtype)


def names_seen_in_fit(estimator: Any) -> list[str] | None:
    """Names of the features that the estimator was fitted on; None: they had none."""
    seen = getattr(estimator, "feature_names_in_", getattr(plane_classifier(estimator), "feature_names_in_", None))
    return None if seen is None else [str(name) for name in seen]


def names_of_features(estimator: Any, given: Any = None) -> tuple[str, ...]:
    """Names of the features: those given, those seen in `fit`, or their numbers."""
    n_features = plane_classifier(estimator).planes_.n_features
    names = names_seen_in_fit(estimator) if given is None else given
    if names is None:
        return tuple(f"feature {j}" for j in range(n_features))
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names; the model has {n_features} features.")
    return tuple(str(name) for name in names)
