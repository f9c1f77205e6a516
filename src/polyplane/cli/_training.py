"""Training for the command line: in memory or on a stream, until the time limit or Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError, note
from polyplane.cli._data import LoadedModel, label_kind
from polyplane.cli._learners import check_classes, name_of

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli._train_options import TrainOptions
    from polyplane.engine.run import Limits
    from polyplane.readers import Rows
    from polyplane.scaling import AffineScaling, FeatureMoments


class TrainedModel(NamedTuple):
    """A trained model, and facts about its training.

    Parameters
    ----------
    model : PlaneClassifier
        The model.
    facts : dict
        Reading options for its data.
    n_rows : int
        Number of training rows.
    seconds : float
        Training time.
    interrupted : bool
        Whether training was interrupted by Ctrl-C.
    """

    model: Any
    facts: Mapping[str, Any]
    n_rows: int
    seconds: float
    interrupted: bool


def train_in_memory(options: TrainOptions, model: Any, rows: Rows) -> TrainedModel:
    """Train on all rows at once."""
    scaling = scaling_of(rows.X, options.scaling)
    outcome = _train(model, options, lambda limits: model._fit(rows.X, rows.y, None, limits, scaling))
    _name_features(model, rows.feature_names)
    return TrainedModel(model, rows.facts, len(rows.lines), *outcome)


def train_on_stream(options: TrainOptions, model: Any, resumed: LoadedModel | None) -> TrainedModel:
    """Train on rows in batches, pass by pass."""
    from polyplane._streaming import StreamOptions
    from polyplane.readers import batches

    if not model._declaration.streams:
        raise UserError(f"--stream: {name_of(model)} needs all rows in memory; omit --stream, or use another learner.")
    reading = options.reading_for(resumed)
    found = _given(options, resumed) if options.data == "-" else _survey(options, reading)
    if resumed is not None:
        found = found._replace(classes=resumed.model.classes_)
    check_classes(model, found.classes)
    parts = batches(options.source, options.batch_rows, **{**reading, **found.reading()})
    stream = StreamOptions(classes=found.classes, passes=options.passes or 1, progressive=False)

    def fit(limits: Limits) -> None:
        model._fit_stream(lambda: ((part.X, part.y) for part in parts), stream, limits, found.scaling)

    outcome = _train(model, options, fit)
    _name_features(model, found.feature_names)
    return TrainedModel(model, found.facts, int(model.history_["rows"][-1]), *outcome)


def scaling_of(X: Any, method: str) -> AffineScaling | None:
    """Fit the scaling of a method of ``--scale`` to the features."""
    from polyplane.engine.data import refuse_extremes
    from polyplane.scaling import FeatureMoments

    moments = FeatureMoments()
    if method != "none":
        refuse_extremes(X)
        moments.add(X)
    return _scaling_by(moments, method)


def _scaling_by(moments: FeatureMoments, method: str) -> AffineScaling | None:
    return {"none": lambda: None, "standard": moments.standard, "maxabs": moments.maxabs}[method]()


def _train(model: Any, options: TrainOptions, fit: Callable[[Limits], Any]) -> tuple[float, bool]:
    """Train until the end or the first Ctrl-C; return the training time, and whether it was interrupted.

    If no step was finished, `KeyboardInterrupt` is raised.
    """
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
    return time.perf_counter() - began, interrupted or interrupt.requested is not None


def _name_features(model: Any, names: tuple[str, ...] | None) -> None:
    import numpy as np

    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


class _Survey(NamedTuple):
    """Facts about a stream that are needed before training."""

    classes: np.ndarray
    n_features: int
    scaling: AffineScaling | None
    facts: Mapping[str, Any]
    feature_names: tuple[str, ...] | None

    def reading(self) -> dict[str, Any]:
        """Options to read the stream again."""
        zero_based = self.facts.get("zero_based")
        first = {} if zero_based is None else {"zero_based": zero_based}
        return {**first, "n_features": self.n_features, "labels": label_kind(self.classes)}


def _survey(options: TrainOptions, reading: dict[str, Any]) -> _Survey:
    """Read a stream to find its labels, its features and their scales."""
    import numpy as np

    from polyplane.engine.data import refuse_extremes
    from polyplane.readers import batches
    from polyplane.scaling import FeatureMoments

    moments, classes, part = FeatureMoments(), None, None
    for part in batches(options.source, options.batch_rows, **reading):
        found = np.unique(part.y)
        if classes is None and len(found) == 1:
            note(f"The first {len(part.lines)} rows all have the class {found.tolist()[0]!r}; shuffle the data.")
        classes = found if classes is None else np.union1d(classes, found)
        if options.scaling != "none":
            refuse_extremes(part.X)
            moments.add(part.X)
    assert part is not None  # the reader raises an error for an empty stream
    assert classes is not None
    return _Survey(classes, part.X.shape[1], _scaling_by(moments, options.scaling), part.facts, part.feature_names)


def _given(options: TrainOptions, resumed: LoadedModel | None) -> _Survey:
    """Take the facts about a stream from standard input from the command line, or from the model to resume."""
    import numpy as np

    classes = None if resumed is None else resumed.model.classes_
    n_features = options.n_features if resumed is None else resumed.model.n_features_in_
    if options.classes is not None:
        classes = np.unique(np.array([_label(text) for text in options.classes.split(",")]))
    if classes is None or n_features is None or options.scaling != "none":
        raise UserError(
            "Standard input can be read only once: with --stream, also specify --classes and --features, and omit "
            "--scale."
        )
    return _Survey(classes, n_features, None, {} if resumed is None else resumed.metadata, None)


def _label(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text.strip()
