"""`Model`: a fitted model, from the columns of the rows to labels. What is fitted, whoever fitted it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from polyplane._array_api import blocks_of, in_threads, is_sparse, softmax
from polyplane.features import Features, Projection, SparseFeatures, columns_of
from polyplane.inputs.encoding import Column, MatrixInputs, NumberColumn, Range, TableInputs
from polyplane.planes import LEAST_ROWS, PlaneSet

#: Number of values of a block of rows, which bounds the memory and keeps the features of a block in the cache.
BLOCK_VALUES = 1 << 17
#: Number of multiplications for which a kernel is worth its compilation; the largest part of the features that are not
#: 0, and the smallest number of planes per class and member, for which it is faster than a matrix product; numbers of
#: rows and of planes of its blocks.
WORTH_KERNEL, MOST_USED, LEAST_POOLED, KERNEL_ROWS, KERNEL_PLANES = 1 << 33, 0.5, 2, 2048, 128
#: Number of points on the path from a reference to a row: increased until the sum of the contributions is accurate.
MIN_PATH_POINTS, MAX_PATH_POINTS, PATH_TOLERANCE = 16, 1024, 1e-7


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    r"""A fitted model: inputs, features, planes and classes.

    The columns of a row are encoded as numbers (`inputs`), features are functions of these (`features`), planes are
    linear in the features, and the score of a class is the weighted mean over the members of the maximum, or of the
    log-sum-exp, of the scores of its planes (`planes`). The class with the largest score is predicted, the first one if
    tied. Probabilities are the softmax of the class scores divided by the temperature.

    Parameters
    ----------
    inputs : TableInputs or MatrixInputs
        The columns.
    features : Features
        The features, as functions of the encoded columns.
    planes : PlaneSet
        The planes over the features, or over the projected features.
    classes : ndarray of shape (n_classes,)
        The labels.
    temperature : float or None, default=None
        The temperature of the probabilities. None: the model has no probabilities.
    projection : Projection or None, default=None
        A linear map that the features end with.
    learner : str, default="Model"
        Class name of the estimator, for messages and descriptions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import Model, MultiHyperplaneClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), MultiHyperplaneClassifier(2, random_state=0)).fit(X, y)
    >>> model = Model.of(pipeline)
    >>> model
    Model('MultiHyperplaneClassifier', n_columns=4, n_features=4, n_planes=6, n_classes=3)
    >>> bool((model.predict(X) == pipeline.predict(X)).all())
    True
    """

    inputs: TableInputs | MatrixInputs
    features: Features
    planes: PlaneSet
    classes: np.ndarray
    temperature: float | None = None
    projection: Projection | None = None
    learner: str = "Model"

    def __post_init__(self) -> None:
        n_projected = self.features.n_features if self.projection is None else len(self.projection.scale)
        if self.features.n_inputs != self.inputs.n_encoded or self.planes.n_features != n_projected:
            raise ValueError(
                f"The inputs have {self.inputs.n_encoded} encoded numbers and the features take "
                f"{self.features.n_inputs}; the planes take {self.planes.n_features} of {n_projected} features."
            )
        if len(self.classes) != self.planes.n_classes:
            raise ValueError(f"There are {len(self.classes)} labels, but {self.planes.n_classes} classes of planes.")

    @classmethod
    def of(cls, estimator: Any) -> Model:
        """Return the model of a fitted estimator.

        Parameters
        ----------
        estimator : estimator, Pipeline, search or Model
            A fitted estimator of Polyplane, a pipeline of StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or
            SimpleImputer steps that ends in one, or a fitted search over these, of which the best is used.

        Returns
        -------
        model : Model
            The model. It takes rows as the pipeline does, before its scalers.
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        steps = getattr(estimator, "steps", None)
        last = estimator if steps is None else steps[-1][1]
        if not hasattr(type(last), "model_"):
            raise TypeError(_refusal(last))
        model: Model = last.model_
        before = [] if steps is None else [pair for pair in steps[:-1] if pair[1] not in (None, "passthrough")]
        return model if not before else model.after(before)

    def after(self, steps: Sequence[tuple[str, Any]]) -> Model:
        """Return the model with the scalers of a pipeline before it."""
        scalers = Scalers.of_steps(steps)
        names = _names(getattr(steps[0][1], "feature_names_in_", None))
        inputs: TableInputs | MatrixInputs
        if isinstance(self.inputs, TableInputs):
            inputs, scaled = scalers.before_table(self.inputs, names)
        else:
            inputs, scaled = MatrixInputs(scalers.n_columns, names, scalers.neutral_columns()), scalers.features
        features = scaled if self.features.is_identity else self.features.after(scaled)
        return replace(self, inputs=inputs, features=features)

    @classmethod
    def of_members(
        cls,
        inputs: TableInputs | MatrixInputs,
        members: Sequence[tuple[Features, np.ndarray, np.ndarray, np.ndarray]],
        classes: np.ndarray,
        *,
        weight: Any = None,
        temperature: float | None = None,
        learner: str = "Model",
        dtype: Any = np.float64,
    ) -> Model:
        """Return the model of a committee whose members have their own features; equal features are shared.

        Parameters
        ----------
        inputs : TableInputs or MatrixInputs
            The columns.
        members : sequence of (features, coef, intercept, indptr)
            The features and the planes of each member; the score of a class in a member is the log-sum-exp.
        classes : ndarray of shape (n_classes,)
            The labels.
        weight : array-like of shape (n_members,), default=None
            Weights of the members; None: all are equal.
        temperature, learner
            As in `Model`.
        dtype : dtype, default=numpy.float64
            Data type of the planes.
        """
        features, indices = Features.merged([member[0] for member in members])
        planes = []
        for (_, coef, intercept, indptr), index in zip(members, indices, strict=True):
            wide = np.zeros((features.n_features, len(coef)))
            np.add.at(wide, index, coef.T)
            planes.append(
                PlaneSet(wide.T.astype(dtype), np.asarray(intercept, dtype=dtype), indptr, pooling="logsumexp")
            )
        together = PlaneSet.of_members(planes, weight)
        return cls(inputs, features, together, classes, temperature=temperature, learner=learner)

    # Questions that other packages ask.

    @property
    def model_(self) -> Model:
        """The model itself, as of an estimator."""
        return self

    @property
    def n_columns(self) -> int:
        """Number of columns of a row."""
        return self.inputs.n_columns

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def has_probabilities(self) -> bool:
        """Whether the model has probabilities."""
        return self.temperature is not None

    @property
    def has_winners(self) -> bool:
        """Whether the class of each row is decided by one plane, the one with the largest score."""
        return self.planes.has_winners

    @property
    def how_to_get_winners(self) -> str:
        """What else to do where `has_winners` is required, as the end of a sentence."""
        if self.planes.n_members > 1 or self.inputs.is_table or self.has_winners:
            return ""
        return ", or train with loss='hinge', or set planes_ = planes_.replace(pooling='max') first"

    @property
    def is_piecewise_linear(self) -> bool:
        """Whether the class scores are maxima of planes over the columns: exact geometry holds for such models."""
        return self.has_winners and self.features.is_affine and not self.inputs.is_table

    @property
    def is_additive(self) -> bool:
        """Whether each class has one plane in each member, so that class scores are sums over columns."""
        return self.planes.n_planes == len(self.planes.indptr) - 1

    # Evaluation, step by step.

    def encode(self, X: Any) -> Any:
        """Encode rows as numbers, shape (n_rows, n_encoded); sparse rows of a matrix stay sparse."""
        return self.inputs.read(X, self.learner)

    def transform(self, Z: Any) -> Any:
        """Compute what the planes are linear in, for encoded rows."""
        features = self.features
        if is_sparse(Z) and not features.is_identity:  # they may use few of millions of columns
            used, source = np.unique(features.source, return_inverse=True)
            Z, features = columns_of(Z, used), features.replace(source=source, n_inputs=len(used))
        values = features.transform(Z)
        return values if self.projection is None else self.projection.transform(values)

    def plane_scores(self, Z: Any) -> np.ndarray:
        """Compute the scores of the planes for encoded rows, shape (n_rows, n_planes)."""
        return self.planes.scores(self.transform(Z))

    def class_scores(self, Z: Any, n_jobs: int | None = None) -> np.ndarray:
        """Compute the scores of the classes for encoded rows, shape (n_rows, n_classes)."""
        if self.features.is_identity and self.projection is None:
            scores: np.ndarray = self.planes.class_scores(Z, n_jobs)
            return scores

        n_rows, n_features, n_planes = Z.shape[0], self.features.n_features, self.planes.n_planes
        is_smooth = self.planes.pooling == "logsumexp" and self.projection is None and isinstance(Z, np.ndarray)
        is_smooth = is_smooth and n_planes >= LEAST_POOLED * (len(self.planes.indptr) - 1)
        if is_smooth and n_rows * n_features * n_planes >= WORTH_KERNEL and find_spec("numba") is not None:
            sparse_features = SparseFeatures(self.features)
            first = slice(0, min(n_rows, KERNEL_ROWS))
            if len(sparse_features.rows(Z[first])[0]) <= MOST_USED * n_features * first.stop:
                return self._smooth_scores(sparse_features, Z, n_jobs)

        def score(block: slice) -> np.ndarray:
            return self.planes.class_scores(self.transform(Z[block]))

        blocks = blocks_of(n_rows, max(LEAST_ROWS, BLOCK_VALUES // (n_features + n_planes)))
        return score(blocks[0]) if len(blocks) == 1 else np.concatenate(in_threads(score, blocks, n_jobs))

    def _smooth_scores(self, sparse_features: SparseFeatures, Z: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """The scores of the classes, by a kernel that uses that few functions are not 0 for a row."""
        from polyplane.kernels.pooling import PlaneBlocks, log_sum_exp
        from polyplane.kernels.rows import SparseRows

        planes = self.planes
        weights, intercept = sparse_features.weights(planes.coef, planes.intercept)
        padding = -planes.n_planes % KERNEL_PLANES
        weights, intercept = np.pad(weights, ((0, 0), (0, padding))), np.pad(intercept, (0, padding))
        coef = np.ascontiguousarray(weights.reshape(len(weights), -1, KERNEL_PLANES).transpose(1, 0, 2))
        blocks = PlaneBlocks(coef, intercept.reshape(-1, KERNEL_PLANES), planes.indptr)

        def score(block: slice) -> np.ndarray:
            pooled = np.empty((block.stop - block.start, len(planes.indptr) - 1))
            log_sum_exp(SparseRows(*sparse_features.rows(Z[block])), blocks, pooled, np.empty_like(pooled))
            return np.asarray(planes.mean_of_members(pooled))

        return np.concatenate(in_threads(score, blocks_of(len(Z), KERNEL_ROWS), n_jobs))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Convert class scores to probabilities."""
        if self.temperature is None:
            raise AttributeError(f"predict_proba is not available for this {self.learner}: use decision_function.")
        return np.asarray(softmax(scores.astype(np.float64) / self.temperature))

    # Evaluation of rows as they are.

    def predict(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : data frame, matrix, sparse matrix, dict of columns or list of dicts
            The rows.
        n_jobs : int or None, default=None
            Number of threads, over blocks of rows; results do not depend on it.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The labels of the classes with the largest scores.
        """
        return np.asarray(self.classes[self.class_scores(self.encode(X), n_jobs).argmax(axis=1)])

    def predict_proba(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Predict class probabilities, shape (n_rows, n_classes), if the model has them."""
        return self.probabilities(self.class_scores(self.encode(X), n_jobs))

    def decision_function(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Compute class scores; for two classes, the score of the second class minus that of the first."""
        return decision(self.class_scores(self.encode(X), n_jobs))

    # What the class scores are made of.

    @property
    def unit(self) -> float:
        """Class scores divided by this are log-odds, if the model has probabilities; otherwise 1."""
        return 1.0 if self.temperature is None else self.temperature

    @cached_property
    def column_of_feature(self) -> np.ndarray:
        """Index of the column in use that each feature is a function of, shape (n_features,)."""
        return self.inputs.column_of_encoded[self.features.source]

    def contributions(self, Z: Any, reference: np.ndarray, *, of_encoded: bool = False) -> np.ndarray:
        r"""Compute the contribution of each column to the class scores, relative to a reference row.

        The score of a plane changes from the reference :math:`r` to the row :math:`x` by a sum over the columns,
        :math:`\sum_j \Delta_{kj}`. The contribution of column :math:`j` to the score of a class is the mean over the
        members of :math:`\sum_k p_k \Delta_{kj}` over the planes of the class. With ``pooling="max"``, :math:`p_k` is 1
        for the plane with the largest score at the row, and the contributions sum to the difference of the scores of
        this plane. With ``pooling="logsumexp"``, :math:`p_k` is the mean weight of the plane on the straight line from
        the reference to the row: contributions are Aumann-Shapley values, whose sum is the difference of the class
        scores.

        Parameters
        ----------
        Z : ndarray or sparse matrix of shape (n_rows, n_encoded)
            Encoded rows.
        reference : ndarray of shape (n_encoded,)
            The encoded reference row.
        of_encoded : bool, default=False
            Return the contributions of the encoded numbers, of which those of a column are the sums.

        Returns
        -------
        contributions : ndarray of shape (n_rows, n_columns, n_classes)
            For the columns in use (or the encoded numbers), exactly 0 where a column has its reference value.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polyplane import PegasosSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> model = PegasosSVC(random_state=0).fit(X, y).model_
        >>> parts, scores = model.contributions(X[:1], X.mean(axis=0)), model.class_scores(X[[0]])
        >>> bool(abs(scores - model.class_scores(X.mean(axis=0)[None]) - parts.sum(axis=1)).max() < 1e-9)
        True
        """
        model = self if self.projection is None else self.flat()
        Z = (Z.toarray() if is_sparse(Z) else np.asarray(Z)).astype(np.float64)
        reference = np.asarray(reference, dtype=np.float64)[None]
        planes, at_reference = model.planes, model.transform(reference)
        change = model.transform(Z) - at_reference
        coef = planes.coef.astype(np.float64)
        start = (at_reference @ coef.T + planes.intercept)[0]
        weight = _mean_shares(planes, start, change @ coef.T) * planes.weights
        column, n_columns = model.column_of_feature, int(model.inputs.column_of_encoded[-1]) + 1
        if of_encoded:
            column, n_columns = model.features.source, model.inputs.n_encoded
        order = np.argsort(column, kind="stable")
        present, starts = np.unique(column[order], return_index=True)
        contributions = np.zeros((len(Z), n_columns, planes.n_classes))
        for c in range(planes.n_classes):
            own = planes.owners == c
            parts = (weight[:, own] @ coef[own]) * change
            contributions[:, present, c] = np.add.reduceat(parts[:, order], starts, axis=1)
        return contributions

    @cached_property
    def directions(self) -> np.ndarray:
        """The proven directions of the probabilities, shape (n_columns, n_classes): 1, -1, or 0 if there is none.

        1 means that the probability of the class never falls as the column grows, missing values aside: in each member,
        no plane of the class has a smaller weight for a feature of the column than a plane of another class, as with
        `monotonic_cst`. For ordered categories, these are the differences of the weights of successive levels.
        """
        model, inputs = self.unprojected(), self.inputs
        planes, features = model.planes, model.features
        is_value, coef, rounding = np.ones(inputs.n_encoded, dtype=bool), planes.coef, np.zeros(features.n_features)
        if isinstance(inputs, TableInputs):
            is_value[:] = False
            coef = coef.astype(np.float64)
            for column, own in zip(inputs.columns, inputs.places, strict=True):
                growing = column.growing or slice(0, 0)
                is_value[own][growing] = True
                levels = range(own.start, own.start + growing.stop)
                if column.kind == "category" and levels:
                    at = np.concatenate([np.flatnonzero(features.source == j) for j in levels])
                    is_value[own] &= len(at) == len(levels)  # each level is one feature
                    coef[:, at[1:]] = np.diff(coef[:, at], axis=1)
                    rounding[at[1:]] = 1e-12 * np.abs(planes.coef).max()
        edges = [pool.reduceat(coef, planes.indptr[:-1], axis=0) for pool in (np.minimum, np.maximum)]
        least, most = (edge.reshape(planes.n_members, planes.n_classes, -1) for edge in edges)
        found = np.zeros((int(inputs.column_of_encoded[-1]) + 1, planes.n_classes), dtype=np.int8)
        for c in range(planes.n_classes):
            others = np.arange(planes.n_classes) != c
            is_up = (least[:, c] >= most[:, others].max(axis=1) - rounding).all(axis=0)
            is_down = (most[:, c] <= least[:, others].min(axis=1) + rounding).all(axis=0)
            for sign, ways in ((1, (is_up, is_down)), (-1, (is_down, is_up))):
                holds = np.zeros(len(found), dtype=bool)
                holds[inputs.column_of_encoded[is_value]] = True
                is_so = np.where(features.factor > 0, *ways) & (features.op % 2 == 0) | ~is_value[features.source]
                np.logical_and.at(holds, model.column_of_feature, is_so)
                found[holds, c] += sign
        return found

    def bounds(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute bounds of the class scores over all rows whose encoded numbers are within a range.

        Parameters
        ----------
        low, high : ndarray of shape (n_encoded,)
            The smallest and the largest value of each encoded number.

        Returns
        -------
        low, high : ndarray of shape (n_classes,)
            No row in the range has a class score outside of these bounds; for a single plane they are attained.
        """
        model = self if self.projection is None else self.flat()
        least, most = (edge[0] for edge in model.features.bounds(np.asarray(low)[None], np.asarray(high)[None]))
        coef = model.planes.coef.astype(np.float64)
        up, down = np.maximum(coef, 0.0), np.minimum(coef, 0.0)
        scores = np.stack([up @ least + down @ most, up @ most + down @ least]) + model.planes.intercept
        lowest, highest = model.planes.pooled(scores)
        return lowest, highest

    # The same model, simpler.

    def unprojected(self) -> Model:
        """Return the same model with its projection, if any, included in the planes."""
        if self.projection is None:
            return self
        planes = self.planes.replace(coef=self.projection.fold(self.planes.coef))
        return replace(self, projection=None, planes=planes)

    def flat(self) -> Model:
        """Return the same model with planes over the encoded columns themselves where features are affine.

        A projection is multiplied out, and scalers are included in the planes. Other features stay as they are.
        """
        model, features = self.unprojected(), self.features
        if not features.is_affine or features.is_identity:
            return model
        coef = model.planes.coef * features.factor
        intercept = model.planes.intercept - coef @ features.centre
        wide = np.zeros((features.n_inputs, len(coef)))
        np.add.at(wide, features.source, coef.T)
        planes = model.planes.replace(coef=wide.T, intercept=intercept)
        return replace(model, features=Features.identity(features.n_inputs), planes=planes)

    def __repr__(self) -> str:
        members = f"n_members={self.planes.n_members}, " if self.planes.n_members > 1 else ""
        return (
            f"Model({self.learner!r}, n_columns={self.n_columns}, {members}n_features={self.features.n_features}, "
            f"n_planes={self.planes.n_planes}, n_classes={self.n_classes})"
        )


def _mean_shares(planes: PlaneSet, start: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Compute the weights of the planes in the scores of their classes, shape (n_rows, n_planes).

    For "max" they are those at the rows, for "logsumexp" their means on the lines from the reference to the rows.
    """
    if planes.pooling == "max" or planes.n_planes == len(planes.indptr) - 1:
        return planes.shares(start + change)
    rise = planes.pooled_in_members(start + change) - planes.pooled_in_members(start[None])
    n_points = MIN_PATH_POINTS
    while True:
        shares = np.zeros_like(change)
        for node, size in zip(*np.polynomial.legendre.leggauss(n_points), strict=True):
            shares += 0.5 * size * planes.shares(start + 0.5 * (1.0 + node) * change)
        error = np.abs(np.add.reduceat(shares * change, planes.indptr[:-1], axis=1) - rise).max(initial=0.0)
        if error <= PATH_TOLERANCE * (1.0 + np.abs(rise).max(initial=0.0)) or n_points >= MAX_PATH_POINTS:
            return shares
        n_points *= 2


def decision(scores: np.ndarray) -> np.ndarray:
    """Return class scores; for two classes, the score of the second class minus that of the first."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def best_temperature(
    scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, *, octaves: float = 3.0
) -> float:
    """Find the temperature between 2**-octaves and 2**octaves that minimises the log-loss, convex in its inverse.

    A prior equivalent to one row per class, with uniform class probabilities, prevents extreme temperatures if there
    are few rows and all are classified correctly.
    """
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    own, n_classes = scores[np.arange(len(y)), y], scores.shape[1]
    prior = n_classes / len(y)
    constant = weight @ own + prior * scores.mean(axis=1).sum()
    low, high, power = -octaves, octaves, 0.0
    for _ in range(50):  # Newton's method on the logarithm, between bounds that close in
        probability = softmax(scores * 2.0**power)
        expected = (probability * scores).sum(axis=1)
        spread = (probability * scores * scores).sum(axis=1) - expected * expected
        slope = (weight + prior) @ expected - constant
        low, high = (low, power) if slope > 0 else (power, high)
        change = slope / max(float((weight + prior) @ spread) * 2.0**power * np.log(2.0), 1e-300)
        last, power = power, float(np.clip(power - change, -octaves, octaves))
        if not low <= power <= high:
            power = 0.5 * (low + high)
        if abs(power - last) < 1e-9:
            break
    return float(2.0**-power)


def _names(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(str(name) for name in names)


def _refusal(estimator: Any) -> str:
    name = type(estimator).__name__
    if hasattr(estimator, "estimators_") or name.startswith("OneVs"):
        return (
            f"{name} combines several models and has no single set of planes: use one of its estimators_, or a "
            "multi-class learner such as MultiHyperplaneClassifier."
        )
    return (
        f"A {name} is not a classifier of Polyplane: pass a fitted one, a pipeline of scalers that ends in one, or a "
        "search over these."
    )


class Scalers(NamedTuple):
    """The combined effect of the scalers and imputers of a pipeline."""

    features: Features  # the scaled columns; an imputer drops those that were empty in training
    neutral: np.ndarray | None = None  # the value of each feature where its column is missing; None: it must not be

    @property
    def n_columns(self) -> int:
        """Number of columns before the scalers."""
        return self.features.n_inputs

    @classmethod
    def of_steps(cls, steps: Sequence[tuple[str, Any]]) -> Scalers:
        """Combine the fitted steps of a pipeline, given with their names."""
        n_columns = getattr(steps[0][1], "n_features_in_", None)
        if n_columns is None:
            raise TypeError(f"The step {steps[0][0]!r} of the pipeline, a {type(steps[0][1]).__name__}, is not fitted.")
        scalers = cls(Features.identity(n_columns))
        for name, step in steps:
            scalers = scalers._then_step(name, step)
        return scalers

    def _then_step(self, name: str, step: Any) -> Scalers:
        kind = type(step).__name__ if type(step).__module__.startswith("sklearn.") else ""
        match kind:
            case "SimpleImputer" if not step.add_indicator and _is_nan(step.missing_values):
                with suppress(TypeError, ValueError):  # of texts
                    statistics = np.asarray(step.statistics_).astype(np.float64)
                    return self._then_impute(statistics, bool(step.keep_empty_features))
            case "StandardScaler" | "RobustScaler" | "MaxAbsScaler":
                centre = getattr(step, "mean_" if kind == "StandardScaler" else "center_", None)
                centred = getattr(step, "with_mean", getattr(step, "with_centering", False))
                scale = 1.0 if step.scale_ is None else np.asarray(step.scale_, dtype=np.float64)
                scalers = self._then(centre=centre if centred and centre is not None else 0.0, factor=1.0 / scale)
                return scalers._then(low=-1.0, high=1.0) if getattr(step, "clip", False) else scalers
            case "MinMaxScaler":
                scale = step.scale_.astype(np.float64)
                scalers, (low, high) = self._then(centre=-step.min_ / scale, factor=scale), step.feature_range
                return scalers._then(low=low, high=high) if step.clip else scalers
        raise TypeError(
            f"The step {name!r} of the pipeline, a {type(step).__name__}, is not supported; StandardScaler, "
            "MinMaxScaler, MaxAbsScaler, RobustScaler and SimpleImputer (of NaN, without indicators) are."
        )

    def _then(self, **scaling: Any) -> Scalers:
        """Append a scaler, given by its centre and factor, or its limits."""
        n_features = self.features.n_features
        own = Features.of(np.arange(n_features), n_inputs=n_features, **scaling)
        neutral = None if self.neutral is None else own.transform(self.neutral[None])[0]
        return Scalers(own.after(self.features), neutral)

    def _then_impute(self, statistics: np.ndarray, keep_empty: bool) -> Scalers:
        """Append an imputer; after another imputer, it only drops columns."""
        kept = np.flatnonzero(~np.isnan(statistics) | keep_empty)
        neutral = np.nan_to_num(statistics) if self.neutral is None else self.neutral
        return Scalers(self.features.take(kept), neutral[kept])

    def neutral_columns(self) -> np.ndarray | None:
        """Return the replacements of missing values, in the units of the columns; 0 for dropped columns."""
        if self.neutral is None:
            return None
        columns = np.zeros(self.n_columns)
        columns[self.features.source] = self.neutral / self.features.factor + self.features.centre
        return columns

    def before_table(self, inputs: TableInputs, names: tuple[str, ...] | None) -> tuple[TableInputs, Features]:
        """Return the columns of a table of numbers before the scalers, with these names, and the scaled numbers."""
        given = names or tuple(f"x{j}" for j in range(self.n_columns))
        before, neutral = self.features, self.neutral_columns()
        scaled = Features.identity(inputs.n_encoded)
        numbers: dict[str, Any] = {
            name: np.array(getattr(scaled, name)) for name in ("centre", "factor", "low", "high")
        }
        columns: list[Column] = []
        place = {name: j for j, name in enumerate(inputs.names)}
        for column, own in zip(inputs.columns, inputs.places, strict=True):
            if not isinstance(column, NumberColumn):
                raise TypeError(f"Column {column.name!r} is not a number, which scalers cannot precede.")
            if column.special:
                raise TypeError(f"Column {column.name!r} has special codes, which scalers cannot precede.")
            j = place[column.name]
            for name, values in numbers.items():
                values[own.start] = getattr(before, name)[j]

            def unscaled(value: float, j: int = j) -> float:
                return float(value / before.factor[j] + before.centre[j])

            low, high, spread = column.range
            own_range = Range(unscaled(low), unscaled(high), float(spread / before.factor[j]))
            usual = unscaled(column.neutral) if neutral is None else float(neutral[before.source[j]])
            name = given[before.source[j]]
            columns.append(replace(column, name=name, neutral=usual, range=own_range, is_whole=False))
        encoded = {column.name for column in columns}
        dropped = {name: "it is not used after the scalers" for name in given if name not in encoded}
        table = TableInputs(given, names is not None, inputs.gaps, tuple(columns), dropped)
        return table, replace(scaled, **numbers)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)
