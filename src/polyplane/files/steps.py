"""The scalers of a pipeline as plain data: their fitted attributes, and their transformation of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.state import Array, Maybe
from polyplane.files.container import DamagedError
from polyplane.files.parts import part_of, unpack_names
from polyplane.files.values import FLOATS, Sizes, Unpacker, Value, unpack

_NUMBERS, _SEEN = Maybe(Array("f", "features")), Value()
#: The scalers that can be saved, and their fitted attributes.
LEARNED: dict[str, dict[str, Any]] = {
    "StandardScaler": {"mean_": _NUMBERS, "var_": _NUMBERS, "scale_": _NUMBERS, "n_samples_seen_": _SEEN},
    "MinMaxScaler": {
        **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _NUMBERS),
        "n_samples_seen_": _SEEN,
    },
    "MaxAbsScaler": {"max_abs_": _NUMBERS, "scale_": _NUMBERS, "n_samples_seen_": _SEEN},
    "RobustScaler": {"center_": _NUMBERS, "scale_": _NUMBERS},
    "SimpleImputer": {"statistics_": Array("float64", "features")},
}
#: The operations of each, in order: the function, its fitted attribute, and the parameter that disables it.
OPERATIONS: dict[str, list[tuple[Any, str, str | None]]] = {
    "StandardScaler": [(np.subtract, "mean_", "with_mean"), (np.divide, "scale_", "with_std")],
    "MinMaxScaler": [(np.multiply, "scale_", None), (np.add, "min_", None)],
    "MaxAbsScaler": [(np.divide, "scale_", None)],
    "RobustScaler": [(np.subtract, "center_", "with_centering"), (np.divide, "scale_", "with_scaling")],
}
#: Allowed values of `set_output`.
CONTAINERS = ("default", "pandas", "polars")
#: Maximum number of steps before the estimator: each is fitted once, which takes time for each feature.
MOST_STEPS = 100
#: Maximum absolute value of a limit of a scaler.
LARGEST_LIMIT = 1e15


class PipelineParts(NamedTuple):
    """The parts of the description of a pipeline."""

    names: list[str]  # of the steps, and of the last one
    nodes: list[Any]  # the steps before the last
    last: dict[str, Any]


class Step(NamedTuple):
    """A fitted scaler as plain data."""

    kind: str
    parameters: dict[str, Any]
    learned: dict[str, Any]
    dtype: str
    output: str | None  # the value of `set_output`
    feature_names: np.ndarray | None
    n_features: int  # number of input features


def pipeline_parts(description: Mapping[str, Any]) -> PipelineParts:
    """Return the parts of a pipeline; the names of its steps must be valid in scikit-learn."""
    last, nodes = part_of(description, "last"), description.get("steps")
    if not isinstance(nodes, list) or len(nodes) > MOST_STEPS or not isinstance(description.get("verbose"), bool):
        raise DamagedError("has an invalid value for steps")
    names: list[Any] = [part.get("name") if isinstance(part, dict) else None for part in (*nodes, last)]
    if not all(isinstance(name, str) and "__" not in name for name in names) or len({*names}) < len(names):
        raise DamagedError("has invalid names of steps")
    return PipelineParts(names, nodes, last)


def unpack_step(node: dict[str, Any], n_out: int, place: str, unpacker: Unpacker) -> Step | None:
    """Return a step with `n_out` output features; None for a step that does nothing."""
    if node.keys() == {"name", "step"} and node["step"] in (None, "passthrough"):
        return None
    kind, dtype, output = node.get("step"), node.get("dtype"), node.get("output")
    if not isinstance(kind, str) or kind not in LEARNED:
        raise DamagedError(f"names an unknown step, {str(kind)[:40]!r}")
    kinds, fitted = LEARNED[kind], part_of(node, "fitted")
    if fitted.keys() != kinds.keys() or dtype not in FLOATS or output not in (None, *CONTAINERS):
        raise DamagedError(f"has an invalid value for {place}")
    sizes: Sizes = {} if kind == "SimpleImputer" else {"features": n_out}
    learned = {a: unpack(kinds[a], fitted[a], f"{place}.{a}", unpacker, sizes) for a in kinds}
    nodes = part_of(node, "parameters")
    parameters = {name: unpack(Value(), each, f"{place}.{name}", unpacker, {}) for name, each in nodes.items()}
    if not all(_are_limits(value) for value in parameters.values() if isinstance(value, tuple)):
        raise DamagedError(f"has an invalid value for {place}")
    if kind == "SimpleImputer" and not (
        is_plain_imputer(parameters, str(dtype)) and len(_kept(parameters, learned)) == n_out
    ):
        raise DamagedError(f"has an invalid value for {place}")
    names = node.get("feature_names")
    names = None if names is None else unpack_names(names, sizes["features"])
    return Step(kind, parameters, learned, str(dtype), output, names, sizes["features"])


def is_plain_imputer(parameters: Mapping[str, Any], dtype: str) -> bool:
    """Whether an imputer only replaces NaN by numbers."""
    missing, fill = parameters.get("missing_values", np.nan), parameters.get("fill_value")
    is_nan = isinstance(missing, float | np.floating) and np.isnan(missing)
    is_filled = fill is None or (isinstance(fill, int | float | np.number) and not isinstance(fill, bool))
    is_named = isinstance(parameters.get("strategy", "mean"), str)
    return bool(is_nan and is_filled and not parameters.get("add_indicator", False) and dtype in FLOATS and is_named)


def transformation(step: Step, place: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the transformation of a float32 or float64 matrix by a step, as in scikit-learn."""
    if step.kind == "SimpleImputer":
        kept, statistics = _kept(step.parameters, step.learned), step.learned["statistics_"]
        return lambda X: np.where(np.isnan(X[:, kept]), statistics[kept].astype(X.dtype), X[:, kept])
    used = [(f, step.learned[name]) for f, name, unless in OPERATIONS[step.kind] if _flag(step, unless, True, place)]
    limits = step.parameters.get("feature_range", (0, 1)) if step.kind == "MinMaxScaler" else (-1, 1)
    if any(array is None for _, array in used) or not isinstance(limits, tuple):
        raise DamagedError(f"has an invalid value for {place}")
    (low, high), clip = limits, step.kind in ("MinMaxScaler", "MaxAbsScaler") and _flag(step, "clip", False, place)

    def transform(X: np.ndarray) -> np.ndarray:
        X = X.copy()
        for operate, array in used:  # scikit-learn's other scalers compute float32 rows in float64 and round the result
            operate(X, array.astype(X.dtype) if step.kind == "StandardScaler" else array, out=X, casting="same_kind")
        return np.clip(X, X.dtype.type(low), X.dtype.type(high), out=X) if clip else X

    return transform


def _kept(parameters: Mapping[str, Any], learned: Mapping[str, Any]) -> np.ndarray:
    """Return the output features of an imputer: those with a value in training, or all."""
    statistics = learned["statistics_"]
    return np.flatnonzero(~np.isnan(statistics) | bool(parameters.get("keep_empty_features", False)))


def _flag(step: Step, name: str | None, default: bool, place: str) -> bool:
    value = default if name is None else step.parameters.get(name, default)
    if not isinstance(value, bool):
        raise DamagedError(f"has an invalid value for {place}.{name}")
    return value


def _are_limits(value: tuple[Any, ...]) -> bool:
    """Whether a parameter is a lower and an upper limit."""
    return len(value) == 2 and all(type(limit) in (int, float) and abs(limit) < LARGEST_LIMIT for limit in value)
