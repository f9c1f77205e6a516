"""`--tune`: a search over the most important parameters and the scaling of the features, with a time limit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from polyplane.cli.common import UserError, note
from polyplane.cli.learners import set_known
from polyplane.cli.training import TrainingRows, scaling_of
from polyplane.search import PlaneSearchCV
from polyplane.search.candidates import declared_space

if TYPE_CHECKING:
    from polyplane.cli.train_options import TrainOptions

N_FOLDS, N_SETTINGS = 5, 40
#: Keys of a setting in `tried`, in addition to its parameters.
FIGURES = ("scaling", "rung", "error", "standard_error")
#: Methods of ``--scale``, the default first.
SCALES = ["none", "standard", "maxabs"]


class Tuned(NamedTuple):
    """The result of a search.

    Parameters
    ----------
    settings : dict
        The best parameters.
    scaling : str
        The best method of ``--scale``, or the one that was given.
    error : float
        Their cross-validation error, as a percentage.
    standard_error : float
        The standard error of `error`.
    n_tried : int
        Number of settings that were tried.
    seconds : float
        Search time.
    tried : list of dict
        All settings, the best first, with the last round of halving that they reached ("rung", from 1), "error" and
        "standard_error".
    """

    settings: dict[str, Any]
    scaling: Any
    error: float
    standard_error: float
    n_tried: int
    seconds: float
    tried: list[dict[str, Any]]


class FeatureScaling(TransformerMixin, BaseEstimator):
    """Transformer that scales features by a method of ``--scale``, as in training."""

    def __init__(self, method: str = "none") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the scaling to the rows."""
        self.scaling_ = scaling_of(X, self.method)
        return self

    def transform(self, X: Any) -> Any:
        """Scale the rows."""
        return X if self.scaling_ is None else self.scaling_.apply(X)


def tune(model: Any, rows: TrainingRows, options: TrainOptions, fixed: set[str], show: bool) -> Tuned:
    """Search the best parameters, except those that are `fixed`, and the best scaling unless one is given."""
    began = time.perf_counter()
    trial = clone(model)
    set_known(trial, verbose=0, n_jobs=None, warm_start=False)
    machine = Pipeline([("scaling", FeatureScaling(options.scaling)), ("model", trial)])
    search = PlaneSearchCV(
        machine,
        _space(machine, np.unique(rows.y), options, fixed),
        n_iter=N_SETTINGS,
        cv=StratifiedKFold(_n_folds(rows.y), shuffle=True, random_state=options.seed),
        refit=False,
        random_state=options.seed,
        n_jobs=options.threads,
        time_limit=options.tuning_time,
        verbose=int(show),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "time_limit=", UserWarning)
        search.fit(rows.X, rows.y)
    if not search.is_complete_:
        note(
            f"--tune: the search stopped after {options.tuning_time:g} seconds; the best settings found "
            "so far are used."
        )
    tried = _tried(search.cv_results_, search.n_splits_)
    best = {name: value for name, value in tried[0].items() if name not in FIGURES}
    seconds = time.perf_counter() - began
    scaling = search.best_params_.get("scaling__method", options.scaling)
    return Tuned(best, scaling, tried[0]["error"], tried[0]["standard_error"], len(tried), seconds, tried)


def _space(machine: Pipeline, classes: np.ndarray, options: TrainOptions, fixed: set[str]) -> dict[str, list[Any]]:
    declared = declared_space(machine, classes)
    space = {name: values for name, values in declared.items() if name.removeprefix("model__") not in fixed}
    if options.scale is None:
        space["scaling__method"] = SCALES
    if not space:
        names = ", ".join(name.removeprefix("model__") for name in declared)
        raise UserError(f"--tune: --set and --scale fix all tunable parameters ({names}); omit one of them.")
    return space


def _n_folds(y: np.ndarray) -> int:
    fewest = int(np.unique(y, return_counts=True)[1].min())
    if fewest < 2:
        raise UserError("--tune needs at least two rows of each class; one class has a single row.")
    return min(N_FOLDS, fewest)


def _tried(table: Mapping[str, Any], n_folds: int) -> list[dict[str, Any]]:
    """List the settings of a search by rank, each with its last round."""
    rows: dict[str, dict[str, Any]] = {}
    for i in np.argsort(table["rank_test_score"], kind="stable"):
        params = table["params"][i]
        named = {name.removeprefix("model__"): params[name] for name in sorted(params) if name != "scaling__method"}
        scaling = {"scaling": params["scaling__method"]} if "scaling__method" in params else {}
        errors = 100 * (1 - np.array([table[f"split{fold}_test_score"][i] for fold in range(n_folds)]))
        figures = {"error": float(errors.mean()), "standard_error": float(errors.std(ddof=1) / n_folds**0.5)}
        rows.setdefault(repr(params), {**named, **scaling, "rung": int(table["rung"][i]) + 1, **figures})
    return list(rows.values())
