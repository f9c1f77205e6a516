"""`PlanePrediction`: prediction with planes, shared by all classifiers with planes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from polyplane._array_api import labels_of
from polyplane._validation import check_fitted_matrix
from polyplane.committee import PlaneCommittee
from polyplane.features import Features
from polyplane.inputs.encoding import MatrixInputs
from polyplane.model import Model
from polyplane.planes import PlaneSet


class PlanePrediction(ClassifierMixin, BaseEstimator):
    """A classifier that predicts with planes: scores, labels and coefficients.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    """

    #: A `polyplane.base.Declaration`.
    _declaration: ClassVar[Any]

    planes_: PlaneSet
    classes_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    _state: Any

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute class scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the score of the second class minus that of the first; if positive, the second class is
            predicted.
        """
        X = check_fitted_matrix(self, X)
        scores = self.planes_.class_scores(X, getattr(self, "n_jobs", None))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The label of the class whose plane has the highest score.
        """
        X = check_fitted_matrix(self, X)
        return labels_of(self.classes_, self.planes_.predict(X, getattr(self, "n_jobs", None)))

    @property
    def model_(self) -> Model:
        """The fitted model in host memory, from the columns of the rows to class scores."""
        check_is_fitted(self)
        planes: Any = self.planes_.to_numpy()
        names = getattr(self, "feature_names_in_", None)
        if isinstance(planes, PlaneCommittee):
            planes = PlaneSet.of_members(planes.members)
        n_columns = planes.n_features
        return Model(
            MatrixInputs(n_columns, None if names is None else tuple(map(str, names))),
            Features.identity(n_columns),
            planes,
            self.classes_,
            temperature=1.0 if hasattr(self, "predict_proba") else None,
            learner=type(self).__name__,
        )

    def _restore(self, model: Model, fitted: Mapping[str, Any]) -> None:
        """Set the fitted attributes: those that follow from the model, and others; for model files."""
        planes: Any = model.planes if model.planes.n_members == 1 else PlaneCommittee(model.planes.members)
        self.planes_, self.classes_, self.n_features_in_ = planes, model.classes, model.n_columns
        if model.inputs.is_named:
            self.feature_names_in_ = np.array(model.inputs.names, dtype=object)
        self.__dict__.update(fitted)

    def _accepts_state(self, state: Any) -> bool:
        """Whether a state from a file, whose sizes are those of the model, can be continued."""
        return True

    def to_numpy(self) -> Self:
        """Copy the fitted model to host memory.

        Returns
        -------
        estimator : object
            A copy with NumPy arrays, from which training can continue.
        """
        host = copy(self)
        host.planes_ = self.planes_.to_numpy()
        if hasattr(self, "_state"):
            host._state = self._state.to_host()
        return host

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self._declaration.multi_class
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "planes_")

    @property
    def coef_(self) -> np.ndarray:
        """Normals of the planes, class by class: ``planes_.coef``.

        If two classes own one plane each, the classifier is linear, and this is the difference of their normals, of
        shape (1, n_features) as in `LinearSVC`: ``decision_function(X)`` is ``(X @ coef_.T + intercept_)[:, 0]``.
        """
        return self._as_linear(self.planes_.coef)

    @property
    def intercept_(self) -> np.ndarray:
        """Offsets of the planes: ``planes_.intercept``, or their difference, of shape (1,); see ``coef_``."""
        return self._as_linear(self.planes_.intercept)

    def _as_linear(self, part: Any) -> Any:
        """A part of the planes, or the difference of two where there is one plane for each of two classes."""
        if not self.planes_.n_classes == self.planes_.n_planes == 2:
            return part
        difference = part[1:, ...] - part[:1, ...]
        if isinstance(difference, np.ndarray):
            difference.flags.writeable = False  # like the planes: changes to this copy would have no effect
        return difference
