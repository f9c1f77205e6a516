"""`DaskPlaneClassifier` and `DaskTableClassifier`: training on the partitions of a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyplane._array_api import one_blas_thread, softmax
from polyplane._sklearn import BaseEstimator, ClassifierMixin
from polyplane.base import PlaneClassifier
from polyplane.dask.methods import Relay, check_method, on_cluster, placeholder
from polyplane.dask.partitions import Cluster, connected_client, explain_lost_cluster, labelled, scatter
from polyplane.dask.tables import ClusterTable
from polyplane.engine.data import Data, FeatureRanges
from polyplane.engine.method import Method
from polyplane.engine.run import Limits, Progress, Run
from polyplane.model import best_temperature
from polyplane.tables.choice import n_passes
from polyplane.tables.classifier import TableClassifier
from polyplane.tables.members import EncodedRows, Member, class_scores, log_losses

#: Number of held-out rows, at most a tenth, if there are more rows than in the sample: they determine the softmax
#: temperature, and whether training on all partitions improved the model.
MAX_VALIDATION_ROWS = 2000
#: Number of standard errors by which a model must be worse to be rejected.
CLEARLY = 2.0


class DaskClassifier(ClassifierMixin, BaseEstimator):
    """What both classifiers share: the run, and lazy predictions."""

    estimator_: Any

    def _run(
        self, draft: Any, method: Method[Any], data: Data, n_steps: int, seed: Any, keep: Callable[[Any, Run], Self]
    ) -> Self:
        """Train on the cluster, and `keep` the model; after Ctrl-C, that of the last completed step."""
        observers = [Progress(type(draft).__name__, n_steps)] if getattr(draft, "verbose", 0) else []
        run = Run(method, seed=seed, plateau=draft._plateau(), observers=observers)
        try:
            run.go(repeat(data, n_steps))
        except KeyboardInterrupt:
            if run.n_steps or hasattr(draft, "n_iter_"):  # a table has the model of the sample
                keep(draft, run)
            raise
        return keep(draft, run)

    def _keep_estimator(self, draft: Any, **others: Any) -> Self:
        self.__dict__.update(estimator_=draft, classes_=draft.classes_, n_features_in_=draft.n_features_in_, **others)
        return self

    def to_local(self) -> Any:
        """Return the fitted estimator, to predict, explain, save or continue training without a cluster.

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
            The rows; of tables, columns that were not seen during fit are ignored.

        Returns
        -------
        y : Dask array, Dask series or list of delayed arrays, like X
            The class labels.
        """
        return lazily(X, self.to_local(), "predict", self.to_local().classes_[:1])

    @available_if(lambda self: self.estimator is None or hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities, lazily, if the estimator has them.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows; of tables, columns that were not seen during fit are ignored.

        Returns
        -------
        probabilities : Dask dataframe, Dask array or list of delayed arrays, like X
            One column per class.
        """
        return lazily(X, self.to_local(), "predict_proba", np.zeros((1, len(self.to_local().classes_))))

    def decision_function(self, X: Any) -> Any:
        """Compute class scores, lazily.

        Parameters
        ----------
        X : Dask array, Dask dataframe, or list of delayed partitions
            The rows; of tables, columns that were not seen during fit are ignored.

        Returns
        -------
        scores : Dask array, Dask series or dataframe, or list of delayed arrays, like X
            The class scores. For two classes, the score of the second class minus that of the first.
        """
        estimator = self.to_local()
        shape = (1,) if len(estimator.classes_) == 2 else (1, len(estimator.classes_))
        return lazily(X, estimator, "decision_function", np.zeros(shape, estimator.planes_.coef.dtype))


class DaskPlaneClassifier(DaskClassifier):
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
        for name in ("early_stopping", "probability"):
            if getattr(self.estimator, name, False):
                raise ValueError(f"{name} is not supported on a cluster; set it to False.")
        client, draft = connected_client(), clone(self.estimator)
        draft._validate_params()
        with explain_lost_cluster(client), one_blas_thread():
            parts, classes, weighing = labelled(client, draft, X, y, sample_weight)
            method = draft._method(classes)
            check_method(draft, method)
            cluster = scatter(parts, weighing, classes)
            draft.classes_, draft.n_features_in_ = classes, cluster.n_features
            if cluster.feature_names is not None:
                draft.feature_names_in_ = np.array(cluster.feature_names, dtype=object)
            _check_scales(draft, cluster)
            run = on_cluster(method, cluster, self.rounds, draft.max_iter, draft._declaration.choose)
            return self._run(draft, *run, draft._seed(), self._keep)

    def _keep(self, draft: PlaneClassifier, run: Run) -> Self:
        """Keep the model of a run."""
        assert run.data is not None
        epochs = getattr(run.method, "epochs", None)
        state = draft._concluded(run.method, run.state, run.data) if epochs is None else run.state.model
        draft._set_model(draft._method(draft.classes_), state.without_rows(), state, run.data)
        draft.n_iter_, draft.history_ = run.n_steps if epochs is None else sum(epochs[: run.n_steps]), run.history
        return self._keep_estimator(draft)


