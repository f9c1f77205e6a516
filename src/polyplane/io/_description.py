"""A fitted estimator as JSON and arrays, and an estimator from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polyplane.base import PlaneClassifier
from polyplane.io._safetensors import DamagedError
from polyplane.io._schema import Sizes
from polyplane.io._state import STATES
from polyplane.io._values import Packer, Unpacker, pack_scalar, unpack_scalar
from polyplane.learners.convex_polytope import ConvexPolytopeClassifier
from polyplane.learners.cutting_plane import CuttingPlaneSVC
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier
from polyplane.learners.pegasos import PegasosSVC
from polyplane.learners.polyceptron import PolyceptronClassifier
from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier
from polyplane.learners.successive_lp import SuccessiveLPClassifier
from polyplane.planes import PlaneSet


class Kind(NamedTuple):
    """A learner that can be saved, the kinds of state that it has, and the attributes that are its own."""

    learner: type[PlaneClassifier]
    states: tuple[str, ...]
    attributes: tuple[str, ...] = ()


KINDS = {
    kind.learner.__name__: kind
    for kind in (
        Kind(ConvexPolytopeClassifier, ("PolytopeState",), ("assignments_", "plane_counts_")),
        Kind(CuttingPlaneSVC, ("CutState",), ("gap_", "n_cuts_")),
        Kind(MultiHyperplaneClassifier, ("SmoothState", "MarginState")),
        Kind(PegasosSVC, ("PolytopeState",)),
        Kind(PolyceptronClassifier, ("PolyceptronState",), ("inside_",)),
        Kind(PolyhedralMixtureClassifier, ("MixtureState",), ("inside_",)),
        Kind(SuccessiveLPClassifier, ("LPState",), ("inside_",)),
    )
}
#: The arrays of a PlaneSet.
PLANES = ("coef", "intercept", "indptr")
#: Whole numbers that any fitted estimator has.
COUNTS = ("n_features_in_", "n_iter_")
#: Kinds of labels: booleans, whole numbers, floats, texts.
LABELS = "biufUO"
#: An array of labels may be wider than the longest of them, up to this: a file is not to fill the memory with nothing.
WIDEST_LABELS = 10_000


def describe(model: PlaneClassifier, packer: Packer) -> dict[str, Any]:
    """What is to be JSON; the arrays are left with the packer."""
    kind, own = KINDS[type(model).__name__], model.__dict__
    names = own.get("feature_names_in_")
    history = {name: np.array(figures, dtype=np.float64) for name, figures in own.get("history_", {}).items()}
    return {
        "learner": type(model).__name__,
        "parameters": {
            name: packer.value(value, f"parameters.{name}") for name, value in model.get_params(deep=False).items()
        },
        "classes": _pack_labels(model.classes_),
        "feature_names": None if names is None else [str(name) for name in names],
        "planes": {part: packer.array(getattr(model.planes_, part), f"planes.{part}") for part in PLANES},
        "history": {name: packer.array(figures, f"history.{name}") for name, figures in history.items()},
        "fitted": _pack_attributes(model, kind, packer),
        "state": _pack_state(own.get("_state"), packer),
    }


def _pack_labels(classes: np.ndarray) -> dict[str, Any]:
    if classes.dtype.kind not in LABELS or (classes.dtype == object and not _all_text(classes.tolist())):
        raise ValueError(f"The labels are of dtype {classes.dtype}; a model file holds numbers, booleans and texts.")
    values = [pack_scalar(label, "classes") for label in classes.tolist()]
    return {"dtype": classes.dtype.newbyteorder("<").str if classes.dtype != object else "object", "values": values}


def _all_text(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _pack_attributes(model: PlaneClassifier, kind: Kind, packer: Packer) -> dict[str, Any]:
    own = model.__dict__
    packed = {name: packer.value(own[name], f"fitted.{name}") for name in COUNTS if name in own}
    given = [name for name in kind.attributes if name in own and name != "inside_"]  # which follows from the state
    # Figures about other planes than those of the model are left out: a user may have replaced them by fewer.
    if all(ATTRIBUTES[name](own[name], model.planes_) for name in given):
        for name in given:
            narrow = isinstance(own[name], np.ndarray)
            packed[name] = (packer.narrow if narrow else packer.value)(own[name], f"fitted.{name}")
    return packed


def _pack_state(state: Any, packer: Packer) -> Any:
    if state is None:
        return None
    name = type(state).__name__
    return {"kind": name, "value": STATES[name].pack(state, "state", packer)}


def rebuild(description: dict[str, Any], unpacker: Unpacker) -> PlaneClassifier:
    """The estimator that was described."""
    kind = KINDS.get(str(description.get("learner")))
    if kind is None:
        raise DamagedError(f"names the learner {str(description.get('learner'))[:40]!r}, which is not known here")
    model = kind.learner(**_parameters(_part(description, "parameters"), kind, unpacker))
    try:
        model._validate_params()
        nodes = _part(description, "planes")
        model.planes_ = PlaneSet(*(unpacker.array(nodes.get(part), f"planes.{part}") for part in PLANES))
    except DamagedError:
        raise
    except ValueError as error:
        raise DamagedError(f"holds a model that cannot be: {error}".rstrip(".")) from error
    model.classes_ = _labels(_part(description, "classes"), model.planes_.n_classes)
    _restore_attributes(model, kind, description, unpacker)
    _restore_state(model, kind, description.get("state"), unpacker)
    if unpacker.used != unpacker.arrays.keys():
        raise DamagedError(f"holds an array that has no use: {min(unpacker.arrays.keys() - unpacker.used)!r}")
    return model


def _part(description: dict[str, Any], name: str) -> dict[str, Any]:
    part = description.get(name)
    if not isinstance(part, dict):
        raise DamagedError(f"holds no {name} that can be understood")
    return part


def _parameters(nodes: dict[str, Any], kind: Kind, unpacker: Unpacker) -> dict[str, Any]:
    unknown = sorted(nodes.keys() - kind.learner().get_params(deep=False).keys())
    if unknown:
        raise DamagedError(f"holds the parameter {unknown[0][:40]!r}, which {kind.learner.__name__} does not have")
    return {name: unpacker.value(node, f"parameters.{name}") for name, node in nodes.items()}


def _labels(node: dict[str, Any], n_classes: int) -> np.ndarray:
    """The labels, as many as there are classes, and in the order that `numpy.unique` gives them."""
    wrong = DamagedError("holds no classes that can be understood")
    dtype, values = node.get("dtype"), node.get("values")
    if not isinstance(values, list) or len(values) != n_classes or n_classes < 2:
        raise wrong
    labels = [unpack_scalar(value, "classes") for value in values]
    try:
        classes = np.array(labels, dtype=_label_dtype(dtype, labels))
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise wrong from error
    same = [type(a) is type(b) and a == b for a, b in zip(classes.tolist(), labels, strict=True)]
    if not all(same) or not (classes[:-1] < classes[1:]).all():
        raise wrong
    return classes


def _label_dtype(name: Any, labels: list[Any]) -> np.dtype[Any]:
    if name == "object" and _all_text(labels):
        return np.dtype(object)
    if not isinstance(name, str) or name[:2] not in ("|b", "<i", "|i", "<u", "|u", "<f", "<U"):
        raise ValueError("Not a dtype of labels.")
    dtype = np.dtype(name).newbyteorder("=")
    if dtype.kind == "U" and dtype.itemsize // 4 > max(WIDEST_LABELS, *(len(str(label)) for label in labels)):
        raise ValueError("Wider than labels can be.")
    return dtype


def _restore_attributes(model: PlaneClassifier, kind: Kind, description: dict[str, Any], unpacker: Unpacker) -> None:
    own, fitted = model.__dict__, _part(description, "fitted")
    if not fitted.keys() <= {*COUNTS, *kind.attributes} - {"inside_"}:
        raise DamagedError("holds an attribute that its learner does not have")
    own.update({name: unpacker.value(node, name) for name, node in fitted.items()})
    for name in fitted:
        if not ATTRIBUTES[name](own[name], model.planes_):
            raise DamagedError(f"holds a {name} that does not fit the planes")
    names = description.get("feature_names")
    if names is not None:
        if not isinstance(names, list) or len(names) != model.planes_.n_features or not _all_text(names):
            raise DamagedError("does not name its features one by one")
        own["feature_names_in_"] = np.array(names, dtype=object)
    if "n_iter_" in own:
        figures = _part(description, "history").items()
        own["history_"] = {name: _figures(unpacker.array(node, f"history.{name}")) for name, node in figures}


def _figures(array: np.ndarray) -> list[float]:
    if array.dtype != np.float64 or array.ndim != 1:
        raise DamagedError("holds a history that can not be understood")
    figures: list[float] = array.tolist()
    return figures


def _is_whole(value: Any, planes: PlaneSet) -> bool:
    return type(value) is int and value >= 0


def _is_indices(value: Any, planes: PlaneSet) -> bool:
    sound = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.int64
    return sound and (value.size == 0 or bool(value.min() >= -1 and value.max() < planes.n_planes))


def _is_counts(value: Any, planes: PlaneSet) -> bool:
    sound = isinstance(value, np.ndarray) and value.shape == (planes.n_planes,) and value.dtype == np.int64
    return sound and bool((value >= 0).all())


#: Whether a fitted attribute may be what it is.
ATTRIBUTES = {
    "n_features_in_": lambda value, planes: type(value) is int and value == planes.n_features,
    "n_iter_": _is_whole,
    "n_cuts_": _is_whole,
    "gap_": lambda value, planes: isinstance(value, float) and 0.0 <= value <= 1.0,
    "assignments_": _is_indices,
    "plane_counts_": _is_counts,
}


def _restore_state(model: PlaneClassifier, kind: Kind, node: Any, unpacker: Unpacker) -> None:
    if node is None:
        return
    if not isinstance(node, dict) or node.keys() != {"kind", "value"} or node["kind"] not in kind.states:
        raise DamagedError("holds a state of training that is not of its learner")
    planes = model.planes_
    sizes: Sizes = {"features": planes.n_features, "classes": planes.n_classes}
    model._state = STATES[node["kind"]].unpack(node["value"], "state", unpacker, sizes)
    if "inside_" in kind.attributes:
        model.inside_ = model.classes_[model._state.inside]  # type: ignore[attr-defined]
