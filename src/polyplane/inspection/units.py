"""A model in the units of the data: the scalers of a pipeline folded into its planes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from polyplane.base import PlaneClassifier
from polyplane.planes import PlaneSet

KNOWN = "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and SimpleImputer"


@dataclass(frozen=True, eq=False)
class OwnUnits:
    """A fitted classifier, its planes in the units of the data.

    Parameters
    ----------
    estimator : object
        The classifier or pipeline.
    learner : PlaneClassifier
        The classifier of this library in it.
    planes : PlaneSet
        Its planes, for rows as they come, before any scaling.
    classes : ndarray of shape (n_classes,)
        The labels.
    feature_names : tuple of str
        Names of the features.
    center : ndarray of shape (n_features,)
        The row that the scalers make 0; 0 without scalers.
    scale : ndarray of shape (n_features,)
        The change of each feature that the scalers make 1; 1 without scalers.
    scaled : bool
        Whether there are scalers.
    fill : ndarray of shape (n_features,) or None
        What an imputer puts for missing values.
    named : bool
        Whether the names of the features were seen in `fit`.
    """

    estimator: Any
    learner: PlaneClassifier
    planes: PlaneSet
    classes: np.ndarray
    feature_names: tuple[str, ...]
    center: np.ndarray
    scale: np.ndarray
    scaled: bool
    fill: np.ndarray | None
    named: bool

    def rows(self, X: Any) -> Any:
        """Rows as numbers in their own units, missing ones filled in: a float matrix, dense or CSR."""
        self._check_names(X)
        matrix: Any = sparse.csr_array(X) if sparse.issparse(X) else _numbers(X)
        n_features = self.planes.n_features
        if matrix.ndim != 2 or matrix.shape[1] != n_features:
            raise ValueError(f"X has shape {matrix.shape}; the model needs {n_features} columns.")
        values = matrix.data if sparse.issparse(matrix) else matrix
        if np.isfinite(values).all():
            return matrix
        return self._filled(matrix.toarray() if sparse.issparse(matrix) else matrix)

    def label(self, c: int) -> Any:
        """The label of class `c`, as a plain Python value."""
        return self.classes[c : c + 1].tolist()[0]

    def code(self, label: Any) -> int:
        """The class with a label."""
        found = [c for c in range(len(self.classes)) if self.label(c) == label]
        if not found:
            raise ValueError(f"{label!r} is not one of the labels {self.classes.tolist()}.")
        return found[0]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The classes that the estimator itself gives to dense rows, as integers."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            answers = self.estimator.predict(X)
        codes: np.ndarray = np.searchsorted(self.classes, answers)
        return codes

    def _check_names(self, X: Any) -> None:
        columns = getattr(X, "columns", None)
        if self.named and columns is not None and [str(c) for c in columns] != list(self.feature_names):
            raise ValueError("The columns of X are not those that the model was trained on, in the same order.")

    def _filled(self, matrix: np.ndarray) -> np.ndarray:
        row, j = np.argwhere(~np.isfinite(matrix))[0]
        if self.fill is None or np.isinf(matrix).any():
            raise ValueError(
                f"Row {row} has no finite value for {self.feature_names[j]!r}, and the model has no imputer."
                if self.fill is None
                else f"Row {row} is infinite in {self.feature_names[j]!r}."
            )
        return np.where(np.isnan(matrix), self.fill, matrix)


def unwrap(estimator: Any, feature_names: Any = None) -> OwnUnits:
    """The planes of a fitted classifier or pipeline in the units of the data.

    Scalers are affine, so they can be folded into the planes: what comes out predicts the same from rows as they are.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted classifier of this library, alone or behind StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler
        and SimpleImputer in a pipeline; or a fitted search over such ones (its best is taken).
    feature_names : sequence of str, default=None
        Names of the features; None: those seen in `fit`, or "feature 0" and so on.

    Returns
    -------
    model : OwnUnits
        The planes, labels, names, and the units of the scalers.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.inspection import unwrap
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> machine = make_pipeline(StandardScaler(), CuttingPlaneSVC(C=0.01)).fit(X, y)
    >>> model = unwrap(machine)
    >>> bool((model.planes.predict(X.to_numpy()) == machine.predict(X)).all())
    True
    >>> model.feature_names[0], round(float(model.center[0]), 2)
    ('mean radius', 14.13)
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    steps = list(estimator.named_steps.items()) if isinstance(estimator, Pipeline) else [("", estimator)]
    learner = _learner(steps[-1][1])
    factor, shift, fill = np.ones(1), np.zeros(1), None
    scalers = [(name, step) for name, step in steps[:-1] if step is not None and step != "passthrough"]
    for name, step in scalers:
        check_is_fitted(step)
        if isinstance(step, SimpleImputer):
            fill = (_statistics(step) - shift) / factor if fill is None else fill
        else:
            times, plus = _affine(name, step)
            factor, shift = factor * times, shift * times + plus
    planes, scaled = learner.planes_, len(factor) > 1
    factor, shift = np.broadcast_to(factor, planes.n_features), np.broadcast_to(shift, planes.n_features)
    if scaled:
        coef = planes.coef.astype(np.float64)
        planes = PlaneSet(coef * factor, planes.intercept + coef @ shift, planes.indptr)
    names, named = _names(estimator, learner, feature_names)
    center, scale = -shift / factor, 1.0 / np.abs(factor)
    return OwnUnits(estimator, learner, planes, learner.classes_, names, center, scale, scaled, fill, named)


