"""`DaskPlaneClassifier`: fit where the rows are."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from polyplane._validation import all_or_nothing
from polyplane.base import PlaneClassifier
from polyplane.dask._exact import ClusterCuts, ClusterMixture, ClusterPolyceptron
from polyplane.dask._partitions import clear_losses, spread
from polyplane.dask._rounds import train_in_rounds
from polyplane.learners._polytopes import PolytopeTrainer
from polyplane.learners.cutting_plane import CuttingPlaneSVC
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier
from polyplane.learners.polyceptron import PolyceptronClassifier
from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier

EXACT: dict[type, type] = {
    CuttingPlaneSVC: ClusterCuts,
    PolyhedralMixtureClassifier: ClusterMixture,
    PolyceptronClassifier: ClusterPolyceptron,
}


class DaskPlaneClassifier(ClassifierMixin, BaseEstimator):
    """A learner of planes over the partitions of a Dask cluster. Rows stay where they are; models move.

    `CuttingPlaneSVC`, `PolyhedralMixtureClassifier` and `PolyceptronClassifier` (batch) take steps that are sums over
    rows: they find the same planes as on one machine, up to rounding. `ConvexPolytopeClassifier`, `PegasosSVC` and
    `MultiHyperplaneClassifier` (tangent start) make rounds: each partition trains the common model for some epochs,
    and the models are averaged, plane by plane, by the numbers of rows; partitions should be few, large, and alike.

    Tasks are functions of a model and a partition, with seeds of their own. When a worker is lost, Dask runs its tasks
    again, to the same result.

    Parameters
    ----------
    estimator : PlaneClassifier
        What to train, with its parameters; `n_jobs` and `verbose` are not used.
    rounds : int, default=20
        How often the models are mixed; the estimator's `max_iter` epochs are shared among the rounds.

    Attributes
    ----------
    estimator_ : PlaneClassifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.

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

    def __init__(self, estimator: PlaneClassifier, *, rounds: int = 20) -> None:
        self.estimator = estimator
        self.rounds = rounds

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn planes from the rows of all partitions.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows; the blocks of an array may be CSR matrices. The sizes of its chunks need not be known.
        y : Dask array, Dask series, or list of delayed partitions
            The labels, partition by partition.
        sample_weight : like y, default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted classifier. When `fit` fails, it is left as it was.
        """
        with all_or_nothing(self):
            self._validate_params()
            machine = self._machine()
            cluster = spread(clone(self.estimator), X, y, sample_weight)
            with clear_losses():
                if isinstance(machine, PolytopeTrainer | MultiHyperplaneClassifier):
                    train_in_rounds(machine, cluster, self.rounds)
                else:
                    machine.train_on(cluster)
            self.estimator_ = self._plain(machine)
            if cluster.names is not None:
                self.estimator_.feature_names_in_ = np.array(cluster.names, dtype=object)
            self.classes_, self.n_features_in_ = cluster.classes, cluster.n_features
        return self

    def _machine(self) -> Any:
        """The learner that trains on a cluster."""
        estimator = self.estimator
        parameters = estimator.get_params()
        name = type(estimator).__name__
        if parameters.get("mode") == "online":
            raise ValueError(f"{name}(mode='online') goes row by row; on a cluster use mode='batch', which is exact.")
        if parameters.get("init") == "zero":
            raise ValueError(f"{name}(init='zero') bears planes that differ by partition; on a cluster use 'tangent'.")
        if parameters.get("early_stopping"):
            raise ValueError("early_stopping holds rows out; on a cluster it must be False.")
        if type(estimator) in EXACT:
            return EXACT[type(estimator)](**parameters)
        if isinstance(estimator, PolytopeTrainer | MultiHyperplaneClassifier):
            return clone(estimator)
        raise ValueError(f"{name} needs all rows at once and cannot be trained on a cluster.")

    def _plain(self, machine: Any) -> PlaneClassifier:
        """The plain estimator with what was learned."""
        plain = clone(self.estimator)
        parameters = plain.get_params()
        learned = {name: value for name, value in vars(machine).items() if name not in (*parameters, "_cluster")}
        vars(plain).update(learned)
        return plain

    def to_local(self) -> PlaneClassifier:
        """The fitted estimator, as a plain one: it predicts, is saved and goes on training without a cluster.

        Returns
        -------
        estimator : PlaneClassifier
            The estimator.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def predict(self, X: Any) -> Any:
        """Labels of the rows, lazily.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows.

        Returns
        -------
        y : Dask array, Dask series or list of delayed arrays, as X is
            The labels.
        """
        return self._lazily(X, "predict", self.to_local().classes_[:0], 1)

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes, lazily.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows.

        Returns
        -------
        scores : Dask array, Dask series or dataframe, or list of delayed arrays, as X is
            For two classes, the score of the second less that of the first.
        """
        machine = self.to_local()
        shape = (0,) if len(machine.classes_) == 2 else (0, len(machine.classes_))
        return self._lazily(X, "decision_function", np.empty(shape, machine.coef_.dtype), len(shape))

    def _lazily(self, X: Any, method: str, meta: np.ndarray, n_dimensions: int) -> Any:
        import dask

        machine = self.to_local()
        if isinstance(X, list | tuple):
            return [dask.delayed(_apply)(part, machine, method) for part in X]
        if hasattr(X, "map_partitions"):
            import pandas as pd

            like = pd.Series(meta) if n_dimensions == 1 else pd.DataFrame(meta, columns=self.classes_)
            return X.map_partitions(_apply_to_frame, machine, method, meta=like)
        if not hasattr(X, "map_blocks"):
            raise TypeError(f"X is a {type(X).__name__}; for rows in memory use to_local().{method}(X).")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        where = {"drop_axis": 1} if n_dimensions == 1 else {"chunks": (X.chunks[0], (meta.shape[1],))}
        return X.map_blocks(_apply, machine, method, dtype=meta.dtype, meta=meta, **where)


def _apply(part: Any, machine: PlaneClassifier, method: str) -> np.ndarray:
    result: np.ndarray = getattr(machine, method)(part)
    return result


def _apply_to_frame(part: Any, machine: PlaneClassifier, method: str) -> Any:
    import pandas as pd

    result = _apply(part, machine, method)
    if result.ndim == 1:
        return pd.Series(result, index=part.index)
    return pd.DataFrame(result, index=part.index, columns=machine.classes_)
