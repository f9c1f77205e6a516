"""`TableClassifier`: a classifier for raw tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import repeat
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from polyplane._array_api import on_device
from polyplane._prediction import check_classes, check_targets, check_weights, encode
from polyplane._streaming import StreamOptions
from polyplane.base import Declaration, PlaneClassifier
from polyplane.engine.batches import Batch, Position, named_batch
from polyplane.engine.data import Data
from polyplane.engine.run import Limits, Progress, Run
from polyplane.engine.state import Number, Tuple, Whole
from polyplane.files.values import Listed, Numbers, Shared, Text, Value
from polyplane.inputs.encoding import CategoryColumn, TableInputs
from polyplane.inputs.evidence import Labels
from polyplane.inputs.frames import as_numbers, as_table, concatenated, loaded, positions_of
from polyplane.learners.monotone import class_ranks
from polyplane.model import Model
from polyplane.planes import PlaneSet
from polyplane.tables.choice import Plan, committee_to_train, n_passes, preparations_of, select
from polyplane.tables.encoder import GAPS, TableEncoder, warn_of_telling_columns
from polyplane.tables.members import EncodedRows, Member, TableStream, TableStreamState
from polyplane.tables.preparation import RECIPES, Preparation

#: Number of rows that determine the encoder and all choices, such as the number of planes. (Error on adult: 13.3 % if
#: these are all of its 32,561 rows; 13.3 to 13.7 % if they are the first 20,000 rows and the others follow in batches;
#: 13.9 % if they are the first 4,000 rows.)
FIRST_ROWS = 50_000
#: The parameters of `TableEncoder` that the classifier has, too.
ENCODER_PARAMETERS = [field.name for field in fields(TableEncoder) if field.name != "dtype"]


@dataclass(eq=False, repr=False)
class TableClassifier(PlaneClassifier):
    """Classifier for raw tables: numbers of any scale, text, booleans, dates and missing values.

    A `TableEncoder` converts the columns to numeric features. Categories of more than `max_levels` levels are also
    encoded by their *evidence* for the classes: how much more frequent a class is among the rows of the level than
    among all rows, as a difference of log-odds that is shrunk for levels of few rows. In training, the evidence of a
    row is that of other rows (five folds). The model is a committee of multi-hyperplane classifiers:
    candidates differ in the preparation of these features (scalings and expansions, plain or weighted by relevance,
    which reduces the influence of irrelevant columns) and in their numbers of planes per class. They are compared on
    held-out rows, and significantly worse ones are dropped early. From the others, members are selected one by one,
    with replacement, such that the log-loss of the committee on held-out rows is as small as possible. The members are
    then trained on all rows; a candidate that is selected several times is trained from different seeds. The score of a
    class is the weighted mean of its scores in the members, and class probabilities are the softmax of the scores at a
    temperature that is calibrated on the held-out rows.

    Up to 2,000 rows, the held-out rows are those of four folds, up to 4,000 of two of them. With more rows, candidates
    are compared on growing samples, the last of which has 25,000 rows or half of all rows; on each of them, more planes
    are tried if they are better. Tables with more rows can thus get more planes and finer features.

    `partial_fit` fits the encoder and a first model to the rows of the first call, and trains the members on those of
    later calls. Up to 50,000 rows are kept in memory, and a new model is fitted to all of them, on the same encoder,
    each time that there are twice as many: a call that takes as long as `fit`. (adult, first 1,000 rows and then
    batches of 1,000: 13.2 % error; 13.9 % if members are selected on the first rows only, 13.1 % by `fit`.)

    Parameters
    ----------
    n_estimators : int, default=8
        Maximum number of committee members; there are fewer if a candidate with one plane per class, whose training
        does not depend on the seed, is selected several times. With 1, the model is a single `PlaneSet`.
    preparation : {"standard", "robust", "robust+norm", "squares", "bins", "levels", "steps"} or None, default=None
        Preparation of the encoded features: "standard" scales to zero mean and unit variance; "robust" scales to zero
        median and unit interquartile range, with a smooth clip at 3; "robust+norm" adds the squared norm as a feature;
        "squares" is "standard" with the square of each number; "bins" is "robust" with the piecewise-linear bins that
        a small decision tree finds in each column; "levels" is "robust" with indicators of the values of numbers with
        at most 32 different ones, such as codes, ranks and counts; "steps" replaces each number by indicators of being
        above the splits of such a tree, for scorecards. None: selected among the others on held-out rows for each
        member.
    kinds : dict of str to str or list of str, or None, default=None
        Kinds of columns that should not be inferred, and levels of ordered categories, see `TableEncoder`.
    special_codes, min_rows, max_levels, max_words, decimal, date_format, gaps
        Parameters of the `TableEncoder`.
    n_planes : int or None, default=None
        Number of planes per class, in each member. None: selected on held-out rows for each member, from 1, 2, 4, 8, 16
        and 32, and more if these are better. With more than 200,000 rows, so is the size of the steps.
    max_iter : int or None, default=None
        Maximum number of passes over the rows (epochs). None: as many as visit 150,000 rows, at least 20 (on a device
        30) and at most 60.
    monotonic_cst : dict or array-like of shape (n_columns,), default=None
        Monotone columns: numbers, booleans or ordered categories. For two classes, 1 means that the probability of the
        second class never falls as the column grows, and -1 that it never grows; for more classes, see
        `MultiHyperplaneClassifier`. Missing values, special codes, and rare or unknown levels, are outside of the
        order. Preparations with squares or levels are not used.
    class_weight : dict, "balanced" or None, default=None
        Class weights.
    random_state : int, RandomState or None, default=None
        Seed of the random number generator.
    n_jobs : int or None, default=None
        Number of threads; members are trained in parallel.
    device : str or None, default=None
        Where the candidates and members are trained: the name of a PyTorch device, such as "cuda". Columns are encoded
        on the CPU, and the fitted model is the same kind of model, in host memory. Members are trained together, with
        batches of up to 1,024 rows; the batches after the first rows of a stream are trained on the CPU. None: on the
        CPU, without PyTorch.
    verbose : int, default=0
        Verbosity; 1 shows progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    encoder_ : TableEncoder
        The fitted encoder; its ``dropped_`` lists the columns that are not used.
    preparation_ : list of str
        The preparation of each member; "bins, weighted" is "bins" with features weighted by relevance,
        and "bins, weighted twice" with more unequal weights.
    model_ : Model
        The fitted model, from columns to class scores.
    members_ : tuple of Member
        The preparation, the planes and the weight of each committee member.
    temperature_ : float
        The softmax temperature: mean scores are divided by it.
    n_iter_ : int
        The largest number of passes of any member; after `fit_stream` and `partial_fit`, the number of batches.
    encoder_rows_ : int
        Number of rows used to fit the encoder and to select the members; in `fit`, all rows.
    history_ : dict of str to list of float
        Training history, one value per pass of `fit` or per batch. After `fit`, "time" begins with the selection.
    choice_ : dict of str to float
        The held-out log-loss of each candidate, such as "bins, weighted, 16 planes": first of those that were trained
        on the last sample or fold, the best first. Empty if nothing was compared.
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

    n_estimators: int = 8
    _: KW_ONLY
    preparation: str | None = None
    kinds: Mapping[str, str | Sequence[str]] | None = None
    special_codes: Mapping[str, Sequence[float]] | None = None
    min_rows: int = 5
    max_levels: int = 50
    max_words: int = 300
    decimal: str | None = None
    date_format: str | Mapping[str, str] | None = None
    gaps: Collection[str] = GAPS
    n_planes: int | None = None
    max_iter: int | None = None
    monotonic_cst: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    device: str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{k: v for k, v in TableEncoder._parameter_constraints.items() if k != "dtype"},
        "preparation": [StrOptions(set(RECIPES)), None],
        "n_planes": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "monotonic_cst": [dict, "array-like", None],
        "device": [str, None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"n_planes": [None, 1, 4, 16]},
        takes_matrix=False,
        fitted={
            "members_": Listed(Tuple((Shared(Preparation), Shared(PlaneSet), Number()), Member)),
            "preparation_": Listed(Text()),
            "choice_": Numbers(),
            "encoder_rows_": Whole(),
            "_encoder_parameters": Value(),
        },
    )
    #: Each `fit` begins anew; `partial_fit` continues.
    warm_start: ClassVar[bool] = False  # type: ignore[misc]

    def fit_stream(
        self,
        batches: Iterable[Any] | Callable[..., Iterable[Any]],
        *,
        classes: Any = None,
        passes: int = 1,
        first_rows: int = FIRST_ROWS,
        time_limit: float | None = None,
        validation: Any = None,
        validate_every: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 300.0,
        resume: bool = False,
        prefetch: int = 0,
    ) -> Self:
        """Train on a table that is read in batches.

        The first `first_rows` rows are used as in `fit`: they fit the encoder, select the preparation and the number of
        planes, and train a first model; a stream that ends there gives the same model as `fit`. Later batches continue
        the training of all members. A uniform sample of 50,000 rows is kept and visited again together with new rows.
        The softmax temperature is calibrated on the most recent rows, scored before training on them. Category levels
        that do not occur in the first rows are encoded as "other".

        If the stream raises an error, a batch is invalid or training is interrupted by Ctrl-C, the exception is raised
        and the estimator keeps the model of the batches before.

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
        validation : (X, y), (X, y, weight), or list or function of batches, default=None
            Held-out rows to test on after the first rows and at the end.
        validate_every : int or None, default=None
            Also test on them after every this many batches.
        checkpoint : path-like, default=None
            A model file to write at intervals, at the end and when training is interrupted, see
            `MultiHyperplaneClassifier.fit_stream`. It contains the sample of earlier rows, in encoded form.
        checkpoint_every : float, default=300.0
            Seconds between checkpoints.
        resume : bool, default=False
            Continue from the checkpoint, if there is one; batches that were already used are skipped.
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
        options = StreamOptions(
            classes, passes, time_limit, None, False, validation, validate_every, checkpoint, checkpoint_every, resume,
            prefetch, first_rows,
        )  # fmt: skip
        return self._fit_stream(batches, options, Limits(time_limit))

    # Training.

    def _method(self, classes: np.ndarray) -> TableStream:
        """The method that goes on from the fitted members, on batches."""
        indicators = tuple(self.encoder_.encoding_.is_indicator.tolist())
        return TableStream(self.members_, indicators, self.temperature_, self.n_jobs)

    def _seed(self) -> Any:
        return tuple(check_random_state(self.random_state).randint(2**31, size=self.n_estimators).tolist())

    def _validated(self, X: Any, y: Any, sample_weight: Any, classes: np.ndarray | None, **_: Any) -> Data:
        """Encode the rows of positive weight; the encoder is fitted to the first rows."""
        is_first = not hasattr(self, "encoder_")
        encoder = self._new_encoder() if is_first else self.encoder_
        table = encoder._read(X) if is_first else as_table(X, encoder.encoding_.gaps)
        y = check_targets(y, table.n_rows)
        classes = check_classes(y) if classes is None else classes
        codes = encode(y, classes)
        weight = check_weights(np.empty((table.n_rows, 1)), y, codes, classes, sample_weight, self.class_weight)
        used = np.flatnonzero(weight > 0)
        if is_first:
            if len(np.unique(codes[used])) < 2:
                raise ValueError("Fewer than two classes have rows of positive weight.")
            table, codes, weight = table.take(used), codes[used], weight[used]
            labels = Labels(codes, weight, tuple(map(str, classes.tolist())))
            self._keep_encoder(encoder._fit_table(table, labels), classes, len(codes))
            Z = encoder.encoding_.encode_training(table, type(self).__name__, labels)
            warn_of_telling_columns(encoder.encoding_, Z, codes)
        else:
            Z = encoder.encoding_.encode(table, type(self).__name__)
            if len(used) < len(Z):
                Z, codes, weight = Z[used], codes[used], weight[used]
        ranks = self._ranks(encoder, classes)
        return Data(self._as_steps(Z), codes, weight, np.arange(len(codes)), len(classes), ranks=ranks)

    def _ranks(self, encoder: TableEncoder, classes: np.ndarray) -> np.ndarray | None:
        """Return the order of the classes for each encoded number, if columns are monotone."""
        if self.monotonic_cst is None:
            return None
        inputs = encoder.encoding_
        by_column = class_ranks(self.monotonic_cst, inputs.names, classes)
        if by_column is None:
            return None
        recipe = RECIPES.get(self.preparation or "standard")
        if recipe is not None and (recipe.has_squares or recipe.has_norm or recipe.has_levels):
            what = "levels" if recipe.has_levels else "squares"
            raise ValueError(
                f"preparation={self.preparation!r} has {what}, which are not monotone: use 'standard', 'robust' or "
                "'bins' with monotonic_cst."
            )
        ranks = np.zeros((inputs.n_encoded, len(classes)), dtype=np.int64)
        for column, own in zip(inputs.columns, inputs.places, strict=True):
            order = by_column[inputs.names.index(column.name)]
            if column.growing is not None:
                ranks[own][column.growing] = order
            elif order.any():
                raise ValueError(
                    f"monotonic_cst names {column.name!r}, which is a {column.kind}: only numbers, booleans and "
                    "ordered categories can be monotone; list the levels in order in kinds, or convert dates to "
                    "numbers."
                )
        return ranks

    @property
    def _ordered(self) -> list[slice]:
        """The places of the levels of monotone ordered categories.

        They are trained as steps: the indicator of a level is 1 for all higher levels, too, so that the order of the
        weights of each step is that of numbers. The weights of the levels are sums of those of the steps.
        """
        inputs, ranks = self.encoder_.encoding_, self._ranks(self.encoder_, self.classes_)
        return [
            slice(own.start, own.start + len(column.levels))
            for column, own in zip(inputs.columns, inputs.places, strict=True)
            if ranks is not None and isinstance(column, CategoryColumn) and ranks[own].any()
        ]

    def _as_steps(self, Z: np.ndarray) -> np.ndarray:
        """Convert, in place, the levels of monotone ordered categories to steps."""
        for own in self._ordered:
            Z[:, own] = np.cumsum(Z[:, own][:, ::-1], axis=1)[:, ::-1]
        return Z

    def _held_out(self, X: Any, y: Any, weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Encode rows to test on."""
        table = as_table(X, self.encoder_.encoding_.gaps)
        weight = np.ones(table.n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
        codes = encode(check_targets(y, table.n_rows), self.classes_)
        return self._as_steps(self.encoder_.encoding_.encode(table, type(self).__name__)), codes, weight

    def _new_encoder(self) -> TableEncoder:
        return TableEncoder(**{name: getattr(self, name) for name in ENCODER_PARAMETERS})

    def _keep_encoder(self, encoder: TableEncoder, classes: np.ndarray, n_rows: int) -> None:
        self.encoder_, self.classes_, self.encoder_rows_ = encoder, classes, n_rows
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_

    def _train(self, data: Data, limits: Limits, method: Any = None, state: Any = None) -> Self:
        """Choose features, numbers of planes and the temperature, and train the committee on encoded rows.

        After Ctrl-C it is the model of the last finished pass, if there is one, and the exception is re-raised.
        """
        seeds = self._seed()
        is_indicator = self.encoder_.encoding_.is_indicator
        rows = EncodedRows(data.X, data.y, data.weight, is_indicator, data.n_classes, data.ranks)
        if self.device is not None:
            if data.ranks is not None:
                raise ValueError("monotonic_cst needs device=None: monotone members are trained on the CPU.")
            rows = rows.on_device(on_device(self.device))
        max_iter = n_passes(len(rows.y), self.device is not None) if self.max_iter is None else self.max_iter
        names = preparations_of(rows) if self.preparation is None else (self.preparation,)
        plan = Plan(names, self.n_planes, max_iter, seeds, self.n_jobs, self.verbose)
        began = time.perf_counter()
        team = select(rows, plan)
        seconds, n_members = time.perf_counter() - began, len(team.candidates)
        plan.show(f"{seconds:.1f} s for {len(team.losses)} candidates, {n_members} members to train")
        committee = committee_to_train(rows, plan, team)
        self.choice_, self.preparation_ = team.losses, [own.features for own in team.candidates]
        observers = [Progress(type(self).__name__, max_iter)] if self.verbose else []
        run = Run(committee, seed=seeds, limits=limits, observers=observers, seconds=seconds)
        try:
            run.go(repeat(data, max_iter))
        finally:
            if run.n_steps:
                self._set_model(committee, None, run.state, data)
                self.n_iter_, self.history_ = run.n_steps, run.history
        return self

    def _stream_run(self, data: Data, **how: Any) -> Run:
        """A run that continues from the current state; a new model is fitted to the first rows.

        In `partial_fit`, whose only step is not tracked, members are selected again when rows have doubled.
        """
        is_new, state = not hasattr(self, "members_"), getattr(self, "_state", None)
        first = data if is_new else None
        if state is not None and not how.get("tracked", True):
            first = self._doubled(state, data)
        if first is None:
            return Run(self._method(self.classes_), state, seed=self._seed(), **how)
        if self.verbose:
            what = "fitting the encoder" if is_new else "selecting members again"
            print(f"{type(self).__name__}  {what} on the first {len(first.y)} rows", flush=True)
        error = np.nan if state is None else self._error(state, data)
        began, limits = time.perf_counter(), how.get("limits", Limits())
        self._train(first, limits)
        seconds = time.perf_counter() - began
        left = None if limits.seconds is None else max(limits.seconds - seconds, 0.0)
        how |= {"limits": replace(limits, seconds=left), "seconds": how.get("seconds", 0.0) + seconds}
        method = replace(self._method(self.classes_), has_seen_first=True)
        state = None if state is None else method.start(first, self._seed()).replace(error=error)
        return Run(method, state, seed=self._seed(), **how)

    def _doubled(self, state: TableStreamState, new: Data) -> Data | None:
        """Return all rows, if they are in memory and there are 2, 4, 8, ... times as many as in the first call."""
        numbers = len(state.y), len(state.y) + len(new.y)
        before, after = (max(1, n_rows // self.encoder_rows_).bit_length() for n_rows in numbers)
        if numbers[0] < state.n_seen or before == after:
            return None
        pairs = ((state.Z, new.X), (state.y, new.y), (state.weight, new.weight))
        X, y, weight = map(np.concatenate, pairs)
        return replace(new, X=X, y=y, weight=weight, train=np.arange(len(y)))

    def _error(self, state: TableStreamState, data: Data) -> float:
        wrong = self._method(self.classes_).predict(state, data.X) != data.y
        return float(np.average(wrong, weights=data.weight))

    def _set_model(self, method: Any, kept: Any, state: Any, data: Data, planes: PlaneSet | None = None) -> None:
        """Set the model of a state; `kept` is the state to continue from."""
        self._keep_model(method.members(state), method.temperature(state))
        if kept is not None:
            self._state, self._trained_by = kept, self._method(self.classes_)

    def _keep_model(self, members: tuple[Member, ...], temperature: float) -> None:
        self.members_, self.temperature_ = members, temperature
        inputs, name = self.encoder_.encoding_, type(self).__name__
        folded = [(*m.preparation.fold(m.planes, inputs.is_indicator), m.planes.indptr) for m in members]
        for own in self._ordered:
            for features, coef, *_ in folded:  # an indicator is one feature
                levels = [np.flatnonzero(features.source == j)[0] for j in range(own.start, own.stop)]
                coef[:, levels] = np.cumsum(coef[:, levels], axis=1)
        self._model = Model.of_members(
            inputs, folded, self.classes_, weight=[m.weight for m in members], temperature=temperature, learner=name
        )

    def _unfitted(self, scaling: Any = None) -> Self:
        draft = super()._unfitted(scaling)
        for name in ("_model", "_scaling"):
            draft.__dict__.pop(name, None)
        return draft

    def _gathered(self, parts: Iterator[tuple[Position, Batch]], first_rows: int) -> Iterator[tuple[Position, Batch]]:
        return parts if hasattr(self, "members_") else first_joined(self, parts, first_rows)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            The softmax of the weighted mean scores of the members, divided by ``temperature_``.
        """
        return self.model_.predict_proba(X, self.n_jobs)

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
        return self.model_.predict(X, self.n_jobs)

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute class scores.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) for two classes
            The weighted mean scores of the members. For two classes, the score of the second class minus that of the
            first; if positive, the second class is predicted.
        """
        return self.model_.decision_function(X, self.n_jobs)

    @property
    def model_(self) -> Model:
        """The fitted model, from columns to class scores."""
        if "_model" not in self.__dict__:
            check_is_fitted(self)
        return self._model

    @property
    def planes_(self) -> PlaneSet:  # type: ignore[override]
        """The planes of all members, over the features of ``model_``."""
        return self.model_.planes

    @property
    def _encoder_parameters(self) -> dict[str, Any]:
        """The parameters of the fitted encoder, which may differ from those of the next `fit`; for model files."""
        return {name: getattr(self.encoder_, name) for name in ENCODER_PARAMETERS}

    def _restore(self, model: Model, fitted: Mapping[str, Any]) -> None:
        """Set the fitted attributes: those that follow from the model, and others; for model files."""
        own, inputs = dict(fitted), model.inputs
        if missing := self._declaration.fitted.keys() - own.keys():
            raise ValueError(f"the fitted attribute {min(missing)} is missing")
        members, labels, parameters = own["members_"], own["preparation_"], own.pop("_encoder_parameters")
        is_known = isinstance(parameters, dict) and parameters.keys() <= set(ENCODER_PARAMETERS)
        if not isinstance(inputs, TableInputs) or not is_known:
            raise ValueError("the file has no columns of a table, or no encoder")
        for member in members:
            is_number, n_classes = member.preparation.is_number, member.planes.n_classes
            if is_number.shape != inputs.is_indicator.shape or (is_number & inputs.is_indicator).any():
                raise ValueError("the features of a member do not match the columns")
            if member.planes.n_features != member.preparation.n_prepared or n_classes != model.n_classes:
                raise ValueError("the planes of a member do not match its features or the classes")
            if not 0 < member.weight < np.inf:
                raise ValueError("the weight of a member is not positive")
        if not members or [text.split(",")[0] for text in labels] != [m.preparation.name for m in members]:
            raise ValueError("preparation_ does not match the members")
        if model.temperature is None:
            raise ValueError("the model has no temperature")
        encoder = TableEncoder(**parameters)
        encoder._validate_params()
        self._keep_encoder(encoder._keep(inputs), model.classes, own["encoder_rows_"])
        self.__dict__.update(own, preparation_=list(labels), temperature_=model.temperature, _model=model)

    @property
    def _is_resumable(self) -> bool:
        return hasattr(self, "members_")

    def _accepts_state(self, state: Any) -> bool:
        """Whether a state from a file is one of the members."""
        sizes = [member.preparation.n_prepared for member in self.members_]
        return [own.W.shape[-1] - 1 for own in state.members] == sizes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")


def first_joined(
    estimator: TableClassifier, parts: Iterator[tuple[Position, Batch]], first_rows: int
) -> Iterator[tuple[Position, Batch]]:
    """Join the first batches of a stream, for the encoder and all choices; after an error, those before it."""
    first: list[Batch] = []
    last = Position(0, 0, 0)
    try:
        for position, batch in parts:
            if position.passes:  # the first pass had fewer rows
                yield last, joined(estimator, first)
                first = []
                yield position, batch
                break
            with named_batch(position):
                first.append(_checked(estimator, batch, first))
            last = position
            if sum(each.n_rows for each in first) >= first_rows:
                break
    except (Exception, KeyboardInterrupt):
        if first and len(np.unique(np.concatenate([each.y for each in first]))) > 1:
            yield last, joined(estimator, first)
        raise
    if first:
        yield last, joined(estimator, first)
    yield from parts


def _checked(estimator: TableClassifier, batch: Batch, earlier: Sequence[Batch]) -> Batch:
    """Validate the columns, labels and weights of a batch before it is added to the others."""
    table = loaded(as_table(batch.X, frozenset(estimator.gaps)))
    y = check_targets(batch.y, table.n_rows)
    weight = _check_sample_weight(batch.weight, np.empty((table.n_rows, 1)), ensure_non_negative=True)
    if earlier:
        first = earlier[0]
        positions_of(first.X.names, first.X.names, first.X.is_named, table, type(estimator).__name__)
        if (first.y.dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
            raise ValueError("The labels of the stream have mixed types: some are strings, others are not.")
    for cells in map(table.read, range(len(table.names))):
        if cells.form == "number":
            as_numbers(cells)
    return Batch(table, y, weight, table.n_rows)


def joined(estimator: TableClassifier, batches: Sequence[Batch]) -> Batch:
    """The rows of several batches."""
    table = concatenated([batch.X for batch in batches], type(estimator).__name__)
    y, weight = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("y", "weight"))
    return Batch(table, y, weight, table.n_rows)
