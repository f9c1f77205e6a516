"""Members of a `TableClassifier` in a file: preparations and planes as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.engine.state import Array
from polyplane.files.container import DamagedError
from polyplane.files.parts import unpack_planes
from polyplane.files.values import Packer, Sizes, Unpacker, pack, unpack
from polyplane.inputs.encoding import TableInputs
from polyplane.planes import PlaneSet
from polyplane.tables._model import Member
from polyplane.tables._preparation import Preparation

#: The arrays of a preparation; the knots of all numbers are concatenated.
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
#: Factors of features, which must be positive.
FACTORS = ("factor", "gain", "more_factor")


def pack_preparation(preparation: Preparation, name: str, packer: Packer) -> dict[str, Any]:
    """Return the arrays of a preparation."""
    arrays = {part: np.array(getattr(preparation, part)) for part in PREPARATION if not part.startswith("knot")}
    arrays["knots"] = np.concatenate([np.empty(0), *preparation.knots])
    arrays["knot_counts"] = np.array([len(knots) for knots in preparation.knots], dtype=np.int64)
    packed = {part: pack(kind, arrays[part], f"{name}.{part}", packer) for part, kind in PREPARATION.items()}
    return {"name": preparation.name, **packed}


def unpack_preparation(node: Any, name: str, unpacker: Unpacker) -> Preparation:
    """Return a preparation, after validating its arrays."""
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


def check_fit(encoding: TableInputs, preparations: list[Preparation]) -> None:
    """Raise an error if preparations do not match the features of the encoding."""
    is_indicator = np.array([feature.is_indicator for column in encoding.columns for feature in column.features])
    for preparation in preparations:
        if preparation.is_number.shape != is_indicator.shape:
            raise DamagedError(
                f"has a preparation of {len(preparation.is_number)} features, but an encoding of {len(is_indicator)}"
            )
        if (preparation.is_number & is_indicator).any():
            raise DamagedError("has a preparation that treats an indicator as a number")


def unpack_all_planes(nodes: list[Any], unpacker: Unpacker) -> list[PlaneSet]:
    """Return the planes of the members, which must have the same number of classes."""
    found: list[PlaneSet] = []
    for i, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise DamagedError(f"has an invalid value for planes.{i}")
        sizes: Sizes = {"classes": found[0].n_classes} if found else {}
        found.append(unpack_planes(node, f"planes.{i}", unpacker, sizes))
    return found


def unpack_members(nodes: list[Any], preparations: list[Preparation], planes: list[PlaneSet]) -> tuple[Member, ...]:
    """Return the members with their preparations and planes; each preparation and each set of planes must be used."""
    places = [_place(node, i, len(preparations), len(planes)) for i, node in enumerate(nodes)]
    for i, j in places:
        n_prepared = len(preparations[i].is_number) + len(preparations[i].more_centre)
        if planes[j].n_features != n_prepared:
            raise DamagedError(f"has planes over {planes[j].n_features} features, but a preparation of {n_prepared}")
    if len({i for i, _ in places}) < len(preparations) or len({j for _, j in places}) < len(planes):
        raise DamagedError("has a preparation, or planes, that no member uses")
    return tuple(Member(preparations[i], planes[j]) for i, j in places)


def _place(node: Any, number: int, n_preparations: int, n_planes: int) -> tuple[int, int]:
    match node:
        case {"preparation": int(i), "planes": int(j), **rest} if not rest and {type(i), type(j)} == {int}:
            if 0 <= i < n_preparations and 0 <= j < n_planes:
                return i, j
    raise DamagedError(f"has an invalid value for members.{number}")
