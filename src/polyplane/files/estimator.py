"""Conversion of a fitted estimator to JSON and arrays, and back.

Only the common attributes of estimators are used: parameters, `planes_`, `classes_`, `_state`, `_method` and
`_declaration`; see `polyplane.base.PlaneClassifier`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from polyplane.committee import PlaneCommittee
from polyplane.engine.method import settings_of, with_settings
from polyplane.engine.state import Array, Maybe, Record, Tuple, Whole
from polyplane.files.container import DamagedError
from polyplane.files.parts import (
    pack_labels,
    pack_parameters,
    pack_planes,
    part_of,
    possible,
    unpack_labels,
    unpack_names,
    unpack_parameters,
    unpack_planes,
)
from polyplane.files.values import Packer, Sizes, Unpacker, Value, pack, unpack
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: Fitted attributes of all learners.
ATTRIBUTES = {
    "n_features_in_": Whole(),
    "n_iter_": Whole(),
    "_scaling": Maybe(Tuple((Array("f", "features"), Array("f", "features")), AffineScaling)),
}


@dataclass(frozen=True)
class LearnerForm:
    """The file form of the estimators of a learner."""

    learner: Any

    def describe(self, model: Any, packer: Packer) -> dict[str, Any]:
        """Return the JSON description of an estimator; the packer collects the arrays."""
        return describe(model.to_numpy(), packer)

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Any:
        """Validate a description and return the estimator."""
        return _rebuild(self.learner, description, unpacker)


def describe(model: Any, packer: Packer) -> dict[str, Any]:
    """Return the JSON description of an estimator; the packer collects the arrays."""
    own = vars(model)
    names, history = own.get("feature_names_in_"), own.get("history_")
    return {
        "learner": type(model).__name__,
        "parameters": pack_parameters(model.get_params(deep=False), packer),
        "classes": pack_labels(model.classes_, packer),
        "feature_names": None if names is None else [str(name) for name in names],
        "planes": _pack_planes(model.planes_, packer),
        "history": None if history is None else _pack_history(history, packer),
        "fitted": {name: pack(kind, own[name], f"fitted.{name}", packer) for name, kind in _attributes(model).items()},
        "training": _pack_training(model, packer) if "_state" in own else None,
    }


def _pack_planes(planes: PlaneSet | PlaneCommittee, packer: Packer) -> dict[str, Any]:
    if isinstance(planes, PlaneCommittee):
        return {"members": planes.n_members, **pack_planes(planes.together, "planes", packer)}
    return pack_planes(planes, "planes", packer)


def _pack_history(history: dict[str, list[float]], packer: Packer) -> dict[str, Any]:
    return {name: packer.array(np.array(values, dtype=float), f"history.{name}") for name, values in history.items()}


def _attributes(model: Any) -> dict[str, Any]:
    """Return the kinds of the fitted attributes.

    Attributes of the specific learner are omitted if they do not match the planes, which a user may have replaced.
    """
    own, declared = vars(model), model._declaration.fitted
    by_plane = {name for name, kind in declared.items() if isinstance(kind, Array) and kind.shape == ("planes",)}
    others = any(len(own[name]) != model.planes_.n_planes for name in by_plane & own.keys())
    kinds = ATTRIBUTES if others else {**ATTRIBUTES, **declared}
    return {name: kind for name, kind in kinds.items() if name in own}


def _pack_training(model: Any, packer: Packer) -> dict[str, Any]:
    """Describe the state, and the parameters of its method that have changed since training."""
    method, trained_by = model._method(model.classes_), model._trained_by
    if type(method) is not type(trained_by):
        raise ValueError(
            "With the current parameters, the training method differs from that of the fitted model: restore the "
            "parameters, or fit again, before saving."
        )
    now = settings_of(method)
    changed = {name: value for name, value in settings_of(trained_by).items() if value != now[name]}
    return {
        "changed": {name: pack(Value(), value, f"changed.{name}", packer) for name, value in changed.items()},
        "state": pack(Record(method.traits.state), model._state, "state", packer),
    }


def _rebuild(learner: Any, description: dict[str, Any], unpacker: Unpacker) -> Any:
    """Return the estimator of a description."""
    values = unpack_parameters(learner, part_of(description, "parameters"), unpacker)
    sizes: Sizes = {}
    with possible():
        model = learner(**values)
        model._validate_params()
        nodes = part_of(description, "planes")
        model.planes_ = unpack_model_planes(nodes, unpacker, sizes, "n_estimators" in values)
        model.classes_ = unpack_labels(description.get("classes"), sizes["classes"], unpacker)
        _restore_attributes(model, description, unpacker, sizes)
        if description.get("training") is not None:
            _restore_training(model, part_of(description, "training"), unpacker, sizes)
    return model


def unpack_model_planes(
    nodes: dict[str, Any], unpacker: Unpacker, sizes: Sizes, committee: bool
) -> PlaneSet | PlaneCommittee:
    """Return the planes, or the committee if it is allowed; the numbers of planes and features are added to `sizes`."""
    planes, n_members = unpack_planes(nodes, "planes", unpacker, sizes), nodes.get("members")
    if n_members is None:
        return planes
    if not committee or type(n_members) is not int or n_members < 1 or sizes["classes"] % n_members:
        raise DamagedError("has an invalid value for planes.members")
    sizes["classes"] //= n_members
    return PlaneCommittee.of_parts(planes, n_members)


def _restore_attributes(model: Any, description: dict[str, Any], unpacker: Unpacker, sizes: Sizes) -> None:
    own, nodes, kinds = vars(model), part_of(description, "fitted"), {**ATTRIBUTES, **model._declaration.fitted}
    if not nodes.keys() <= kinds.keys():
        raise DamagedError("contains an attribute that its learner does not have")
    inner = dict(sizes)
    own["n_features_in_"] = sizes["features"]
    own.update({name: unpack(kinds[name], node, name, unpacker, inner) for name, node in nodes.items()})
    if own["n_features_in_"] != sizes["features"]:
        raise DamagedError("has an invalid value for n_features_in_")
    names = description.get("feature_names")
    if names is not None:
        own["feature_names_in_"] = unpack_names(names, sizes["features"])
    if description.get("history") is not None:
        figures, steps = part_of(description, "history").items(), Array("float64", "steps")
        own["history_"] = {
            name: unpack(steps, node, f"history.{name}", unpacker, {}).tolist() for name, node in figures
        }


def _restore_training(model: Any, nodes: dict[str, Any], unpacker: Unpacker, sizes: Sizes) -> None:
    """Restore the state, validated against the planes and the numeric parameters of its method."""
    method, changed = model._method(model.classes_), part_of(nodes, "changed")
    if not changed.keys() <= settings_of(method).keys():
        raise DamagedError("contains a changed parameter that its learner does not have")
    before = {name: unpack(Value(), node, f"changed.{name}", unpacker, {}) for name, node in changed.items()}
    model._trained_by = method = with_settings(method, before)
    known = {name: int(number) for name, number in settings_of(method).items() if isinstance(number, Integral)}
    known |= {"features": sizes["features"], "classes": sizes["classes"]}
    model._state = unpack(Record(method.traits.state), nodes.get("state"), "state", unpacker, known)
