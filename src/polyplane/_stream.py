"""Training on streams: data that come in batches, larger than memory or without an end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from polyplane._batches import Source
from polyplane._stream_run import StreamOptions, StreamRun
from polyplane._validation import check_classes


class StreamLearner:
    """What learners that take streams have in common."""

    #: Whether a step on new rows keeps what was learned from earlier ones: there are `partial_fit` and `fit_stream`.
    _takes_streams: ClassVar[bool] = True
    #: Whether the steps of a stream can be kept from falling, so that old rows fade: there is `half_life`.
    _fades: ClassVar[bool] = False

    @available_if(lambda self: self._takes_streams)
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
        r"""Learn from a stream of batches, each of which is looked at once per pass.

        Each batch is one step, as in `partial_fit`; the planes are made up only at the end, and for a checkpoint. When
        the stream breaks off, by an error of its own or a batch that is refused, the error is raised and the model is
        that of the batches before. Ctrl-C ends training after the batch at hand, with a warning.

        Parameters
        ----------
        batches : iterable, or function that returns one
            ``(X, y)`` or ``(X, y, weight)`` again and again: a list, a generator, a file reader. A function is called
            for each pass; if it has a parameter `start`, with the number of rows to leave out (to go on after a
            checkpoint). Sparse rows may bring new features, more columns at the right: their weights begin at 0, and
            ``n_features_in_`` grows (`ConvexPolytopeClassifier` and `PegasosSVC`).
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; None: those of the first batch. A batch with another label is refused.
        passes : int, default=1
            How often to go through the stream.
        time_limit : float or None, default=None
            Seconds after which to end, when the batch at hand is done.
        half_life : float or None, default=None
            For data that drift: the number of rows after which what a row has taught counts for half. The steps
            :math:`1 / (\alpha t)` fall until :math:`t = \tau`, half_life over log 2, and then stay; from there on
            each visit takes :math:`1 / \tau` off the planes, so that what was learned :math:`s` visits ago counts
            :math:`e^{-s / \tau}`. None: all rows count alike (`ConvexPolytopeClassifier` and `PegasosSVC`; the steps of
            other learners never fall to 0 in a stream).
        progressive : bool, default=True
            Test the model on each batch before it is trained on it.
        validation : (X, y), (X, y, weight), or list or function of batches, default=None
            Rows that are held back, to test on after the first batch and at the end.
        validate_every : int or None, default=None
            Test on them after each such number of batches too.
        checkpoint : path-like, default=None
            A model file to write now and then, at the end, and when training is broken off, by Ctrl-C or by SIGTERM
            (which then ends the process). It can be loaded as a model at any time.
        checkpoint_every : float, default=300.0
            Seconds between checkpoints.
        resume : bool, default=False
            Go on from the checkpoint, if there is one; batches that were learned from are passed over. The planes are
            those of a training that was never broken off.
        prefetch : int, default=0
            Batches to make ahead, in a thread of their own.

        Returns
        -------
        self : object
            The fitted estimator. Its ``history_`` holds, for each batch, "time", "reading" (seconds waited for the
            batch), "rows" (up to here), "pass", "progressive_error" (of the batch, before training on it; NaN for
            the first) and the learner's own figures; and "validation_error" with "validation_rows".

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
        self._check_stream(half_life, passes)
        options = StreamOptions(
            None if classes is None else check_classes(np.asarray(classes)),
            time_limit,
            half_life,
            progressive,
            validation,
            validate_every,
            None if checkpoint is None else Path(checkpoint),
            checkpoint_every,
            resume,
        )
        source, run, before = Source(batches, passes), StreamRun(self, options), dict(vars(self))
        try:
            run.begin()
            run.go(source, prefetch)
        finally:
            if not run.n_batches:  # nothing was learned: nothing has changed
                vars(self).clear()
                vars(self).update(before)
        return self

    def _check_stream(self, half_life: float | None, passes: int) -> None:
        self._validate_params()  # type: ignore[attr-defined]
        if getattr(self, "class_weight", None) == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once; give a dict of weights instead.")
        if half_life is not None and not self._fades:
            raise ValueError(
                f"half_life is for learners whose steps fall to 0, not for {type(self).__name__}: its steps in a "
                "stream never do."
            )
        if passes < 1:
            raise ValueError(f"passes={passes} must be 1 or more.")

    def _stream_predict(self, state: Any, X: Any) -> np.ndarray:
        """The classes of validated rows, as integers, in a state."""
        planes = self._planes(state)  # type: ignore[attr-defined]
        codes: np.ndarray = planes.predict(X, getattr(self, "n_jobs", None))
        return codes

    def _widen(self, state: Any, n_features: int) -> Any:
        """The state with room for more features, of weight 0."""
        raise ValueError(
            f"X has {n_features} features, more than before, and {type(self).__name__} cannot grow in them; give all "
            "batches the same columns."
        )

    def _trimmed(self, state: Any) -> Any:
        """The state without the room to spare that `_widen` made."""
        return state
