"""Training for the command line: the estimator, its training until a time limit or Ctrl-C, cross-validation, tuning."""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane._plain import did_you_mean
from polyplane.cli.common import UserError, note
from polyplane.cli.data import name_of
from polyplane.cli.rows import DataFacts, TrainingRows, scaling_by
from polyplane.learners import LEARNERS, find_learner

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli.train import TrainOptions
    from polyplane.engine.data import AffineScaling
    from polyplane.engine.run import Limits
    from polyplane.explain.confusion import ConfusionMatrix

#: The default learners: for tables (CSV, Parquet), and for other data.
TABLE, DEFAULT = "table", "multi-hyperplane"
#: Parameters that --set refuses, and what to do instead.
RESERVED = {
    "random_state": "use --seed",
    "n_jobs": "use --threads",
    "warm_start": "use --resume",
    "verbose": "progress is shown when the output is a terminal",
}


#: Folds and settings of a search.
N_FOLDS, N_SETTINGS = 5, 40
#: Keys of a setting in `tried`, in addition to its parameters.
FIGURES = ("scaling", "rung", "error", "standard_error")


def estimators() -> dict[str, str]:
    """Return the estimator class of each learner; a learner has the name of its module, with dashes."""
    return {module.replace("_", "-"): estimator for estimator, module in LEARNERS.items()}


def learner_names() -> list[str]:
    """Return all names that ``--learner`` accepts."""
    return [TABLE, *estimators()]


def check_learner(learner: str | None) -> None:
    """Raise an error for an unknown learner."""
    known = learner_names()
    if learner is not None and learner not in known:
        hint = did_you_mean(learner, known) or f" Available learners: {', '.join(known)}."
        raise UserError(f"--learner {learner}: unknown learner.{hint}")


def make(learner: str, settings: Mapping[str, Any], seed: int, threads: int | None) -> Any:
    """Create an estimator with validated parameters."""
    import polyplane

    model = polyplane.TableClassifier() if learner == TABLE else find_learner(estimators()[learner])()
    set_known(model, random_state=seed)
    set_parameters(model, settings, threads)
    return model


def set_parameters(model: Any, settings: Mapping[str, Any], threads: int | None) -> None:
    """Set the parameters of an estimator; unknown names and invalid values are errors."""
    known, learner = model.get_params(), name_of(model)
    for name in settings:
        if name in RESERVED:
            raise UserError(f"--set: `{name}` cannot be set here: {RESERVED[name]}.")
        if name not in known:
            hint = did_you_mean(name, known) or f" Its parameters are {', '.join(sorted(known.keys() - RESERVED))}."
            raise UserError(f"--set {name}: {learner} has no such parameter.{hint}")
    model.set_params(**settings)
    if threads is not None and not set_known(model, n_jobs=threads):
        note(f"--threads has no effect on the training of {learner}.")
    model._validate_params()


def set_known(model: Any, **values: Any) -> bool:
    """Set those parameters that the estimator has; return whether it has any of them."""
    known = {name: value for name, value in values.items() if name in model.get_params()}
    model.set_params(**known)
    return bool(known)


def check_resumable(model: Any, settings: Mapping[str, Any]) -> None:
    """Raise an error for parameters that cannot change when training is resumed."""
    from polyplane.engine.method import refuse_changes

    for name, value in settings.items():
        changed = copy(model).set_params(**{name: value})
        match_labels(changed, model.classes_)
        try:
            if not model._declaration.takes_matrix:
                raise ValueError("the members keep what they were trained with")
            refuse_changes(changed._method(model.classes_), model._trained_by)
        except ValueError:
            raise UserError(
                f"--set {name}: this parameter cannot change when training is resumed; omit it, or omit --resume."
            ) from None


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse ``name=value`` of each ``--set``; values are Python literals, strings need no quotes."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--set {pair}: expected name=value.")
        settings[name.strip().replace("-", "_")] = _value(text.strip())
    return settings


def _value(text: str) -> Any:
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def check_classes(model: Any, classes: np.ndarray) -> None:
    """Raise an error if the learner does not support these classes; convert parameters that are labels."""
    if len(classes) < 2:
        raise UserError("The data contain a single class; at least two classes are required.")
    if len(classes) > 2 and not model._declaration.multi_class:
        others = [name for name, kind in estimators().items() if find_learner(kind)._declaration.multi_class]
        raise UserError(
            f"--learner {name_of(model)} supports two classes only, and the data have {len(classes)}; multiclass "
            f"learners are {', '.join(others)}."
        )
    match_labels(model, classes)


