"""`Predictor`: a fitted estimator as far as prediction needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyplane._array_api import is_sparse, softmax
from polyplane.committee import PlaneCommittee
from polyplane.planes import PlaneSet
from polyplane.serving._rows import read_rows, refuse_gaps
from polyplane.tables._model import TableModel


class Scorer(Protocol):
    """What gives the classes their scores."""

    @property
    def n_features(self) -> int:
        """Number of features, or of the columns of a table."""

    @property
    def feature_names(self) -> Any:
        """Their names, where they had names in training."""

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores become probabilities."""

    def class_scores(self, X: Any, owner: str) -> np.ndarray:
        """Scores of the classes, shape (n_rows, n_classes)."""

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities from scores."""


class PlaneScorer(NamedTuple):
    """The planes of a learner, over the features of a matrix."""

    planes: PlaneSet | PlaneCommittee
    feature_names: Any
    has_probabilities: bool

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.planes.n_features

    def class_scores(self, X: Any, owner: str) -> np.ndarray:
        """Scores of the classes."""
        rows = refuse_gaps(read_rows(X, self.feature_names, self.n_features, owner), owner)
        scores: np.ndarray = self.planes.class_scores(rows)
        return scores

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The softmax of the scores; of two classes it is the logistic function of their difference."""
        found: np.ndarray = softmax(scores.astype(np.float64))
        return found


class TableScorer(NamedTuple):
    """The machines of a `TableClassifier`, over the columns of a table."""

    model: TableModel
    has_probabilities: bool = True

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.model.encoding.names)

    @property
    def feature_names(self) -> Any:
        """The columns."""
        return self.model.encoding.names if self.model.encoding.is_named else None

    def class_scores(self, X: Any, owner: str) -> np.ndarray:
        """Scores of the classes."""
        return self.model.class_scores(self.model.encode(X, owner))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The softmax of the scores at the temperature of the model."""
        return self.model.probabilities(scores)


class Scalers(NamedTuple):
    """The scalers of a pipeline, one after the other."""

    n_features: int
    feature_names: Any
    transforms: Sequence[Callable[[np.ndarray], np.ndarray]]

    def apply(self, X: Any, owner: str) -> np.ndarray:
        """The rows as the estimator behind the scalers wants them."""
        rows = read_rows(X, self.feature_names, self.n_features, owner)
        if is_sparse(rows):
            raise TypeError("Sparse input is not supported by a pipeline of scalers here: pass X.toarray().")
        for transform in self.transforms:
            rows = transform(rows)
        return rows


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """A fitted estimator, read by `load`, as far as prediction needs it; NumPy is all that it uses.

    Labels and scores are those of the estimator; where it has probabilities, they are equal to 1e-6.

    Parameters
    ----------
    learner : str
        The name of the estimator's class; of a pipeline, that of its last step.
    classes : ndarray of shape (n_classes,)
        The labels.
    scorer : object
        What gives the classes their scores.
    scalers : object, default=None
        What is before it, if anything.

    See Also
    --------
    polyplane.serving.load : Read a predictor from a file.

    Notes
    -----
    `X` is, in all methods, a NumPy array of shape (n_rows, n_features), a list of rows, a data frame of pandas, Polars
    or Arrow, a dict of columns or a list of dicts, one for each row. Columns with names are found by them where the
    features had names in training; other columns may be there too. A learner also takes a sparse matrix of SciPy.

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
        """Their names, where they had names in training."""
        return (self.scalers or self.scorer).feature_names

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities, as the estimator has them."""
        return self.scorer.has_probabilities

    def class_scores(self, X: Any) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes)
            The class with the largest score is predicted.
        """
        rows = X if self.scalers is None else self.scalers.apply(X, self.learner)
        return self.scorer.class_scores(rows, self.learner)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, as the estimator's `decision_function` gives them.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the score of the second less that of the first: positive means the second.
        """
        scores = self.class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Labels of the rows.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            The rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The label with the largest score.
        """
        labels: np.ndarray = self.classes[self.class_scores(X).argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, where the estimator has them.

        Parameters
        ----------
        X : ndarray, data frame, dict or list
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes`.
        """
        if not self.has_probabilities:
            raise AttributeError(f"This {self.learner} has no probabilities: use decision_function.")
        return self.scorer.probabilities(self.class_scores(X))

    def __repr__(self) -> str:
        classes = self.classes[:5].tolist()
        more = f" and {len(self.classes) - 5} more" if len(self.classes) > 5 else ""
        return f"Predictor({self.learner!r}, n_features={self.n_features}, classes={classes}{more})"
