"""Reading of the model of a `TableClassifier` from a file: columns from JSON, preparations and planes from arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyplane.files.container import DamagedError
from polyplane.files.parts import unpack_labels
from polyplane.files.values import Unpacker
from polyplane.inputs.encoding import TableInputs
from polyplane.tables._file_members import check_fit, unpack_all_planes, unpack_members, unpack_preparation
from polyplane.tables._model import TableModel

#: Range of valid temperatures: beyond it, probabilities are always nearly 0 or 1, or nearly equal.
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 1e-6, 1e6


def unpack_table_model(description: dict[str, Any], unpacker: Unpacker) -> tuple[TableModel, np.ndarray]:
    """Return the model and the labels, after validation."""
    preparations = [
        unpack_preparation(node, f"preparations.{i}", unpacker)
        for i, node in enumerate(_list(description, "preparations"))
    ]
    encoding = TableInputs.from_dict(description.get("encoding"))
    check_fit(encoding, preparations)
    planes = unpack_all_planes(_list(description, "planes"), unpacker)
    members = unpack_members(_list(description, "members"), preparations, planes)
    model = TableModel(encoding, members, _temperature(description.get("temperature")))
    return model, unpack_labels(description.get("classes"), model.n_classes, unpacker)


def _list(description: dict[str, Any], name: str) -> list[Any]:
    value = description.get(name)
    if not isinstance(value, list) or not value:
        raise DamagedError(f"has an invalid value for {name}")
    return value


def _temperature(value: Any) -> float:
    is_number = isinstance(value, float) and math.isfinite(value)
    if not is_number or not LEAST_TEMPERATURE <= value <= LARGEST_TEMPERATURE:
        raise DamagedError("has an invalid value for temperature")
    return float(value)
