"""`PlaneClassifier`: what scikit-learn asks of an estimator, once for all learners."""

from __future__ import annotations

import sys
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from inspect import get_annotations
from itertools import repeat
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from polyplane._array_api import describe, host_dtype, is_foreign, is_sparse, like, softmax, take_rows, to_numpy
from polyplane._prediction import (
    PlanePrediction,
    as_labels,
    check_classes,
    check_fitted_matrix,
    check_matrix,
    check_place,
    check_targets,
    check_weights,
    encode,
    to_host,
)
from polyplane._streaming import StreamOptions, StreamTraining
from polyplane.engine.batches import Batch, Position, fit_width
from polyplane.engine.data import AffineScaling, Data, FeatureRanges, OwnScaling, refuse_extremes
from polyplane.engine.method import Method, refuse_changes
from polyplane.engine.run import Choice, Limits, Observer, Plateau, Progress, Run, Validation, record
from polyplane.model import best_temperature
from polyplane.planes import PlaneSet

M = TypeVar("M", bound=Method[Any])

#: Share of the rows held out by ``early_stopping=True``.
HELD_OUT = 0.1

#: Enough held-out rows to calibrate probabilities.
ROWS_TO_CALIBRATE = 1000

#: The largest integer parameter: the largest int64 of NumPy and the kernels.
LARGEST_INTEGER = 2**63 - 1

#: The largest number of planes (per class, if each has its own): a typing error should not use up the memory.
MOST_PLANES = 1 << 20


_POSITIVE, _NOT_NEGATIVE = Interval(Real, 0, None, closed="neither"), Interval(Real, 0, None, closed="left")
_COUNT, _SHARE = Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="both")

#: The values that a parameter can have: a name has the same meaning in all learners. A learner declares exceptions.
CONSTRAINTS: dict[str, Any] = {
    name: allowed
    for names, allowed in (
        ("C alpha eta0 scale", [_POSITIVE]),
        ("gamma radius", [_POSITIVE, None]),
        ("noise prune tol", [_NOT_NEGATIVE, None]),
        ("max_iter n_estimators n_init n_iter_no_change n_planes prune_every", [_COUNT]),
        ("batch_size", [_COUNT, None]),
        ("average_fraction growth_decay min_entropy", [_SHARE]),
        ("backoff", [Interval(Integral, 0, 255, closed="both")]),
        ("average fit_intercept pocket probability standardize warm_start", ["boolean"]),
        ("class_weight", [StrOptions({"balanced"}), dict, None]),
        ("early_stopping", ["boolean", Interval(Real, 0, 1, closed="neither")]),
        ("enclosed inside", "no_validation"),
        ("random_state", ["random_state"]),
        ("n_jobs", [Integral, None]),
        ("verbose", ["verbose"]),
    )
    for name in names.split()
}


@dataclass(frozen=True)
class Declaration:
    """Properties of a learner, for the command line, the search, exports and model files.

    Parameters
    ----------
    tuning : dict of str to list
        The parameters to search, with their values, defaults first.
    multi_class : bool
        Whether it separates more than two classes.
    streams : bool
        Whether training can continue on new rows, with `partial_fit` and `fit_stream`.
    label_parameters : tuple of str
        Parameters whose value is a class label.
    fitted : dict of str to kind
        Additional fitted attributes that do not follow from the state, as kinds of `polyplane.engine.state`.
    choose : function of (method, data, seed) or None
        Chooses what the parameters leave open, before training; see `polyplane.engine.run.Choice`.
    takes_matrix : bool
        Whether its rows are a matrix of numbers, not a table.
    """

    tuning: Mapping[str, list[Any]]
    multi_class: bool = True
    streams: bool = True
    label_parameters: tuple[str, ...] = ()
    fitted: Mapping[str, Any] = field(default_factory=dict)
    choose: Callable[[Any, Data, int], Choice] | None = None
    takes_matrix: bool = True


@dataclass(eq=False, repr=False, kw_only=True)
class CommonParameters:
    """The parameters that all learners have."""

    class_weight: Any = None
    warm_start: bool = False
    verbose: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class EpochParameters:
    """The parameters of learners that make many passes over the rows, in a random order."""

    tol: float | None = None
    early_stopping: bool | float = False
    n_iter_no_change: int = 10
    random_state: Any = None


