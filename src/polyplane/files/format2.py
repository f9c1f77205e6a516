"""Translation of files of format 2, in which each kind of estimator had a form of its own, to format 3.

The `Model` is computed from the old parts and described as in format 3; the arrays of parameters, fitted attributes and
training states are used as they are. What the translation yields is validated as any file of format 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.engine.state import Array, Maybe, Record
from polyplane.features import Features, Projection
from polyplane.files.container import DamagedError
from polyplane.files.estimator import MOST_STEPS, SCALERS
from polyplane.files.model import pack_columns, pack_model, unpack_labels
from polyplane.files.values import Packer, Size, Sizes, Unpacker, Value, mismatch, part_of, possible, unpack
from polyplane.inputs.encoding import MatrixInputs, TableInputs
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Learners with probabilities, if their parameter `loss` is "log".
PROBABILISTIC = ("CommitteeClassifier", "MultiHyperplaneClassifier", "PolyhedralMixtureClassifier")
#: Parts of a description that keep their meaning.
KEPT = ("parameters", "training")
PLANES = {
    "coef": Array("f", "planes", "features", in_place=False),
    "intercept": Array("f", "planes", in_place=False),
    "indptr": Array("i", "classes+1", in_place=False),
}
TABLES = {
    "n_features": Size("columns"),
    "kept": Array("i", "kept"),
    "projection": Maybe(Array("int8", "rank", "kept")),
    "units": Array("float32", "rank"),
    "weights": Array("int8", "planes", "rank"),
    "intercept": Array("float32", "planes"),
    "indptr": Array("i", "classes+1"),
    "centres": Maybe(Array("float32", "kept")),
    "factors": Maybe(Array("float32", "kept")),
}
#: Bytes of a member of a table, of each of its features, and of the knots of a number, besides those of the arrays.
MEMBER_BYTES, FEATURE_BYTES, KNOTS_BYTES = 4096, 128, 512


def translated(description: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[dict[str, Any], Unpacker]:
    """Return the description in format 3, and an unpacker of its arrays.

    `preparation` is the class of the preparations of tables, which is on a higher floor than files.
    """
    with possible():
        try:
            model, estimator = _translated(description, old, preparation)
        except (AttributeError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise DamagedError("has a damaged header") from error
    packer = Packer()
    parts = {"model": pack_model(model, packer), "estimator": estimator, "metadata": description.get("metadata")}
    new = Unpacker({**old.arrays, **packer.arrays}, 0)
    new.skip(parts)
    consumed = old.used - new.used
    new.arrays = {name: array for name, array in new.arrays.items() if name not in consumed}
    new.room, new.used = old.room, set()
    return parts, new


def _translated(node: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[Model, dict[str, Any]]:
    """Return the model and the description of the estimator."""
    match node.get("learner"):
        case "Pipeline":
            return _pipeline(node, old, preparation)
        case "TableClassifier":
            return _table(node, old, preparation)
        case "CompressedClassifier":
            return _compressed(node, old)
    return _learner(node, old)


def _learner(node: dict[str, Any], old: Unpacker) -> tuple[Model, dict[str, Any]]:
    sizes: Sizes = {}
    name, parameters = node.get("learner"), part_of(node, "parameters")
    parts = _parts(PLANES, part_of(node, "planes"), "planes", old, sizes)
    n_members = node["planes"].get("members") or 1
    if not 0 < n_members < len(parts["indptr"]):
        raise mismatch("planes.members")
    planes = PlaneSet(**parts, member_weight=np.full(n_members, 1.0 / n_members))
    has_probabilities = name in PROBABILISTIC and parameters.get("loss", "log") == "log"
    fitted = {key: part for key, part in part_of(node, "fitted").items() if key != "n_features_in_"}
    if node.get("history") is not None:
        fitted["history_"] = node["history"]
    name = "MultiHyperplaneClassifier" if name == "CommitteeClassifier" else name
    estimator = {"class": name, **{key: node.get(key) for key in KEPT}, "fitted": fitted}
    classes = unpack_labels(node.get("classes"), planes.n_classes, old)
    temperature = 1.0 if has_probabilities else None
    inputs = _matrix(node, sizes["features"])
    features = Features.identity(sizes["features"])
    return Model(inputs, features, planes, classes, temperature, learner=str(name)), estimator


def _matrix(node: dict[str, Any], n_columns: int) -> MatrixInputs:
    names = node.get("feature_names")
    return MatrixInputs(n_columns, None if names is None else tuple(names))


def _parts(kinds: dict[str, Any], nodes: dict[str, Any], name: str, old: Unpacker, sizes: Sizes) -> dict[str, Any]:
    return {key: unpack(kind, nodes.get(key), f"{name}.{key}", old, sizes) for key, kind in kinds.items()}


def _compressed(node: dict[str, Any], old: Unpacker) -> tuple[Model, dict[str, Any]]:
    parts = _parts(TABLES, part_of(node, "tables"), "tables", old, {})
    scaling = {} if parts["factors"] is None else {"centre": parts["centres"], "factor": parts["factors"]}
    features = Features.of(parts["kept"], n_inputs=parts["n_features"], **scaling)
    planes = PlaneSet(parts["weights"].astype(np.float64), parts["intercept"].astype(np.float64), parts["indptr"])
    classes = unpack_labels(node.get("classes"), planes.n_classes, old)
    projection, name = Projection(parts["projection"], parts["units"]), "CompressedClassifier"
    model = Model(_matrix(node, parts["n_features"]), features, planes, classes, None, projection, name)
    history = part_of(node, "history")
    fitted = {"history_": history, "trials_": node.get("trials")}
    fitted["n_iter_"] = old.array(history["loss"], "history.loss").size
    return model, {"class": name, "parameters": node.get("parameters"), "fitted": fitted, "training": None}


def _pipeline(node: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[Model, dict[str, Any]]:
    last, steps = part_of(node, "last"), node["steps"]
    if len(steps) > MOST_STEPS:
        raise mismatch("steps")
    model, estimator = _translated(last, old, preparation)
    packer = Packer()
    estimator |= {"name": last.get("name"), **pack_columns(model, "last.", packer)}
    old.arrays = {**old.arrays, **packer.arrays}
    fitted = [(step["name"], _step(step, f"steps.{i}", old)) for i, step in enumerate(steps) if "fitted" in step]
    whole = model.after(fitted) if fitted else model
    return whole, {"class": "Pipeline", "steps": steps, "last": estimator, "verbose": node.get("verbose")}


def _step(node: dict[str, Any], place: str, old: Unpacker) -> Any:
    """Return a scaler with the parameters and fitted attributes of scikit-learn's, which may not be installed."""
    if node["step"] not in SCALERS:
        raise DamagedError(f"names an unknown step, {str(node['step'])[:40]!r}")
    step = type(node["step"], (), {"__module__": "sklearn."})()
    sizes: Sizes = {}
    for name, part in part_of(node, "parameters").items():
        setattr(step, name, unpack(Value(), part, place, old, {}))
    for name, kind in SCALERS[node["step"]].items():
        setattr(step, name, unpack(kind, node["fitted"].get(name), f"{place}.{name}", old, sizes))
    step.n_features_in_ = sizes["features"]
    if node.get("feature_names") is not None:
        step.feature_names_in_ = node["feature_names"]
    return step


