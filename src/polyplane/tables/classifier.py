"""`TableClassifier`: a table as it comes, in one call."""

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
from polyplane.planes import PlaneSet
from polyplane.tables._choice import Candidate, Choice, EncodedRows, candidates, choose_preparation
from polyplane.tables._committee import Plan, mixed, n_passes, train_committee
from polyplane.tables._model import Member, TableModel
from polyplane.tables._preparation import RECIPES
from polyplane.tables._stream import FIRST_ROWS, TableStream, partial_fit
from polyplane.tables.encoder import GAPS, TableEncoder


@dataclass(eq=False, repr=False)
class TableClassifier(ClassifierMixin, BaseEstimator):
    """Classify the rows of a table as it comes: numbers of any scale, text, booleans, dates, gaps.

    A `TableEncoder` makes numbers of the columns. Small machines on several preparations of these numbers are compared
    on held-out rows, and the best ones once more with features weighted by their relevance, so that irrelevant columns
    fade. Then a committee of multi-hyperplane machines is trained, as in `MultiHyperplaneClassifier`, with other seeds,
    on all rows in the best preparation, and one each in the second- and third-best. Their scores are averaged, and
    brought to the temperature that held-out rows asked for before they become probabilities.

    Parameters
    ----------
    n_estimators : int, default=5
        Machines of the committee. With 1 the model is one `PlaneSet`.
    preparation : {"standard", "robust", "robust+norm", "squares", "bins"} or None, default=None
        What is made of the numbers before training: zero mean and unit variance; median 0, interquartile range 1 and a
        smooth clip at 3; the same with one more feature, the squared norm; unit variance with all squares; robust
        with the piecewise-linear bins that a small tree finds in each column. None: chosen on held-out rows.
    kinds : dict of str to str or None, default=None
        Kinds of columns that are not to be guessed, see `TableEncoder`.
    min_rows, max_levels, decimal, gaps
        How texts are read, see `TableEncoder`.
    n_planes : int or None, default=None
        Planes of each class, in each machine. None: chosen on held-out rows.
    max_iter : int or None, default=None
        Passes over the rows, at most. None: as many as visit 500,000 rows, at least 20 and at most 60.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    random_state : int, RandomState or None, default=None
        Source of all that is drawn.
    n_jobs : int or None, default=None
        Threads for the machines.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    encoder_ : TableEncoder
        How columns become numbers; its ``dropped_`` names the columns that are not used.
    preparation_ : list of str
        The preparation of each machine; "bins, weighted" is bins with features weighted by their relevance.
    model_ : TableModel
        All that was learned, from columns to scores.
    members_ : tuple of Member
        The machines: the preparation and the planes of each.
    temperature_ : float
        What mean scores are divided by before the softmax.
    n_iter_ : int
        Passes of the machine that made most of them; after `fit_stream` and `partial_fit`, the number of parts.
    encoder_rows_ : int
        Rows that the encoder, the preparation and the number of planes were learned from; in `fit` all of them.
    history_ : dict of str to list of float
        After `fit_stream` and `partial_fit`: figures of each part.
    choice_ : dict of str to float
        The log-losses of the preparations on held-out rows, the best first; those of weighted features with a standard
        error added. Empty where `preparation` is given.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
        """Learn from labelled rows.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.
        y : array-like of shape (n_rows,)
            The labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. Rows with zero weight are ignored.

        Returns
        -------
        self : object
            The fitted estimator. When `fit` fails or is interrupted, the estimator is left as it was.
        """
        self._validate_params()
        return self._fit_encoded(*self._encode(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more part of the rows.

        The first part is learned from as in `fit`: from it come the encoder, the preparation and the number of planes,
        so it should have some thousand rows. On later parts the machines go on training. `fit_stream` does that for
        many parts, and waits for enough rows first.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The new rows.
        y : array-like of shape (n_rows,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; needed at the first call.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The estimator. When a step fails, it is left as it was.
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
        """Learn from a table that comes in parts, each of which is seen once per pass.

        From the first rows come the encoder, the preparation, the number of planes and a first model, as `fit` learns
        it; a stream that ends there gives the model of `fit`. On later parts the machines go on training; a uniform
        sample of 50,000 rows is kept, to be visited again beside new ones, and the temperature of the probabilities is
        that of the last rows, scored before they were learned from. Levels that do not occur in the first rows
        are "other".

        When the stream breaks off, by an error of its own, a part that is refused or Ctrl-C, the exception is raised
        and the model is that of the parts before. There are no checkpoints.

        Parameters
        ----------
        batches : iterable, or function that returns one
            ``(X, y)`` or ``(X, y, weight)`` again and again, where X is a table as `fit` takes it; its columns may come
            in another order. A function is called for each pass.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; None: those of the first rows. A part with another label is refused.
        passes : int, default=1
            How often to go through the stream.
        first_rows : int, default=50000
            The encoder and all that is chosen are learned when so many rows have come.
        time_limit : float or None, default=None
            Seconds after which to end, when the part at hand is done.
        prefetch : int, default=0
            Parts to read ahead, in a thread of their own.

        Returns
        -------
        self : object
            The fitted estimator. Its ``encoder_rows_`` is the number of rows that the encoder was learned from; its
            ``history_`` holds, for the first rows and for each part after them, "time", "rows" (up to here), "pass" and
            "progressive_error" (of the part, before training on it; NaN for the first rows).

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
        """Learn from rows that are encoded."""
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
        self.model_ = TableModel(encoder.encoding_, tuple(members), temperature)
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
        """Probabilities of the classes.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            The softmax of the mean scores of the machines, at the temperature that held-out rows asked for.
        """
        check_is_fitted(self)
        return self.model_.probabilities(self._class_scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Labels of the rows.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The most probable label.
        """
        check_is_fitted(self)
        return self.classes_[self._class_scores(X).argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) for two classes
            For two classes, that of the second less that of the first: above 0 the second is predicted.
        """
        check_is_fitted(self)
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @property
    def members_(self) -> tuple[Member, ...]:
        """The machines: the preparation and the planes of each."""
        return self.model_.members

    @property
    def temperature_(self) -> float:
        """What mean scores are divided by before the softmax."""
        return self.model_.temperature

    @property
    def planes_(self) -> PlaneSet:
        """The planes over prepared rows, where there is one machine."""
        if len(self.members_) > 1:
            raise AttributeError(
                f"A committee of {len(self.members_)} machines has no planes_ of its own: see members_, or fit with "
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
        return hasattr(self, "model_")

    def _class_scores(self, X: Any) -> np.ndarray:
        return self.model_.class_scores(self.model_.encode(X, type(self).__name__), self.n_jobs)

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
