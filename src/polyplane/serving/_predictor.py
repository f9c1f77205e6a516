"""`Predictor`: the part of a fitted estimator that prediction needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyplane._array_api import is_sparse, softmax
from polyplane.committee import PlaneCommittee
from polyplane.planes import PlaneSet
from polyplane.serving._rows import read_rows, refuse_missing
from polyplane.tables._model import TableModel


class Scorer(Protocol):
    """Computes the scores of the classes."""

    @property
    def n_features(self) -> int:
        """Number of features, or of the columns of a table."""

    @property
    def feature_names(self) -> Any:
        """Names of the features seen during `fit`; None if they had no names."""

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores can be converted to probabilities."""

    def class_scores(self, X: Any, owner: str) -> np.ndarray:
        """Compute the scores of the classes, shape (n_rows, n_classes)."""

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores to probabilities."""


class PlaneScorer(NamedTuple):
    """Scorer of a learner: planes over the features of a matrix."""

    planes: PlaneSet | PlaneCommittee
    feature_names: Any
    has_probabilities: bool

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.planes.n_features

    def class_scores(self, X: Any, owner: str) -> np.ndarray:
        """Compute the scores of the classes."""
        rows = refuse_missing(read_rows(X, self.feature_names, self.n_features, owner), owner)
        scores: np.ndarray = self.planes.class_scores(rows)
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Compute the softmax of the scores; for two classes, the logistic function of their difference."""
        probabilities: np.ndarray = softmax(scores.astype(np.float64))
        return probabilities


class TableScorer(NamedTuple):
    """Scorer of a `TableClassifier`: members over the columns of a table."""

    model: TableModel
    has_probabilities: bool = True

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.model.encoding.names)

    @property
    def feature_names(self) -> Any:
        """Names of the columns seen during `fit`; None if they had no names."""
        return self.model.encoding.names if self.model.encoding.is_named else None

    def class_scores(self, X: Any, owner: str) -> np.ndarray:
        """Compute the scores of the classes."""
        return self.model.class_scores(self.model.encode(X, owner))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Compute the softmax of the scores at the temperature of the model."""
        return self.model.probabilities(scores)


class Scalers(NamedTuple):
    """The scalers of a pipeline, in order."""

    n_features: int
    feature_names: Any
    transforms: Sequence[Callable[[np.ndarray], np.ndarray]]

    def apply(self, X: Any, owner: str) -> np.ndarray:
        """Transform rows with all scalers."""
        rows = read_rows(X, self.feature_names, self.n_features, owner)
        if is_sparse(rows):
            raise TypeError("X is sparse, which a Predictor with scalers does not support: pass X.toarray().")
        for transform in self.transforms:
            rows = transform(rows)
        return rows


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """Fitted estimator for prediction only, as returned by `load`; it requires NumPy only.

    Labels and scores are identical to those of the estimator. Probabilities, if available, agree to within 1e-6.

    Parameters
    ----------
    learner : str
        Class name of the estimator; for a pipeline, of its last step.
    classes : ndarray of shape (n_classes,)
        Class labels.
    scorer : object
        Computes the scores of the classes.
    scalers : object, default=None
        The scalers of a pipeline.

    See Also
    --------
    polyplane.serving.load : Read a predictor from a model file.

    Notes
    -----
    In all methods, `X` is a NumPy array of shape (n_rows, n_features), a list of rows, a data frame of pandas, Polars
    or Arrow, a dict of columns, or a list of dicts, one per row. If the features had names during training, named
    columns are selected by name, in any order, and additional columns are ignored. Learners also accept sparse matrices
    of SciPy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane
    >>> from polyplane import serving
    >>> fruit = {"size": [1.0, 2.0, 7.0, 8.0] * 10, "colour": ["red", "green"] * 20}
    >>> model = polyplane.TableClassifier(random_state=0, n_planes=1).fit(fruit, ["raw", "raw", "ripe", "ripe"] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.safetensors"
    ...     polyplane.save(model, path)
    ...     predictor = serving.load(path)
    >>> predictor
    Predictor('TableClassifier', n_features=2, classes=['raw', 'ripe'])
    >>> predictor.predict([{"size": 7.5, "colour": "red"}, {"size": 1.5, "colour": None}]).tolist()
    ['ripe', 'raw']
    """

    learner: str
    classes: np.ndarray
    scorer: Scorer
    scalers: Scalers | None = None

    @property
    def n_features(self) -> int:
        """Number of features, or of the columns of a table."""
        return (self.scalers or self.scorer).n_features

    @property
    def feature_names(self) -> Any:
        """Names of the features seen during `fit`; None if they had no names."""
        return (self.scalers or self.scorer).feature_names

    @property
    def has_probabilities(self) -> bool:
        """Whether `predict_proba` is available."""
        return self.scorer.has_probabilities

    def class_scores(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            Rows to predict.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes)
            The class with the largest score is predicted.
        """
        rows = X if self.scalers is None else self.scalers.apply(X, self.learner)
        return self.scorer.class_scores(rows, self.learner)

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the decision function of the estimator.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            Rows to predict.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the classes. For two classes, the score of the second class minus that of the first: positive
            values predict the second class.
        """
        scores = self.class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of the rows.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The labels with the largest scores.
        """
        labels: np.ndarray = self.classes[self.class_scores(X).argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probabilities of the classes, if the estimator does.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes`.
        """
        if not self.has_probabilities:
            raise AttributeError(f"predict_proba is not available for this {self.learner}: use decision_function.")
        return self.scorer.probabilities(self.class_scores(X))

    def __repr__(self) -> str:
        classes = self.classes[:5].tolist()
        more = f" and {len(self.classes) - 5} more" if len(self.classes) > 5 else ""
        return f"Predictor({self.learner!r}, n_features={self.n_features}, classes={classes}{more})"