def _table(node: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[Model, dict[str, Any]]:
    inputs = TableInputs.from_dict(node.get("encoding"))
    described = [_with_knots(part, f"preparations.{i}", old) for i, part in enumerate(node["preparations"])]
    preparations = [
        unpack(Record(preparation), part, f"preparations.{i}", old, {"features": inputs.n_encoded})
        for i, part in enumerate(described)
    ]
    planes = [PlaneSet(**_parts(PLANES, part, f"planes.{i}", old, {})) for i, part in enumerate(node["planes"])]
    pairs = [(member["preparation"], member["planes"]) for member in node["members"]]
    classes = unpack_labels(node.get("classes"), planes[0].n_classes, old)
    for own in (planes[j] for _, j in pairs):  # a part can occur in any number of members
        old.charge(MEMBER_BYTES + own.n_features * (FEATURE_BYTES + 8 * own.n_planes), "members")
    n_features = sum({i: planes[j].n_features for i, j in pairs}.values())
    old.charge(8 * n_features * sum(planes[j].n_planes for _, j in pairs), "members")
    folded = [(*preparations[i].fold(planes[j], inputs.is_indicator), planes[j].indptr) for i, j in pairs]
    name = "TableClassifier"
    model = Model.of_members(inputs, folded, classes, temperature=node["temperature"], learner=name)
    old.arrays = {**old.arrays, "member_weight": np.ones(1)}
    rest = {"member_weight": {"array": "member_weight"}, "pooling": "max"}
    fitted = dict(part_of(node, "fitted"))
    fitted["members_"] = [[described[i], {**node["planes"][j], **rest}] for i, j in pairs]
    fitted["preparation_"] = fitted["preparation_"]["tuple"]
    fitted["_encoder_parameters"] = {"dict": [[key, value] for key, value in part_of(node, "encoder").items()]}
    if "history_" in fitted:
        fitted["history_"] = dict(fitted["history_"]["dict"])
    return model, {"class": name, "parameters": node.get("parameters"), "fitted": fitted, "training": None}


def _with_knots(node: dict[str, Any], place: str, old: Unpacker) -> dict[str, Any]:
    """Return a preparation with an array of knots for each number; in format 2, they are concatenated."""
    knots, counts = (old.array(node[name], f"{place}.{name}") for name in ("knots", "knot_counts"))
    if counts.dtype.kind != "i" or counts.min(initial=0) < 0 or counts.sum() != len(knots):
        raise mismatch(f"{place}.knot_counts")
    old.charge(KNOTS_BYTES * len(counts), f"{place}.knot_counts")
    parts = np.split(knots, np.cumsum(counts)[:-1]) if len(counts) else []
    named = {f"{place}.knots.{i}": part for i, part in enumerate(parts)}
    old.arrays = {**old.arrays, **named}
    kept = {key: part for key, part in node.items() if key != "knot_counts"}
    return {**kept, "knots": [{"array": name} for name in named]}
