"""A committee of multi-hyperplane classifiers with different seeds, whose scores are averaged."""

from __future__ import annotations

import time
from contextlib import nullcontext
from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from signal import SIGINT
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from polyplane._array_api import softmax
from polyplane._threads import in_threads, n_threads
from polyplane._validation import check_fitted_matrix
from polyplane.base import Declaration, PlaneClassifier
from polyplane.committee import PlaneCommittee
from polyplane.engine.data import Data
from polyplane.engine.interrupt import Interrupt
from polyplane.engine.run import Limits
from polyplane.learners.log_loss import USUAL_BATCH
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier, SmoothMultiHyperplane
from polyplane.scaling import AffineScaling


class _StopAll(Interrupt):
    """Raises Ctrl-C in the main thread at once, and asks the other threads to stop after the current pass."""

    def _handle(self, signum: int, frame: Any) -> None:
        self.requested = signum
        raise KeyboardInterrupt


@dataclass(eq=False, repr=False)
class CommitteeClassifier(PlaneClassifier):
    """Committee of multi-hyperplane classifiers trained from different seeds, whose class scores are averaged.

    The members are trained like `MultiHyperplaneClassifier` with ``loss="log"``, on the same rows with different
    seeds. The number of planes is chosen once for all. The score of a class is the mean of the members' scores, and
    probabilities are the softmax of these means; see `polyplane.PlaneCommittee`.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of members. With one plane per class, as chosen or given, all members would be the same, and the
        committee has one member.
    n_planes, alpha, scale, eta0, noise, batch_size, backoff, max_iter, class_weight
        As in `MultiHyperplaneClassifier`.
    random_state : int, RandomState or None, default=None
        Controls the seeds of the members.
    n_jobs : int or None, default=None
        Threads; results do not depend on their number.

    Attributes
    ----------
    planes_ : PlaneCommittee
        The model; ``planes_.members`` are the planes of the members.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        Passes made by each member; if a time limit stopped the training, the smallest number.
    history_ : dict
        After each pass: "time" (of the slowest member), "loss" (mean over the members) and "planes" (of all
        members).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Ctrl-C stops the training of all members, and the estimator does not change.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from polyplane import CommitteeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> committee = CommitteeClassifier(random_state=0).fit(X_train, y_train)
    >>> print(f"{committee.score(X_test, y_test):.2f}")
    0.99
    """

    n_estimators: int = 5
    _: KW_ONLY
    n_planes: int | None = None
    alpha: float | None = None
    scale: float = 2.5
    eta0: float = 0.3
    noise: float | None = None
    batch_size: int | None = None
    backoff: int = 31
    max_iter: int = 60
    class_weight: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        **{
            name: constraint
            for name, constraint in MultiHyperplaneClassifier._parameter_constraints.items()
            if name in ("n_planes", "alpha", "scale", "eta0", "noise", "batch_size", "backoff", "max_iter")
            or name in ("class_weight", "random_state")
        },
        "n_jobs": [Integral, None],
    }
    _declaration: ClassVar[Declaration] = Declaration(
        tuning={"scale": [2.5, 1.0, 6.0], "eta0": [0.3, 0.1, 1.0]},
        streams=False,
        probabilities="softmax",
        committee=True,
    )
    #: Training cannot be continued.
    warm_start: ClassVar[bool] = False

    def _method(self, classes: np.ndarray) -> SmoothMultiHyperplane:
        batch_size = USUAL_BATCH if self.batch_size is None else self.batch_size
        return SmoothMultiHyperplane.of(self, alpha=self.alpha or 0.0, batch_size=batch_size)

    def _fit(self, X: Any, y: Any, sample_weight: Any, limits: Limits, scaling: AffineScaling | None = None) -> Self:
        """Fit within limits, on rows seen through a scaling."""
        began = time.perf_counter()
        self._validate_params()
        draft = self._unfitted(scaling)
        data = draft._take(X, y, sample_weight, classes=None)
        seeds = check_random_state(self.random_state).randint(2**31, size=self.n_estimators).tolist()
        method = draft._method(draft.classes_).settled(data, seeds[0])
        if method.is_convex(int(np.max(np.array(method.n_planes)))):
            seeds = seeds[:1]  # the others would find the same minimum
        machines = draft._machines(data, method, seeds, limits, began)
        draft.planes_ = PlaneCommittee([machine.planes_ for machine in machines])  # type: ignore[assignment]
        # With a time limit, some members may have fewer passes.
        draft.n_iter_ = min(machine.n_iter_ for machine in machines)
        over_machines: dict[str, Any] = {"time": np.max, "loss": np.mean, "planes": np.sum}
        draft.history_ = {
            name: reduce([machine.history_[name][: draft.n_iter_] for machine in machines], axis=0).tolist()
            for name, reduce in over_machines.items()
        }
        return self._become(draft)

    def _machines(
        self, data: Data, method: SmoothMultiHyperplane, seeds: list[int], limits: Limits, began: float
    ) -> list[CommitteeClassifier]:
        """A fitted member for each seed; members trained one after another share the remaining time."""
        seconds, rounds = limits.seconds, -(-len(seeds) // n_threads(self.n_jobs))
        if seconds is not None:
            seconds = max(0.0, seconds - (time.perf_counter() - began)) / rounds
        stop = limits.interrupt or _StopAll()

        def member(seed: int) -> CommitteeClassifier:
            machine = copy(self)
            machine.random_state = seed
            try:
                return machine._train(data, Limits(seconds, stop), method)
            except BaseException:
                stop.requested = stop.requested or SIGINT  # the other threads stop too
                raise

        with nullcontext() if stop is limits.interrupt or rounds == len(seeds) else stop.watched():
            return in_threads(member, seeds, self.n_jobs)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            Softmax of the class scores, so that the most probable class is the predicted one.
        """
        X = check_fitted_matrix(self, X)
        return softmax(self.planes_.class_scores(X, self.n_jobs))
