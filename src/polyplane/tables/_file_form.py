"""A fitted `TableClassifier` as JSON and arrays, and a classifier from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyplane.engine.kinds import Array, Whole
from polyplane.model_files.container import DamagedError
from polyplane.model_files.parts import (
    all_text,
    pack_labels,
    pack_parameters,
    pack_planes,
    part_of,
    possible,
    unpack_labels,
    unpack_parameters,
    unpack_planes,
)
from polyplane.model_files.values import Packer, Sizes, Unpacker, Value, pack, unpack
from polyplane.tables._encoding import Encoding
from polyplane.tables._model import Member, TableModel
from polyplane.tables._preparation import Preparation
from polyplane.tables.classifier import TableClassifier
from polyplane.tables.encoder import TableEncoder

#: The arrays of a preparation; the knots of all numbers stand one after the other.
PREPARATION = {
    "is_number": Array("b", "features"),
    "centre": Array("float64", "features"),
    "factor": Array("float64", "features"),
    "gain": Array("float64", "features"),
    "knots": Array("float64", "knots"),
    "knot_counts": Array("i", "binned"),
    "more_centre": Array("float64", "more"),
    "more_factor": Array("float64", "more"),
}
#: What multiplies features: none of them vanishes, or is turned over.
FACTORS = ("factor", "gain", "more_factor")
#: Temperatures beyond these would make certainty, or nothing, of any score.
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 1e-6, 1e6
#: Ways to write down the texts that stand for gaps, beside tuples.
COLLECTIONS: dict[str, Any] = {"list": list, "set": set, "frozenset": frozenset}


class TableForm:
    """How a fitted `TableClassifier` stands in a file: columns as JSON, preparations and planes as arrays."""

    learner = TableClassifier

    def describe(self, model: TableClassifier, packer: Packer) -> dict[str, Any]:
        """What is to be JSON; the arrays are left with the packer."""
        preparations = list({id(member.preparation): member.preparation for member in model.members_}.values())
        places = {id(preparation): i for i, preparation in enumerate(preparations)}
        members = [
            {"preparation": places[id(p)], "planes": pack_planes(planes, f"members.{i}", packer)}
            for i, (p, planes) in enumerate(model.members_)
        ]
        return {
            "learner": type(model).__name__,
            "parameters": _pack_parameters(model, "parameters", packer),
            "encoder": _pack_parameters(model.encoder_, "encoder", packer),
            "classes": pack_labels(model.classes_, packer),
            "encoding": model.model_.encoding.to_dict(),
            "preparations": [_pack_preparation(p, f"preparations.{i}", packer) for i, p in enumerate(preparations)],
            "members": members,
            "temperature": model.temperature_,
            "fitted": {
                "n_iter_": int(model.n_iter_),
                "preparation_": list(model.preparation_),
                "choice_": pack(Value(), model.choice_, "choice", packer),
            },
        }

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> TableClassifier:
        """The classifier that was described, once all of it is known to be sound."""
        with possible():
            model = TableClassifier(**_parameters(TableClassifier, description, "parameters", unpacker))
            model._validate_params()
            encoder = TableEncoder(**_parameters(TableEncoder, description, "encoder", unpacker))
            encoder._validate_params()
            preparations = [
                _preparation(node, f"preparations.{i}", unpacker)
                for i, node in enumerate(_list(description, "preparations"))
            ]
            encoding = Encoding.from_dict(description.get("encoding"))
            _check_fit(encoding, preparations)
            members = _members(_list(description, "members"), preparations, unpacker)
            model.encoder_ = encoder._keep(encoding)
            model.model_ = TableModel(encoding, members, _temperature(description.get("temperature")))
            model.classes_ = unpack_labels(description.get("classes"), model.model_.n_classes, unpacker)
            _restore_attributes(model, part_of(description, "fitted"), unpacker)
        return model


def _pack_parameters(estimator: Any, what: str, packer: Packer) -> dict[str, Any]:
    """The parameters; the texts that stand for gaps may be any collection, the dtype of an encoder is float64 here."""
    own = {name: value for name, value in estimator.get_params(deep=False).items() if name != "dtype"}
    gaps = own["gaps"]
    plain = {name: value for name, value in own.items() if name != "gaps" or type(value) is tuple}
    nodes = pack_parameters(plain, packer, what)
    if "gaps" not in nodes:
        kind = next((kind for kind, build in COLLECTIONS.items() if type(gaps) is build), None)
        if kind is None:
            raise ValueError(f"The parameter gaps is a {type(gaps).__name__}; a model file holds a tuple, list or set.")
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


def _list(description: dict[str, Any], name: str) -> list[Any]:
    value = description.get(name)
    if not isinstance(value, list) or not value:
        raise DamagedError(f"has an invalid value for {name}")
    return value


def _pack_preparation(preparation: Preparation, name: str, packer: Packer) -> dict[str, Any]:
    arrays = {part: np.array(getattr(preparation, part)) for part in PREPARATION if not part.startswith("knot")}
    arrays["knots"] = np.concatenate([np.empty(0), *preparation.knots])
    arrays["knot_counts"] = np.array([len(knots) for knots in preparation.knots], dtype=np.int64)
    packed = {part: pack(kind, arrays[part], f"{name}.{part}", packer) for part, kind in PREPARATION.items()}
    return {"name": preparation.name, **packed}


def _preparation(node: Any, name: str, unpacker: Unpacker) -> Preparation:
    if not isinstance(node, dict) or node.keys() != {"name", *PREPARATION}:
        raise DamagedError(f"has an invalid value for {name}")
    sizes: Sizes = {}
    arrays = {part: unpack(kind, node[part], f"{name}.{part}", unpacker, sizes) for part, kind in PREPARATION.items()}
    counts = arrays.pop("knot_counts")
    if counts.min(initial=0) < 0 or counts.max(initial=0) > sizes["knots"] or counts.sum() != sizes["knots"]:
        raise DamagedError(f"has an invalid value for {name}.knot_counts")
    if not all((arrays[part] > 0).all() for part in FACTORS):
        raise DamagedError(f"has an invalid value for {name}: its factors must be positive")
    knots = [part.tolist() for part in np.split(arrays.pop("knots"), np.cumsum(counts)[:-1])] if len(counts) else []
    plain = {part: array.tolist() for part, array in arrays.items()}
    return Preparation.from_dict({"name": node["name"], "knots": knots, **plain})


def _check_fit(encoding: Encoding, preparations: list[Preparation]) -> None:
    """Refuse preparations of other features than those of the encoding."""
    is_indicator = np.array([feature.is_indicator for column in encoding.columns for feature in column.features])
    for preparation in preparations:
        if preparation.is_number.shape != is_indicator.shape:
            raise DamagedError(
                f"has a preparation of {len(preparation.is_number)} features, and an encoding of {len(is_indicator)}"
            )
        if (preparation.is_number & is_indicator).any():
            raise DamagedError("has a preparation that takes an indicator for a number")


def _members(nodes: list[Any], preparations: list[Preparation], unpacker: Unpacker) -> tuple[Member, ...]:
    """The machines, each with its preparation; all of them know the same number of classes."""
    members, common = [], None
    for i, node in enumerate(nodes):
        match node:
            case {"preparation": int(place), "planes": dict(planes), **rest} if not rest and type(place) is int:
                sizes: Sizes = {} if common is None else {"classes": common}
                found = unpack_planes(planes, f"members.{i}", unpacker, sizes)
                common = sizes["classes"]
            case _:
                raise DamagedError(f"has an invalid value for members.{i}")
        if not 0 <= place < len(preparations):
            raise DamagedError(f"has an invalid value for members.{i}.preparation")
        n_prepared = len(preparations[place].is_number) + len(preparations[place].more_centre)
        if found.n_features != n_prepared:
            raise DamagedError(f"has planes over {found.n_features} features, and a preparation of {n_prepared}")
        members.append(Member(preparations[place], found))
    if len({id(member.preparation) for member in members}) < len(preparations):
        raise DamagedError("has a preparation that no machine uses")
    return tuple(members)


def _temperature(value: Any) -> float:
    is_number = isinstance(value, float) and math.isfinite(value)
    if not is_number or not LEAST_TEMPERATURE <= value <= LARGEST_TEMPERATURE:
        raise DamagedError("has an invalid value for temperature")
    return float(value)


def _restore_attributes(model: TableClassifier, nodes: dict[str, Any], unpacker: Unpacker) -> None:
    """What else was learned, and what follows from the encoding."""
    if nodes.keys() != {"n_iter_", "preparation_", "choice_"}:
        raise DamagedError("has an invalid value for fitted")
    model.n_iter_ = unpack(Whole(), nodes["n_iter_"], "n_iter_", unpacker, {})
    labels, choice = nodes["preparation_"], unpack(Value(), nodes["choice_"], "choice_", unpacker, {})
    names = [member.preparation.name for member in model.members_]
    if not isinstance(labels, list) or [str(label).removesuffix(", weighted") for label in labels] != names:
        raise DamagedError("has an invalid value for preparation_")
    if not isinstance(choice, dict) or not all(type(k) is str and type(v) is float for k, v in choice.items()):
        raise DamagedError("has an invalid value for choice_")
    model.preparation_, model.choice_ = labels, choice
    model.n_features_in_ = model.encoder_.n_features_in_
    if hasattr(model.encoder_, "feature_names_in_"):
        model.feature_names_in_ = model.encoder_.feature_names_in_