def _learner(last: Any) -> PlaneClassifier:
    if isinstance(last, OneVsOneClassifier | OneVsRestClassifier | OutputCodeClassifier):
        raise TypeError(
            f"{type(last).__name__} votes among several models, it is not one set of planes: explain one of its "
            f"estimators_, or use a learner that takes several classes at once, such as MultiHyperplaneClassifier."
        )
    if not isinstance(last, PlaneClassifier):
        raise TypeError(f"{type(last).__name__} is not a classifier of this library: it has no planes to explain.")
    check_is_fitted(last)
    return last


def _affine(name: str, step: Any) -> tuple[np.ndarray, np.ndarray]:
    """What a scaler multiplies with, and what it adds."""
    n_features = step.n_features_in_ if hasattr(step, "n_features_in_") else 1
    ones, zeros = np.ones(n_features), np.zeros(n_features)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return ones * step.scale_, ones * step.min_
    if isinstance(step, StandardScaler | RobustScaler | MaxAbsScaler) and not getattr(step, "clip", False):
        with_center = getattr(step, "with_mean", getattr(step, "with_centering", False))
        center = getattr(step, "mean_", getattr(step, "center_", None)) if with_center else None
        factor = ones / (ones if step.scale_ is None else step.scale_)
        return factor, zeros if center is None else -center * factor
    clips = " with clip=True" if getattr(step, "clip", False) else ""
    raise TypeError(
        f"The step {name!r} of the pipeline, {type(step).__name__}{clips}, cannot be folded into planes; "
        f"{KNOWN} can. Explain the last step alone, in the units that it sees."
    )


def _statistics(step: SimpleImputer) -> np.ndarray:
    """What an imputer fills in."""
    missing = step.missing_values
    if step.add_indicator or not (isinstance(missing, float) and np.isnan(missing)):
        raise TypeError("Only a SimpleImputer of NaN without indicators can be explained.")
    statistics = np.asarray(step.statistics_, dtype=np.float64)
    if np.isnan(statistics).any() and not step.keep_empty_features:
        raise TypeError("The SimpleImputer leaves out features that were always missing: leave them out beforehand.")
    return np.nan_to_num(statistics)


def _names(estimator: Any, learner: PlaneClassifier, given: Any) -> tuple[tuple[str, ...], bool]:
    n_features = learner.planes_.n_features
    seen = getattr(estimator, "feature_names_in_", getattr(learner, "feature_names_in_", None))
    names = seen if given is None else given
    if names is None:
        return tuple(f"feature {j}" for j in range(n_features)), False
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names; the model has {n_features} features.")
    return tuple(str(name) for name in names), given is None


def _numbers(X: Any) -> np.ndarray:
    try:
        matrix = np.asarray(X)
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("X must hold numbers.") from None
