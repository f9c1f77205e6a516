"""`PlaneSearchCV`: hyperparameter search by successive halving."""

from __future__ import annotations

import math
import os
import time
import warnings
from dataclasses import KW_ONLY, dataclass
from inspect import cleandoc
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from polyplane._array_api import to_numpy
from polyplane._prediction import check_classes, check_matrix, check_targets, to_host
from polyplane._sklearn import BaseEstimator, ClassifierMixin
from polyplane.base import takes_matrix
from polyplane.engine.run import Progress, Race
from polyplane.search.candidates import declared_space, draw_candidates, full_passes, plan_rungs
from polyplane.search.trials import Checkpoint, Trials, results_table

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier

    E = TypeVar("E", default=MultiHyperplaneClassifier)
else:
    from typing import TypeVar

    E = TypeVar("E")


def _delegated(name: str) -> Any:
    """Return a method of the best estimator; before `fit`, it exists if the given estimator has it."""

    def exists(self: PlaneSearchCV) -> bool:
        if not self.refit:
            raise AttributeError(f"{name} is not available with refit=False: fit an estimator with best_params_.")
        return hasattr(getattr(self, "best_estimator_", None) or self._searched(0), name)

    def method(self: PlaneSearchCV, X: Any) -> Any:
        """Call `{0}` of the best estimator.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        found : ndarray
            The return value of `{0}` of the best estimator.
        """
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    method.__name__, method.__doc__ = name, cleandoc(method.__doc__ or "").format(name)
    return available_if(exists)(method)


class _Found(ClassifierMixin, BaseEstimator, Generic[E]):
    """The fitted attributes of a search, declared outside of the dataclass, whose fields are parameters."""

    best_estimator_: E
    best_params_: dict[str, Any]
    best_score_: float
    best_index_: int
    cv_results_: dict[str, Any]
    n_splits_: int
    refit_time_: float
    is_complete_: bool
    classes_: np.ndarray
    scorer_: Any
    n_features_in_: int
    feature_names_in_: np.ndarray


