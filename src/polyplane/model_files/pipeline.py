"""A pipeline of scikit-learn's scalers before an estimator, as JSON and arrays, and a pipeline from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from polyplane.engine.kinds import Array, Maybe
from polyplane.model_files.container import DamagedError
from polyplane.model_files.parts import Form, pack_parameters, part_of, possible, unpack_names, unpack_parameters
from polyplane.model_files.values import FLOATS, Packer, Unpacker, Value, pack, unpack

_NUMBERS, _SEEN = Maybe(Array("f", "features")), Value()
#: The scalers that a file may hold, and what each has learned.
SCALERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "StandardScaler": (
        StandardScaler,
        {"mean_": _NUMBERS, "var_": _NUMBERS, "scale_": _NUMBERS, "n_samples_seen_": _SEEN},
    ),
    "MinMaxScaler": (
        MinMaxScaler,
        dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _NUMBERS)
        | {"n_samples_seen_": _SEEN},
    ),
    "MaxAbsScaler": (MaxAbsScaler, {"max_abs_": _NUMBERS, "scale_": _NUMBERS, "n_samples_seen_": _SEEN}),
    "RobustScaler": (RobustScaler, {"center_": _NUMBERS, "scale_": _NUMBERS}),
    "SimpleImputer": (SimpleImputer, {"statistics_": Array("float64", "features")}),
}
#: What `set_output` may have asked of a scaler.
CONTAINERS = ("default", "pandas", "polars")
#: Steps before the estimator, at most: each is fitted once, and takes the time of its features.
MOST_STEPS = 100
#: No limit that is asked of a scaler is larger.
LARGEST_LIMIT = 1e15


@dataclass(frozen=True)
class PipelineForm:
    """How a pipeline stands in a file; `find` knows the forms of what may be its last step by their names."""

    find: Callable[[str], Form | None]
    learner: Any = Pipeline

    def describe(self, model: Pipeline, packer: Packer) -> dict[str, Any]:
        """What is to be JSON; the arrays are left with the packer."""
        (*steps, (last_name, last)) = model.steps
        form = self.find(type(last).__name__)
        if form is None or form.learner is not type(last):
            raise TypeError(
                f"The last step of the pipeline, {last_name!r}, must be an estimator of Polyplane, not a "
                f"{type(last).__name__}."
            )
        last._validate_params()
        return {
            "learner": "Pipeline",
            "steps": [_describe_step(name, step, f"steps.{i}", packer) for i, (name, step) in enumerate(steps)],
            "last": {"name": last_name, **form.describe(last, packer)},
            "verbose": bool(model.verbose),
        }

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Pipeline:
        """The pipeline that was described, once all of it is known to be sound."""
        last, nodes, verbose = part_of(description, "last"), description.get("steps"), description.get("verbose")
        form = self.find(str(last.get("learner")))
        if form is None:
            raise DamagedError(f"names an unknown learner, {str(last.get('learner'))[:40]!r}")
        if not isinstance(nodes, list) or len(nodes) > MOST_STEPS or not isinstance(verbose, bool):
            raise DamagedError("has an invalid value for steps")
        names = [part.get("name") if isinstance(part, dict) else None for part in (*nodes, last)]
        if not all(isinstance(name, str) and "__" not in name for name in names) or len({*names}) < len(names):
            raise DamagedError("has invalid names of steps")
        estimator = form.rebuild(last, unpacker)
        steps, n_features = [estimator], int(estimator.n_features_in_)
        for i, node in reversed([*enumerate(nodes)]):  # from the last, whose number of features its planes prove
            step, n_features = _rebuild_step(node, n_features, f"steps.{i}", unpacker)
            steps.insert(0, step)
        return Pipeline(list(zip(names, steps, strict=True)), verbose=verbose)


def _describe_step(name: str, step: Any, place: str, packer: Packer) -> dict[str, Any]:
    if step is None or step == "passthrough":
        return {"name": name, "step": step}
    kind = type(step).__name__
    if kind not in SCALERS or SCALERS[kind][0] is not type(step):
        *others, last = SCALERS
        raise TypeError(
            f"The step {name!r} of the pipeline, a {kind}, cannot be saved; {', '.join(others)} and {last} can."
        )
    check_is_fitted(step)
    own = vars(step)
    dtype = np.dtype(own.get("_fit_dtype", np.float64)).name
    if kind == "SimpleImputer" and not _is_plain(step, dtype):
        raise TypeError(
            f"The step {name!r} of the pipeline cannot be saved: only a SimpleImputer that puts numbers in the place "
            "of NaN, without indicators, can."
        )
    learned = {attribute: _learned(step, attribute) for attribute in SCALERS[kind][1]}
    names = own.get("feature_names_in_")
    return {
        "name": name,
        "step": kind,
        "parameters": pack_parameters(step.get_params(deep=False), packer, place),
        "dtype": dtype,
        "feature_names": None if names is None else [str(each) for each in names],
        "output": own.get("_sklearn_output_config", {}).get("transform"),
        "fitted": {a: pack(SCALERS[kind][1][a], value, f"{place}.{a}", packer) for a, value in learned.items()},
    }


def _learned(step: Any, attribute: str) -> Any:
    value = getattr(step, attribute)
    return value.astype(np.float64) if attribute == "statistics_" else value


def _is_plain(step: Any, dtype: str) -> bool:
    """Whether an imputer puts numbers in the place of NaN, and does no more."""
    missing, fill = step.missing_values, step.fill_value
    is_nan = isinstance(missing, float | np.floating) and np.isnan(missing)
    is_filled = fill is None or (isinstance(fill, int | float | np.number) and not isinstance(fill, bool))
    return bool(is_nan and is_filled and not step.add_indicator and dtype in FLOATS and isinstance(step.strategy, str))


def _are_limits(value: tuple[Any, ...]) -> bool:
    """Whether a parameter is a lower and an upper limit."""
    return len(value) == 2 and all(type(limit) in (int, float) and abs(limit) < LARGEST_LIMIT for limit in value)


def _rebuild_step(node: dict[str, Any], n_out: int, place: str, unpacker: Unpacker) -> tuple[Any, int]:
    """A step that gives so many features, and the number that it takes."""
    if node.keys() == {"name", "step"} and node["step"] in (None, "passthrough"):
        return node["step"], n_out
    kind, dtype, output = node.get("step"), node.get("dtype"), node.get("output")
    if not isinstance(kind, str) or kind not in SCALERS:
        raise DamagedError(f"names an unknown step, {str(kind)[:40]!r}")
    scaler, kinds = SCALERS[kind]
    fitted = part_of(node, "fitted")
    if fitted.keys() != kinds.keys() or dtype not in FLOATS or output not in (None, *CONTAINERS):
        raise DamagedError(f"has an invalid value for {place}")
    sizes = {} if kind == "SimpleImputer" else {"features": n_out}
    learned = {a: unpack(kinds[a], fitted[a], f"{place}.{a}", unpacker, sizes) for a in kinds}
    step, n_features = _unfitted(scaler, part_of(node, "parameters"), place, unpacker), sizes["features"]
    if kind == "SimpleImputer":
        n_kept = n_features if step.keep_empty_features else np.count_nonzero(~np.isnan(learned["statistics_"]))
        if n_kept != n_out or not _is_plain(step, str(dtype)):
            raise DamagedError(f"has an invalid value for {place}")
    with possible():  # whatever else this version of scikit-learn keeps
        step.fit(np.zeros((1, n_features), dtype=dtype))
    for attribute, value in learned.items():
        _restore(step, attribute, value, f"{place}.{attribute}")
    if node.get("feature_names") is not None:
        step.feature_names_in_ = unpack_names(node["feature_names"], n_features)
    return step if output is None else step.set_output(transform=output), n_features


def _unfitted(scaler: Any, nodes: dict[str, Any], place: str, unpacker: Unpacker) -> Any:
    """A scaler with its parameters."""
    values = unpack_parameters(scaler, nodes, unpacker, place)
    if not all(_are_limits(value) for value in values.values() if isinstance(value, tuple)):
        raise DamagedError(f"has an invalid value for {place}")
    with possible():
        step = scaler(**values)
        step._validate_params()
    return step


def _restore(step: Any, attribute: str, value: Any, name: str) -> None:
    """Put what was learned in the place of what was learned of one row of zeros."""
    fresh = getattr(step, attribute)
    if attribute == "n_samples_seen_":
        array = np.asarray(value if isinstance(value, int | float | np.number | np.ndarray) else None)
        shapes = (), (step.n_features_in_,)
        is_sound = array.dtype.kind in "iuf" and array.shape in shapes and bool((array >= 0).all())
    else:
        is_sound = (value is None) == (fresh is None)
    if not is_sound:
        raise DamagedError(f"has an invalid value for {name}")
    setattr(step, attribute, value.astype(fresh.dtype) if attribute == "statistics_" else value)
