"""`unwrap`: planes in the units of the data, with the scalers of a pipeline folded into them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane._validation import encode
from polyplane.committee import PlaneCommittee
from polyplane.explain._estimators import alone, fitted_feature_names, names_of_features, plane_classifier
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

KNOWN = "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and SimpleImputer"


@dataclass(frozen=True, eq=False)
class UnscaledModel:
    """Fitted classifier with its planes in the units of the data.

    Parameters
    ----------
    estimator : object
        The classifier or pipeline.
    learner : PlanePrediction
        The Polyplane classifier, the last step of a pipeline.
    planes : PlaneSet or PlaneCommittee
        Its planes, for unscaled rows; for a committee of one member, the `PlaneSet` of this member.
    classes : ndarray of shape (n_classes,)
        Class labels.
    feature_names : tuple of str
        Names of the features.
    scaling : AffineScaling
        The scaling of the features.
    scaled : bool
        Whether the pipeline has scalers.
    fill : ndarray of shape (n_features,) or None
        Values that the imputer fills in for missing values; None without an imputer.
    """

    estimator: Any
    learner: PlanePrediction
    planes: PlaneSet | PlaneCommittee
    classes: np.ndarray
    feature_names: tuple[str, ...]
    scaling: AffineScaling
    scaled: bool
    fill: np.ndarray | None

    @property
    def center(self) -> np.ndarray:
        """The row that the scalers map to 0; 0 without scalers."""
        return np.asarray(self.scaling.centre)

    @property
    def scale(self) -> np.ndarray:
        """The change of each feature that the scalers map to 1; 1 without scalers."""
        return 1.0 / np.abs(self.scaling.factor)

    def rows(self, X: Any) -> Any:
        """Convert rows to a float matrix in the units of the data, dense or CSR, with missing values imputed."""
        self._check_names(X)
        matrix: Any = sparse.csr_array(X) if sparse.issparse(X) else _numbers(X)
        n_features = self.planes.n_features
        if matrix.ndim != 2 or matrix.shape[1] != n_features:
            raise ValueError(f"X has shape {matrix.shape}, but the model has {n_features} features.")
        values = matrix.data if sparse.issparse(matrix) else matrix
        if np.isfinite(values).all():
            return matrix
        return self._filled(matrix.toarray() if sparse.issparse(matrix) else matrix)

    def label(self, c: int) -> Any:
        """Return the label of class `c`, as a plain Python value."""
        return self.classes.tolist()[c]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the class indices of dense rows with the estimator itself."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return encode(self.estimator.predict(X), self.classes)

    def _check_names(self, X: Any) -> None:
        columns, seen = getattr(X, "columns", None), fitted_feature_names(self.estimator)
        if columns is not None and seen is not None and [str(name) for name in columns] != seen:
            raise ValueError("The columns of X must be those that the model was trained on, in the same order.")

    def _filled(self, matrix: np.ndarray) -> np.ndarray:
        row, j = np.argwhere(~np.isfinite(matrix))[0]
        if self.fill is None:
            raise ValueError(
                f"Row {row} has a missing value of {self.feature_names[j]!r}, and the model has no imputer."
            )
        if np.isinf(matrix).any():
            raise ValueError(f"Row {row} has an infinite value of {self.feature_names[j]!r}.")
        return np.where(np.isnan(matrix), self.fill, matrix)


def unwrap(estimator: Any, feature_names: Any = None) -> UnscaledModel:
    """Return the planes of a fitted classifier or pipeline in the units of the data.

    Scalers are affine transformations, so they can be folded into the planes, which then make the same predictions from
    unscaled rows.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted Polyplane classifier, or a pipeline of StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or
        SimpleImputer steps that ends in one, or a fitted search over such estimators, of which the best is used.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`, or "feature 0" and so on.

    Returns
    -------
    model : UnscaledModel
        Planes, labels, feature names and scaling.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import unwrap
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> estimator = make_pipeline(StandardScaler(), CuttingPlaneSVC(C=0.01)).fit(X, y)
    >>> model = unwrap(estimator)
    >>> bool((model.planes.predict(X.to_numpy()) == estimator.predict(X)).all())
    True
    >>> model.feature_names[0], round(float(model.center[0]), 2)
    ('mean radius', 14.13)
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    learner = plane_classifier(estimator)
    planes = alone(learner.planes_)
    scaling, scaled, fill = AffineScaling.identity(planes.n_features), False, None
    for name, step in estimator.steps[:-1] if isinstance(estimator, Pipeline) else ():
        if step is None or step == "passthrough":
            continue
        check_is_fitted(step)
        if isinstance(step, SimpleImputer):
            fill = scaling.undo(_statistics(step)) if fill is None else fill
        else:
            scaling, scaled = scaling.then(_affine(name, step)), True
    if scaled:
        planes = _folded(planes, scaling)
    names = names_of_features(estimator, feature_names)
    return UnscaledModel(estimator, learner, planes, learner.classes_, names, scaling, scaled, fill)


def _folded(planes: PlaneSet | PlaneCommittee, scaling: AffineScaling) -> PlaneSet | PlaneCommittee:
    """Return the planes for unscaled rows."""
    if isinstance(planes, PlaneCommittee):
        return PlaneCommittee([_folded(member, scaling) for member in planes.members])  # type: ignore[misc]
    exact = planes.coef.astype(np.float64), planes.intercept.astype(np.float64)
    return PlaneSet(*scaling.to_input_space(*exact), planes.indptr)


def _affine(name: str, step: Any) -> AffineScaling:
    """Return the affine transformation of a scaler."""
    clips = getattr(step, "clip", False)
    if clips or not isinstance(step, StandardScaler | RobustScaler | MaxAbsScaler | MinMaxScaler):
        raise TypeError(
            f"The step {name!r} of the pipeline, {type(step).__name__}{' with clip=True' * clips}, cannot be folded "
            f"into planes; {KNOWN} can. Explain the last step alone, in the units of its input."
        )
    if isinstance(step, MinMaxScaler):
        return AffineScaling(-step.min_ / step.scale_, step.scale_)
    with_center = getattr(step, "with_mean", getattr(step, "with_centering", False))
    center = getattr(step, "mean_", getattr(step, "center_", None)) if with_center else np.zeros(step.n_features_in_)
    return AffineScaling(center, 1.0 / (np.ones(step.n_features_in_) if step.scale_ is None else step.scale_))


def _statistics(step: SimpleImputer) -> np.ndarray:
    """Return the values that an imputer fills in."""
    missing = step.missing_values
    if step.add_indicator or not (isinstance(missing, float) and np.isnan(missing)):
        raise TypeError("Only a SimpleImputer with missing_values=nan and add_indicator=False can be explained.")
    statistics = np.asarray(step.statistics_, dtype=np.float64)
    if np.isnan(statistics).any() and not step.keep_empty_features:
        raise TypeError("The SimpleImputer drops features without values: remove these features before training.")
    return np.nan_to_num(statistics)


def _numbers(X: Any) -> np.ndarray:
    try:
        matrix = np.asarray(X)
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("X must contain numbers only.") from None
