"""Pipelines of scalers and a learner in exports: the scalers combined into one scaling per feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane.exports._names import feature_names
from polyplane.files.estimator import SCALERS, is_plain_imputer, scaler_of

#: The operations of each scaler, in order: the function, its fitted attribute, and the parameter that disables it.
OPERATIONS: dict[str, list[tuple[Any, str, str | None]]] = {
    "StandardScaler": [(np.subtract, "mean_", "with_mean"), (np.divide, "scale_", "with_std")],
    "MinMaxScaler": [(np.multiply, "scale_", None), (np.add, "min_", None)],
    "MaxAbsScaler": [(np.divide, "scale_", None)],
    "RobustScaler": [(np.subtract, "center_", "with_centering"), (np.divide, "scale_", "with_scaling")],
}

#: The factor and the shift of each operation of a scaler.
_AFFINE: dict[Any, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    np.add: lambda values: (np.ones_like(values), values),
    np.subtract: lambda values: (np.ones_like(values), -values),
    np.multiply: lambda values: (values, np.zeros_like(values)),
    np.divide: lambda values: (1.0 / values, np.zeros_like(values)),
}


@dataclass(frozen=True, eq=False)
class Scalers:
    r"""The combined effect of the scalers of a pipeline.

    A feature of the learner is :math:`(x - centre) \cdot factor`, clipped to [`low`, `high`], or `neutral` if x is
    missing.

    Parameters
    ----------
    columns : ndarray of int of shape (n_features,)
        The columns of the rows that become features: an imputer drops those that were empty in training.
    n_columns : int
        Number of columns of the rows.
    centre, factor, low, high : ndarray of shape (n_features,)
        The scaling and the limits of each feature.
    neutral : ndarray of shape (n_features,) or None
        The features of missing values. None: values must not be missing.
    """

    columns: np.ndarray
    n_columns: int
    centre: np.ndarray
    factor: np.ndarray
    low: np.ndarray
    high: np.ndarray
    neutral: np.ndarray | None = None

    @classmethod
    def none(cls, n_columns: int) -> Scalers:
        """No scaling: the features are the columns."""
        zero, infinite = np.zeros(n_columns), np.full(n_columns, np.inf)
        return cls(np.arange(n_columns), n_columns, zero, zero + 1.0, -infinite, infinite)

    @property
    def is_clipped(self) -> bool:
        """Whether features have limits."""
        return bool(np.isfinite([self.low, self.high]).any())

    def then_affine(self, factor: np.ndarray, shift: np.ndarray) -> Scalers:
        """Append ``factor * feature + shift``."""
        moved = [factor * values + shift for values in (self.low, self.high)]
        return replace(
            self,
            centre=self.centre - shift / (factor * self.factor),
            factor=self.factor * factor,
            low=np.minimum(*moved),
            high=np.maximum(*moved),
            neutral=None if self.neutral is None else factor * self.neutral + shift,
        )

    def then_clip(self, low: float, high: float) -> Scalers:
        """Append clipping to [low, high]."""
        neutral = None if self.neutral is None else np.clip(self.neutral, low, high)
        return replace(self, low=np.clip(self.low, low, high), high=np.clip(self.high, low, high), neutral=neutral)

    def then_impute(self, statistics: np.ndarray, keep_empty: bool) -> Scalers:
        """Append an imputer; after another imputer, it only drops columns."""
        kept = np.flatnonzero(~np.isnan(statistics) | keep_empty)
        own = {name: getattr(self, name)[kept] for name in ("columns", "centre", "factor", "low", "high")}
        neutral = np.nan_to_num(statistics) if self.neutral is None else self.neutral
        return replace(self, **own, neutral=neutral[kept])


@dataclass(frozen=True, eq=False)
class ScaledLearner:
    """A learner and the scalers before it, with a name for each column of the rows."""

    learner: PlanePrediction
    scalers: Scalers
    names: list[str]

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns that become features."""
        return [self.names[j] for j in self.scalers.columns]


def unwrap_pipeline(model: Any) -> Any:
    """Return the `ScaledLearner` of a fitted pipeline, or its last step without scalers; other models unchanged."""
    if not isinstance(model, Pipeline):
        return model
    check_is_fitted(model)
    steps = [(name, step) for name, step in model.steps[:-1] if not (step is None or step == "passthrough")]
    last = model.steps[-1][1]
    if not steps:
        return last
    if not isinstance(last, PlanePrediction):
        raise TypeError(
            f"The last step of a pipeline with scalers must be a learner of Polyplane to be exported, not a "
            f"{type(last).__name__}."
        )
    scalers = Scalers.none(int(steps[0][1].n_features_in_))
    for name, step in steps:
        scalers = _append_step(scalers, name, step)
    return ScaledLearner(last.to_numpy(), scalers, feature_names(steps[0][1], scalers.n_columns))


def _append_step(scalers: Scalers, name: str, step: Any) -> Scalers:
    """Append a step of a pipeline; a step that cannot be exported is an error."""
    kind, parameters = type(step).__name__, step.get_params(deep=False) if hasattr(step, "get_params") else {}
    is_imputer = kind == "SimpleImputer" and is_plain_imputer(parameters, np.dtype(step._fit_dtype).name)
    if kind not in SCALERS or scaler_of(kind) is not type(step) or (kind == "SimpleImputer" and not is_imputer):
        *others, last = SCALERS
        raise TypeError(
            f"The step {name!r} of the pipeline, a {kind}, cannot be exported; {', '.join(others)} and {last} (of NaN, "
            "without indicators) can."
        )
    if is_imputer:
        return scalers.then_impute(step.statistics_.astype(np.float64), bool(parameters["keep_empty_features"]))
    for operate, learned, unless in OPERATIONS[kind]:
        if unless is None or parameters[unless]:
            values = np.asarray(getattr(step, learned), dtype=np.float64)
            scalers = scalers.then_affine(*_AFFINE[operate](values))
    if parameters.get("clip", False):
        scalers = scalers.then_clip(*parameters.get("feature_range", (-1, 1)))
    return scalers
