"""Conversion of a fitted estimator, or a pipeline that ends in one, to JSON and arrays, and back.

An estimator is its class, its parameters, its `Model`, the fitted attributes that its `_declaration` names, and, if
training can go on, the state of its method; see `polyplane.base.PlaneClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from polyplane.engine.data import AffineScaling
from polyplane.engine.state import Array, Maybe, Record, Tuple, Whole
from polyplane.files.container import DamagedError
from polyplane.files.model import pack_columns, unpack_columns
from polyplane.files.values import (
    FLOATS,
    Metrics,
    Packer,
    Sizes,
    Unpacker,
    Value,
    all_text,
    mismatch,
    pack,
    part_of,
    possible,
    unpack,
)
from polyplane.model import Model

#: Fitted attributes of all estimators, besides those that they declare.
ATTRIBUTES = {
    "n_iter_": Whole(),
    "history_": Metrics(),
    "choice_": Metrics(),
    "_scaling": Maybe(Tuple((Array("f", "features"), Array("f", "features")), AffineScaling)),
}
_NUMBERS = Maybe(Array("f", "features"))
#: The steps of a pipeline that can be saved, and their fitted attributes.
SCALERS: dict[str, dict[str, Any]] = {
    "StandardScaler": {"mean_": _NUMBERS, "var_": _NUMBERS, "scale_": _NUMBERS, "n_samples_seen_": Value()},
    "MinMaxScaler": {
        **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _NUMBERS),
        "n_samples_seen_": Value(),
    },
    "MaxAbsScaler": {"max_abs_": _NUMBERS, "scale_": _NUMBERS, "n_samples_seen_": Value()},
    "RobustScaler": {"center_": _NUMBERS, "scale_": _NUMBERS},
    "SimpleImputer": {"statistics_": Array("float64", "features")},
}
#: Allowed values of `set_output`.
CONTAINERS = ("default", "pandas", "polars")
#: Maximum number of steps before the estimator: each is fitted once, which takes time and memory for each feature.
MOST_STEPS, STEP_BYTES = 100, 100
#: Bytes of a member of a committee, besides those of its arrays.
MEMBER_BYTES = 2048
#: Maximum absolute value of a limit of a scaler.
LARGEST_LIMIT = 1e15

#: Finds the class of an estimator by its name; None for an unknown name.
Find = Callable[[str], Any]


def describe(estimator: Any, packer: Packer) -> dict[str, Any]:
    """Return the JSON description of an estimator, without its `Model`; the packer collects the arrays."""
    if type(estimator).__name__ == "Pipeline":
        (*steps, (last_name, last)) = estimator.steps
        nodes = [_describe_step(name, step, f"steps.{i}", packer) for i, (name, step) in enumerate(steps)]
        columns = pack_columns(last.model_, "last.", packer)
        description = {"name": last_name, **describe(last, packer), **columns}
        return {"class": "Pipeline", "steps": nodes, "last": description, "verbose": bool(estimator.verbose)}
    parameters, fitted = _pack_parameters(estimator, "parameters", packer), {}
    for name, kind in _attributes(estimator).items():
        if name in vars(estimator) or isinstance(getattr(type(estimator), name, None), property):
            fitted[name] = pack(kind, getattr(estimator, name), f"fitted.{name}", packer)
    return {
        "class": type(estimator).__name__,
        "parameters": parameters,
        "fitted": fitted,
        "training": _pack_training(estimator, packer) if hasattr(estimator, "_state") else None,
    }


def rebuild(node: dict[str, Any], model: Model, find: Find, unpacker: Unpacker) -> Any:
    """Return the estimator of a description, after validation."""
    name = node.get("class")
    if name == "Pipeline":
        return _rebuild_pipeline(node, model, find, unpacker)
    estimator = find(name) if isinstance(name, str) else None
    if estimator is None:
        raise DamagedError(f"names an unknown learner, {str(name)[:40]!r}")
    values = _unpack_parameters(estimator, part_of(node, "parameters"), "parameters", unpacker)
    with possible():
        found = estimator(**values)
        found._validate_params()
        kinds, nodes = ATTRIBUTES | dict(estimator._declaration.fitted), part_of(node, "fitted")
        if not nodes.keys() <= kinds.keys():
            raise DamagedError("contains an attribute that its learner does not have")
        sizes: Sizes = {"features": model.features.n_features, "planes": model.planes.n_planes}
        fitted = {key: unpack(kinds[key], nodes[key], key, unpacker, sizes) for key in nodes}
        unpacker.charge(MEMBER_BYTES * (model.planes.n_members - 1), "members")
        found._restore(model, fitted)
        if node.get("training") is not None:
            _restore_training(found, model, part_of(node, "training"), unpacker)
    return found


def _attributes(estimator: Any) -> dict[str, Any]:
    """Return the kinds of the fitted attributes.

    Attributes of the specific learner are omitted if they do not match the planes, which a user may have replaced.
    """
    own, kinds = vars(estimator), dict(estimator._declaration.fitted)
    by_plane = {name for name, kind in kinds.items() if isinstance(kind, Array) and kind.shape == ("planes",)}
    if any(len(own[name]) != estimator.planes_.n_planes for name in by_plane & own.keys()):
        return ATTRIBUTES
    return ATTRIBUTES | kinds


def _pack_parameters(estimator: Any, what: str, packer: Packer) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    return {name: pack(Value(), value, f"{what}.{name}", packer) for name, value in parameters.items()}


def _unpack_parameters(estimator: Any, nodes: Mapping[str, Any], what: str, unpacker: Unpacker) -> dict[str, Any]:
    """Return the parameters of an estimator; unknown ones are an error."""
    known = estimator().get_params(deep=False)
    if unknown := sorted(nodes.keys() - known.keys()):
        raise DamagedError(f"contains the parameter {unknown[0][:40]!r}, which {estimator.__name__} does not have")
    return {name: unpack(Value(), node, f"{what}.{name}", unpacker, {}) for name, node in nodes.items()}


def _pack_training(estimator: Any, packer: Packer) -> dict[str, Any]:
    """Describe the state, and the parameters of its method that have changed since training."""
    from polyplane.engine.method import settings_of

    method, trained_by = estimator._method(estimator.classes_), estimator._trained_by
    if type(method) is not type(trained_by):
        raise ValueError(
            "With the current parameters, the training method differs from that of the fitted model: restore the "
            "parameters, or fit again, before saving."
        )
    now = settings_of(method)
    changed = {name: value for name, value in settings_of(trained_by).items() if value != now[name]}
    return {
        "changed": {name: pack(Value(), value, f"changed.{name}", packer) for name, value in changed.items()},
        "state": pack(Record(method.traits.state), estimator._state.to_host(), "state", packer),
    }


def _restore_training(estimator: Any, model: Model, nodes: dict[str, Any], unpacker: Unpacker) -> None:
    """Restore the state, validated against the planes and the numeric parameters of its method."""
    from polyplane.engine.method import settings_of, with_settings

    if not hasattr(estimator, "_method"):  # it is made from another model
        raise mismatch("training")
    method, changed = estimator._method(estimator.classes_), part_of(nodes, "changed")
    if not changed.keys() <= settings_of(method).keys():
        raise DamagedError("contains a changed parameter that its learner does not have")
    before = {name: unpack(Value(), node, f"changed.{name}", unpacker, {}) for name, node in changed.items()}
    estimator._trained_by = method = with_settings(method, before)
    known = {name: int(number) for name, number in settings_of(method).items() if isinstance(number, Integral)}
    known |= {"features": model.n_columns, "encoded": model.inputs.n_encoded, "classes": model.n_classes}
    estimator._state = unpack(Record(method.traits.state), nodes.get("state"), "state", unpacker, known)
    if not estimator._accepts_state(estimator._state):
        raise mismatch("state")


def _describe_step(name: str, step: Any, place: str, packer: Packer) -> dict[str, Any]:
    from sklearn.utils.validation import check_is_fitted

    if step is None or step == "passthrough":
        return {"name": name, "step": step}
    kind, own = type(step).__name__, vars(step)
    if kind not in SCALERS or type(step) is not scaler_of(kind):
        *others, last = SCALERS
        raise TypeError(
            f"The step {name!r} of the pipeline, a {kind}, cannot be saved; {', '.join(others)} and {last} can."
        )
    check_is_fitted(step)
    dtype = np.dtype(own.get("_fit_dtype", np.float64)).name
    if kind == "SimpleImputer" and not is_plain_imputer(step.get_params(deep=False), dtype):
        raise TypeError(
            f"The step {name!r} of the pipeline cannot be saved: a SimpleImputer must replace NaN by numbers, without "
            "indicators."
        )
    learned = {attribute: getattr(step, attribute) for attribute in SCALERS[kind]}
    if kind == "SimpleImputer":
        learned["statistics_"] = learned["statistics_"].astype(np.float64)
    names = own.get("feature_names_in_")
    return {
        "name": name,
        "step": kind,
        "parameters": _pack_parameters(step, place, packer),
        "dtype": dtype,
        "feature_names": None if names is None else [str(each) for each in names],
        "output": own.get("_sklearn_output_config", {}).get("transform"),
        "fitted": {a: pack(SCALERS[kind][a], value, f"{place}.{a}", packer) for a, value in learned.items()},
    }


def _rebuild_pipeline(node: dict[str, Any], model: Model, find: Find, unpacker: Unpacker) -> Any:
    from sklearn.pipeline import Pipeline

    last, nodes = part_of(node, "last"), node.get("steps")
    if not isinstance(nodes, list) or len(nodes) > MOST_STEPS or not isinstance(node.get("verbose"), bool):
        raise mismatch("steps")
    names: list[Any] = [part.get("name") if isinstance(part, dict) else None for part in (*nodes, last)]
    if not all(isinstance(name, str) and "__" not in name for name in names) or len({*names}) < len(names):
        raise DamagedError("has invalid names of steps")
    if last.get("class") == "Pipeline":
        raise DamagedError("names an unknown learner, 'Pipeline'")
    with possible():
        inputs, features = unpack_columns(last, "last.", unpacker, {"features": model.features.n_features})
        estimator = rebuild(last, replace(model, inputs=inputs, features=features), find, unpacker)
    steps, n_features = [estimator], int(estimator.n_features_in_)
    for i, part in reversed([*enumerate(nodes)]):  # from the last: its number of features is known
        step, n_features = _rebuild_step(part, n_features, f"steps.{i}", unpacker)
        steps.insert(0, step)
    if n_features != model.n_columns:
        raise mismatch("steps")
    return Pipeline(list(zip(names, steps, strict=True)), verbose=node["verbose"])


def _rebuild_step(node: dict[str, Any], n_out: int, place: str, unpacker: Unpacker) -> tuple[Any, int]:
    """Return a step with `n_out` output features, and its number of input features."""
    if node.keys() == {"name", "step"} and node["step"] in (None, "passthrough"):
        return node["step"], n_out
    kind, dtype, output, names = (node.get(part) for part in ("step", "dtype", "output", "feature_names"))
    if not isinstance(kind, str) or kind not in SCALERS:
        raise DamagedError(f"names an unknown step, {str(kind)[:40]!r}")
    kinds, fitted = SCALERS[kind], part_of(node, "fitted")
    if fitted.keys() != kinds.keys() or dtype not in FLOATS or output not in (None, *CONTAINERS):
        raise mismatch(place)
    sizes: Sizes = {} if kind == "SimpleImputer" else {"features": n_out}
    learned = {a: unpack(kinds[a], fitted[a], f"{place}.{a}", unpacker, sizes) for a in kinds}
    scaler = scaler_of(kind)
    parameters = _unpack_parameters(scaler, part_of(node, "parameters"), place, unpacker)
    for limits in (value for value in parameters.values() if isinstance(value, tuple)):
        if len(limits) != 2 or not all(type(limit) in (int, float) and abs(limit) < LARGEST_LIMIT for limit in limits):
            raise mismatch(place)
    with possible():
        step = scaler(**parameters)
        step._validate_params()
    if kind == "SimpleImputer":
        kept = ~np.isnan(learned["statistics_"]) | bool(parameters.get("keep_empty_features", False))
        if not is_plain_imputer(parameters, str(dtype)) or np.count_nonzero(kept) != n_out:
            raise mismatch(place)
    if names is not None and not (all_text(names) and len(names) == sizes["features"]):
        raise DamagedError("has invalid feature names")
    unpacker.charge(STEP_BYTES * sizes["features"], place)
    with possible():  # fitting sets all other attributes of this version of scikit-learn
        step.fit(np.zeros((1, sizes["features"]), dtype=dtype))
    for attribute, value in learned.items():
        _restore_attribute(step, attribute, value, f"{place}.{attribute}")
    if names is not None:
        step.feature_names_in_ = np.array(names, dtype=object)
    return step if output is None else step.set_output(transform=output), sizes["features"]


def _restore_attribute(step: Any, attribute: str, value: Any, name: str) -> None:
    """Set a fitted attribute, after the scaler was fitted to one row of zeros."""
    fresh = getattr(step, attribute)
    if attribute == "n_samples_seen_":
        array = np.asarray(value if isinstance(value, int | float | np.number | np.ndarray) else None)
        shapes = (), (step.n_features_in_,)
        is_sound = array.dtype.kind in "iuf" and array.shape in shapes and bool((array >= 0).all())
    else:
        is_sound = (value is None) == (fresh is None)
    if not is_sound:
        raise mismatch(name)
    setattr(step, attribute, value.astype(fresh.dtype) if attribute == "statistics_" else value)


def scaler_of(name: str) -> Any:
    """Return the class of a scaler in `SCALERS`."""
    from sklearn import impute, preprocessing

    return getattr(preprocessing, name, None) or getattr(impute, name)


def is_plain_imputer(parameters: Mapping[str, Any], dtype: str) -> bool:
    """Whether an imputer only replaces NaN by numbers."""
    missing, fill = parameters.get("missing_values", np.nan), parameters.get("fill_value")
    is_nan = isinstance(missing, float | np.floating) and np.isnan(missing)
    is_filled = fill is None or (isinstance(fill, int | float | np.number) and not isinstance(fill, bool))
    is_named = isinstance(parameters.get("strategy", "mean"), str)
    return bool(is_nan and is_filled and not parameters.get("add_indicator", False) and dtype in FLOATS and is_named)
