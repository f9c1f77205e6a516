"""A fitted estimator as JSON and arrays, and an estimator from them.

An estimator is known here by what all of them have: parameters, `planes_`, `classes_`, `_state`, `_method` and
`_declaration`; see `polyplane.base.PlaneClassifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from numbers import Integral
from typing import Any

import numpy as np

from polyplane.committee import PlaneCommittee
from polyplane.engine.kinds import Array, Maybe, Record, Tuple, Whole
from polyplane.model_files.container import DamagedError
from polyplane.model_files.values import Packer, Sizes, Unpacker, Value, pack, unpack
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: The arrays of a PlaneSet; of a committee, those of all members together, beside the number of "members".
PLANES = {
    "coef": Array("f", "planes", "features"),
    "intercept": Array("f", "planes"),
    "indptr": Array("i", "classes+1"),
}
#: Attributes that an estimator of any learner may have.
ATTRIBUTES = {
    "n_features_in_": Whole(),
    "n_iter_": Whole(),
    "_scaling": Maybe(Tuple((Array("f", "features"), Array("f", "features")), AffineScaling)),
}
#: NumPy gives each label of an array the room of the longest. Up to so many bytes a loaded array is as wide as it was;
#: wider ones become arrays of objects, so that a file cannot fill the memory with nothing.
MOST_ROOM = 1 << 24
#: Characters of a message about what is wrong with a model.
LONGEST_REASON = 400


def describe(model: Any, packer: Packer) -> dict[str, Any]:
    """What is to be JSON; the arrays are left with the packer."""
    own = vars(model)
    names, history = own.get("feature_names_in_"), own.get("history_")
    parameters = model.get_params(deep=False).items()
    return {
        "learner": type(model).__name__,
        "parameters": {name: pack(Value(), value, f"parameters.{name}", packer) for name, value in parameters},
        "classes": _pack_labels(model.classes_, packer),
        "feature_names": None if names is None else [str(name) for name in names],
        "planes": _pack_planes(model.planes_, packer),
        "history": None if history is None else _pack_history(history, packer),
        "fitted": {name: pack(kind, own[name], f"fitted.{name}", packer) for name, kind in _attributes(model).items()},
        "training": _pack_training(model, packer) if "_state" in own else None,
    }


def _pack_planes(planes: PlaneSet | PlaneCommittee, packer: Packer) -> dict[str, Any]:
    if isinstance(planes, PlaneCommittee):
        return {"members": planes.n_members, **_pack_planes(planes.together, packer)}
    return {part: pack(kind, getattr(planes, part), f"planes.{part}", packer) for part, kind in PLANES.items()}


def _pack_labels(classes: np.ndarray, packer: Packer) -> Any:
    if classes.dtype.kind in "biuf":
        return packer.array(classes, "classes")
    if classes.dtype.kind not in "UO" or not _all_text(classes.tolist()):
        raise ValueError(f"The labels are of dtype {classes.dtype}; a model file holds numbers, booleans and texts.")
    as_objects = classes.dtype == object or classes.nbytes > MOST_ROOM
    return {"texts": classes.tolist(), "width": None if as_objects else classes.dtype.itemsize // 4}


def _all_text(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _pack_history(history: dict[str, list[float]], packer: Packer) -> dict[str, Any]:
    return {name: packer.array(np.array(values, dtype=float), f"history.{name}") for name, values in history.items()}


def _attributes(model: Any) -> dict[str, Any]:
    """The kinds of the fitted attributes that are there.

    Those of the learner's own are left out when they are about other planes: a user may have replaced these by fewer.
    """
    own, declared = vars(model), model._declaration.fitted
    by_plane = {name for name, kind in declared.items() if isinstance(kind, Array) and kind.shape == ("planes",)}
    others = any(len(own[name]) != model.planes_.n_planes for name in by_plane & own.keys())
    kinds = ATTRIBUTES if others else {**ATTRIBUTES, **declared}
    return {name: kind for name, kind in kinds.items() if name in own}


def _pack_training(model: Any, packer: Packer) -> dict[str, Any]:
    """The state, and the parameters of its method that were changed after the training."""
    method, trained_by = model._method(model.classes_), model._trained_by
    if type(method) is not type(trained_by):
        raise ValueError(
            "The parameters now name another method than the one that this model was trained by: set them back, or fit "
            "anew, and save then."
        )
    before = {part.name: getattr(trained_by, part.name) for part in fields(method)}
    changed = {name: value for name, value in before.items() if value != getattr(method, name)}
    return {
        "changed": {name: pack(Value(), value, f"changed.{name}", packer) for name, value in changed.items()},
        "state": pack(Record(method.state), model._state, "state", packer),
    }


def rebuild(description: dict[str, Any], unpacker: Unpacker, find: Callable[[str], type | None]) -> Any:
    """The estimator that was described; `find` knows the learners by their names."""
    learner: Any = find(str(description.get("learner")))
    if learner is None:
        raise DamagedError(f"names an unknown learner, {str(description.get('learner'))[:40]!r}")
    nodes, known = _part(description, "parameters"), learner().get_params(deep=False)
    if unknown := sorted(nodes.keys() - known.keys()):
        raise DamagedError(f"holds the parameter {unknown[0][:40]!r}, which {learner.__name__} does not have")
    values = {name: unpack(Value(), node, f"parameters.{name}", unpacker, {}) for name, node in nodes.items()}
    sizes: Sizes = {}
    with _possible():
        model = learner(**values)
        model._validate_params()
        model.planes_ = _planes(_part(description, "planes"), unpacker, sizes, learner._declaration.committee)
        model.classes_ = _labels(description.get("classes"), sizes["classes"], unpacker)
        _restore_attributes(model, description, unpacker, sizes)
        if description.get("training") is not None:
            if learner._declaration.committee:
                raise DamagedError("holds a state of training, which a committee does not have")
            _restore_training(model, _part(description, "training"), unpacker, sizes)
    if unpacker.used != unpacker.arrays.keys():
        raise DamagedError(f"holds an unused array: {min(unpacker.arrays.keys() - unpacker.used)!r}")
    return model


def _planes(nodes: dict[str, Any], unpacker: Unpacker, sizes: Sizes, committee: bool) -> PlaneSet | PlaneCommittee:
    """The planes; their numbers become known as sizes."""
    parts = {part: unpack(kind, nodes.get(part), f"planes.{part}", unpacker, sizes) for part, kind in PLANES.items()}
    if sizes["features"] < 1:
        raise DamagedError("has planes without features")
    planes, n_members = PlaneSet(**parts), nodes.get("members")
    if n_members is None:
        return planes
    if not committee or type(n_members) is not int or n_members < 1 or sizes["classes"] % n_members:
        raise DamagedError("has an invalid value for planes.members")
    sizes["classes"] //= n_members
    return PlaneCommittee.of_parts(planes, n_members)


def _part(description: dict[str, Any], name: str) -> dict[str, Any]:
    part = description.get(name)
    if not isinstance(part, dict):
        raise DamagedError(f"has an invalid value for {name}")
    return part


@contextmanager
def _possible() -> Iterator[None]:
    """Let what is refused here be damage of the file."""
    try:
        yield
    except DamagedError:
        raise
    except ValueError as error:
        reason = " ".join(str(error).split())[:LONGEST_REASON]  # it may show an array, in many lines
        raise DamagedError(f"holds an invalid model: {reason}".rstrip(".")) from error


def _labels(node: Any, n_classes: int, unpacker: Unpacker) -> np.ndarray:
    """The labels, as many as there are classes, and in the order that `numpy.unique` gives them."""
    classes = np.empty(0)
    match node:
        case {"array": _}:
            classes = unpacker.array(node, "classes")
        case {"texts": [*texts], "width": None | int() as width} if texts and _all_text(texts):
            if width is None or 0 < 4 * width * len(texts) <= MOST_ROOM:
                classes = np.array(texts, dtype=object if width is None else f"U{width:d}")
                classes = classes if classes.tolist() == texts else np.empty(0)
    if classes.shape != (n_classes,) or n_classes < 2 or not (classes[:-1] < classes[1:]).all():
        raise DamagedError("has invalid classes")
    return classes


def _restore_attributes(model: Any, description: dict[str, Any], unpacker: Unpacker, sizes: Sizes) -> None:
    own, nodes, kinds = vars(model), _part(description, "fitted"), {**ATTRIBUTES, **model._declaration.fitted}
    if not nodes.keys() <= kinds.keys():
        raise DamagedError("holds an attribute that its learner does not have")
    inner = dict(sizes)
    own["n_features_in_"] = sizes["features"]
    own.update({name: unpack(kinds[name], node, name, unpacker, inner) for name, node in nodes.items()})
    if own["n_features_in_"] != sizes["features"]:
        raise DamagedError("has an invalid value for n_features_in_")
    names = description.get("feature_names")
    if names is not None:
        if not isinstance(names, list) or len(names) != sizes["features"] or not _all_text(names):
            raise DamagedError("has invalid feature names")
        own["feature_names_in_"] = np.array(names, dtype=object)
    if description.get("history") is not None:
        figures, steps = _part(description, "history").items(), Array("float64", "steps")
        own["history_"] = {
            name: unpack(steps, node, f"history.{name}", unpacker, {}).tolist() for name, node in figures
        }


def _restore_training(model: Any, nodes: dict[str, Any], unpacker: Unpacker, sizes: Sizes) -> None:
    """The state, checked against the planes and the numbers among the parameters of its method."""
    method, changed = model._method(model.classes_), _part(nodes, "changed")
    if not changed.keys() <= {part.name for part in fields(method)}:
        raise DamagedError("holds a changed parameter that its learner does not have")
    before = {name: unpack(Value(), node, f"changed.{name}", unpacker, {}) for name, node in changed.items()}
    model._trained_by = method = replace(method, **before)
    numbers = {part.name: getattr(method, part.name) for part in fields(method)}
    known = {name: int(number) for name, number in numbers.items() if isinstance(number, Integral)}
    known |= {"features": sizes["features"], "classes": sizes["classes"]}
    model._state = unpack(Record(method.state), nodes.get("state"), "state", unpacker, known)
