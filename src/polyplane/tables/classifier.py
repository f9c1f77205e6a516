"""`TableClassifier`: a classifier for raw tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from polyplane._validation import check_classes, check_targets, check_weights, encode
from polyplane.model import Model
from polyplane.planes import PlaneSet
from polyplane.tables._choice import Candidate, Choice, EncodedRows, candidates, choose_preparation
from polyplane.tables._committee import Plan, mixed, n_passes, train_committee
from polyplane.tables._model import Member, TableModel
from polyplane.tables._preparation import RECIPES
from polyplane.tables._stream import FIRST_ROWS, TableStream, partial_fit
from polyplane.tables.encoder import GAPS, TableEncoder


@dataclass(eq=False, repr=False)
class TableClassifier(ClassifierMixin, BaseEstimator):
    """Classifier for raw tables: numbers of any scale, text, booleans, dates and missing values.

    A `TableEncoder` converts the columns to numeric features. Several preparations of these features (scalings and
    expansions) are compared by the held-out log-loss of small models; the best ones are compared again with features
    weighted by relevance, which reduces the influence of irrelevant columns. The final model is a committee: members
    are trained like `MultiHyperplaneClassifier`, with different seeds, on all rows and the best preparation, and one
    each on the second- and third-best preparation. Class probabilities are the softmax of the mean scores, with a
    temperature calibrated on held-out rows.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of committee members. With 1, the model is a single `PlaneSet`.
    preparation : {"standard", "robust", "robust+norm", "squares", "bins"} or None, default=None
        Preparation of the encoded features: "standard" scales to zero mean and unit variance; "robust" scales to zero
        median and unit interquartile range, with a smooth clip at 3; "robust+norm" adds the squared norm as a feature;
        "squares" is "standard" with the square of each number; "bins" is "robust" with the piecewise-linear bins that
        a small decision tree finds in each column. None: selected on held-out rows.
    kinds : dict of str to str or None, default=None
        Kinds of columns that should not be inferred, see `TableEncoder`.
    min_rows, max_levels, decimal, gaps
        Parameters of the `TableEncoder`.
    n_planes : int or None, default=None
        Number of planes per class, in each member. None: selected on held-out rows.
    max_iter : int or None, default=None
        Maximum number of passes over the rows (epochs). None: as many as visit 500,000 rows, at least 20 and at most
        60.
    class_weight : dict, "balanced" or None, default=None
        Class weights.
    random_state : int, RandomState or None, default=None
        Seed of the random number generator.
    n_jobs : int or None, default=None
        Number of threads; members are trained in parallel.
    verbose : int, default=0
        Verbosity; 1 shows progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    encoder_ : TableEncoder
        The fitted encoder; its ``dropped_`` lists the columns that are not used.
    preparation_ : list of str
        The preparation of each member; "bins, weighted" is "bins" with features weighted by relevance.
    model_ : Model
        The fitted model, from columns to class scores.
    members_ : tuple of Member
        The preparation and the planes of each committee member.
    temperature_ : float
        The softmax temperature: mean scores are divided by it.
    n_iter_ : int
        The largest number of passes of any member; after `fit_stream` and `partial_fit`, the number of batches.
    encoder_rows_ : int
        Number of rows used to fit the encoder and to select the preparation and the number of planes; in `fit`, all
        rows.
    history_ : dict of str to list of float
        Training history, one value per batch. Available after `fit_stream` and `partial_fit`.
    choice_ : dict of str to float
        The held-out log-loss of each preparation, the best first; for weighted features, one standard error is added.
        Empty if `preparation` is given.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns seen during fit. Defined only if the columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"size": rng.normal(size=400), "colour": rng.choice(["red", "blue"], 400)})
    >>> y = np.where((frame["size"] > 0) == (frame["colour"] == "red"), "ripe", "raw")
    >>> model = TableClassifier(random_state=0).fit(frame[:300], y[:300])
    >>> print(f"{model.score(frame[300:], y[300:]):.2f}")
    1.00
    """

    n_estimators: int = 5
    _: KW_ONLY
    preparation: str | None = None
    kinds: Mapping[str, str] | None = None
    min_rows: int = 5
    max_levels: int = 50
    decimal: str = "."
    gaps: Collection[str] = GAPS
    n_planes: int | None = None
    max_iter: int | None = None
    class_weight: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{k: v for k, v in TableEncoder._parameter_constraints.items() if k != "dtype"},
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "preparation": [StrOptions(set(RECIPES)), None],
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to a table.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The training table.
        y : array-like of shape (n_rows,)
            The class labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Sample weights. Rows with zero weight are ignored.

        Returns
        -------
        self : object
            The fitted estimator. If `fit` fails or is interrupted, the estimator does not change.
        """
        self._validate_params()
        return self._fit_encoded(*self._encode(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on one more batch of rows.

        The first call works like `fit`: it fits the encoder and selects the preparation and the number of planes, so
        the first batch should have a few thousand rows. Later calls continue the training of all members. `fit_stream`
        does this for a sequence of batches, and collects enough rows for the first step.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The batch.
        y : array-like of shape (n_rows,)
            The class labels.
        classes : array-like of shape (n_classes,), default=None
            All class labels. Required in the first call, optional in later calls.
        sample_weight : array-like of shape (n_rows,), default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted estimator. If a step fails, the estimator does not change.
        """
        self._validate_params()
        return partial_fit(self, X, y, classes, sample_weight)

    def fit_stream(
        self,
        batches: Iterable[Any] | Callable[..., Iterable[Any]],
        *,
        classes: Any = None,
        passes: int = 1,
        first_rows: int = FIRST_ROWS,
        time_limit: float | None = None,
        prefetch: int = 0,
    ) -> Self:
        """Train on a table that is read in batches.

        The first `first_rows` rows are used as in `fit`: they fit the encoder, select the preparation and the number of
        planes, and train a first model; a stream that ends there gives the same model as `fit`. Later batches continue
        the training of all members. A uniform sample of 50,000 rows is kept and visited again together with new rows.
        The softmax temperature is calibrated on the most recent rows, scored before training on them. Category levels
        that do not occur in the first rows are encoded as "other".

        If the stream raises an error, a batch is invalid or training is interrupted by Ctrl-C, the exception is raised
        and the estimator keeps the model of the batches before. Checkpoints are not supported.

        Parameters
        ----------
        batches : iterable, or function that returns one
            Yields ``(X, y)`` or ``(X, y, sample_weight)``, where X is a table as in `fit`; the order of named columns
            may vary. A function is called once per pass.
        classes : array-like of shape (n_classes,), default=None
            All class labels. None: the labels of the first rows. Other labels in later batches are an error.
        passes : int, default=1
            Number of passes over the stream.
        first_rows : int, default=50000
            Number of rows to collect for the encoder, the selection of the preparation and the first model.
        time_limit : float or None, default=None
            Time limit in seconds; training stops after the current batch.
        prefetch : int, default=0
            Number of batches to read ahead in a separate thread.

        Returns
        -------
        self : object
            The fitted estimator. ``encoder_rows_`` is the number of rows used to fit the encoder. ``history_`` has one
            value for the first rows and one for each later batch: "time", "rows" (total so far), "pass" and
            "progressive_error" (the error on the batch before training on it; NaN for the first rows).

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from polyplane import TableClassifier
        >>> def parts(n_parts=20):
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(n_parts):
        ...         frame = pd.DataFrame({"size": rng.normal(size=100), "colour": rng.choice(["red", "blue"], 100)})
        ...         yield frame, np.where((frame["size"] > 0) == (frame["colour"] == "red"), "ripe", "raw")
        >>> model = TableClassifier(random_state=0).fit_stream(parts, first_rows=300)
        >>> model.encoder_rows_, model.n_iter_
        (300, 20)
        >>> print(f"{model.history_['progressive_error'][-1]:.2f}")
        0.00
        """
        self._validate_params()
        stream = TableStream(self, classes, first_rows)
        try:
            stream.go(batches, passes, time_limit, prefetch)
        finally:
            if stream.is_fitted:
                self.__dict__ = stream.draft.__dict__
        return self

    def _fit_encoded(self, encoder: TableEncoder, classes: np.ndarray, rows: EncodedRows) -> Self:
        """Fit the model to encoded rows."""
        random = check_random_state(self.random_state)
        seeds = [int(seed) for seed in random.randint(2**31, size=self.n_estimators)]
        if self.preparation is not None:
            choice = Choice({}, [Candidate(self.preparation)])
        else:
            choice = choose_preparation(rows, candidates(rows), seeds[0], self.n_jobs)
        prepared = mixed(choice.ranking, self.n_estimators)
        max_iter = n_passes(len(rows.y)) if self.max_iter is None else self.max_iter
        plan = Plan(prepared, self.n_planes, max_iter, seeds, self.n_jobs, self.verbose)
        members, temperature, self.n_iter_ = train_committee(rows, plan)
        self.encoder_, self.classes_ = encoder, classes
        self.table_model_ = TableModel(encoder.encoding_, tuple(members), temperature)
        self.choice_ = choice.losses
        self.preparation_ = [candidate.label for candidate in prepared]
        self.n_features_in_ = encoder.n_features_in_
        self.encoder_rows_ = len(rows.y)
        for name in ("feature_names_in_", "history_", "_training"):
            self.__dict__.pop(name, None)
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            The softmax of the mean scores of the members, divided by ``temperature_``.
        """
        check_is_fitted(self)
        return self.table_model_.probabilities(self._class_scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The most probable class label of each row.
        """
        check_is_fitted(self)
        return self.classes_[self._class_scores(X).argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute class scores.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) for two classes
            The mean scores of the members. For two classes, the score of the second class minus that of the first;
            if positive, the second class is predicted.
        """
        check_is_fitted(self)
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @property
    def model_(self) -> Model:
        """The fitted model, from columns to class scores."""
        check_is_fitted(self)
        return self.table_model_.folded(self.classes_)

    @property
    def members_(self) -> tuple[Member, ...]:
        """The preparation and the planes of each committee member."""
        return self.table_model_.members

    @property
    def temperature_(self) -> float:
        """The softmax temperature: mean scores are divided by it."""
        return self.table_model_.temperature

    @property
    def planes_(self) -> PlaneSet:
        """The planes over prepared features, if there is a single member."""
        if len(self.members_) > 1:
            raise AttributeError(
                f"planes_ is not defined for a committee of {len(self.members_)} members: use members_, or fit with "
                "n_estimators=1."
            )
        return self.members_[0].planes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "table_model_")

    def _class_scores(self, X: Any) -> np.ndarray:
        return self.table_model_.class_scores(self.table_model_.encode(X, type(self).__name__), self.n_jobs)

    def _encode(
        self, X: Any, y: Any, sample_weight: Any, classes: np.ndarray | None = None
    ) -> tuple[TableEncoder, np.ndarray, EncodedRows]:
        """The encoder, the labels, and the rows of positive weight as numbers."""
        encoder = TableEncoder(
            self.kinds, min_rows=self.min_rows, max_levels=self.max_levels, decimal=self.decimal, gaps=self.gaps
        )
        table = encoder._read(X)
        y = check_targets(y, table.n_rows)
        classes = check_classes(y) if classes is None else classes
        codes = encode(y, classes)
        weight = check_weights(np.empty((table.n_rows, 1)), y, codes, classes, sample_weight, self.class_weight)
        used = np.flatnonzero(weight > 0)
        if len(used) < table.n_rows:
            table, codes, weight = table.take(used), codes[used], weight[used]
        if len(np.unique(codes)) < 2:
            raise ValueError("Fewer than two classes have rows of positive weight.")
        encoder._fit_table(table)
        Z = encoder.encoding_.encode(table, type(self).__name__)
        return encoder, classes, EncodedRows(Z, codes, weight, encoder.encoding_.is_indicator, len(classes))