@dataclass(eq=False, repr=False)
class PlaneSearchCV(_Found[E]):
    r"""Hyperparameter search by cross-validation and successive halving.

    Candidates are the setting of the estimator and random settings; they compete in rounds (rungs). On the first rung,
    all candidates are fitted to two of five folds with a ninth of the passes. The best third advances to the next rung,
    with a third of the passes and three folds, and the best third of these to the last, with all passes and folds. The
    best score is therefore an ordinary cross-validation score, while most candidates cost little. If folds have at
    least 1,500 test rows, the first two rungs use one and two folds, and only the best third of the candidates that are
    trained with all passes on three folds is trained on all. Step sizes are scheduled over the given number of passes,
    so a short fit is complete, not the beginning of a long one. Learners with a stopping criterion (`tol` is not None)
    get a part of the training rows instead of fewer passes; otherwise rows beyond 10,000 are reduced as well.
    Candidates share what they have in common: starts, the selection of the number of planes, the order of the rows and
    the noise. With fewer than 27 candidates there are fewer rungs, so that several candidates reach the last one. On
    small data sets, rungs differ only in their folds, and later rungs keep the fits of earlier ones.

    The interface is that of scikit-learn's `RandomizedSearchCV`. Fits are run in batches of a few seconds.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A classifier, or a pipeline that ends in one. None: `MultiHyperplaneClassifier`, with a seed drawn from
        `random_state`. For reproducible results, set the `random_state` of the estimator as well.
    param_distributions : dict, list of dict or None, default=None
        Lists of values, or distributions with a method `rvs` as in `scipy.stats`, by parameter name. None: the defaults
        of the learner; for `MultiHyperplaneClassifier`, `n_planes`, `alpha`, `noise`, `eta0` and `scale`.
    n_iter : int, default=40
        Number of candidates, including the setting of the estimator.
    cv : int, splitter or iterable of (train, test), default=5
        The cross-validation splits, as in scikit-learn.
    scoring : str, callable or None, default=None
        The score to maximise, as in scikit-learn. None: accuracy.
    refit : bool, default=True
        Refit the best candidate on all rows.
    factor : float or None, default=3
        One out of `factor` candidates (at least 2) advances to the next rung. None: no halving; all candidates get all
        passes and all rows, as in `RandomizedSearchCV`.
    random_state : int, RandomState or None, default=None
        Seed of the random candidates.
    n_jobs : int or None, default=None
        Number of threads.
    time_limit : float or None, default=None
        Time limit in seconds. The search stops after the current batch, warns, and uses the best candidate so far. The
        refit is not included.
    checkpoint : path-like or None, default=None
        A JSON file for the finished fits, written after each batch. Requires an int `random_state`.
    resume : bool, default=False
        Resume from the checkpoint, if it exists.
    verbose : int, default=0
        Verbosity; 1 shows progress, with the remaining time on a terminal.

    Attributes
    ----------
    cv_results_ : dict of str to array
        One row per candidate and rung, with the columns of `RandomizedSearchCV`; can be converted to a data frame.
        "rung" starts at 0, "n_resources" is the number of row visits of a fit: training rows times passes.
        "mean_fit_time" is the time of a batch divided by its fits. Folds that are not used on a rung have the score
        NaN. Later rungs rank first.
    best_estimator_ : estimator
        The best candidate, refitted on all rows.
    best_params_, best_score_, best_index_
        The best setting, its mean score on the last rung, and its index in ``cv_results_``.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Time of the refit in seconds.
    is_complete_ : bool
        False if `time_limit` stopped the search.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    scorer_ : function
        The scorer.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn.model_selection.RandomizedSearchCV : Random search without halving.

    Notes
    -----
    As in `RandomizedSearchCV`, `sample_weight` is used in training, not in scoring. Ctrl-C raises `KeyboardInterrupt`
    and the estimator does not change; the checkpoint contains the finished batches.

    References
    ----------
    K. Jamieson and A. Talwalkar. Non-stochastic Best Arm Identification and Hyperparameter Optimization. AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import MultiHyperplaneClassifier, PlaneSearchCV
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> estimator = MultiHyperplaneClassifier(8, max_iter=20, random_state=0)
    >>> space = {"noise": [None, 0.1, 0.4], "eta0": [0.1, 0.3, 1.0]}
    >>> search = PlaneSearchCV(estimator, space, n_iter=9, cv=3, random_state=0).fit(X_train, y_train)
    >>> search.score(X_test, y_test) > 0.98
    True
    """

    estimator: E | None = None
    param_distributions: Any = None
    _: KW_ONLY
    n_iter: int = 40
    cv: Any = 5
    scoring: Any = None
    refit: bool = True
    factor: float | None = 3
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: float | None = None
    checkpoint: Any = None
    resume: bool = False
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"]), None],
        "param_distributions": [dict, list, tuple, None],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
        "factor": [Interval(Real, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "checkpoint": [str, os.PathLike, None],
        "resume": ["boolean"],
        "verbose": ["verbose"],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Run the search, and refit the best candidate on all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Sample weights, used in training.
        groups : array-like of shape (n_rows,), default=None
            Group labels, for group-based splitters.

        Returns
        -------
        self : object
            The fitted search. If `fit` fails or is interrupted, the object does not change.
        """
        began = time.perf_counter()
        self._validate_params()
        seed = int(check_random_state(self.random_state).randint(2**31))
        estimator = clone(self._searched(seed))
        scorer = check_scoring(estimator, self.scoring)
        trials = self._trials(estimator, X, y, sample_weight, groups, scorer, seed)
        race = self._run(trials, began)
        last = max(rung for rung, _ in race.trials)  # if it is not complete, it starts with the best candidates
        best = trials.ranked(race, [candidate for rung, candidate in race.trials if rung == last], last)[0]
        self._warn(trials, race, last)
        table, index = results_table(trials), list(race.trials).index((last, best))
        found: dict[str, Any] = {"cv_results_": table, "scorer_": scorer, "n_splits_": len(trials.folds)}
        found |= {"is_complete_": race.is_complete, "classes_": np.unique(trials.y)}
        found |= {"best_index_": index, "best_params_": table["params"][index]}
        found["best_score_"] = float(table["mean_test_score"][index])
        if self.refit:
            began, refitted = time.perf_counter(), clone(estimator)
            refitted.set_params(**clone(found["best_params_"], safe=False)).fit(X, trials.y, **trials.weights())
            found |= {"best_estimator_": refitted, "refit_time_": time.perf_counter() - began}
            names = ("n_features_in_", "feature_names_in_")
            found |= {name: getattr(refitted, name) for name in names if hasattr(refitted, name)}
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.__dict__.update(found)
        return self

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    decision_function = _delegated("decision_function")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score the best estimator with `scoring`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            The accuracy, or the score given by `scoring`.
        """
        check_is_fitted(self)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.scorer_(self.best_estimator_, X, y, **weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self._searched(0))
        tags.classifier_tags, tags.input_tags = own.classifier_tags, own.input_tags
        return tags

    def _searched(self, seed: int) -> Any:
        """The estimator whose parameters are searched."""
        if self.estimator is not None:
            return self.estimator
        from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier

        return MultiHyperplaneClassifier(random_state=seed)

    def _trials(self, estimator: Any, X: Any, y: Any, weight: Any, groups: Any, scorer: Any, seed: int) -> Trials:
        """The validated rows, the folds, the candidates and the rungs."""
        if takes_matrix(estimator):
            X = check_matrix(clone(estimator), X, reset=True)
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        y = check_targets(to_host("y", y, X), _num_samples(X))
        classes = check_classes(y)
        if weight is not None:
            weight = _check_sample_weight(to_host("sample_weight", weight, X), np.empty((len(y), 1)))
        folds = list(check_cv(self.cv, y, classifier=True).split(np.empty((len(y), 1)), y, groups))
        score = _accuracy if self.scoring is None else scorer
        space = declared_space(estimator, classes) if self.param_distributions is None else self.param_distributions
        if not space:
            raise ValueError(
                "param_distributions=None: the estimator has no parameters to search; specify param_distributions."
            )
        candidates = draw_candidates(estimator, space, self.n_iter, self.random_state)
        passes, (n_rows, n_tested) = full_passes(estimator, candidates), map(len, folds[0])
        rungs = plan_rungs(passes, n_rows, len(candidates), len(folds), self.factor, n_tested)
        return Trials(estimator, X, y, weight, folds, score, seed, self.n_jobs, candidates, rungs)

    def _run(self, trials: Trials, began: float) -> Race[int]:
        """Run the race: on each rung, the best candidates advance to the next one."""
        checkpoint = None if self.checkpoint is None else self._checkpoint(trials)
        progress = Progress(type(self).__name__, 100) if self.verbose else None

        def after_batch(rung: int) -> None:
            if checkpoint is not None:
                checkpoint.write()
            if progress is not None:
                score = -np.nanmin([race.mean(candidate, tried) for tried, candidate in race.trials if tried == rung])
                progress.update(trials.percent_done, {"rung": rung + 1, "score": round(float(score), 4)})

        def advancing(candidates: list[int], rung: int) -> list[int]:
            ranked, following = trials.ranked(race, candidates, rung), trials.rungs[rung + 1 :]
            return ranked[: following[0].n_candidates] if following else ranked

        deadline = math.inf if self.time_limit is None else began + self.time_limit
        race = Race[int](trials.losses, batch_size=trials.batch_size, after_batch=after_batch, deadline=deadline)
        race.trials |= {key: trial.losses for key, trial in trials.finished.items()}
        if progress is not None:
            progress.begin()
        try:
            race.run(range(len(trials.candidates)), range(len(trials.rungs)), advancing)
        finally:
            if progress is not None:
                progress.end()
        return race

    def _checkpoint(self, trials: Trials) -> Checkpoint:
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"checkpoint: random_state is {self.random_state!r}, but resuming requires the same candidates; set "
                "random_state to an int."
            )
        scoring = self.scoring if isinstance(self.scoring, str) else getattr(self.scoring, "__name__", "None")
        checkpoint = Checkpoint(self.checkpoint, trials, scoring)
        if self.resume:
            checkpoint.read()
        return checkpoint

    def _warn(self, trials: Trials, race: Race[int], last: int) -> None:
        """Warn about failures and the time limit."""
        if trials.failures:
            said = f"{len(trials.failures)} fits failed and have no score; the first error: {trials.failures[0]}"
            warnings.warn(said, FitFailedWarning, stacklevel=3)
        if not race.is_complete:
            warnings.warn(
                f"time_limit={self.time_limit:g} ended the search on rung {last + 1} of {len(trials.rungs)}, after "
                f"{len(race.trials)} trials; the best candidate so far is used.",
                UserWarning,
                stacklevel=3,
            )


def _accuracy(estimator: Any, X: Any, y: np.ndarray) -> float:
    return float(np.mean(to_numpy(estimator.predict(X)) == y))
