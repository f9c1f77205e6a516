"""The form of a `Model` in a file: what `polyplane.serving` reads, and every estimator is restored from.

The fields of the types that a model consists of are declared in `FIELDS`; the format and its checks follow from them.
Identical features are not stored, and integer weights, as compressed models have, are stored as integers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from polyplane.engine.state import Array, Maybe, Record
from polyplane.features import OPS, Features, Projection
from polyplane.files.container import DamagedError
from polyplane.files.values import (
    FIELDS,
    Filled,
    Packer,
    Size,
    Sizes,
    Text,
    Texts,
    Unpacker,
    all_text,
    mismatch,
    pack,
    possible,
    unpack,
)
from polyplane.inputs.encoding import MatrixInputs, TableInputs
from polyplane.model import Model
from polyplane.planes import PlaneSet

_array, _filled = partial(Array, in_place=False), partial(Filled, "float64", "features", in_place=False)
FIELDS |= {
    MatrixInputs: {
        "n_columns": Size("encoded"),
        "given_names": Maybe(Texts("encoded")),
        "neutral": Maybe(_array("float64", "encoded")),
    },
    Features: {
        "n_inputs": Size("encoded"),
        "source": _array("i", "features", below="encoded"),
        "op": Filled("uint8", "features", in_place=False),
        "centre": _filled(),
        "factor": _filled(),
        "low": _filled(),
        "high": _filled(),
    },
    Projection: {"matrix": Maybe(_array("int8", "projected", "features")), "scale": _array("f", "projected")},
    PlaneSet: {
        "coef": _array("f", "planes", "projected"),
        "intercept": _array("f", "planes"),
        "indptr": _array("i", "owned+1"),
        "member_weight": _array("float64", "members"),
        "pooling": Text("max", "logsumexp"),
    },
}
#: In a NumPy array, each string takes the size of the longest. Larger arrays of labels become arrays of objects.
MOST_LABEL_BYTES = 1 << 24
#: Range of valid temperatures: beyond it, probabilities are always nearly 0 or 1, or nearly equal.
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 1e-6, 1e6
#: Largest weight in models with probabilities, which would be NaN if the scores of two classes are infinite.
LARGEST_WEIGHTS = {"float32": 1e32, "float64": 1e280}
#: Bytes per feature of features that are the columns themselves.
IDENTITY_BYTES = 48


def pack_model(model: Model, packer: Packer) -> dict[str, Any]:
    """Return the JSON description of a model; the packer collects the arrays."""
    planes = pack(Record(PlaneSet), model.planes, "planes", packer)
    if model.projection is not None:
        coef = model.planes.coef
        with np.errstate(invalid="ignore"):
            whole = coef.astype(np.int8, order="C")
        if whole.astype(coef.dtype).tobytes() == coef.tobytes():
            del packer.arrays[planes["coef"]["array"]]
            planes["coef"] = packer.array(whole, "planes.coef") | {"dtype": coef.dtype.name}
    return {
        **pack_columns(model, "", packer),
        "projection": pack(Maybe(Record(Projection)), model.projection, "projection", packer),
        "planes": planes,
        "classes": _pack_labels(model.classes, packer),
        "temperature": None if model.temperature is None else float(model.temperature),
        "learner": model.learner,
    }


def pack_columns(model: Model, prefix: str, packer: Packer) -> dict[str, Any]:
    """Return the description of the inputs and the features of a model."""
    inputs: Any = model.inputs
    if inputs.is_table:
        columns = {"table": inputs.to_dict()}
    else:
        columns = {"matrix": pack(Record(MatrixInputs), inputs, f"{prefix}inputs", packer)}
    features = None if model.features.is_identity else model.features
    return {"inputs": columns, "features": pack(Maybe(Record(Features)), features, f"{prefix}features", packer)}


def unpack_model(node: dict[str, Any], unpacker: Unpacker) -> Model:
    """Return the model of a description, after validation."""
    sizes: Sizes = {}
    with possible():
        planes = unpack(Record(PlaneSet), node.get("planes"), "planes", unpacker, sizes)
        if sizes["projected"] < 1:
            raise DamagedError("has planes without features")
        projection = unpack(Maybe(Record(Projection)), node.get("projection"), "projection", unpacker, sizes)
        if projection is not None and not np.isfinite(projection.scale).all():
            raise mismatch("projection")
        if projection is None or projection.matrix is None:
            sizes["features"] = sizes["projected"]
        inputs, features = unpack_columns(node, "", unpacker, sizes)
        classes = unpack_labels(node.get("classes"), planes.n_classes, unpacker)
        temperature, learner = node.get("temperature"), node.get("learner")
        is_number = temperature is None or type(temperature) is float
        if not is_number or not LEAST_TEMPERATURE <= (temperature or 1.0) <= LARGEST_TEMPERATURE or temperature == 0:
            raise mismatch("temperature")
        if not isinstance(learner, str) or not learner.isidentifier():
            raise mismatch("learner")
        largest = LARGEST_WEIGHTS[planes.coef.dtype.name]
        if temperature is not None and any(np.abs(part).max() > largest for part in (planes.coef, planes.intercept)):
            raise DamagedError("has weights that are too large for probabilities")
        return Model(inputs, features, planes, classes, temperature, projection, learner)


def unpack_columns(
    node: dict[str, Any], prefix: str, unpacker: Unpacker, sizes: Sizes
) -> tuple[TableInputs | MatrixInputs, Features]:
    """Return the inputs and the features of a description; `sizes` has the number of features."""
    inputs: Any
    match node.get("inputs"):
        case {"table": columns, **rest} if not rest:
            inputs = TableInputs.from_dict(columns)
            sizes["encoded"] = inputs.n_encoded
        case {"matrix": columns, **rest} if not rest:
            inputs = unpack(Record(MatrixInputs), columns, f"{prefix}inputs", unpacker, sizes)
            if inputs.neutral is not None and not np.isfinite(inputs.neutral).all():
                raise mismatch(f"{prefix}inputs.neutral")
        case _:
            raise mismatch(f"{prefix}inputs")
    if node.get("features") is None:
        if sizes["features"] != sizes["encoded"]:
            raise mismatch(f"{prefix}features")
        unpacker.charge(IDENTITY_BYTES * sizes["encoded"], f"{prefix}features")
        return inputs, Features.identity(sizes["encoded"])
    features = unpack(Record(Features), node["features"], f"{prefix}features", unpacker, sizes)
    is_scaled = np.isfinite(features.centre) & np.isfinite(features.factor) & (features.factor != 0)
    is_sound = is_scaled & (features.source >= 0) & (features.op < len(OPS)) & (features.low <= features.high)
    if not is_sound.all():
        raise mismatch(f"{prefix}features")
    return inputs, features


def _pack_labels(classes: np.ndarray, packer: Packer) -> Any:
    if classes.dtype.kind in "biuf":
        return packer.array(classes, "classes")
    if classes.dtype.kind not in "UO" or not all_text(classes.tolist()):
        raise ValueError(f"The labels are {classes.dtype}; model files support numbers, booleans and strings.")
    as_objects = classes.dtype == object or classes.nbytes > MOST_LABEL_BYTES
    return {"texts": classes.tolist(), "width": None if as_objects else classes.dtype.itemsize // 4}


def unpack_labels(node: Any, n_classes: int, unpacker: Unpacker) -> np.ndarray:
    """Return the labels, one per class and sorted as by `numpy.unique`."""
    classes = np.empty(0)
    match node:
        case {"array": _}:
            classes = unpacker.array(node, "classes")
        case {"texts": texts, "width": None | int() as width} if all_text(texts) and len(texts) == n_classes:
            if width is None or 0 < 4 * width * len(texts) <= MOST_LABEL_BYTES:
                unpacker.charge(n_classes * (8 if width is None else 4 * width), "classes")
                classes = np.array(texts, dtype=object if width is None else f"U{width:d}")
                classes = classes if classes.tolist() == texts else np.empty(0)
    if classes.shape != (n_classes,) or n_classes < 2 or not (classes[:-1] < classes[1:]).all():
        raise DamagedError("has invalid classes")
    return classes
