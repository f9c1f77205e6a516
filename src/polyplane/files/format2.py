"""Translation of files of format 2, in which each kind of estimator had a form of its own, to format 3.

The header is rewritten, and refers to the same arrays; only the models of pipelines and tables are computed from their
parts. What the translation yields is validated as any file of format 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.engine.state import Record
from polyplane.files.container import DamagedError
from polyplane.files.estimator import MOST_STEPS, SCALERS
from polyplane.files.model import pack_columns, pack_model, unpack_labels, unpack_model
from polyplane.files.values import Packer, Sizes, Unpacker, Value, mismatch, part_of, possible, unpack
from polyplane.inputs.encoding import TableInputs
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Learners with probabilities, if their parameter `loss` is "log".
PROBABILISTIC = ("CommitteeClassifier", "MultiHyperplaneClassifier", "PolyhedralMixtureClassifier")
#: The step size of states of training with the log-loss, which had none of their own: that of their method counts.
USUAL_STEP = 0.3
#: Parts of a description that keep their meaning.
KEPT = ("parameters", "training")
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
    parts = {"model": model, "estimator": estimator, "metadata": description.get("metadata")}
    new = Unpacker(old.arrays, 0)
    new.skip(parts)
    consumed = old.used - new.used
    new.arrays = {name: array for name, array in old.arrays.items() if name not in consumed}
    new.room, new.used = old.room, set()
    return parts, new


def _translated(node: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the descriptions of the model and of the estimator."""
    match node.get("learner"):
        case "Pipeline":
            return _pipeline(node, old, preparation)
        case "TableClassifier":
            return _table(node, old, preparation)
        case "CompressedClassifier":
            return _compressed(node, old)
    return _learner(node, old)


def _learner(node: dict[str, Any], old: Unpacker) -> tuple[dict[str, Any], dict[str, Any]]:
    name, parameters, planes = node.get("learner"), part_of(node, "parameters"), part_of(node, "planes")
    has_probabilities = name in PROBABILISTIC and parameters.get("loss", "log") == "log"
    fitted = {key: part for key, part in part_of(node, "fitted").items() if key != "n_features_in_"}
    if node.get("history") is not None:
        fitted["history_"] = node["history"]
    name = "MultiHyperplaneClassifier" if name == "CommitteeClassifier" else name
    estimator = {"class": name, **{key: node.get(key) for key in KEPT}, "fitted": fitted}
    state = part_of(node, "training").get("state", {}) if node.get("training") is not None else {}
    for own in (state, *state.get("members", ())):
        if "adam" in own:
            own |= {"eta0": USUAL_STEP, "label_noise": 0.0}
            if own.get("rows") is not None:
                own["rows"]["trust"] = None
    _, n_features = old.array(planes["coef"], "planes.coef").shape
    planes = _planes(planes, planes.get("members") or 1, old)
    return _model(node, n_features, planes, learner=name, temperature=1.0 if has_probabilities else None), estimator


