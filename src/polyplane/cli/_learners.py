"""The learners by their names on the command line, and their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from polyplane.cli._common import UserError, did_you_mean

Learner = Literal["convex-polytope", "multi-hyperplane", "mixture", "polyceptron", "svm", "pegasos", "successive-lp"]
DEFAULT: Learner = "multi-hyperplane"
_CLASSES = (
    "ConvexPolytopeClassifier",
    "MultiHyperplaneClassifier",
    "PolyhedralMixtureClassifier",
    "PolyceptronClassifier",
    "CuttingPlaneSVC",
    "PegasosSVC",
    "SuccessiveLPClassifier",
)
CLASSES: dict[str, str] = dict(zip(get_args(Learner), _CLASSES, strict=True))
#: Parameters that have options of their own.
OWN_OPTIONS = {"random_state": "--seed", "n_jobs": "--threads", "warm_start": "--resume", "verbose": "a terminal"}


def make(learner: str, settings: Mapping[str, Any], seed: int | None, threads: int | None) -> Any:
    """An estimator with its parameters set and checked."""
    import polyplane

    model = getattr(polyplane, CLASSES[learner])()
    set_parameters(model, learner, settings, seed, threads)
    return model


def set_parameters(
    model: Any, learner: str, settings: Mapping[str, Any], seed: int | None, threads: int | None
) -> None:
    """Set the parameters of an estimator; unknown names and impossible values are refused."""
    known = model.get_params()
    for name in settings:
        if name in OWN_OPTIONS and name in known:
            raise UserError(f"--set {name}: this is for {OWN_OPTIONS[name]} to say.")
        if name not in known:
            hint = did_you_mean(name, known) or f" It has {', '.join(sorted(set(known) - set(OWN_OPTIONS)))}."
            raise UserError(f"--set {name}: {learner} has no such parameter.{hint}")
    model.set_params(**settings)
    for name, value in (("random_state", seed), ("n_jobs", threads)):
        if name in known and value is not None:
            model.set_params(**{name: value})
    model._validate_params()


def name_of(model: Any) -> str:
    """The name of an estimator's learner on the command line."""
    return next(name for name, kind in CLASSES.items() if kind == type(model).__name__)


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """``name=value`` of each ``--set``; values are written as in Python, text without quotes."""
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


def check_classes(model: Any, learner: str, n_classes: int) -> None:
    """Refuse more than two classes to learners that separate two."""
    if n_classes > 2 and not model.__sklearn_tags__().classifier_tags.multi_class:
        raise UserError(
            f"--learner {learner} separates two classes, and the data have {n_classes}; multi-hyperplane, "
            "convex-polytope, svm and pegasos take any number."
        )
    if n_classes < 2:
        raise UserError("The data hold a single class; a classifier needs at least two.")


def match_labels(model: Any, classes: Any) -> None:
    """Let parameters that name a class speak of it as the data do: a label 2 may be text there."""
    for name in ("sides", "inside"):
        value = model.get_params().get(name)
        if value is not None and classes.dtype.kind in "UO" and not isinstance(value, str):
            model.set_params(**{name: str(value)})