def match_labels(model: Any, classes: np.ndarray) -> None:
    """Convert parameters that are labels to the type of the classes: a label 2 may be a string in the data."""
    for name in model._declaration.label_parameters:
        value = getattr(model, name)
        if value is not None and classes.dtype.kind in "UO" and not isinstance(value, str):
            model.set_params(**{name: str(value)})


# Training.


class Outcome(NamedTuple):
    """Training time in seconds, and whether training was interrupted by Ctrl-C."""

    seconds: float
    interrupted: bool


def train_in_memory(options: TrainOptions, model: Any, rows: TrainingRows) -> Outcome:
    """Train on all rows at once."""
    scaling = scaling_of(rows.X, options.scaling)
    return _train(model, options, rows.facts, lambda limits: model._fit(rows.X, rows.y, None, limits, scaling))


def train_on_stream(options: TrainOptions, model: Any, facts: DataFacts, batches: Callable[[], Any]) -> Outcome:
    """Train on rows in batches, pass by pass."""
    from polyplane._streaming import StreamOptions

    continues, passes = options.resume is not None, options.passes or 1
    stream = StreamOptions(classes=facts.classes, passes=passes, progressive=False, continues=continues)
    return _train(model, options, facts, lambda limits: model._fit_stream(batches, stream, limits, facts.scaling))


def _train(model: Any, options: TrainOptions, facts: DataFacts, fit: Callable[[Limits], Any]) -> Outcome:
    """Train until the end, the time limit or the first Ctrl-C, and name the features of a matrix as in its file.

    If no step was finished, `KeyboardInterrupt` is raised.
    """
    import numpy as np

    from polyplane.engine.run import Interrupt, Limits

    planes, interrupt = getattr(model, "planes_", None), Interrupt()
    interrupted, began = False, time.perf_counter()
    with interrupt.watched():
        try:
            fit(Limits(options.time_limit, interrupt))
        except KeyboardInterrupt:
            if getattr(model, "planes_", None) is planes:
                raise
            interrupted = True
    if facts.feature_names is not None:
        model.feature_names_in_ = np.array(facts.feature_names, dtype=object)
    return Outcome(time.perf_counter() - began, interrupted or interrupt.requested is not None)


def scaling_of(X: Any, method: str) -> AffineScaling | None:
    """Fit the scaling of a method of ``--scale`` to the features."""
    from polyplane.engine.data import FeatureMoments, refuse_extremes

    moments = FeatureMoments()
    if method != "none":
        refuse_extremes(X)
        moments.add(X)
    return scaling_by(moments, method)


def scaling_shown(model: Any, method: str) -> str:
    """Return the scaling of a trained model: that of ``--scale``, or the learner's own by its `standardize`."""
    own = model._scaling
    if method != "none" or own is None or (own.factor == own.factor[0]).all():
        return method
    return "standard, by the learner" if own.centre.any() else "maxabs, by the learner"