class DaskTableClassifier(DaskClassifier):
    """Train a `TableClassifier` on the partitions of a Dask data frame. Rows stay on the workers; models are
    transferred.

    * The **encoder** is fitted in one pass over all partitions, from the distinct values of each column and their
      counts. With up to 100,000 distinct values in a column, it is the same encoder as on a single computer; with more,
      rare strings are encoded as "other", and medians are exact to a hundred-thousandth of the rows. Columns are
      matched by name: their order can differ between partitions.
    * The **preparation**, the number of planes and the softmax temperature are selected on a sample of the rows, and a
      committee is trained on the sample, as in `TableClassifier`.
    * The **members** of the committee are then trained on all rows. They visit the partitions one after the other, each
      member at a different partition, and take as many steps as on a single computer: with bins and four planes given,
      one member on adult in 8 partitions has 13.3 to 13.5 % error (single computer: 13.4 to 13.6), and on 60,000 rows
      of covtype 21.3 % (single computer: 20.9), whereas averaging planes that are trained separately on each partition
      gives 22.4. Up to one worker per committee member is busy.

    If the sample contains all rows, the model is the same as that of `TableClassifier`: 13.3 % error on adult. The
    selection on fewer rows can differ: 13.3 and 13.7 % with two samples of 20,000 of its 32,561 rows.

    Each task depends only on its input and a seed. If a worker is lost, Dask repeats its tasks, with the same result.

    Parameters
    ----------
    estimator : TableClassifier or None, default=None
        The classifier to train. None: a `TableClassifier` with default parameters. Its `max_iter` is the number of
        passes over all partitions.
    sample_rows : int, default=50000
        Number of rows in the sample, which is transferred to the client in encoded form. A table with no more rows is
        trained on as in `TableClassifier`.

    Attributes
    ----------
    estimator_ : TableClassifier
        The fitted classifier; its ``encoder_rows_`` is the total number of rows.
    sample_rows_ : int
        Number of rows used to select the preparation, the number of planes and the softmax temperature.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of columns seen during fit.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from dask.distributed import Client
    >>> from polyplane import TableClassifier
    >>> from polyplane.dask import DaskTableClassifier
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"size": rng.normal(size=600), "colour": rng.choice(["red", "blue"], 600)})
    >>> frame["taste"] = np.where((frame["size"] > 0) == (frame["colour"] == "red"), "sweet", "sour")
    >>> table = dd.from_pandas(frame, npartitions=3)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = DaskTableClassifier(TableClassifier(random_state=0), sample_rows=300).fit(table, "taste")
    ...     labels = model.predict(table).compute()
    >>> print(f"{(labels == frame['taste']).mean():.2f}")
    1.00
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [TableClassifier, None],
        "sample_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, estimator: TableClassifier | None = None, *, sample_rows: int = 50_000) -> None:
        self.estimator = estimator
        self.sample_rows = sample_rows

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to the rows of all partitions.

        Parameters
        ----------
        X : Dask dataframe, Dask array, or list of delayed partitions
            The training table. Empty partitions are ignored.
        y : str, Dask series, Dask array, or list of delayed partitions
            The class labels: the name of a column of X, or labels with the same partitions as X.
        sample_weight : like y, default=None
            Sample weights. Rows with zero weight are ignored.

        Returns
        -------
        self : object
            The fitted classifier. If `fit` fails, the classifier does not change. Ctrl-C during training on all rows
            raises `KeyboardInterrupt`, and the classifier keeps the model of the last pass, or that of the sample if it
            is better.
        """
        self._validate_params()
        client, draft = connected_client(), TableClassifier() if self.estimator is None else clone(self.estimator)
        draft._validate_params()
        with explain_lost_cluster(client), one_blas_thread():
            seeds = draft._seed()
            table = ClusterTable(client, draft, X, y, sample_weight, seeds[0])
            n_rows = draft.encoder_rows_
            n_held_out = min(MAX_VALIDATION_ROWS, n_rows // 10) if n_rows > self.sample_rows else 0
            sample, held_out = table.draw(self.sample_rows, n_held_out)
            rows = np.arange(len(sample.y))
            data = Data(sample.Z, sample.y, sample.weight, rows, sample.n_classes, ranks=sample.ranks)
            if np.count_nonzero(data.class_counts) < 2:
                raise ValueError(
                    f"Fewer than two classes have rows of positive weight in a sample of {len(sample.y)} rows."
                )
            draft._train(data, Limits())
            if not n_held_out:
                return self._keep_estimator(draft, sample_rows_=len(sample.y))
            prepared = {member.preparation: table.prepared(member.preparation) for member in draft.members_}
            max_iter = n_passes(n_rows) if draft.max_iter is None else draft.max_iter
            parts = tuple(prepared[member.preparation] for member in draft.members_)
            relay, data = Relay(draft.members_, parts, sample, max_iter), placeholder(table.cluster)
            return self._run(draft, relay, data, max_iter, seeds, partial(self._keep_better, held_out, len(sample.y)))

    def _keep_better(self, held_out: EncodedRows, sample_rows: int, draft: TableClassifier, run: Run) -> Self:
        """Keep the model of all rows, unless that of the sample is clearly better; after Ctrl-C, the better one."""
        if not run.n_steps:
            return self._keep_estimator(draft, sample_rows_=sample_rows)
        relay: Any = run.method
        of_all = relay.members(run.state)
        interrupted = run.reason == "interrupted"
        found = [_calibrated(members, held_out) for members in (draft.members_, of_all)]
        (old_temperature, old_losses), (temperature, losses) = found
        difference = losses - old_losses
        n_errors = 0.0 if interrupted else CLEARLY
        if difference.mean() <= n_errors * difference.std() / len(difference) ** 0.5:
            draft._keep_model(of_all, temperature)
        else:
            draft._keep_model(draft.members_, old_temperature)
            if not interrupted:
                warnings.warn(
                    f"Training on all partitions was worse than on the sample (held-out log-loss {losses.mean():.4f} "
                    f"and {old_losses.mean():.4f}), so the model of the sample is kept; if the class distributions of "
                    "the partitions differ, shuffle the rows.",
                    UserWarning,
                    stacklevel=3,
                )
        draft.n_iter_ = run.n_steps
        return self._keep_estimator(draft, sample_rows_=sample_rows)


def _calibrated(members: Sequence[Member], held_out: EncodedRows) -> tuple[float, np.ndarray]:
    """Fit the temperature to held-out rows; return it, and their losses."""
    scores = class_scores(members, held_out.Z)
    temperature = best_temperature(scores, held_out.y, held_out.weight)
    losses = log_losses(softmax(scores / temperature), held_out.y)
    return temperature, losses * held_out.weight / held_out.weight.mean()


def _check_scales(draft: PlaneClassifier, cluster: Cluster) -> None:
    """Warn about feature scales as `fit` does, and about rows far from 0, which are not shifted on a cluster."""
    ranges = FeatureRanges.union([info.ranges for info in cluster.infos])
    ranges.refuse_tiny(cluster.dtype)
    near = ranges.nearer(cluster.dtype) is None
    scaling = draft._method(cluster.classes).traits.own_scaling
    if scaling != "standard" and getattr(draft, "standardize", False) is True:
        raise ValueError("standardize=True is not available on a cluster: standardise the columns before training.")
    draft._warn_of_scales(ranges, scaling if near else "none")


def lazily(X: Any, estimator: Any, method: str, example: np.ndarray) -> Any:
    """Return the lazy result of a method of a fitted estimator for X; `example` is the result for one row."""
    import dask

    empty = example[:0]
    if isinstance(X, list | tuple):
        return [dask.delayed(_apply)(block, estimator, method, empty) for block in X]
    if hasattr(X, "map_partitions"):
        # The dtype of a series of strings differs from that of an empty series of objects.
        meta = _framed(example, estimator).iloc[:0]
        return X.map_partitions(_apply_to_frame, estimator, method, meta, meta=meta)
    if not hasattr(X, "map_blocks"):
        raise TypeError(f"X is a {type(X).__name__}; for rows in memory use to_local().{method}(X).")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    shape = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], (empty.shape[1],))}
    return X.map_blocks(_apply, estimator, method, empty, dtype=empty.dtype, meta=empty, **shape)


def _apply(block: Any, estimator: Any, method: str, empty: np.ndarray) -> np.ndarray:
    result: np.ndarray = getattr(estimator, method)(block) if len(block) else empty
    return result


def _apply_to_frame(block: Any, estimator: Any, method: str, empty: Any) -> Any:
    if not len(block):
        return empty.set_axis(block.index)
    return _framed(getattr(estimator, method)(block), estimator, block.index)


def _framed(result: np.ndarray, estimator: Any, index: Any = None) -> Any:
    """Convert a result to a series, or to a data frame with one column per class."""
    import pandas as pd

    return pd.Series(result, index) if result.ndim == 1 else pd.DataFrame(result, index, estimator.classes_)
