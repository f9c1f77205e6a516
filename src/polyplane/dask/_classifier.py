"""`DaskPlaneClassifier`: training of a learner on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from polyplane._threads import one_blas_thread
from polyplane.base import PlaneClassifier
from polyplane.dask import _cutting_plane, _polyhedra
from polyplane.dask._lazy import lazily
from polyplane.dask._partitions import Cluster, blocks_of, connected_client, explain_lost_cluster, scatter
from polyplane.dask._rounds import Rounds, in_rounds
from polyplane.engine.data import Data, FeatureRanges
from polyplane.engine.method import Method
from polyplane.engine.run import Progress, Run
from polyplane.learners.cutting_plane import CuttingPlane
from polyplane.learners.polyceptron import Polyceptron
from polyplane.learners.polyhedral_mixture import PolyhedralMixture

#: Methods whose steps are sums over rows, and the functions that add up the sums of the partitions.
EXACT: dict[type, Callable[[Any, Cluster], tuple[Method[Any], Data]]] = {
    CuttingPlane: _cutting_plane.on_cluster,
    Polyceptron: _polyhedra.on_cluster,
    PolyhedralMixture: _polyhedra.on_cluster,
}


class DaskPlaneClassifier(ClassifierMixin, BaseEstimator):
    """Train a learner on the partitions of a Dask cluster. Rows stay on the workers; only models are transferred.

    `CuttingPlaneSVC`, `PolyhedralMixtureClassifier` and `PolyceptronClassifier` (batch) take steps that are sums over
    rows: they find the same planes as on a single computer, up to rounding. `ConvexPolytopeClassifier`, `PegasosSVC`
    and `MultiHyperplaneClassifier` are trained in rounds: each partition trains the common model for some epochs, and
    the planes are averaged, weighted by the number of rows; partitions should be few, large and similarly distributed.

    Each task depends only on a model, a partition and a seed. If a worker is lost, Dask repeats its tasks, with the
    same result.

    Parameters
    ----------
    estimator : PlaneClassifier
        The estimator to train. Each partition is trained with a single thread, independent of `n_jobs`.
    rounds : int, default=10
        Number of times the models are averaged; the `max_iter` epochs of the estimator are divided among the rounds.

    Attributes
    ----------
    estimator_ : PlaneClassifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features seen during fit.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.dask import DaskPlaneClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = da.from_array(StandardScaler().fit_transform(X), chunks=(200, -1))
    >>> y = da.from_array(y, chunks=200)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     svm = DaskPlaneClassifier(CuttingPlaneSVC(C=0.01)).fit(X, y)
    ...     labels = svm.predict(X).compute()
    >>> print(f"{(labels == y.compute()).mean():.2f}")
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [PlaneClassifier],
        "rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, estimator: PlaneClassifier, *, rounds: int = 10) -> None:
        self.estimator = estimator
        self.rounds = rounds

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator to the rows of all partitions.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The training data; the blocks of an array can be CSR matrices, and its chunk sizes can be unknown.
        y : Dask array, Dask series, or list of delayed partitions
            The class labels, with the same partitions as X.
        sample_weight : like y, default=None
            Sample weights.

        Returns
        -------
        self : object
            The fitted classifier. If `fit` fails, the classifier does not change. Ctrl-C raises `KeyboardInterrupt`,
            and the classifier keeps the model of the last finished step or round.
        """
        self._validate_params()
        if getattr(self.estimator, "early_stopping", False):
            raise ValueError("early_stopping is not supported on a cluster; set it to False.")
        client, draft = connected_client(), clone(self.estimator)
        draft._validate_params()
        with explain_lost_cluster(), one_blas_thread():
            cluster = scatter(client, draft, blocks_of(X, y, sample_weight), self._check_method)
            draft.classes_, draft.n_features_in_ = cluster.classes, cluster.n_features
            if cluster.feature_names is not None:
                draft.feature_names_in_ = np.array(cluster.feature_names, dtype=object)
            _judge_scales(draft, cluster)
            self._train(draft, cluster)
        return self

    def _check_method(self, method: Method[Any]) -> None:
        """Raise an error if the method cannot be trained on a cluster."""
        name = type(self.estimator).__name__
        if type(method) in EXACT:
            return
        if not method.traits.mixable:
            raise ValueError(
                f"{name} cannot be trained on a cluster: its steps are not sums over rows, and models of different "
                "partitions cannot be averaged."
            )
        if getattr(self.estimator, "tol", None) is not None:
            raise ValueError(f"On a cluster, {name} always runs max_iter epochs: set tol to None.")

    def _train(self, draft: PlaneClassifier, cluster: Cluster) -> None:
        """Train on the cluster and keep the model; after Ctrl-C, that of the last completed step."""
        method, data, epochs = self._on_cluster(draft._method(cluster.classes), cluster)
        observers = [Progress(type(draft).__name__, len(epochs))] if getattr(draft, "verbose", 0) else []
        run = Run(method, seed=draft._seed(), plateau=draft._plateau(), observers=observers)
        try:
            run.go(repeat(data, len(epochs)))
        except KeyboardInterrupt:
            if run.n_steps:
                self._keep(draft, run, sum(epochs[: run.n_steps]))
            raise
        self._keep(draft, run, sum(epochs[: run.n_steps]))

    def _on_cluster(self, method: Method[Any], cluster: Cluster) -> tuple[Method[Any], Data, tuple[int, ...]]:
        """Return the method for the cluster, placeholder rows for the run, and the number of epochs in each step."""
        max_iter = self.estimator.max_iter
        if type(method) in EXACT:
            return (*EXACT[type(method)](method, cluster), (1,) * max_iter)
        rounds, data = in_rounds(method, cluster, self.rounds, max_iter)
        return rounds, data, rounds.epochs

    def _keep(self, draft: PlaneClassifier, run: Run, n_iter: int) -> None:
        """Keep the model of a run."""
        assert run.data is not None
        was_in_rounds = isinstance(run.method, Rounds)
        state = run.state.model if was_in_rounds else draft._concluded(run.method, run.state, run.data)
        draft._settle(draft._method(draft.classes_), state.without_rows(), state, run.data)
        draft.n_iter_, draft.history_ = n_iter, run.history
        self.__dict__.update(estimator_=draft, classes_=draft.classes_, n_features_in_=draft.n_features_in_)

    def to_local(self) -> PlaneClassifier:
        """Return the fitted estimator, to predict, save or continue training without a cluster.

        Returns
        -------
        estimator : PlaneClassifier
            The estimator.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def predict(self, X: Any) -> Any:
        """Predict class labels, lazily.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows.

        Returns
        -------
        y : Dask array, Dask series or list of delayed arrays, like X
            The class labels.
        """
        return lazily(X, self.to_local(), "predict", self.to_local().classes_[:1])

    def decision_function(self, X: Any) -> Any:
        """Compute class scores, lazily.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows.

        Returns
        -------
        scores : Dask array, Dask series or dataframe, or list of delayed arrays, like X
            The class scores. For two classes, the score of the second class minus that of the first.
        """
        estimator = self.to_local()
        shape = (1,) if len(estimator.classes_) == 2 else (1, len(estimator.classes_))
        return lazily(X, estimator, "decision_function", np.zeros(shape, estimator.planes_.coef.dtype))


def _judge_scales(draft: PlaneClassifier, cluster: Cluster) -> None:
    """Warn about feature scales as `fit` does, and about rows far from 0, which are not shifted on a cluster."""
    ranges = FeatureRanges.union([info.ranges for info in cluster.infos])
    ranges.refuse_tiny(cluster.dtype)
    near = ranges.nearer(cluster.dtype) is None
    scaling = draft._method(cluster.classes).traits.own_scaling
    draft._warn_of_scales(ranges, scaling if near else "none", stacklevel=4)
