"""The ONNX graph of a model, independent of how it is stored."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np

from polyplane._prediction import PlanePrediction
from polyplane.exports._pipeline import Scalers
from polyplane.planes import PlaneSet


class Sink(Protocol):
    """A graph to which parts are added."""

    opset: int

    def constant(self, name: str, array: np.ndarray) -> str:
        """Add an array; return its name."""

    def several(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add an operator with several outputs; return their names."""

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operator; return the name of its output."""


def build_graph(model: PlanePrediction, rows: str, dtype: np.dtype[Any], sink: Sink) -> dict[str, np.dtype[Any]]:
    """Build the graph from rows to the outputs; return the names and dtypes of the outputs."""
    planes = model.planes_
    precise = np.result_type(dtype, planes.coef.dtype)
    best = _mean_scores(planes, rows, dtype, sink)
    labels = decide(best, model.classes_, sink)
    outputs = {"label": labels.dtype, "scores": precise}
    link = link_function(model)
    if link is not None:
        outputs["probabilities"] = _probabilities(link, best, precise, sink)
    return outputs


def scale(scalers: Scalers, rows: str, dtype: np.dtype[Any], sink: Sink) -> str:
    """Scale rows as the scalers of a pipeline do: computed in float64, returned in the dtype of the rows."""
    if len(scalers.columns) < scalers.n_columns:
        rows = sink.node("Gather", [rows, sink.constant("kept_columns", scalers.columns)], "kept", axis=1)
    double = np.dtype(np.float64)
    if dtype != double:
        rows = sink.node("Cast", [rows], "exact_rows", to=element_type(double))
    centred = sink.node("Sub", [rows, sink.constant("centre", scalers.centre)], "centred")
    features = sink.node("Mul", [centred, sink.constant("factor", scalers.factor)], "scaled")
    if scalers.is_clipped:
        features = sink.node("Max", [features, sink.constant("low", scalers.low)], "not_too_low")
        features = sink.node("Min", [features, sink.constant("high", scalers.high)], "limited")
    if scalers.neutral is not None:
        missing = sink.node("IsNaN", [rows], "missing")
        features = sink.node("Where", [missing, sink.constant("neutral", scalers.neutral), features], "filled")
    return features if dtype == double else sink.node("Cast", [features], "features", to=element_type(dtype))


def decide(best: str, classes: np.ndarray, sink: Sink) -> np.ndarray:
    """Add the outputs "label" and "scores", given the class scores; return the class labels in an ONNX type."""
    labels = label_array(classes)
    winner = sink.node("ArgMax", [best], "winner", axis=1, keepdims=0)
    sink.node("Gather", [sink.constant("classes", labels), winner], "label", axis=0)
    if len(classes) == 2:
        first, second = (
            sink.node("Gather", [best, sink.constant(f"class_{c}", np.array(c))], f"score_{c}", axis=1) for c in (0, 1)
        )
        sink.node("Sub", [second, first], "scores")
    else:
        sink.node("Identity", [best], "scores")
    return labels


def _mean_scores(planes: PlaneSet, rows: str, dtype: np.dtype[Any], sink: Sink) -> str:
    """Compute the class scores; for a committee, the means over its members."""
    if planes.n_members == 1:
        return _class_scores(planes, rows, dtype, sink)
    scores = _class_scores(planes, rows, dtype, sink)
    shape = sink.constant("members", np.array([0, planes.n_members, planes.n_classes]))
    return reduce("ReduceMean", sink.node("Reshape", [scores, shape], "member_scores"), 1, 0, "mean_scores", sink)


def _class_scores(planes: PlaneSet, rows: str, dtype: np.dtype[Any], sink: Sink) -> str:
    """Compute the highest score of the planes of each class of each member."""
    precise = np.result_type(dtype, planes.coef.dtype)
    if dtype != precise:
        rows = sink.node("Cast", [rows], "precise_rows", to=element_type(precise))
    coef = sink.constant("coef", np.ascontiguousarray(planes.coef.T, dtype=precise))
    intercept = sink.constant("intercept", planes.intercept.astype(precise))
    scores = sink.node("Add", [sink.node("MatMul", [rows, coef], "products"), intercept], "plane_scores")
    counts = np.diff(planes.indptr).astype(np.int64)
    if planes.n_planes == len(counts):
        return scores
    if (counts == counts[0]).all():
        shape = sink.constant("shape", np.array([0, len(counts), counts[0]]))
        own_scores = sink.node("Reshape", [scores, shape], "own_scores")
        return reduce("ReduceMax", own_scores, 2, 0, "class_scores", sink)
    own = [f"own_scores_{c}" for c in range(len(counts))]
    own = sink.several("Split", [scores, sink.constant("counts", counts)], own, axis=1)
    best = [
        part if count == 1 else reduce("ReduceMax", part, 1, 1, f"best_{c}", sink)
        for c, (part, count) in enumerate(zip(own, counts, strict=True))
    ]
    return sink.node("Concat", best, "class_scores", axis=1)


def reduce(op: str, scores: str, axis: int, keepdims: int, output: str, sink: Sink) -> str:
    """Add a maximum, mean or sum over an axis, which is an input or an attribute, depending on the operator set."""
    if sink.opset < 18:
        return sink.node(op, [scores], output, axes=[axis], keepdims=keepdims)
    axes = sink.constant(f"{output}_axis", np.array([axis]))
    return sink.node(op, [scores, axes], output, keepdims=keepdims)


def link_function(model: PlanePrediction) -> str | None:
    """Return the link function, "softmax" or "expit"; None if the estimator has no `predict_proba`."""
    return model._declaration.probabilities if hasattr(model, "predict_proba") else None


def _probabilities(link: str, best: str, precise: np.dtype[Any], sink: Sink) -> np.dtype[Any]:
    """Add the output "probabilities"."""
    if link == "softmax":
        sink.node("Softmax", [best], "probabilities", axis=1)
        return precise
    double = np.dtype(np.float64)
    second = sink.node("Cast", ["scores"], "second", to=element_type(double))
    column = sink.node("Unsqueeze", [second, sink.constant("columns", np.array([1]))], "column")
    both = sink.node("Mul", [column, sink.constant("signs", np.array([[-1.0, 1.0]]))], "both")
    sink.node("Sigmoid", [both], "probabilities")
    return double


def label_array(classes: np.ndarray) -> np.ndarray:
    """Convert the labels to an ONNX type: string, bool, float64 or int64."""
    if classes.dtype.kind in "UO":
        for label in classes.tolist():
            try:
                str(label).encode()
            except UnicodeEncodeError:
                raise ValueError(f"The label {label!r} is not valid Unicode, which ONNX requires.") from None
        return classes.astype(object)
    if classes.dtype.kind == "u" and classes.max() >= 2**63:
        raise ValueError(f"The label {classes.max()} does not fit into a signed 64-bit integer, which ONNX requires.")
    return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))


def element_type(dtype: np.dtype[Any]) -> int:
    """Return the ONNX number of a dtype."""
    onnx = import_package("onnx")
    number: int = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return number


def import_package(name: str) -> Any:
    """Import a package of the extra "onnx"."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'{name} is required for ONNX export: pip install "polyplane[onnx]"') from error
