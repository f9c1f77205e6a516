"""Conversion of a pipeline of scikit-learn's scalers and an estimator to JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from polyplane.files.container import DamagedError
from polyplane.files.parts import Form, pack_parameters, part_of, possible, unpack_parameters
from polyplane.files.steps import LEARNED, is_plain_imputer, pipeline_parts, unpack_step
from polyplane.files.values import Packer, Unpacker, pack

#: The scalers that can be saved.
SCALERS: dict[str, Any] = {
    scaler.__name__: scaler for scaler in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer)
}


@dataclass(frozen=True)
class PipelineForm:
    """The file form of a pipeline; `find` returns the file form for the name of its last step."""

    find: Callable[[str], Form | None]
    learner: Any = Pipeline

    def describe(self, model: Pipeline, packer: Packer) -> dict[str, Any]:
        """Return the JSON description of a pipeline; the packer collects the arrays."""
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
        """Validate a description and return the pipeline."""
        names, nodes, last = pipeline_parts(description)
        form = self.find(str(last.get("learner")))
        if form is None:
            raise DamagedError(f"names an unknown learner, {str(last.get('learner'))[:40]!r}")
        estimator = form.rebuild(last, unpacker)
        steps, n_features = [estimator], int(estimator.n_features_in_)
        for i, node in reversed([*enumerate(nodes)]):  # from the last: its number of features is known
            step, n_features = _rebuild_step(node, n_features, f"steps.{i}", unpacker)
            steps.insert(0, step)
        return Pipeline(list(zip(names, steps, strict=True)), verbose=description["verbose"])


def _describe_step(name: str, step: Any, place: str, packer: Packer) -> dict[str, Any]:
    if step is None or step == "passthrough":
        return {"name": name, "step": step}
    kind = type(step).__name__
    if kind not in SCALERS or SCALERS[kind] is not type(step):
        *others, last = SCALERS
        raise TypeError(
            f"The step {name!r} of the pipeline, a {kind}, cannot be saved; {', '.join(others)} and {last} can."
        )
    check_is_fitted(step)
    own = vars(step)
    dtype = np.dtype(own.get("_fit_dtype", np.float64)).name
    if kind == "SimpleImputer" and not is_plain_imputer(step.get_params(deep=False), dtype):
        raise TypeError(
            f"The step {name!r} of the pipeline cannot be saved: a SimpleImputer must replace NaN by numbers, without "
            "indicators."
        )
    learned = {attribute: _learned(step, attribute) for attribute in LEARNED[kind]}
    names = own.get("feature_names_in_")
    return {
        "name": name,
        "step": kind,
        "parameters": pack_parameters(step.get_params(deep=False), packer, place),
        "dtype": dtype,
        "feature_names": None if names is None else [str(each) for each in names],
        "output": own.get("_sklearn_output_config", {}).get("transform"),
        "fitted": {a: pack(LEARNED[kind][a], value, f"{place}.{a}", packer) for a, value in learned.items()},
    }


def _learned(step: Any, attribute: str) -> Any:
    value = getattr(step, attribute)
    return value.astype(np.float64) if attribute == "statistics_" else value


def _rebuild_step(node: dict[str, Any], n_out: int, place: str, unpacker: Unpacker) -> tuple[Any, int]:
    """Return a step with `n_out` output features, and its number of input features."""
    found = unpack_step(node, n_out, place, unpacker)
    if found is None:
        return node["step"], n_out
    step = _unfitted(SCALERS[found.kind], part_of(node, "parameters"), place, unpacker)
    with possible():  # sets all other attributes of this version of scikit-learn
        step.fit(np.zeros((1, found.n_features), dtype=found.dtype))
    for attribute, value in found.learned.items():
        _restore(step, attribute, value, f"{place}.{attribute}")
    if found.feature_names is not None:
        step.feature_names_in_ = found.feature_names
    return step if found.output is None else step.set_output(transform=found.output), found.n_features


def _unfitted(scaler: Any, nodes: dict[str, Any], place: str, unpacker: Unpacker) -> Any:
    """Return a scaler with its parameters."""
    values = unpack_parameters(scaler, nodes, unpacker, place)
    with possible():
        step = scaler(**values)
        step._validate_params()
    return step


def _restore(step: Any, attribute: str, value: Any, name: str) -> None:
    """Set a fitted attribute, after the scaler was fitted to one row of zeros."""
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
