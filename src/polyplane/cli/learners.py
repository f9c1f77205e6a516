"""The names of the learners on the command line, and their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

from polyplane.cli.common import UserError, did_you_mean, note
from polyplane.learners import LEARNERS, find_learner

if TYPE_CHECKING:
    import numpy as np

#: The default learners: for tables (CSV, Parquet), and for other data.
TABLE, DEFAULT = "table", "multi-hyperplane"
#: Parameters that --set refuses, and what to do instead.
RESERVED = {
    "random_state": "use --seed",
    "n_jobs": "use --threads",
    "warm_start": "use --resume",
    "verbose": "progress is shown when the output is a terminal",
}


def estimators() -> dict[str, str]:
    """Return the estimator class of each learner; a learner has the name of its module, with dashes."""
    return {module.replace("_", "-"): estimator for estimator, module in LEARNERS.items()}


def learner_names() -> list[str]:
    """Return all names that ``--learner`` accepts."""
    return [TABLE, *estimators()]


def make(learner: str, settings: Mapping[str, Any], seed: int, threads: int | None) -> Any:
    """Create an estimator with validated parameters."""
    known = learner_names()
    if learner not in known:
        hint = did_you_mean(learner, known) or f" Available learners: {', '.join(known)}."
        raise UserError(f"--learner {learner}: unknown learner.{hint}")
    model = _estimator(learner)()
    set_known(model, random_state=seed)
    set_parameters(model, settings, threads)
    return model


def _estimator(learner: str) -> Any:
    if learner != TABLE:
        return find_learner(estimators()[learner])
    from polyplane.tables.classifier import TableClassifier

    return TableClassifier


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
        method = changed._method(model.classes_)
        try:
            refuse_changes(method, model._trained_by)
        except ValueError:
            raise UserError(
                f"--set {name}: this parameter cannot change when training is resumed; omit it, or omit --resume."
            ) from None


def learner_of(model: Any) -> Any:
    """Return the estimator of Polyplane: the model, or the last step of a pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def name_of(model: Any) -> str:
    """Return the name of an estimator on the command line."""
    name = type(learner_of(model)).__name__
    others = {"TableClassifier": TABLE, "CompressedClassifier": "compressed"}
    return others[name] if name in others else LEARNERS[name].replace("_", "-")


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
