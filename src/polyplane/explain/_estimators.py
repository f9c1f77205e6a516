"""Access to the planes, rows and feature names of an estimator, for explanations and displays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane.committee import PlaneCommittee, check_single
from polyplane.planes import PlaneSet
from polyplane.tables.classifier import TableClassifier


def table_classifier(estimator: Any) -> TableClassifier | None:
    """Return the fitted `TableClassifier`, also of a search; None if the estimator is a different one."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, TableClassifier):
        return None
    check_is_fitted(estimator)
    return estimator


def refuse_given(parameters: dict[str, Any], why: str) -> None:
    """Raise an error if a parameter is given that does not apply to the model."""
    for name, value in parameters.items():
        if value is not None:
            raise TypeError(f"{name} cannot be set: {why}.")


def plane_classifier(estimator: Any) -> PlanePrediction:
    """Return the fitted Polyplane classifier: the estimator itself, or the last step of a pipeline."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(last, OneVsOneClassifier | OneVsRestClassifier | OutputCodeClassifier):
        raise TypeError(
            f"{type(last).__name__} combines several models and has no single set of planes: use one of its "
            f"estimators_, or a multi-class learner such as MultiHyperplaneClassifier."
        )
    if isinstance(last, TableClassifier):
        raise TypeError(
            "A TableClassifier has no planes over the columns of its table: use explain_model, explain_row, "
            "ImportanceDisplay, EffectsDisplay or ReasonsDisplay."
        )
    if not isinstance(last, PlanePrediction):
        raise TypeError(f"{type(last).__name__} is not a Polyplane classifier: it has no planes.")
    check_is_fitted(last)
    return last


def alone(planes: PlaneSet | PlaneCommittee) -> PlaneSet | PlaneCommittee:
    """Return the planes; for a committee of one member, the planes of this member."""
    return planes.members[0] if isinstance(planes, PlaneCommittee) and planes.n_members == 1 else planes


def single_planes(estimator: Any) -> PlaneSet:
    """Return the planes of an estimator, or raise an error if it is a committee of several members."""
    return check_single(alone(plane_classifier(estimator).planes_))


def transformed_rows(estimator: Any, X: Any) -> Any:
    """Transform rows with the steps of a pipeline before the classifier."""
    X = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X
    return X if sparse.issparse(X) else np.asarray(X, dtype=plane_classifier(estimator).planes_.coef.dtype)


def fitted_feature_names(estimator: Any) -> list[str] | None:
    """Return the names of the features seen during `fit`; None if they had no names."""
    seen = getattr(estimator, "feature_names_in_", getattr(plane_classifier(estimator), "feature_names_in_", None))
    return None if seen is None else [str(name) for name in seen]


def names_of_features(estimator: Any, given: Any = None) -> tuple[str, ...]:
    """Return the names of the features: the given ones, those seen during `fit`, or "feature 0" and so on."""
    n_features = plane_classifier(estimator).planes_.n_features
    names = fitted_feature_names(estimator) if given is None else given
    if names is None:
        return tuple(f"feature {j}" for j in range(n_features))
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names, but the model has {n_features} features.")
    return tuple(str(name) for name in names)
