"""The converter for skl2onnx: the outputs, their types, and the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from skl2onnx.common import data_types
from skl2onnx.common.utils import check_input_and_output_numbers

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


class Container(Graph):
    """Adds the parts of a graph to the container of skl2onnx, with names that are unique in the pipeline."""

    def __init__(self, scope: Any, container: Any, names: dict[str, str]) -> None:
        self.scope, self.container = scope, container
        self.names = names
        self.opset = container.target_opset_any_domain("")

    def constant(self, array: np.ndarray) -> str:
        """Add an array; return its name."""
        import onnx

        unique: str = self.scope.get_unique_variable_name("constant")
        if array.dtype == object:
            text = [str(value).encode() for value in array]
            self.container.add_initializer(unique, onnx.TensorProto.STRING, list(array.shape), text)
        else:
            self.container.add_initializer(unique, None, None, onnx.numpy_helper.from_array(array, unique))
        return unique

    def several(self, op: str, inputs: list[str], outputs: Sequence[str | None], **attributes: Any) -> list[str]:
        """Add an operator with several outputs; return their names."""
        names = []
        for output in outputs:
            unique = self.scope.get_unique_variable_name(output or op.lower()) if output not in self.names else ""
            names.append(self.names.setdefault(output, unique) if output else unique)
        name = self.scope.get_unique_operator_name(op)
        self.container.add_node(op, inputs, names, op_version=self.opset, name=name, **attributes)
        return names


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
    outputs = {variable.raw_name: variable.full_name for variable in operator.outputs}
    nested = "scores" not in outputs
    if nested:
        label, wanted = (variable.full_name for variable in operator.outputs)
        outputs = {"label": label}
    graph = Container(scope, container, outputs)
    model, rows = Model.of(operator.raw_operator), operator.inputs[0]
    types = add_outputs(graph, model, rows.full_name, _dtype(rows))
    if nested:
        _column_per_class(graph, types["scores"], _dtype(rows), model.n_classes, wanted)


def _column_per_class(graph: Container, have: Any, want: Any, n_classes: int, output: str) -> None:
    """Convert scores to the form that a meta-estimator expects: one column per class, in the type of the rows."""
    scores = graph.names["scores"]
    if have != want:
        scores = graph.cast(scores, want)
    graph.names["columns"] = output
    if n_classes > 2:
        graph("Identity", scores, output="columns")
        return
    column = graph("Unsqueeze", scores, np.array([1]))
    graph("Mul", column, np.array([[-1, 1]], dtype=want), output="columns")


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