class PlaneClassifier(CommonParameters, PlanePrediction, metaclass=ABCMeta):
    """A classifier made of planes.

    A learner declares its parameters as the fields of a dataclass, a `Declaration`, and the `Method` that trains with
    these parameters; it may add fitted attributes.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        Steps made by the last `fit`, or all steps since the first `partial_fit`.
    choice_ : dict of str to list of float
        If parameters were chosen by `fit`: what was compared on held-out rows, with the mean "loss", one entry per
        trial.
    history_ : dict of str to list of float
        The metrics after each step, and the time in seconds since the start.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _declaration: ClassVar[Declaration]

    planes_: PlaneSet
    classes_: np.ndarray
    n_iter_: int
    history_: dict[str, list[float]]
    choice_: dict[str, Any]
    temperature_: float
    #: The state of training, to continue from, and its method.
    _state: Any
    _trained_by: Method[Any]
    #: The scaling of the rows in training, if any. The planes are in the units of the rows as given.
    _scaling: AffineScaling | None = None

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        notes = {name: str(note) for part in reversed(cls.__mro__) for name, note in get_annotations(part).items()}
        names = [name for name, note in notes.items() if name in CONSTRAINTS and not note.startswith("ClassVar")]
        cls._parameter_constraints = {name: CONSTRAINTS[name] for name in names} | cls._parameter_constraints

    # Implemented by each learner.

    @abstractmethod
    def _method(self, classes: np.ndarray) -> Method[Any]:
        """The method that the parameters name, for these labels."""

    def _method_of(self, kind: Callable[..., M], **others: Any) -> M:
        """A method with `others` and those parameters of the estimator that have the names of its fields.

        Integers become floats where these are declared: products of large integers would overflow in kernels.
        """
        names = {part.name: str(part.type) for part in fields(kind)}  # type: ignore[arg-type]
        values = {name: getattr(self, name) for name in names if hasattr(self, name)} | others
        for name, value in values.items():
            is_whole = isinstance(value, Integral) and not isinstance(value, bool)
            if is_whole and names.get(name) in ("float", "float | None"):
                values[name] = float(value)
        return kind(**values)

    def _fitted_attributes(self, state: Any, data: Data) -> Mapping[str, Any]:
        """Fitted attributes of the learner's own, after a step on `data`; those that the `Declaration` names."""
        return {}

    def _concluded(self, method: Any, state: Any, data: Data) -> Any:
        """The state after the last step of a `fit` on `data`, where it differs from that of the step."""
        return state

    # Public methods.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn planes from labelled rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows. float32 stays float32, and so does the model.
        y : array-like of shape (n_rows,)
            The labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. Rows with zero weight are ignored.

        Returns
        -------
        self : object
            The fitted estimator. When `fit` fails, the estimator is unchanged. After Ctrl-C it holds the model of the
            last finished step, and `KeyboardInterrupt` is raised.
        """
        return self._fit(X, y, sample_weight, Limits())

    @property
    def _is_resumable(self) -> bool:
        """Whether training can continue from the fitted model."""
        return hasattr(self, "_state")

    @available_if(lambda self: self._declaration.streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one step on new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The new rows.
        y : array-like of shape (n_rows,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that can occur; required at the first call.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The estimator after one more step. When the step fails, the estimator is unchanged.
        """
        if not hasattr(self, "_state") or self._method(self.classes_) != self._trained_by:
            self._validate_params()  # takes a tenth of the time of a small step, and parameters rarely change
        draft = copy(self)
        data = replace(draft._validated(X, y, sample_weight, self._agreed_classes(classes)), stream=True)
        if hasattr(self, "_state"):
            draft._state = self._state.copy()
        run = draft._stream_run(data, tracked=False)  # if the step fails, the draft is discarded
        run.step(data)
        draft._set_model(run.method, run.state.without_rows(), run.state, data)
        draft.n_iter_ = getattr(self, "n_iter_", 0) + 1
        draft.history_ = getattr(self, "history_", {})
        record(draft.history_, run.method.metrics(run.state))
        return self._take_over(draft)

    @available_if(lambda self: self._declaration.streams)
    def fit_stream(
        self,
        batches: Iterable[Any] | Callable[..., Iterable[Any]],
        *,
        classes: Any = None,
        passes: int = 1,
        time_limit: float | None = None,
        half_life: float | None = None,
        progressive: bool = True,
        validation: Any = None,
        validate_every: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 300.0,
        resume: bool = False,
        prefetch: int = 0,
    ) -> Self:
        r"""Learn from a stream of batches, each of which is seen once per pass.

        Each batch is one step, as in `partial_fit`; the planes are computed only at the end and for checkpoints. When
        the stream ends early (an error in the source, an invalid batch or Ctrl-C), the exception is raised and the
        model is the one learned from the batches before.

        Parameters
        ----------
        batches : iterable, or function that returns one
            Yields ``(X, y)`` or ``(X, y, sample_weight)``: a list, a generator, a file reader. A function is called
            once per pass; if it has a parameter `start`, with the number of rows to skip (to continue after a
            checkpoint). Sparse rows may bring new features, more columns at the right: their weights begin at 0, and
            ``n_features_in_`` grows (`ConvexPolytopeClassifier` and `PegasosSVC`).
        classes : array-like of shape (n_classes,), default=None
            All classes that can occur; None: those of the first batch. A batch with another label raises an error.
        passes : int, default=1
            Number of passes over the stream.
        time_limit : float or None, default=None
            Seconds after which training ends, once the current batch is finished.
        half_life : float or None, default=None
            For data that drift: the number of rows after which what a row has taught counts for half. The steps
            :math:`1 / (\alpha t)` fall until :math:`t = \tau`, half_life over log 2, and then stay; from there on
            each visit takes :math:`1 / \tau` off the planes, so that what was learned :math:`s` visits ago counts
            :math:`e^{-s / \tau}`. None: all rows count alike (`ConvexPolytopeClassifier` and `PegasosSVC`; other
            learners take no `half_life`).
        progressive : bool, default=True
            Whether to test the model on each batch before training on it.
        validation : (X, y), (X, y, weight), or list or function of batches, default=None
            Held-out rows to test on after the first batch and at the end.
        validate_every : int or None, default=None
            Also test on them after every this many batches.
        checkpoint : path-like, default=None
            A model file to write at intervals, at the end, and when training is interrupted by Ctrl-C or SIGTERM (which
            then ends the process). Both wait until the current batch is finished. The file can be loaded as a model at
            any time.
        checkpoint_every : float, default=300.0
            Seconds between checkpoints.
        resume : bool, default=False
            Continue from the checkpoint, if there is one; batches that were already used are skipped. The planes are
            those of uninterrupted training.
        prefetch : int, default=0
            Number of batches to read ahead, in a separate thread.

        Returns
        -------
        self : object
            The fitted estimator. Its ``history_`` holds, for each batch, "time", "reading" (seconds waited for the
            batch), "rows" (up to here), "pass", "progressive_error" (of the batch, before training on it; NaN for
            the first) and the learner's own metrics; and "validation_error" with "validation_rows".

        Examples
        --------
        >>> import numpy as np
        >>> from polyplane import PegasosSVC
        >>> def batches(n_batches=50):
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(n_batches):
        ...         X = rng.normal(size=(200, 5))
        ...         yield X, X[:, 0] > X[:, 1]
        >>> svm = PegasosSVC(alpha=1e-3, random_state=0).fit_stream(batches)
        >>> svm.n_iter_
        50
        >>> print(f"{np.nanmean(svm.history_['progressive_error']):.3f}")
        0.011
        """
        options = StreamOptions(
            classes, passes, time_limit, half_life, progressive, validation, validate_every, checkpoint,
            checkpoint_every, resume, prefetch,
        )  # fmt: skip
        return self._fit_stream(batches, options, Limits(time_limit))

    @available_if(lambda self: getattr(self, "probability", False))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, if `probability` is set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Softmax of the class scores divided by ``temperature_``, so that the most probable class is the predicted
            one.
        """
        X = check_fitted_matrix(self, X)
        if not hasattr(self, "temperature_"):
            raise NotFittedError("The probabilities are not calibrated: call fit with probability=True.")
        return softmax(self.planes_.class_scores(X, getattr(self, "n_jobs", None)) / self.temperature_)

    # Training works on a draft: a copy of the estimator that replaces it after success.

    def _fit(self, X: Any, y: Any, sample_weight: Any, limits: Limits, scaling: AffineScaling | None = None) -> Self:
        """Fit within limits, with scaled rows."""
        self._validate_params()
        going_on = self.warm_start and hasattr(self, "_state")
        draft = copy(self) if going_on else self._unfitted(scaling)
        data = draft._validated(X, y, sample_weight, self.classes_ if going_on else None, whole=True)
        before = draft.__dict__.get("history_")
        try:
            draft._train(data, limits)
            if getattr(draft, "probability", False):
                draft.temperature_ = draft._calibrated(data, limits)
        except KeyboardInterrupt:
            if draft.__dict__.get("history_") is not before:  # a step was finished
                self._take_over(draft)
            raise
        return self._take_over(draft)

    def _train(self, data: Data, limits: Limits, method: Method[Any] | None = None, state: Any = None) -> Self:
        """Train on these rows, by the method that the parameters name, unless another is given.

        Training starts from the given state, if any, which is not changed.

        After Ctrl-C it is the model of the last finished step, if there is one, and the exception is re-raised.
        """
        if np.count_nonzero(data.class_counts) < 2:
            raise ValueError("Fewer than two classes have rows of positive weight.")
        seed, validation = self._seed(), None
        observers: list[Observer] = []
        max_iter: int = self.get_params(deep=False)["max_iter"]
        if early_stopping := getattr(self, "early_stopping", False):
            share = HELD_OUT if isinstance(early_stopping, bool | np.bool_) else early_stopping
            data, held_out = data.hold_out(share, int(np.ravel(seed)[0]))
            validation = Validation(data, held_out)
            observers.append(validation)
        if self.verbose:
            observers.append(Progress(type(self).__name__, max_iter))
        how: dict[str, Any] = {"plateau": self._plateau(), "limits": limits, "observers": observers}
        run = self._new_run(seed, method, **how) if method is None or state is None else Run(method, state, **how)
        try:
            run.go(repeat(data, max_iter))
        except KeyboardInterrupt:
            if run.n_steps:
                self._keep(run, validation)
            raise
        return self._keep(run, validation)

    def _fit_stream(
        self, batches: Any, options: StreamOptions, limits: Limits, scaling: AffineScaling | None = None
    ) -> Self:
        """Train on a stream within limits, with scaled rows."""
        self._validate_params()
        self._refuse_balanced()
        training = StreamTraining(self, options, limits, scaling)
        try:
            training.go(batches)
        finally:
            if training.is_up_to_date:
                self._take_over(training.draft)
        return self

    def _validate_params(self) -> None:
        """Check the parameters one by one, as scikit-learn does; values too large for a kernel are an error."""
        super()._validate_params()
        unbounded = {"verbose", "n_jobs", "random_state", *self._declaration.label_parameters}
        for name, value in self.get_params(deep=False).items():
            most = MOST_PLANES if name == "n_planes" else LARGEST_INTEGER
            if isinstance(value, Integral) and int(value) > most and name not in unbounded:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be at most {most}. Got {value} instead."
                )

    def _unfitted(self, scaling: AffineScaling | None) -> Self:
        """An unfitted copy, to train with scaled rows."""
        draft = copy(self)
        for name in [name for name in vars(draft) if name.endswith("_") or name in ("_state", "_trained_by")]:
            delattr(draft, name)
        draft._scaling = scaling
        return draft

    def _take_over(self, draft: Self) -> Self:
        """Take over the attributes of the draft, in one assignment."""
        self.__dict__ = draft.__dict__
        return self

    def _validated(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        classes: np.ndarray | None,
        *,
        check_scales: bool = True,
        whole: bool = False,
    ) -> Data:
        """Validate a call's rows; set `classes_` if they are not known yet.

        Scales are checked on the first rows; `whole` says that there will be no others.
        """
        check_scales &= self._scaling is None and not hasattr(self, "classes_")
        X = check_matrix(self, X, reset=classes is None or not hasattr(self, "classes_"))
        refuse_extremes(X)
        sample_weight = to_host("sample_weight", sample_weight, X)
        y = check_targets(to_host("y", y, X), X.shape[0])
        learned = classes is not None and hasattr(self, "_state")
        self.classes_ = check_classes(y) if classes is None else classes
        if len(self.classes_) > 2 and not self._declaration.multi_class:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass ({len(self.classes_)} "
                f"classes): wrap the estimator, OneVsRestClassifier({type(self).__name__}(...)) of sklearn.multiclass."
            )
        if is_foreign(X) and not self._method(self.classes_).traits.takes_device_arrays:
            raise TypeError(
                f"{type(self).__name__} with these parameters trains row by row, in loops that are compiled for the "
                f"CPU, and X is {describe(X)}: pass a NumPy array."
            )
        check_place(self, X, learned)
        codes = encode(y, self.classes_)
        weight = check_weights(X, y, codes, self.classes_, sample_weight, self.class_weight)
        if check_scales:
            self._check_scales(X, weight, whole)
        if self._scaling is not None:
            X = self._scaling.apply(X)
        return Data(X, codes, weight, np.flatnonzero(weight > 0), len(self.classes_))

    def _check_scales(self, X: Any, weight: np.ndarray, whole: bool) -> None:
        """Standardise the features, or remove scales and shifts that would cost precision; otherwise warn of them."""
        ranges = FeatureRanges.of(X if weight.all() else take_rows(X, np.flatnonzero(weight)))
        ranges.refuse_tiny(host_dtype(X))
        scaling = self._method(self.classes_).traits.own_scaling
        standardize = scaling != "standard" and getattr(self, "standardize", False)
        if standardize == "auto":
            standardize = whole and self._complaint(ranges, scaling) is not None
        if standardize:
            self._scaling = ranges.maxabs() if is_sparse(X) else AffineScaling.standard(X, weight)
            return
        if scaling != "none" and isinstance(X, np.ndarray):
            self._scaling = ranges.nearer(X.dtype)
        self._warn_of_scales(ranges, scaling)

    def _complaint(self, ranges: FeatureRanges, scaling: OwnScaling) -> str | None:
        names = getattr(self, "feature_names_in_", None)
        return ranges.complaint(scaling, lambda j: f"feature {j if names is None else repr(str(names[j]))}")

    def _warn_of_scales(self, ranges: FeatureRanges, scaling: OwnScaling) -> None:
        complaint = self._complaint(ranges, scaling)
        if complaint is not None:
            warnings.warn(complaint[0].upper() + complaint[1:], UserWarning, stacklevel=_level_of_caller())

    def _new_run(self, seed: Any = None, method: Method[Any] | None = None, **how: Any) -> Run:
        """A run that continues from the current state, if there is one."""
        method, state = method or self._method(self.classes_), getattr(self, "_state", None)
        if state is not None:
            refuse_changes(method, self._trained_by)
        elif seed is None:
            seed = self._seed()
        return Run(method, state, seed=seed or 0, choose=self._declaration.choose, **how)

    def _stream_run(self, data: Data, **how: Any) -> Run:
        """A run on batches, of which `data` is the first, that continues from the current state, if there is one."""
        return self._new_run(**how)

    def _gathered(self, parts: Iterator[tuple[Position, Batch]], first_rows: int) -> Iterator[tuple[Position, Batch]]:
        """The batches of a stream; a learner that needs many rows to begin with joins the first ones."""
        return parts

    def _held_out(self, X: Any, y: Any, weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Validate rows to test on; return the rows as in training, the classes and the weights."""
        X = check_matrix(self, fit_width(X, self.n_features_in_), reset=False)
        codes = encode(check_targets(to_host("y", y, X), X.shape[0]), self.classes_)
        weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
        return X if self._scaling is None else self._scaling.apply(X), codes, weight

    def _keep(self, run: Run, validation: Validation | None) -> Self:
        """Set the model of a run that has ended."""
        assert run.data is not None
        best = None if validation is None else validation.planes
        state = run.state if best is not None else self._concluded(run.method, run.state, run.data)
        kept = state.with_rows_of(run.data) if self.warm_start else state.without_rows()
        self._set_model(run.method, kept, state, run.data, best)
        self.n_iter_, self.history_ = run.n_steps, run.history
        if run.choice is not None and run.choice.trials:
            self.choice_ = dict(run.choice.trials)
        return self

    def _set_model(
        self, method: Method[Any], kept: Any, state: Any, data: Data, planes: PlaneSet | None = None
    ) -> None:
        """Set the model of a state; `kept` is the state to continue from."""
        planes = method.planes(state) if planes is None else planes
        if self._scaling is not None:
            wide = (to_numpy(part).astype(float) for part in (planes.coef, planes.intercept))
            coef, intercept = self._scaling.to_input_space(*wide)
            kind = planes.coef, planes.coef.dtype
            planes = planes.replace(coef=like(coef, *kind), intercept=like(intercept, *kind))
        self._state, self._trained_by, self.planes_ = kept, method, planes
        self.__dict__.update(self._fitted_attributes(state, data))

    def _seed(self) -> Any:
        """The seed of all random numbers of a method; of a committee, a tuple of one for each member."""
        return int(check_random_state(getattr(self, "random_state", 0)).randint(2**31))

    def _plateau(self) -> Plateau:
        tol = getattr(self, "tol", None)
        if tol is None and getattr(self, "early_stopping", False):
            tol = 0.0
        return Plateau(tol, getattr(self, "n_iter_no_change", 1))

    def _calibrated(self, data: Data, limits: Limits) -> float:
        """The temperature of the probabilities, by the scores of held-out rows; planes are trained on the others.

        They are trained by the method of the model, with what it chose, on four fifths of the rows, as often as it
        takes to hold out `ROWS_TO_CALIBRATE` rows, but each at most once.
        """
        from sklearn.model_selection import StratifiedKFold  # slow to import

        y, scores, rows = data.y[data.train], [], []
        n_folds = min(5, int(data.class_counts.max()))
        if n_folds < 2:
            raise ValueError("probability=True needs two rows of a class, to hold out one of them.")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(y, y))
        for train, held_out in folds:
            twin = self._unfitted(None)
            twin.verbose, twin.classes_ = 0, self.classes_
            twin._train(replace(data, train=data.train[train], memory=None), limits, self._trained_by)
            rows.append(data.train[held_out])
            scores.append(to_numpy(twin.planes_.class_scores(take_rows(data.X, rows[-1]))).astype(np.float64))
            if sum(map(len, rows)) >= ROWS_TO_CALIBRATE:
                break
        own = np.concatenate(rows)
        return best_temperature(
            np.concatenate(scores), data.y[own], data.weight[own], octaves=16.0
        )  # margins have any unit

    def _refuse_balanced(self) -> None:
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once; give a dict of weights instead.")
        if getattr(self, "probability", False):
            raise ValueError("probability=True needs all rows at once: use fit.")

    def _agreed_classes(self, classes: Any) -> np.ndarray:
        self._refuse_balanced()
        known = getattr(self, "classes_", None)
        if classes is None:
            if known is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return known
        classes = check_classes(np.asarray(as_labels(classes)))
        if known is not None and not np.array_equal(known, classes):
            raise ValueError(f"classes={classes.tolist()} is not the same as on the last call: {known.tolist()}.")
        return classes


def _level_of_caller() -> int:
    """The level of a warning, whose place in the code is then the first one outside of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("polyplane."):
        frame, level = frame.f_back, level + 1
    return level


def takes_matrix(estimator: Any) -> bool:
    """Whether an estimator is a learner whose rows are a matrix."""
    return isinstance(estimator, PlaneClassifier) and estimator._declaration.takes_matrix


def class_index(name: str, label: Any, classes: np.ndarray) -> int:
    """The class that a parameter names by its label, as an index."""
    found = np.flatnonzero(classes == label)
    if len(found) != 1:
        raise ValueError(f"{name}={label!r} is not one of the labels {classes.tolist()}.")
    return int(found[0])
