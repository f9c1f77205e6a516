"""Conversion of a fitted `TableClassifier` to JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyplane.files.container import DamagedError
from polyplane.files.parts import (
    all_text,
    pack_labels,
    pack_parameters,
    pack_planes,
    part_of,
    possible,
    unpack_parameters,
)
from polyplane.files.values import Packer, Unpacker, Value, pack, unpack
from polyplane.tables._file_members import pack_preparation
from polyplane.tables._file_model import unpack_table_model
from polyplane.tables.classifier import TableClassifier
from polyplane.tables.encoder import TableEncoder

#: Collection types of `gaps`, besides tuples.
COLLECTIONS: dict[str, Any] = {"list": list, "set": set, "frozenset": frozenset}


class TableForm:
    """File format of a fitted `TableClassifier`: columns as JSON, preparations and planes as arrays."""

    learner = TableClassifier

    def describe(self, model: TableClassifier, packer: Packer) -> dict[str, Any]:
        """Return the JSON part; the arrays are added to the packer."""
        preparations, prepared = _different([member.preparation for member in model.members_])
        planes, owned = _different([member.planes for member in model.members_])
        return {
            "learner": type(model).__name__,
            "parameters": _pack_parameters(model, "parameters", packer),
            "encoder": _pack_parameters(model.encoder_, "encoder", packer),
            "classes": pack_labels(model.classes_, packer),
            "encoding": model.table_model_.encoding.to_dict(),
            "preparations": [pack_preparation(p, f"preparations.{i}", packer) for i, p in enumerate(preparations)],
            "planes": [pack_planes(each, f"planes.{i}", packer) for i, each in enumerate(planes)],
            "members": [{"preparation": i, "planes": j} for i, j in zip(prepared, owned, strict=True)],
            "temperature": model.temperature_,
            "fitted": _pack_attributes(model, packer),
        }

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> TableClassifier:
        """Return the classifier of a description, after validation."""
        with possible():
            model = TableClassifier(**_parameters(TableClassifier, description, "parameters", unpacker))
            model._validate_params()
            encoder = TableEncoder(**_parameters(TableEncoder, description, "encoder", unpacker))
            encoder._validate_params()
            found, model.classes_ = unpack_table_model(description, unpacker)
            model.encoder_ = encoder._keep(found.encoding)
            model._keep_model(found.members, found.temperature)
            _restore_attributes(model, part_of(description, "fitted"), unpacker)
        return model


def _pack_parameters(estimator: Any, what: str, packer: Packer) -> dict[str, Any]:
    """Pack the parameters; `gaps` may be a tuple, list or set, and the dtype of the encoder is float64."""
    own = {name: value for name, value in estimator.get_params(deep=False).items() if name != "dtype"}
    gaps = own["gaps"]
    plain = {name: value for name, value in own.items() if name != "gaps" or type(value) is tuple}
    nodes = pack_parameters(plain, packer, what)
    if "gaps" not in nodes:
        kind = next((kind for kind, build in COLLECTIONS.items() if type(gaps) is build), None)
        if kind is None:
            raise ValueError(
                f"gaps must be a tuple, list or set to be saved in a model file, not a {type(gaps).__name__}."
            )
        nodes["gaps"] = {kind: sorted(gaps) if kind != "list" else gaps}
    return nodes


def _parameters(learner: Any, description: dict[str, Any], name: str, unpacker: Unpacker) -> dict[str, Any]:
    nodes = dict(part_of(description, name))
    if "dtype" in nodes:
        raise DamagedError(f"has an invalid value for {name}")
    gaps = nodes.get("gaps")
    if not isinstance(gaps, dict) or len(gaps) != 1 or not gaps.keys() <= COLLECTIONS.keys():
        return unpack_parameters(learner, nodes, unpacker, name)
    ((kind, texts),) = gaps.items()
    if not isinstance(texts, list) or not all_text(texts):
        raise DamagedError(f"has an invalid value for {name}.gaps")
    del nodes["gaps"]
    return {**unpack_parameters(learner, nodes, unpacker, name), "gaps": COLLECTIONS[kind](texts)}


def _different(values: list[Any]) -> tuple[list[Any], list[int]]:
    """Return the distinct objects, and the index of each object among them."""
    different = list({id(value): value for value in values}.values())
    places = {id(value): i for i, value in enumerate(different)}
    return different, [places[id(value)] for value in values]


def _pack_attributes(model: TableClassifier, packer: Packer) -> dict[str, Any]:
    own = {name: value for name, value in vars(model).items() if name in ATTRIBUTES}
    if "history_" in own:
        own["history_"] = {name: np.array(figures, dtype=float) for name, figures in own["history_"].items()}
    own["preparation_"] = tuple(own["preparation_"])
    return {name: pack(Value(), own[name], f"fitted.{name}", packer) for name in ATTRIBUTES if name in own}


def _restore_attributes(model: TableClassifier, nodes: dict[str, Any], unpacker: Unpacker) -> None:
    """Set the other fitted attributes, and those that follow from the encoding."""
    if not nodes.keys() <= ATTRIBUTES.keys() or not nodes.keys() >= {"n_iter_", "preparation_", "choice_"}:
        raise DamagedError("has an invalid value for fitted")
    for name, node in nodes.items():
        value = unpack(Value(), node, name, unpacker, {})
        if not ATTRIBUTES[name](value):
            raise DamagedError(f"has an invalid value for {name}")
        setattr(model, name, value)
    names = [member.preparation.name for member in model.members_]
    model.preparation_ = list(model.preparation_)
    if [str(label).removesuffix(", weighted") for label in model.preparation_] != names:
        raise DamagedError("has an invalid value for preparation_")
    if "history_" in nodes:
        history = model.__dict__["history_"]
        model.__dict__["history_"] = {name: figures.tolist() for name, figures in history.items()}
    model.n_features_in_ = model.encoder_.n_features_in_
    if hasattr(model.encoder_, "feature_names_in_"):
        model.feature_names_in_ = model.encoder_.feature_names_in_


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _are_figures(value: Any) -> bool:
    """Return whether a value is a valid dict of training results."""
    return isinstance(value, dict) and all(
        type(name) is str and isinstance(figures, np.ndarray) and figures.dtype == np.float64 and figures.ndim == 1
        for name, figures in value.items()
    )


def _are_losses(value: Any) -> bool:
    """Return whether a value is a valid dict of the losses of preparations."""
    return isinstance(value, dict) and all(type(k) is str and type(v) is float for k, v in value.items())


#: Other fitted attributes, and functions that validate their values.
ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "n_iter_": _is_count,
    "preparation_": lambda value: isinstance(value, tuple) and all_text([*value]),
    "choice_": _are_losses,
    "encoder_rows_": _is_count,
    "history_": _are_figures,
}
