"""Training for the command line: in memory or on a stream, scaled, within a time limit, and gone on with."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError, note
from polyplane.cli._learners import check_classes, match_labels
from polyplane.cli._scaling import Moments, Scaling, scaling_of

if TYPE_CHECKING:
    import numpy as np

    from polyplane.io import Batches, Rows


class Fitted(NamedTuple):
    """A trained model, in the data's own units, and how it came to be.

    Parameters
    ----------
    model : PlaneClassifier
        The model.
    facts : dict
        What its file is to say about the data.
    n_rows : int
        Rows it was trained on.
    seconds : float
        Time that training took.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    model: Any
    facts: dict[str, Any]
    n_rows: int
    seconds: float
    interrupted: bool


class Plan(NamedTuple):
    """How to train.

    Parameters
    ----------
    learner : str
        The learner's name on the command line.
    scale : str
        How to scale the features.
    scaling : Scaling or None
        The scaling of the model to go on with.
    time_limit : float or None
        Seconds that training may take.
    """

    learner: str
    scale: str
    scaling: Scaling | None
    time_limit: float | None


def fit_rows(model: Any, rows: Rows, plan: Plan) -> Fitted:
    """Train on rows in memory."""
    import numpy as np

    check_classes(model, plan.learner, len(np.unique(rows.y)))
    match_labels(model, rows.y)
    scaling = plan.scaling or scaling_of([rows.X], plan.scale)
    X = rows.X if scaling is None else scaling.apply(rows.X)
    began = time.perf_counter()
    with _watched() as watch, limited(model, plan.time_limit):
        model.fit(X, rows.y)
    seconds = time.perf_counter() - began
    _finish(model, scaling, rows.feature_names)
    return Fitted(model, _facts(rows.facts, scaling), len(rows.lines), seconds, watch.interrupted)


class Survey(NamedTuple):
    """What a first pass over a stream finds out."""

    classes: np.ndarray
    n_features: int
    scaling: Scaling | None
    facts: dict[str, Any]
    feature_names: tuple[str, ...] | None


def survey(parts: Batches, scale: str) -> Survey:
    """Go through a stream for its labels, its features and their scales."""
    import numpy as np

    moments, classes, part = Moments(), None, None
    for part in parts:
        found = np.unique(part.y)
        if classes is None and len(found) == 1:
            note(
                f"The first {len(part.lines)} rows are all of the class {found.tolist()[0]!r}; a stream should be "
                "shuffled."
            )
        classes = found if classes is None else np.union1d(classes, found)
        if scale != "none":
            moments.add(part.X)
    assert part is not None  # an empty stream is refused by its reader
    assert classes is not None
    return Survey(classes, part.X.shape[1], moments.scaling(scale), part.facts, part.feature_names)


def fit_stream(model: Any, open_parts: Callable[[int], Batches], found: Survey, passes: int, plan: Plan) -> Fitted:
    """Train on a stream, pass by pass; `open_parts` opens it for a number of features."""
    if not hasattr(model, "fit_stream"):
        raise UserError(f"--stream: {plan.learner} needs all rows at once.")
    check_classes(model, plan.learner, len(found.classes))
    match_labels(model, found.classes)
    parts = open_parts(found.n_features)
    scaling, n_rows = plan.scaling or found.scaling, 0

    def batches() -> Iterator[tuple[Any, np.ndarray]]:
        nonlocal n_rows
        for part in parts:
            n_rows += len(part.lines)
            yield part.X if scaling is None else scaling.apply(part.X), part.y

    began = time.perf_counter()
    with _watched() as watch:
        model.fit_stream(batches, classes=found.classes, passes=passes, time_limit=plan.time_limit, progressive=False)
    seconds = time.perf_counter() - began
    _finish(model, scaling, found.feature_names)
    return Fitted(model, _facts(found.facts, scaling), n_rows, seconds, watch.interrupted)


def _finish(model: Any, scaling: Scaling | None, feature_names: tuple[str, ...] | None) -> None:
    """Let the model speak the data's own units and names."""
    import numpy as np

    if scaling is not None:
        model.planes_ = scaling.fold(model.planes_)
    if feature_names is not None:
        model.feature_names_in_ = np.array(feature_names, dtype=object)


def _facts(facts: Mapping[str, Any], scaling: Scaling | None) -> dict[str, Any]:
    return {**facts, "scaling": "none"} if scaling is None else {**facts, **scaling.to_metadata()}


@contextmanager
def limited(model: Any, seconds: float | None) -> Iterator[None]:
    """End the training of a model with the first step after so many seconds."""
    if seconds is None:
        yield
        return
    deadline = time.perf_counter() + seconds
    rule = model._stopping_rule

    def stopping_rule() -> Callable[[Mapping[str, float]], bool]:
        converged = rule()
        return lambda figures: converged(figures) or time.perf_counter() > deadline

    model._stopping_rule = stopping_rule
    try:
        yield
    finally:
        vars(model).pop("_stopping_rule", None)


class _Watch:
    interrupted = False


@contextmanager
def _watched() -> Iterator[_Watch]:
    """Pass warnings on, and notice the one that says that Ctrl-C ended the training."""
    watch = _Watch()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def hear(message: Any, *where: Any, **more: Any) -> None:
            watch.interrupted |= str(message).startswith("Interrupted")
            show(message, *where, **more)

        warnings.showwarning = hear  # type: ignore[assignment]
        yield watch