def _model(node: dict[str, Any], n_columns: Any, planes: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the description of a model of the columns of a matrix."""
    inputs = {"matrix": {"n_columns": n_columns, "given_names": node.get("feature_names"), "neutral": None}}
    usual = {"features": None, "projection": None, "temperature": None, "classes": node.get("classes")}
    return {"inputs": inputs, "planes": planes, **usual, **others}


def _planes(node: dict[str, Any], n_members: int, old: Unpacker) -> dict[str, Any]:
    """Return the description of planes, whose members have equal weights."""
    if not 0 < n_members < len(old.array(node["indptr"], "planes.indptr")):
        raise mismatch("planes.members")
    weight = f"member_weight.{n_members}"
    old.arrays = {**old.arrays, weight: np.full(n_members, 1.0 / n_members)}
    arrays = {name: node[name] for name in ("coef", "intercept", "indptr")}
    return {**arrays, "member_weight": {"array": weight}, "pooling": "max"}


def _compressed(node: dict[str, Any], old: Unpacker) -> tuple[dict[str, Any], dict[str, Any]]:
    tables, history, name = part_of(node, "tables"), part_of(node, "history"), "CompressedClassifier"

    def wide(part: str) -> dict[str, Any]:
        return {**tables[part], "dtype": "float64"}

    is_scaled = tables["factors"] is not None
    features = {
        "n_inputs": tables["n_features"],
        "source": tables["kept"],
        "op": {"all": 0},
        "centre": wide("centres") if is_scaled else {"all": 0.0},
        "factor": wide("factors") if is_scaled else {"all": 1.0},
        "low": {"all": {"float": "-inf"}},
        "high": {"all": {"float": "inf"}},
    }
    planes = {"coef": wide("weights"), "intercept": wide("intercept"), "indptr": tables["indptr"]}
    projection = {"matrix": tables["projection"], "scale": tables["units"]}
    parts = {"features": features, "projection": projection, "learner": name}
    model = _model(node, tables["n_features"], _planes(planes, 1, old), **parts)
    fitted = {"history_": history, "trials_": node.get("trials")}
    fitted["n_iter_"] = old.array(history["loss"], "history.loss").size
    return model, {"class": name, "parameters": node.get("parameters"), "fitted": fitted, "training": None}


def _pipeline(node: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    last, steps, packer = part_of(node, "last"), node["steps"], Packer()
    if len(steps) > MOST_STEPS:
        raise mismatch("steps")
    inner, estimator = _translated(last, old, preparation)
    model = unpack_model(inner, old)
    estimator |= {"name": last.get("name"), **pack_columns(model, "last.", packer)}
    fitted = [(step["name"], _step(step, f"steps.{i}", old)) for i, step in enumerate(steps) if "fitted" in step]
    whole = pack_model(model.after(fitted) if fitted else model, packer)
    old.arrays = {**old.arrays, **packer.arrays}
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


def _table(node: dict[str, Any], old: Unpacker, preparation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs = TableInputs.from_dict(node.get("encoding"))
    described = [_with_knots(part, f"preparations.{i}", old) for i, part in enumerate(node["preparations"])]
    preparations = [
        unpack(Record(preparation), part, f"preparations.{i}", old, {"features": inputs.n_encoded})
        for i, part in enumerate(described)
    ]
    each = [_planes(part, 1, old) for part in node["planes"]]
    planes = [unpack(Record(PlaneSet), part, f"planes.{i}", old, {}) for i, part in enumerate(each)]
    pairs = [(member["preparation"], member["planes"]) for member in node["members"]]
    classes = unpack_labels(node.get("classes"), planes[0].n_classes, old)
    for own in (planes[j] for _, j in pairs):  # a part can occur in any number of members
        old.charge(MEMBER_BYTES + own.n_features * (FEATURE_BYTES + 8 * own.n_planes), "members")
    n_features = sum({i: planes[j].n_features for i, j in pairs}.values())
    old.charge(8 * n_features * sum(planes[j].n_planes for _, j in pairs), "members")
    folded = [(*preparations[i].fold(planes[j], inputs.is_indicator), planes[j].indptr) for i, j in pairs]
    name = "TableClassifier"
    model = Model.of_members(inputs, folded, classes, temperature=node["temperature"], learner=name)
    fitted = dict(part_of(node, "fitted"))
    fitted["members_"] = [[described[i], each[j], 1.0] for i, j in pairs]
    fitted["preparation_"] = fitted["preparation_"]["tuple"]
    fitted["_encoder_parameters"] = {"dict": [[key, value] for key, value in part_of(node, "encoder").items()]}
    if "history_" in fitted:
        fitted["history_"] = dict(fitted["history_"]["dict"])
    packer = Packer()
    packed = pack_model(model, packer)
    old.arrays = {**old.arrays, **packer.arrays}
    return packed, {"class": name, "parameters": node.get("parameters"), "fitted": fitted, "training": None}


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
