"""The converter for skl2onnx: the outputs, their types, and the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx.common import data_types
from skl2onnx.common.utils import check_input_and_output_numbers
from skl2onnx.helpers.integration import add_onnx_graph

from polyplane.exports.graph import Graph, add_outputs, output_types
from polyplane.model import Model

#: The type of skl2onnx for each dtype of an output.
TYPES = {
    np.dtype(object): data_types.StringTensorType,
    np.dtype(bool): data_types.BooleanTensorType,
    np.dtype(np.int64): data_types.Int64TensorType,
    np.dtype(np.float32): data_types.FloatTensorType,
    np.dtype(np.float64): data_types.DoubleTensorType,
}


def declare_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of an estimator."""
    operator = scope.declare_local_operator(f"Polyplane{type(model).__name__}", model)
    operator.inputs = inputs
    for name, kind in _types(Model.of(model), inputs[0]).items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def set_types(operator: Any) -> None:
    """Set the types of the outputs, given that of the rows."""
    check_input_and_output_numbers(operator, input_count_range=1, output_count_range=[2, 3])
    types = _types(Model.of(operator.raw_operator), operator.inputs[0])
    for variable in operator.outputs:
        if variable.raw_name in types:
            variable.type = types[variable.raw_name]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of an estimator."""
    model, rows = Model.of(operator.raw_operator), operator.inputs[0]
    dtype = _dtype(rows)
    graph = Graph(container.target_opset_any_domain(""), [("X", dtype, model.n_columns)])
    types = add_outputs(graph, model, "X", dtype)
    if "scores" not in [variable.raw_name for variable in operator.outputs]:  # those that a meta-estimator expects
        _column_per_class(graph, types["scores"], dtype, model.n_classes)
        types = {"label": types["label"], "columns": dtype}
    about = {"classes": model.classes.tolist()}
    add_onnx_graph(scope, operator, container, graph.finish(model.learner, types, about))


def _column_per_class(graph: Graph, have: Any, want: Any, n_classes: int) -> None:
    """Convert scores to one column per class, in the type of the rows."""
    scores = "scores" if have == want else graph.cast("scores", want)
    if n_classes > 2:
        graph("Identity", scores, output="columns")
    else:
        graph("Mul", graph("Unsqueeze", scores, np.array([1])), np.array([[-1, 1]], dtype=want), output="columns")


def _dtype(rows: Any) -> np.dtype[Any]:
    if isinstance(rows.type, data_types.DoubleTensorType):
        return np.dtype(np.float64)
    if isinstance(rows.type, data_types.FloatTensorType):
        return np.dtype(np.float32)
    raise ValueError(f"The rows must be float32 or float64, not {type(rows.type).__name__}.")


def _types(model: Model, rows: Any) -> dict[str, Any]:
    """Return the types of the outputs, with their shapes."""
    n_rows, n_classes = rows.get_first_dimension(), model.n_classes
    shapes = {"label": [n_rows], "scores": [n_rows] if n_classes == 2 else [n_rows, n_classes]}
    types = output_types(model, _dtype(rows))
    return {name: TYPES[dtype](shapes.get(name, [n_rows, n_classes])) for name, dtype in types.items()}
