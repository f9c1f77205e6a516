"""Common parts of model files: parameters, labels, planes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from polyplane.engine.state import Array
from polyplane.files.container import DamagedError
from polyplane.files.values import Packer, Sizes, Unpacker, Value, pack, unpack
from polyplane.planes import PlaneSet

#: The arrays of a PlaneSet.
PLANES = {
    "coef": Array("f", "planes", "features"),
    "intercept": Array("f", "planes"),
    "indptr": Array("i", "classes+1"),
}
#: In a NumPy array, each string takes the size of the longest. Up to this many bytes, a loaded array has the original
#: width; larger ones become arrays of objects, so that a small file cannot exhaust the memory.
MOST_ROOM = 1 << 24
#: Maximum length of the reason in an error message.
LONGEST_REASON = 400


class Form(Protocol):
    """The file form of the estimators of one class, as JSON and arrays."""

    @property
    def learner(self) -> Any:
        """The class."""

    def describe(self, model: Any, packer: Packer) -> dict[str, Any]:
        """Return the JSON description of an estimator; the packer collects the arrays."""

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Any:
        """Validate a description and return the estimator."""


def part_of(description: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a description."""
    part = description.get(name)
    if not isinstance(part, dict):
        raise DamagedError(f"has an invalid value for {name}")
    return part


@contextmanager
def possible() -> Iterator[None]:
    """Turn validation errors into `DamagedError`."""
    try:
        yield
    except DamagedError:
        raise
    except ValueError as error:
        reason = " ".join(str(error).split())[:LONGEST_REASON]  # it may contain an array, in many lines
        raise DamagedError(f"contains an invalid model: {reason}".rstrip(".")) from error


def pack_parameters(parameters: Mapping[str, Any], packer: Packer, what: str = "parameters") -> dict[str, Any]:
    """Describe the parameters of an estimator."""
    return {name: pack(Value(), value, f"{what}.{name}", packer) for name, value in parameters.items()}


def unpack_parameters(
    learner: Any, nodes: Mapping[str, Any], unpacker: Unpacker, what: str = "parameters"
) -> dict[str, Any]:
    """Return the parameters of an estimator; unknown ones are an error."""
    known = learner().get_params(deep=False)
    if unknown := sorted(nodes.keys() - known.keys()):
        raise DamagedError(f"contains the parameter {unknown[0][:40]!r}, which {learner.__name__} does not have")
    return {name: unpack(Value(), node, f"{what}.{name}", unpacker, {}) for name, node in nodes.items()}


def pack_planes(planes: PlaneSet, name: str, packer: Packer) -> dict[str, Any]:
    """Describe planes."""
    return {part: pack(kind, getattr(planes, part), f"{name}.{part}", packer) for part, kind in PLANES.items()}


def unpack_planes(nodes: Mapping[str, Any], name: str, unpacker: Unpacker, sizes: Sizes) -> PlaneSet:
    """Return the planes; the numbers of planes and features are added to `sizes`."""
    parts = {part: unpack(kind, nodes.get(part), f"{name}.{part}", unpacker, sizes) for part, kind in PLANES.items()}
    if sizes["features"] < 1:
        raise DamagedError("has planes without features")
    return PlaneSet(**parts)


def pack_labels(classes: np.ndarray, packer: Packer) -> Any:
    """Describe the labels."""
    if classes.dtype.kind in "biuf":
        return packer.array(classes, "classes")
    if classes.dtype.kind not in "UO" or not all_text(classes.tolist()):
        raise ValueError(f"The labels are {classes.dtype}; model files support numbers, booleans and strings.")
    as_objects = classes.dtype == object or classes.nbytes > MOST_ROOM
    return {"texts": classes.tolist(), "width": None if as_objects else classes.dtype.itemsize // 4}


def unpack_labels(node: Any, n_classes: int, unpacker: Unpacker) -> np.ndarray:
    """Return the labels, one per class and sorted as by `numpy.unique`."""
    classes = np.empty(0)
    match node:
        case {"array": _}:
            classes = unpacker.array(node, "classes")
        case {"texts": [*texts], "width": None | int() as width} if texts and all_text(texts):
            if width is None or 0 < 4 * width * len(texts) <= MOST_ROOM:
                classes = np.array(texts, dtype=object if width is None else f"U{width:d}")
                classes = classes if classes.tolist() == texts else np.empty(0)
    if classes.shape != (n_classes,) or n_classes < 2 or not (classes[:-1] < classes[1:]).all():
        raise DamagedError("has invalid classes")
    return classes


def unpack_names(names: Any, n_features: int) -> np.ndarray:
    """Return the feature names."""
    if not isinstance(names, list) or len(names) != n_features or not all_text(names):
        raise DamagedError("has invalid feature names")
    return np.array(names, dtype=object)


def all_text(values: list[Any]) -> bool:
    """Whether all values are strings."""
    return all(isinstance(value, str) for value in values)