def cross_validate(options: TrainOptions, model: Any, rows: TrainingRows) -> list[ConfusionMatrix]:
    """Return the confusion matrix of each fold; it is scaled by its own training rows, or like the model to resume."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.metrics import confusion_matrix
    from sklearn.model_selection import StratifiedKFold

    from polyplane.engine.run import Limits
    from polyplane.explain.confusion import ConfusionMatrix

    assert options.cv is not None
    counts = rows.facts.class_counts
    if min(counts.values()) < options.cv:
        raise UserError(
            f"--cv {options.cv}: the smallest class has only {min(counts.values())} rows; use at most that many folds."
        )
    found, classes = [], rows.facts.classes
    folds = StratifiedKFold(options.cv, shuffle=True, random_state=options.seed)
    for training, test in folds.split(np.empty(len(rows.y)), rows.y):
        fold = clone(model)
        set_known(fold, warm_start=False)
        (X, y), (X_test, y_test) = rows.take(training), rows.take(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same warnings are shown for the fit on all rows
            fold._fit(X, y, None, Limits(options.time_limit), model._scaling or scaling_of(X, options.scaling))
        found.append(ConfusionMatrix(classes, confusion_matrix(y_test, fold.predict(X_test), labels=classes)))
    return found


# Tuning.


def tune(model: Any, rows: TrainingRows, options: TrainOptions, fixed: set[str], show: bool) -> dict[str, Any]:
    """Search the best parameters, except those that are `fixed`, and the best scaling unless one is given.

    Parameters
    ----------
    model : estimator
        The estimator, with the parameters that are given.
    rows : TrainingRows
        The rows.
    options : TrainOptions
        The options of the command line.
    fixed : set of str
        The parameters that are given.
    show : bool
        Whether to show the progress.

    Returns
    -------
    found : dict
        The best parameters as "settings"; the best method of ``--scale`` as "scaling"; the cross-validation "error" of
        both as a percentage, and its "standard_error"; "n_tried" and "seconds"; and "tried": all settings, the best
        first, with the last round of halving that they reached ("rung", from 1), "error" and "standard_error".
    """
    from sklearn.model_selection import StratifiedKFold

    from polyplane.search import PlaneSearchCV

    began, fewest = time.perf_counter(), min(rows.facts.class_counts.values())
    if fewest < 2:
        raise UserError("--tune needs at least two rows of each class; one class has a single row.")
    machine, space, scalers = _searched(model, rows, options, fixed)
    search = PlaneSearchCV(
        machine,
        space,
        n_iter=N_SETTINGS,
        cv=StratifiedKFold(min(N_FOLDS, fewest), shuffle=True, random_state=options.seed),
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
    tried = _tried(search.cv_results_, search.n_splits_, {str(scaler): name for name, scaler in scalers.items()})
    return {
        "settings": {name: value for name, value in tried[0].items() if name not in FIGURES},
        "scaling": tried[0].get("scaling", options.scaling),
        **{name: tried[0][name] for name in ("error", "standard_error")},
        "n_tried": len(tried),
        "seconds": time.perf_counter() - began,
        "tried": tried,
    }


def _searched(model: Any, rows: TrainingRows, options: TrainOptions, fixed: set[str]) -> tuple[Any, Any, Any]:
    """Return a scaler with a model, their search space, and the scalers by their names."""
    from scipy.sparse import issparse
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    from polyplane.search.candidates import declared_space

    trial = clone(model)
    set_known(trial, verbose=0, n_jobs=None, warm_start=False)
    standard = StandardScaler(with_mean=not issparse(rows.X))
    scalers: dict[str, Any] = {"none": "passthrough", "standard": standard, "maxabs": MaxAbsScaler()}
    machine = Pipeline([("scaling", scalers[options.scaling]), ("model", trial)])
    declared = declared_space(machine, rows.facts.classes)
    space = {name: values for name, values in declared.items() if name.removeprefix("model__") not in fixed}
    if options.scale is None:
        space["scaling"] = list(scalers.values())
    if not space:
        names = ", ".join(name.removeprefix("model__") for name in declared)
        raise UserError(f"--tune: --set and --scale fix all tunable parameters ({names}); omit one of them.")
    return machine, space, scalers


def _tried(table: Mapping[str, Any], n_folds: int, scalings: Mapping[str, str]) -> list[dict[str, Any]]:
    """List the settings of a search by rank, each with its last round."""
    import numpy as np

    rows: dict[str, dict[str, Any]] = {}
    for i in np.argsort(table["rank_test_score"], kind="stable"):
        params = table["params"][i]
        shown = {name.removeprefix("model__"): params[name] for name in sorted(params) if name != "scaling"}
        if "scaling" in params:
            shown["scaling"] = scalings[str(params["scaling"])]
        errors = 100 * (1 - np.array([table[f"split{fold}_test_score"][i] for fold in range(n_folds)]))
        errors = errors[~np.isnan(errors)]  # the first rounds use some of the folds only
        spread = float(errors.std(ddof=1) / len(errors) ** 0.5) if len(errors) > 1 else float("nan")
        figures = {"error": float(errors.mean()), "standard_error": spread}
        rows.setdefault(repr(params), {**shown, "rung": int(table["rung"][i]) + 1, **figures})
    return list(rows.values())
